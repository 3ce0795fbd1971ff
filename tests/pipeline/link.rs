//! Frames of links: LLDP goes between a port and the control plane, whatever the VLANs, and by no other port.

use holdfast::forward::VlanMode;
use holdfast::plan::DropReason;
use holdfast::plan::exception::ExceptionLink;
use holdfast::route::{InjectTo, PuntCause};
use holdfast::sets::MAX_PORTS;
use holdfast::units::Cells;
use holdfast::wire::MacAddr;

use crate::harness::*;

/// Longest frame of the control plane.
const LONGEST: usize = 1522;

/// A frame of EtherType `ethertype` from `station` to the nearest bridge.
fn to_bridge(station: usize, ethertype: u16) -> Vec<u8> {
    let mut frame = [&MacAddr::LLDP.0[..], &mac(station).0, &ethertype.to_be_bytes()].concat();
    frame.resize(80, 7);
    frame
}

fn lldp(station: usize) -> Vec<u8> {
    to_bridge(station, 0x88cc)
}

/// Ports and bytes of the punted frames.
fn punted(links: &mut [ExceptionLink]) -> Vec<(usize, Vec<u8>)> {
    let mut all = Vec::new();
    for link in links {
        while let Some(frame) = link.receive() {
            assert_eq!((frame.cause, frame.may_wait), (PuntCause::Lldp, false));
            all.push((usize::from(frame.port), frame.bytes.clone()));
            link.give_back(frame);
        }
    }
    all
}

#[test]
fn lldp_reaches_the_control_plane_from_every_port_of_a_switch_that_only_bridges() {
    // The highest port has the number that a router would have.
    let mut spec = spec(MAX_PORTS);
    spec.ports[1].vlan = VlanMode::Trunk { tagged: vec![10], native: None };
    spec.ports[2].live.port_class = LOSSLESS as u8;
    let mut bed = Bed::new(&spec);
    let mut links = bed.switch.attach_exceptions(LONGEST);
    for port in 0..MAX_PORTS {
        bed.io.inject(port, &lldp(port));
        bed.run(10_000);
        assert_eq!(punted(&mut links), [(port, lldp(port))]);
    }
    let sent: usize = (0..MAX_PORTS).map(|port| bed.data(port).len()).sum();
    let learned: u64 = bed.counters.lcores.iter().map(|lcore| lcore.fdb_learned.get()).sum();
    assert_eq!((sent, learned), (0, 0), "it is neither forwarded nor learned from");
    bed.assert_empty();
}

#[test]
fn other_protocol_to_the_nearest_bridge_is_dropped() {
    let mut bed = Bed::new(&spec(2));
    let mut links = bed.switch.attach_exceptions(LONGEST);
    bed.io.inject(0, &to_bridge(0, 0x88f7));
    bed.run(10_000);
    assert_eq!((punted(&mut links), bed.drops(0, DropReason::LinkLocal)), (vec![], 1));
    bed.assert_empty();
}

#[test]
fn flood_of_lldp_at_one_port_silences_no_other() {
    let mut bed = Bed::new(&spec(2));
    let mut links = bed.switch.attach_exceptions(LONGEST);
    for _ in 0..500 {
        bed.io.inject(0, &lldp(0));
        bed.run(1_000);
    }
    let flood = punted(&mut links).len();
    assert!((1..=16).contains(&flood), "{flood} frames passed");
    assert_eq!(bed.drops(0, DropReason::PuntPoliced), 500 - flood as u64);
    bed.io.inject(1, &lldp(1));
    bed.run(10_000);
    assert_eq!(punted(&mut links), [(1, lldp(1))]);
    bed.assert_empty();
}

#[test]
fn frame_to_a_link_leaves_untagged_by_its_port_alone_from_any_lcore() {
    let mut spec = spec(4);
    spec.ports[0].vlan = VlanMode::Trunk { tagged: vec![10], native: None };
    spec.ports[1].vlan = VlanMode::Access(20);
    let mut bed = Bed::new(&spec);
    let mut links = bed.switch.attach_exceptions(LONGEST);
    for (lcore, port) in (0..links.len()).flat_map(|lcore| (0..4).map(move |port| (lcore, port))) {
        assert!(links[lcore].inject(&lldp(port), InjectTo::Link(port as u8), 0));
        bed.run(10_000);
        let sent: Vec<Vec<Vec<u8>>> = (0..4).map(|port| bed.data(port)).collect();
        let expected: Vec<Vec<Vec<u8>>> = (0..4).map(|at| if at == port { vec![lldp(port)] } else { vec![] }).collect();
        assert_eq!(sent, expected);
    }
    bed.assert_empty();
}

#[test]
fn frame_to_a_link_that_is_down_is_dropped_and_counted() {
    let mut bed = Bed::new(&spec(2));
    let mut links = bed.switch.attach_exceptions(LONGEST);
    bed.switch.set_link(1, false);
    // A port that no switch has too.
    for port in [1, 63] {
        assert!(links[0].inject(&lldp(1), InjectTo::Link(port), 0));
    }
    bed.run(10_000);
    let drops: u64 = bed.counters.lcores.iter().map(|lcore| lcore.inject_drops.get()).sum();
    assert_eq!((bed.data(1).len(), drops), (0, 2));
    bed.switch.set_link(1, true);
    bed.assert_empty();
}

/// Frames of the control plane are lossy: a full buffer drops them, and they hold no sender.
#[test]
fn frame_to_a_link_is_dropped_if_the_buffer_is_full() {
    let mut spec = spec(2);
    spec.buffer.lossy_shared = Cells(0);
    for group in spec.ports.iter_mut().flat_map(|port| &mut port.buffer.groups) {
        if !group.lossless {
            group.reserve = Cells(0);
        }
    }
    let mut bed = Bed::new(&spec);
    let mut links = bed.switch.attach_exceptions(LONGEST);
    assert!(links[0].inject(&lldp(1), InjectTo::Link(1), 0));
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.pfcs(0).len()), (0, 0));
    bed.assert_empty();
}
