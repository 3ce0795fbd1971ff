//! Pauses received: one timer a priority, set by each frame anew, ended by XON or by itself.

use super::quantum_ticks;
use crate::qos::CLASSES;
use crate::units::{BitRate, Ticks};
use crate::wire::mac_control::PfcFrame;

/// The pause timers of one port (IEEE 802.1Qbb 36.1.3.2: the last value received overwrites the timer).
#[derive(Debug, Clone)]
pub struct PauseTimers {
    until: [Ticks; CLASSES],
    /// Priorities whose timer runs.
    running: u8,
    quantum: u64,
}

impl PauseTimers {
    /// Timers of a port of `rate` on a clock of `hz` ticks a second.
    #[must_use]
    pub fn new(rate: BitRate, hz: u64) -> Self {
        Self { until: [Ticks(0); CLASSES], running: 0, quantum: quantum_ticks(rate, hz) }
    }

    /// Obeys `frame`, received at `now`.
    pub fn receive(&mut self, frame: &PfcFrame, now: Ticks) {
        for (priority, quanta) in frame.quanta.iter().enumerate() {
            let bit = 1 << priority;
            if frame.enabled & bit == 0 {
                continue;
            }
            if quanta.0 == 0 {
                self.running &= !bit;
            } else {
                // Rounded up: a pause must not end early.
                let ticks = ((u64::from(quanta.0) * self.quantum) >> 16) + 1;
                self.until[priority] = Ticks(now.0.saturating_add(ticks));
                self.running |= bit;
            }
        }
    }

    /// Priorities paused at `now`, as a mask; expired timers end here.
    #[inline]
    pub fn paused(&mut self, now: Ticks) -> u8 {
        if self.running != 0 {
            self.expire(now);
        }
        self.running
    }

    fn expire(&mut self, now: Ticks) {
        for priority in 0..CLASSES {
            if self.until[priority] <= now {
                self.running &= !(1 << priority);
            }
        }
    }

    /// Ends all pauses: the link went down, and the peer's word with it.
    pub fn clear(&mut self) {
        self.running = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Quanta;

    /// Picoseconds, as the simulator has them.
    const PS: u64 = 1_000_000_000_000;

    fn frame(enabled: u8, quanta: u16) -> PfcFrame {
        PfcFrame { enabled, quanta: [Quanta(quanta); CLASSES] }
    }

    #[test]
    fn the_longest_pause_lasts_what_the_standard_says() {
        for (gigabits, nanoseconds) in [(10, 3_355_392), (25, 1_342_157), (100, 335_539), (400, 83_885)] {
            let mut timers = PauseTimers::new(BitRate(gigabits * 1_000_000_000), PS);
            timers.receive(&frame(1 << 3, 0xffff), Ticks(0));
            assert_eq!(timers.paused(Ticks(nanoseconds * 1000 - 1000)), 1 << 3, "{gigabits}G");
            assert_eq!(timers.paused(Ticks(nanoseconds * 1000 + 1000)), 0, "{gigabits}G");
        }
    }

    #[test]
    fn the_last_value_counts_and_only_enabled_ones() {
        let mut timers = PauseTimers::new(BitRate(10_000_000_000), PS);
        timers.receive(&frame(0b1000, 100), Ticks(0));
        timers.receive(&frame(0b1000, 1), Ticks(0));
        assert_eq!(timers.paused(Ticks(51_200)), 0b1000);
        assert_eq!(timers.paused(Ticks(51_202)), 0);
        timers.receive(&frame(0b1001, 100), Ticks(0));
        timers.receive(&frame(0b0001, 0), Ticks(0));
        assert_eq!(timers.paused(Ticks(1)), 0b1000, "XON of 0 leaves 3 paused");
        timers.receive(&frame(0, 0), Ticks(1));
        assert_eq!(timers.paused(Ticks(2)), 0b1000, "an empty vector says nothing");
    }
}
