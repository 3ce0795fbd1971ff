//! One flow at both of its ends: the schedule of the sender and the received sequence numbers of the receiver.

use super::frame::Template;
use super::sequence::SequenceWindow;
use super::spec::FlowPattern;
use crate::qos::Shaper;
use crate::sets::ClassSet;
use crate::units::{Nanos, Ticks};

/// A flow.
#[derive(Debug)]
pub(super) struct Flow {
    /// Template of its frames.
    pub template: Template,
    /// Traffic class.
    pub class: usize,
    /// PFC priority that pauses the flow.
    pub priority: usize,
    /// Index of the receiving host; `None` for a station outside.
    pub to: Option<usize>,
    /// Sequence number of the next frame.
    pub sequence: u64,
    /// Pacer of the flow's own rate.
    pub pacer: Shaper,
    /// Phases of the on/off pattern.
    pub phases: Option<Phases>,
    /// Sequence numbers that the receiver has seen.
    pub window: SequenceWindow,
}

impl Flow {
    /// Whether a frame may leave at `now` while the priorities in `paused` are paused.
    #[inline]
    pub fn is_due(&mut self, paused: ClassSet, now: Ticks) -> bool {
        !paused.contains(self.priority)
            && self.pacer.is_free(now)
            && self.phases.as_mut().is_none_or(|phases| phases.is_on(now))
    }

    /// Whether no frame of the flow is due until `until`, judged by its state at the last poll.
    pub fn is_silent_until(&self, until: Ticks) -> bool {
        !self.pacer.is_free(until) || self.phases.as_ref().is_some_and(|phases| phases.is_off_until(until))
    }
}

/// The phases of [`FlowPattern::OnOff`], which begin at the first call of `is_on`.
#[derive(Debug)]
pub(super) struct Phases {
    on: u64,
    off: u64,
    is_on: bool,
    /// The end of the current phase; `None` before the first.
    until: Option<u64>,
}

impl Phases {
    /// Creates the phases of `pattern` on a clock of `hz`; `None` for a steady flow.
    pub fn new(pattern: FlowPattern, hz: u64) -> Option<Self> {
        match pattern {
            FlowPattern::Steady => None,
            FlowPattern::OnOff { on, off } => {
                Some(Self { on: to_ticks(on, hz).max(1), off: to_ticks(off, hz), is_on: true, until: None })
            }
        }
    }

    /// Whether `now` is in a sending phase.
    #[inline]
    fn is_on(&mut self, now: Ticks) -> bool {
        let until = *self.until.get_or_insert(now.0.saturating_add(self.on));
        if now.0 >= until {
            self.advance(now.0, until);
        }
        self.is_on
    }

    /// Whether the current phase is off and lasts beyond `until`.
    fn is_off_until(&self, until: Ticks) -> bool {
        !self.is_on && self.until.is_some_and(|end| until.0 < end)
    }

    /// Advances to the phase that contains `now`. Whole rounds without a poll are skipped in one step.
    #[cold]
    fn advance(&mut self, now: u64, mut until: u64) {
        until += (now - until) / (self.on + self.off) * (self.on + self.off);
        while now >= until {
            self.is_on = !self.is_on;
            until += if self.is_on { self.on } else { self.off };
        }
        self.until = Some(until);
    }
}

/// Converts `time` to ticks of a clock of `hz`; saturates.
pub(super) fn to_ticks(time: Nanos, hz: u64) -> u64 {
    u64::try_from(u128::from(time.0) * u128::from(hz) / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_off_until_holds_to_the_end_of_an_off_phase() {
        let pattern = FlowPattern::OnOff { on: Nanos(300), off: Nanos(700) };
        let mut phases = Phases::new(pattern, 1_000_000_000).unwrap();
        assert!(!phases.is_off_until(Ticks(5000)), "before the first");
        phases.is_on(Ticks(5000));
        assert!(!phases.is_off_until(Ticks(5001)));
        phases.is_on(Ticks(5400));
        assert!(phases.is_off_until(Ticks(5999)) && !phases.is_off_until(Ticks(6000)));
    }

    #[test]
    fn on_off_phases_alternate_however_seldom_they_are_read() {
        let pattern = FlowPattern::OnOff { on: Nanos(300), off: Nanos(700) };
        for step in [1, 7, 1000, 123_457] {
            let mut phases = Phases::new(pattern, 1_000_000_000).unwrap();
            for now in (0..50 * step).step_by(step) {
                assert_eq!(phases.is_on(Ticks(5000 + now as u64)), now % 1000 < 300, "at {now}");
            }
        }
    }
}
