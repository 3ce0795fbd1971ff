//! Frames for the switch itself: they reach the control plane with their cause, each at its own rate.

use holdfast::plan::DropReason;
use holdfast::route::PuntCause;
use holdfast::wire::MacAddr;

use super::bed::*;
use super::packet::{Packet, with_payload};
use crate::harness::*;

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
pub const LLDP: u16 = 0x88cc;
pub const LLDP_MAC: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);

/// An ARP request from `from` to `to`.
pub fn arp(from: MacAddr, to: MacAddr) -> Vec<u8> {
    let packet = etherparse::ArpPacket::new(
        etherparse::ArpHardwareId::ETHERNET,
        etherparse::EtherType::IPV4,
        etherparse::ArpOperation::REQUEST,
        &from.0,
        &[10, 77, 0, 9],
        &[0; 6],
        &[10, 250, 0, 1],
    );
    with_payload((from, to), ARP, &packet.unwrap().to_bytes())
}

/// An ICMPv6 message of type `kind` from the first to the second of `macs`, in IPv6 to `dst`.
pub fn icmpv6(macs: (MacAddr, MacAddr), dst: &str, kind: u8) -> Vec<u8> {
    let (from, to) = macs;
    let mut packet = vec![0x60, 0, 0, 0, 0, 24, 58, 255];
    packet.extend("fe80::77".parse::<std::net::Ipv6Addr>().unwrap().octets());
    packet.extend(dst.parse::<std::net::Ipv6Addr>().unwrap().octets());
    packet.extend([kind, 0, 0, 0]);
    packet.extend([0; 20]);
    with_payload((from, to), IPV6, &packet)
}

/// A packet of `protocol` to the router's own address at `port`, with these ports behind its network header.
pub fn to_own(port: usize, is_v6: bool, protocol: u8, ports: (u16, u16)) -> Vec<u8> {
    let dst = own_addresses(interface_at(port, None))[usize::from(is_v6)];
    let mut frame = Packet { dst, ports, ttl: 1, ..packet_at(port, None, 1, is_v6) }.frame();
    frame[if is_v6 { 20 } else { 23 }] = protocol;
    if protocol == 6 {
        // A TCP header of five words.
        frame[if is_v6 { 66 } else { 46 }] = 0x50;
    }
    if !is_v6 {
        super::packet::fix_checksum(&mut frame, 14);
    }
    frame
}

#[test]
fn packet_to_an_own_address_is_punted_with_its_cause() {
    let mut bed = RoutingBed::new();
    for (port, is_v6) in [(0, false), (0, true), (2, false), (2, true)] {
        for (protocol, ports, cause) in [
            (if is_v6 { 58 } else { 1 }, (0x0800, 0), PuntCause::Icmp),
            (6, (50_000, 179), PuntCause::Bgp),
            (6, (179, 50_000), PuntCause::Bgp),
            (6, (50_000, 22), PuntCause::Local),
            (17, (49_152, 3784), PuntCause::Bfd),
            (17, (49_152, 4784), PuntCause::Bfd),
            (17, (49_152, 3785), PuntCause::Bfd),
            (17, (3784, 49_152), PuntCause::Local),
            (17, (49_152, 179), PuntCause::Local),
            (89, (0, 0), PuntCause::Local),
        ] {
            let frame = to_own(port, is_v6, protocol, ports);
            bed.receive(port, &frame);
            let punted = bed.punted();
            assert_eq!(punted.len(), 1, "protocol {protocol}, ports {ports:?}");
            let [copy] = &punted[..] else { unreachable!() };
            assert_eq!((copy.cause, &copy.bytes, copy.may_wait), (cause, &frame, false), "{protocol}, {ports:?}");
            assert_eq!((usize::from(copy.port), copy.vlan), (port, VLANS[interface_at(port, None)]));
            assert_eq!(copy.l3_offset, 14);
        }
    }
    assert_eq!((bed.sent(), bed.all_drops()), (vec![], vec![]));
    assert_eq!(bed.sum(|lcore| lcore.punted.iter().map(|count| count.get()).sum()), 40);
    bed.assert_empty();
}

#[test]
fn arp_and_neighbour_discovery_to_the_router_are_punted() {
    let mut bed = RoutingBed::new();
    for port in [0, 2] {
        let macs = (mac(100 + port), own_mac(interface_at(port, None)));
        let mut from_afar = icmpv6(macs, "fe80::9", 136);
        from_afar[21] = 254;
        for (frame, cause) in [
            (from_afar, PuntCause::Icmp),
            (arp(macs.0, macs.1), PuntCause::Arp),
            (icmpv6(macs, "fe80::9", 135), PuntCause::NeighbourDiscovery),
            (icmpv6(macs, "fe80::9", 137), PuntCause::NeighbourDiscovery),
            (icmpv6(macs, "fe80::9", 138), PuntCause::Icmp),
            (icmpv6(macs, "fe80::9", 132), PuntCause::Icmp),
        ] {
            bed.receive(port, &frame);
            assert_eq!(bed.causes(), [cause], "port {port}");
        }
    }
    assert_eq!((bed.sent(), bed.all_drops()), (vec![], vec![]));
    bed.assert_empty();
}

#[test]
fn tagged_packet_is_punted_with_the_offset_behind_its_tag() {
    let mut bed = RoutingBed::new();
    let dst = own_addresses(3)[0];
    let frame = Packet { dst, ..packet_at(3, Some(20), 1, false) }.frame();
    bed.receive(3, &frame);
    let [copy] = &bed.punted()[..] else { panic!("one frame is punted") };
    assert_eq!((copy.port, copy.vlan, copy.l3_offset, &copy.bytes), (3, 20, 18, &frame));
    bed.assert_empty();
}

/// The router is a member of its VLANs: it hears broadcasts once, and the stations hear them as before.
#[test]
fn broadcast_is_flooded_to_the_other_members_and_punted_once() {
    let mut bed = RoutingBed::new();
    let frame = arp(mac(2), MacAddr::BROADCAST);
    bed.receive(2, &frame);
    let mut tagged = frame.clone();
    tagged.splice(12..12, [0x81, 0, 0, 10]);
    assert_eq!(bed.sent(), [(3, tagged.clone()), (5, frame.clone())]);
    assert_eq!(bed.causes(), [PuntCause::Arp]);
    bed.receive(3, &tagged);
    assert_eq!(bed.sent(), [(2, frame.clone()), (5, frame)]);
    let [copy] = &bed.punted()[..] else { panic!("one frame is punted") };
    assert_eq!((copy.port, copy.vlan, copy.l3_offset, &copy.bytes), (3, 10, 18, &tagged));
    // A solicitation goes to a group that all routers and hosts hear.
    let group = MacAddr([0x33, 0x33, 0xff, 0, 0, 9]);
    bed.receive(4, &icmpv6((mac(4), group), "ff02::1:ff00:9", 135));
    assert_eq!(bed.causes(), [PuntCause::NeighbourDiscovery]);
    assert_eq!(bed.sent().iter().map(|(port, _)| *port).collect::<Vec<_>>(), [3]);
    assert_eq!(bed.all_drops(), []);
    bed.assert_empty();
}

#[test]
fn broadcast_at_a_routed_port_reaches_the_router_alone() {
    let mut bed = RoutingBed::new();
    bed.receive(0, &arp(mac(0), MacAddr::BROADCAST));
    bed.receive(0, &icmpv6((mac(0), MacAddr([0x33, 0x33, 0xff, 0, 0, 9])), "ff02::1:ff00:9", 135));
    assert_eq!(bed.causes(), [PuntCause::Arp, PuntCause::NeighbourDiscovery]);
    assert_eq!((bed.sent(), bed.all_drops()), (vec![], vec![]));
    bed.assert_empty();
}

#[test]
fn unknown_unicast_is_flooded_and_not_punted() {
    let mut bed = RoutingBed::new();
    let frame = Packet { macs: (mac(2), mac(88)), ..packet_at(2, None, 1, false) }.frame();
    bed.receive(2, &frame);
    assert_eq!(bed.sent().iter().map(|(port, _)| *port).collect::<Vec<_>>(), [3, 5]);
    let to_own = Packet { macs: (mac(2), mac(88)), dst: own_addresses(2)[0], ..packet_at(2, None, 1, false) };
    bed.receive(2, &to_own.frame());
    assert_eq!((bed.sent().len(), bed.punted(), bed.all_drops()), (2, vec![], vec![]));
    bed.assert_empty();
}

#[test]
fn other_frames_to_reserved_addresses_are_dropped_as_link_local() {
    let mut bed = RoutingBed::new();
    for port in [0, 2] {
        bed.receive(port, &with_payload((mac(port), LLDP_MAC), 0x88f7, &[0; 46]));
        bed.receive(port, &Packet { macs: (mac(port), LLDP_MAC), ..packet_at(port, None, 1, false) }.frame());
        let dst = own_addresses(0)[0];
        bed.receive(port, &Packet { macs: (mac(port), LLDP_MAC), dst, ..packet_at(port, None, 1, false) }.frame());
        let other = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x03]);
        bed.receive(port, &with_payload((mac(port), other), LLDP, &[0; 46]));
    }
    assert_eq!(bed.all_drops(), [(0, DropReason::LinkLocal, 4), (2, DropReason::LinkLocal, 4)]);
    assert_eq!((bed.sent(), bed.punted()), (vec![], vec![]));
    bed.assert_empty();
}

/// Frames of one cause beyond its rate are dropped; those of other causes pass.
#[test]
fn flood_of_one_cause_is_policed_and_delays_no_other() {
    let mut bed = RoutingBed::new();
    let ping = to_own(0, false, 1, (0x0800, 0));
    for _ in 0..200 {
        bed.io.inject(0, &ping);
    }
    bed.run(20_000);
    let punted = bed.punted();
    assert_eq!(punted.len(), 40, "the bursts of a port");
    let policed = bed.sum(|lcore| lcore.punt_policed[PuntCause::Icmp as usize].get());
    assert_eq!((policed, bed.all_drops()), (160, vec![(0, DropReason::PuntPoliced, 160)]));
    bed.receive(0, &to_own(0, false, 6, (50_000, 179)));
    assert_eq!(bed.causes(), [PuntCause::Bgp]);
    bed.assert_empty();
}

/// Beyond the rate the drop counts as before; only the answer is missing.
#[test]
fn drops_count_with_their_reason_beyond_the_rate_of_their_answers() {
    let mut bed = RoutingBed::new();
    for _ in 0..100 {
        bed.io.inject(0, &Packet { ttl: 1, ..packet_at(0, None, 1, false) }.frame());
        bed.io.inject(0, &packet_at(0, None, 201, false).frame());
    }
    bed.run(20_000);
    let counted = |cause: PuntCause| bed.sum(|lcore| lcore.punt_policed[cause as usize].get());
    assert_eq!([PuntCause::TimeExceeded, PuntCause::Resolve].map(counted), [60, 60]);
    assert_eq!(bed.all_drops(), [(0, DropReason::TtlExpired, 100), (0, DropReason::NeighbourIncomplete, 60)]);
    assert_eq!(bed.punted().len(), 80);
    bed.assert_empty();
}

#[test]
fn control_plane_that_takes_no_frames_costs_only_those_of_the_port_that_sends_most() {
    let mut bed = RoutingBed::new();
    let causes = [(17, (1, 3784)), (6, (1, 179)), (1, (0x0800, 0)), (17, (1, 1)), (89, (0, 0))];
    let frames: Vec<Vec<u8>> = causes.iter().map(|(protocol, ports)| to_own(0, false, *protocol, *ports)).collect();
    // The policers pass a burst of each cause in each round, and more than there are buffers in all.
    for _ in 0..3 {
        for frame in frames.iter().cycle().take(300) {
            bed.io.inject(0, frame);
        }
        bed.run(HZ / 100);
        bed.now += HZ;
    }
    let full = bed.sum(|lcore| lcore.punt_full.get());
    assert!(full > 0, "more frames than buffers");
    let policed = bed.sum(|lcore| lcore.punt_policed.iter().map(|count| count.get()).sum());
    assert_eq!(bed.all_drops(), [(0, DropReason::PuntPoliced, full + policed)]);
    let packet = packet_at(0, None, 1, false);
    bed.receive(0, &packet.frame());
    assert_eq!(bed.sent(), [(1, at_next_hop(&packet, 1).frame())], "packets are routed meanwhile");
    bed.receive(4, &to_own(4, false, 1, (0x0800, 0)));
    assert_eq!(bed.punted().iter().filter(|copy| copy.port == 4).count(), 1, "another port has a buffer");
    bed.receive(0, &frames[0]);
    assert_eq!(bed.causes(), [PuntCause::Bfd], "its buffers are usable again");
    bed.assert_empty();
}

#[test]
fn switch_without_control_plane_drops_frames_for_itself() {
    let mut bed = Bed::new(&routing_spec());
    bed.switch.set_routes(&Tables::default().share());
    bed.io.inject(0, &to_own(0, false, 1, (0x0800, 0)));
    bed.io.inject(0, &Packet { ttl: 1, ..packet_at(0, None, 1, false) }.frame());
    bed.io.inject(0, &packet_at(0, None, 201, false).frame());
    bed.run(10_000);
    let reasons = [DropReason::PuntPoliced, DropReason::TtlExpired, DropReason::NeighbourIncomplete];
    assert_eq!(reasons.map(|reason| bed.drops(0, reason)), [1; 3]);
    bed.assert_empty();
}

/// Each dropped frame has a reason, also where only the router could have used it.
#[test]
fn broadcast_of_no_use_to_the_router_is_dropped_with_a_reason() {
    let mut bed = RoutingBed::new();
    bed.receive(0, &with_payload((mac(0), MacAddr::BROADCAST), 0x88b5, &[0; 46]));
    assert_eq!(bed.all_drops(), [(0, DropReason::NoMember, 1)]);
    // In a VLAN it has other members to go to.
    bed.receive(2, &with_payload((mac(2), MacAddr::BROADCAST), 0x88b5, &[0; 46]));
    assert_eq!((bed.sent().len(), bed.all_drops()), (2, vec![(0, DropReason::NoMember, 1)]));
    assert_eq!(bed.punted(), []);
    bed.assert_empty();
}

#[test]
fn lldp_is_punted_at_every_port() {
    let mut spec = routing_spec();
    spec.ports[5].vlan = holdfast::forward::VlanMode::Access(30);
    // Its frames have no mark, so they have the class of the port.
    spec.ports[4].live.port_class = LOSSLESS as u8;
    let mut bed = RoutingBed::with(&spec, Tables::default());
    for port in 0..PORTS {
        // Port 3 carries no untagged frame, and the router has no interface in the VLAN of port 5.
        let frame = with_payload((mac(port), LLDP_MAC), LLDP, &[2, 7, 4]);
        bed.receive(port, &frame);
        let [copy] = &bed.punted()[..] else { panic!("port {port}: one frame is punted") };
        assert_eq!((copy.cause, usize::from(copy.port), &copy.bytes), (PuntCause::Lldp, port, &frame));
        assert_eq!((copy.l3_offset, copy.vlan), (14, [4094, 4093, 10, 0, 20, 30][port]));
    }
    assert_eq!((bed.sent(), bed.all_drops()), (vec![], vec![]));
    bed.assert_empty();
}
