//! [`parse_usual`](super::parse_usual) with vectors: one comparison finds the kind of a frame, and one shuffle yields
//! both addresses.

use std::arch::x86_64::{
    __m128i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_loadu_si128, _mm_set_epi8, _mm_set_epi64x, _mm_shuffle_epi8,
    _mm_testz_si128, _mm_xor_si128,
};

use super::parse::{ETHERNET_LEN, TCP, UDP};
use super::usual::{StatedLens, Usual, UsualHeaders, packet_len, tcp_len, udp_len};

/// The 16 bytes of `bytes` from `at` on.
#[target_feature(enable = "sse4.1")]
#[inline]
pub(super) fn load<const LEN: usize>(bytes: &[u8; LEN], at: usize) -> __m128i {
    assert!(at + size_of::<__m128i>() <= LEN, "all of it is in the bytes");
    // SAFETY: the bytes are in the array, and this load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().add(at).cast()) }
}

/// The 16 bytes from the EtherType on of an IPv4 packet of `protocol`: EtherType, version and header length, no
/// fragment.
#[target_feature(enable = "sse4.1")]
#[inline]
fn kind(protocol: u8) -> __m128i {
    _mm_set_epi64x(i64::from(protocol) << 24, 0x45_00_08)
}

/// Reads a frame that begins with `headers`, like [`read_usual`](super::usual::read_usual).
///
/// # Safety
/// The processor must have SSE4.1.
#[target_feature(enable = "sse4.1")]
#[inline]
pub fn read_usual_sse41(headers: &UsualHeaders) -> Option<(StatedLens, Usual)> {
    let stated = stated_lens(headers)?;
    let (dst, src) = addresses(load(headers, 0));
    Some((stated, Usual { dst, src, traffic_class: headers[ETHERNET_LEN + 1] }))
}

/// The lengths that a frame states; `None` if it is not usual whatever its length.
#[target_feature(enable = "sse4.1")]
#[inline]
fn stated_lens(headers: &UsualHeaders) -> Option<StatedLens> {
    let packet = load(headers, ETHERNET_LEN - 2);
    // The bits that are equal in all packets of one kind.
    let mask = _mm_set_epi64x(0xff00_ff3f, 0xff_ffff);
    let is = |protocol: u8| _mm_testz_si128(_mm_xor_si128(packet, kind(protocol)), mask) == 1;
    let segment = if is(UDP) { udp_len(headers) } else { tcp_len(headers).filter(|_| is(TCP))? };
    Some(StatedLens { packet: packet_len(headers), segment })
}

/// Destination and source address of a frame that begins with `bytes`, as [`Usual`] has them.
#[target_feature(enable = "sse4.1")]
#[inline]
pub(super) fn addresses(bytes: __m128i) -> (u64, u64) {
    // Two zero bytes, and each address, its last byte lowest.
    let order = _mm_set_epi8(6, 7, 8, 9, 10, 11, -1, -1, 0, 1, 2, 3, 4, 5, -1, -1);
    let addresses = _mm_shuffle_epi8(bytes, order);
    (_mm_cvtsi128_si64(addresses) as u64, _mm_extract_epi64(addresses, 1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse_usual;
    use proptest::prelude::*;

    /// [`parse_usual`] with vectors, or the other form on a processor without their instruction sets.
    fn parse_vectors(frame: &[u8]) -> Option<Usual> {
        if !is_x86_feature_detected!("sse4.1") {
            return parse_usual(frame);
        }
        // SAFETY: the processor has SSE4.1.
        let (stated, usual) = frame.first_chunk().and_then(|headers| unsafe { read_usual_sse41(headers) })?;
        stated.are_whole(frame.len() as u16).then_some(usual)
    }

    /// A usual frame of 64 bytes, whose other bytes are `noise`.
    fn usual(noise: &[u8], is_tcp: bool) -> Vec<u8> {
        let mut frame = noise.to_vec();
        let network = [8, 0, 0x45, frame[15], 0, 50, 1, 2, 0x40, 0, frame[22], if is_tcp { TCP } else { UDP }];
        frame[12..24].copy_from_slice(&network);
        if is_tcp {
            frame[46] = 0x50 | frame[46] & 0xf;
        } else {
            frame[38..40].copy_from_slice(&[0, 30]);
        }
        frame
    }

    proptest! {
        #[test]
        fn vector_and_word_parsers_read_equal_usual_frames(noise in prop::collection::vec(any::<u8>(), 64), is_tcp in any::<bool>()) {
            let frame = usual(&noise, is_tcp);
            prop_assert!(parse_usual(&frame).is_some());
            prop_assert_eq!(parse_vectors(&frame), parse_usual(&frame));
        }

        #[test]
        fn vector_and_word_parsers_refuse_equal_edited_usual_frames(
            noise in prop::collection::vec(any::<u8>(), 64),
            is_tcp in any::<bool>(),
            edits in prop::collection::vec((prop_oneof![12_usize..24, 36_usize..48], any::<u8>()), 0..3),
            len in prop_oneof![3 => Just(64_usize), 1 => 50_usize..64],
        ) {
            let mut frame = usual(&noise, is_tcp);
            edits.into_iter().for_each(|(at, value)| frame[at] = value);
            frame.truncate(len);
            prop_assert_eq!(parse_vectors(&frame), parse_usual(&frame));
        }
    }

    #[test]
    fn both_forms_read_addresses_and_traffic_class() {
        for is_tcp in [false, true] {
            let frame = usual(&(1..=64).collect::<Vec<u8>>(), is_tcp);
            let expected = Usual { dst: 0x0102_0304_0506 << 16, src: 0x0708_090a_0b0c << 16, traffic_class: 16 };
            assert_eq!([parse_usual(&frame), parse_vectors(&frame)], [Some(expected); 2]);
        }
    }
}
