//! Measures for how long each of eight priorities or queues was paused: one stopwatch each, started and stopped in
//! sets.

use crate::sets::{CLASSES, ClassSet};
use crate::units::Ticks;

/// Eight stopwatches. Starting a running one or stopping a stopped one changes nothing, so that a repeated pause counts
/// once.
#[derive(Debug, Default, Clone)]
pub(super) struct HeldTime {
    held: ClassSet,
    since: [Ticks; CLASSES],
    total: [u64; CLASSES],
}

impl HeldTime {
    /// Returns the running stopwatches.
    pub fn held(&self) -> ClassSet {
        self.held
    }

    /// Starts the stopwatches in `started` at `now`.
    pub fn begin(&mut self, started: ClassSet, now: Ticks) {
        for index in (started - self.held).iter() {
            self.since[index] = now;
        }
        self.held |= started;
    }

    /// Stops the stopwatches in `stopped` at `now`.
    pub fn end(&mut self, stopped: ClassSet, now: Ticks) {
        for index in (stopped & self.held).iter() {
            self.total[index] = self.total[index].saturating_add(now.since(self.since[index]));
        }
        self.held -= stopped;
    }

    /// Returns the total ticks of each stopwatch. A running one counts up to `until(index)`.
    pub fn ticks(&self, until: impl Fn(usize) -> Ticks) -> [u64; CLASSES] {
        let mut ticks = self.total;
        for index in self.held.iter() {
            ticks[index] = ticks[index].saturating_add(until(index).since(self.since[index]));
        }
        ticks
    }
}
