//! Tests of the decoder: messages made by the other direction of the parser, by hand, and at random.

mod fuzz;

use std::net::{Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{Emitable, NLM_F_CREATE};
use netlink_packet_route::neighbour::NeighbourState;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteLwEnCapType, RouteMessage, RouteNextHop,
    RouteNextHopFlags, RouteProtocol, RouteType, RouteVia,
};

use super::*;
use crate::netlink::model::{GroupMember, KernelNextHop, KernelRoute, NextHopObject, RouteHops, RouteKind};

fn bytes(content: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; content.buffer_len()];
    content.emit(&mut bytes);
    bytes
}

fn decoded(kind: u16, flags: u16, content: &impl Emitable) -> Option<KernelEvent> {
    decode(kind, flags, &bytes(content)).expect("a message that parses")
}

/// A unicast BGP route of the main table to 10.1.0.0/16 or, if `is_ipv6`, to 2001:db8::/32.
fn message(is_ipv6: bool, attributes: Vec<RouteAttribute>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.kind = RouteType::Unicast;
    message.header.protocol = RouteProtocol::Bgp;
    if is_ipv6 {
        message.header.address_family = AddressFamily::Inet6;
        message.header.destination_prefix_length = 32;
        let destination: Ipv6Addr = "2001:db8::".parse().unwrap();
        message.attributes.push(RouteAttribute::Destination(destination.into()));
    } else {
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = 16;
        message.attributes.push(RouteAttribute::Destination(Ipv4Addr::new(10, 1, 0, 0).into()));
    }
    message.attributes.extend(attributes);
    message
}

fn routed(message: &RouteMessage) -> Option<KernelRoute> {
    match decoded(RTM_NEWROUTE, NLM_F_CREATE, message)? {
        KernelEvent::Route { route, .. } => Some(route),
        other => panic!("{other:?}"),
    }
}

fn hop(gateway: Option<&str>, index: u32, weight: u16) -> KernelNextHop {
    let gateway = gateway.map(|text| text.parse().unwrap());
    KernelNextHop { gateway, index, weight, is_dead: false, is_linkdown: false }
}

#[test]
fn route_with_one_next_hop_is_decoded() {
    let gateway = RouteAttribute::Gateway(Ipv4Addr::new(10, 0, 0, 2).into());
    let mut route = message(false, vec![gateway, RouteAttribute::Oif(3), RouteAttribute::Priority(20)]);
    let expected = KernelRoute {
        prefix: "10.1.0.0/16".parse().unwrap(),
        metric: 20,
        protocol: 186,
        kind: RouteKind::Unicast,
        hops: RouteHops::Direct(vec![hop(Some("10.0.0.2"), 3, 1)]),
    };
    assert_eq!(routed(&route), Some(expected.clone()));
    assert_eq!(decoded(RTM_DELROUTE, 0, &route), Some(KernelEvent::RouteGone(expected)));
    route.header.flags = RouteFlags::Dead | RouteFlags::Linkdown;
    let RouteHops::Direct(hops) = routed(&route).unwrap().hops else { panic!() };
    assert!(hops[0].is_dead && hops[0].is_linkdown);
}

#[test]
fn multipath_route_has_weights_and_ipv6_next_hops() {
    let mut first = RouteNextHop::default();
    first.interface_index = 3;
    first.hops = 1;
    first.attributes = vec![RouteAttribute::Gateway(Ipv4Addr::new(10, 0, 0, 2).into())];
    let mut second = RouteNextHop::default();
    second.interface_index = 4;
    second.flags = RouteNextHopFlags::Dead;
    second.attributes = vec![RouteAttribute::Via(RouteVia::Inet6("fe80::2".parse().unwrap()))];
    let route = routed(&message(false, vec![RouteAttribute::MultiPath(vec![first, second])])).unwrap();
    let second = KernelNextHop { is_dead: true, ..hop(Some("fe80::2"), 4, 1) };
    assert_eq!(route.hops, RouteHops::Direct(vec![hop(Some("10.0.0.2"), 3, 2), second]));
}

#[test]
fn number_of_a_next_hop_object_outranks_the_copy_of_its_content() {
    let gateway = RouteAttribute::Gateway(Ipv4Addr::new(10, 0, 0, 2).into());
    let route = routed(&message(false, vec![gateway, RouteAttribute::Oif(3), RouteAttribute::NhId(9)])).unwrap();
    assert_eq!(route.hops, RouteHops::Object(9));
}

#[test]
fn route_on_a_link_has_no_gateway() {
    let route = routed(&message(true, vec![RouteAttribute::Oif(3), RouteAttribute::Priority(256)])).unwrap();
    assert_eq!((route.metric, route.hops), (256, RouteHops::Direct(vec![hop(None, 3, 1)])));
}

#[test]
fn default_route_has_no_destination_attribute() {
    let mut route = message(true, vec![RouteAttribute::Oif(3)]);
    route.attributes.remove(0);
    assert_eq!(routed(&route), None, "a prefix of length 32 needs one");
    route.header.destination_prefix_length = 0;
    assert_eq!(routed(&route).unwrap().prefix.to_string(), "::/0");
}

#[test]
fn route_of_another_table_tos_or_source_is_ignored() {
    let plain = message(false, vec![RouteAttribute::Oif(3)]);
    assert!(routed(&plain).is_some());
    let mut other = plain.clone();
    other.header.table = 255;
    assert_eq!(routed(&other), None, "the local table");
    let other = message(false, vec![RouteAttribute::Oif(3), RouteAttribute::Table(1000)]);
    assert_eq!(routed(&other), None, "a table with a large number");
    let mut other = plain.clone();
    other.header.tos = 16;
    assert_eq!(routed(&other), None);
    let mut other = plain.clone();
    other.header.source_prefix_length = 8;
    assert_eq!(routed(&other), None);
    let mut other = plain.clone();
    other.header.flags = RouteFlags::Cloned;
    assert_eq!(routed(&other), None);
    let mut other = plain;
    other.attributes[0] = RouteAttribute::Destination(RouteAddress::Inet(Ipv4Addr::new(224, 0, 0, 0)));
    assert_eq!(routed(&other), None, "multicast");
    let mut other = message(true, vec![RouteAttribute::Oif(3)]);
    other.header.destination_prefix_length = 64;
    other.attributes[0] = RouteAttribute::Destination(RouteAddress::Inet6("fe80::".parse().unwrap()));
    assert_eq!(routed(&other), None, "link-local");
}

#[test]
fn kinds_without_next_hops_have_none() {
    for (raw, kind) in [
        (RouteType::BlackHole, RouteKind::Blackhole),
        (RouteType::Unreachable, RouteKind::Unreachable),
        (RouteType::Prohibit, RouteKind::Prohibit),
        (RouteType::Local, RouteKind::Local),
        (RouteType::Throw, RouteKind::Other),
    ] {
        // IPv6 names the loopback interface.
        let mut route = message(true, vec![RouteAttribute::Oif(1)]);
        route.header.kind = raw;
        let route = routed(&route).unwrap();
        assert_eq!((route.kind, route.hops), (kind, RouteHops::Direct(Vec::new())));
    }
}

#[test]
fn route_with_encapsulation_is_of_no_supported_kind() {
    let attributes = vec![RouteAttribute::EncapType(RouteLwEnCapType::Mpls), RouteAttribute::Oif(3)];
    assert_eq!(routed(&message(false, attributes)).unwrap().kind, RouteKind::Other);
}

#[test]
fn flags_of_the_header_give_the_mode() {
    use netlink_packet_core::{NLM_F_APPEND, NLM_F_EXCL, NLM_F_REPLACE};
    let content = message(false, vec![RouteAttribute::Oif(3)]);
    for (flags, expected) in [
        (NLM_F_CREATE | NLM_F_EXCL, RouteMode::Exclusive),
        (NLM_F_CREATE | NLM_F_APPEND, RouteMode::Append),
        (NLM_F_CREATE, RouteMode::Prepend),
        (NLM_F_REPLACE, RouteMode::Replace),
    ] {
        let Some(KernelEvent::Route { mode, .. }) = decoded(RTM_NEWROUTE, flags, &content) else { panic!() };
        assert_eq!(mode, expected);
    }
}

#[test]
fn link_is_up_if_enabled_with_carrier_and_operational() {
    let mut message = LinkMessage::default();
    message.header.index = 7;
    message.attributes = vec![
        LinkAttribute::IfName("eth7".to_owned()),
        LinkAttribute::Mtu(9000),
        LinkAttribute::Address(vec![2, 0, 0, 0, 0, 7]),
        LinkAttribute::CarrierChanges(4),
    ];
    let state = |flags| {
        let mut message = message.clone();
        message.header.flags = flags;
        match decoded(RTM_NEWLINK, 0, &message) {
            Some(KernelEvent::Link(state)) => state,
            other => panic!("{other:?}"),
        }
    };
    let up = state(LinkFlags::Up | LinkFlags::Running | LinkFlags::LowerUp);
    let mac = Some(MacAddr([2, 0, 0, 0, 0, 7]));
    let link = Link { index: 7, name: "eth7".to_owned(), is_admin_up: true, is_up: true, mac, mtu: 9000 };
    assert_eq!(up, LinkState { link, has_carrier: true, carrier_changes: 4 });
    let waiting = state(LinkFlags::Up | LinkFlags::LowerUp);
    assert!(waiting.link.is_admin_up && !waiting.link.is_up && waiting.has_carrier);
    let unplugged = state(LinkFlags::Up);
    assert!(unplugged.link.is_admin_up && !unplugged.link.is_up && !unplugged.has_carrier);
    assert!(!state(LinkFlags::LowerUp | LinkFlags::Running).link.is_up);
}

#[test]
fn message_of_a_bridge_about_its_port_is_no_link() {
    let mut message = LinkMessage::default();
    message.header.interface_family = AddressFamily::Bridge;
    assert_eq!(decoded(RTM_NEWLINK, 0, &message), None);
    assert_eq!(decoded(RTM_DELLINK, 0, &message), None);
}

#[test]
fn own_address_is_not_that_of_the_peer() {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = 32;
    message.header.index = 3;
    message.attributes = vec![
        AddressAttribute::Address(Ipv4Addr::new(10, 0, 0, 2).into()),
        AddressAttribute::Local(Ipv4Addr::new(10, 0, 0, 1).into()),
    ];
    let [address, peer] = ["10.0.0.1/32", "10.0.0.2/32"].map(|text| text.parse().unwrap());
    let expected = Address { index: 3, address, peer: Some(peer) };
    assert_eq!(decoded(RTM_NEWADDR, 0, &message), Some(KernelEvent::Address(expected)));
    assert_eq!(decoded(RTM_DELADDR, 0, &message), Some(KernelEvent::AddressGone(expected)));
    message.attributes[0] = AddressAttribute::Address(Ipv4Addr::new(10, 0, 0, 1).into());
    let expected = Address { peer: None, ..expected };
    assert_eq!(decoded(RTM_NEWADDR, 0, &message), Some(KernelEvent::Address(expected)));
}

#[test]
fn neighbour_counts_while_its_mac_address_is_valid() {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = 3;
    let peer = Ipv4Addr::new(10, 0, 0, 2);
    message.attributes = vec![
        NeighbourAttribute::Destination(peer.into()),
        NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 2]),
    ];
    let event = |state| {
        let mut message = message.clone();
        message.header.state = state;
        decoded(RTM_NEWNEIGH, 0, &message)
    };
    let gone = Some(KernelEvent::NeighbourGone { index: 3, address: peer.into() });
    for state in [NeighbourState::Incomplete, NeighbourState::Failed, NeighbourState::None] {
        assert_eq!(event(state), gone, "{state:?}");
    }
    let valid = |is_permanent| {
        let mac = MacAddr([2, 0, 0, 0, 0, 2]);
        Some(KernelEvent::Neighbour(Neighbour { index: 3, address: peer.into(), mac, is_permanent }))
    };
    use NeighbourState::{Delay, Noarp, Permanent, Probe, Reachable, Stale};
    for state in [Reachable, Stale, Delay, Probe, Noarp] {
        assert_eq!(event(state), valid(false), "{state:?}");
    }
    assert_eq!(event(Permanent), valid(true));
    message.header.flags = NeighbourFlags::Proxy;
    assert_eq!(decoded(RTM_NEWNEIGH, 0, &message), None);
}

/// An attribute with its header and padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(4 + value.len()).unwrap().to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A next-hop object with these attributes and flags.
fn object(flags: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 4, 0];
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(attributes.iter().flat_map(|(kind, value)| attribute(*kind, value)));
    bytes
}

fn decoded_object(bytes: &[u8]) -> Option<NextHopObject> {
    match decode(RTM_NEWNEXTHOP, 0, bytes).expect("an object that parses")? {
        KernelEvent::NextHop { id: 9, object } => Some(object),
        other => panic!("{other:?}"),
    }
}

#[test]
fn next_hop_objects_of_all_sorts_are_decoded() {
    let id = 9_u32.to_ne_bytes();
    let link = 3_u32.to_ne_bytes();
    let single = object(0, &[(1, &id), (5, &link), (6, &[10, 0, 0, 2])]);
    assert_eq!(decoded_object(&single), Some(NextHopObject::Hop(hop(Some("10.0.0.2"), 3, 1))));
    let via_ipv6 = object(1, &[(1, &id), (5, &link), (6, &[0xfe; 16])]);
    let expected = hop(Some("fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe"), 3, 1);
    assert_eq!(decoded_object(&via_ipv6), Some(NextHopObject::Hop(KernelNextHop { is_dead: true, ..expected })));
    assert_eq!(decoded_object(&object(0, &[(1, &id), (4, &[])])), Some(NextHopObject::Blackhole));
    assert_eq!(decoded_object(&object(0, &[(1, &id), (7, &[1, 0]), (5, &link)])), Some(NextHopObject::Other));
    assert_eq!(decoded_object(&object(0, &[(1, &id), (11, &[])])), None, "for forwarding databases");
    let members = [7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 4, 1, 0, 0, 6, 0, 0, 0, 255, 255, 0, 0];
    let group = object(0, &[(1, &id), (2, &members)]);
    let weights = [(7, 1), (8, 261), (6, u16::MAX)].map(|(id, weight)| GroupMember { id, weight });
    assert_eq!(decoded_object(&group), Some(NextHopObject::Group(weights.to_vec())));
    assert_eq!(decode(RTM_DELNEXTHOP, 0, &single).unwrap(), Some(KernelEvent::NextHopGone { id: 9 }));
}

#[test]
fn malformed_next_hop_objects_are_errors() {
    let id = 9_u32.to_ne_bytes();
    for (bytes, mistake) in [
        (vec![0; 7], "short header"),
        (object(0, &[]), "no number"),
        (object(0, &[(1, &[1, 2])]), "short number"),
        (object(0, &[(1, &id), (2, &[0; 12])]), "part of a member"),
        (object(0, &[(1, &id), (6, &[0; 5])]), "gateway of 5 bytes"),
        ([object(0, &[(1, &id)]), vec![3, 0, 1, 0]].concat(), "attribute shorter than its header"),
        ([object(0, &[(1, &id)]), vec![200, 0, 1, 0]].concat(), "attribute beyond the end"),
    ] {
        assert!(decode(RTM_NEWNEXTHOP, 0, &bytes).is_err(), "{mistake}");
    }
}

#[test]
fn netlink_message_of_another_kind_is_ignored() {
    assert_eq!(decode(32, 0, &[1, 2, 3]).unwrap(), None, "a rule");
}

#[test]
fn key_of_an_entry_with_a_malformed_attribute_is_read() {
    let mut broken = bytes(&message(false, Vec::new()));
    broken.extend([6, 0, 6, 0, 1, 2, 0, 0]);
    assert!(decode(RTM_NEWROUTE, 0, &broken).is_err(), "a metric of two bytes");
    assert_eq!(entry_key(RTM_NEWROUTE, &broken), Some(EntryKey::Route("10.1.0.0/16".parse().unwrap())));
    let mut default = RouteMessage::default();
    default.header.address_family = AddressFamily::Inet6;
    assert_eq!(entry_key(RTM_NEWROUTE, &bytes(&default)), Some(EntryKey::Route("::/0".parse().unwrap())));
    let mut own = AddressMessage::default();
    own.header.index = 7;
    assert_eq!(entry_key(RTM_NEWADDR, &bytes(&own)), Some(EntryKey::Link(7)));
    let hop = object(0, &[(1, &[9, 0, 0, 0]), (5, &[1])]);
    assert!(decode(RTM_NEWNEXTHOP, 0, &hop).is_err(), "an index of one byte");
    assert_eq!(entry_key(RTM_NEWNEXTHOP, &hop), Some(EntryKey::NextHop(9)));
    for kind in [RTM_NEWLINK, RTM_NEWADDR, RTM_NEWNEIGH, RTM_NEWROUTE, RTM_NEWNEXTHOP] {
        assert_eq!(entry_key(kind, &[2, 24, 0]), None);
    }
}
