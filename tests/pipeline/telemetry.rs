//! In-band telemetry in real frames: each marked packet of a class that wants it leaves with a note of its queue.

use holdfast::sets::ClassSet;
use holdfast::units::BitRate;
use holdfast::wire::inband::{self, Hops, LEN, MARK};

use crate::harness::*;

const LEN_OF_FRAME: usize = 900;
/// Offset of the base transport header, of untagged frames.
const BASE: usize = 14 + 20 + 8;

fn bed() -> Bed {
    let mut spec = spec(3);
    spec.telemetry_queues = ClassSet::only(LOSSLESS);
    for port in &mut spec.ports {
        port.buffer.groups[LOSSLESS].headroom.0 = 500;
    }
    spec.buffer.headroom.0 = 1500;
    Bed::learned(&spec)
}

/// A RoCEv2 packet of `len` bytes with an empty field, as a sender makes it.
pub fn marked(from: usize, to: usize, dscp: u8, len: usize) -> Vec<u8> {
    let mut frame = frame(from, to, dscp, len);
    frame[36..38].copy_from_slice(&4791_u16.to_be_bytes());
    frame[40..42].fill(0);
    frame[BASE..BASE + 12].copy_from_slice(&[0x04, 0, 0xff, 0xff, MARK, 0, 0, 1, 0, 0, 0, 0]);
    frame[BASE + 12..BASE + 12 + LEN].fill(0);
    frame
}

pub fn notes(frame: &[u8]) -> Hops {
    let mut frame = frame.to_vec();
    Hops::read(inband::find(&mut frame, 14).expect("the field is there"))
}

#[test]
fn frames_of_a_burst_are_noted_in_the_order_in_which_they_leave() {
    let mut bed = bed();
    for _ in 0..8 {
        bed.io.inject(0, &marked(0, 1, LOSSLESS_DSCP, LEN_OF_FRAME));
    }
    bed.run(40_000);
    let sent = bed.data(1);
    assert_eq!(sent.len(), 8);
    let hops: Vec<_> = sent.iter().map(|frame| notes(frame).as_slice().to_vec()).collect();
    assert!(hops.iter().all(|hops| hops.len() == 1 && hops[0].rate() == BitRate(10_000_000_000)));
    let len = sent[0].len() as u64;
    if crate::layout::Layout::current().lcores > 1 {
        // They poll twice at each instant, learn a gap of zero, and leave the wire idle between polls.
        return;
    }
    // All other frames that the wire has yet to send at the poll, in units of 80 B: frames leave two, one,
    // two, and one a poll.
    let polls = [0, 0, 1, 2, 2, 3, 4, 5];
    for (poll, hops) in polls.iter().zip(&hops) {
        let left = 8 * (len + 24) - poll * 1250;
        let (queue, most) = (hops[0].queue_bytes(), left - (len + 24));
        assert!(queue <= most + 1 && queue + 80 + 8 * 24 > most, "{queue} of {most} B");
    }
    for pair in hops.windows(2) {
        let (ns, bytes) = (pair[1][0].ns_since(pair[0][0]), pair[1][0].bytes_since(pair[0][0]));
        // With check sequence, preamble and gap, at 0.8 ns a byte; bytes in units of 128.
        assert!(ns.abs_diff((len + 24) * 8 / 10) <= 1 && bytes.abs_diff(len + 24) < 128, "{ns} ns, {bytes} B");
    }
    for frame in &sent {
        let mut expected = marked(0, 1, LOSSLESS_DSCP, LEN_OF_FRAME);
        expected[BASE + 12..BASE + 12 + LEN].copy_from_slice(&frame[BASE + 12..BASE + 12 + LEN]);
        assert_eq!(*frame, expected, "only the field changes");
    }
}

#[test]
fn other_classes_and_packets_without_the_mark_are_not_touched() {
    let mut bed = bed();
    let mut plain = marked(0, 1, LOSSLESS_DSCP, LEN_OF_FRAME);
    plain[BASE + 4] = 0;
    let lossy = marked(0, 1, 0, LEN_OF_FRAME);
    for frame in [&plain, &lossy] {
        bed.io.inject(0, frame);
    }
    bed.run(20_000);
    let mut sent = bed.data(1);
    sent.sort();
    let mut expected = vec![plain, lossy];
    expected.sort();
    assert_eq!(sent, expected);
}

#[test]
fn frame_that_the_device_refuses_has_one_note_when_it_leaves() {
    let mut bed = bed();
    bed.io.set_room(1, Some(3));
    for _ in 0..8 {
        bed.io.inject(0, &marked(0, 1, LOSSLESS_DSCP, LEN_OF_FRAME));
    }
    bed.run(20_000);
    bed.io.set_room(1, None);
    bed.run(40_000);
    let sent = bed.data(1);
    assert_eq!(sent.len(), 8);
    let hops: Vec<Hops> = sent.iter().map(|frame| notes(frame)).collect();
    assert!(hops.iter().all(|hops| hops.as_slice().len() == 1));
    // Refused frames count as sent once.
    let bytes = hops[7].as_slice()[0].bytes_since(hops[0].as_slice()[0]);
    assert!(bytes.abs_diff(7 * (sent[0].len() as u64 + 24)) < 256, "{bytes} B");
}
