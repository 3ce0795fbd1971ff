//! Random fabrics: every invariant holds for each, the same seed gives the same fabric, and the generator still draws
//! everything that it can draw.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

use holdfast::mmu::HeadroomPolicy;
use holdfast::sim::outcome::{Ending, Outcome};
use holdfast::sim::random::{self, judge};
use holdfast::sim::scenario::{self, Options};
use holdfast::sim::spec::{Fault, FaultKind, FrameSizes, Load, Scenario, SwitchNode};
use holdfast::sim::workload::{AllReduceShape, Pattern};
use holdfast::units::Nanos;

fn read(yaml: &str) -> Scenario {
    let scenarios = scenario::parse("random.yaml", yaml, None, &Options::default());
    scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1
}

fn draw(seed: u64) -> Scenario {
    read(&random::yaml(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}")))
}

fn run(scenario: &Scenario) -> Outcome {
    holdfast::sim::run(scenario, &mut |_| {})
}

#[track_caller]
fn assert_hold(seeds: Range<u64>) {
    let (began, count) = (Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        if let Err(failure) = random::try_seed(seed) {
            panic!("{failure}");
        }
    }
    println!("{:.0} fabrics a minute on this CPU", count as f64 * 60.0 / began.elapsed().as_secs_f64());
}

#[test]
fn random_fabrics_hold_invariants_for_seeds_0_to_399() {
    assert_hold(0..400);
}

#[test]
fn random_fabrics_hold_invariants_for_seeds_1000_to_1399() {
    assert_hold(1000..1400);
}

#[test]
fn random_fabrics_hold_invariants_for_seeds_2000_to_2399() {
    assert_hold(2000..2400);
}

#[test]
fn random_fabrics_hold_invariants_for_seeds_3000_to_3399() {
    assert_hold(3000..3400);
}

#[test]
fn equal_seed_gives_equal_fabric_and_outcome() {
    for seed in (0..1000).step_by(50) {
        let yaml = random::yaml(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(random::yaml(seed).as_ref(), Ok(&yaml));
        let outcomes = [run(&read(&yaml)), run(&read(&yaml))];
        assert!(outcomes[0] == outcomes[1], "seed {seed} has two outcomes");
        let summary = random::try_seed(seed).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((summary.events, summary.checks), (outcomes[0].events, outcomes[0].checks), "seed {seed}");
    }
}

/// Reloads make cables longer, and some cables claim the longest that a configuration accepts.
#[test]
fn reload_of_the_longest_cable_is_drawn_as_the_configuration_accepts_it() {
    let scenario = draw(80850);
    let longest = |switch: &SwitchNode| {
        let ports = switch.reloads.iter().flat_map(|reload| &reload.switch.ports);
        ports.map(|port| port.reaction).max()
    };
    assert!(scenario.switches.iter().filter_map(longest).max() > Some(Nanos(1_000_000)), "100 km there and back");
}

/// Returns the properties of `scenario` that a degraded generator might no longer draw.
fn drawn(scenario: &Scenario) -> Vec<&'static str> {
    let mut drawn = Vec::new();
    for switch in &scenario.switches {
        let spec = &switch.config.switch;
        drawn.push(match spec.buffer.policy {
            HeadroomPolicy::Independent => "independent",
            HeadroomPolicy::SharedPool => "shared-pool",
            HeadroomPolicy::Dynamic => "dynamic",
        });
        drawn.push(["one lcore", "two lcores", "three lcores"][usize::from(spec.lcores) - 1]);
        drawn.extend((switch.poll.frame.0 > 0).then_some("a core that takes its time"));
        drawn.extend((switch.poll.jitter.0 > 0).then_some("jitter"));
        drawn.extend(spec.ports.iter().any(|port| port.mtu > 9000).then_some("jumbo frames"));
    }
    drawn.extend(scenario.faults.iter().map(|fault| match fault.kind {
        FaultKind::LinkDown { .. } => "down",
        FaultKind::Shut { .. } => "shut",
        FaultKind::Lose { .. } => "lose",
        FaultKind::Storm { .. } => "storm",
        FaultKind::Dead { .. } => "dead",
        FaultKind::Late { .. } => "late",
        FaultKind::Slow { .. } => "slow",
        FaultKind::Stall { .. } => "stall",
        FaultKind::Garbage { .. } => "garbage",
    }));
    let stalls = |fault: &Fault| fault.until.is_none() && matches!(fault.kind, FaultKind::Stall { .. });
    drawn.extend(scenario.faults.iter().any(stalls).then_some("stall for good"));
    drawn.extend((scenario.drain < Nanos(1_000_000)).then_some("no time to drain"));
    for flow in &scenario.flows {
        drawn.push(match flow.load {
            Load::Steady => "steady",
            Load::OnOff { .. } => "on and off",
            Load::Messages { .. } => "messages",
        });
        drawn.push(match flow.frames {
            FrameSizes::Fixed(_) => "fixed",
            FrameSizes::Uniform(..) => "uniform",
            FrameSizes::Imix => "imix",
        });
        drawn.push(if flow.lossless { "lossless" } else { "lossy" });
        drawn.extend(flow.control.map(|control| control.name()));
    }
    drawn.extend(scenario.workloads.iter().map(|workload| match &workload.pattern {
        Pattern::Poisson(_) => "poisson workload",
        Pattern::Incast(_) => "incast workload",
        Pattern::AllToAll(_) => "all-to-all",
        Pattern::AllReduce(spec) if spec.shape == AllReduceShape::Ring => "ring all-reduce",
        Pattern::AllReduce(_) => "tree all-reduce",
    }));
    drawn.extend(scenario.hosts.iter().any(|host| host.receiver.is_some()).then_some("slow receiver"));
    drawn.extend(scenario.hosts.iter().any(|host| !host.obeys_pfc).then_some("deaf host"));
    drawn.push(if scenario.switches.len() > 1 { "several switches" } else { "one switch" });
    drawn.extend(random::can_deadlock(scenario).then_some("circle"));
    drawn
}

/// Returns the events of a run.
fn happened(outcome: &Outcome) -> Vec<&'static str> {
    let ports = || outcome.switches.iter().flat_map(|switch| &switch.ports);
    let classes = || ports().flat_map(|port| &port.classes);
    let all = [
        ("drained", outcome.ending == Ending::Drained),
        ("undrained", matches!(outcome.ending, Ending::Undrained { .. })),
        ("promised", outcome.waivers.is_empty()),
        ("paused", !outcome.pauses.is_empty()),
        ("promised and paused", outcome.waivers.is_empty() && !outcome.pauses.is_empty()),
        ("headroom used", classes().any(|class| class.headroom_highest_cells > 0)),
        ("insurance used", ports().any(|port| port.insurance_highest_cells > 0)),
        (
            "headroom nearly full",
            classes().any(|of| of.lossless && of.headroom_highest_cells * 10 > of.headroom_cells * 8),
        ),
        ("lossy dropped", classes().any(|class| !class.lossless && class.dropped() > 0)),
        ("lossless dropped", classes().any(|class| class.lossless && class.dropped() > 0)),
        ("malformed dropped", ports().any(|port| !port.unclassified_drops.is_empty())),
        ("marked", classes().any(|class| class.marked_frames > 0)),
        ("messages of QCN", classes().any(|class| class.cnms_made > 0)),
        ("backlog", ports().any(|port| port.backlog_xoffs > 0)),
        ("ring full", ports().any(|port| port.missed_frames > 0)),
        ("flows of workloads", outcome.workloads.iter().any(|workload| workload.completed > 10)),
        ("rounds", outcome.workloads.iter().any(|workload| workload.rounds.is_some_and(|rounds| rounds > 0))),
        ("watchdog", ports().any(|port| port.watchdog.0 > 0)),
        ("handed over", outcome.switches.iter().any(|switch| switch.handed_off_frames > 0)),
        ("lost on wires", outcome.links.iter().any(|link| link.lost_frames != [0, 0])),
        ("pauses lost", outcome.links.iter().any(|link| link.lost_pfc_frames != [0, 0])),
    ];
    all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect()
}

/// Least number of 400 fabrics that have each of these properties or events.
const LEAST: &[(&str, usize)] = &[("promised", 150), ("paused", 200), ("promised and paused", 80)];

#[test]
fn generator_draws_every_feature_and_each_occurs() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut waivers: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 5000..5400 {
        let scenario = draw(seed);
        let outcome = run(&scenario);
        if let Some(violation) = judge(&scenario, &outcome) {
            panic!("seed {seed}: {violation:?}");
        }
        for waiver in &outcome.waivers {
            let words = waiver.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
            *waivers.entry(words.take(5).collect::<Vec<&str>>().join(" ")).or_default() += 1;
        }
        let names: BTreeSet<&str> = drawn(&scenario).into_iter().chain(happened(&outcome)).collect();
        for name in names {
            *seen.entry(name).or_default() += 1;
        }
    }
    println!("{seen:#?}\n{waivers:#?}");
    for name in EVERYTHING {
        assert!(seen.contains_key(name), "no fabric has `{name}`: {seen:#?}");
    }
    for (name, least) in LEAST {
        assert!(seen[name] >= *least, "`{name}` in {} fabrics, not {least}", seen[name]);
    }
}

/// All properties and events.
const EVERYTHING: &[&str] = &[
    "independent",
    "shared-pool",
    "dynamic",
    "one lcore",
    "two lcores",
    "three lcores",
    "a core that takes its time",
    "jitter",
    "jumbo frames",
    "down",
    "shut",
    "lose",
    "storm",
    "dead",
    "late",
    "slow",
    "stall",
    "stall for good",
    "garbage",
    "no time to drain",
    "steady",
    "on and off",
    "messages",
    "fixed",
    "uniform",
    "imix",
    "lossless",
    "lossy",
    "dcqcn",
    "poisson workload",
    "incast workload",
    "all-to-all",
    "ring all-reduce",
    "tree all-reduce",
    "flows of workloads",
    "rounds",
    "slow receiver",
    "deaf host",
    "several switches",
    "one switch",
    "circle",
    "drained",
    "undrained",
    "promised",
    "paused",
    "promised and paused",
    "headroom used",
    "insurance used",
    "headroom nearly full",
    "lossy dropped",
    "lossless dropped",
    "malformed dropped",
    "marked",
    "messages of QCN",
    "backlog",
    "ring full",
    "watchdog",
    "handed over",
    "lost on wires",
    "pauses lost",
];
