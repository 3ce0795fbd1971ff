//! Frames that the router makes and reads: ARP, neighbour discovery, ICMP and ICMPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::icmpv6::NeighborAdvertisementHeader;
use etherparse::{
    ArpEthIpv4Packet, ArpOperation, ArpPacket, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Slice, Icmpv6Type,
    IpNumber, Ipv4Header, Ipv6Header,
};

use super::local::Unanswered;
use super::neighbours::messages::Flags;
use crate::route::single_host;
use crate::wire::MacAddr;
use crate::wire::extensions;
use crate::wire::ip::{Ipv4, Ipv6, has_right_checksum};
use crate::wire::parse::{ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ICMP, ICMPV6};

/// DSCP and ECN of the router's own packets: CS6, network control (RFC 2474, RFC 4594), not ECN-capable.
const NETWORK_CONTROL: u8 = 48 << 2;
/// Time to live of the router's own packets (RFC 1122 section 3.2.1.7 leaves it to the sender).
const TTL: u8 = 64;
/// Hop limit of neighbour discovery: RFC 4861 section 7.1.1, "The IP Hop Limit field has a value of 255".
const DISCOVERY_HOP_LIMIT: u8 = 255;
/// Shortest Ethernet frame without frame check sequence.
const MIN_FRAME: usize = 60;
/// Bytes of the original packet in an ICMP error: RFC 1812 section 4.3.2.3, "SHOULD contain as much of the original
/// datagram as possible without the length of the ICMP datagram exceeding 576 bytes".
const MOST_QUOTED_V4: usize = 576 - 20 - 8;
/// ICMPv6: RFC 4443 section 3.1, "as possible without the ICMPv6 packet exceeding the minimum IPv6 MTU".
const MOST_QUOTED_V6: usize = 1280 - 40 - 8;

/// A message about the address of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discovery {
    /// The neighbour that sent the message; unspecified: it has no address yet.
    pub sender: IpAddr,
    /// Its MAC address, if the message has it.
    pub mac: Option<MacAddr>,
    /// The address that the message asks for, or whose MAC address it announces.
    pub target: IpAddr,
    /// Whether it asks.
    pub is_request: bool,
    /// The flags of a neighbour advertisement.
    pub flags: Option<Flags>,
}

fn ethernet(dst: MacAddr, src: MacAddr, ethertype: u16, parts: &[&[u8]]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(MIN_FRAME.max(14 + parts.iter().map(|part| part.len()).sum::<usize>()));
    frame.extend(dst.0);
    frame.extend(src.0);
    frame.extend(ethertype.to_be_bytes());
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame.resize(frame.len().max(MIN_FRAME), 0);
    frame
}

/// An ARP request from `own` for `target`; to `dst` alone if given, else to all.
pub fn arp_request(own: (MacAddr, Ipv4Addr), target: Ipv4Addr, dst: Option<MacAddr>) -> Vec<u8> {
    arp(ArpOperation::REQUEST, own, (MacAddr([0; 6]), target), dst.unwrap_or(MacAddr::BROADCAST))
}

/// An ARP reply from `own` to `asker`.
pub fn arp_reply(own: (MacAddr, Ipv4Addr), asker: (MacAddr, Ipv4Addr)) -> Vec<u8> {
    arp(ArpOperation::REPLY, own, asker, asker.0)
}

/// A gratuitous ARP request, which tells all hosts the MAC address of `own` (RFC 5227 section 3).
pub fn gratuitous_arp(own: (MacAddr, Ipv4Addr)) -> Vec<u8> {
    arp(ArpOperation::REQUEST, own, (MacAddr([0; 6]), own.1), MacAddr::BROADCAST)
}

fn arp(operation: ArpOperation, own: (MacAddr, Ipv4Addr), other: (MacAddr, Ipv4Addr), dst: MacAddr) -> Vec<u8> {
    let packet = ArpEthIpv4Packet {
        operation,
        sender_mac: own.0.0,
        sender_ipv4: own.1.octets(),
        target_mac: other.0.0,
        target_ipv4: other.1.octets(),
    };
    ethernet(dst, own.0, ETHERTYPE_ARP, &[&packet.to_bytes()])
}

/// Reads ARP from `packet`, which follows the Ethernet header; `None` if it is not valid ARP for IPv4 over Ethernet.
pub fn read_arp(packet: &[u8]) -> Option<Discovery> {
    let arp = ArpPacket::from_slice(packet).ok()?.try_eth_ipv4().ok()?;
    let is_request = match arp.operation {
        ArpOperation::REQUEST => true,
        ArpOperation::REPLY => false,
        _ => return None,
    };
    let mac = MacAddr(arp.sender_mac);
    let sender = arp.sender_ipv4_addr();
    let is_valid = !mac.is_group() && !mac.is_zero() && !sender.is_multicast() && !sender.is_broadcast();
    // An announcement is about its sender. A reply is too: its target is who asked.
    let target = if is_request { arp.target_ipv4_addr() } else { sender };
    is_valid.then_some(Discovery {
        sender: sender.into(),
        mac: Some(mac),
        target: target.into(),
        is_request,
        flags: None,
    })
}

/// The group in which the host with `address` listens for solicitations (RFC 4291 section 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let [ab, cd] = [0xff00 | u16::from(a), u16::from(b) << 8 | u16::from(c)];
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, ab, cd)
}

/// MAC address of an IPv6 group (RFC 2464 section 7).
fn group_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

/// The link-local address of the interface with this MAC address (RFC 4291 appendix A).
#[must_use]
pub fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f))
}

/// A neighbour solicitation from `own` for `target`; to `dst` alone if given, else to the target's group.
pub fn solicitation(own: (MacAddr, Ipv6Addr), target: Ipv6Addr, dst: Option<MacAddr>) -> Vec<u8> {
    let group = solicited_node(target);
    let (to, mac) = dst.map_or((group, group_mac(group)), |mac| (target, mac));
    let body = discovery_body(target, 1, own.0);
    icmpv6((mac, to), own, DISCOVERY_HOP_LIMIT, Icmpv6Type::NeighborSolicitation, &body)
}

/// A neighbour advertisement of `own`; to `asker`, or to all nodes without one.
pub fn advertisement(own: (MacAddr, Ipv6Addr), asker: Option<(MacAddr, Ipv6Addr)>, source: Ipv6Addr) -> Vec<u8> {
    advertise(own, asker, source, true)
}

/// Like [`advertisement`], of an anycast address: RFC 4861 section 7.2.7, "the Override flag SHOULD be set to zero".
pub fn anycast_advertisement(
    own: (MacAddr, Ipv6Addr),
    asker: Option<(MacAddr, Ipv6Addr)>,
    source: Ipv6Addr,
) -> Vec<u8> {
    advertise(own, asker, source, false)
}

fn advertise(
    own: (MacAddr, Ipv6Addr),
    asker: Option<(MacAddr, Ipv6Addr)>,
    source: Ipv6Addr,
    is_override: bool,
) -> Vec<u8> {
    let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let to = asker.unwrap_or((group_mac(all), all));
    let header = NeighborAdvertisementHeader { router: true, solicited: asker.is_some(), r#override: is_override };
    let body = discovery_body(own.1, 2, own.0);
    icmpv6(to, (own.0, source), DISCOVERY_HOP_LIMIT, Icmpv6Type::NeighborAdvertisement(header), &body)
}

/// Target and one option with a link-layer address (RFC 4861 section 4.6.1).
fn discovery_body(target: Ipv6Addr, option: u8, mac: MacAddr) -> [u8; 24] {
    let mut body = [0; 24];
    body[..16].copy_from_slice(&target.octets());
    (body[16], body[17]) = (option, 1);
    body[18..].copy_from_slice(&mac.0);
    body
}

fn icmpv6(dst: (MacAddr, Ipv6Addr), src: (MacAddr, Ipv6Addr), hop_limit: u8, kind: Icmpv6Type, body: &[u8]) -> Vec<u8> {
    let packet = icmpv6_packet(src.1, dst.1, hop_limit, kind, body);
    ethernet(dst.0, src.0, ETHERTYPE_IPV6, &[&packet])
}

/// An ICMPv6 packet without Ethernet header.
pub fn icmpv6_packet(src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8, kind: Icmpv6Type, body: &[u8]) -> Vec<u8> {
    let mut header = Icmpv6Header::new(kind);
    // Bodies are far shorter than 64 KiB, the only reason for an error.
    let _ = header.update_checksum(src.octets(), dst.octets(), body);
    let icmp = header.to_bytes();
    let ip = Ipv6Header {
        traffic_class: NETWORK_CONTROL,
        flow_label: etherparse::Ipv6FlowLabel::ZERO,
        payload_length: (icmp.len() + body.len()) as u16,
        next_header: IpNumber::IPV6_ICMP,
        hop_limit,
        source: src.octets(),
        destination: dst.octets(),
    };
    [&ip.to_bytes()[..], &icmp, body].concat()
}

/// An ICMP packet without Ethernet header. `traffic_class` is its DSCP and ECN.
pub fn icmpv4_packet(src: Ipv4Addr, dst: Ipv4Addr, traffic_class: u8, kind: Icmpv4Type, body: &[u8]) -> Vec<u8> {
    let icmp = Icmpv4Header::with_checksum(kind, body).to_bytes();
    let len = (icmp.len() + body.len()) as u16;
    let mut ip = Ipv4Header::new(len, TTL, IpNumber::ICMP, src.octets(), dst.octets()).unwrap_or_default();
    ip.dscp = etherparse::IpDscp::try_new(traffic_class >> 2).unwrap_or_default();
    ip.header_checksum = ip.calc_header_checksum();
    [&ip.to_bytes()[..], &icmp, body].concat()
}

/// Reads a neighbour solicitation or advertisement from `packet`, which follows the Ethernet header. `None` if it is
/// another message or not valid by RFC 4861 section 7.1: hop limit, checksum, code, length, target and options.
pub fn read_discovery(packet: &[u8]) -> Option<Discovery> {
    let ipv6 = Ipv6::read(packet)?;
    let payload_len = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
    let payload = packet.get(40..)?.get(..payload_len)?;
    if ipv6.next_header != ICMPV6 || ipv6.hop_limit != DISCOVERY_HOP_LIMIT || payload.len() < 24 {
        return None;
    }
    let (header, body) = Icmpv6Header::from_slice(payload).ok()?;
    let flags = match header.icmp_type {
        Icmpv6Type::NeighborSolicitation => None,
        Icmpv6Type::NeighborAdvertisement(header) => {
            Some(Flags { is_solicited: header.solicited, is_override: header.r#override })
        }
        _ => return None,
    };
    let (is_request, is_solicited) = (flags.is_none(), flags.is_some_and(|flags| flags.is_solicited));
    // RFC 4861 section 7.1.2: an advertisement to a group answers nothing.
    if is_solicited && Ipv6Addr::from(ipv6.dst).is_multicast() {
        return None;
    }
    // Reserved fields may have any value, so the checksum is that of the bytes.
    if !Icmpv6Slice::from_slice(payload).ok()?.is_checksum_valid(ipv6.src, ipv6.dst) {
        return None;
    }
    let target = Ipv6Addr::from(*body.first_chunk::<16>()?);
    if target.is_multicast() {
        return None;
    }
    let mac = link_address(&body[16..], if is_request { 1 } else { 2 })?;
    // RFC 4861 section 7.2.4: the answer to a question that went to the neighbour alone may omit its MAC address. Linux
    // does so.
    if !is_request && mac.is_none() && !is_solicited {
        return None;
    }
    let sender = Ipv6Addr::from(ipv6.src);
    let sender = if is_request { sender } else { target };
    Some(Discovery { sender: sender.into(), mac, target: target.into(), is_request, flags })
}

/// The link-layer address option `wanted` of a discovery message; `Some(None)` without one. `None` if an option has
/// length zero or is longer than the rest: such a message is invalid as a whole.
fn link_address(mut options: &[u8], wanted: u8) -> Option<Option<MacAddr>> {
    let mut found = None;
    while let [kind, units, ..] = *options {
        let len = usize::from(units) * 8;
        let option = options.get(..len).filter(|option| !option.is_empty())?;
        if kind == wanted && len == 8 {
            let mac = MacAddr(*option[2..].first_chunk()?);
            found = Some(mac).filter(|mac| !mac.is_group() && !mac.is_zero());
        }
        options = &options[len..];
    }
    Some(found)
}

/// An ICMP error about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpError {
    /// The time to live ended.
    TimeExceeded,
    /// No route leads to the destination.
    NoRoute,
    /// The destination does not answer.
    HostUnreachable,
    /// The packet is longer than this MTU.
    TooBig(u16),
}

/// Whether an error may be sent about the IPv4 packet `packet`.
///
/// RFC 1122 section 3.2.2 and RFC 1812 section 4.3.2.7: none about an ICMP error, a packet to a group or broadcast
/// address, a source that is no single host, and a fragment other than the first. A frame to a group address of the
/// link is not routed.
pub fn may_answer_v4(packet: &[u8]) -> bool {
    let Some(ipv4) = Ipv4::read(packet) else { return false };
    let Some(header) = packet.first_chunk() else { return false };
    let offset = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff;
    let message = packet.get(usize::from(ipv4.header_len)..total_len_v4(packet)).unwrap_or_default();
    // Types 3, 4, 5, 11 and 12 are errors; queries and answers are not. A message that ends before its type may be one.
    let may_be_error = ipv4.protocol == ICMP && message.first().is_none_or(|kind| matches!(kind, 3 | 4 | 5 | 11 | 12));
    let is_host = |address: u32| single_host::is_possible(Ipv4Addr::from_bits(address).into());
    let is_between_hosts = is_host(ipv4.src) && is_host(ipv4.dst);
    !ipv4.has_options() && has_right_checksum(header) && offset == 0 && !may_be_error && is_between_hosts
}

/// Whether an error may be sent about the IPv6 packet `packet` (RFC 4443 section 2.4 e).
///
/// A packet that does not show what it is may be an ICMPv6 error, about which there must be none. Such are the later
/// fragments of ICMPv6, and packets with extension headers that are cut short or too many.
pub fn may_answer_v6(packet: &[u8], error: IcmpError) -> bool {
    let Some(ipv6) = Ipv6::read(packet) else { return false };
    let [src, dst] = [ipv6.src, ipv6.dst].map(Ipv6Addr::from);
    // Types below 128 are errors; 137 is a redirect.
    let may_be_error = match extensions::shown(packet) {
        Some((ICMPV6, message)) => message.first().is_none_or(|&kind| kind < 128 || kind == 137),
        Some(_) => false,
        None => true,
    };
    // Path MTU discovery works for groups too.
    let may_be_group = matches!(error, IcmpError::TooBig(_));
    !may_be_error && single_host::is_possible(src.into()) && (may_be_group || !dst.is_multicast())
}

/// The ICMP error `error` about `packet`, from `own`, without Ethernet header.
pub fn icmp_error_v4(own: Ipv4Addr, packet: &[u8], error: IcmpError) -> Vec<u8> {
    use etherparse::icmpv4::{DestUnreachableHeader, TimeExceededCode};
    let kind = match error {
        IcmpError::TimeExceeded => Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit),
        IcmpError::NoRoute => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Network),
        IcmpError::HostUnreachable => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host),
        IcmpError::TooBig(mtu) => {
            let needed = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
            Icmpv4Type::DestinationUnreachable(needed)
        }
    };
    let to = Ipv4::read(packet).map_or(Ipv4Addr::UNSPECIFIED, |ipv4| Ipv4Addr::from_bits(ipv4.src));
    icmpv4_packet(own, to, NETWORK_CONTROL, kind, quoted(packet, total_len_v4(packet), MOST_QUOTED_V4))
}

/// The ICMPv6 error `error` about `packet`, from `own`, without Ethernet header.
pub fn icmp_error_v6(own: Ipv6Addr, packet: &[u8], error: IcmpError) -> Vec<u8> {
    use etherparse::icmpv6::{DestUnreachableCode, TimeExceededCode};
    let kind = match error {
        IcmpError::TimeExceeded => Icmpv6Type::TimeExceeded(TimeExceededCode::HopLimitExceeded),
        IcmpError::NoRoute => Icmpv6Type::DestinationUnreachable(DestUnreachableCode::NoRoute),
        IcmpError::HostUnreachable => Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Address),
        IcmpError::TooBig(mtu) => Icmpv6Type::PacketTooBig { mtu: mtu.into() },
    };
    let to = Ipv6::read(packet).map_or(Ipv6Addr::UNSPECIFIED, |ipv6| Ipv6Addr::from(ipv6.src));
    let len = 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]));
    icmpv6_packet(own, to, TTL, kind, quoted(packet, len, MOST_QUOTED_V6))
}

/// The first `most` bytes of `packet`, whose length is `len`: behind it there may be padding.
fn quoted(packet: &[u8], len: usize, most: usize) -> &[u8] {
    &packet[..packet.len().min(len).min(most)]
}

fn total_len_v4(packet: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([packet[2], packet[3]]))
}

/// The answer of an own address to an echo request without IP options, without Ethernet header.
///
/// # Errors
/// If `packet` is another message or defective.
pub fn echo_reply_v4(packet: &[u8]) -> Result<Vec<u8>, Unanswered> {
    let ipv4 = Ipv4::read(packet).ok_or(Unanswered::Malformed)?;
    let payload = packet.get(usize::from(ipv4.header_len)..total_len_v4(packet)).ok_or(Unanswered::Malformed)?;
    let (header, body) = Icmpv4Header::from_slice(payload).map_err(|_| Unanswered::Malformed)?;
    let Icmpv4Type::EchoRequest(echo) = header.icmp_type else { return Err(Unanswered::Protocol) };
    if header.icmp_type.calc_checksum(body) != header.checksum {
        return Err(Unanswered::Malformed);
    }
    let [src, dst] = [ipv4.src, ipv4.dst].map(Ipv4Addr::from_bits);
    Ok(icmpv4_packet(dst, src, packet[1] & !3, Icmpv4Type::EchoReply(echo), body))
}

/// The answer from `own` to the ICMPv6 echo request `message` of `packet`, like [`echo_reply_v4`].
///
/// # Errors
/// If it is another message or defective.
pub fn echo_reply_v6(packet: &[u8], message: &[u8], own: Ipv6Addr) -> Result<Vec<u8>, Unanswered> {
    let ipv6 = Ipv6::read(packet).ok_or(Unanswered::Malformed)?;
    let (header, body) = Icmpv6Header::from_slice(message).map_err(|_| Unanswered::Malformed)?;
    let Icmpv6Type::EchoRequest(echo) = header.icmp_type else { return Err(Unanswered::Protocol) };
    if header.icmp_type.calc_checksum(ipv6.src, ipv6.dst, body) != Ok(header.checksum) {
        return Err(Unanswered::Malformed);
    }
    Ok(icmpv6_packet(own, ipv6.src.into(), TTL, Icmpv6Type::EchoReply(echo), body))
}

/// `packet` in a frame from `own` to `dst`.
pub fn ip_frame(dst: MacAddr, own: MacAddr, packet: &[u8]) -> Vec<u8> {
    let ethertype = if packet.first().is_some_and(|byte| byte >> 4 == 6) { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 };
    ethernet(dst, own, ethertype, &[packet])
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
