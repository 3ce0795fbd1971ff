//! One byte for each frame of a burst, side by side, so that few vector instructions compare all of them.

use crate::forward::flow_cache::CachePlace;
use crate::sets::{BURST, FrameSet};

/// Look-ups and destinations of the frames of a burst, side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BurstLanes {
    /// Place of the two stations in the flow cache.
    pub places: [CachePlace; BURST],
    /// Egress port; a number from 64 on for a frame that the flow cache did not hold. The forwarder says whether all
    /// are ports.
    pub egresses: Lanes,
    /// Egress queue.
    pub queues: Lanes,
}

impl Default for BurstLanes {
    #[inline]
    fn default() -> Self {
        Self { places: [CachePlace::default(); BURST], egresses: Lanes::all(0), queues: Lanes::all(0) }
    }
}

impl BurstLanes {
    /// Whether the first `frames` frames have the egress ports and queues of those of `other`.
    pub fn are_like(&self, other: &Self, frames: usize) -> bool {
        let target = |lanes: &Self, index| (lanes.egresses.get(index), lanes.queues.get(index));
        (0..frames).all(|index| target(self, index) == target(other, index))
    }
}

/// A byte for each frame of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes([u8; BURST]);

impl Lanes {
    /// Lanes that all have `byte`.
    #[inline]
    pub const fn all(byte: u8) -> Self {
        Self([byte; BURST])
    }

    /// Sets the byte of the frame `index`.
    #[inline]
    pub const fn set(&mut self, index: usize, byte: u8) {
        self.0[index % BURST] = byte;
    }

    /// The byte of the frame `index`.
    #[inline]
    pub const fn get(&self, index: usize) -> u8 {
        self.0[index % BURST]
    }

    /// The frames whose byte is below 64.
    #[inline]
    pub fn below_64(&self) -> FrameSet {
        Self(self.0.map(|byte| byte & 0xc0)).equal(0)
    }

    /// The frames whose byte is `byte`.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn equal(&self, byte: u8) -> FrameSet {
        // SAFETY: every processor of this architecture has SSE2.
        #[allow(unsafe_code)]
        FrameSet::from_bits(unsafe { equal_sse2(&self.0, byte) })
    }

    /// The frames whose byte is `byte`.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub fn equal(&self, byte: u8) -> FrameSet {
        self.equal_one_by_one(byte)
    }

    /// [`Lanes::equal`] without vectors.
    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn equal_one_by_one(&self, byte: u8) -> FrameSet {
        (0..BURST).filter(|&index| self.0[index] == byte).collect()
    }
}

/// A bit for each of `bytes` that equals `byte`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn equal_sse2(bytes: &[u8; BURST], byte: u8) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let word = |at: usize| i64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let half = |at: usize| {
        let lanes = _mm_set_epi64x(word(at + 8), word(at));
        _mm_movemask_epi8(_mm_cmpeq_epi8(lanes, _mm_set1_epi8(byte as i8))) as u32 as u64
    };
    half(0) | half(16) << 16 | half(32) << 32 | half(48) << 48
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_find_the_lanes_that_a_loop_finds(bytes in prop::collection::vec(0_u8..4, BURST), byte in 0_u8..5) {
            let mut lanes = Lanes::all(u8::MAX);
            bytes.iter().enumerate().for_each(|(index, &byte)| lanes.set(index, byte));
            prop_assert_eq!(lanes.equal(byte), lanes.equal_one_by_one(byte));
        }

        #[test]
        fn below_64_has_the_frames_whose_byte_is_smaller(bytes in prop::collection::vec(any::<u8>(), BURST)) {
            let mut lanes = Lanes::all(u8::MAX);
            bytes.iter().enumerate().for_each(|(index, &byte)| lanes.set(index, byte));
            let below: FrameSet = (0..BURST).filter(|&index| bytes[index] < 64).collect();
            prop_assert_eq!(lanes.below_64(), below);
        }
    }
}
