//! Routes of the main table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags, RouteType,
    RouteVia,
};

use crate::netlink::model::{KernelNextHop, KernelRoute, RouteHops, RouteKind};

/// Decodes a route. Returns none if the mirror ignores it: a route of another table, of a type of service or a source
/// prefix, of multicast or link-local destinations, or a cached one.
pub fn decode(message: &RouteMessage) -> Option<KernelRoute> {
    let header = &message.header;
    if table(message) != u32::from(RouteHeader::RT_TABLE_MAIN)
        || header.tos != 0
        || header.source_prefix_length != 0
        || header.flags.contains(RouteFlags::Cloned)
    {
        return None;
    }
    let prefix = prefix(message)?;
    if prefix.addr().is_multicast() || is_link_local(prefix) {
        return None;
    }
    let metric = find(message, |attribute| match attribute {
        RouteAttribute::Priority(metric) => Some(*metric),
        _ => None,
    });
    let object = find(message, |attribute| match attribute {
        RouteAttribute::NhId(id) if *id != 0 => Some(*id),
        _ => None,
    });
    let has_encapsulation = has_encapsulation(&message.attributes)
        || next_hops(message).iter().any(|hop| has_encapsulation(&hop.attributes));
    let kind = if has_encapsulation { RouteKind::Other } else { kind(header.kind) };
    let hops = match object {
        Some(id) => RouteHops::Object(id),
        None if kind == RouteKind::Unicast => RouteHops::Direct(direct(message)),
        None => RouteHops::Direct(Vec::new()),
    };
    let protocol = u8::from(header.protocol);
    Some(KernelRoute { prefix, metric: metric.unwrap_or(0), protocol, kind, hops })
}

fn find<T>(message: &RouteMessage, pick: impl Fn(&RouteAttribute) -> Option<T>) -> Option<T> {
    message.attributes.iter().find_map(pick)
}

/// The attribute holds numbers above 255, for which the header has no room.
fn table(message: &RouteMessage) -> u32 {
    let table = find(message, |attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    table.unwrap_or(u32::from(message.header.table))
}

/// A default route has no destination attribute.
fn prefix(message: &RouteMessage) -> Option<IpNet> {
    let unspecified: IpAddr = match message.header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let destination = find(message, |attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    let length = message.header.destination_prefix_length;
    let destination = destination.or((length == 0).then_some(unspecified))?;
    IpNet::new(destination, length).ok().map(|prefix| prefix.trunc())
}

/// Whether the prefix is in fe80::/10, whose packets no router forwards.
fn is_link_local(prefix: IpNet) -> bool {
    match prefix.addr() {
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80 && prefix.prefix_len() >= 10,
        IpAddr::V4(_) => false,
    }
}

fn kind(kind: RouteType) -> RouteKind {
    match kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::BlackHole => RouteKind::Blackhole,
        RouteType::Unreachable => RouteKind::Unreachable,
        RouteType::Prohibit => RouteKind::Prohibit,
        RouteType::Local => RouteKind::Local,
        _ => RouteKind::Other,
    }
}

fn has_encapsulation(attributes: &[RouteAttribute]) -> bool {
    attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::Encap(_) | RouteAttribute::EncapType(_)))
}

fn next_hops(message: &RouteMessage) -> &[RouteNextHop] {
    let hops = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::MultiPath(hops) => Some(hops.as_slice()),
        _ => None,
    });
    hops.unwrap_or_default()
}

/// Next hops in the route itself: several in `RTA_MULTIPATH`, or one in attributes of the route.
fn direct(message: &RouteMessage) -> Vec<KernelNextHop> {
    let several = next_hops(message);
    if several.is_empty() {
        let index = find(message, |attribute| match attribute {
            RouteAttribute::Oif(index) => Some(*index),
            _ => None,
        });
        let has = |flag| message.header.flags.contains(flag);
        let (is_dead, is_linkdown) = (has(RouteFlags::Dead), has(RouteFlags::Linkdown));
        let hop = index.map(|index| next_hop(&message.attributes, index, 1, is_dead, is_linkdown));
        return hop.into_iter().collect();
    }
    let hop = |hop: &RouteNextHop| {
        let has = |flag| hop.flags.contains(flag);
        let (is_dead, is_linkdown) = (has(RouteNextHopFlags::Dead), has(RouteNextHopFlags::Linkdown));
        next_hop(&hop.attributes, hop.interface_index, u16::from(hop.hops) + 1, is_dead, is_linkdown)
    };
    several.iter().map(hop).collect()
}

fn next_hop(attributes: &[RouteAttribute], index: u32, weight: u16, is_dead: bool, is_linkdown: bool) -> KernelNextHop {
    let gateway = attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(address)) | RouteAttribute::Via(RouteVia::Inet(address)) => {
            Some(IpAddr::V4(*address))
        }
        RouteAttribute::Gateway(RouteAddress::Inet6(address)) | RouteAttribute::Via(RouteVia::Inet6(address)) => {
            Some(IpAddr::V6(*address))
        }
        _ => None,
    });
    KernelNextHop { gateway, index, weight, is_dead, is_linkdown }
}
