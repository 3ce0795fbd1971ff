//! Receive backlog: the software switch's own way of losing. A core that cannot keep up loses in the receive ring, before
//! any buffer could save the frame, so what waits there beyond a mark makes the senders stop.

use crate::units::Ticks;

/// Polls in a row that leave frames behind, on a device that cannot tell how many, and that count as a backlog: one may
/// just have met a burst.
const FULL_POLLS: u8 = 4;

/// Whether the receive ring of one port holds more than the core gets done.
#[derive(Debug, Clone)]
pub(super) struct Backlog {
    /// Frames left after a poll that count as one; `None`: nobody minds.
    mark: Option<u32>,
    is_on: bool,
    /// Polls in a row that left an unknown number of frames.
    full_polls: u8,
    /// When it began, if it is on, and how long it was on before.
    since: Ticks,
    held_ticks: u64,
}

impl Backlog {
    pub fn new(mark: Option<u32>) -> Self {
        Self { mark, is_on: false, full_polls: 0, since: Ticks(0), held_ticks: 0 }
    }

    /// Senders are to stop: from when the mark is reached until the ring is drained.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a poll that leaves nothing has anything to end: XOFF, or a row of polls that left something.
    #[inline]
    pub fn is_watching(&self) -> bool {
        self.is_on || self.full_polls != 0
    }

    /// A poll took all that it may, or could, and left `left` frames; `None`: some, the device cannot tell how many. So many
    /// as `most` are a backlog even if the mark is higher.
    pub fn judge(&mut self, left: Option<usize>, most: u32, now: Ticks) {
        let Some(mark) = self.mark else { return };
        let was_on = self.is_on;
        match left {
            Some(0) => (self.is_on, self.full_polls) = (false, 0),
            Some(left) => self.is_on |= left >= mark.min(most) as usize,
            None => {
                self.full_polls = (self.full_polls + 1).min(FULL_POLLS);
                self.is_on |= self.full_polls == FULL_POLLS;
            }
        }
        match (was_on, self.is_on) {
            (false, true) => self.since = now,
            (true, false) => self.held_ticks += now.since(self.since),
            _ => {}
        }
    }

    /// Ticks for which senders were to stop because of the backlog, up to `now`.
    pub fn held_ticks(&self, now: Ticks) -> u64 {
        self.held_ticks + if self.is_on { now.since(self.since) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_turns_it_on_and_only_an_empty_ring_off() {
        let mut backlog = Backlog::new(Some(32));
        for (left, on) in [(31, false), (32, true), (31, true), (1, true), (0, false), (31, false)] {
            backlog.judge(Some(left), u32::MAX, Ticks(0));
            assert_eq!(backlog.is_on(), on, "{left} left");
        }
    }

    #[test]
    fn a_poll_without_time_may_leave_less_than_the_mark() {
        let mut backlog = Backlog::new(Some(32));
        for (left, on) in [(0, false), (1, true), (0, false)] {
            backlog.judge(Some(left), 1, Ticks(0));
            assert_eq!(backlog.is_on(), on, "{left} left");
        }
        let mut without = Backlog::new(None);
        without.judge(Some(1), 1, Ticks(0));
        assert!(!without.is_on());
    }

    #[test]
    fn a_device_that_cannot_tell_is_judged_by_polls_in_a_row() {
        let mut backlog = Backlog::new(Some(32));
        for _ in 0..3 {
            backlog.judge(None, u32::MAX, Ticks(0));
        }
        assert!(!backlog.is_on());
        backlog.judge(Some(0), u32::MAX, Ticks(0));
        for poll in 1..=4 {
            backlog.judge(None, u32::MAX, Ticks(0));
            assert_eq!(backlog.is_on(), poll == 4);
        }
        backlog.judge(Some(0), u32::MAX, Ticks(0));
        assert!(!backlog.is_on());
    }

    #[test]
    fn time_is_counted_from_xoff_to_the_drained_ring() {
        let mut backlog = Backlog::new(Some(32));
        for (now, left, held) in [(10, 40, 0), (15, 1, 5), (20, 0, 10), (30, 0, 10), (40, 33, 10)] {
            backlog.judge(Some(left), u32::MAX, Ticks(now));
            assert_eq!(backlog.held_ticks(Ticks(now)), held, "at {now}");
        }
        assert_eq!(backlog.held_ticks(Ticks(50)), 20);
    }

    #[test]
    fn without_a_mark_nobody_minds() {
        let mut backlog = Backlog::new(None);
        backlog.judge(Some(100_000), u32::MAX, Ticks(0));
        assert!(!backlog.is_on());
    }
}
