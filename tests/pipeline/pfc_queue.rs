//! `pfc: queue`: XOFF stops the receive queues that carry its group, and no PFC frame leaves.

use holdfast::pfc::PfcMode;
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::sets::{ClassSet, LEAST_BURST};
use holdfast::units::Cells;

use crate::harness::*;

/// Returns a switch whose port 0 has `queues` receive queues, `pfc: queue` and the headroom for them: a burst, and four
/// frames of each further queue.
fn by_queue(queues: u8) -> SwitchSpec {
    let mut spec = spec(2);
    let port = &mut spec.ports[0];
    (port.pfc, port.rx_queues) = (PfcMode::Queue, queues);
    let headroom = LEAST_BURST as u32 + 4 * u32::from(queues - 1);
    port.buffer.groups[LOSSLESS].headroom = Cells(headroom);
    spec.buffer.headroom = Cells(headroom + 5);
    spec
}

fn waiting(bed: &mut Bed, queue: usize) -> Option<usize> {
    holdfast::io::Ports::backlog(&mut bed.io, 0, ClassSet::only(queue))
}

/// Injects `frames` frames of one cell into receive queue `queue` of port 0.
fn send(bed: &mut Bed, queue: usize, dscp: u8, frames: usize) {
    for _ in 0..frames {
        bed.io.inject_queue(0, queue, &frame(0, 1, dscp, CELL));
    }
}

#[test]
fn xoff_stops_the_queue_of_its_class_and_no_other_and_loses_nothing() {
    let mut bed = Bed::blocked(&by_queue(8));
    send(&mut bed, 3, LOSSLESS_DSCP, 200);
    bed.run(20_000);
    let counters = &bed.counters.ports[0];
    assert_eq!((counters.queue_stops[LOSSLESS].get(), counters.pfc_tx_frames.get()), (1, 0));
    assert_eq!(counters.xoff_mask.get(), 1 << LOSSLESS);
    assert_eq!(counters.rx_queue_carries[3].get(), 1 << LOSSLESS);
    // Reserve and shared hold 30 frames, so the first burst causes XOFF.
    assert_eq!(waiting(&mut bed, 3), Some(200 - LEAST_BURST));
    send(&mut bed, 0, 0, 10);
    bed.run(20_000);
    assert_eq!((waiting(&mut bed, 0), bed.data(1).len()), (Some(0), 10), "class 0 goes on");

    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(1_000_000);
    assert_eq!((waiting(&mut bed, 3), bed.data(1).len()), (Some(0), 200), "all arrive after XON");
    assert_eq!(bed.drops(0, DropReason::HeadroomFull), 0);
    assert!(bed.data(0).is_empty() && bed.pfcs(0).is_empty(), "no PFC frame");
    bed.assert_empty();
}

/// The burst that causes XOFF may begin with any frame, and headroom of one burst is enough.
#[test]
fn headroom_of_one_burst_holds_every_burst_that_causes_xoff() {
    for first in 1..=LEAST_BURST {
        let mut bed = Bed::blocked(&by_queue(8));
        send(&mut bed, 3, LOSSLESS_DSCP, first);
        bed.poll();
        send(&mut bed, 3, LOSSLESS_DSCP, 100);
        bed.run(20_000);
        assert_eq!(bed.drops(0, DropReason::HeadroomFull), 0, "first burst of {first}");
        assert!(waiting(&mut bed, 3) > Some(0), "first burst of {first}: the queue is stopped");
    }
}

/// A guest that spreads a class over all its queues, which the switch does not know yet when the class becomes XOFF.
#[test]
fn class_in_every_queue_loses_nothing() {
    let mut bed = Bed::blocked(&by_queue(8));
    send(&mut bed, 3, LOSSLESS_DSCP, LEAST_BURST);
    bed.poll();
    (0..8).for_each(|queue| send(&mut bed, queue, LOSSLESS_DSCP, 100));
    bed.run(50_000);
    assert_eq!(bed.drops(0, DropReason::HeadroomFull), 0);
    let left: usize = (0..8).map(|queue| waiting(&mut bed, queue).expect("memory can count")).sum();
    assert!(left > 700, "{left} of 800 wait in stopped queues");
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(5_000_000);
    assert_eq!((bed.data(1).len(), bed.drops(0, DropReason::HeadroomFull)), (LEAST_BURST + 800, 0));
    bed.assert_empty();
}

#[test]
fn class_in_the_only_queue_waits_while_another_class_is_xoff() {
    let mut bed = Bed::blocked(&by_queue(1));
    send(&mut bed, 0, LOSSLESS_DSCP, LEAST_BURST);
    bed.run(20_000);
    send(&mut bed, 0, 0, 10);
    bed.run(20_000);
    assert_eq!((waiting(&mut bed, 0), bed.data(1).len()), (Some(10), 0));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(1_000_000);
    assert_eq!(bed.data(1).len(), LEAST_BURST + 10);
    bed.assert_empty();
}

#[test]
fn pfc_frame_of_the_peer_is_counted_and_not_obeyed() {
    let mut bed = Bed::learned(&by_queue(8));
    bed.pause(0, ClassSet::ALL, 0xffff);
    bed.poll();
    bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, CELL));
    bed.run(10_000);
    assert_eq!((bed.data(0).len(), bed.counters.ports[0].pfc_rx_xoff[LOSSLESS].get()), (1, 1));
}
