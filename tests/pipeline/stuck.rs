//! A port whose device accepts no frames: it is found, its frames are dropped, and no other port is affected.

use holdfast::dataplane::LiveConfig;
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::sets::ClassSet;
use holdfast::units::Nanos;

use crate::harness::*;

const MS: u64 = 1_000_000;
/// Limit of a stuck port in nanoseconds. Short, because each microsecond is a poll.
const LIMIT: u64 = 2 * MS;
/// Interval between two probes.
const PROBE: u64 = LIMIT / 10;

fn watched(ports: usize) -> SwitchSpec {
    let mut spec = spec(ports);
    spec.ports.iter_mut().for_each(|port| port.live.stuck_after = Some(Nanos(LIMIT)));
    spec
}

/// Creates a switch of three ports on which the device of port 1 accepts no frame.
fn stalled() -> Bed {
    let mut bed = Bed::learned(&watched(3));
    bed.io.set_room(1, Some(0));
    bed
}

/// Injects `frames` lossless frames from station 0 to station `to`.
fn send(bed: &mut Bed, to: usize, frames: usize) {
    for _ in 0..frames {
        bed.io.inject(0, &frame(0, to, LOSSLESS_DSCP, CELL));
    }
}

fn stuck(bed: &Bed, port: usize) -> (u64, u64) {
    (bed.counters.sum(port, |port| &port.egress_stuck), bed.counters.sum(port, |port| &port.egress_stucks))
}

/// An obedient sender was once paused for ever here: its frames for a dead port filled its group.
#[test]
fn a_dead_port_stops_its_senders_for_no_longer_than_the_limit() {
    let mut bed = stalled();
    send(&mut bed, 1, 32);
    bed.run(LIMIT - MS / 10);
    assert_eq!(
        (stuck(&bed, 1), bed.counters.ports[0].xoff_mask.get()),
        ((0, 0), ClassSet::only(LOSSLESS).bits().into()),
        "held until then"
    );
    assert_eq!(bed.drops(1, DropReason::EgressStuck), 0);
    bed.run(MS);
    assert_eq!(stuck(&bed, 1), (1, 1));
    assert_eq!((bed.drops(1, DropReason::EgressStuck), bed.counters.ports[0].xoff_mask.get()), (32, 0));
    assert!(bed.pfcs(0).last().is_some_and(|last| last.quanta[LOSSLESS].0 == 0), "XON was told");
    // A stuck port holds at most a probe, and other ports receive their frames.
    for _ in 0..100 {
        send(&mut bed, 1, 5);
        send(&mut bed, 2, 5);
        bed.run(20_000);
        assert_eq!(bed.counters.ports[0].xoff_mask.get(), 0);
    }
    assert_eq!(bed.data(2).len(), 500);
    bed.run(PROBE);
    assert_eq!((bed.drops(1, DropReason::EgressStuck), stuck(&bed, 1)), (532, (1, 1)));
    bed.assert_empty();
}

#[test]
fn stuck_port_recovers_by_a_data_frame_as_probe() {
    let mut spec = watched(3);
    spec.ports[1].pfc = holdfast::pfc::PfcMode::Off;
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    send(&mut bed, 1, 8);
    bed.run(LIMIT + MS);
    assert_eq!(stuck(&bed, 1), (1, 1));
    bed.io.set_room(1, None);
    bed.run(LIMIT);
    assert_eq!(stuck(&bed, 1), (1, 1), "nothing was offered");
    send(&mut bed, 1, 8);
    bed.run(MS / 10);
    // The first frame was the probe. Others of its burst may be dropped.
    let sent = bed.data(1).len();
    assert!((1..=8).contains(&sent) && stuck(&bed, 1) == (0, 1), "{sent} sent");
    assert_eq!(bed.drops(1, DropReason::EgressStuck), 16 - sent as u64);
    send(&mut bed, 1, 8);
    bed.run(MS / 10);
    assert_eq!(bed.data(1).len(), 8);
    bed.assert_empty();
}

/// The port sends no PFC frame of its own, which would show that the device accepts frames.
#[test]
fn paused_probe_of_stuck_port_does_not_block_other_queues() {
    let mut spec = watched(3);
    spec.ports[1].pfc = holdfast::pfc::PfcMode::Asymmetric;
    spec.ports[1].buffer.groups = [lossy_group(); 8];
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    bed.io.inject(0, &frame(0, 1, 0, CELL));
    bed.run(LIMIT + MS);
    assert_eq!(stuck(&bed, 1), (1, 1));
    bed.io.set_room(1, None);
    // The peer pauses class 0 for the longest time, 3.3 ms, while a frame of that class waits as a probe.
    bed.pause(1, ClassSet::only(0), 0xffff);
    bed.run(2 * PROBE);
    bed.io.inject(0, &frame(0, 1, 0, CELL));
    bed.run(MS / 10);
    assert_eq!((bed.data(1).len(), stuck(&bed, 1)), (0, (1, 1)));
    bed.io.inject(0, &frame(0, 1, 8, CELL));
    bed.run(MS / 10);
    assert_eq!((bed.data(1).len(), stuck(&bed, 1)), (1, (0, 1)));
}

#[test]
fn stuck_port_recovers_by_a_pfc_probe_without_traffic() {
    let mut bed = stalled();
    send(&mut bed, 1, 8);
    bed.run(LIMIT + MS);
    assert_eq!(stuck(&bed, 1), (1, 1));
    bed.io.set_room(1, None);
    bed.run(2 * PROBE);
    assert_eq!(stuck(&bed, 1), (0, 1));
    assert_eq!(bed.pfcs(1).len(), 1, "a probe, which says XON");
    send(&mut bed, 1, 8);
    bed.run(MS / 10);
    assert_eq!((bed.data(1).len(), bed.drops(1, DropReason::EgressStuck)), (8, 8));
    bed.assert_empty();
}

#[test]
fn a_port_that_stalls_for_less_than_the_limit_loses_nothing() {
    let mut bed = stalled();
    for _ in 0..3 {
        send(&mut bed, 1, 20);
        bed.run(LIMIT - MS / 10);
        bed.io.set_room(1, None);
        bed.run(MS / 10);
        bed.io.set_room(1, Some(0));
    }
    assert_eq!((bed.data(1).len(), stuck(&bed, 1)), (60, (0, 0)));
    bed.assert_empty();
}

#[test]
fn a_port_that_takes_a_frame_now_and_then_is_slow_and_not_stuck() {
    let mut bed = stalled();
    send(&mut bed, 1, 10);
    for _ in 0..10 {
        bed.io.set_room(1, Some(1));
        bed.run(LIMIT - MS / 10);
    }
    assert_eq!((bed.data(1).len(), stuck(&bed, 1)), (10, (0, 0)));
    bed.assert_empty();
}

#[test]
fn a_port_that_its_peer_pauses_is_not_stuck() {
    let mut bed = stalled();
    send(&mut bed, 1, 8);
    bed.run(LIMIT / 2);
    // The device refused frames before the pause, and gets none during it: the peer itself is congested.
    for _ in 0..10 {
        bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
        bed.run(MS);
    }
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(LIMIT / 2);
    assert_eq!(stuck(&bed, 1), (0, 0));
    bed.io.set_room(1, None);
    bed.run(MS / 10);
    assert_eq!(bed.data(1).len(), 8);
    bed.assert_empty();
}

#[test]
fn frames_wait_for_ever_at_a_port_without_stuck_after() {
    let mut bed = Bed::learned(&spec(3));
    bed.io.set_room(1, Some(0));
    send(&mut bed, 1, 8);
    bed.run(10 * MS);
    assert_eq!((stuck(&bed, 1), bed.switch.held_frames()), ((0, 0), 8));
    bed.io.set_room(1, None);
    bed.run(MS / 10);
    bed.assert_empty();
}

#[test]
fn link_down_clears_the_stuck_state() {
    let mut bed = stalled();
    send(&mut bed, 1, 8);
    bed.run(LIMIT + MS);
    assert_eq!(stuck(&bed, 1), (1, 1));
    bed.switch.set_link(1, false);
    send(&mut bed, 1, 8);
    bed.run(MS / 10);
    // The station behind the port is forgotten.
    assert_eq!((stuck(&bed, 1), bed.drops(0, DropReason::LosslessUnknown)), ((0, 1), 8));
    bed.switch.set_link(1, true);
    bed.io.set_room(1, None);
    bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, CELL));
    bed.run(MS / 10);
    send(&mut bed, 1, 8);
    bed.run(MS / 10);
    assert_eq!(bed.data(1).len(), 8);
    bed.assert_empty();
}

#[test]
fn stuck_port_holds_no_frames_at_shutdown() {
    let mut bed = stalled();
    send(&mut bed, 1, 32);
    bed.run(LIMIT + MS);
    let now = holdfast::units::Ticks(bed.now);
    // With joint ports only the lcore of port 0 has found its queue stuck, so the owner of port 1 has no XON due.
    let is_told = bed.switch.shutdown(&mut bed.io, now);
    assert_eq!(is_told, crate::layout::Layout::current().is_joint(), "port 1 takes no XON");
    assert_eq!(stuck(&bed, 1), (0, 1));
    bed.assert_empty();
}

#[test]
fn reload_that_disables_stuck_after_lets_frames_wait_again() {
    let spec = watched(3);
    let mut bed = stalled();
    send(&mut bed, 1, 8);
    bed.run(LIMIT + MS);
    assert_eq!(stuck(&bed, 1), (1, 1));
    let mut off = spec.clone();
    off.ports[1].live.stuck_after = None;
    bed.switch.apply(&LiveConfig::between(&spec, &off, HZ).expect("a setting that may change"));
    send(&mut bed, 1, 8);
    bed.run(LIMIT + MS);
    assert_eq!((stuck(&bed, 1), bed.switch.held_frames()), ((0, 1), 8));
    bed.io.set_room(1, None);
    bed.run(MS / 10);
    assert_eq!(bed.data(1).len(), 8);
    bed.assert_empty();
}
