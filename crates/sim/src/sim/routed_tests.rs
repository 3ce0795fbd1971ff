//! Tests of routed networks: paths, faults of links, and the accounts of random fabrics.

use super::outcome::{Ending, Outcome};
use super::random;
use super::scenario::{self, Options};
use super::spec::Scenario;
use crate::plan::DropReason;

/// Two leaves with four hosts each, and four spines whose cables differ in length: the latency of a frame tells its
/// path. The path over the second spine is the longest, so a flow that returns to it overtakes nothing.
fn clos(settings: &str) -> Scenario {
    let text = format!(
        "
duration: 4ms
forwarding: routed
reroute: 100us
switches:
  - name: leaf*
    count: 2
    poll: {{every: 200ns}}
    config:
      preset: roce
      ports: [{{name: p*, count: 4, speed: 100G}}, {{name: up*, count: 4, speed: 100G, cable: 1300m}}]
  - name: spine*
    count: 4
    poll: {{every: 200ns}}
    config: {{preset: roce, ports: [{{name: p*, count: 2, speed: 100G, cable: 1300m}}]}}
links:
  - {{a: leaf*.up1, b: spine1.p*, count: 2, length: 1m}}
  - {{a: leaf*.up2, b: spine2.p*, count: 2, length: 1200m}}
  - {{a: leaf*.up3, b: spine3.p*, count: 2, length: 400m}}
  - {{a: leaf*.up4, b: spine4.p*, count: 2, length: 800m}}
hosts:
  - {{name: a*, count: 4, at: leaf1.p*}}
  - {{name: b*, count: 4, at: leaf2.p*}}
flows:
  - {{from: [a1, a2, a3, a4], to: [b1, b2, b3, b4], rate: 500M}}
{settings}"
    );
    parse("clos.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn parse(name: &str, text: &str) -> Result<Scenario, String> {
    let scenarios = scenario::parse(name, text, None, &Options::default());
    scenarios.map(|mut scenarios| scenarios.remove(0).1).map_err(|errors| errors.to_string())
}

fn run(scenario: &Scenario) -> Outcome {
    let outcome = super::run(scenario, &mut |_| {});
    assert_eq!((&outcome.violation, outcome.ending), (&None, Ending::Drained));
    outcome
}

/// Whether all frames of a flow took one path: two paths differ by 4 us, and three polls take 600 ns.
fn has_one_path(outcome: &Outcome, flow: usize) -> bool {
    let latency = &outcome.flows[flow].latency;
    latency.most_ps - latency.least_ps < 2_000_000
}

/// Whether the path of a flow is over the second spine, with 12 us of cables.
fn is_over_second_spine(outcome: &Outcome, flow: usize) -> bool {
    outcome.flows[flow].latency.least_ps > 12_000_000
}

fn lost_frames(outcome: &Outcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.lost_frames()).sum()
}

/// Frames that switches dropped because the egress port had no link.
fn dropped_at_link(outcome: &Outcome) -> u64 {
    let ports = outcome.switches.iter().flat_map(|switch| &switch.ports);
    let drops = ports.flat_map(|port| &port.classes).flat_map(|class| &class.drops);
    drops.filter(|(reason, _)| *reason == DropReason::EgressDown).map(|(_, count)| count).sum()
}

fn lost_on_wires(outcome: &Outcome) -> u64 {
    outcome.links.iter().flat_map(|link| link.lost_frames).sum()
}

#[test]
fn equal_paths_share_the_flows_and_lose_no_frame() {
    let outcome = run(&clos(""));
    assert!(outcome.flows.iter().all(|flow| flow.sent_frames > 100 && flow.lost_frames() + flow.late_frames == 0));
    assert!((0..16).all(|flow| has_one_path(&outcome, flow)));
    let leaf = &outcome.switches[0];
    let sent: u64 = outcome.flows.iter().map(|flow| flow.sent_frames).sum();
    assert_eq!(leaf.hops.iter().map(|hop| hop.frames).sum::<u64>(), sent);
    assert!(leaf.hops.len() == 4 && leaf.hops.iter().all(|hop| hop.frames > 0), "{:?}", leaf.hops);
}

/// Cuts a link of the second spine for 1 ms of four. Its flows move after 100 us, and return.
fn only_flows_of_the_second_spine_move(link: &str) {
    let (whole, cut) = (run(&clos("")), run(&clos(&format!("faults: [{{down: {link}, at: 1ms, for: 1ms}}]\n"))));
    let moved: Vec<usize> = (0..16).filter(|&flow| !has_one_path(&cut, flow)).collect();
    assert!(!moved.is_empty() && moved.len() < 16);
    for flow in 0..16 {
        let was_there = is_over_second_spine(&whole, flow);
        assert_eq!(moved.contains(&flow), was_there, "flow {flow}");
        assert_eq!(cut.flows[flow].lost_frames() > 0, was_there, "flow {flow}");
        assert!(was_there || cut.flows[flow].late_frames == 0, "flow {flow}");
        // Its slowest frames are as slow as before the fault, so it has returned.
        assert!(!was_there || cut.flows[flow].latency.most_ps > 12_000_000);
    }
    assert_eq!(lost_frames(&cut), dropped_at_link(&cut) + lost_on_wires(&cut));
    // A quarter of the time is lost, and the routers take 100 us to notice each change.
    let frames = |outcome: &Outcome| outcome.switches[0].hops[1].frames;
    assert!(frames(&cut) > frames(&whole) * 7 / 10, "{} of {}", frames(&cut), frames(&whole));
}

#[test]
fn lost_link_of_the_router_moves_only_its_own_flows_and_takes_them_back() {
    only_flows_of_the_second_spine_move("leaf1.up2");
}

#[test]
fn lost_link_behind_the_next_hop_moves_only_its_own_flows_and_takes_them_back() {
    only_flows_of_the_second_spine_move("leaf2.up2");
}

#[test]
fn routers_that_follow_at_once_lose_only_frames_on_the_wire() {
    let fast = clos("faults: [{down: leaf1.up2, at: 1ms, for: 1ms}]\nvariants: [{name: fast, reroute: 0ns}]\n");
    let outcome = run(&fast);
    assert_eq!(dropped_at_link(&outcome), 0);
    assert!(lost_on_wires(&outcome) > 0);
    assert_eq!(lost_frames(&outcome), lost_on_wires(&outcome));
}

#[test]
fn runs_of_one_hash_seed_are_equal_and_of_another_differ() {
    let hops = |seed: u64| run(&clos(&format!("hash_seed: {seed}\n"))).switches[0].hops.clone();
    assert_eq!(hops(5), hops(5));
    assert_ne!(hops(5), hops(6));
}

/// Parts of the errors of random fabrics that cannot route.
const REFUSED: [&str; 4] = ["learn routes from frames", "has tags", "address from its port", "messages of QCN"];

/// Random fabrics have loops, faults, slow hosts and garbage. Each run checks `frames_accounted`, `frames_in_order` and
/// all other invariants.
#[test]
fn random_fabrics_keep_every_invariant_when_they_route() {
    let (mut runs, mut routed) = (0, 0);
    for seed in 1..=20 {
        let yaml = random::yaml(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let scenario = match parse("random.yaml", &format!("{yaml}\nforwarding: routed\nreroute: 50us\n")) {
            Ok(scenario) => scenario,
            Err(error) => {
                // Networks that learn from frames, or have tags or QCN, have no routes.
                let text = format!("{error:?}");
                assert!(REFUSED.iter().any(|part| text.contains(part)), "seed {seed}: {text}");
                continue;
            }
        };
        let outcome = super::run(&scenario, &mut |_| {});
        assert_eq!(random::judge(&scenario, &outcome), None, "seed {seed}:\n{yaml}");
        runs += 1;
        routed += outcome.switches.iter().flat_map(|switch| &switch.hops).map(|hop| hop.frames).sum::<u64>();
    }
    assert!(runs > 5 && routed > 1_000, "{runs} fabrics routed {routed} frames");
}
