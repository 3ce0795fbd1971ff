//! A policer: it passes events up to a rate, with a burst after silence.

use crate::units::Ticks;

/// Events beyond its rate that a policer passes in a row.
pub const BURST_EVENTS: u64 = 64;

/// A policer by the generic cell rate algorithm (ITU-T I.371): a token bucket whose state is one instant.
#[derive(Debug, Clone, Copy)]
pub struct Policer {
    /// Instant at which the bucket is full again.
    full_at: u64,
    /// Ticks for each event.
    interval: u64,
}

impl Policer {
    /// Creates a policer on a clock of `hz` ticks a second, with a full bucket.
    #[must_use]
    pub fn new(events_per_second: u32, hz: u64) -> Self {
        Self { full_at: 0, interval: (hz / u64::from(events_per_second).max(1)).max(1) }
    }

    /// Whether an event may pass at `now`.
    pub fn passes(&mut self, now: Ticks) -> bool {
        let start = self.full_at.max(now.0);
        if start - now.0 > (BURST_EVENTS - 1) * self.interval {
            return false;
        }
        self.full_at = start + self.interval;
        true
    }
}
