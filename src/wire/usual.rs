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

/// The first bytes of a frame that [`parse_usual`] reads.
pub(crate) type UsualHeaders = [u8; HEADERS_LEN];

/// Reads `frame`, which starts with the destination address and has no frame check sequence. Returns `None` if the
/// frame is not usual.
#[inline]
#[must_use]
pub fn parse_usual(frame: &[u8]) -> Option<Usual> {
    let headers: &UsualHeaders = frame.first_chunk()?;
    let quad = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| headers[at + byte]));
    let double = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| headers[at + byte]));
    if double(12) & 0xff_ffff != IPV4_PLAIN {
        return None;
    }
    const FIRST_UDP: u32 = (UDP as u32) << 24;
    const FIRST_TCP: u32 = (TCP as u32) << 24;
    let protocol = match double(20) & FRAGMENT_PROTOCOL {
        FIRST_UDP => UDP,
        FIRST_TCP => TCP,
        _ => return None,
    };
    is_whole(headers, frame.len(), protocol).then(|| Usual {
        dst: quad(0) >> 16,
        src: quad(4) & 0xffff_ffff_ffff,
        traffic_class: headers[15],
    })
}

/// Whether the packet and its segment, of UDP or TCP, are complete in a frame of `len` bytes.
#[inline(always)]
pub(crate) fn is_whole(headers: &UsualHeaders, len: usize, protocol: u8) -> bool {
    let word = |at: usize| usize::from(u16::from_be_bytes([headers[at], headers[at + 1]]));
    let total_len = word(ETHERNET_LEN + 2);
    let segment_fits = match protocol {
        UDP => word(38) >= UDP_LEN && word(38) + IPV4_LEN <= total_len,
        TCP => {
            let tcp_len = usize::from(headers[46] >> 4) * 4;
            tcp_len >= TCP_LEN && tcp_len + IPV4_LEN <= total_len
        }
        _ => false,
    };
    segment_fits && total_len <= len - ETHERNET_LEN
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
