//! Packets that are not routed: each reason has its counter, and the sender gets an answer where one is due.

use std::net::IpAddr;

use holdfast::plan::DropReason;
use holdfast::route::PuntCause;

use super::bed::*;
use super::packet::{CUSTOMER, Packet, SERVICE, fix_checksum, with_payload};
use crate::harness::*;

/// A frame at a port, the reason for its drop, and the cause of its punted copy.
type Case = (&'static str, usize, Vec<u8>, DropReason, Option<PuntCause>);

/// Asserts that each frame is dropped once, at its ingress port and for its reason, and that nothing else happens to
/// it.
fn check(bed: &mut RoutingBed, cases: Vec<Case>) {
    for (name, port, frame, reason, cause) in cases {
        let before = bed.all_drops();
        bed.receive(port, &frame);
        let mut expected = before;
        match expected.iter_mut().find(|(at, of, _)| (*at, *of) == (port, reason)) {
            Some((.., count)) => *count += 1,
            None => expected.push((port, reason, 1)),
        }
        expected.sort_by_key(|(port, reason, _)| (*port, *reason as usize));
        assert_eq!(bed.all_drops(), expected, "{name}");
        assert_eq!(bed.sent(), [], "{name}");
        let punted = bed.punted();
        assert_eq!(punted.iter().map(|frame| frame.cause).collect::<Vec<_>>(), Vec::from_iter(cause), "{name}");
        for copy in punted {
            assert_eq!((copy.bytes, usize::from(copy.port)), (frame.clone(), port), "{name}");
        }
    }
    assert_eq!(bed.sum(|lcore| lcore.routed_frames.get()), 0);
    bed.assert_empty();
}

/// A packet of port 0 to the next hop at port 1, with another source or destination.
fn between(src: Option<&str>, dst: Option<&str>) -> Packet {
    let is_v6 = src.or(dst).is_some_and(|text| text.contains(':'));
    let packet = packet_at(0, None, 1, is_v6);
    let or = |text: Option<&str>, address: IpAddr| text.map_or(address, |text| text.parse().unwrap());
    Packet { src: or(src, packet.src), dst: or(dst, packet.dst), ..packet }
}

#[test]
fn ipv4_header_with_wrong_checksum_or_options_is_dropped() {
    let mut wrong = packet_at(0, None, 1, false).frame();
    wrong[24] ^= 1;
    // Both sums are zero in ones' complement, and neither is a right checksum.
    let (mut zeros, mut ones) = (wrong.clone(), wrong.clone());
    zeros[24..26].fill(0);
    ones[24..26].fill(0xff);
    let mut options = packet_at(2, None, 1, false).frame();
    options.splice(34..34, [1, 1, 1, 0]);
    options[14] = 0x46;
    options[17] += 4;
    fix_checksum(&mut options, 14);
    let cases = vec![
        ("wrong", 0, wrong, DropReason::Ipv4Checksum, None),
        ("zero", 0, zeros, DropReason::Ipv4Checksum, None),
        ("ones", 0, ones, DropReason::Ipv4Checksum, None),
        ("options", 2, options, DropReason::Ipv4Options, None),
    ];
    check(&mut RoutingBed::new(), cases);
}

#[test]
fn packet_whose_time_to_live_ends_here_is_dropped_and_answered() {
    let mut cases = Vec::new();
    for (port, is_v6, ttl) in [(0, false, 0), (0, false, 1), (2, true, 0), (2, true, 1)] {
        let frame = Packet { ttl, ..packet_at(port, None, 1, is_v6) }.frame();
        cases.push(("expired", port, frame, DropReason::TtlExpired, Some(PuntCause::TimeExceeded)));
    }
    check(&mut RoutingBed::new(), cases);
}

#[test]
fn packet_from_or_to_an_address_of_no_host_is_dropped_as_martian() {
    let sources = ["0.0.0.0", "0.1.2.3", "127.0.0.1", "169.254.1.1", "224.0.0.5", "239.1.1.1", "240.0.0.1"];
    let sources = sources.iter().chain(&["255.255.255.255", "::", "::1", "ff02::1", "ff0e::77", "fe80::77"]);
    let destinations = ["0.0.0.9", "127.0.0.1", "169.254.0.9", "224.0.0.9", "240.0.0.1", "255.255.255.255"];
    let destinations = destinations.iter().chain(&["::", "::1", "ff02::1", "fe80::77"]);
    let mut cases = Vec::new();
    for source in sources {
        cases.push((*source, 0, between(Some(source), None).frame(), DropReason::Martian, None));
    }
    for destination in destinations {
        cases.push((*destination, 0, between(None, Some(destination)).frame(), DropReason::Martian, None));
    }
    check(&mut RoutingBed::new(), cases);
}

#[test]
fn packet_from_an_address_of_all_hosts_of_a_network_is_dropped_as_martian() {
    let ends = ["10.77.0.0", "10.77.0.255"];
    let mut tables = Tables::default();
    tables.table.set_broadcasts(ends.map(|end| end.parse().unwrap()));
    let mut bed = RoutingBed::with(&routing_spec(), tables);
    let from = |ttl: u8, end: &str| Packet { ttl, ..between(Some(end), None) }.frame();
    // No error goes to it either.
    let cases = ends.iter().flat_map(|end| [1, 64].map(|ttl| (*end, 0, from(ttl, end), DropReason::Martian, None)));
    check(&mut bed, cases.collect());
    bed.receive(0, &from(64, "10.77.0.254"));
    assert_eq!(bed.sent().len(), 1);
}

#[test]
fn packet_from_an_address_of_the_switch_is_dropped() {
    let mut cases = Vec::new();
    for own in (0..4).flat_map(own_addresses).chain(["fe80::9".parse().unwrap()]) {
        let packet = between(Some(&own.to_string()), None);
        cases.push(("own address", 0, packet.frame(), DropReason::OwnSource, None));
    }
    // The router's station in a VLAN; a station of the same address in another VLAN is another one.
    let macs = (own_mac(2), mac(5));
    cases.push((
        "own station",
        2,
        Packet { macs, ..packet_at(2, None, 1, false) }.frame(),
        DropReason::OwnSource,
        None,
    ));
    let macs = (own_mac(2), own_mac(2));
    cases.push(("to itself", 2, Packet { macs, ..packet_at(2, None, 1, false) }.frame(), DropReason::OwnSource, None));
    check(&mut RoutingBed::new(), cases);
}

#[test]
fn packet_without_route_is_dropped_and_answered_and_one_of_a_blackhole_is_not() {
    let mut cases = Vec::new();
    for (port, is_v6) in [(0, false), (2, true)] {
        let frame = packet_at(port, None, 99, is_v6).frame();
        cases.push(("no route", port, frame, DropReason::NoRoute, Some(PuntCause::Unreachable)));
        let frame = packet_at(port, None, 200, is_v6).frame();
        cases.push(("blackhole", port, frame, DropReason::Blackhole, None));
    }
    check(&mut RoutingBed::new(), cases);
}

/// The neighbour of a network, the next hop of a route, and the port of a next hop in a VLAN may be unknown. A lossless
/// packet would hold its sender while it waited, so it is dropped at once.
#[test]
fn lossless_packet_to_an_unknown_next_hop_is_dropped_and_punted() {
    let mut cases = Vec::new();
    for (port, hop, is_v6) in [201, 202, 6].into_iter().flat_map(|hop| [(0, hop, false), (2, hop, true)]) {
        let frame = Packet { dscp: LOSSLESS_DSCP, ..packet_at(port, None, hop, is_v6) }.frame();
        cases.push(("unknown", port, frame, DropReason::NeighbourIncomplete, Some(PuntCause::Resolve)));
    }
    check(&mut RoutingBed::new(), cases);
}

#[test]
fn lossy_packet_to_an_unknown_next_hop_waits_in_the_control_plane() {
    let mut bed = RoutingBed::new();
    for (hop, is_v6) in [201, 202, 6].into_iter().flat_map(|hop| [(hop, false), (hop, true)]) {
        for dscp in [0, LOSSLESS_DSCP] {
            let frame = Packet { dscp, ..packet_at(2, None, hop, is_v6) }.frame();
            bed.receive(2, &frame);
            let punted = bed.punted();
            assert_eq!((punted.len(), punted[0].cause, &punted[0].bytes), (1, PuntCause::Resolve, &frame));
            assert_eq!((punted[0].may_wait, punted[0].l3_offset, punted[0].vlan), (dscp == 0, 14, 10));
        }
    }
    // No frame was flooded to look for the station, and only the lossless ones were dropped.
    assert_eq!((bed.sent(), bed.all_drops()), (vec![], vec![(2, DropReason::NeighbourIncomplete, 6)]));
    bed.assert_empty();
}

#[test]
fn packet_longer_than_the_next_hops_mtu_is_dropped_and_answered_if_it_must_stay_whole() {
    let mut spec = routing_spec();
    for port in [0, 3] {
        spec.ports[port].mtu = 9000;
    }
    let mut bed = RoutingBed::with(&spec, Tables::default());
    let (needed, unsupported) = (DropReason::FragmentationNeeded, DropReason::FragmentationUnsupported);
    let packet = |port: usize, is_v6: bool, len: usize| {
        let tag = (port == 3).then_some(10);
        Packet { payload: len - if is_v6 { 48 } else { 28 }, ..packet_at(port, tag, 1, is_v6) }
    };
    for (port, is_v6) in [(0, false), (0, true), (3, false), (3, true)] {
        let fits = packet(port, is_v6, 1500);
        bed.receive(port, &fits.frame());
        assert_eq!(bed.sent(), [(1, at_next_hop(&fits, 1).frame())]);
    }
    let mut bed = RoutingBed::with(&spec, Tables::default());
    let mut cases = Vec::new();
    for (port, len) in [(0, 1501), (0, 1515), (3, 1501), (3, 1510)] {
        let cause = Some(PuntCause::TooBig);
        cases.push(("IPv4, whole", port, packet(port, false, len).frame(), needed, cause));
        let packet_v4 = Packet { is_whole: false, ..packet(port, false, len) };
        cases.push(("IPv4", port, packet_v4.frame(), unsupported, None));
        cases.push(("IPv6", port, packet(port, true, len).frame(), needed, cause));
    }
    check(&mut bed, cases);
}

#[test]
fn frame_to_the_router_that_is_no_packet_is_dropped_as_not_routable() {
    let macs = (mac(100), own_mac(0));
    let two_tags = |port: usize, vlan: u16, outer: u16| {
        let mut frame = Packet { tag: Some((outer, vlan)), ..packet_at(port, Some(vlan), 1, false) }.frame();
        frame.splice(16..16, [0x81, 0, 0, 7]);
        frame
    };
    let cases = vec![
        ("LLDP to the router alone", 0, with_payload(macs, 0x88cc, &[2, 7, 4]), DropReason::NotRoutable, None),
        ("MPLS", 0, with_payload(macs, 0x8847, &[0; 46]), DropReason::NotRoutable, None),
        ("two customer tags", 3, two_tags(3, 10, CUSTOMER), DropReason::NotRoutable, None),
        ("service and customer tag", 3, two_tags(3, 20, SERVICE), DropReason::NotRoutable, None),
        ("tags to a routed port", 0, two_tags(0, 4094, CUSTOMER), DropReason::VlanNotAllowed, None),
        ("priority tag and customer tag", 0, two_tags(0, 0, CUSTOMER), DropReason::NotRoutable, None),
    ];
    check(&mut RoutingBed::new(), cases);
}

#[test]
fn packet_to_the_router_by_a_shut_interface_is_dropped_and_the_others_of_its_burst_are_routed() {
    let mut tables = Tables::default();
    tables.table.shut = [VLANS[0], VLANS[2]].into();
    let mut bed = RoutingBed::with(&routing_spec(), tables);
    let at = |port, tag, is_v6| packet_at(port, tag, 1, is_v6).frame();
    let cases = [
        ("routed port", 0, at(0, None, false)),
        ("routed port, IPv6", 0, at(0, None, true)),
        ("VLAN", 2, at(2, None, false)),
        ("VLAN, IPv6", 2, at(2, None, true)),
        ("VLAN by a tag", 3, at(3, Some(10), false)),
    ];
    check(&mut bed, cases.map(|(name, port, frame)| (name, port, frame, DropReason::AdminDown, None)).into());
    bed.io.inject(3, &at(3, Some(20), false));
    bed.io.inject(3, &at(3, Some(10), false));
    bed.receive(3, &at(3, Some(20), true));
    assert_eq!(bed.sent().iter().map(|(port, _)| *port).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(bed.drops(3, DropReason::AdminDown), 2);
    bed.receive(2, &frame(2, 5, 0, 100));
    assert_eq!(bed.sent().len(), 1, "its VLAN still bridges");
    bed.assert_empty();
}

#[test]
fn packet_to_a_port_without_link_is_dropped() {
    let mut bed = RoutingBed::new();
    bed.switch.set_link(1, false);
    bed.switch.set_link(4, false);
    let mut cases = Vec::new();
    for (port, is_v6) in [(0, false), (2, true)] {
        let frame = packet_at(port, None, 1, is_v6).frame();
        cases.push(("routed port", port, frame, DropReason::EgressDown, None));
        // The forwarding database has forgotten the station behind the port.
        let frame = Packet { dscp: LOSSLESS_DSCP, ..packet_at(port, None, 4, is_v6) }.frame();
        cases.push(("VLAN", port, frame, DropReason::NeighbourIncomplete, Some(PuntCause::Resolve)));
    }
    check(&mut bed, cases);
    bed.switch.set_link(1, true);
    bed.switch.set_link(4, true);
    bed.learn();
    for hop in [1, 4] {
        let packet = packet_at(0, None, hop, false);
        bed.receive(0, &packet.frame());
        assert_eq!(bed.sent(), [(hop, at_next_hop(&packet, hop).frame())]);
    }
    bed.assert_empty();
}

#[test]
fn packet_is_dropped_by_empty_tables() {
    let frame = |is_v6| packet_at(0, None, 1, is_v6).frame();
    let cause = Some(PuntCause::Unreachable);
    let cases = vec![
        ("IPv4", 0, frame(false), DropReason::NoRoute, cause),
        ("IPv6", 0, frame(true), DropReason::NoRoute, cause),
    ];
    check(&mut RoutingBed::with(&routing_spec(), Tables::empty()), cases);
}

/// A packet that would not be sent even if its next hop were known does not wait for it.
#[test]
fn packet_that_may_not_be_forwarded_does_not_wait_for_its_next_hop() {
    let mut cases = Vec::new();
    for hop in [201, 202, 6] {
        for is_v6 in [false, true] {
            let frame = Packet { ttl: 1, ..packet_at(0, None, hop, is_v6) }.frame();
            cases.push(("expired", 0, frame, DropReason::TtlExpired, Some(PuntCause::TimeExceeded)));
            let src = if is_v6 { "fe80::77" } else { "169.254.3.4" }.parse().unwrap();
            let frame = Packet { src, ..packet_at(0, None, hop, is_v6) }.frame();
            cases.push(("link-local", 0, frame, DropReason::Martian, None));
        }
    }
    check(&mut RoutingBed::new(), cases);
}

/// A static entry of the forwarding database may name a port outside of its VLAN: no frame leaves there.
#[test]
fn static_entry_with_a_port_outside_of_its_vlan_leads_nowhere() {
    let mut spec = routing_spec();
    spec.fdb.entries.push(holdfast::forward::StaticEntry { vlan: 10, mac: mac(77), port: 4 });
    let frame = |is_v6| Packet { dscp: LOSSLESS_DSCP, ..packet_at(0, None, 6, is_v6) }.frame();
    let (reason, cause) = (DropReason::NeighbourIncomplete, Some(PuntCause::Resolve));
    let cases = vec![("IPv4", 0, frame(false), reason, cause), ("IPv6", 0, frame(true), reason, cause)];
    check(&mut RoutingBed::with(&spec, Tables::default()), cases);
}
