//! Learning, VLANs, flooding, and frames that are never forwarded.

use holdfast::forward::{StaticEntry, VlanMode};
use holdfast::plan::DropReason;
use holdfast::sets::ClassSet;
use holdfast::units::Ticks;

use crate::harness::*;

/// Inserts a VLAN tag into a frame.
fn tagged(mut frame: Vec<u8>, tci: u16) -> Vec<u8> {
    let [high, low] = tci.to_be_bytes();
    frame.splice(12..12, [0x81, 0x00, high, low]);
    frame
}

#[test]
fn frame_to_an_unknown_station_is_flooded_until_it_is_learned() {
    let mut bed = Bed::new(&spec(3));
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.data(2).len(), bed.data(0).len()), (1, 1, 0));
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.data(0).len(), bed.data(2).len()), (1, 0), "station 0 was learned");
    bed.assert_empty();
}

#[test]
fn forwarded_frame_keeps_its_bytes() {
    let mut bed = Bed::learned(&spec(2));
    let sent = frame(0, 1, LOSSLESS_DSCP, 1514);
    bed.io.inject(0, &sent);
    bed.run(10_000);
    assert_eq!(bed.data(1), [sent]);
}

#[test]
fn aged_address_is_flooded_again() {
    let mut bed = Bed::learned(&spec(3));
    bed.now += 400 * HZ;
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.data(2).len()), (1, 1));
}

#[test]
fn station_move_applies_to_later_frames_of_the_same_burst() {
    let mut bed = Bed::learned(&spec(3));
    // Makes these pairs known.
    bed.io.inject(2, &frame(2, 0, 0, 100));
    bed.run(10_000);
    assert_eq!(bed.data(0).len(), 1);
    for index in 0..32 {
        let (from, to) = match index {
            // Station 0 appears at the port of station 2.
            10 => (0, 1),
            31 => (2, 1),
            _ => (2, 0),
        };
        bed.io.inject(2, &frame(from, to, 0, 100));
    }
    bed.run(10_000);
    assert_eq!((bed.data(0).len(), bed.data(1).len()), (10, 2));
    assert_eq!(bed.drops(2, DropReason::SamePort), 20);
    bed.assert_empty();
}

#[test]
fn ports_may_have_different_mtus() {
    let mut spec = spec(3);
    spec.ports[1].mtu = 600;
    let mut bed = Bed::learned(&spec);
    for len in [100, 614, 615, 1514] {
        bed.io.inject(0, &frame(0, 1, 0, len));
        bed.io.inject(0, &frame(0, 2, 0, len));
    }
    bed.run(10_000);
    let lens = |frames: Vec<Vec<u8>>| frames.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lens(bed.data(1)), [100, 614]);
    assert_eq!(lens(bed.data(2)), [100, 614, 615, 1514]);
    assert_eq!(bed.drops(0, DropReason::EgressMtu), 2);
    bed.assert_empty();
}

#[test]
fn static_entry_is_not_overridden_by_learning() {
    let mut spec = spec(3);
    spec.fdb.entries.push(StaticEntry { vlan: 1, mac: mac(1), port: 2 });
    let mut bed = Bed::learned(&spec);
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.data(2).len()), (0, 1));
}

#[test]
fn lossless_frames_are_never_flooded() {
    let mut bed = Bed::new(&spec(3));
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.io.inject(0, &frame(0, 0xffff, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.data(2).len()), (0, 0));
    assert_eq!(bed.drops(0, DropReason::LosslessUnknown), 1);
    assert_eq!(bed.drops(0, DropReason::LosslessGroup), 1);
    bed.assert_empty();
}

#[test]
fn link_local_invalid_source_and_same_port_frames_are_dropped() {
    let mut bed = Bed::learned(&spec(2));
    let mut lldp = frame(0, 1, 0, 100);
    lldp[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    let mut from_group = frame(0, 1, 0, 100);
    from_group[6] |= 1;
    let mut from_nobody = frame(0, 1, 0, 100);
    from_nobody[6..12].fill(0);
    let to_itself = frame(0, 0, 0, 100);
    for frame in [&lldp, &from_group, &from_nobody, &to_itself] {
        bed.io.inject(0, frame);
    }
    bed.run(10_000);
    assert!(bed.data(1).is_empty());
    assert_eq!(bed.drops(0, DropReason::LinkLocal), 1);
    assert_eq!(bed.drops(0, DropReason::SourceInvalid), 2);
    assert_eq!(bed.drops(0, DropReason::SamePort), 1);
}

#[test]
fn vlan_tag_is_inserted_and_removed_by_egress_port_mode() {
    let mut spec = spec(4);
    spec.ports[0].vlan = VlanMode::Access(10);
    spec.ports[1].vlan = VlanMode::Trunk { tagged: vec![10, 20], native: None };
    spec.ports[2].vlan = VlanMode::Access(20);
    spec.ports[3].vlan = VlanMode::Trunk { tagged: vec![10], native: Some(20) };
    let mut bed = Bed::new(&spec);
    let plain = frame(0, 0xffff, 0, 100);
    bed.io.inject(0, &plain);
    bed.run(10_000);
    assert_eq!(bed.data(1), [tagged(plain.clone(), 10)], "VLAN 10 leaves a trunk tagged");
    assert_eq!(bed.data(2), Vec::<Vec<u8>>::new(), "VLAN 20 hears nothing of VLAN 10");
    assert_eq!(bed.data(3), [tagged(plain, 10)]);

    let plain = frame(1, 0xffff, 0, 100);
    bed.io.inject(1, &tagged(plain.clone(), 5 << 13 | 20));
    bed.run(10_000);
    assert_eq!(bed.data(2), std::slice::from_ref(&plain), "VLAN 20 leaves an access port untagged");
    assert_eq!(bed.data(3), std::slice::from_ref(&plain), "and a trunk whose native VLAN it is");
    bed.io.inject(1, &plain);
    bed.io.inject(0, &tagged(frame(0, 1, 0, 100), 30));
    bed.run(10_000);
    assert_eq!(bed.drops(1, DropReason::VlanNotAllowed), 1, "untagged on a trunk without native VLAN");
    assert_eq!(bed.drops(0, DropReason::VlanNotAllowed), 1);
    bed.assert_empty();
}

#[test]
fn inner_vlan_tag_passes_a_trunk_unchanged() {
    let mut spec = spec(2);
    for port in &mut spec.ports {
        port.vlan = VlanMode::Trunk { tagged: vec![10], native: None };
    }
    let mut bed = Bed::new(&spec);
    let double = tagged(tagged(frame(0, 1, 0, 100), 7), 10);
    bed.io.inject(0, &double);
    bed.run(10_000);
    assert_eq!(bed.data(1), [double]);
}

#[test]
fn mtu_limits_ingress_and_egress_frames() {
    let mut spec = spec(3);
    spec.ports[1].mtu = 1000;
    let mut bed = Bed::learned(&spec);
    bed.io.inject(0, &frame(0, 1, 0, 1014));
    bed.io.inject(0, &frame(0, 1, 0, 1015));
    bed.io.inject(0, &frame(0, 2, 0, 1514));
    bed.io.inject(0, &frame(0, 2, 0, 1515));
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.data(2).len()), (1, 1));
    assert_eq!((bed.drops(0, DropReason::EgressMtu), bed.drops(0, DropReason::Oversize)), (1, 1));
}

#[test]
fn flooded_copies_are_each_charged() {
    let mut bed = Bed::learned(&spec(5));
    for port in 1..5 {
        bed.io.set_room(port, Some(0));
    }
    bed.io.inject(0, &frame(0, 0xffff, 0, 3 * CELL));
    bed.run(1000);
    assert_eq!(bed.switch.held_cells(), 12, "charged until the driver takes them");
    for _ in 0..40 {
        bed.io.inject(0, &frame(0, 0xffff, 0, 3 * CELL));
    }
    bed.run(3000);
    assert_eq!(bed.switch.held_cells(), 41 * 4 * 3);
    for port in 1..5 {
        bed.io.set_room(port, None);
    }
    bed.run(1_000_000);
    assert_eq!(bed.data(4).len(), 41);
    bed.assert_empty();
}

#[test]
fn without_buffers_for_copies_the_flood_is_cut_and_counted() {
    let mut bed = Bed::learned(&spec(4));
    bed.io.spare_buffers = 1;
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.run(10_000);
    assert_eq!(bed.drops(0, DropReason::NoBuffer), 1);
    let sent: usize = (1..4).map(|port| bed.data(port).len()).sum();
    assert_eq!(sent, 2);
    bed.assert_empty();
}

#[test]
fn moved_station_receives_the_next_frame_at_its_new_port() {
    let mut bed = Bed::learned(&spec(3));
    let ways = |bed: &mut Bed| [0, 1, 2].map(|port| bed.data(port).len());
    // The stations have exchanged frames, so the flow cache knows them.
    for _ in 0..3 {
        bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 100));
        bed.run(10_000);
    }
    assert_eq!(ways(&mut bed), [3, 0, 0]);
    // Station 0 moves to port 2. The frame behind its own in the same burst is addressed to it.
    bed.io.inject(2, &frame(2, 0, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    assert_eq!(ways(&mut bed), [1, 0, 0]);
    bed.io.inject(2, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.io.inject(2, &frame(2, 0, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    assert_eq!((ways(&mut bed), bed.drops(2, DropReason::SamePort)), ([0, 1, 0], 1));
    bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    assert_eq!(ways(&mut bed), [0, 0, 1]);
    bed.assert_empty();
}

/// The database knows the pair of the second frame, and the cache does not.
#[test]
fn moved_station_is_found_by_a_new_flow_of_the_same_burst() {
    let mut bed = Bed::learned(&spec(3));
    bed.io.inject(2, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.io.inject(2, &frame(2, 0, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    let sent = [0, 1, 2].map(|port| bed.data(port).len());
    assert_eq!((sent, bed.drops(2, DropReason::SamePort)), ([0, 1, 0], 1));
    bed.assert_empty();
}

#[test]
fn cached_flow_is_invalid_after_link_down_until_relearned() {
    let mut bed = Bed::learned(&spec(3));
    for _ in 0..3 {
        bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 100));
        bed.run(10_000);
    }
    assert_eq!(bed.data(0).len(), 3);
    bed.switch.set_link(0, false);
    bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    assert_eq!((bed.data(0).len(), bed.drops(1, DropReason::LosslessUnknown)), (0, 1));
    bed.switch.set_link(0, true);
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 1);
    assert!(bed.data(0).iter().any(|sent| *sent == frame(1, 0, LOSSLESS_DSCP, 100)), "it is known again");
}

#[test]
fn link_down_drops_the_queue_and_clears_stations_and_pauses() {
    let mut bed = Bed::blocked(&spec(3));
    for _ in 0..3 {
        bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    }
    bed.run(10_000);
    assert_eq!(bed.switch.held_frames(), 3);
    bed.switch.set_link(1, false);
    bed.poll();
    assert_eq!(bed.drops(1, DropReason::EgressDown), 3);
    bed.assert_empty();
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(10_000);
    assert_eq!(bed.data(2).len(), 1, "its station may be anywhere now");
    bed.switch.set_link(1, true);
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.run(10_000);
    assert!(!bed.data(1).is_empty(), "the pause went with the link");
}

#[test]
fn shutdown_sends_xon_and_releases_all_cells_and_buffers() {
    let mut bed = Bed::blocked(&spec(2));
    bed.fill(33);
    bed.run(2_000);
    assert_eq!(bed.pfcs(0).len(), 1);
    assert!(bed.switch.shutdown(&mut bed.io, Ticks(bed.now)));
    let last = bed.pfcs(0).pop().expect("a last word");
    assert_eq!((last.enabled, last.quanta[LOSSLESS].0), (ClassSet::only(LOSSLESS), 0), "XON for every XOFF");
    assert_eq!((bed.switch.held_cells(), bed.io.held()), (0, 0));
}

/// The number of the router's port belongs to a device where the switch only bridges.
#[test]
fn last_of_64_ports_bridges_like_any_other() {
    let mut bed = Bed::learned(&spec(64));
    bed.io.inject(63, &frame(63, 0, 0, 100));
    bed.io.inject(0, &frame(0, 63, LOSSLESS_DSCP, 100));
    bed.io.inject(0, &frame(0, 99, 0, 100));
    bed.run(1_000_000);
    let sent = [0, 1, 63].map(|port| bed.data(port).len());
    assert_eq!(sent, [1, 1, 2], "the unknown station gets a copy at each port");
    for port in 1..63 {
        bed.io.sent_all(port);
    }
    bed.assert_empty();
}
