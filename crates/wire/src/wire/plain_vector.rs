//! Frames of one [`PlainKind`], read with vectors: one comparison finds whether a frame is of the kind, one shuffle
//! yields its length and traffic class, and one both addresses.

use std::arch::x86_64::{
    __m128i, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_shuffle_epi8, _mm_testz_si128, _mm_xor_si128,
};

use super::parse::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_SVLAN, ETHERTYPE_VLAN, IPV4_LEN, IPV6_LEN, L3, TCP, UDP, UDP_LEN,
};
use super::plain::is_segment;
use super::plain_kind::{KindFields, PlainKind};
use super::usual::Usual;
use super::usual_vector::{addresses, load};

/// Bit of the tag control information: drop eligible (IEEE 802.1Q clause 9.6).
const DEI: u16 = 1 << 12;
/// Bytes of a vector.
const VECTOR: usize = size_of::<__m128i>();

/// The bytes from the EtherType of IP on that frames of one kind have in common, and where they differ.
struct Pattern {
    /// The first bytes of a frame with UDP.
    udp: [u8; VECTOR],
    /// The bits that count.
    mask: [u8; VECTOR],
    /// Bits in which a frame with TCP differs.
    tcp: [u8; VECTOR],
    /// Positions of a length, the lower byte first, and of the first two bytes of the packet, the second first.
    order: [u8; 4],
    /// Length of the network header.
    l3_len: usize,
    /// Bytes of the packet that the length leaves out.
    beyond: usize,
    /// Lowest bit of DSCP and ECN in the first two bytes of the packet.
    traffic_class: u32,
}

// Constants and no statics: the value of a static is unknown to the compiler of other crates, which inline its reader.
const IPV4: Pattern = Pattern::new(ETHERTYPE_IPV4, &[(2, 0x45, 0xff), (8, 0, 0x3f), (9, 0, 0xff)], 11);
const IPV6: Pattern = Pattern::new(ETHERTYPE_IPV6, &[(2, 0x60, 0xf0)], 8);

impl Pattern {
    /// The pattern of packets with this EtherType, whose protocol is at `protocol`. `bytes` are further bytes: place,
    /// value, and the bits that count.
    const fn new(ethertype: u16, bytes: &[(usize, u8, u8)], protocol: usize) -> Self {
        let (mut udp, mut mask, mut tcp) = ([0; VECTOR], [0; VECTOR], [0; VECTOR]);
        [udp[0], udp[1]] = ethertype.to_be_bytes();
        (mask[0], mask[1]) = (0xff, 0xff);
        let mut index = 0;
        while index < bytes.len() {
            let (at, value, bits) = bytes[index];
            (udp[at], mask[at]) = (value, bits);
            index += 1;
        }
        (udp[protocol], mask[protocol], tcp[protocol]) = (UDP, 0xff, UDP ^ TCP);
        if ethertype == ETHERTYPE_IPV6 {
            let order = [7, 6, 3, 2];
            Self { udp, mask, tcp, order, l3_len: IPV6_LEN, beyond: IPV6_LEN, traffic_class: 4 }
        } else {
            Self { udp, mask, tcp, order: [5, 4, 3, 2], l3_len: IPV4_LEN, beyond: 0, traffic_class: 0 }
        }
    }
}

/// Reads a frame of at least 60 bytes like [`parse_plain`](super::parse_plain). Returns `None` if it is not of `kind`,
/// or has a priority tag.
///
/// # Safety
/// The processor must have SSE4.1.
#[target_feature(enable = "sse4.1")]
#[inline]
pub fn parse_kind_sse41(kind: PlainKind, frame: &[u8]) -> Option<KindFields> {
    let (l3_offset, pattern) = (usize::from(kind.l3_offset()), if kind.l3() == L3::V4 { &IPV4 } else { &IPV6 });
    let ethernet: &[u8; VECTOR] = frame.first_chunk()?;
    let packet: &[u8; VECTOR] = frame.get(l3_offset - 2..)?.first_chunk()?;
    let segment: &[u8; UDP_LEN] = frame.get(l3_offset + pattern.l3_len..)?.first_chunk()?;
    let mut tci = 0;
    if kind.is_tagged() {
        let tag = u32::from_be_bytes(*ethernet.last_chunk()?);
        tci = tag as u16 & !DEI;
        if !matches!((tag >> 16) as u16, ETHERTYPE_VLAN | ETHERTYPE_SVLAN) || tci & 0xfff == 0 {
            return None;
        }
    }
    let common = load(packet, 0);
    let (udp, mask) = (_mm_xor_si128(common, load(&pattern.udp, 0)), load(&pattern.mask, 0));
    let order = _mm_cvtsi32_si128(i32::from_le_bytes(pattern.order));
    let words = _mm_cvtsi128_si32(_mm_shuffle_epi8(common, order)) as u32;
    let total_len = (words & 0xffff) as usize + pattern.beyond;
    let is_whole = if _mm_testz_si128(udp, mask) == 1 {
        let udp_len = usize::from(u16::from_be_bytes([segment[4], segment[5]]));
        udp_len >= UDP_LEN && udp_len + pattern.l3_len <= total_len
    } else {
        let tcp_words = *frame.get(l3_offset + pattern.l3_len + 12)?;
        _mm_testz_si128(_mm_xor_si128(udp, load(&pattern.tcp, 0)), mask) == 1
            && is_segment(TCP, 0, tcp_words, pattern.l3_len, total_len)
    };
    let (dst, src) = addresses(load(ethernet, 0));
    let usual = Usual { dst, src, traffic_class: (words >> 16 >> pattern.traffic_class) as u8 };
    (is_whole && total_len <= frame.len() - l3_offset).then_some(KindFields { usual, tci })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse::ETHERNET_LEN;
    use crate::wire::parse_plain;
    use crate::wire::plain_kind::parse_kind;
    use proptest::prelude::*;

    /// Reads a frame with vectors and with words. Both with words on a processor without the instruction sets.
    fn both_ways(frame: &[u8]) -> [Option<KindFields>; 2] {
        let Some(kind) = PlainKind::of(frame) else { return [None; 2] };
        let words = parse_kind(kind, frame);
        if !is_x86_feature_detected!("sse4.1") {
            return [words; 2];
        }
        // SAFETY: the processor has SSE4.1.
        [unsafe { parse_kind_sse41(kind, frame) }, words]
    }

    /// A plain frame of 80 bytes, whose other bytes are `noise`.
    fn plain(noise: &[u8], kind: (bool, L3, bool)) -> Vec<u8> {
        let (is_tagged, l3, is_tcp) = kind;
        let mut frame = noise.to_vec();
        let (at, protocol) = (if is_tagged { 18 } else { ETHERNET_LEN }, if is_tcp { TCP } else { UDP });
        if is_tagged {
            frame[12..16].copy_from_slice(&[0x81, 0, noise[14], noise[15] | 1]);
        }
        let segment = if l3 == L3::V6 {
            frame[at - 2..at + 1].copy_from_slice(&[0x86, 0xdd, 0x60 | noise[at] & 0xf]);
            frame[at + 4..at + 7].copy_from_slice(&[0, 22, protocol]);
            at + 40
        } else {
            frame[at - 2..at + 1].copy_from_slice(&[8, 0, 0x45]);
            frame[at + 2..at + 4].copy_from_slice(&[0, 62]);
            frame[at + 6..at + 10].copy_from_slice(&[0x40, 0, noise[at + 8], protocol]);
            at + 20
        };
        frame[segment + 4..segment + 6].copy_from_slice(&[0, 8]);
        if is_tcp {
            frame[segment + 12] = 0x50 | noise[segment + 12] & 0xf;
        }
        frame
    }

    /// The kinds that [`PlainKind::of`] names, with UDP and TCP.
    fn kinds() -> impl Strategy<Value = (bool, L3, bool)> {
        let kinds = prop_oneof![Just((true, L3::V4)), Just((true, L3::V6)), Just((false, L3::V6))];
        (kinds, any::<bool>()).prop_map(|((is_tagged, l3), is_tcp)| (is_tagged, l3, is_tcp))
    }

    proptest! {
        #[test]
        fn vector_and_word_parsers_read_equal_plain_frames(noise in prop::collection::vec(any::<u8>(), 80), kind in kinds()) {
            let frame = plain(&noise, kind);
            prop_assert_eq!(parse_plain(&frame).map(|plain| (plain.is_tagged, plain.l3)), Some((kind.0, kind.1)));
            let [vectors, words] = both_ways(&frame);
            prop_assert!(words.is_some());
            prop_assert_eq!(vectors, words);
        }

        #[test]
        fn vector_and_word_parsers_refuse_equal_edited_plain_frames(
            noise in prop::collection::vec(any::<u8>(), 80),
            kind in kinds(),
            edits in prop::collection::vec((12_usize..80, any::<u8>()), 0..3),
            len in prop_oneof![3 => Just(80_usize), 1 => 60_usize..80],
        ) {
            let mut frame = plain(&noise, kind);
            edits.into_iter().for_each(|(at, value)| frame[at] = value);
            frame.truncate(len);
            let [vectors, words] = both_ways(&frame);
            prop_assert_eq!(vectors, words);
        }
    }
}
