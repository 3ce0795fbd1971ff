//! Scheduling, pacing and marking of real frames.

use holdfast::mmu::Threshold;
use holdfast::plan::DropReason;
use holdfast::qos::{MaxRate, QueueDiscipline, Trust, WredProfile};
use holdfast::sets::ClassSet;
use holdfast::units::{BitRate, Bytes, Cells, Probability};

use crate::harness::*;

fn inject(bed: &mut Bed, dscp: u8, len: usize, frames: usize) {
    for _ in 0..frames {
        bed.io.inject(0, &frame(0, 1, dscp, len));
    }
}

#[test]
fn a_port_is_paced_to_its_rate() {
    let mut bed = Bed::learned(&spec(2));
    inject(&mut bed, 0, 1226, 4000);
    bed.run(1_000_000);
    // 1226 bytes and 24 on the wire take a microsecond at 10 Gb/s. Pacing may catch up on ten more.
    let sent = bed.data(1).len();
    assert!((1000..=1012).contains(&sent), "{sent} frames in a millisecond");
}

#[test]
fn shares_follow_weights_and_strict_goes_first() {
    let mut spec = spec(2);
    spec.queues[1].discipline = QueueDiscipline::Dwrr { weight: 3 };
    spec.queues[6].discipline = QueueDiscipline::Strict;
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    for _ in 0..600 {
        inject(&mut bed, 0, 1000, 1);
        inject(&mut bed, 8, 1000, 1);
    }
    inject(&mut bed, 48, 1000, 50);
    bed.run(100_000);
    bed.io.set_room(1, None);
    bed.run(450_000);
    let dscps: Vec<u8> = bed.data(1).iter().map(|frame| frame[15] >> 2).collect();
    // Some frames were posted to the driver before the strict ones came.
    let first = dscps.iter().position(|&dscp| dscp == 48).unwrap();
    assert!(first <= 32 && dscps[first..first + 50].iter().all(|&dscp| dscp == 48), "strict first: {dscps:?}");
    let (one, three) =
        dscps[first + 50..].iter().fold((0, 0), |(a, b), &dscp| if dscp == 0 { (a + 1, b) } else { (a, b + 1) });
    assert!(three > 250 && (2.8..3.2).contains(&(f64::from(three) / f64::from(one))), "{three} to {one}");
}

#[test]
fn strict_queue_at_its_maximum_rate_lets_others_send() {
    let mut spec = spec(2);
    spec.queues[6].discipline = QueueDiscipline::Strict;
    spec.ports[1].live.max_rates[6] = Some(MaxRate { rate: BitRate(2_000_000_000), burst: Bytes(5_000) });
    let mut bed = Bed::learned(&spec);
    inject(&mut bed, 48, 1226, 1000);
    inject(&mut bed, 0, 1226, 1000);
    bed.run(500_000);
    // 1226 bytes and 24 on the wire take a microsecond, and five at the maximum rate.
    let sent = bed.data(1);
    let strict = sent.iter().filter(|frame| frame[15] >> 2 == 48).count();
    assert!((99..=106).contains(&strict), "{strict}");
    assert!((480..=512).contains(&sent.len()), "{} frames: others use the wire", sent.len());
    let held = bed.counters.sum(1, |port| &port.max_rate_held_ns[6]);
    // The time of a sent frame counts too, and the wait for a poll with credit does not.
    assert!((250_000..=500_000).contains(&held), "{held} ns");
    assert_eq!(bed.counters.sum(1, |port| &port.max_rate_held_ns[0]), 0);
}

#[test]
fn port_that_trusts_pcp_classifies_by_pcp_or_port_class() {
    let mut spec = spec(2);
    spec.ports[0].live.trust = Trust::Pcp;
    spec.ports[0].live.port_class = 5;
    let mut bed = Bed::learned(&spec);
    let mut tagged = frame(0, 1, LOSSLESS_DSCP, 100);
    tagged.splice(12..12, [0x81, 0x00, 4 << 5, 1]);
    bed.io.inject(0, &tagged);
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    let counters = &bed.counters.ports[0];
    assert_eq!((counters.rx_frames[4].get(), counters.rx_frames[5].get(), counters.rx_frames[3].get()), (1, 2, 0));
    assert_eq!(bed.counters.sum(1, |port| &port.tx_frames[4]), 1);
}

/// kmin = kmax, and a queue of twice that is released from a pause: the first frame is marked, the last is not.
#[test]
fn marking_looks_at_the_depth_at_dequeue() {
    let mut spec = spec(2);
    spec.ports[0].buffer.groups[LOSSLESS].threshold = Threshold::Static(Cells(1000));
    spec.queues[LOSSLESS].wred = WredProfile::new(Bytes(10 * 200), Bytes(10 * 200), Probability::ONE);
    let mut bed = Bed::learned(&spec);
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    inject(&mut bed, LOSSLESS_DSCP, 200, 20);
    bed.run(10_000);
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(100_000);
    let marks: Vec<bool> = bed.data(1).iter().map(|frame| ecn_of(frame) == 3).collect();
    // Six frames of 179.2 ns leave in a poll, each by the depth at that poll: 4000 B, then 14 frames and 94 B that the
    // wire has yet to send, then 8 frames and 188 B.
    // A joint port posts all at once.
    let marked = if crate::layout::Layout::current().is_joint() { 20 } else { 12 };
    assert_eq!(marks, [vec![true; marked], vec![false; 20 - marked]].concat());
    assert_eq!(bed.counters.sum(1, |port| &port.ecn_marked[LOSSLESS]), marked as u64);
}

#[test]
fn only_ect_frames_are_marked_in_a_lossless_class() {
    let mut spec = spec(2);
    spec.queues[LOSSLESS].wred = WredProfile::new(Bytes(0), Bytes(0), Probability::ONE);
    let mut bed = Bed::learned(&spec);
    for ecn in 0..4 {
        let mut frame = frame(0, 1, LOSSLESS_DSCP, 100);
        frame[15] = LOSSLESS_DSCP << 2 | ecn;
        bed.io.inject(0, &frame);
    }
    bed.run(10_000);
    let codepoints: Vec<u8> = bed.data(1).iter().map(|frame| ecn_of(frame)).collect();
    assert_eq!(codepoints, [0, 3, 3, 3], "Not-ECT passes, CE stays CE, in a lossless class none is dropped");
    assert_eq!(bed.counters.sum(1, |port| &port.ecn_marked[LOSSLESS]), 2);
}

#[test]
fn a_marked_ipv4_header_has_a_right_checksum() {
    let mut spec = spec(2);
    spec.queues[LOSSLESS].wred = WredProfile::new(Bytes(0), Bytes(0), Probability::ONE);
    let mut bed = Bed::learned(&spec);
    inject(&mut bed, LOSSLESS_DSCP, 100, 1);
    bed.run(10_000);
    let sent = bed.data(1);
    let (header, _) = etherparse::Ipv4Header::from_slice(&sent[0][14..]).unwrap();
    assert_eq!(header.header_checksum, header.calc_header_checksum());
    assert_eq!(header.ecn.value(), 3);
}

/// Drops count by the class of the frame, not by the queue of that class.
#[test]
fn queue_drop_counts_for_the_class_of_its_frame() {
    let mut spec = spec(2);
    spec.classes.tc_to_queue[2] = 1;
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    for _ in 0..5 {
        bed.io.inject(0, &frame(0, 1, 2 << 3, CELL));
    }
    bed.run(10_000);
    bed.switch.set_link(1, false);
    bed.run(10_000);
    let dropped = |class: usize| bed.counters.sum(1, |port| &port.drops[class][DropReason::EgressDown as usize]);
    assert_eq!((dropped(1), dropped(2)), (0, 5));
}
