//! A look at the clock wherever the rig has one at hand, to see when the core was taken away.
//!
//! The rig looks at the beginning of each poll and at both ends of each call of `rx` and `tx`. Between two looks at most one
//! burst of 32 frames is handled, whatever the load. Two looks that are further apart than that can take are a **theft**: an
//! interrupt, another process, or another virtual machine. The limit is for the bench to choose, from the gaps that a
//! loop sees which does nothing else ([`control`]).

use holdfast::dpdk;

use super::Histogram;

/// Gaps below this many ticks are not worth a place in the histogram.
const SMALL: u64 = 1024;

/// When the clock was last looked at, and what was missing since.
#[derive(Debug)]
pub struct Watch {
    last: u64,
    limit: u64,
    /// When the last theft was over.
    theft_ended: u64,
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
    /// For thefts of more than `limit` ticks.
    pub fn new(limit: u64) -> Self {
        Self { last: u64::MAX, limit, theft_ended: 0, thefts: 0, stolen: 0, unfrozen: 0, gaps: Histogram::default() }
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
            self.theft_ended = now;
        }
    }

    /// What follows is not compared with what was: the core did something else.
    pub fn restart(&mut self) {
        self.last = u64::MAX;
    }

    /// Ticks stolen since this was asked last.
    #[inline]
    pub fn take_stolen(&mut self) -> u64 {
        std::mem::take(&mut self.unfrozen)
    }

    /// Whether the core was there all the time since `since`, as far as the last look.
    #[inline]
    pub fn undisturbed_since(&self, since: u64) -> bool {
        self.theft_ended <= since
    }
}

/// Looks at the clock and does nothing else for `ticks`: what this core loses whatever runs on it.
pub fn control(limit: u64, ticks: u64) -> Watch {
    let mut watch = Watch::new(limit);
    let start = watch.look();
    while watch.look() - start < ticks {}
    watch
}
