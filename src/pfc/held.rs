//! Measures for how long each of eight priorities or queues was paused: one stopwatch each, started and stopped by
//! mask.

use crate::sets::CLASSES;
use crate::sets::indices;
use crate::units::Ticks;

/// Eight stopwatches. Starting a running one or stopping a stopped one changes nothing, so that a repeated pause counts
/// once.
#[derive(Debug, Default, Clone)]
pub(super) struct HeldTime {
    held: u8,
    since: [Ticks; CLASSES],
    total: [u64; CLASSES],
}

impl HeldTime {
    /// Returns the running stopwatches as a mask.
    pub fn held(&self) -> u8 {
        self.held
    }

    /// Starts the stopwatches in `mask` at `now`.
    pub fn begin(&mut self, mask: u8, now: Ticks) {
        for index in indices(mask & !self.held) {
            self.since[index] = now;
        }
        self.held |= mask;
    }

    /// Stops the stopwatches in `mask` at `now`.
    pub fn end(&mut self, mask: u8, now: Ticks) {
        for index in indices(mask & self.held) {
            self.total[index] = self.total[index].saturating_add(now.since(self.since[index]));
        }
        self.held &= !mask;
    }

    /// Returns the total ticks of each stopwatch. A running one counts up to `until(index)`.
    pub fn ticks(&self, until: impl Fn(usize) -> Ticks) -> [u64; CLASSES] {
        let mut ticks = self.total;
        for index in indices(self.held) {
            ticks[index] = ticks[index].saturating_add(until(index).since(self.since[index]));
        }
        ticks
    }
}
