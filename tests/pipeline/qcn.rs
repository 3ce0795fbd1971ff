//! Congestion points of QCN with real frames: messages go to the sources of sampled frames.

use holdfast::forward::VlanMode;
use holdfast::plan::SwitchSpec;
use holdfast::qos::CongestionPointSpec;
use holdfast::sets::ClassSet;
use holdfast::units::{Bytes, Cells};
use holdfast::wire::cnm::{self, MOST_MSDU};

use crate::harness::*;
use crate::layout::Layout;

const LEN: usize = 900;
/// Base of the sampling interval.
const SAMPLE: u64 = 9_000;

/// A switch of three ports whose lossless queues are congestion points, and hold 600 frames without a pause.
fn qcn_spec() -> SwitchSpec {
    let mut spec = spec(3);
    let point = CongestionPointSpec { set_point: Bytes(5_000), weight: 2, sample: Bytes(SAMPLE) };
    spec.congestion_points[LOSSLESS] = Some(point);
    for port in &mut spec.ports {
        port.buffer.groups[LOSSLESS].reserve = Cells(3_000);
    }
    spec.buffer.reserves = Cells(9_000);
    spec
}

/// Sends `frames` frames each of stations 0 and 2 to station 1 at once, and polls until they have left.
fn incast(bed: &mut Bed, frames: usize, dscp: u8) {
    for _ in 0..frames {
        bed.io.inject(0, &frame(0, 1, dscp, LEN));
        bed.io.inject(2, &frame(2, 1, dscp, LEN));
    }
    bed.run(2_000_000);
}

fn made(bed: &Bed) -> u64 {
    bed.counters.ports[1].cnms_made[LOSSLESS].get()
}

fn sent(bed: &Bed) -> u64 {
    bed.counters.ports.iter().map(|port| port.cnms_sent.get()).sum()
}

#[test]
fn sources_of_sampled_frames_get_messages_that_repeat_the_frames() {
    let spec = qcn_spec();
    let mut bed = Bed::learned(&spec);
    incast(&mut bed, 200, LOSSLESS_DSCP);
    let mut messages = 0;
    for source in [0, 2] {
        let received = bed.io.sent_all(source);
        assert!(received.len() > 10, "{} messages to {source}", received.len());
        for message in &received {
            let (envelope, cnm) = cnm::parse(message).expect("a message");
            assert_eq!((envelope.dst, envelope.src), (mac(source), spec.ports[1].mac));
            assert_eq!((envelope.tci, envelope.flow), (None, None));
            assert!((1..=63).contains(&cnm.feedback));
            assert_eq!((cnm.dst, cnm.priority), (mac(1), LOSSLESS as u8));
            assert_eq!(cnm.msdu, &frame(source, 1, LOSSLESS_DSCP, LEN)[12..12 + MOST_MSDU]);
            assert_eq!(cnm.point[..6], spec.ports[1].mac.0);
            assert_eq!(cnm.point[7], LOSSLESS as u8);
        }
        messages += received.len() as u64;
    }
    // Messages for the port of another lcore are made before the bound of each poll is known.
    assert!(
        sent(&bed) == messages && (made(&bed) == messages || Layout::current().lcores > 1 && made(&bed) > messages)
    );
    // The queue grows from poll to poll, so nearly all samples have the shortest interval, 18.5 / 150 of the base.
    let most = 400 * LEN as u64 * 150_000 / (SAMPLE * 18_500 * 85 / 100) + 1;
    assert!(messages <= most, "{messages} messages, {most} at most");
    let data = bed.data(1);
    assert_eq!(data.len(), 400, "messages replace no data");
    bed.assert_empty();
}

#[test]
fn queue_below_its_set_point_and_other_classes_cause_no_message() {
    let mut bed = Bed::learned(&qcn_spec());
    for _ in 0..200 {
        bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, LEN));
        bed.run(1_000);
    }
    incast(&mut bed, 100, 0);
    assert_eq!((made(&bed), sent(&bed)), (0, 0));
    assert!(bed.io.sent_all(0).is_empty() && bed.io.sent_all(2).is_empty());
}

#[test]
fn message_has_the_tag_of_the_port_where_the_frame_came_in() {
    let mut spec = qcn_spec();
    spec.ports[0].vlan = VlanMode::Trunk { tagged: vec![7], native: Some(1) };
    spec.ports[1].vlan = VlanMode::Access(7);
    let mut bed = Bed::new(&spec);
    bed.switch.learn(7, mac(1), 1);
    let mut tagged = frame(0, 1, LOSSLESS_DSCP, LEN);
    tagged.splice(12..12, [0x81, 0, 0x60, 7]);
    for _ in 0..200 {
        bed.io.inject(0, &tagged);
    }
    bed.run(1_000_000);
    let messages = bed.io.sent_all(0);
    assert!(messages.len() > 5, "{} messages", messages.len());
    for message in &messages {
        let (envelope, cnm) = cnm::parse(message).expect("a message");
        assert_eq!(envelope.tci, Some(6 << 13 | 7), "priority 6 of the frame's VLAN");
        assert_eq!(cnm.msdu[..2], [0x08, 0x00], "the MSDU begins behind the tags");
    }
}

#[test]
fn tagged_message_does_not_leave_while_its_priority_is_paused() {
    for (paused, is_lost) in [(5, false), (6, true)] {
        let mut spec = qcn_spec();
        spec.ports[0].vlan = VlanMode::Trunk { tagged: vec![7], native: Some(1) };
        spec.ports[1].vlan = VlanMode::Access(7);
        let mut bed = Bed::new(&spec);
        bed.switch.learn(7, mac(1), 1);
        bed.pause(0, ClassSet::only(paused), u16::MAX);
        bed.run(1_000);
        let mut tagged = frame(0, 1, LOSSLESS_DSCP, LEN);
        tagged.splice(12..12, [0x81, 0, 0x60, 7]);
        (0..200).for_each(|_| bed.io.inject(0, &tagged));
        bed.run(10_000);
        assert!(made(&bed) > 5, "{} messages", made(&bed));
        assert_eq!(sent(&bed) == 0, is_lost, "priority {paused} is paused: {} sent", sent(&bed));
    }
}

#[test]
fn message_without_room_is_lost_and_data_is_not() {
    let mut bed = Bed::learned(&qcn_spec());
    bed.io.set_room(0, Some(2));
    bed.io.set_room(2, Some(0));
    incast(&mut bed, 200, LOSSLESS_DSCP);
    assert_eq!((bed.io.sent_all(0).len(), bed.io.sent_all(2).len()), (2, 0));
    assert!(made(&bed) > sent(&bed) && sent(&bed) == 2, "{} made, {} sent", made(&bed), sent(&bed));
    assert_eq!(bed.data(1).len(), 400);
    bed.assert_empty();
}

#[test]
fn cnm_in_a_congested_queue_causes_no_cnm() {
    let mut bed = Bed::learned(&qcn_spec());
    let mut envelope = [0; cnm::MOST_FRAME];
    let msdu = frame(1, 0, LOSSLESS_DSCP, LEN);
    let message = cnm::Cnm { feedback: 9, point: [1; 8], offset: 1, delta: 1, priority: 3, dst: mac(0), msdu: &msdu };
    let to = cnm::Envelope { dst: mac(1), src: mac(0), tci: Some(3 << 13), flow: None };
    let len = message.write(&to, &mut envelope);
    for _ in 0..600 {
        bed.io.inject(0, &envelope[..len]);
    }
    bed.run(1_000_000);
    assert_eq!((bed.data(1).len(), made(&bed)), (600, 0));
}
