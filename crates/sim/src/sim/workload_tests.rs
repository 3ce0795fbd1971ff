//! Workloads in whole runs: flows, completion times, memory and dependencies.

use super::outcome::{Ending, Outcome};
use super::scenario::{self, Options};
use super::spec::Scenario;

const US: u64 = 1_000_000;

/// A switch with four hosts of 10G.
const STAR: &str = "
duration: 1ms
switches: [{name: tor, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}]}, poll: {every: 100ns}}]
hosts: [{name: h*, count: 4, at: tor.p*}]
";

#[track_caller]
fn read(text: &str) -> Scenario {
    let scenarios = scenario::parse("x.yaml", text, None, &Options::default());
    scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1
}

#[track_caller]
fn run(workloads: &str) -> (Scenario, Outcome) {
    let scenario = read(&format!("{STAR}workloads: {workloads}\n"));
    let outcome = super::run(&scenario, &mut |_| {});
    assert_eq!((&outcome.violation, outcome.ending), (&None, Ending::Drained));
    (scenario, outcome)
}

#[test]
fn flow_alone_completes_in_its_ideal_time() {
    for keys in ["", ", transport: go-back-n", ", cc: hpcc", ", kind: udp", ", rate: 5G", ", frame: 300"] {
        // Flows without transport must complete within the millisecond.
        for size in ["1B", "1020B", "64kB", "500kB"] {
            let text = format!("[{{incast: {{senders: 1, size: {size}, times: 1}}, from: h1, to: h2{keys}}}]");
            let (_, outcome) = run(&text);
            let [flow] = outcome.completions.list[..] else { panic!("one flow") };
            // Congestion control may slow down a flow that is alone, and a poll may come at once.
            let most = flow.ideal_ps + if keys.contains("hpcc") { flow.ideal_ps / 8 } else { US };
            let least = flow.ideal_ps.saturating_sub(US);
            assert!((least..=most).contains(&flow.time_ps), "{size}{keys}: {} of {}", flow.time_ps, flow.ideal_ps);
            assert_eq!(outcome.workloads[0].sum.lost_frames(), 0);
        }
    }
}

#[test]
fn poisson_flows_offer_their_load() {
    let (_, outcome) = run("[{sizes: 8kB, load: 40%, transport: go-back-n}]");
    let workload = &outcome.workloads[0];
    // Four hosts send at 4 Gbit/s for 990 us: 248 flows of 64,000 bits, with a standard deviation of 16.
    assert!(workload.started.abs_diff(248) < 64, "{}", workload.started);
    assert_eq!((workload.completed, workload.left_out, workload.rounds), (workload.started, 0, None));
    assert_eq!(outcome.completions.seen, workload.started);
    assert_eq!(workload.sum.messages, workload.started);
    assert!(outcome.queues.is_some_and(|lengths| lengths.samples > 1_000 && lengths.most_bytes > 0));
}

#[test]
fn workload_does_not_change_the_flows_of_another() {
    let one = "{name: a, sizes: google-rpc, load: 10%, from: [h1, h2], to: [h1, h2], transport: go-back-n}";
    let starts = |outcome: &Outcome| -> Vec<(u16, u64, u64)> {
        let own = outcome.completions.list.iter().filter(|flow| flow.workload == 0);
        let mut starts: Vec<_> = own.map(|flow| (flow.from, flow.start_ps, flow.bytes)).collect();
        starts.sort_unstable();
        starts
    };
    let with = |settings: &str| {
        let scenario = read(&format!("{STAR}workloads: [{one}{settings}]\n"));
        starts(&super::run(&scenario, &mut |_| {}))
    };
    let expected = with("");
    assert!(expected.len() > 20);
    assert_eq!(with(", {sizes: 1kB, load: 10%, from: [h3, h4], to: [h3, h4]}"), expected);
}

#[test]
fn ring_takes_its_steps_one_after_the_other() {
    let (_, outcome) = run("[{all_reduce: ring, size: 200kB, times: 2, gap: 10us, transport: go-back-n}]");
    let workload = &outcome.workloads[0];
    assert_eq!((workload.started, workload.completed, workload.rounds), (48, 48, Some(2)));
    // 50 kB take 40 us and more on the wire; the first step of the second round comes after 6 of the first.
    let mut starts: Vec<u64> = outcome.completions.list.iter().map(|flow| flow.start_ps).collect();
    starts.sort_unstable();
    for step in 1..12 {
        let gap = starts[4 * step] - starts[4 * step - 1];
        assert!(gap > 40 * US, "step {step} begins {gap} ps after the one before");
    }
    assert!(starts[24] - starts[20] > 50 * US, "the gap between the rounds");
}

#[test]
fn tree_all_reduce_sums_upward_and_sends_the_result_downward() {
    let (_, outcome) = run("[{all_reduce: tree, size: 100kB}]");
    assert_eq!((outcome.workloads[0].completed, outcome.workloads[0].rounds), (6, Some(1)));
    let mut flows = outcome.completions.list.clone();
    flows.sort_by_key(|flow| flow.start_ps);
    let pairs: Vec<(u16, u16)> = flows.iter().map(|flow| (flow.from, flow.to)).collect();
    assert_eq!(pairs[..2].iter().filter(|pair| [(2, 0), (3, 1)].contains(pair)).count(), 2);
    assert_eq!(pairs[2], (1, 0));
    assert_eq!(pairs[5], (1, 3));
}

#[test]
fn workload_keeps_memory_only_of_flows_in_progress() {
    let text = "[{sizes: 500B, load: 20%, transport: go-back-n}, {all_to_all: 2kB, every: 50us, times: 9, cc: dcqcn}]";
    let (_, outcome) = run(text);
    let started: u64 = outcome.workloads.iter().map(|workload| workload.started).sum();
    let most = outcome.most_flows_at_once;
    assert!(started > 1_000 && most < 100, "{most} of {started} flows at once");
}

#[test]
fn flows_that_lost_frames_end_too() {
    let faults = "faults: [{at: 0us, lose: tor.p2, what: data, chance: 2%}]";
    let transport = "transport: {recovery: selective-repeat, timeout: 50us}";
    let text = STAR.replace("duration: 1ms", "duration: 5ms");
    let scenario = read(&format!("{text}{faults}\nworkloads: [{{sizes: 8kB, load: 30%, {transport}}}]\n"));
    let outcome = super::run(&scenario, &mut |_| {});
    assert_eq!((&outcome.violation, outcome.ending), (&None, Ending::Drained));
    let workload = &outcome.workloads[0];
    assert!(workload.sum.repeated_frames > 20 && workload.completed == workload.started, "{workload:?}");
    assert!(outcome.most_flows_at_once < 30, "{} of {}", outcome.most_flows_at_once, workload.started);
}

/// Flows without transport that lose their last frame have no event at their end.
#[test]
fn unreliable_flows_that_lose_frames_end_too() {
    let faults = "faults: [{at: 0us, lose: tor.p2, what: data, chance: 30%}]";
    let workload = "{sizes: 100B, load: 8%, frame: 200, kind: udp, to: h2}";
    let text = STAR.replace("duration: 1ms", "duration: 2ms");
    let scenario = read(&format!("{text}{faults}\nworkloads: [{workload}]\n"));
    let outcome = super::run(&scenario, &mut |_| {});
    assert_eq!((&outcome.violation, outcome.ending), (&None, Ending::Drained));
    let (workload, most) = (&outcome.workloads[0], outcome.most_flows_at_once);
    let lost = workload.started - workload.completed;
    assert!(lost > 1_300 && lost == workload.sum.lost_frames(), "{workload:?}");
    assert!(most < 1_200, "{most} of {}, of which {lost} lost their frame", workload.started);
}
