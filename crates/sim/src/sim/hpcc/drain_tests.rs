//! A second HPCC flow joins at one bottleneck of 100G: the queue beside that of HPCC's published simulator.

use super::tests::{NO_RULES, inputs};
use std::fmt::Write;

/// Extra time of a probe of 1 kB each 4 us in HPCC's simulator, in nanoseconds, from 300 us on. It shows the queue.
const PUBLISHED_NS: [i64; 60] = [
    137, 4054, 7972, 11889, 12064, 9543, 6501, 3458, 1371, 938, -22, -7, 10, 7, 90, 92, 528, 1139, 2012, 2710, 2537,
    1582, 628, 107, -55, -55, 43, -55, -23, -25, -31, 231, 407, 584, 673, 761, 763, 70, 66, -53, 25, -55, -22, 2, 21,
    41, 12, 100, -55, 7, -23, 16, -55, 9, -55, -34, 10, 28, 16, 57,
];

const CONFIG: &str = "\
ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE t.txt
FLOW_FILE f.txt
FCT_OUTPUT_FILE fct.txt
PFC_OUTPUT_FILE pfc.txt
SIMULATOR_STOP_TIME 2.2
CC_MODE 3
RATE_AI 50Mb/s
RATE_HAI 50Mb/s
MIN_RATE 1000Mb/s
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
HAS_WIN 1
GLOBAL_T 1
VAR_WIN 1
FAST_REACT 1
U_TARGET 0.95
MI_THRESH 0
INT_MULTI 4
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.20 400000000000 0.20
BUFFER_SIZE 32
";

/// The extra time of each probe here, in nanoseconds.
fn probes() -> Vec<i64> {
    let mut topology = "9 1 8\n8\n".to_owned();
    (0..8).for_each(|host| writeln!(topology, "{host} 8 100Gbps 3000ns 0").expect("a string grows"));
    let mut flows = format!("{}\n0 1 3 100 20000000 2\n2 1 3 100 2000000 2.0003\n", PUBLISHED_NS.len() + 2);
    for probe in 0..PUBLISHED_NS.len() {
        let (host, ns) = (3 + probe % 5, 2_000_300_100 + 4_000 * probe as u64);
        writeln!(flows, "{host} 1 3 200 1000 2.{:09}", ns - 2_000_000_000).expect("a string grows");
    }
    let prepared = inputs(CONFIG, &topology, &flows).unwrap().prepare(None, NO_RULES).unwrap();
    let outcome = crate::sim::run(&prepared.scenario, &mut |_| ());
    assert_eq!(outcome.violation, None);
    let mut probes: Vec<(u64, i64)> = Vec::new();
    for line in prepared.outputs(&outcome).fct.1.lines() {
        let column = |column: usize| line.split(' ').nth(column).and_then(|text| text.parse::<u64>().ok());
        if column(4) == Some(1000) {
            let [start, took, alone] = [5, 6, 7].map(|index| column(index).expect("a number"));
            probes.push((start, took as i64 - alone as i64));
        }
    }
    probes.sort_unstable();
    probes.into_iter().map(|(_, extra)| extra).collect()
}

#[test]
fn queue_of_a_joining_hpcc_flow_drains_as_in_the_published_simulator() {
    let probes = probes();
    assert_eq!(probes.len(), PUBLISHED_NS.len());
    for (index, (here, there)) in probes.iter().zip(PUBLISHED_NS).enumerate() {
        let us = 4 * index;
        // Frames are 34 B longer here, and the base time of a probe has rounding of its own.
        assert!(here.abs_diff(there) <= 1_000 + there.unsigned_abs() / 5, "{us} us: {here} ns beside {there} ns");
    }
    let drained = |probes: &[i64]| probes.iter().skip(4).position(|&extra| extra < 500).map(|index| 4 * (index + 4));
    assert_eq!((drained(&probes), drained(&PUBLISHED_NS)), (Some(36), Some(40)), "us until the queue is empty");
}
