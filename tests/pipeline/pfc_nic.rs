//! `pfc: nic`: the device stops its ring of a paused priority, and the switch learns of it from a full ring.

use holdfast::pfc::{PfcMode, WatchdogAction, WatchdogSpec};
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::units::Nanos;

use crate::harness::*;

/// Returns a switch whose port 1 obeys by its device.
fn by_device() -> SwitchSpec {
    let mut spec = spec(3);
    spec.ports[1].pfc = PfcMode::Nic;
    spec
}

/// Sends `frames` frames of one cell from port 0 to port 1, by DSCP.
fn send(bed: &mut Bed, dscp: u8, frames: usize) {
    for _ in 0..frames {
        bed.io.inject(0, &frame(0, 1, dscp, CELL));
    }
}

#[test]
fn full_ring_of_a_class_holds_that_class_only_and_sends_in_order_afterwards() {
    let mut bed = Bed::learned(&by_device());
    bed.io.set_room_of(1, LOSSLESS, Some(4));
    send(&mut bed, LOSSLESS_DSCP, 20);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 4, "the ring has room for four");
    let counters = &bed.counters.ports[1];
    assert_eq!(counters.pfc_rx_frames.get(), 0, "the device has consumed the peer's frames");
    send(&mut bed, 0, 10);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 10, "class 0 goes on");
    bed.io.set_room_of(1, LOSSLESS, None);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 16, "all arrive after XON");
    assert_eq!(bed.drops(1, DropReason::EgressStuck), 0);
    bed.assert_empty();
}

#[test]
fn full_ring_of_a_lossless_class_pauses_its_senders_and_does_not_make_the_port_stuck() {
    let mut spec = by_device();
    spec.ports[1].live.stuck_after = Some(Nanos(1_000_000));
    let mut bed = Bed::learned(&spec);
    bed.io.set_room_of(1, LOSSLESS, Some(0));
    send(&mut bed, LOSSLESS_DSCP, 31);
    bed.run(20_000);
    assert_eq!(bed.pfcs(0).len(), 1, "the senders' port has XOFF");
    bed.run(20_000_000);
    let counters = &bed.counters.ports[1];
    assert_eq!((counters.egress_stucks.get(), bed.drops(0, DropReason::EgressStuck)), (0, 0));
    bed.io.set_room_of(1, LOSSLESS, None);
    bed.run(1_000_000);
    assert_eq!(bed.data(1).len(), 31);
    bed.assert_empty();
}

/// PFC frames of the port leave by the ring of a lossy class, which no pause of the peer stops.
#[test]
fn pfc_frames_leave_while_the_ring_of_their_class_is_full() {
    let mut spec = by_device();
    spec.ports[0].pfc = PfcMode::Nic;
    let mut bed = Bed::learned(&spec);
    bed.io.set_room_of(0, LOSSLESS, Some(0));
    bed.io.set_room_of(1, LOSSLESS, Some(0));
    send(&mut bed, LOSSLESS_DSCP, 31);
    bed.run(20_000);
    assert_eq!(bed.pfcs(0).len(), 1);
}

#[test]
fn watchdog_takes_a_ring_that_stays_full_for_a_storm_and_ends_it_with_the_frames() {
    let mut spec = by_device();
    let ms = |time: u64| Nanos(time * 1_000_000);
    let action = WatchdogAction::Drop;
    spec.ports[1].live.watchdog = Some(WatchdogSpec { detection: ms(20), restoration: ms(20), action });
    let mut bed = Bed::learned(&spec);
    bed.io.set_room_of(1, LOSSLESS, Some(0));
    send(&mut bed, LOSSLESS_DSCP, 20);
    bed.run(50_000_000);
    assert_eq!(bed.counters.ports[1].watchdog_storms[LOSSLESS].get(), 1);
    assert_eq!(bed.drops(1, DropReason::Watchdog) + bed.drops(0, DropReason::Watchdog), 20);
    bed.io.set_room_of(1, LOSSLESS, None);
    bed.run(100_000_000);
    assert_eq!(bed.counters.ports[1].watchdog_restores[LOSSLESS].get(), 1);
    send(&mut bed, LOSSLESS_DSCP, 5);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 5);
    bed.assert_empty();
}
