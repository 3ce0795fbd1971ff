//! The transmit timers of a port (802.1AB clauses 9.2.8 and 9.2.10).

use super::{SECOND, Timing, after};
use crate::units::Nanos;

/// When a port sends. The standard counts timers down once a second; these are instants, which act alike.
#[derive(Debug, Clone, Copy)]
pub struct Transmitter {
    /// Frames that may leave now (txCredit).
    credit: u8,
    /// Instant of the last second that was added to the credit.
    credited: Nanos,
    /// Instant of the next periodic frame (txTTR).
    next: Nanos,
    /// Fast frames that are left (txFast).
    fast: u8,
    /// Instant at which a change of the settings is told (localChange).
    change: Option<Nanos>,
}

impl Transmitter {
    /// Begins at `start`, with a frame at once and all credit.
    pub fn new(start: Nanos, timing: &Timing) -> Self {
        Self { credit: timing.most_credit, credited: start, next: start, fast: 0, change: None }
    }

    /// Begins a fast period, or goes on with it, and sends a frame at once.
    ///
    /// Clause 9.2.10 (TX_FAST_START), in substance: a new neighbour sets txFast to txFastInit if it is zero, and the
    /// timer expires.
    pub fn note_new_neighbour(&mut self, now: Nanos, timing: &Timing) {
        if self.fast == 0 {
            self.fast = timing.fast_frames;
        }
        self.next = self.next.min(now);
    }

    /// Sends a frame soon, because the settings have changed.
    pub fn note_change(&mut self, now: Nanos, timing: &Timing) {
        self.change.get_or_insert(after(now, timing.change_delay));
    }

    /// Whether a frame leaves now. If so, it is counted.
    pub fn take(&mut self, now: Nanos, timing: &Timing) -> bool {
        // Clause 9.2.7.10 (txAddCredit), in substance: each second adds one, up to the maximum.
        let seconds = now.0.saturating_sub(self.credited.0) / SECOND.0;
        self.credit = u64::from(self.credit).saturating_add(seconds).min(timing.most_credit.into()) as u8;
        self.credited.0 += seconds * SECOND.0;
        let is_timed = now >= self.next;
        let is_due = is_timed || self.change.is_some_and(|change| now >= change);
        if now < self.credited || !is_due || self.credit == 0 {
            return false;
        }
        if is_timed {
            self.fast = self.fast.saturating_sub(1);
        }
        self.credit -= 1;
        self.change = None;
        self.next = after(now, if self.fast > 0 { timing.fast_interval } else { timing.interval });
        true
    }

    /// The next instant at which a frame leaves.
    pub fn due(&self) -> Nanos {
        let due = self.change.map_or(self.next, |change| change.min(self.next));
        if self.credit == 0 { due.max(after(self.credited, 1)) } else { due.max(self.credited) }
    }
}
