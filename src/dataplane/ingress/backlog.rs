//! Receive backlog: frames that wait in the receive ring. A core that cannot keep up loses frames there, before the
//! buffer can hold them. A backlog beyond a mark therefore pauses the lossless senders.

use crate::units::Ticks;

/// Polls in a row that must leave frames behind to count as a backlog, on a device that cannot report how many. A
/// single such poll may only have met a burst.
const FULL_POLLS: u8 = 4;
/// Polls in a row after which a backlog that does not shrink is stalled. The first is for devices that report the
/// frames left. The second is for all others: in that time, one burst a poll drains a ring of 1,024 frames.
const STALLED_POLLS: u8 = 4;
const STALLED_UNSEEN_POLLS: u8 = 32;

/// The backlog state of one port: whether its receive ring holds more than the core can process.
#[derive(Debug, Clone)]
pub(crate) struct Backlog {
    /// Frames left after a poll that count as a backlog; `None`: no number does.
    mark: Option<u32>,
    is_on: bool,
    /// Polls in a row that left an unknown number of frames.
    full_polls: u8,
    /// The fewest frames left since the backlog began; `None`: the device cannot report them.
    lowest: Option<usize>,
    /// Polls in a row, while the backlog is on, after which no fewer frames were left.
    stalled_polls: u8,
    /// Instant at which the present backlog began, and the total duration of the earlier ones.
    since: Ticks,
    held_ticks: u64,
}

impl Backlog {
    pub fn new(mark: Option<u32>) -> Self {
        Self { mark, is_on: false, full_polls: 0, lowest: None, stalled_polls: 0, since: Ticks(0), held_ticks: 0 }
    }

    /// Whether senders must stop: from the moment the mark is reached until the ring is drained.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a poll that leaves no frames would change the state: XOFF is on, or earlier polls in a row left frames.
    #[inline]
    pub fn is_watching(&self) -> bool {
        self.is_on || self.full_polls != 0
    }

    /// Whether the core does not catch up: the backlog is on and did not shrink for some polls in a row. The backlog
    /// after a stall of the core shrinks at almost every poll.
    #[inline]
    pub fn is_stalled(&self) -> bool {
        self.stalled_polls >= if self.lowest.is_some() { STALLED_POLLS } else { STALLED_UNSEEN_POLLS }
    }

    /// Evaluates a poll that took all frames that it could or was allowed to, and left `left` frames; `None`: an
    /// unknown number above zero. `most` frames are a backlog even if the mark is higher.
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
            (false, true) => {
                (self.since, self.lowest, self.stalled_polls) = (now, left, 0);
            }
            (true, false) => {
                self.held_ticks += now.since(self.since);
                self.stalled_polls = 0;
            }
            (true, true) => self.follow(left),
            (false, false) => {}
        }
    }

    /// Counts polls in a row that did not reduce the backlog below its lowest level.
    fn follow(&mut self, left: Option<usize>) {
        if left.is_some() && left < self.lowest {
            (self.lowest, self.stalled_polls) = (left, 0);
        } else {
            self.stalled_polls = self.stalled_polls.saturating_add(1);
        }
    }

    /// Ticks for which the backlog has made senders stop, up to `now`.
    pub fn held_ticks(&self, now: Ticks) -> u64 {
        self.held_ticks + if self.is_on { now.since(self.since) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlog_is_on_from_its_mark_until_the_ring_is_empty() {
        let mut backlog = Backlog::new(Some(32));
        for (left, on) in [(31, false), (32, true), (31, true), (1, true), (0, false), (31, false)] {
            backlog.judge(Some(left), u32::MAX, Ticks(0));
            assert_eq!(backlog.is_on(), on, "{left} left");
        }
    }

    #[test]
    fn cut_short_poll_counts_any_leftover_as_backlog() {
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
    fn backlog_without_ring_count_is_on_after_consecutive_polls() {
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
    fn backlog_that_shrinks_is_not_stalled() {
        let mut backlog = Backlog::new(Some(32));
        // A stall left 1,000 frames. Each poll takes a burst while a few frames arrive, so the backlog stays level for
        // up to three polls in a row.
        for left in (100..1000).rev().step_by(9).flat_map(|left| [left + 5, left + 9, left + 7, left]) {
            backlog.judge(Some(left), u32::MAX, Ticks(0));
            assert!(backlog.is_on() && !backlog.is_stalled(), "{left}");
        }
    }

    #[test]
    fn backlog_that_stays_is_stalled_until_it_shrinks() {
        let mut backlog = Backlog::new(Some(32));
        let steps = [(900, false), (900, false), (905, false), (901, false), (900, true), (950, true), (899, false)];
        for (left, stalled) in steps {
            backlog.judge(Some(left), u32::MAX, Ticks(0));
            assert_eq!(backlog.is_stalled(), stalled, "{left}");
        }
    }

    #[test]
    fn backlog_without_ring_count_is_stalled_after_a_ring_of_polls() {
        let mut backlog = Backlog::new(Some(32));
        for poll in 1..=40 {
            backlog.judge(None, u32::MAX, Ticks(0));
            assert_eq!(backlog.is_stalled(), poll >= 4 + 32, "{poll}");
        }
        backlog.judge(Some(0), u32::MAX, Ticks(0));
        assert!(!backlog.is_stalled());
    }

    #[test]
    fn backlog_without_a_mark_is_never_on() {
        let mut backlog = Backlog::new(None);
        backlog.judge(Some(100_000), u32::MAX, Ticks(0));
        assert!(!backlog.is_on());
    }
}
