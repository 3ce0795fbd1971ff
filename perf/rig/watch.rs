//! A look at the clock wherever the rig has one at hand, to see when the core was taken away.
//!
//! The rig looks at the beginning of each poll and at both ends of each call of `rx` and `tx`. Between two looks at most one
//! burst of 32 frames is handled, whatever the load. Two looks that are further apart than that can take are a **theft**: an
//! interrupt, another process, or another virtual machine. The limit is for the bench to choose, from the gaps that a
//! loop sees which does nothing else ([`control`]).
//!
//! After a theft of more than [`LONG_NS`] somebody else's data is in the caches, and what the switch then does says nothing of
//! a core of its own: for [`COLD_NS`] it counts as disturbed too.

use holdfast::dpdk;

use super::Histogram;

const LONG_NS: u64 = 100_000;
const COLD_NS: u64 = 500_000;

/// Gaps below this many ticks are not worth a place in the histogram.
const SMALL: u64 = 1024;

/// When the clock was last looked at, and what was missing since.
#[derive(Debug)]
pub struct Watch {
    last: u64,
    limit: u64,
    /// Of a long one, and how long it is felt.
    long: u64,
    cold: u64,
    /// Until when the last theft is felt.
    disturbed_until: u64,
    /// How many there were.
    pub thefts: u64,
    /// Ticks in them.
    pub stolen: u64,
    /// Of these, ticks that the peers have not stood still for yet.
    unfrozen: u64,
    /// Gaps of more than [`SMALL`] ticks.
    pub gaps: Histogram,
}

impl Watch {
    /// For thefts of more than `limit_ns`, on a clock of `hz`.
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

    /// Looks, and says what time it is.
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

    /// Ticks stolen since this was asked last.
    #[inline]
    pub fn take_stolen(&mut self) -> u64 {
        std::mem::take(&mut self.unfrozen)
    }

    /// Whether the core was there all the time since `since`, as far as the last look, and with its own data.
    #[inline]
    pub fn undisturbed_since(&self, since: u64) -> bool {
        self.disturbed_until <= since
    }
}

/// Looks at the clock and does nothing else for `ticks`: what this core loses whatever runs on it.
pub fn control(limit_ns: u64, hz: u64, ticks: u64) -> Watch {
    let mut watch = Watch::new(limit_ns, hz);
    let start = watch.look();
    while watch.look() - start < ticks {}
    watch
}
