//! Flood limits (`storm_control`): a port drops frames to be flooded beyond its limit, by kind, and no others.

use holdfast::dataplane::LiveConfig;
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::qos::FloodKind;
use holdfast::units::PacketRate;
use holdfast::wire::MacAddr;

use crate::harness::*;

/// Frames a second, and those that pass in a row.
const RATE: u32 = 1_000;
const BURST: usize = 64;
/// Frames that a sender floods, one each microsecond.
const FLOODED: usize = 500;

/// A switch of three ports, whose first one has limits of these kinds.
fn limited(kinds: &[FloodKind]) -> SwitchSpec {
    let mut spec = spec(3);
    kinds.iter().for_each(|&kind| spec.ports[0].live.flood_limits[kind as usize] = Some(PacketRate(RATE)));
    spec
}

/// A frame of `kind` from station `from`.
fn flooded(from: usize, kind: FloodKind) -> Vec<u8> {
    match kind {
        FloodKind::Broadcast => frame(from, 0xffff, 0, 100),
        FloodKind::Unknown => frame(from, 77, 0, 100),
        FloodKind::Multicast => {
            let mut frame = frame(from, 1, 0, 100);
            frame[..6].copy_from_slice(&[0x01, 0, 0x5e, 0, 0, 9]);
            frame
        }
    }
}

/// Receives frames of `kind` to be flooded at `port`. Returns the frames that the last port sent.
fn flood(bed: &mut Bed, port: usize, kind: FloodKind) -> usize {
    for _ in 0..FLOODED {
        bed.io.inject(port, &flooded(port, kind));
        bed.run(1_000);
    }
    bed.run(10_000);
    (0..2).for_each(|other| drop(bed.data(other)));
    bed.data(2).len()
}

#[test]
fn flood_limit_applies_to_its_kind_at_its_port_alone() {
    let kinds = [
        (FloodKind::Broadcast, DropReason::StormBroadcast),
        (FloodKind::Multicast, DropReason::StormMulticast),
        (FloodKind::Unknown, DropReason::StormUnknown),
    ];
    for (kind, reason) in kinds {
        let mut bed = Bed::learned(&limited(&[kind]));
        let passed = flood(&mut bed, 0, kind);
        assert!((BURST..=BURST + 2).contains(&passed), "{kind:?}: {passed} pass");
        assert_eq!(bed.drops(0, reason), (FLOODED - passed) as u64);
        // Other kinds, other ports and known stations have no limit.
        for (other, _) in kinds.iter().filter(|(other, _)| *other != kind) {
            assert_eq!(flood(&mut bed, 0, *other), FLOODED, "{other:?} beside {kind:?}");
        }
        assert_eq!(flood(&mut bed, 1, kind), FLOODED);
        for _ in 0..FLOODED {
            bed.io.inject(0, &frame(0, 2, 0, 100));
            bed.run(1_000);
        }
        bed.run(10_000);
        assert_eq!(bed.data(2).len(), FLOODED);
        bed.assert_empty();
    }
}

#[test]
fn flooded_frames_pass_at_the_limit_over_a_second() {
    let mut bed = Bed::learned(&limited(&[FloodKind::Broadcast]));
    let mut passed = 0;
    for _ in 0..10_000 {
        bed.io.inject(0, &flooded(0, FloodKind::Broadcast));
        bed.now += 99_000;
        bed.run(1_000);
        passed += bed.data(2).len();
        drop(bed.data(1));
    }
    let rate = RATE as usize;
    assert!((rate..=rate + BURST + 1).contains(&passed), "{passed} in a second");
}

#[test]
fn lossless_broadcast_that_is_dropped_takes_nothing_of_the_flood_limit() {
    let mut bed = Bed::learned(&limited(&[FloodKind::Broadcast]));
    for _ in 0..FLOODED {
        bed.io.inject(0, &frame(0, 0xffff, LOSSLESS_DSCP, 100));
        bed.run(1_000);
    }
    bed.run(10_000);
    assert_eq!(bed.drops(0, DropReason::LosslessGroup), FLOODED as u64);
    assert_eq!(flood(&mut bed, 0, FloodKind::Broadcast) / BURST, 1);
}

#[test]
fn flood_limits_change_at_run_time() {
    let (free, limited) = (limited(&[]), limited(&[FloodKind::Unknown]));
    let mut bed = Bed::learned(&free);
    assert_eq!(flood(&mut bed, 0, FloodKind::Unknown), FLOODED);
    bed.switch.apply(&LiveConfig::between(&free, &limited, HZ).expect("it may change"));
    assert!(flood(&mut bed, 0, FloodKind::Unknown) < FLOODED);
    bed.switch.apply(&LiveConfig::between(&limited, &free, HZ).expect("it may change"));
    assert_eq!(flood(&mut bed, 0, FloodKind::Unknown), FLOODED);
}

#[test]
fn frames_of_spanning_tree_are_counted_apart() {
    let mut bed = Bed::learned(&spec(2));
    // LLDP shares the first address, and IP is no protocol of a link.
    let (bpdu, lldp, ip) = ([0, 38, 0x42, 0x42, 3], [0x88, 0xcc, 2, 7, 4], [8, 0, 0x45, 0, 0]);
    for (last, behind) in [(0x00, bpdu), (0x08, bpdu), (0x03, bpdu), (0x00, lldp), (0x08, lldp), (0x00, ip)] {
        let mut frame = frame(0, 1, 0, 100);
        frame[..6].copy_from_slice(&MacAddr([0x01, 0x80, 0xc2, 0, 0, last]).0);
        frame[12..17].copy_from_slice(&behind);
        bed.io.inject(0, &frame);
    }
    bed.run(10_000);
    assert_eq!((bed.drops(0, DropReason::Bpdu), bed.drops(0, DropReason::LinkLocal)), (2, 4));
    assert!(bed.data(1).is_empty());
}
