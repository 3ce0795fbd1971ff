//! The lengths that the frames of a burst state, side by side, so that few vector instructions check all of them.

use crate::sets::{BURST, FrameSet};
use crate::wire::usual::StatedLens;

/// Frames that are checked at once: the words of the longest vectors.
const GROUP: usize = 16;

/// Length of the packet of a frame that is not usual. It is whole in the longest frame.
const PACKET: u16 = 0x1000;
/// Length of the segment of a frame that is not usual. It is whole in [`PACKET`].
const SEGMENT: u16 = 0x100;

/// The length of each usual frame of a burst, and those that it states. A frame that is not usual has lengths that are
/// whole.
#[derive(Debug)]
pub(crate) struct BurstLens {
    frames: [u16; BURST],
    packets: [u16; BURST],
    segments: [u16; BURST],
}

impl Default for BurstLens {
    #[inline(always)]
    fn default() -> Self {
        Self { frames: [u16::MAX; BURST], packets: [PACKET.to_be(); BURST], segments: [SEGMENT.to_be(); BURST] }
    }
}

impl BurstLens {
    /// Notes a usual frame of `len` bytes, at `index` of the burst.
    #[inline(always)]
    pub fn set(&mut self, index: usize, len: u16, stated: StatedLens) {
        let index = index % BURST;
        self.frames[index] = len;
        self.packets[index] = stated.packet;
        self.segments[index] = stated.segment;
    }

    /// Returns the frames, among the first `frames`, that are shorter than they state.
    #[inline(always)]
    pub fn truncated(&self, frames: usize) -> FrameSet {
        let groups = (0..BURST).step_by(GROUP).take_while(|&from| from < frames);
        if groups.fold(true, |is_whole, from| is_whole & self.is_group_whole(from)) {
            return FrameSet::EMPTY;
        }
        self.truncated_one_by_one()
    }

    /// Whether the frames from `from` on are at least as long as they state. No branch: the loop becomes vectors.
    #[inline(always)]
    fn is_group_whole(&self, from: usize) -> bool {
        let mut is_whole = [true; GROUP];
        for (at, is_whole) in is_whole.iter_mut().enumerate() {
            *is_whole = self.is_whole(from + at);
        }
        is_whole == [true; GROUP]
    }

    #[inline(always)]
    fn is_whole(&self, index: usize) -> bool {
        let index = index % BURST;
        StatedLens { packet: self.packets[index], segment: self.segments[index] }.are_whole(self.frames[index])
    }

    #[cold]
    fn truncated_one_by_one(&self) -> FrameSet {
        (0..BURST).filter(|&index| !self.is_whole(index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A length near the limits of those of frames of 60 to 69 bytes, or any.
    fn len(near: std::ops::Range<u16>) -> impl Strategy<Value = u16> {
        prop_oneof![3 => near, 1 => any::<u16>(), 1 => prop::sample::select(vec![0, 7, 8, 19, 20, 27, 28, u16::MAX])]
    }

    proptest! {
        #[test]
        fn vectors_find_the_frames_that_are_shorter_than_they_state(
            frames in prop::collection::vec(prop::option::weighted(0.9, (60_u16.., len(40..60), len(0..42))), 0..=BURST),
            is_short in any::<bool>(),
        ) {
            let mut lens = BurstLens::default();
            let mut truncated = FrameSet::EMPTY;
            for (index, &frame) in frames.iter().enumerate() {
                let Some((len, packet, segment)) = frame else { continue };
                let len = if is_short { 60 + len % 10 } else { len };
                lens.set(index, len, StatedLens { packet: packet.to_be(), segment: segment.to_be() });
                let [of_frame, of_packet, of_segment] = [len, packet, segment].map(u32::from);
                if of_packet + 14 > of_frame || of_segment + 20 > of_packet || of_segment < 8 {
                    truncated.insert(index);
                }
            }
            prop_assert_eq!(lens.truncated(frames.len()), truncated);
        }
    }

    #[test]
    fn one_truncated_frame_is_found_at_each_place() {
        let stated = |packet: u16| StatedLens { packet: packet.to_be(), segment: 8_u16.to_be() };
        for place in 0..BURST {
            let mut lens = BurstLens::default();
            (0..=place).for_each(|index| lens.set(index, 64, stated(if index == place { 51 } else { 50 })));
            assert_eq!(lens.truncated(place + 1), FrameSet::only(place), "{place}");
        }
        assert!(BurstLens::default().truncated(BURST).is_empty());
    }
}
