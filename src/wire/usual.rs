//! The usual frame: untagged UDP over IPv4 without options, complete and not a fragment. It is read in a few words.
//!
//! Most RoCE frames are usual. [`parse_plain`](super::parse_plain) reads other common frames, and
//! [`parse()`](super::parse()) reads any frame. All three return the same fields for a usual frame.

use super::parse::{self, ETHERNET_LEN, IPV4_LEN, UDP_LEN};

/// Bytes of the headers, from the destination address to the end of the UDP header.
const HEADERS_LEN: usize = ETHERNET_LEN + IPV4_LEN + UDP_LEN;
/// Mask over the four bytes at offset 20: more-fragments flag, fragment offset, and protocol. It leaves out the time to
/// live.
const FRAGMENT_PROTOCOL: u32 = 0x3fff_00ff;
const UDP: u32 = parse::UDP as u32;
/// EtherType of IPv4, then version 4 and a header length of five words.
const IPV4_PLAIN: u32 = 0x08_00_45;

/// Header fields of a usual frame that the switch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usual {
    /// Destination address, encoded like [`MacAddr::to_number`](super::MacAddr::to_number).
    pub dst: u64,
    /// Source address, encoded like [`MacAddr::to_number`](super::MacAddr::to_number).
    pub src: u64,
    /// DSCP and ECN as one byte.
    pub traffic_class: u8,
}

impl Usual {
    /// Offset of the network header.
    pub const L3_OFFSET: u8 = ETHERNET_LEN as u8;
}

/// Reads `frame`, which starts with the destination address and has no frame check sequence. Returns `None` if the
/// frame is not usual.
#[inline]
#[must_use]
pub fn parse_usual(frame: &[u8]) -> Option<Usual> {
    let headers: &[u8; HEADERS_LEN] = frame.first_chunk()?;
    let word = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let double = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| headers[at + byte]));
    let quad = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| headers[at + byte]));
    let (type_and_class, total_len, udp_len) = (double(12), usize::from(word(16)), usize::from(word(38)));
    let is_plain = type_and_class >> 8 == IPV4_PLAIN && double(20) & FRAGMENT_PROTOCOL == UDP;
    let is_whole = total_len <= frame.len() - ETHERNET_LEN && udp_len >= UDP_LEN && udp_len + IPV4_LEN <= total_len;
    (is_plain && is_whole).then(|| Usual {
        dst: quad(0) >> 16,
        src: quad(4) & 0xffff_ffff_ffff,
        traffic_class: type_and_class as u8,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::MacAddr;
    use crate::wire::parse::{L3, parse};
    use proptest::prelude::*;

    /// A RoCE frame of 64 bytes.
    fn roce() -> Vec<u8> {
        let mut frame: Vec<u8> = (0..64).collect();
        frame[12..24].copy_from_slice(&[8, 0, 0x45, 0x6a, 0, 50, 0, 0, 0x40, 0, 64, 17]);
        frame[34..42].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, 30, 0, 0]);
        frame
    }

    #[test]
    fn roce_is_usual() {
        let usual = parse_usual(&roce()).unwrap();
        assert_eq!(usual, Usual { dst: 0x0001_0203_0405, src: 0x0607_0809_0a0b, traffic_class: 0x6a });
    }

    #[test]
    fn unusual_or_truncated_frame_is_not_usual() {
        // Each header byte that makes a frame usual, with a value that makes it another kind of frame or a malformed
        // one.
        for (at, value) in
            [(12, 0x81), (14, 0x46), (14, 0x65), (16, 1), (17, 27), (20, 0x20), (21, 1), (23, 6), (38, 1), (39, 7)]
        {
            let mut frame = roce();
            frame[at] = value;
            assert_eq!(parse_usual(&frame), None, "byte {at} is {value}");
        }
        assert_eq!(parse_usual(&roce()[..41]), None);
        assert_eq!(parse_usual(&roce()[..63]), None);
    }

    proptest! {
        /// For edited and cut RoCE frames, `parse_usual` returns the same fields as the parser, or `None`.
        #[test]
        fn parse_usual_agrees_with_the_parser(
            edits in prop::collection::vec((0_usize..48, any::<u8>()), 0..4),
            len in 36_usize..=64,
        ) {
            let mut frame = roce();
            edits.into_iter().for_each(|(at, value)| frame[at] = value);
            frame.truncate(len);
            if let Some(usual) = parse_usual(&frame) {
                let headers = parse(&frame).unwrap();
                prop_assert_eq!([usual.dst, usual.src].map(MacAddr::from_number), [headers.dst, headers.src]);
                prop_assert_eq!((usual.traffic_class, Usual::L3_OFFSET), (headers.traffic_class, headers.l3_offset));
                prop_assert_eq!((headers.l3, headers.tags), (L3::V4, 0));
            }
        }
    }
}
