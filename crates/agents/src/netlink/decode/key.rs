//! Keys of entries that cannot be decoded as a whole, for example since a newer kernel has other attributes.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NlasIterator, parse_u32};

use super::{RTM_NEWADDR, RTM_NEWLINK, RTM_NEWNEIGH, RTM_NEWNEXTHOP, RTM_NEWROUTE};

/// Length of `struct rtmsg`: family, length of the destination, and ten more bytes.
const ROUTE_HEADER: usize = 12;
/// Length of `struct nhmsg`.
const NEXT_HOP_HEADER: usize = 8;

const RTA_DST: u16 = 1;
const NHA_ID: u16 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Key of an entry that cannot be decoded: those entries of its table that it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKey {
    /// The link with this index, or all addresses or neighbours on it.
    Link(u32),
    /// The next-hop object with this number.
    NextHop(u32),
    /// The routes to this prefix.
    Route(IpNet),
}

/// Reads the key of an entry of a dump. Returns none if even that is malformed.
#[must_use]
pub fn entry_key(kind: u16, payload: &[u8]) -> Option<EntryKey> {
    match kind {
        // The three headers have the index at the same place.
        RTM_NEWLINK | RTM_NEWADDR | RTM_NEWNEIGH => parse_u32(payload.get(4..8)?).ok().map(EntryKey::Link),
        RTM_NEWNEXTHOP => {
            let id = attribute(payload.get(NEXT_HOP_HEADER..)?, NHA_ID)?;
            parse_u32(&id).ok().map(EntryKey::NextHop)
        }
        RTM_NEWROUTE => route(payload).map(EntryKey::Route),
        _ => None,
    }
}

/// The content of the first attribute of a kind.
fn attribute(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    let mut readable = NlasIterator::new(attributes).map_while(Result::ok);
    readable.find(|attribute| attribute.kind() == kind).map(|found| found.value().to_vec())
}

/// A default route has no destination attribute.
fn route(payload: &[u8]) -> Option<IpNet> {
    let ([family, length, ..], attributes) = (payload.first_chunk::<ROUTE_HEADER>()?, payload.get(ROUTE_HEADER..)?);
    let destination = match (attribute(attributes, RTA_DST), *family) {
        (Some(bytes), AF_INET) => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        (Some(bytes), AF_INET6) => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        (None, AF_INET) if *length == 0 => IpAddr::from([0; 4]),
        (None, AF_INET6) if *length == 0 => IpAddr::from([0; 16]),
        _ => return None,
    };
    IpNet::new(destination, *length).ok().map(|prefix| prefix.trunc())
}
