//! Detects when the core was taken away, by reading the clock at many places of the rig.
//!
//! The rig reads the clock at the beginning of each poll and at both ends of each call of `rx` and `tx`. Between two
//! readings the switch handles at most one burst of 64 frames at any load. Two readings further apart than that can
//! take are a **theft**: an interrupt, another process, or another virtual machine. The bench chooses the limit from
//! the gaps in a loop that only reads the clock ([`control`]).
//!
//! After a theft of more than [`LONG_NS`], the caches contain the data of another program, and the switch does not
//! behave as on a core of its own. So the following [`COLD_NS`] count as disturbed too.

use holdfast::dpdk;

use super::Histogram;

const LONG_NS: u64 = 100_000;
const COLD_NS: u64 = 500_000;

/// Gaps below this many ticks are not recorded in the histogram.
const SMALL: u64 = 1024;

/// The time of the last reading, and the thefts so far.
#[derive(Debug)]
pub struct Watch {
    last: u64,
    limit: u64,
    /// Ticks of a long theft, and of its effect on the caches.
    long: u64,
    cold: u64,
    /// The time until which the last theft has an effect.
    disturbed_until: u64,
    /// Number of thefts.
    pub thefts: u64,
    /// Ticks of all thefts.
    pub stolen: u64,
    /// Ticks of thefts for which the peers have not stood still yet.
    unfrozen: u64,
    /// Gaps of more than [`SMALL`] ticks.
    pub gaps: Histogram,
}

impl Watch {
    /// Creates a watch for thefts of more than `limit_ns`, on a clock of `hz`.
    pub fn new(limit_ns: u64, hz: u64) -> Self {
        let [limit, long, cold] =
            [limit_ns, LONG_NS, COLD_NS].map(|ns| (u128::from(ns) * u128::from(hz) / 1_000_000_000) as u64);
        Self {
            last: u64::MAX,
            limit,
            long,
            cold,
            disturbed_until: 0,
            thefts: 0,
            stolen: 0,
            unfrozen: 0,
            gaps: Histogram::default(),
        }
    }

    /// Reads the clock, and returns the time in ticks.
    #[inline]
    pub fn look(&mut self) -> u64 {
        let now = dpdk::now().0;
        let gap = now.saturating_sub(self.last);
        if gap > SMALL {
            self.wonder(now, gap);
        }
        self.last = now;
        now
    }

    #[cold]
    fn wonder(&mut self, now: u64, gap: u64) {
        self.gaps.record(gap);
        if gap > self.limit {
            self.thefts += 1;
            self.stolen += gap;
            self.unfrozen += gap;
            self.disturbed_until = now + if gap > self.long { self.cold } else { 0 };
        }
    }

    /// Ticks stolen since the last call.
    #[inline]
    pub fn take_stolen(&mut self) -> u64 {
        std::mem::take(&mut self.unfrozen)
    }

    /// Whether no theft had an effect between `since` and the last reading.
    #[inline]
    pub fn undisturbed_since(&self, since: u64) -> bool {
        self.disturbed_until <= since
    }
}

/// Only reads the clock for `ticks`: measures the time that this core loses with any program.
pub fn control(limit_ns: u64, hz: u64, ticks: u64) -> Watch {
    let mut watch = Watch::new(limit_ns, hz);
    let start = watch.look();
    while watch.look() - start < ticks {}
    watch
}
