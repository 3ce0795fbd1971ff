//! The congestion point of QCN (IEEE 802.1Qau; 802.1Q clauses 30.2.1, 32.8 and 32.9): it samples the frames of a queue
//! and computes how congested the queue is.
//!
//! ```text
//! Fb = -(Qoff + w Qdelta),  Qoff = Qlen - Qeq,  Qdelta = Qlen - Qlen at the last sample
//! ```
//!
//! A negative Fb means congestion. Its amount, at most (2 w + 1) Qeq, is quantised to six bits. The bytes from one
//! sample to the next fall with it.

use crate::units::Bytes;

/// The largest quantised feedback.
pub const MOST_FEEDBACK: u8 = 63;

/// Settings of a congestion point. The default is that of 802.1Q (clause 32.8, and its MIB).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionPointSpec {
    /// Qeq, the queue length that the congestion point aims at (cpQSp, 26,000 bytes).
    pub set_point: Bytes,
    /// w, the weight of the change of the queue length (cpW, 2).
    pub weight: u8,
    /// Bytes from one sample to the next in a queue without congestion (cpSampleBase, 150,000).
    pub sample: Bytes,
}

impl Default for CongestionPointSpec {
    fn default() -> Self {
        Self { set_point: Bytes(26_000), weight: 2, sample: Bytes(150_000) }
    }
}

/// Bytes from one sample to the next by the upper three bits of the quantised feedback, for a base of 150,000 (clause
/// 32.9, NewCpSampleBase; the mark table of QCN's pseudo code).
const INTERVALS: [u64; 8] = [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500];
const INTERVAL_BASE: u64 = 150_000;

/// The result of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Quantised feedback: zero without congestion, at most [`MOST_FEEDBACK`].
    pub feedback: u8,
    /// Qoff in bytes.
    pub offset: i64,
    /// Qdelta in bytes.
    pub delta: i64,
}

/// A congestion point: the state of one queue. All arithmetic is of integers.
#[derive(Debug, Clone)]
pub struct CongestionPoint {
    set_point: i64,
    weight: i64,
    /// The largest amount of Fb, which has the largest quantised feedback.
    largest: i64,
    /// Bytes to the next sample, by the upper three bits of the feedback.
    intervals: [u32; 8],
    /// Queue length at the last sample (cpQLenOld).
    old: i64,
    /// Bytes that may join the queue before the next sample (cpEnqued).
    left: u64,
}

impl CongestionPoint {
    /// Creates the congestion point of an empty queue. Its first sample is due after an interval without congestion.
    #[must_use]
    pub fn new(spec: &CongestionPointSpec) -> Self {
        let set_point = spec.set_point.0.clamp(1, u32::MAX.into()) as i64;
        let weight = i64::from(spec.weight);
        let base = spec.sample.0.clamp(1, u32::MAX.into());
        let intervals = INTERVALS.map(|bytes| (bytes * base / INTERVAL_BASE) as u32);
        let left = u64::from(intervals[0]);
        Self { set_point, weight, largest: set_point * (2 * weight + 1), intervals, old: 0, left }
    }

    /// Counts `bytes` that join the queue, if no sample is due among them. Returns whether that was so.
    #[inline]
    pub fn pass(&mut self, bytes: u64) -> bool {
        let passes = bytes < self.left;
        if passes {
            self.left -= bytes;
        }
        passes
    }

    /// Samples a queue of `length` bytes, without the sampled frame. `draw` is a uniformly random number.
    ///
    /// Clause 32.9.3, in substance: Fb is (Qeq - Qlen) - w (Qlen - Qold), at least -(2 w + 1) Qeq and at most 0. The
    /// next sample follows after Random(0.85, 1.15) times the interval of Fb.
    pub fn sample(&mut self, length: Bytes, draw: u32) -> Sample {
        let length = length.0.min(u32::MAX.into()) as i64;
        let (offset, delta) = (length - self.set_point, length - self.old);
        let congestion = (offset + self.weight * delta).clamp(0, self.largest);
        let feedback = (congestion * i64::from(MOST_FEEDBACK) / self.largest) as u8;
        self.old = length;
        let interval = u64::from(self.intervals[usize::from(feedback >> 3) & 7]);
        self.left = (interval * 17 / 20 + ((interval * 3 / 10 * u64::from(draw)) >> 32)).max(1);
        Sample { feedback, offset, delta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The middle of the random numbers: the next interval is that of the table.
    const MIDDLE: u32 = 1 << 31;

    fn point() -> CongestionPoint {
        CongestionPoint::new(&CongestionPointSpec::default())
    }

    #[test]
    fn feedback_follows_a_trace_computed_by_hand() {
        let mut point = point();
        // Largest: 26,000 * 5 = 130,000. Each row: queue, Qoff, Qdelta, then Fb * 63 / 130,000 and the interval.
        let trace = [
            // -6,000 + 2 * 20,000 = 34,000: 16.48
            (20_000, -6_000, 20_000, 16, 50_000),
            // 24,000 + 2 * 30,000 = 84,000: 40.7
            (50_000, 24_000, 30_000, 40, 25_000),
            // 24,000 + 0 = 24,000: 11.6
            (50_000, 24_000, 0, 11, 75_000),
            // 4,000 - 40,000 < 0
            (30_000, 4_000, -20_000, 0, 150_000),
            // 0 - 8,000 < 0
            (26_000, 0, -4_000, 0, 150_000),
            // 174,000 + 348,000 is above the largest.
            (200_000, 174_000, 174_000, 63, 18_500),
            // 74,000 - 200,000 < 0
            (100_000, 74_000, -100_000, 0, 150_000),
            // 74,000: 35.86
            (100_000, 74_000, 0, 35, 30_000),
            // 104,000 + 60,000 is above the largest; 44,000 + 2 * -60,000 is below zero.
            (130_000, 104_000, 30_000, 63, 18_500),
            (70_000, 44_000, -60_000, 0, 150_000),
        ];
        for (length, offset, delta, feedback, left) in trace {
            assert_eq!(point.sample(Bytes(length), MIDDLE), Sample { feedback, offset, delta }, "queue of {length}");
            assert_eq!(point.left, left, "interval after feedback {feedback}");
        }
    }

    #[test]
    fn sample_is_due_when_the_interval_has_joined_the_queue() {
        let mut point = point();
        assert!((0..99).all(|_| point.pass(1500)));
        assert!(!point.pass(1500), "the hundredth frame completes 150,000 bytes");
        point.sample(Bytes(0), 0);
        assert_eq!(point.left, 127_500, "85 %");
        point.sample(Bytes(0), u32::MAX);
        assert_eq!(point.left, 172_499, "115 %");
    }

    #[test]
    fn intervals_scale_with_their_base_and_weight_zero_ignores_changes() {
        let spec = CongestionPointSpec { sample: Bytes(15_000), weight: 0, set_point: Bytes(63_000) };
        let mut point = CongestionPoint::new(&spec);
        assert_eq!(point.intervals, [15_000, 7_500, 5_000, 3_750, 3_000, 2_500, 2_150, 1_850]);
        // Largest: 63,000, so one step of feedback is 1,000 bytes.
        let sample = point.sample(Bytes(63_000 + 5_999), MIDDLE);
        assert_eq!(sample, Sample { feedback: 5, offset: 5_999, delta: 68_999 });
    }

    proptest! {
        #[test]
        fn feedback_is_bounded_and_grows_with_the_queue(
            (set_point, weight, sample) in (1_u64..10_000_000, 0_u8..=16, 1_u64..10_000_000),
            (before, one, other) in any::<(u32, u32, u32)>(),
            draw in any::<u32>(),
        ) {
            let spec = CongestionPointSpec { set_point: Bytes(set_point), weight, sample: Bytes(sample) };
            let mut point = CongestionPoint::new(&spec);
            point.sample(Bytes(before.into()), draw);
            let (mut low, mut high) = (point.clone(), point);
            let below = low.sample(Bytes(one.min(other).into()), draw);
            let above = high.sample(Bytes(one.max(other).into()), draw);
            prop_assert!(below.feedback <= above.feedback && above.feedback <= MOST_FEEDBACK);
            // More congestion never means later samples.
            prop_assert!(low.left >= high.left && high.left > 0);
        }

        #[test]
        fn interval_stays_within_fifteen_percent(draw in any::<u32>(), length in 0_u64..400_000) {
            let mut point = point();
            let feedback = point.sample(Bytes(length), draw).feedback;
            let interval = INTERVALS[usize::from(feedback >> 3)];
            prop_assert!((interval * 85 / 100..=interval * 115 / 100).contains(&point.left));
        }
    }
}
