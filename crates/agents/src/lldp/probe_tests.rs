//! Tests of the probes of loops.

use super::guard::Guard;
use super::probe::*;
use super::*;
use crate::forward::{LagsSpec, VlanMode};
use crate::sets::PortSet;
use crate::units::Nanos;
use crate::wire::MacAddr;
use crate::wire::lldp::fuzz::{Dice, setting};
use crate::wire::loop_probe::{LoopProbe, ReceivedProbe};
use std::hash::RandomState;

const MS: u64 = 1_000_000;
const SECOND: Nanos = Nanos(1_000 * MS);

fn trunk(tagged: impl IntoIterator<Item = u16>, native: Option<u16>) -> VlanMode {
    VlanMode::Trunk { tagged: tagged.into_iter().collect(), native }
}

/// A prober whose ports have these VLANs, links, and the first round behind them; with the frames of that round.
fn started(modes: &[VlanMode]) -> (Prober, Vec<Outgoing>) {
    let port =
        |(port, vlan): (usize, &VlanMode)| Some(ProbedPort { mac: MacAddr::local(1, port as u16), vlan: vlan.clone() });
    let ports = modes.iter().enumerate().map(port).collect();
    let mut prober = Prober::new(ports, Some(SECOND), RandomState::new());
    let all = PortSet::first(modes.len());
    prober.set_ports(all, all);
    let _ = prober.take_frames(usize::MAX);
    prober.tick(Nanos(1));
    let frames = prober.take_frames(usize::MAX);
    (prober, frames)
}

fn parsed(frame: &Outgoing) -> ReceivedProbe {
    ReceivedProbe::parse(&frame.frame).expect("a probe")
}

fn returned(prober: &Prober) -> Vec<(usize, usize, bool)> {
    prober.returned().map(|one| (one.port, one.from, one.circulates)).collect()
}

#[test]
fn each_port_sends_a_probe_in_each_round_untagged_in_its_vlan() {
    let (mut prober, frames) = started(&[VlanMode::Access(10), trunk([20], Some(7))]);
    let sent: Vec<_> = frames.iter().map(|frame| (frame.port, parsed(frame).tag, parsed(frame).probe.vlan)).collect();
    assert_eq!(sent, [(0, None, 10), (1, None, 7), (1, Some(20), 20)]);
    assert!(frames.iter().all(|frame| frame.frame[6..12] == MacAddr::local(1, frame.port as u16).0));
    prober.tick(Nanos(700 * MS));
    assert_eq!(prober.take_frames(9), []);
    prober.tick(Nanos(1_001 * MS));
    assert_eq!(prober.take_frames(2).len(), 2);
    assert_eq!(prober.take_frames(9).len(), 1);
}

#[test]
fn trunk_with_many_vlans_probes_sixteen_in_a_round_and_all_by_turns() {
    let (mut prober, frames) = started(&[trunk(2..=50, None)]);
    let (mut seen, mut now) = (std::collections::BTreeSet::new(), Nanos(1));
    let mut frames = frames;
    for round in 0..4 {
        assert_eq!(frames.len(), 16, "round {round}");
        seen.extend(frames.iter().map(|frame| parsed(frame).probe.vlan));
        now.0 += SECOND.0;
        prober.tick(now);
        frames = prober.take_frames(99);
    }
    assert_eq!(seen, (2..=50).collect());
}

#[test]
fn vlan_of_a_loop_is_probed_in_each_round() {
    let (mut prober, frames) = started(&[trunk(2..=60, None), trunk(2..=60, None)]);
    prober.received(1, &frames[5].frame, Nanos(2));
    let vlan = parsed(&frames[5]).probe.vlan;
    for round in 1..4 {
        prober.tick(Nanos(1 + round * SECOND.0));
        let frames = prober.take_frames(99);
        assert!(frames.iter().any(|frame| frame.port == 0 && parsed(frame).probe.vlan == vlan), "round {round}");
        assert_eq!(frames.len(), 32);
    }
}

#[test]
fn returned_probe_counts_for_four_intervals_and_a_second() {
    let (mut prober, frames) = started(&[VlanMode::Access(1), VlanMode::Access(1)]);
    prober.received(1, &frames[0].frame, Nanos(2));
    assert_eq!(returned(&prober), [(1, 0, true)]);
    prober.tick(Nanos(1 + 5 * SECOND.0));
    assert_eq!(returned(&prober), [(1, 0, true)]);
    prober.tick(Nanos(2 + 5 * SECOND.0));
    assert_eq!(returned(&prober), []);
}

#[test]
fn probe_circulates_only_in_the_vlan_in_which_it_was_sent() {
    let modes = [VlanMode::Access(10), VlanMode::Access(20), trunk([10], None), trunk([30], None)];
    let (mut prober, frames) = started(&modes);
    prober.received(1, &frames[0].frame, Nanos(2));
    assert_eq!(returned(&prober), [(1, 0, false)], "two VLANs are connected");
    // A bridge between has added the tag.
    let mut tagged = frames[0].frame.clone();
    tagged.splice(12..12, [0x81, 0, 0, 10]);
    for port in [2, 3] {
        prober.received(port, &tagged, Nanos(2));
        prober.received(port, &frames[0].frame, Nanos(2));
    }
    assert_eq!(returned(&prober), [(1, 0, false), (2, 0, true)], "the others are filtered");
}

#[test]
fn forged_and_old_probes_find_no_loop() {
    let (mut prober, frames) = started(&[VlanMode::Access(1), VlanMode::Access(1)]);
    let probe = parsed(&frames[0]).probe;
    let forge = |probe: LoopProbe| probe.emit(MacAddr([2; 6]), None);
    for forged in [
        LoopProbe { port: 1, ..probe },
        LoopProbe { port: 9, ..probe },
        LoopProbe { vlan: 2, ..probe },
        LoopProbe { sequence: probe.sequence + 1, ..probe },
        LoopProbe { identity: probe.identity ^ 1, ..probe },
        LoopProbe { seal: probe.seal ^ 1, ..probe },
    ] {
        prober.received(1, &forge(forged), Nanos(2));
    }
    // Another run of the same switch.
    let (_, others) = started(&[VlanMode::Access(1), VlanMode::Access(1)]);
    prober.received(1, &others[0].frame, Nanos(2));
    assert_eq!(returned(&prober), []);
    (1..9).for_each(|round| prober.tick(Nanos(1 + round * SECOND.0)));
    prober.received(1, &forge(probe), Nanos(1 + 8 * SECOND.0));
    assert_eq!(returned(&prober), [], "it is from eight rounds ago");
}

#[test]
fn port_without_probes_takes_none_and_a_port_that_leaves_forgets_its_loops() {
    let (mut prober, frames) = started(&[VlanMode::Access(1), VlanMode::Access(1), VlanMode::Access(1)]);
    prober.received(9, &frames[0].frame, Nanos(2));
    prober.received(1, &frames[0].frame, Nanos(2));
    prober.received(2, &frames[0].frame, Nanos(2));
    assert_eq!(returned(&prober), [(1, 0, true), (2, 0, true)]);
    // Another member of the group of port 0 sends now, but both are active.
    prober.set_ports(PortSet::only(2), PortSet::first(3));
    assert_eq!(returned(&prober).len(), 2);
    prober.set_ports(PortSet::only(2), PortSet::first(2));
    assert_eq!(returned(&prober), [(1, 0, true)]);
    prober.received(2, &frames[0].frame, Nanos(2));
    assert_eq!(returned(&prober), [(1, 0, true)], "it takes no frames");
    prober.set_interval(None);
    prober.tick(Nanos(3 * SECOND.0));
    prober.received(1, &frames[0].frame, Nanos(2));
    assert_eq!((returned(&prober), prober.take_frames(9), prober.ports()), (vec![], vec![], PortSet::EMPTY));
}

#[test]
fn port_that_comes_up_probes_at_once() {
    let (mut prober, _) = started(&[VlanMode::Access(1), VlanMode::Access(1)]);
    prober.set_ports(PortSet::only(0), PortSet::only(0));
    prober.set_ports(PortSet::first(2), PortSet::first(2));
    assert_eq!(prober.take_frames(9).iter().map(|frame| frame.port).collect::<Vec<_>>(), [1]);
}

#[test]
fn random_and_mutated_frames_find_no_loop() {
    let (mut prober, frames) = started(&[VlanMode::Access(1), trunk([20], Some(1))]);
    let mut dice = Dice(setting("HOLDFAST_FUZZ_SEED", 0x10_0b5));
    for _ in 0..setting("HOLDFAST_FUZZ_FRAMES", 50_000) {
        let mut frame = frames[dice.below(frames.len())].frame.clone();
        // The meaning begins at the identity.
        let at = frame.len() - 60 + 26 + dice.below(24);
        frame[at] ^= 1 << dice.below(8);
        if dice.below(4) == 0 {
            frame.truncate(dice.below(frame.len()));
        }
        prober.received(dice.below(70), &frame, Nanos(2));
    }
    assert_eq!(returned(&prober), []);
}

/// A switch of two ports, each with a cable to the other switch.
struct Node {
    prober: Prober,
    guard: Guard,
}

impl Node {
    /// The switch when both links come up: its first probes leave at once.
    fn new() -> Self {
        let modes = [VlanMode::Access(1), VlanMode::Access(1)];
        let names = ["p", "q"].map(str::to_owned);
        let port = |vlan: VlanMode| Some(ProbedPort { mac: MacAddr([2; 6]), vlan });
        let mut prober = Prober::new(modes.clone().map(port).to_vec(), Some(SECOND), RandomState::new());
        prober.set_ports(PortSet::first(2), PortSet::first(2));
        Self { prober, guard: Guard::new(names.into_iter().zip(modes), LagsSpec::default(), true) }
    }
}

/// The cables that are blocked at either end, if port `port` of the first switch leads to `cables[port]` of the other.
fn cut(nodes: &[Node; 2], cables: [usize; 2]) -> [bool; 2] {
    let is_blocked = |node: usize, port: usize| nodes[node].guard.blocked().contains(port);
    [0, 1].map(|port| is_blocked(0, port) || is_blocked(1, cables[port]))
}

/// Passes 20 ms: probes leave by all ports, are bridged by the other switch unless it has blocked one of its ports, and
/// come back. Both switches see theirs before either has blocked a port for it.
fn pass(nodes: &mut [Node; 2], now: Nanos) {
    let bridges = [0, 1].map(|node: usize| nodes[node].guard.blocked().is_empty());
    for (node, other_bridges) in [(0, bridges[1]), (1, bridges[0])] {
        let Node { prober, guard } = &mut nodes[node];
        prober.tick(now);
        for sent in prober.take_frames(99).into_iter().filter(|_| other_bridges) {
            prober.received(1 - sent.port, &sent.frame, now);
        }
        let _ = guard.look(std::iter::empty(), prober.returned(), now);
    }
}

/// At first both switches may block a port, even of different cables. Then neither receives its probes, and both
/// release their port. Once one of them is earlier its block lasts, since its probes come back to the blocked port.
#[test]
fn two_switches_with_two_cables_settle_with_one_cable_in_use() {
    for (run, cables) in (0..100).map(|run| (run, if run % 2 == 0 { [0, 1] } else { [1, 0] })) {
        let (mut nodes, mut settled) = ([Node::new(), Node::new()], 0);
        pass(&mut nodes, Nanos(1));
        assert!(nodes.iter().all(|node| node.guard.blocked() == PortSet::only(1)), "both find the loop at first");
        for step in 1..300 * 50 {
            pass(&mut nodes, Nanos(1 + step * 20 * MS));
            let in_use = cut(&nodes, cables).iter().filter(|is_cut| !**is_cut).count();
            settled = if in_use == 1 { settled + 1 } else { 0 };
            // With parallel cables two blocks of the same cable leave one in use, for the time of a hold.
            if settled > 20 * 50 {
                break;
            }
        }
        assert!(settled > 20 * 50, "run {run}");
    }
}
