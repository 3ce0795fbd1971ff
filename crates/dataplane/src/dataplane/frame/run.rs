//! Runs of frames: their sums, and whether they can be treated as one frame.

use super::desc::{CHARGE, FrameDesc, SUM_BYTES};
use crate::plan::spec::MAX_CELLS;
use crate::qos::shaper::MIN_FRAME;
use crate::sets::BURST;
use crate::units::{Bytes, Cells};

/// Consecutive frames at the head of a queue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of frames.
    pub frames: u32,
    /// Cells, and bytes above them.
    pub(crate) sum: u64,
}

impl Run {
    /// The run extended by the next frame.
    #[inline]
    #[must_use]
    pub fn and(self, desc: FrameDesc) -> Self {
        Self { frames: self.frames + 1, sum: self.sum + desc.sum() }
    }

    /// Bytes of the frames.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> Bytes {
        Bytes(self.sum >> SUM_BYTES)
    }

    /// Cells of the frames.
    #[inline]
    #[must_use]
    pub fn cells(self) -> Cells {
        Cells(self.sum as u32 & (MAX_CELLS - 1))
    }
}

/// The properties of frames that decide whether they can be treated as one. One word: ingress port and group of one of
/// the frames, at their places in [`FrameDesc`], and two flags in the lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunKind(u64);

/// Some frames are charged to another group.
const MIXED: u64 = 1;
/// The wire pads some frames.
const PADDED: u64 = 2;

impl RunKind {
    /// The properties of frames like `desc`.
    #[inline]
    pub fn of(desc: FrameDesc) -> Self {
        Self::new(desc, false, desc.is_padded())
    }

    /// The properties of frames of which one has the ingress port and the group of `desc`.
    #[inline]
    pub fn new(desc: FrameDesc, is_mixed: bool, has_padded: bool) -> Self {
        let flags = if is_mixed { MIXED } else { 0 } | if has_padded { PADDED } else { 0 };
        Self(desc.0 & CHARGE | flags)
    }

    /// These properties for frames of which one has the ingress port and the group of `desc`.
    #[inline]
    pub fn charged_to(self, desc: FrameDesc) -> Self {
        Self(self.0 & !CHARGE | desc.0 & CHARGE)
    }

    /// The properties of the frames of both.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        let mixed = if (self.0 ^ other.0) & CHARGE == 0 { 0 } else { MIXED };
        Self(self.0 | other.0 & (MIXED | PADDED) | mixed)
    }

    /// The descriptor of a frame with this charge, if all frames are charged to one group, and the wire pads none.
    #[inline]
    pub fn one_charge(self) -> Option<FrameDesc> {
        (self.0 & (MIXED | PADDED) == 0).then_some(FrameDesc(self.0))
    }
}

/// A run of frames as a whole: its sums, and the properties that decide whether it can be treated as one frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunSums {
    pub run: Run,
    /// Bits that some frame has.
    any: u64,
    /// Bits in which some frame differs from the first.
    differing: u64,
    /// Negative if some frame is shorter than [`MIN_FRAME`].
    shortest: i64,
}

impl RunSums {
    /// Sums up the run `descs`. One loop without branches, which the compiler turns into vector instructions.
    #[inline(always)]
    pub fn of(descs: &[FrameDesc]) -> Self {
        let first = descs.first().copied().unwrap_or(FrameDesc::NONE);
        let (mut sum, mut any, mut differing, mut shortest) = (0, 0, 0, 0);
        for &desc in descs {
            sum += desc.sum();
            any |= desc.0;
            differing |= desc.0 ^ first.0;
            // A borrow reaches the highest bit only if the frame is too short.
            shortest |= desc.sum().wrapping_sub(u64::from(MIN_FRAME) << SUM_BYTES);
        }
        Self { run: Run { frames: descs.len() as u32, sum }, any, differing, shortest: shortest as i64 }
    }

    /// Whether some frame is ECN-capable.
    #[inline]
    pub fn has_markable(&self) -> bool {
        FrameDesc(self.any).is_markable()
    }

    /// Whether all frames are ECN-capable, and of one network layer.
    #[inline]
    pub fn is_all_markable(&self) -> bool {
        self.has_markable() & !FrameDesc(self.differing).is_markable()
    }

    /// Whether the wire pads some frame.
    #[inline]
    pub fn has_padded(&self) -> bool {
        self.shortest < 0
    }

    /// Whether all frames are charged to one group of one port.
    #[inline]
    pub fn is_one_charge(&self) -> bool {
        FrameDesc(self.differing).is_charged_like(FrameDesc::NONE)
    }
}

/// Sums of the frames of one burst in one word: cells (28 bits), bytes (28) and frames (8). A sum in memory would wait
/// for its last store at each addition.
#[derive(Debug, Default, Clone, Copy)]
pub struct BurstSum(u64);

const SUM_FRAMES: u32 = 56;

/// One frame of a [`BurstSum`], as a value that the compiler does not know. The compiler would otherwise add the
/// constant in three instructions a frame.
#[inline(always)]
pub(crate) fn one_frame() -> u64 {
    std::hint::black_box(1 << SUM_FRAMES)
}

const _: () = assert!(BURST < 1 << (u64::BITS - SUM_FRAMES) && BURST << 16 < 1 << (SUM_FRAMES - SUM_BYTES));

impl BurstSum {
    /// Adds a frame.
    #[inline]
    pub fn add(&mut self, desc: FrameDesc) {
        self.add_run(Run::default().and(desc));
    }

    /// Adds a frame whose descriptor has only length and cells, like [`BurstSum::add`] but for a loop: `one` is
    /// [`one_frame`].
    #[inline(always)]
    pub(crate) fn add_counted(&mut self, desc: FrameDesc, one: u64) {
        debug_assert!(desc.0 == desc.sum() && one == 1 << SUM_FRAMES, "nothing else, and each frame counts once");
        self.0 += desc.0 + one;
    }

    /// Removes a frame that was added.
    #[inline]
    pub fn remove(&mut self, desc: FrameDesc) {
        debug_assert!(self.frames() > 0, "the frame was added");
        self.0 -= desc.sum() | 1 << SUM_FRAMES;
    }

    /// Adds frames of the same burst.
    #[inline]
    pub fn add_run(&mut self, run: Run) {
        self.0 += run.sum | u64::from(run.frames) << SUM_FRAMES;
    }

    /// Number of frames.
    #[inline]
    #[must_use]
    pub fn frames(self) -> u64 {
        self.0 >> SUM_FRAMES
    }

    /// Bytes of the frames.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> Bytes {
        Bytes(self.0 << (u64::BITS - SUM_FRAMES) >> (u64::BITS - SUM_FRAMES + SUM_BYTES))
    }

    /// Cells of the frames.
    #[inline]
    #[must_use]
    pub fn cells(self) -> Cells {
        Cells(self.0 as u32 & (MAX_CELLS - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse::L3;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_of_a_run_are_those_of_its_frames(
            frames in prop::collection::vec((50_u16..80, 0_u8..2, 0_u8..2, any::<bool>()), 1..=BURST),
            is_long in any::<bool>(),
        ) {
            let desc = |&(len, ingress, group, capable): &(u16, u8, u8, bool)| {
                let len = if is_long { len + 100 } else { len };
                FrameDesc::new(len, Cells(1), ingress, group, 3).with(FrameDesc::ip(L3::V4, 14, capable))
            };
            let descs: Vec<FrameDesc> = frames.iter().map(desc).collect();
            let sums = RunSums::of(&descs);
            prop_assert_eq!(sums.run, descs.iter().fold(Run::default(), |run, &desc| run.and(desc)));
            prop_assert_eq!(sums.run.cells(), Cells(descs.len() as u32));
            prop_assert_eq!(sums.has_markable(), descs.iter().any(|desc| desc.is_markable()));
            prop_assert_eq!(sums.is_all_markable(), descs.iter().all(|desc| desc.is_markable()));
            prop_assert_eq!(sums.has_padded(), descs.iter().any(|desc| u32::from(desc.frame_len()) < MIN_FRAME));
            prop_assert_eq!(sums.is_one_charge(), descs.iter().all(|desc| desc.is_charged_like(descs[0])));
        }

        #[test]
        fn sums_of_a_burst_are_exact(frames in prop::collection::vec(any::<(u16, u16)>(), 0..=BURST)) {
            let (mut sum, mut run) = (BurstSum::default(), Run::default());
            for &(len, cells) in &frames {
                let desc = FrameDesc::new(len, Cells(cells.into()), 63, 0, 0).classified(7, 7, 7).with(FrameDesc::ip(L3::V6, 63, true));
                sum.add(desc);
                run = run.and(desc);
            }
            let (bytes, cells) = frames.iter().fold((0, 0), |(b, c), &(len, cells)| (b + u64::from(len), c + u32::from(cells)));
            let cells_before = cells;
            let (bytes, cells) = (Bytes(bytes), Cells(cells));
            prop_assert_eq!((sum.frames(), sum.bytes(), sum.cells()), (frames.len() as u64, bytes, cells));
            prop_assert_eq!((run.frames as usize, run.bytes()), (frames.len(), bytes));
            if let Some(&(len, cells)) = frames.first() {
                let mut remaining = sum;
                remaining.remove(FrameDesc::new(len, Cells(cells.into()), 63, 0, 0).classified(7, 7, 7));
                let last = [remaining.frames(), remaining.bytes().0, remaining.cells().0.into()];
                prop_assert_eq!(last, [frames.len() as u64 - 1, bytes.0 - u64::from(len), u64::from(cells_before - u32::from(cells))]);
            }
            let mut of_run = BurstSum::default();
            of_run.add_run(run);
            prop_assert_eq!((of_run.frames(), of_run.bytes(), of_run.cells()), (sum.frames(), sum.bytes(), sum.cells()));
        }

        #[test]
        fn run_kind_of_two_parts_is_that_of_the_whole_run(frames in prop::collection::vec((55_u16..65, 0_u8..2, 0_u8..2), 1..8), split in 0_usize..8) {
            let descs: Vec<FrameDesc> =
                frames.iter().map(|&(len, ingress, group)| FrameDesc::new(len, Cells(1), ingress, group, 3)).collect();
            let kind = |descs: &[FrameDesc]| descs.iter().map(|&desc| RunKind::of(desc)).reduce(RunKind::and);
            let (one, other) = descs.split_at(split.min(descs.len()));
            let both = [kind(one), kind(other)].into_iter().flatten().reduce(RunKind::and);
            prop_assert_eq!(both, kind(&descs));
            let is_plain = descs.iter().all(|desc| desc.is_charged_like(descs[0]) && desc.frame_len() >= 60);
            let charge = both.and_then(RunKind::one_charge);
            prop_assert_eq!(charge.map(|desc| desc.is_charged_like(descs[0])), is_plain.then_some(true));
        }
    }
}
