//! ACKs, NAKs and CNPs of RoCEv2 in classes of their own.

use proptest::prelude::*;

use holdfast::plan::SwitchSpec;
use holdfast::qos::{QueueDiscipline, RoceMap};
use holdfast::sets::ClassSet;

use crate::harness::*;

const ACK: u8 = 0x11;
const CNP: u8 = 0x81;
/// Middle of an RDMA WRITE.
const DATA: u8 = 0x07;
/// Class of ACKs and NAKs, which is strict, and class of CNPs.
const ACK_CLASS: usize = 6;
const CNP_CLASS: usize = 5;
/// Offset of the opcode in an untagged IPv4 frame.
const OPCODE: usize = 42;

fn roce_spec() -> SwitchSpec {
    let mut spec = spec(2);
    spec.queues[ACK_CLASS].discipline = QueueDiscipline::Strict;
    for port in &mut spec.ports {
        port.live.marks.roce = RoceMap { ack: Some(ACK_CLASS as u8), cnp: Some(CNP_CLASS as u8) };
    }
    spec
}

/// A RoCEv2 packet from station 0 to station 1, with the DSCP of lossless data.
fn roce(opcode: u8, len: usize) -> Vec<u8> {
    let mut bytes = frame(0, 1, LOSSLESS_DSCP, len);
    bytes[OPCODE] = opcode;
    bytes
}

/// The packet of `roce` in IPv6.
fn roce_v6(opcode: u8) -> Vec<u8> {
    let v4 = roce(opcode, 80);
    let mut bytes = v4[..12].to_vec();
    bytes.extend([0x86, 0xdd, 0x60 | LOSSLESS_DSCP >> 2, LOSSLESS_DSCP << 6, 0, 0, 0, 46, 17, 64]);
    bytes.extend([0xfd; 32]);
    bytes.extend(&v4[34..]);
    bytes
}

/// Frames that port 0 received and port 1 sent, by class and queue.
fn counts(bed: &Bed) -> [[u64; 8]; 2] {
    let received = std::array::from_fn(|class| bed.counters.ports[0].rx_frames[class].get());
    [received, std::array::from_fn(|queue| bed.counters.sum(1, |port| &port.tx_frames[queue]))]
}

fn grown(before: [[u64; 8]; 2], after: [[u64; 8]; 2]) -> [[u64; 8]; 2] {
    [0, 1].map(|side: usize| std::array::from_fn(|class| after[side][class] - before[side][class]))
}

fn tagged(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.splice(12..12, [0x81, 0, 0, 1]);
    bytes
}

#[test]
fn acks_and_cnps_have_classes_of_their_own_behind_every_header() {
    let mut bed = Bed::learned(&roce_spec());
    for opcode in [ACK, CNP, DATA] {
        let before = counts(&bed);
        let frames = [roce(opcode, 80), roce_v6(opcode), tagged(roce(opcode, 80)), tagged(roce_v6(opcode))];
        // Alone, so that each kind is parsed by its own loop, and together.
        for sent in frames.iter().map(std::slice::from_ref).chain([&frames[..]]) {
            sent.iter().for_each(|bytes| bed.io.inject(0, bytes));
            bed.run(10_000);
        }
        let class = match opcode {
            ACK => ACK_CLASS,
            CNP => CNP_CLASS,
            _ => LOSSLESS,
        };
        let wanted = std::array::from_fn(|index| if index == class { 8 } else { 0 });
        assert_eq!(grown(before, counts(&bed)), [wanted; 2], "opcode {opcode:#x}");
        assert!(bed.data(1).iter().all(|sent| frames.contains(sent) || frames.contains(&tagged(sent.clone()))));
    }
    assert_eq!([0, 1].map(|kind: usize| bed.counters.ports[0].roce_frames[kind].get()), [8, 8]);
    bed.assert_empty();
}

#[test]
fn acks_overtake_paused_data_with_the_same_dscp() {
    let mut bed = Bed::learned(&roce_spec());
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    for opcode in [DATA, ACK, DATA, ACK] {
        bed.io.inject(0, &roce(opcode, 80));
    }
    bed.run(10_000);
    let opcodes: Vec<u8> = bed.data(1).iter().map(|frame| frame[OPCODE]).collect();
    assert_eq!(opcodes, [ACK, ACK], "their queue is not paused");
    assert_eq!(bed.counters.ports[0].group_used_cells[LOSSLESS].get(), 2, "each group holds its own frames");
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 2);
    bed.assert_empty();
}

#[test]
fn kind_without_a_class_keeps_that_of_its_marks() {
    let mut spec = roce_spec();
    spec.ports[0].live.marks.roce.cnp = None;
    let mut bed = Bed::learned(&spec);
    let before = counts(&bed);
    [ACK, CNP, CNP].iter().for_each(|&opcode| bed.io.inject(0, &roce(opcode, 80)));
    bed.run(10_000);
    let [received, _] = grown(before, counts(&bed));
    assert_eq!((received[ACK_CLASS], received[CNP_CLASS], received[LOSSLESS]), (1, 0, 2));
    assert_eq!([0, 1].map(|kind: usize| bed.counters.ports[0].roce_frames[kind].get()), [1, 0]);
}

/// A frame to station 1, with random bytes behind its addresses, or an ACK with some random bytes and any length.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |len| prop::collection::vec(any::<u8>(), len);
    let random = bytes(0..120).prop_map(|rest| [&frame(0, 1, 0, 60)[..12], &rest].concat());
    let opcode = prop_oneof![Just(ACK), Just(CNP), Just(DATA), any::<u8>()];
    let changes = prop::collection::vec((12_usize..60, any::<u8>()), 0..3);
    let mutated = (opcode, changes, 14_usize..80, any::<bool>()).prop_map(|(opcode, changes, len, is_v6)| {
        let mut bytes = if is_v6 { roce_v6(opcode) } else { roce(opcode, 80) };
        changes.into_iter().for_each(|(at, value)| bytes[at] = value);
        bytes.truncate(len);
        bytes
    });
    prop_oneof![1 => random, 3 => mutated]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Only ACKs, NAKs and CNPs change their class, and no frame changes its bytes or its fate.
    #[test]
    fn roce_map_moves_only_control_packets(frames in prop::collection::vec(any_frame(), 1..100)) {
        let with = roce_spec();
        let mut without = with.clone();
        without.ports.iter_mut().for_each(|port| port.live.marks.roce = RoceMap::default());
        let run = |spec: &SwitchSpec| {
            let mut bed = Bed::learned(spec);
            frames.iter().for_each(|bytes| bed.io.inject(0, bytes));
            bed.run(50_000);
            let mut sent = bed.data(1);
            sent.sort();
            let moved = [0, 1].map(|kind: usize| bed.counters.ports[0].roce_frames[kind].get());
            bed.assert_empty();
            (sent, counts(&bed)[0], moved)
        };
        let ((sent, classes, moved), (plain_sent, plain_classes, none)) = (run(&with), run(&without));
        prop_assert_eq!(none, [0, 0]);
        prop_assert_eq!(sent, plain_sent);
        prop_assert_eq!(classes.iter().sum::<u64>(), plain_classes.iter().sum::<u64>());
        for class in [0, 1, 2, 3, 4, 7] {
            prop_assert!(classes[class] <= plain_classes[class]);
        }
        let left: u64 = [0, 1, 2, 3, 4, 7].iter().map(|&class| plain_classes[class] - classes[class]).sum();
        prop_assert!(left <= moved[0] + moved[1]);
        if moved == [0, 0] {
            prop_assert_eq!(classes, plain_classes);
        }
    }
}
