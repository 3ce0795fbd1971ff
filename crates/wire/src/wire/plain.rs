//! The plain frame: UDP or TCP, over IPv4 without options or IPv6 without extension headers. It is complete, not a
//! fragment, and has at most one VLAN tag.
//!
//! Plain frames include RoCE classified by PCP, RoCE over IPv6 and most other traffic. [`parse()`](super::parse())
//! reads all other frames, malformed ones included, and returns the same fields for a plain frame.

use super::parse::{
    ETHERNET_LEN, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_SVLAN, ETHERTYPE_VLAN, IPV4_LEN, IPV6_LEN, L3, TCP,
    TCP_LEN, UDP, UDP_LEN,
};
use super::usual::Usual;
use super::vlan_tag::TAG_LEN;

/// Header fields of a plain frame that the switch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// Addresses and traffic class.
    pub usual: Usual,
    /// IPv4 or IPv6.
    pub l3: L3,
    /// Offset of the network header.
    pub l3_offset: u8,
    /// Whether the frame has a tag.
    pub is_tagged: bool,
    /// VLAN id of the tag; zero for a priority tag or without a tag.
    pub vlan: u16,
    /// PCP of the tag; zero without a tag.
    pub pcp: u8,
}

/// Reads `frame`, which starts with the destination address and has no frame check sequence. Returns `None` if the
/// frame is not plain.
///
/// Always inline: the caller then packs each field into a word of metadata directly, without a copy through memory.
#[inline(always)]
#[must_use]
pub fn parse_plain(frame: &[u8]) -> Option<Plain> {
    let first: &[u8; ETHERNET_LEN + TAG_LEN] = frame.first_chunk()?;
    let quad = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| first[at + byte]));
    let outer = u16_at(first, 12);
    let is_tagged = outer == ETHERTYPE_VLAN || outer == ETHERTYPE_SVLAN;
    let (ethertype, tci, l3_offset) = if is_tagged {
        (u16_at(first, 16), u16_at(first, 14), ETHERNET_LEN + TAG_LEN)
    } else {
        (outer, 0, ETHERNET_LEN)
    };
    let packet = &frame[l3_offset..];
    let (l3, traffic_class) = match ethertype {
        ETHERTYPE_IPV4 => (L3::V4, ipv4(packet)?),
        ETHERTYPE_IPV6 => (L3::V6, ipv6(packet)?),
        _ => return None,
    };
    let usual = Usual { dst: quad(0) >> 16 << 16, src: quad(6) >> 16 << 16, traffic_class };
    Some(Plain { usual, l3, l3_offset: l3_offset as u8, is_tagged, vlan: tci & 0xfff, pcp: (tci >> 13) as u8 })
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns DSCP and ECN of a plain IPv4 `packet` as one byte. Returns `None` if the packet is not plain.
#[inline]
fn ipv4(packet: &[u8]) -> Option<u8> {
    let headers: &[u8; IPV4_LEN + TCP_LEN] = packet.first_chunk()?;
    let total_len = usize::from(u16_at(headers, 2));
    // Version 4, a header of five words, no more-fragments flag and no fragment offset.
    let is_plain = (headers[0] == 0x45) & (u16_at(headers, 6) & 0x3fff == 0) & (total_len <= packet.len());
    let (udp_len, tcp_words) = (u16_at(headers, IPV4_LEN + 4), headers[IPV4_LEN + 12]);
    (is_plain && is_segment(headers[9], udp_len, tcp_words, IPV4_LEN, total_len)).then_some(headers[1])
}

/// Returns DSCP and ECN of a plain IPv6 `packet` as one byte. Returns `None` if the packet is not plain.
#[inline]
fn ipv6(packet: &[u8]) -> Option<u8> {
    let headers: &[u8; IPV6_LEN + UDP_LEN] = packet.first_chunk()?;
    let total_len = IPV6_LEN + usize::from(u16_at(headers, 4));
    let is_plain = (headers[0] >> 4 == 6) & (total_len <= packet.len());
    // The byte with the header length of TCP. A packet that ends before it cannot hold a TCP header, and zero is too
    // small.
    let (udp_len, tcp_words) = (u16_at(headers, IPV6_LEN + 4), packet.get(IPV6_LEN + 12).copied().unwrap_or(0));
    (is_plain && is_segment(headers[6], udp_len, tcp_words, IPV6_LEN, total_len))
        .then_some(headers[0] << 4 | headers[1] >> 4)
}

/// Whether a packet of `total_len` bytes has room for its UDP or TCP segment behind a network header of `l3_len` bytes.
/// `udp_len` is the length field of UDP; the upper half of `tcp_words` is the header length of TCP in words.
#[inline]
pub(super) fn is_segment(protocol: u8, udp_len: u16, tcp_words: u8, l3_len: usize, total_len: usize) -> bool {
    let (len, least) = match protocol {
        UDP => (usize::from(udp_len), UDP_LEN),
        TCP => (usize::from(tcp_words >> 4) * 4, TCP_LEN),
        _ => return false,
    };
    least <= len && l3_len + len <= total_len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{MacAddr, parse};
    use proptest::prelude::*;

    /// Builds a frame with this TCI, IP version and protocol.
    fn frame(tci: Option<u16>, version: u8, protocol: u8) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..12).collect();
        if let Some(tci) = tci {
            frame.extend(ETHERTYPE_VLAN.to_be_bytes());
            frame.extend(tci.to_be_bytes());
        }
        if version == 4 {
            frame.extend([8, 0, 0x45, 0x6a, 0, 60, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend([0x86, 0xdd, 0x66, 0xa0, 0, 0, 0, 40, protocol, 64]);
            frame.extend([0x20; 32]);
        }
        let mut segment = [0; 40];
        if protocol == UDP {
            segment[..6].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, 40]);
        } else {
            segment[12] = 0x80;
        }
        frame.extend(segment);
        frame
    }

    fn kinds() -> impl Iterator<Item = (Option<u16>, u8, u8)> {
        let tcis = [None, Some(0), Some(3 << 13 | 10)];
        let versions = [4, 6];
        tcis.into_iter().flat_map(move |tci| {
            versions
                .into_iter()
                .flat_map(move |version| [UDP, TCP].into_iter().map(move |protocol| (tci, version, protocol)))
        })
    }

    /// Asserts that both parsers return the same fields for a plain frame.
    fn assert_same(plain: Plain, frame: &[u8]) {
        let headers = parse(frame).expect("a plain frame is not malformed");
        assert_eq!(
            [plain.usual.dst, plain.usual.src].map(|word| MacAddr::from_number(word >> 16)),
            [headers.dst, headers.src]
        );
        assert_eq!((plain.usual.traffic_class, plain.l3), (headers.traffic_class, headers.l3));
        assert_eq!((plain.l3_offset, u8::from(plain.is_tagged)), (headers.l3_offset, headers.tags));
        assert_eq!((plain.vlan, plain.pcp), (headers.vlan().unwrap_or(0), headers.pcp().unwrap_or(0)));
    }

    #[test]
    fn plain_parser_accepts_every_kind_of_plain_frame() {
        for (tci, version, protocol) in kinds() {
            let mut frame = frame(tci, version, protocol);
            let plain = parse_plain(&frame).unwrap_or_else(|| panic!("{tci:?}, IPv{version}, protocol {protocol}"));
            assert_eq!((plain.is_tagged, plain.usual.traffic_class), (tci.is_some(), 0x6a));
            assert_same(plain, &frame);
            // With a byte of padding behind the packet, and with a service tag.
            frame.push(0);
            assert_same(parse_plain(&frame).unwrap(), &frame);
            if tci.is_some() {
                frame[12..14].copy_from_slice(&ETHERTYPE_SVLAN.to_be_bytes());
                assert_same(parse_plain(&frame).unwrap(), &frame);
            }
        }
    }

    #[test]
    fn truncated_or_inconsistent_frame_is_not_plain() {
        for (tci, version, protocol) in kinds() {
            let whole = frame(tci, version, protocol);
            for len in 0..whole.len() {
                assert_eq!(parse_plain(&whole[..len]), None, "{len} bytes");
            }
            let l3 = usize::from(parse_plain(&whole).unwrap().l3_offset);
            let segment = l3 + if version == 4 { IPV4_LEN } else { IPV6_LEN };
            let odd = |at: usize, value: u8| {
                let mut frame = whole.clone();
                frame[at] = value;
                assert_eq!(parse_plain(&frame), None, "{tci:?}, IPv{version}, {protocol}: byte {at} is {value}");
            };
            odd(l3 - 2, 0x81);
            odd(l3, 0x75);
            let network: &[(usize, u8)] = if version == 4 {
                &[(0, 0x46), (2, 1), (3, 19), (3, 27), (6, 0x20), (7, 1), (9, 1)]
            } else {
                &[(4, 1), (5, 7), (6, 44), (6, 0)]
            };
            network.iter().for_each(|&(at, value)| odd(l3 + at, value));
            let transport: &[(usize, u8)] =
                if protocol == UDP { &[(4, 1), (5, 7), (5, 41)] } else { &[(12, 0x40), (12, 0xb0)] };
            transport.iter().for_each(|&(at, value)| odd(segment + at, value));
        }
    }

    proptest! {
        /// For edited and cut frames of all kinds, `parse_plain` returns the same fields as the parser, or `None`.
        #[test]
        fn parse_plain_agrees_with_the_parser(
            kind in 0_usize..12,
            edits in prop::collection::vec((0_usize..80, any::<u8>()), 0..4),
            cut in prop_oneof![Just(0_usize), 0_usize..60],
        ) {
            let (tci, version, protocol) = kinds().nth(kind).unwrap();
            let mut frame = frame(tci, version, protocol);
            let len = frame.len();
            edits.into_iter().for_each(|(at, value)| frame[at % len] = value);
            frame.truncate(len - cut);
            if let Some(plain) = parse_plain(&frame) {
                assert_same(plain, &frame);
            }
        }
    }
}
