//! Frames of the control plane: they join the queues like received ones.

use holdfast::plan::DropReason;
use holdfast::route::InjectTo;
use holdfast::sets::ClassSet;
use holdfast::units::Cells;
use holdfast::wire::MacAddr;

use super::bed::*;
use super::packet::{Packet, with_payload};
use crate::harness::*;

/// A frame from the router to station `station` of an interface.
fn frame_to(interface: usize, station: usize, payload: usize) -> Vec<u8> {
    let packet = Packet::new((own_mac(interface), mac(station)), "10.250.0.1", "10.77.0.9");
    Packet { payload, ..packet }.frame()
}

/// The frame with a tag of class 6, which injected frames have.
fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame.splice(12..12, [&[0x81, 0], &(6 << 13 | vlan).to_be_bytes()[..]].concat());
    frame
}

/// Counters of injected frames: admitted, and dropped for want of a port or a buffer.
fn counts(bed: &RoutingBed) -> (u64, u64) {
    (bed.sum(|lcore| lcore.injected_frames.get()), bed.sum(|lcore| lcore.inject_drops.get()))
}

#[test]
fn frame_to_a_routed_port_leaves_by_it_from_any_lcore() {
    let mut bed = RoutingBed::new();
    for (lcore, port) in (0..bed.links.len()).flat_map(|lcore| [(lcore, 0), (lcore, 1)]) {
        let frame = frame_to(port, port, 60);
        assert!(bed.links[lcore].inject(&frame, InjectTo::Port(port as u8), VLANS[port]));
        bed.run(10_000);
        assert_eq!(bed.sent(), [(port, frame)]);
        assert_eq!(
            bed.counters.sum(port, |port| &port.tx_frames[6]),
            1 + lcore as u64,
            "in the class of network control"
        );
    }
    assert_eq!(counts(&bed), (2 * bed.links.len() as u64, 0));
    let received: u64 = bed.counters.ports.iter().flat_map(|port| &port.rx_frames).map(|count| count.get()).sum();
    assert_eq!(received, 0, "no port has received it");
    bed.assert_empty();
}

#[test]
fn frame_to_a_vlan_leaves_by_the_port_of_its_station_or_by_all() {
    let mut bed = RoutingBed::new();
    for lcore in 0..bed.links.len() {
        let known = frame_to(2, 5, 60);
        assert!(bed.links[lcore].inject(&known, InjectTo::Vlan(10), 10));
        bed.run(10_000);
        assert_eq!(bed.sent(), [(5, known)]);
        let behind_tag = frame_to(3, 3, 60);
        assert!(bed.links[lcore].inject(&behind_tag, InjectTo::Vlan(20), 20));
        bed.run(10_000);
        assert_eq!(bed.sent(), [(3, tagged(&behind_tag, 20))]);
        let unknown = frame_to(2, 77, 60);
        let to_all = with_payload((own_mac(2), MacAddr::BROADCAST), 0x0806, &[0; 46]);
        for frame in [unknown, to_all] {
            assert!(bed.links[lcore].inject(&frame, InjectTo::Vlan(10), 10));
            bed.run(10_000);
            assert_eq!(bed.sent(), [(2, frame.clone()), (3, tagged(&frame, 10)), (5, frame)]);
        }
    }
    assert_eq!(counts(&bed), (8 * bed.links.len() as u64, 0));
    assert_eq!((bed.all_drops(), bed.punted()), (vec![], vec![]));
    bed.assert_empty();
}

#[test]
fn frame_to_ports_without_link_is_counted_as_dropped() {
    let mut bed = RoutingBed::new();
    bed.switch.set_link(1, false);
    bed.switch.set_link(4, false);
    bed.links[0].inject(&frame_to(1, 1, 60), InjectTo::Port(1), VLANS[1]);
    bed.run(10_000);
    assert_eq!((counts(&bed), bed.sent()), ((0, 1), vec![]));
    // Its port has lost the link, and so its station: the frame goes to the other members.
    let frame = frame_to(3, 4, 60);
    bed.links[0].inject(&frame, InjectTo::Vlan(20), 20);
    bed.run(10_000);
    assert_eq!((counts(&bed), bed.sent()), ((1, 1), vec![(3, tagged(&frame, 20))]));
    bed.switch.set_link(3, false);
    bed.links[0].inject(&frame, InjectTo::Vlan(20), 20);
    // A VLAN that no port carries, and a port that does not exist.
    bed.links[0].inject(&frame, InjectTo::Vlan(99), 99);
    bed.links[0].inject(&frame, InjectTo::Port(40), 99);
    bed.run(10_000);
    assert_eq!((counts(&bed), bed.sent(), bed.all_drops()), ((1, 4), vec![], vec![]));
    bed.assert_empty();
}

#[test]
fn frame_without_buffer_is_counted_as_dropped() {
    let mut bed = RoutingBed::new();
    bed.io.spare_buffers = 2;
    bed.links[0].inject(&frame_to(2, 77, 60), InjectTo::Vlan(10), 10);
    bed.run(10_000);
    assert_eq!((counts(&bed), bed.sent().len()), ((2, 1), 2));
    bed.assert_empty();
}

#[test]
fn frame_longer_than_its_ports_mtu_is_dropped_there() {
    let mut spec = routing_spec();
    spec.ports[1].mtu = 1400;
    let mut bed = RoutingBed::with(&spec, Tables::default());
    let lcore = bed.links.len() - 1;
    bed.links[lcore].inject(&frame_to(1, 1, 1380), InjectTo::Port(1), VLANS[1]);
    bed.run(10_000);
    assert_eq!((bed.sent(), bed.all_drops()), (vec![], vec![(1, DropReason::EgressMtu, 1)]));
    bed.assert_empty();
}

/// Frames of the control plane are in a lossy class, so no pause of lossless classes stops them. Class 3 is the last
/// that they would use.
#[test]
fn pause_of_lossless_classes_does_not_stop_injected_frames() {
    let mut bed = RoutingBed::new();
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(2_000);
    bed.links[0].inject(&frame_to(1, 1, 60), InjectTo::Port(1), VLANS[1]);
    bed.run(10_000);
    assert_eq!(bed.sent().len(), 1);
    bed.assert_empty();
}

/// Injected frames are charged to the buffer: a lossy pool without room refuses them.
#[test]
fn injected_frames_hold_cells_until_they_are_sent() {
    let mut spec = routing_spec();
    spec.buffer.lossy_shared = Cells(64);
    let mut bed = RoutingBed::with(&spec, Tables::default());
    bed.io.set_room(1, Some(0));
    let lcore = bed.links.len() - 1;
    for _ in 0..100 {
        assert!(bed.links[lcore].inject(&frame_to(1, 1, 60), InjectTo::Port(1), VLANS[1]));
    }
    bed.run(20_000);
    let held = bed.switch.held_cells();
    assert!((1..=64).contains(&held), "{held} cells");
    assert_eq!(bed.switch.held_frames() as u64, held, "a frame of one cell each");
    let dropped: u64 = bed.all_drops().iter().map(|(.., count)| count).sum();
    assert_eq!(dropped, 100 - held);
    bed.io.set_room(1, None);
    bed.run(100_000);
    assert_eq!(bed.sent().len() as u64, held);
    bed.assert_empty();
}

/// More frames than a burst or the channel holds: each leaves once, in order.
#[test]
fn injected_frames_beyond_a_burst_leave_once_in_order() {
    let mut bed = RoutingBed::new();
    let (mut sent, mut taken) = (0, Vec::new());
    while sent < 1000 {
        while sent < 1000 && bed.links[0].inject(&frame_to(0, 0, sent), InjectTo::Port(0), VLANS[0]) {
            sent += 1;
        }
        bed.run(5_000);
        taken.extend(bed.data(0));
    }
    bed.run(2_000_000);
    taken.extend(bed.data(0));
    let expected: Vec<Vec<u8>> = (0..1000).map(|payload| frame_to(0, 0, payload)).collect();
    assert!(taken == expected, "{} frames", taken.len());
    assert_eq!(counts(&bed), (1000, 0));
    bed.assert_empty();
}
