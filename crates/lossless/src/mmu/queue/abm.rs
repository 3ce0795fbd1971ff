//! Active Buffer Management (ABM; Addanki et al., SIGCOMM 2022) for lossy egress queues.
//!
//! ABM multiplies the limit of Dynamic Threshold by two parts, both at most one: `1/n`, and the drain rate of the queue
//! in parts of the port's rate. `n` is the number of congested queues of the same number at all ports. A queue adds to
//! `n` its depth in parts of [`AbmSpec::congested`], up to one.
//!
//! Both parts are measured on a timer, so that an admission costs two multiplications and no division.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sets::CLASSES;
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Bytes, Cells, Nanos};

/// Settings of ABM; equal for all queues of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbmSpec {
    /// Time between two measurements.
    pub interval: Nanos,
    /// Depth from which a queue counts as one congested queue, and from which its drain rate is measured.
    pub congested: Bytes,
}

impl AbmSpec {
    /// The settings of the artefact of Reverie: 25 us and 20 KiB.
    pub const USUAL: Self = Self { interval: Nanos(25_000), congested: Bytes(20 << 10) };

    /// Returns what a queue of `depth` adds to the congestion of its queue number.
    #[must_use]
    pub fn congestion(&self, depth: Bytes) -> Bytes {
        depth.min(self.congested)
    }

    /// Returns `1/n`, where `congestion` is the sum over all ports; `n` is at least one.
    #[must_use]
    pub fn share(&self, congestion: Bytes) -> LimitPart {
        LimitPart::of_ratio(self.congested, congestion)
    }

    /// Returns the drain rate of a queue of `depth` that sent `sent` while its port could send `could`. A queue that
    /// is not congested drains at the full rate.
    #[must_use]
    pub fn drain(&self, depth: Bytes, sent: Bytes, could: Bytes) -> LimitPart {
        if depth < self.congested { LimitPart::ONE } else { LimitPart::of_ratio(sent, could) }
    }
}

/// A part of a limit, in parts of 2^16; at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitPart(u32);

impl LimitPart {
    /// The whole limit.
    pub const ONE: Self = Self(1 << 16);

    /// Returns `part / whole`, rounded down, and at most one.
    #[must_use]
    pub fn of_ratio(part: Bytes, whole: Bytes) -> Self {
        if part >= whole { Self::ONE } else { Self((u128::from(part.0) << 16).div_euclid(whole.0.into()) as u32) }
    }

    /// Returns this part of `limit`, rounded down.
    #[inline]
    #[must_use]
    pub fn of(self, limit: Cells) -> Cells {
        Cells(((u64::from(limit.0) * u64::from(self.0)) >> 16) as u32)
    }

    /// Returns the part in parts of 2^16.
    #[cfg(test)]
    pub const fn raw(self) -> u32 {
        self.0
    }
}

impl Default for LimitPart {
    fn default() -> Self {
        Self::ONE
    }
}

/// The congestion of each queue number at the ports of one lcore.
type Sums = CachePadded<[AtomicU64; CLASSES]>;

/// One lcore's view of the congestion of all queues. Each sum has one writer, and readers see it late by an interval.
#[derive(Debug)]
pub struct CongestionSums {
    lcore: usize,
    sums: Arc<[Sums]>,
}

impl CongestionSums {
    /// Creates the views of `lcores` lcores, without congestion.
    #[must_use]
    pub fn fleet(lcores: u8) -> Vec<Self> {
        let sums: Arc<[Sums]> = (0..lcores).map(|_| Sums::default()).collect();
        (0..usize::from(lcores)).map(|lcore| Self { lcore, sums: sums.clone() }).collect()
    }

    /// Publishes the sum of `queue` over the ports of this lcore.
    pub fn publish(&self, queue: usize, sum: Bytes) {
        // Relaxed: a number only, which guards no other memory.
        self.sums[self.lcore][queue].store(sum.0, Ordering::Relaxed);
    }

    /// Returns the sum of `queue` over all ports.
    #[must_use]
    pub fn of(&self, queue: usize) -> Bytes {
        Bytes(self.sums.iter().map(|sums| sums[queue].load(Ordering::Relaxed)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: AbmSpec = AbmSpec { interval: Nanos(25_000), congested: Bytes(20_000) };

    /// Two deep queues and one of a quarter of the mark are n = 2.25.
    #[test]
    fn share_is_the_reciprocal_of_the_congested_queues() {
        let sum: Bytes = [90_000, 5_000, 20_000].map(|depth| SPEC.congestion(Bytes(depth))).into_iter().sum();
        assert_eq!(sum, Bytes(45_000));
        assert_eq!(SPEC.share(sum).of(Cells(9_000)), Cells(3_999), "4,000 less the rounding");
        assert_eq!(SPEC.share(Bytes(40_000)).of(Cells(9_000)), Cells(4_500));
        assert_eq!(SPEC.share(Bytes(19_999)), LimitPart::ONE, "n is at least one");
        assert_eq!(SPEC.share(Bytes(0)), LimitPart::ONE);
    }

    /// At 10 Gb/s a port sends 31,250 bytes in an interval.
    #[test]
    fn drain_of_a_congested_queue_is_its_part_of_the_rate() {
        let drain = |depth, sent| SPEC.drain(Bytes(depth), Bytes(sent), Bytes(31_250)).of(Cells(1_000));
        assert_eq!(drain(20_000, 15_625), Cells(500));
        assert_eq!(drain(20_000, 7_812), Cells(249));
        assert_eq!(drain(20_000, 40_000), Cells(1_000), "frames of the interval before");
        assert_eq!(drain(20_000, 0), Cells(0), "a starved queue admits nothing more");
        assert_eq!(drain(19_999, 0), Cells(1_000), "not congested");
    }

    #[test]
    fn congestion_of_all_lcores_is_summed() {
        let fleet = CongestionSums::fleet(2);
        fleet[0].publish(1, Bytes(7));
        fleet[1].publish(1, Bytes(20));
        fleet[0].publish(1, Bytes(5));
        assert_eq!((fleet[0].of(1), fleet[1].of(1), fleet[1].of(2)), (Bytes(25), Bytes(25), Bytes(0)));
    }
}
