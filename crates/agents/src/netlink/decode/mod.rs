//! Netlink messages, decoded to events.
//!
//! `netlink-packet-route` parses links, addresses, neighbours and routes. It has no next-hop objects, so `next_hop.rs`
//! parses them.

mod key;
mod next_hop;
mod route;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{DecodeError, NLM_F_APPEND, NLM_F_EXCL, NLM_F_REPLACE, ParseableParametrized};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

pub use self::key::{EntryKey, entry_key};
use super::model::{Address, KernelEvent, Link, LinkState, Neighbour, RouteMode};
use crate::wire::MacAddr;

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;

/// States in which the kernel sends to a neighbour's MAC address (`NUD_VALID`).
const NUD_VALID: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | NUD_PERMANENT;
const NUD_PERMANENT: u16 = 0x80;

/// Decodes the payload of a message of type `kind` with header flags `flags`. Returns none if the message does not
/// concern the mirror, for example a route of another table.
///
/// # Errors
/// If the payload is malformed.
pub fn decode(kind: u16, flags: u16, payload: &[u8]) -> Result<Option<KernelEvent>, DecodeError> {
    match kind {
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => next_hop::decode(kind == RTM_DELNEXTHOP, payload),
        RTM_NEWLINK | RTM_DELLINK | RTM_NEWADDR | RTM_DELADDR | RTM_NEWROUTE | RTM_DELROUTE | RTM_NEWNEIGH
        | RTM_DELNEIGH => {
            let message = RouteNetlinkMessage::parse_with_param(payload, kind)?;
            Ok(event(message, flags))
        }
        _ => Ok(None),
    }
}

fn event(message: RouteNetlinkMessage, flags: u16) -> Option<KernelEvent> {
    match message {
        RouteNetlinkMessage::NewLink(message) => link(&message).map(KernelEvent::Link),
        RouteNetlinkMessage::DelLink(message) => {
            let event = KernelEvent::LinkGone { index: message.header.index };
            is_link(&message).then_some(event)
        }
        RouteNetlinkMessage::NewAddress(message) => address(&message).map(KernelEvent::Address),
        RouteNetlinkMessage::DelAddress(message) => address(&message).map(KernelEvent::AddressGone),
        RouteNetlinkMessage::NewNeighbour(message) => neighbour(&message),
        RouteNetlinkMessage::DelNeighbour(message) => {
            let (index, address) = neighbour_key(&message)?;
            Some(KernelEvent::NeighbourGone { index, address })
        }
        RouteNetlinkMessage::NewRoute(message) => {
            Some(KernelEvent::Route { route: route::decode(&message)?, mode: mode(flags) })
        }
        RouteNetlinkMessage::DelRoute(message) => route::decode(&message).map(KernelEvent::RouteGone),
        _ => None,
    }
}

/// The kernel keeps `NLM_F_EXCL` in a notification if the prefix had no other route of that metric.
fn mode(flags: u16) -> RouteMode {
    if flags & NLM_F_REPLACE != 0 {
        RouteMode::Replace
    } else if flags & NLM_F_APPEND != 0 {
        RouteMode::Append
    } else if flags & NLM_F_EXCL != 0 {
        RouteMode::Exclusive
    } else {
        RouteMode::Prepend
    }
}

/// Whether the message is about a link itself. Bridges and IPv6 send messages of the same type about their ports.
fn is_link(message: &LinkMessage) -> bool {
    message.header.interface_family == AddressFamily::Unspec
}

fn link(message: &LinkMessage) -> Option<LinkState> {
    if !is_link(message) {
        return None;
    }
    let flags = message.header.flags;
    let is_admin_up = flags.contains(LinkFlags::Up);
    let is_up = flags.contains(LinkFlags::Up | LinkFlags::Running | LinkFlags::LowerUp);
    let link = Link { index: message.header.index, name: String::new(), is_admin_up, is_up, mac: None, mtu: 0 };
    let has_carrier = flags.intersects(LinkFlags::Running | LinkFlags::LowerUp);
    let mut state = LinkState { link, has_carrier, carrier_changes: 0 };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => state.link.name.clone_from(name),
            LinkAttribute::Address(bytes) => state.link.mac = mac(bytes),
            LinkAttribute::Mtu(mtu) => state.link.mtu = *mtu,
            LinkAttribute::CarrierChanges(changes) => state.carrier_changes = *changes,
            _ => {}
        }
    }
    Some(state)
}

fn mac(bytes: &[u8]) -> Option<MacAddr> {
    bytes.try_into().ok().map(MacAddr)
}

/// The own address is `IFA_LOCAL`. IPv6 leaves it out if it equals `IFA_ADDRESS`, which else is the peer's address.
fn address(message: &AddressMessage) -> Option<Address> {
    let find = |pick: fn(&AddressAttribute) -> Option<IpAddr>| message.attributes.iter().find_map(pick);
    let local = find(|attribute| if let AddressAttribute::Local(own) = attribute { Some(*own) } else { None });
    let any = || find(|attribute| if let AddressAttribute::Address(own) = attribute { Some(*own) } else { None });
    let own = local.or_else(any)?;
    if message.header.family != family(own) {
        return None;
    }
    let network = |address| IpNet::new(address, message.header.prefix_len).ok();
    let peer = any().filter(|peer| *peer != own && peer.is_ipv4() == own.is_ipv4()).and_then(network);
    Some(Address { index: message.header.index, address: network(own)?, peer })
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn neighbour(message: &NeighbourMessage) -> Option<KernelEvent> {
    let (index, address) = neighbour_key(message)?;
    let mac = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => mac(bytes),
        _ => None,
    });
    let state = u16::from(message.header.state);
    Some(match mac.filter(|_| state & NUD_VALID != 0) {
        Some(mac) => {
            KernelEvent::Neighbour(Neighbour { index, address, mac, is_permanent: state & NUD_PERMANENT != 0 })
        }
        None => KernelEvent::NeighbourGone { index, address },
    })
}

/// Index and address of a neighbour. Returns none for proxies, forwarding databases of bridges, and addresses that no
/// packet is routed to.
fn neighbour_key(message: &NeighbourMessage) -> Option<(u32, IpAddr)> {
    let header = &message.header;
    let address = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    })?;
    let is_limited_broadcast = address == IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
    let is_host =
        !address.is_multicast() && !address.is_unspecified() && !address.is_loopback() && !is_limited_broadcast;
    (is_host && !header.flags.contains(NeighbourFlags::Proxy)).then_some((header.ifindex, address))
}
