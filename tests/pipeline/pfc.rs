//! PFC in both directions, exact to the nanosecond.

use holdfast::mmu::Threshold;
use holdfast::pfc::{WatchdogAction, WatchdogSpec};
use holdfast::plan::DropReason;
use holdfast::sets::ClassSet;
use holdfast::units::{Cells, Nanos};
use holdfast::wire::mac_control::PfcFrame;

use crate::harness::*;

/// Duration of a pause with the most quanta at 10 Gb/s: 65535 * 51.2 ns.
const LIFE_NS: u64 = 3_355_392;

#[test]
fn a_pause_stops_its_class_and_no_other_for_its_time() {
    let mut bed = Bed::blocked(&spec(2));
    let paused_at = bed.now;
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
    bed.io.inject(0, &frame(0, 1, 0, CELL));
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 1, "class 0 goes on");
    bed.run(paused_at + LIFE_NS - bed.now - 2_000);
    assert_eq!(bed.data(1).len(), 0, "class 3 waits to the end");
    bed.run(4_000);
    assert_eq!(bed.data(1).len(), 1, "and goes on by itself");
    bed.assert_empty();
}

#[test]
fn frames_refused_by_the_driver_obey_a_later_pause() {
    let mut bed = Bed::learned(&spec(2));
    bed.io.set_room(1, Some(0));
    bed.fill(20);
    bed.io.inject(0, &frame(0, 1, 0, CELL));
    bed.run(20_000);
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    bed.io.set_room(1, None);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 1, "class 0 is not stuck behind class 3 either");
    bed.run(2 * LIFE_NS);
    assert_eq!(bed.data(1).len(), 20);
    bed.assert_empty();
}

#[test]
fn the_end_of_a_pause_is_seen_on_an_idle_port() {
    let mut bed = Bed::learned(&spec(2));
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(100_000);
    assert_eq!(bed.counters.ports[1].paused_mask.get(), u64::from(ClassSet::only(LOSSLESS).bits()));
    bed.run(LIFE_NS);
    assert_eq!(bed.counters.ports[1].paused_mask.get(), 0);
}

/// A long poll must not shorten the pauses that it receives: they begin with the next poll.
#[test]
fn pause_shorter_than_a_poll_is_obeyed() {
    let mut bed = Bed::learned(&spec(2));
    bed.pause(1, ClassSet::only(LOSSLESS), 100); // 5.12 us at 10 Gb/s
    bed.switch.poll_once(&mut bed.io, bed.now);
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
    bed.now += 1_000_000;
    bed.switch.poll_once(&mut bed.io, bed.now);
    assert_eq!(bed.data(1).len(), 0);
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 1);
}

#[test]
fn xon_ends_a_pause_at_once() {
    let mut bed = Bed::learned(&spec(2));
    bed.pause(1, ClassSet::ALL, 0xffff);
    bed.poll();
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
    bed.run(5_000);
    assert!(bed.data(1).is_empty());
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(1_000);
    assert_eq!(bed.data(1).len(), 1);
}

#[test]
fn classic_pause_empty_vector_and_lossy_pfc_stop_no_class() {
    let mut bed = Bed::learned(&spec(2));
    let mut classic = PfcFrame::default().emit(mac(1));
    classic[14..18].copy_from_slice(&[0x00, 0x01, 0xff, 0xff]);
    let mut unknown = classic;
    unknown[15] = 0x77;
    bed.io.inject(1, &classic);
    bed.io.inject(1, &unknown);
    bed.pause(1, ClassSet::EMPTY, 0xffff);
    bed.pause(1, !ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    for dscp in (0..64).step_by(8) {
        bed.io.inject(0, &frame(0, 1, dscp, CELL));
    }
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 8, "PAUSE, empty vectors and pauses of lossy classes stop nobody");
    let counters = &bed.counters.ports[1];
    assert_eq!(counters.pause_rx_frames.get(), 1);
    assert_eq!(counters.pfc_rx_frames.get(), 2);
    assert_eq!(counters.pfc_rx_xoff[0].get(), 1, "counted all the same");
    assert_eq!(bed.drops(1, DropReason::MacControl), 1);
    assert_eq!(counters.rx_frames.iter().map(|count| count.get()).sum::<u64>(), 1, "control frames are not data");
    assert!(bed.data(0).is_empty(), "and are never forwarded");
}

#[test]
fn pfc_to_another_destination_is_dropped_and_stops_nothing() {
    let mut bed = Bed::learned(&spec(2));
    let pfc = PfcFrame { enabled: ClassSet::ALL, quanta: [holdfast::units::Quanta(0xffff); 8] }.emit(mac(1));
    // A host, the broadcast address, two bridge group addresses, and the standard's address with one bit changed.
    let destinations =
        [mac(0).0, [0xff; 6], [1, 0x80, 0xc2, 0, 0, 0], [1, 0x80, 0xc2, 0, 0, 0x0e], [1, 0x80, 0xc2, 0, 1, 1]];
    for destination in destinations {
        let mut frame = pfc;
        frame[..6].copy_from_slice(&destination);
        bed.io.inject(1, &frame);
    }
    bed.poll();
    for dscp in (0..64).step_by(8) {
        bed.io.inject(0, &frame(0, 1, dscp, CELL));
    }
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 8, "no class waits");
    let counters = &bed.counters.ports[1];
    assert_eq!(bed.drops(1, DropReason::PfcDestination), 5);
    assert_eq!(
        (counters.pfc_rx_frames.get(), counters.pfc_rx_xoff[LOSSLESS].get(), counters.paused_mask.get()),
        (0, 0, 0)
    );
    assert!(bed.data(0).is_empty(), "it is not forwarded either");
    bed.assert_empty();
}

#[test]
fn pfc_frame_with_zero_source_is_accepted() {
    let mut bed = Bed::learned(&spec(2));
    let pfc = PfcFrame { enabled: ClassSet::only(LOSSLESS), quanta: [holdfast::units::Quanta(9); 8] };
    bed.io.inject(1, &pfc.emit(Default::default()));
    bed.poll();
    assert_eq!(bed.counters.ports[1].pfc_rx_xoff[LOSSLESS].get(), 1);
}

#[test]
fn a_pause_that_lasts_is_refreshed_at_half_its_life() {
    let mut bed = Bed::blocked(&spec(2));
    bed.fill(33);
    bed.run(2_000);
    assert_eq!(bed.pfcs(0).len(), 1);
    // The peer of port 1 keeps it paused for 20 lives. Port 0 must refresh its XOFF twice a life.
    for _ in 0..40 {
        bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
        bed.run(LIFE_NS / 2);
    }
    let refreshes = bed.pfcs(0);
    assert!((38..=41).contains(&refreshes.len()), "{} refreshes in 20 lives", refreshes.len());
    assert!(refreshes.iter().all(|pfc| pfc.quanta[LOSSLESS].0 == 0xffff));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(100_000);
    assert_eq!(bed.pfcs(0).len(), 1, "one XON");
    bed.run(10 * LIFE_NS);
    assert_eq!(bed.pfcs(0), [], "and silence");
    bed.assert_empty();
}

#[test]
fn a_pfc_frame_that_finds_no_buffer_or_room_is_sent_later() {
    let mut bed = Bed::blocked(&spec(2));
    bed.io.spare_buffers = 0;
    bed.fill(31);
    bed.run(2_000);
    assert_eq!(bed.pfcs(0), []);
    bed.io.spare_buffers = 10;
    bed.io.set_room(0, Some(0));
    bed.run(2_000);
    assert_eq!(bed.pfcs(0), []);
    bed.io.set_room(0, None);
    bed.run(1_000);
    assert_eq!(bed.pfcs(0).len(), 1);
}

#[test]
fn pfc_frame_overtakes_queued_data_of_its_port() {
    let mut bed = Bed::learned(&spec(2));
    // Port 0 has a long queue of its own and is paced. Its PFC frames do not wait behind the queue.
    for _ in 0..500 {
        bed.io.inject(1, &frame(1, 0, 0, 1500));
    }
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(20_000);
    bed.io.sent_all(0);
    bed.fill(31);
    bed.poll();
    let first = bed.io.sent(0).expect("a frame");
    assert!(pfc_of(&first).is_some(), "PFC before all data");
}

/// A pause ends with its link, also one received in the last poll before the link is up again.
#[test]
fn a_pause_ends_with_its_link() {
    let mut bed = Bed::learned(&spec(2));
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.switch.poll_once(&mut bed.io, bed.now);
    bed.switch.set_link(1, false);
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(1_000);
    bed.switch.set_link(1, true);
    // The station is forgotten with the link, and learned again.
    bed.io.inject(1, &frame(1, 0, 0, 60));
    bed.run(1_000);
    bed.fill(1);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 1);
}

/// The peer of a new link may be another one, or may still be paused.
#[test]
fn each_new_link_is_counted_and_announced_with_one_frame() {
    let mut bed = Bed::learned(&spec(2));
    let seen = |bed: &mut Bed| (bed.pfcs(1).len(), bed.counters.ports[1].link_ups.get());
    let (frames, ups) = seen(&mut bed);
    for _ in 0..2 {
        bed.switch.set_link(1, false);
        bed.run(1_000);
        bed.switch.set_link(1, true);
        bed.switch.set_link(1, true);
        bed.run(1_000);
    }
    assert_eq!(seen(&mut bed), (frames + 2, ups + 2));
    assert_eq!(bed.counters.ports[1].pfc_tx_xon[LOSSLESS].get(), ups + 2);
}

/// The queue of a storm is discarded in portions: a poll that emptied it at once would delay the other ports.
#[test]
fn the_watchdog_discards_a_long_queue_over_many_polls() {
    let mut spec = spec(2);
    for port in &mut spec.ports {
        port.buffer.groups[LOSSLESS].threshold = Threshold::Static(Cells(5000));
        port.live.watchdog = Some(WatchdogSpec {
            detection: Nanos(1_000_000),
            restoration: Nanos(1_000_000),
            action: WatchdogAction::Drop,
        });
    }
    let mut bed = Bed::blocked(&spec);
    bed.fill(4000);
    let dropped = |bed: &Bed| bed.drops(1, DropReason::Watchdog);
    let (mut most, mut before) = (0, 0);
    for _ in 0..2500 {
        bed.run(1_000);
        most = most.max(dropped(&bed) - before);
        before = dropped(&bed);
    }
    assert_eq!(before, 4000);
    assert!(most <= 2 * 128, "{most} in one microsecond");
    assert_eq!(bed.counters.ports[1].watchdog_storms[LOSSLESS].get(), 1);
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(3_000_000);
    assert_eq!(bed.counters.ports[1].watchdog_restores[LOSSLESS].get(), 1);
    bed.fill(10);
    bed.run(50_000);
    assert_eq!((bed.data(1).len(), dropped(&bed)), (10, 4000), "no drop once it is over");
}
