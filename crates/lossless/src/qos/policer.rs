//! A policer: it passes events up to a rate, with a burst after silence.

use crate::units::Ticks;

/// A policer by the generic cell rate algorithm (ITU-T I.371): a token bucket whose state is one instant.
#[derive(Debug, Clone, Copy)]
pub struct Policer {
    /// Instant at which the bucket is full again.
    full_at: u64,
    /// Ticks for each event, and for all events that may pass in a row except the first.
    interval: u64,
    burst: u64,
}

impl Policer {
    /// Creates a policer on a clock of `hz` ticks a second that passes `burst_events` in a row after silence.
    #[must_use]
    pub fn new(events_per_second: u32, burst_events: u32, hz: u64) -> Self {
        Self::with_interval(hz / u64::from(events_per_second).max(1), burst_events)
    }

    /// Creates a policer that passes an event every `interval` ticks, and `burst_events` in a row after silence.
    #[must_use]
    pub fn with_interval(interval: u64, burst_events: u32) -> Self {
        let interval = interval.max(1);
        Self { full_at: 0, interval, burst: u64::from(burst_events.max(1) - 1) * interval }
    }

    /// Whether an event could pass at `now`. Counts no event.
    #[must_use]
    pub fn could_pass(&self, now: Ticks) -> bool {
        self.full_at.saturating_sub(now.0) <= self.burst
    }

    /// Whether at least half of the burst could pass at `now`.
    #[must_use]
    pub fn is_half_full(&self, now: Ticks) -> bool {
        self.full_at.saturating_sub(now.0) <= self.burst / 2
    }

    /// Whether an event may pass at `now`. Counts the event if it may.
    pub fn passes(&mut self, now: Ticks) -> bool {
        let passes = self.could_pass(now);
        if passes {
            self.full_at = self.full_at.max(now.0) + self.interval;
        }
        passes
    }
}
