//! Admission of real frames, with counts exact to the cell.

use holdfast::dataplane::Scratch;
use std::sync::Arc;

use holdfast::dataplane::Pipeline;
use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::io::{Burst, Ports};
use holdfast::mmu::{QueueLimit, Threshold};
use holdfast::plan::{Counters, DropReason};
use holdfast::sets::ClassSet;
use holdfast::units::{Cells, Ticks};

use crate::harness::*;

fn fill(bed: &mut Bed, frames: usize) {
    bed.fill(frames);
    bed.run(3_000);
}

#[test]
fn xoff_at_reserve_and_shared_drop_beyond_headroom() {
    let mut bed = Bed::blocked(&spec(2));
    fill(&mut bed, 30);
    assert_eq!(bed.pfcs(0), [], "just below XOFF: no PFC");
    fill(&mut bed, 1);
    let xoff = bed.pfcs(0);
    assert_eq!(xoff.len(), 1, "one cell more: one PFC frame");
    assert_eq!((xoff[0].enabled, xoff[0].quanta[LOSSLESS].0), (ClassSet::only(LOSSLESS), 0xffff));
    fill(&mut bed, 4);
    assert_eq!(bed.drops(0, DropReason::HeadroomFull), 0, "up to the end of headroom nothing is lost");
    fill(&mut bed, 3);
    assert_eq!(bed.drops(0, DropReason::HeadroomFull), 3);
    let counters = &bed.counters.ports[0];
    assert_eq!(counters.group_used_highest_cells[LOSSLESS].get(), 30);
    assert_eq!(counters.group_headroom_highest_cells[LOSSLESS].get(), 5);
    assert_eq!(counters.drops[LOSSLESS][DropReason::HeadroomFull as usize].get(), 3);
}

#[test]
fn xon_is_sent_below_the_threshold_less_its_offset() {
    let mut bed = Bed::blocked(&spec(2));
    fill(&mut bed, 33);
    assert_eq!(bed.pfcs(0).len(), 1);
    // 33 cells: 3 of headroom and 20 shared. XON follows when 16 shared cells are left: after the seventh frame has
    // left.
    bed.io.set_room(1, Some(6));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(50_000);
    assert_eq!(bed.data(1).len(), 6);
    bed.assert_xon(0, false);
    bed.io.set_room(1, None);
    bed.run(100_000);
    bed.assert_xon(0, true);
    bed.assert_empty();
}

impl Bed {
    fn assert_xon(&mut self, port: usize, expected: bool) {
        let xons = self
            .pfcs(port)
            .iter()
            .filter(|pfc| pfc.enabled == ClassSet::only(LOSSLESS) && pfc.quanta[LOSSLESS].0 == 0)
            .count();
        assert_eq!(xons, usize::from(expected));
    }
}

#[test]
fn xon_is_sent_when_other_groups_free_pool_cells() {
    // Port 0 is paused because port 2 holds its share of the pool. The frames of port 0 never move; those of port 2 do.
    let mut spec = spec(4);
    for port in &mut spec.ports {
        port.buffer.groups[LOSSLESS].threshold = Threshold::Dynamic("1".parse().unwrap());
        port.buffer.groups[LOSSLESS].reserve = Cells(0);
    }
    spec.buffer.lossless_shared = Cells(30);
    let mut bed = Bed::learned(&spec);
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.pause(3, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    for (from, to) in [(0, 1), (2, 3)] {
        for _ in 0..10 {
            bed.io.inject(from, &frame(from, to, LOSSLESS_DSCP, CELL));
        }
    }
    bed.poll();
    assert_eq!(bed.pfcs(0), []);
    // 10 and 10 of 30 cells are in use, so the threshold is 10. One cell more is in the headroom. When it has left, the
    // share of ten still exceeds ten less the offset of four.
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
    bed.poll();
    assert_eq!(bed.pfcs(0).len(), 1);
    bed.io.set_room(1, Some(1));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(20_000);
    bed.assert_xon(0, false);
    bed.pause(3, ClassSet::only(LOSSLESS), 0);
    bed.run(20_000);
    bed.assert_xon(0, true);
}

#[test]
fn a_congested_group_harms_no_other() {
    let mut spec = spec(3);
    spec.buffer.lossy_shared = Cells(100);
    let mut bed = Bed::blocked(&spec);
    fill(&mut bed, 50);
    assert!(bed.drops(0, DropReason::HeadroomFull) > 0);
    bed.io.sent_all(0);
    for _ in 0..20 {
        bed.io.inject(2, &frame(2, 1, 0, CELL));
        bed.io.inject(2, &frame(2, 0, LOSSLESS_DSCP, CELL));
        bed.io.inject(0, &frame(0, 2, 0, CELL));
    }
    bed.run(100_000);
    assert_eq!((bed.data(1).len(), bed.data(2).len()), (20, 20));
    assert_eq!(bed.data(0).len(), 20);
    assert_eq!(bed.pfcs(2), []);
}

#[test]
fn lossy_frames_drop_at_their_queue_and_never_pause() {
    let mut spec = spec(2);
    spec.buffer.lossy_shared = Cells(900);
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    for _ in 0..1000 {
        bed.io.inject(0, &frame(0, 1, 0, CELL));
    }
    bed.run(100_000);
    // At alpha 8 the queue gets 8/9 of the pool.
    assert_eq!(bed.counters.sum(1, |port| &port.queue_highest_cells[0]), 800);
    assert_eq!(bed.drops(1, DropReason::QueueThreshold), 200);
    assert_eq!(bed.drops(0, DropReason::Threshold), 0);
    assert_eq!(bed.pfcs(0), []);
    bed.io.set_room(1, None);
    bed.run(1_000_000);
    assert_eq!(bed.data(1).len(), 800);
    bed.assert_empty();
}

#[test]
fn flooded_frames_count_against_the_queue_limit_within_a_burst() {
    let mut spec = spec(3);
    spec.queues[0].limit = Some(QueueLimit::from(Threshold::Static(Cells(10))));
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    for frame in (0..15).map(|number| frame(0, if number < 5 { 0xffff } else { 1 }, 0, CELL)) {
        bed.io.inject(0, &frame);
    }
    bed.run(100_000);
    assert_eq!(bed.counters.sum(1, |port| &port.queue_highest_cells[0]), 10);
    assert_eq!((bed.drops(1, DropReason::QueueThreshold), bed.data(2).len()), (5, 5));
    bed.io.set_room(1, None);
    bed.run(1_000_000);
    assert_eq!(bed.data(1).len(), 10);
    bed.assert_empty();
}

#[test]
fn port_without_pfc_drops_beyond_headroom_and_sends_no_xoff() {
    let mut spec = spec(2);
    spec.ports[0].pfc = holdfast::pfc::PfcMode::Off;
    let mut bed = Bed::blocked(&spec);
    fill(&mut bed, 40);
    assert_eq!(bed.pfcs(0), []);
    assert_eq!(bed.drops(0, DropReason::HeadroomFull), 5);
}

#[test]
fn group_reserve_of_lossy_class_is_accepted_by_a_full_queue() {
    let mut spec = spec(3);
    spec.buffer.lossy_shared = Cells(90);
    spec.ports[2].buffer.groups[6].reserve = Cells(4);
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    // One frame at a time: frames that cross between lcores are charged before the queue limit applies to them.
    for _ in 0..200 {
        bed.io.inject(0, &frame(0, 1, 48, CELL));
        bed.run(1_000);
    }
    // Neither group nor queue can use spare cells of another lcore's lease. Either one refuses the frame.
    let dropped = |bed: &Bed| bed.drops(1, DropReason::QueueThreshold) + bed.drops(2, DropReason::PoolEmpty);
    let before = dropped(&bed);
    assert!(before > 0);
    for _ in 0..6 {
        bed.io.inject(2, &frame(2, 1, 48, CELL));
    }
    bed.run(5_000);
    assert_eq!(dropped(&bed) - before, 2, "four of six are guaranteed");
}

/// A poll receives all frames that can have arrived since the last one, not only a burst.
#[test]
fn poll_receives_all_frames_that_arrive_in_its_poll_gap() {
    let mut spec = spec(2);
    spec.poll_gap = holdfast::units::Nanos(100_000);
    let mut bed = Bed::blocked(&spec);
    for _ in 0..81 {
        bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 60));
    }
    bed.now += 1000;
    bed.poll();
    assert_eq!(bed.counters.ports[0].rx_frames[LOSSLESS].get(), 81, "100 us are 81 frames of the MTU at 10 Gb/s");
    assert_eq!(bed.pfcs(0).len(), 1);
}

/// Ports of a device that cannot count the frames in its receive rings.
struct Mute(MemPorts);

impl Ports for Mute {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        self.0.rx(port, most, out);
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        self.0.tx(port, packets);
    }

    fn free(&mut self, packets: &mut Burst<MemPacket>) {
        self.0.free(packets);
    }

    fn copy(&mut self, packet: &MemPacket) -> Option<MemPacket> {
        self.0.copy(packet)
    }

    fn make(&mut self, frame: &[u8]) -> Option<MemPacket> {
        self.0.make(frame)
    }
}

/// Single full bursts are no backlog, however many there are. Full polls in a row are one.
#[test]
fn backlog_without_device_count_needs_consecutive_full_polls() {
    let mut spec = spec(2);
    for port in &mut spec.ports {
        (port.backlog_mark, port.lcore) = (Some(32), 0);
    }
    spec.lcores = 1;
    let counters = Arc::new(Counters::new(2, 1));
    let mut switch = Pipeline::new(&spec, counters.clone(), HZ, 1);
    let (mut io, mut scratch) = (Mute(MemPorts::new(2)), Scratch::default());
    let mut now = HZ;
    let mut polls = |io: &mut Mute, bursts: usize, polls: usize| {
        (0..32 * bursts).for_each(|_| io.0.inject(0, &frame(0, 0xffff, 0, 60)));
        for _ in 0..polls {
            now += 1000;
            switch.poll(io, &mut scratch, Ticks(now));
        }
        counters.ports[0].backlog_xoffs.get()
    };
    for _ in 0..8 {
        assert_eq!(polls(&mut io, 1, 10), 0);
    }
    assert_eq!(polls(&mut io, 4, 4), 1, "the fourth full poll in a row");
    assert_eq!(counters.ports[0].pfc_tx_xoff[LOSSLESS].get(), 1);
    polls(&mut io, 0, 1);
    assert_eq!(counters.ports[0].pfc_tx_xon[LOSSLESS].get(), 1, "drained");
}
