//! Sources of packets: addresses that no received packet may come from.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::dataplane::ingress::punt::Exception;
use crate::plan::drops::DropReason;
use crate::route::{RouteTable, single_host};
use crate::wire::ip;

/// Whether an IPv6 source needs [`check_v6`]: a multicast or link-local address, one that begins with 64 zero bits, or
/// one of the switch.
#[inline]
pub(super) fn is_suspect_v6(table: &RouteTable, src: [u8; 16]) -> bool {
    (src[0] == 0xff) || ip::is_link_local_v6(src) || (src[..8] == [0; 8]) || table.sources.may_be_own_v6(src)
}

/// Refuses a packet with an IPv4 source that no host may route from.
#[cold]
pub(super) fn check_v4(table: &RouteTable, src: u32) -> Result<(), Exception> {
    let address = Ipv4Addr::from_bits(src);
    // RFC 1812 section 5.3.7: "A router SHOULD NOT forward [...] any packet that has an invalid IP source address".
    if !single_host::is_possible(address.into()) || table.is_broadcast(address.into()) {
        return Err(Exception::Drop(DropReason::Martian));
    }
    if table.is_own(address.into()) { Err(Exception::Drop(DropReason::OwnSource)) } else { Ok(()) }
}

/// Whether a router forwards from an IPv4 source.
#[inline(never)]
pub(super) fn is_good_v4(table: &RouteTable, src: u32) -> bool {
    check_v4(table, src).is_ok() && !ip::is_link_local_v4(src)
}

/// Refuses a packet with an IPv6 source that no host may route from.
#[cold]
pub(super) fn check_v6(table: &RouteTable, src: [u8; 16]) -> Result<(), Exception> {
    let address = Ipv6Addr::from(src);
    if !single_host::is_possible(address.into()) {
        return Err(Exception::Drop(DropReason::Martian));
    }
    if table.is_own(address.into()) { Err(Exception::Drop(DropReason::OwnSource)) } else { Ok(()) }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
