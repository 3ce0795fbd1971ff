//! The usual frame: untagged UDP or TCP over IPv4 without options, complete and not a fragment. It is read in a few
//! words.
//!
//! Most frames of RoCE are usual. [`parse_plain`](super::parse_plain) reads other common frames, and
//! [`parse()`](super::parse()) reads any frame. All three return the same fields for a usual frame.

use super::parse::{ETHERNET_LEN, IPV4_LEN, TCP, TCP_LEN, UDP, UDP_LEN};

/// Bytes that are read, from the destination address on. Headers with UDP are shorter, but every frame on a wire has
/// these bytes.
const HEADERS_LEN: usize = ETHERNET_LEN + IPV4_LEN + TCP_LEN;
/// Mask over the four bytes at offset 20, the first one lowest: more-fragments flag, fragment offset, and protocol. It
/// leaves out the time to live.
const FRAGMENT_PROTOCOL: u32 = 0xff00_ff3f;
/// Bytes 12 to 14, the first one lowest: EtherType of IPv4, then version 4 and a header length of five words.
const IPV4_PLAIN: u32 = 0x45_00_08;

/// Header fields of a usual frame that the switch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usual {
    /// Destination address in the upper 48 bits, encoded like [`MacAddr::to_number`](super::MacAddr::to_number); the
    /// lower 16 bits are zero.
    pub dst: u64,
    /// Source address in the upper 48 bits; the lower 16 bits are zero.
    pub src: u64,
    /// DSCP and ECN as one byte.
    pub traffic_class: u8,
}

impl Usual {
    /// Offset of the network header.
    pub const L3_OFFSET: u8 = ETHERNET_LEN as u8;
}

/// Lengths that a usual frame states: its packet and the segment in it must not be longer than the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedLens {
    /// Length of the packet, in network byte order.
    pub packet: u16,
    /// Length of the UDP datagram or of the TCP header, in network byte order.
    pub segment: u16,
}

impl StatedLens {
    /// Whether packet and segment are complete in a frame of `len` bytes. No branch: a loop over frames becomes
    /// vectors.
    #[inline(always)]
    pub fn are_whole(self, len: u16) -> bool {
        let [packet, segment] = [self.packet, self.segment].map(u16::from_be);
        (segment >= UDP_LEN as u16)
            & (segment <= packet.saturating_sub(IPV4_LEN as u16))
            & (packet <= len.saturating_sub(ETHERNET_LEN as u16))
    }
}

/// The first bytes of a frame that [`parse_usual`] reads.
pub type UsualHeaders = [u8; HEADERS_LEN];

/// Reads `frame`, which starts with the destination address and has no frame check sequence. Returns `None` if the
/// frame is not usual.
///
/// The dataplane reads the headers of each frame, and compares the lengths of all frames of a burst at once.
#[inline]
#[must_use]
pub fn parse_usual(frame: &[u8]) -> Option<Usual> {
    let (stated, usual) = read_usual(frame.first_chunk()?)?;
    stated.are_whole(frame.len().min(usize::from(u16::MAX)) as u16).then_some(usual)
}

/// Reads a frame that begins with `headers`, except for its length: the frame is usual if the stated lengths are whole
/// too. Returns `None` if it is not usual whatever its length.
#[inline(always)]
pub fn read_usual(headers: &UsualHeaders) -> Option<(StatedLens, Usual)> {
    Some((stated_lens(headers)?, fields(headers)))
}

/// The lengths that a frame that begins with `headers` states. Returns `None` if it is not usual
/// whatever its length.
#[inline]
fn stated_lens(headers: &UsualHeaders) -> Option<StatedLens> {
    let double = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| headers[at + byte]));
    if double(12) & 0xff_ffff != IPV4_PLAIN {
        return None;
    }
    const FIRST_UDP: u32 = (UDP as u32) << 24;
    const FIRST_TCP: u32 = (TCP as u32) << 24;
    let segment = match double(20) & FRAGMENT_PROTOCOL {
        FIRST_UDP => udp_len(headers),
        FIRST_TCP => tcp_len(headers)?,
        _ => return None,
    };
    Some(StatedLens { packet: packet_len(headers), segment })
}

/// Addresses and traffic class of a usual frame.
#[inline]
fn fields(headers: &UsualHeaders) -> Usual {
    let quad = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| headers[at + byte]));
    Usual { dst: quad(0) >> 16 << 16, src: quad(6) >> 16 << 16, traffic_class: headers[15] }
}

/// The length that an IPv4 packet states, in network byte order.
#[inline(always)]
pub(super) fn packet_len(headers: &UsualHeaders) -> u16 {
    u16::from_ne_bytes([headers[16], headers[17]])
}

/// The length that a UDP datagram states, in network byte order.
#[inline(always)]
pub(super) fn udp_len(headers: &UsualHeaders) -> u16 {
    u16::from_ne_bytes([headers[38], headers[39]])
}

/// The length that a TCP header states, in network byte order; `None` if it is too short.
#[inline(always)]
pub(super) fn tcp_len(headers: &UsualHeaders) -> Option<u16> {
    let tcp_len = u16::from(headers[46] >> 4) * 4;
    (usize::from(tcp_len) >= TCP_LEN).then_some(tcp_len.to_be())
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
    fn roce_frame_is_parsed_as_usual() {
        let usual = parse_usual(&roce()).unwrap();
        assert_eq!(usual, Usual { dst: 0x0001_0203_0405 << 16, src: 0x0607_0809_0a0b << 16, traffic_class: 0x6a });
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
                prop_assert_eq!([usual.dst, usual.src].map(|word| MacAddr::from_number(word >> 16)), [headers.dst, headers.src]);
                prop_assert_eq!((usual.traffic_class, Usual::L3_OFFSET), (headers.traffic_class, headers.l3_offset));
                prop_assert_eq!((headers.l3, headers.tags), (L3::V4, 0));
            }
        }
    }
}
