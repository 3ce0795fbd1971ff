//! [`parse_usual`](super::parse_usual) with vectors: one comparison finds the kind of a frame, and one shuffle yields
//! both addresses.

use std::arch::x86_64::{
    __m128i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_loadu_si128, _mm_set_epi8, _mm_set_epi64x, _mm_shuffle_epi8,
    _mm_testz_si128, _mm_xor_si128,
};

use super::parse::{ETHERNET_LEN, TCP, UDP};
use super::usual::{Usual, UsualHeaders, is_whole};

/// The 16 bytes of `bytes` from `at` on.
#[target_feature(enable = "sse4.1")]
#[inline]
fn load(bytes: &UsualHeaders, at: usize) -> __m128i {
    assert!(at + size_of::<__m128i>() <= bytes.len(), "all of it is in the headers");
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

/// Reads a frame of `len` bytes that begins with `headers`, like [`parse_usual`](super::parse_usual).
#[target_feature(enable = "sse4.1")]
#[inline]
pub(crate) fn parse_usual_sse41(headers: &UsualHeaders, len: usize) -> Option<Usual> {
    let packet = load(headers, ETHERNET_LEN - 2);
    // The bits that are equal in all packets of one kind.
    let mask = _mm_set_epi64x(0xff00_ff3f, 0xff_ffff);
    let is = |protocol: u8| _mm_testz_si128(_mm_xor_si128(packet, kind(protocol)), mask) == 1;
    let whole = if is(UDP) { is_whole(headers, len, UDP) } else { is(TCP) && is_whole(headers, len, TCP) };
    // Each address, its last byte lowest, and two zero bytes.
    let order = _mm_set_epi8(-1, -1, 6, 7, 8, 9, 10, 11, -1, -1, 0, 1, 2, 3, 4, 5);
    let addresses = _mm_shuffle_epi8(load(headers, 0), order);
    whole.then(|| Usual {
        dst: _mm_cvtsi128_si64(addresses) as u64,
        src: _mm_extract_epi64(addresses, 1) as u64,
        traffic_class: headers[ETHERNET_LEN + 1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse_usual;
    use proptest::prelude::*;

    proptest! {
        /// Edited and cut frames with UDP and TCP: both forms return the same.
        #[test]
        fn vectors_read_what_words_read(
            bytes in prop::collection::vec(any::<u8>(), 64),
            is_tcp in any::<bool>(),
            edits in prop::collection::vec((0_usize..64, any::<u8>()), 0..3),
            len in 50_usize..=64,
        ) {
            let mut frame = bytes;
            let protocol = if is_tcp { TCP } else { UDP };
            let network = [8, 0, 0x45, frame[15], 0, 50, 1, 2, 0x40, 0, frame[22], protocol];
            frame[12..24].copy_from_slice(&network);
            frame[38..40].copy_from_slice(&[0, 30]);
            frame[46] = 0x50 | frame[46] & 0xf;
            edits.into_iter().for_each(|(at, value)| frame[at] = value);
            frame.truncate(len);
            if is_x86_feature_detected!("sse4.1") {
                // SAFETY: the processor has SSE4.1.
                #[allow(unsafe_code)]
                let vectors = frame.first_chunk().and_then(|headers| unsafe { parse_usual_sse41(headers, frame.len()) });
                prop_assert_eq!(vectors, parse_usual(&frame));
            }
        }
    }

    #[test]
    fn udp_and_tcp_are_usual() {
        let mut frame = [0; 64];
        frame[..16].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0, 0x45, 0x6a]);
        (frame[17], frame[39], frame[46]) = (50, 30, 0x50);
        for protocol in [UDP, TCP] {
            frame[23] = protocol;
            let expected = Usual { dst: 0x0102_0304_0506, src: 0x0708_090a_0b0c, traffic_class: 0x6a };
            assert_eq!(parse_usual(&frame), Some(expected));
        }
    }
}
