//! Detects when the core was taken away, by reading the clock at many places of the rig.
//!
//! The rig reads the clock at the beginning of each poll and at both ends of each call of `rx` and `tx`. Between two
//! readings the switch handles at most one burst of 64 frames at any load. Two readings further apart than that can
//! take are a **theft**: an interrupt, another process, or another virtual machine.
//!
//! After a theft of more than [`LONG_NS`], the caches contain the data of another program, and the switch does not
//! behave as on a core of its own. So the following [`COLD_NS`] count as disturbed too.
//!
//! Many thefts are shorter than any limit that a busy switch could tell from its own work. [`Machine`] sees those of a
//! core without a switch, in the same seconds.

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
    /// Ticks of the clock that the readings leave out.
    left_out: u64,
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
            left_out: 0,
            gaps: Histogram::default(),
        }
    }

    /// Reads the clock, and returns the time in ticks.
    #[inline]
    pub fn look(&mut self) -> u64 {
        let now = dpdk::now().0 - self.left_out;
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

/// The thefts of a core that only reads the clock, between slices of a run.
#[derive(Debug)]
pub struct Machine {
    pub watch: Watch,
    /// Ticks in which it was observed.
    pub ticks: u64,
}

impl Machine {
    /// Creates an observer of thefts, of which those of more than `limit_ns` count, on a clock of `hz`.
    pub fn new(limit_ns: u64, hz: u64) -> Self {
        Self { watch: Watch::new(limit_ns, hz), ticks: 0 }
    }

    /// Observes the machine for `ticks`, for which the time of `run` stands still.
    pub fn observe(&mut self, ticks: u64, run: &mut Watch) {
        self.watch.last = u64::MAX;
        let start = self.watch.look();
        while self.watch.last - start < ticks {
            self.watch.look();
        }
        self.ticks += self.watch.last - start;
        run.left_out += self.watch.last - start;
    }

    /// The time by which thefts delay at most a share of `quantile` of jobs, in ticks. Each job takes `work` ticks, and
    /// begins at any observed tick but those of a theft for which peers stand still.
    pub fn delay(&self, quantile: f64, work: u64) -> u64 {
        let most = (self.ticks as f64 * (1.0 - quantile)) as u64;
        let gaps = &self.watch.gaps;
        // A theft delays by `time` or more the jobs that it meets while they run, or that begin so long before its end.
        let begins = |gap: u64, time: u64| if gap > self.watch.limit { 0 } else { gap - time };
        let delayed = |time: u64| -> u64 {
            let longer = gaps.buckets().filter(|(gap, _)| *gap >= time);
            longer.map(|(gap, count)| count * (work + begins(gap, time))).sum()
        };
        gaps.buckets().map(|(gap, _)| gap).filter(|&gap| delayed(gap) > most).max().unwrap_or(0)
    }
}
