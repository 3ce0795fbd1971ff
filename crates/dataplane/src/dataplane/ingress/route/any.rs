//! Packets of any kind, one by one: tagged ones, IPv6, fragments, and those that are not routed.

use super::next_hop::{EgressPort, Limits, NextHops};
use super::source;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::punt::Exception;
use crate::io::Packet;
use crate::plan::drops::DropReason;
use crate::route::{Adjacency, FoundGroup, RouteTable};
use crate::wire::ip::{self, Ipv4, Ipv6};
use crate::wire::parse::L3;
use crate::wire::{parse, vlan_tag};

/// The destination of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Destination {
    V4(u32),
    /// The destination of an IPv4 fragment.
    Fragment(u32),
    V6([u8; 16]),
}

pub(super) const NOT_ROUTABLE: Exception = Exception::Drop(DropReason::NotRoutable);

/// Checks the headers of a frame to the router. Returns its destination.
#[inline]
pub(super) fn read(table: &RouteTable, frame: &impl Packet, meta: &Meta) -> Result<Destination, Exception> {
    let packet = frame.bytes().get(usize::from(meta.desc.l3_offset())..).unwrap_or_default();
    // The rewrite stage handles one tag.
    if meta.class_bits.tags() > 1 {
        return Err(NOT_ROUTABLE);
    }
    if meta.class_bits.has_l4_error() {
        return Err(l4_error(frame.bytes()));
    }
    match meta.class_bits.l3() {
        L3::V4 => read_v4(table, packet),
        L3::V6 => {
            let ipv6 = Ipv6::read(packet).ok_or(NOT_ROUTABLE)?;
            if source::is_suspect_v6(table, ipv6.src) {
                source::check_v6(table, ipv6.src)?;
            }
            Ok(Destination::V6(ipv6.dst))
        }
        L3::Other => Err(Exception::Local),
    }
}

/// The fate of a packet whose transport header has a defect.
#[cold]
fn l4_error(frame: &[u8]) -> Exception {
    let error = parse(frame).ok().and_then(|headers| headers.l4_error);
    error.map_or(NOT_ROUTABLE, |error| Exception::Drop(error.into()))
}

#[inline]
fn read_v4(table: &RouteTable, packet: &[u8]) -> Result<Destination, Exception> {
    let ipv4 = Ipv4::read(packet).ok_or(NOT_ROUTABLE)?;
    // RFC 7126 section 1: "routers, security gateways, and firewalls" often drop packets with options, which cost far
    // more than others. This router drops all of them.
    if ipv4.has_options() {
        return Err(Exception::Drop(DropReason::Ipv4Options));
    }
    if !packet.first_chunk().is_some_and(ip::has_right_checksum) {
        return Err(Exception::Drop(DropReason::Ipv4Checksum));
    }
    if table.sources.suspects_v4(ipv4.src) {
        source::check_v4(table, ipv4.src)?;
    }
    Ok(if ipv4.is_fragment() { Destination::Fragment(ipv4.dst) } else { Destination::V4(ipv4.dst) })
}

/// Sends a packet by a next hop of `group`. Returns its egress port.
#[inline]
pub(super) fn send(
    hops: &mut NextHops<'_, '_>,
    frame: &mut impl Packet,
    meta: &mut Meta,
    group: FoundGroup,
) -> Result<EgressPort, Exception> {
    let (ethernet, packet) =
        frame.bytes_mut().split_at_mut_checked(usize::from(meta.desc.l3_offset())).ok_or(NOT_ROUTABLE)?;
    let addresses = ethernet.first_chunk_mut().ok_or(NOT_ROUTABLE)?;
    let (adjacency, egress) = match meta.class_bits.l3() {
        L3::V4 => route_v4(hops, packet, meta, group)?,
        _ => route_v6(hops, packet, meta, group)?,
    };
    hops.direct.send(addresses, meta, adjacency, egress.number);
    if meta.class_bits.tags() > 0 {
        // A new tag: the TPID, PCP and DEI that came are those of another network. Its PCP is the class of the packet,
        // whose DSCP stays.
        let vlan = adjacency.vlan;
        vlan_tag::replace(frame, u16::from(meta.class_bits.class()) << 13 | vlan);
        hops.note_tags(vlan, true);
    }
    Ok(egress)
}

/// Chooses a next hop of `group` for an IPv4 packet, and takes a hop from its TTL.
#[inline]
fn route_v4<'a>(
    hops: &mut NextHops<'a, '_>,
    packet: &mut [u8],
    meta: &Meta,
    group: FoundGroup,
) -> Result<(&'a Adjacency, EgressPort), Exception> {
    let ipv4 = Ipv4::read(packet).ok_or(NOT_ROUTABLE)?;
    let hash = || hops.table.hash.v4(ipv4.src, ipv4.dst, ipv4.protocol, ipv4.ports(packet));
    let hop = hops.choose(group, hash)?;
    let egress = hops.egress(hop, meta, Limits { hops: ipv4.ttl, dont_fragment: ipv4.dont_fragment() })?;
    // RFC 3927 section 2.6.2: a router "MUST NOT forward" packets with a link-local source.
    if ip::is_link_local_v4(ipv4.src) {
        return Err(Exception::Drop(DropReason::Martian));
    }
    ip::decrement_ttl(packet.first_chunk_mut().ok_or(NOT_ROUTABLE)?);
    Ok((hop, egress))
}

/// Chooses a next hop of `group` for an IPv6 packet, and takes a hop from its hop limit.
#[inline]
fn route_v6<'a>(
    hops: &mut NextHops<'a, '_>,
    packet: &mut [u8],
    meta: &Meta,
    group: FoundGroup,
) -> Result<(&'a Adjacency, EgressPort), Exception> {
    let ipv6 = Ipv6::read(packet).ok_or(NOT_ROUTABLE)?;
    let hash = || hops.table.hash.v6(ipv6.src, ipv6.dst, ipv6.next_header, ipv6.ports(packet), ipv6.label);
    let hop = hops.choose(group, hash)?;
    // RFC 8200 section 4.5: only the source fragments a packet.
    let egress = hops.egress(hop, meta, Limits { hops: ipv6.hop_limit, dont_fragment: true })?;
    // RFC 4291 section 2.5.6: "Routers must not forward any packets with Link-Local source or destination addresses to
    // other links."
    if ip::is_link_local_v6(ipv6.src) {
        return Err(Exception::Drop(DropReason::Martian));
    }
    ip::decrement_hop_limit(packet.first_chunk_mut().ok_or(NOT_ROUTABLE)?);
    Ok((hop, egress))
}
