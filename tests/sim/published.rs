//! Flow completion times beside those of HPCC's published simulator, for equal inputs: 64 hosts at four switches of
//! 100G, four spines of 400G, WebSearch at 50 % and incasts.

use holdfast::mmu::HpccRules;
use holdfast::sim;
use holdfast::sim::hpcc::{Inputs, MmuSizes};

const TOPOLOGY: &str = include_str!("published/topology.txt");
const FLOWS: &str = include_str!("published/flows.txt");
const SLOWDOWNS: &str = include_str!("published/slowdowns.txt");

/// Keys that all four have.
const CONFIG: &str = "\
TOPOLOGY_FILE t.txt
FLOW_FILE f.txt
SIMULATOR_STOP_TIME 2.2
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
FAST_RECOVERY_TIMES 1
MIN_RATE 1000Mb/s
GLOBAL_T 1
U_TARGET 0.95
MI_THRESH 0
BUFFER_SIZE 32
";

/// ECN that starts late, and that of DCTCP, which marks all beyond a depth.
const LATE: &str = "KMIN_MAP 2 100000000000 400 400000000000 1600\nKMAX_MAP 2 100000000000 1600 400000000000 6400\n\
                    PMAX_MAP 2 100000000000 0.20 400000000000 0.20\n";
const STEP: &str = "KMIN_MAP 2 100000000000 300 400000000000 1200\nKMAX_MAP 2 100000000000 300 400000000000 1200\n\
                    PMAX_MAP 2 100000000000 1.00 400000000000 1.00\n";
const WINDOW: &str = "HAS_WIN 1\nVAR_WIN 1\n";
/// With the high priority that its switches do not read.
const NO_WINDOW: &str = "HAS_WIN 0\nVAR_WIN 0\nACK_HIGH_PRIO 1\n";

/// The slowdowns of a run: the largest flow, the median and the 95th percentile of each row.
#[track_caller]
fn rows(config: &str, seed: u64) -> Vec<[f64; 3]> {
    let inputs = Inputs::of([config, TOPOLOGY, FLOWS]).expect("inputs");
    let prepared = inputs.prepare(Some(seed), (HpccRules::all(), MmuSizes::Hpcc)).expect("a scenario");
    let others = prepared.scenario.warnings.iter().filter(|warning| warning.to_string().contains("other equal paths"));
    assert_eq!(others.count(), 0, "each flow takes its path");
    let outcome = sim::run(&prepared.scenario, &mut |_| ());
    assert_eq!(outcome.violation, None);
    let rows = prepared.slowdowns(&outcome);
    rows.iter().map(|row| [row.most_bytes as f64, row.quantiles[0], row.quantiles[1]]).collect()
}

/// Compares each row of ten, as the mean of runs with the first `seeds`. `tail`: bound of the 95th percentile, beyond
/// which a row of 28 flows has one flow.
#[track_caller]
fn compare(name: &str, keys: &[&str], seeds: u64, tail: f64) {
    let config = format!("{CONFIG}{}", keys.concat());
    let runs: Vec<Vec<[f64; 3]>> = (1..=seeds).map(|seed| rows(&config, seed)).collect();
    let published = SLOWDOWNS.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let published: Vec<[f64; 3]> = published
        .map(|line| {
            let mut words = line.split(' ').map(|word| word.parse().expect("a number"));
            std::array::from_fn(|_| words.next().expect("three numbers"))
        })
        .collect();
    assert_eq!((runs[0].len(), published.len()), (10, 10));
    for (row, there) in published.iter().enumerate() {
        assert_eq!(runs[0][row][0], there[0]);
        for (column, bound) in [(1, 0.1), (2, tail)] {
            let here = runs.iter().map(|rows| rows[row][column]).sum::<f64>() / seeds as f64;
            let apart = here / there[column] - 1.0;
            assert!(apart.abs() <= bound, "{name}, column {column} of {there:?}: {here:.3}");
        }
    }
}

#[test]
fn slowdowns_of_hpcc_are_those_of_the_published_simulator() {
    compare("hpcc", &["CC_MODE 3\nRATE_AI 50Mb/s\nRATE_HAI 50Mb/s\n", LATE, WINDOW], 1, 0.1);
}

#[test]
fn slowdowns_of_dctcp_are_those_of_the_published_simulator() {
    compare("dctcp", &["CC_MODE 8\nEWMA_GAIN 0.0625\nDCTCP_RATE_AI 615Mb/s\n", STEP, WINDOW], 1, 0.1);
}

/// Its marks and those there are drawn from other random numbers.
#[test]
fn slowdowns_of_dcqcn_are_those_of_the_published_simulator() {
    let keys = "CC_MODE 1\nEWMA_GAIN 0.00390625\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\n";
    compare("dcqcn", &[keys, LATE, NO_WINDOW], 3, 0.2);
}

#[test]
fn slowdowns_of_timely_are_those_of_the_published_simulator() {
    compare("timely", &["CC_MODE 7\nRATE_AI 100Mb/s\nRATE_HAI 500Mb/s\n", LATE, NO_WINDOW], 1, 0.2);
}
