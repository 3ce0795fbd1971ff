use std::path::Path;

use super::*;
use crate::mmu::{HpccRule, Threshold};
use crate::sim::control::ControlSpec;
use crate::sim::outcome::Ending;
use crate::sim::spec::{FaultKind, FrameSizes, Load, MessageSize};
use crate::units::{Alpha, BitRate, Bytes, Cells, Nanos};

/// Three hosts at one switch, number 0; two more switches lead to host 5.
pub(super) const TOPOLOGY: &str = "\
7 3 6
0 4 6
1 0 100Gbps 0.001ms 0
2 0 100Gbps 0.001ms 0
0 3 100Gbps 0.001ms 0.01
0 4 400Gbps 1000ns 0
4 6 400Gbps 1us 0
6 5 100Gbps 1us 0
";
pub(super) const FLOWS: &str =
    "3\n1 3 3 100 5000 2\n2 5 3 101 2500 2.00001\n1 5 3 102 1 2.00002\nignored beyond the number\n";
pub(super) const CONFIG: &str = "\
ENABLE_QCN 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE mix/t.txt
FLOW_FILE mix/f.txt
FCT_OUTPUT_FILE mix/fct.txt
PFC_OUTPUT_FILE mix/pfc.txt
SIMULATOR_STOP_TIME 2.1 {an explanation}
CC_MODE 3
RATE_AI 50Mb/s
MI_THRESH 0
HAS_WIN 1
GLOBAL_T 1
VAR_WIN 1
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.2 400000000000 0.2
BUFFER_SIZE 32
";

pub(super) fn inputs(config: &str, topology: &str, flows: &str) -> Result<Inputs, ConfigErrors> {
    let (settings, warnings) = config::parse("c.txt", config)?;
    let (topology, _) = topology::parse("t.txt", topology)?;
    let (flows, _) = flows::parse("f.txt", flows, &topology)?;
    Ok(Inputs { settings, topology, flows, base: PathBuf::from("dir"), files: Vec::new(), warnings })
}

pub(super) const NO_RULES: (HpccRules, MmuSizes) = (HpccRules::NONE, MmuSizes::Holdfast);

fn prepared(config: &str) -> Prepared {
    inputs(config, TOPOLOGY, FLOWS).unwrap().prepare(None, NO_RULES).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(super) fn error(config: &str, topology: &str, flows: &str) -> String {
    match inputs(config, topology, flows).and_then(|inputs| inputs.prepare(None, NO_RULES)) {
        Ok(_) => panic!("accepted"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn inputs_become_switches_hosts_links_and_flows() {
    let Prepared { scenario, epoch_ns, .. } = prepared(CONFIG);
    assert_eq!((scenario.switches.len(), scenario.hosts.len(), scenario.links.len()), (3, 4, 6));
    assert_eq!(epoch_ns, 1_999_990_000, "ten microseconds before the first flow");
    let link = scenario.links.iter().find(|link| link.name.contains("h1")).unwrap();
    assert_eq!((link.rate, link.length.mm), (BitRate(100_000_000_000), 200_000));
    let ports = &scenario.switches[0].config.switch.ports;
    assert_eq!((ports.len(), ports[3].rate), (4, BitRate(400_000_000_000)));
    // ECN of the slowest port, telemetry in the class of the flows.
    let spec = &scenario.switches[0].config.switch;
    assert_eq!(spec.queues[3].wred.map(|wred| wred.kmin), Some(Bytes(400_000)));
    assert!(spec.telemetry_queues.contains(3) && scenario.routed.is_some());
    let flow = &scenario.flows[0];
    assert_eq!(
        (flow.name.as_str(), flow.start, flow.dscp, flow.frames),
        ("h1-h3", Nanos(10_000), 24, FrameSizes::Fixed(1100))
    );
    // Five packets of 1000 B, each with 58 B of headers and 42 B for notes.
    let Load::Messages { size: MessageSize::Fixed(size), count: Some(1), .. } = flow.load else { panic!() };
    assert_eq!(size, Bytes(5500));
    let Some(ControlSpec::Hpcc(hpcc)) = flow.control else { panic!() };
    let transport = flow.transport.unwrap();
    assert!(hpcc.most_stages == 0 && transport.scales_window && transport.window.is_some());
    assert_eq!(scenario.flows[0].base_rtt, scenario.flows[1].base_rtt, "GLOBAL_T: one time for all");
    let loses = |fault: &crate::sim::spec::Fault| matches!(fault.kind, FaultKind::Lose { per_million: 10_000, .. });
    assert!(scenario.faults.len() == 1 && loses(&scenario.faults[0]));
}

#[test]
fn completion_times_have_hpccs_columns() {
    let prepared = prepared(&CONFIG.replace("0.01\n", "0\n"));
    let outcome = crate::sim::run(&prepared.scenario, &mut |_| ());
    assert_eq!((outcome.violation.clone(), outcome.ending), (None, Ending::Drained));
    let outputs = prepared.outputs(&outcome);
    assert_eq!(outputs.fct.0, Path::new("dir/mix/fct.txt"));
    let lines: Vec<Vec<&str>> = outputs.fct.1.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 3);
    let first = lines.iter().find(|line| line[3] == "100").unwrap();
    // Twice 2 us, 80 ns on each of two links; 5 packets of 1048 B at 100 Gbit/s.
    let alone = 4_000 + 2 * 80 + 5 * 1048 * 8 / 100;
    assert_eq!(first[..6], ["0b000101", "0b000301", "10000", "100", "5000", "2000000000"]);
    assert_eq!(first[7], alone.to_string());
    let slowdown = first[6].parse::<f64>().unwrap() / f64::from(alone);
    assert!((0.98..1.05).contains(&slowdown), "{slowdown}: the path is empty");
    assert_eq!(lines.iter().find(|line| line[3] == "102").unwrap()[..3], ["0b000101", "0b000501", "10000"]);
}

#[test]
fn queue_lengths_are_counted_by_kilobytes_until_each_dump() {
    let flows = "2\n1 3 3 100 3000000 2.0999\n2 3 3 100 3000000 2.0999\n";
    let monitor = "QLEN_MON_FILE mix/q.txt\nQLEN_MON_START 2099900000\nQLEN_MON_END 2100200000\n";
    let config = CONFIG.replace("CC_MODE 3", "CC_MODE 1").replace("HAS_WIN 1", "HAS_WIN 0");
    let config = config.replace("TIME 2.1 ", "TIME 2.2 ") + monitor;
    let prepared = inputs(&config, &TOPOLOGY.replace("0.01\n", "0\n"), flows).unwrap().prepare(None, NO_RULES).unwrap();
    let outcome = crate::sim::run(&prepared.scenario, &mut |_| ());
    let (path, text) = prepared.outputs(&outcome).qlen.expect("the configuration asks for it");
    assert_eq!(path, Path::new("dir/mix/q.txt"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "time: 2100000000");
    let ports: Vec<Vec<u64>> =
        lines[1..].iter().map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect()).collect();
    let ends: Vec<[u64; 2]> = ports.iter().map(|port| [port[0], port[1]]).collect();
    assert_eq!(ends, [[0, 1], [0, 2], [0, 3], [0, 4], [4, 1], [4, 2], [6, 1], [6, 2]]);
    assert!(ports.iter().all(|port| port[2..].iter().sum::<u64>() == 1001), "{text}");
    // 100 us of twice the rate: the queue of port 3 grows, until DCQCN slows the senders down.
    assert!(ports[2].len() > 100 && ports.iter().enumerate().all(|(at, port)| at == 2 || port.len() == 3), "{text}");
}

#[test]
fn pauses_have_time_node_type_interface_and_event() {
    // Without congestion control and windows, two hosts overload a third.
    let flows = "2\n1 3 3 100 3000000 2\n2 3 3 100 3000000 2\n";
    let config = CONFIG
        .replace("CC_MODE 3", "CC_MODE 7")
        .replace("HAS_WIN 1", "HAS_WIN 0")
        .replace("BUFFER_SIZE 32", "BUFFER_SIZE 6");
    let prepared =
        inputs(&config, TOPOLOGY, flows).unwrap().prepare(None, NO_RULES).unwrap_or_else(|errors| panic!("{errors}"));
    let outcome = crate::sim::run(&prepared.scenario, &mut |_| ());
    let pfc = prepared.outputs(&outcome).pfc.1;
    let lines: Vec<Vec<u64>> =
        pfc.lines().map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect()).collect();
    let begins = lines.iter().filter(|line| line[4] == 1).count();
    assert!(begins > 0 && lines.len() == 2 * begins, "{pfc}");
    assert!(
        lines.iter().all(|line| line[0] > 2_000_000_000 && [1, 2].contains(&line[1]) && line[2] == 0 && line[3] == 1)
    );
    assert!(lines[0][4] == 1 && lines.is_sorted_by_key(|line| line[0]), "{pfc}");
}

#[test]
fn switch_with_too_many_ports_keeps_the_hosts_that_have_flows() {
    let links: String = (1..=70).map(|host| format!("0 {host} 100Gbps 1us 0\n")).collect();
    let topology = format!("71 1 70\n0\n{links}");
    let prepared = inputs(CONFIG, &topology, "1\n2 69 3 100 1000 2\n").unwrap().prepare(None, NO_RULES).unwrap();
    assert_eq!(prepared.scenario.hosts.len(), 2);
    assert!(
        prepared
            .scenario
            .warnings
            .iter()
            .any(|warning| warning.to_string().contains("68 hosts without flows are left out"))
    );
    let all: String = (2..=70).map(|host| format!("{host} 1 3 100 1000 2\n")).collect();
    assert_eq!(
        error(CONFIG, &topology, &format!("69\n{all}")),
        "mix/t.txt: switch 0 has 70 links; a switch has at most 64 ports"
    );
}

#[test]
fn wrong_inputs_are_refused_with_their_line() {
    let cases = [
        (CONFIG.replace("MI_THRESH 0", "MI_TRESH 0"), "c.txt:10:1: unknown key `MI_TRESH`; did you mean `MI_THRESH`?"),
        (CONFIG.replace("CC_MODE 3", "CC_MODE"), "c.txt:8:1: a number is missing; write it behind this word"),
        (CONFIG.replace("50Mb/s", "fast"), "c.txt:9:9: `fast` is not a rate, e.g. 50Mb/s; write a rate, e.g. 50Mb/s"),
        (
            CONFIG.replace("CC_MODE 3", "CC_MODE 10"),
            "c.txt:8:9: CC_MODE 10 is not supported; write 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP)",
        ),
        (CONFIG.replace("FLOW_FILE mix/f.txt\n", ""), "c.txt: FLOW_FILE is missing; write e.g. `FLOW_FILE mix/x.txt`"),
    ];
    for (config, expected) in cases {
        assert_eq!(error(&config, TOPOLOGY, FLOWS), expected);
    }
    assert_eq!(
        error(CONFIG, &TOPOLOGY.replace("1 0 100Gbps", "1 9 100Gbps"), FLOWS),
        "t.txt:3:3: `9` is not a node; write from 0 to 6 (line 1 states 7 nodes, 3 switches and 6 links)"
    );
    assert_eq!(
        error(CONFIG, &TOPOLOGY.replace("1000ns", "1000"), FLOWS),
        "t.txt:6:13: `1000` is not a delay up to 1s; write e.g. `1000ns` (line 1 states 7 nodes, 3 switches and 6 links)"
    );
    assert_eq!(
        error(CONFIG, TOPOLOGY, "1\n1 4 3 100 5000 2\n"),
        "f.txt:2:3: `4` is not a host of the topology; write one that is no switch"
    );
    assert_eq!(
        error(CONFIG, TOPOLOGY, "1\n1 1 3 100 5000 2\n"),
        "f.txt:2:1: a host cannot send to itself; write another destination"
    );
    assert_eq!(
        error(CONFIG, TOPOLOGY, "2\n1 3 3 100 5000 2\n1 3 3 100 5000 1\n"),
        "f.txt:3:1: the flow starts before an earlier line; order the flows by start"
    );
    assert_eq!(
        error(CONFIG, TOPOLOGY, "2\n1 3 3 100 5000 2\n"),
        "f.txt:2:16: a flow is missing; write it behind this word"
    );
}

#[test]
fn impossible_sizes_rates_and_links_are_refused() {
    assert_eq!(
        error(CONFIG, TOPOLOGY, "1\n1 3 3 100 18446744073709551615 2\n"),
        "f.txt:2:11: `18446744073709551615` is not a number of bytes; write from 0 to 1099511627776"
    );
    for payload in ["0", "9001", "70000"] {
        let config = CONFIG.replace("SIZE 1000", &format!("SIZE {payload}"));
        assert!(error(&config, TOPOLOGY, FLOWS).contains("is not a number of bytes; write from 1 to 9000"));
    }
    let kmin = CONFIG.replace("KMIN_MAP 2 100000000000 400 400000000000 1600", "KMIN_MAP 1 400000000000 400");
    assert_eq!(
        error(&kmin, TOPOLOGY, FLOWS),
        "c.txt: there are ports of 100000000000 bit/s, and KMIN_MAP, KMAX_MAP or PMAX_MAP has no entry for them; \
         write one"
    );
    let unlinked = TOPOLOGY.replace("7 3 6", "7 3 5").replace("0 3 100Gbps 0.001ms 0.01\n", "");
    assert_eq!(error(CONFIG, &unlinked, FLOWS), "mix/f.txt: no links lead from 1 to 3; write them in mix/t.txt");
    const ONE_LINK: &str = "in HPCC's format a host has one link, to a switch, and line 2 lists the switches";
    let twice = TOPOLOGY.replace("2 0 100Gbps", "1 6 100Gbps");
    assert_eq!(error(CONFIG, &twice, FLOWS), format!("t.txt: host 1 has 2 links; {ONE_LINK}"));
    let hosts = TOPOLOGY.replace("2 0 100Gbps", "2 3 100Gbps");
    assert_eq!(error(CONFIG, &hosts, FLOWS), format!("t.txt: the link of 2 and 3 joins two hosts; {ONE_LINK}"));
}

#[test]
fn thresholds_in_the_wrong_order_are_refused() {
    let config = CONFIG.replace("KMIN_MAP 2 100000000000 400", "KMIN_MAP 2 100000000000 1601");
    assert_eq!(
        error(&config, TOPOLOGY, FLOWS),
        "c.txt: at 100000000000 bit/s KMIN_MAP has 1601 and KMAX_MAP 1600; write no more than KMAX_MAP has"
    );
}

#[test]
fn flow_before_time_zero_is_refused_and_flows_beyond_the_number_are_named() {
    assert_eq!(
        error(CONFIG, TOPOLOGY, "1\n1 3 3 100 5000 -2\n"),
        "f.txt:2:16: `-2` is not a time in seconds; write from 0 to 10000"
    );
    let (topology, _) = topology::parse("t.txt", TOPOLOGY).unwrap();
    let (_, warning) = flows::parse("f.txt", FLOWS, &topology).unwrap();
    let expected = "f.txt:5:1: the first line states 3 flows; this line and those after it have no effect";
    assert_eq!(warning.map(|warning| warning.to_string()).as_deref(), Some(expected));
}

#[test]
fn warnings_are_in_the_words_of_the_configuration() {
    let config = CONFIG.replace("BUFFER_SIZE 32", "BUFFER_SIZE 4");
    let warnings = prepared(&config).scenario.warnings;
    let ecn = warnings.iter().map(Warning::to_string).find(|warning| warning.contains("KMIN_MAP")).unwrap();
    assert!(ecn.starts_with("c.txt: switches[0].config.classes.3: ECN of class 3 starts to mark at "), "{ecn}");
    assert!(ecn.ends_with("; lower KMIN_MAP or raise BUFFER_SIZE"), "{ecn}");
}

#[test]
fn run_ends_at_the_stop_time_once_all_flows_have_started() {
    let ends_at = |stop: &str| {
        let scenario = prepared(&CONFIG.replace("STOP_TIME 2.1", &format!("STOP_TIME {stop}"))).scenario;
        scenario.duration.0 + scenario.drain.0
    };
    // The first flow starts 10 us after the scenario begins, and the last one 20 us later.
    assert_eq!(ends_at("2.001"), 1_010_000);
    assert_eq!([ends_at("1"), ends_at("2.00001")], [32_000; 2]);
}

/// A key without a reader would be offered to whoever misspells it.
#[test]
fn every_key_of_the_list_is_read() {
    for key in config::KEYS {
        let message = error(&format!("{key}\n{CONFIG}"), TOPOLOGY, FLOWS);
        assert!(message.contains("is missing; write it behind this word"), "{key}: {message}");
    }
}

#[test]
fn flows_that_start_in_one_nanosecond_are_in_order() {
    let (topology, _) = topology::parse("t.txt", TOPOLOGY).unwrap();
    for start in ["2.000000003", "2.000123457", "2.00000001"] {
        let text = format!("2\n1 3 3 100 10 {start}\n2 3 3 100 10 {start}\n");
        assert_eq!(flows::parse("f.txt", &text, &topology).unwrap().0.len(), 2);
    }
}

#[test]
fn keys_without_effect_are_named() {
    let config = format!("{CONFIG}FAST_REACT 0\nRATE_BOUND 1\nTRACE_FILE mix/q.txt\nINT_MULTI 4\n");
    let (_, warnings) = config::parse("c.txt", &config).unwrap();
    assert_eq!(
        warnings.iter().map(Warning::to_string).collect::<Vec<_>>(),
        [
            "c.txt:18:1: FAST_REACT has no effect here; the run is as with 1",
            "c.txt:20:1: TRACE_FILE has no effect here"
        ]
    );
}

#[test]
fn numbers_out_of_range_are_refused_with_their_place() {
    let lines = [
        "LINK_DOWN 18446744073709551615 1 0",
        "ALPHA_RESUME_INTERVAL 1e30",
        "RATE_AI 801Gb/s",
        "U_TARGET nan",
        "EWMA_GAIN 2",
        "ERROR_RATE_PER_LINK -0.1",
        "SIMULATOR_STOP_TIME inf",
        "HAS_WIN 2",
        "PMAX_MAP 1 100000000000 2",
        "L2_ACK_INTERVAL 70000",
    ];
    for line in lines {
        let message = error(&format!("{line}\n{CONFIG}"), TOPOLOGY, FLOWS);
        assert!(message.contains("c.txt:1:") && message.contains("write "), "{line}: {message}");
    }
    let message = error(CONFIG, &TOPOLOGY.replace("0.01", "NaN"), FLOWS);
    assert!(message.contains("t.txt:5:") && message.contains("write from 0 to 1"), "{message}");
}

#[test]
fn switches_have_the_rules_and_sizes_of_hpcc_on_request() {
    let topology = TOPOLOGY.replace("0.01\n", "0\n");
    let rules = HpccRules::all();
    let prepared = inputs(CONFIG, &topology, FLOWS).unwrap().prepare(None, (rules, MmuSizes::Hpcc)).unwrap();
    let switch = &prepared.scenario.switches[0].config.switch;
    assert_eq!(switch.hpcc, rules);
    let cell = switch.buffer.cell;
    let group = |port: usize| switch.ports[port].buffer.groups[3];
    // 100G and 400G, beside hosts of 100G: alpha 1/8 and 1/2, three times what 1 us of cable holds.
    let sizes = |port: usize| (group(port).reserve, group(port).threshold, group(port).headroom);
    let alpha = |exponent| Threshold::Dynamic(Alpha::from_exponent(exponent).unwrap());
    let of = |bytes| Bytes(bytes).to_cells_floor(cell);
    assert_eq!(sizes(0), (Bytes(4096).to_cells_ceil(cell), alpha(-3), of(37_500)));
    assert_eq!(sizes(3), (Bytes(4096).to_cells_ceil(cell), alpha(-1), of(150_000)));
    // The whole buffer less one reserve and one headroom for each port.
    let guaranteed: Cells = (0..4).map(|port| group(port).reserve + group(port).headroom).sum();
    assert_eq!(switch.buffer.lossless_shared, Bytes(32 << 20).to_cells_floor(cell) - guaranteed);
    assert!(prepared.scenario.hosts.iter().all(|host| host.response == Some(Nanos(0))));
    let outcome = crate::sim::run(&prepared.scenario, &mut |_| ());
    assert_eq!((outcome.violation.clone(), outcome.ending), (None, Ending::Drained));
    assert!(outcome.waivers.iter().any(|waiver| waiver.contains("decides as HPCC's simulator (all rules)")));
}

#[test]
fn rules_of_hpcc_are_given_without_its_sizes_on_request() {
    let topology = TOPOLOGY.replace("0.01\n", "0\n");
    let prepare = |mmu| inputs(CONFIG, &topology, FLOWS).unwrap().prepare(None, mmu).unwrap().scenario;
    let rules: HpccRules = [HpccRule::XonOwnDeparture].into_iter().collect();
    let (with, without) = (prepare((rules, MmuSizes::Holdfast)), prepare(NO_RULES));
    let (mut with_rules, own) = (with.switches[0].config.switch.clone(), &without.switches[0].config.switch);
    assert_eq!(with_rules.hpcc, rules);
    with_rules.hpcc = HpccRules::NONE;
    assert_eq!(with_rules, *own);
    assert_eq!(with.hosts[0].response, without.hosts[0].response);
}
