//! How far ahead of the wire an lcore posts frames: by the longest time between its polls lately.
//!
//! A posted frame can be neither paused nor overtaken. So an lcore posts no more than keeps the wires busy until its
//! next poll, and never more than the row `transmit ring` of headroom.

use crate::headroom::most_slack;
use crate::units::{Nanos, Ticks};

/// A gap counts for one to two windows. A window has thousands of polls, so that a slack shrinks only if gaps do.
const WINDOWS_PER_SECOND: u64 = 1000;

/// The slack of one lcore, in ticks.
#[derive(Debug)]
pub(crate) struct PollSlack {
    /// Upper limit: the row of headroom.
    most: u64,
    window: u64,
    ends: Ticks,
    /// The longest gaps of this window and of the one before, at most `most`.
    longest: u64,
    before: u64,
    slack: u64,
}

impl PollSlack {
    /// Creates the state for polls that headroom assumes to be up to `poll_gap` apart, on a clock of `hz` ticks a
    /// second. Until a gap is known, the slack is the largest.
    pub fn new(poll_gap: Nanos, hz: u64) -> Self {
        let most = (u128::from(most_slack(poll_gap).0) * u128::from(hz) / 1_000_000_000) as u64;
        let window = (hz / WINDOWS_PER_SECOND).max(1);
        Self { most, window, ends: Ticks(0), longest: 0, before: 0, slack: most }
    }

    /// Notes that `gap` ticks have passed since the poll before, which moved or left frames. Returns the slack if it
    /// changes.
    #[inline]
    pub fn note(&mut self, gap: u64, now: Ticks) -> Option<u64> {
        let gap = gap.min(self.most);
        if gap > self.longest || self.ends <= now { self.adapt(gap, now) } else { None }
    }

    #[cold]
    fn adapt(&mut self, gap: u64, now: Ticks) -> Option<u64> {
        if self.ends <= now {
            (self.before, self.longest, self.ends) = (self.longest, gap, Ticks(now.0 + self.window));
        }
        self.longest = self.longest.max(gap);
        let slack = self.longest.max(self.before);
        (slack != std::mem::replace(&mut self.slack, slack)).then_some(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 1_000_000_000;

    /// The slack after polls at `gaps`, beginning with that of no poll.
    fn after(poll_gap: u64, gaps: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let (mut slack, mut now) = (PollSlack::new(Nanos(poll_gap), HZ), HZ);
        let first = slack.slack;
        let later = gaps.into_iter().map(|gap| {
            now += gap;
            slack.note(gap, Ticks(now));
            slack.slack
        });
        std::iter::once(first).chain(later).collect()
    }

    #[test]
    fn slack_is_the_longest_gap_lately_and_bounded() {
        assert_eq!(after(20_000, [10, 80, 10, 50_000, 10]), [10_000, 10, 80, 80, 10_000, 10_000]);
        assert_eq!(after(2_000, [5_000])[1], 2_000, "no more than headroom knows of");
        assert_eq!(after(0, [])[0], 1_000, "a gap below a microsecond bounds nothing");
    }

    #[test]
    fn long_gap_is_forgotten_after_one_to_two_windows() {
        let slacks = after(20_000, std::iter::once(9_000).chain(std::iter::repeat_n(100, 30_000)));
        let held = slacks.iter().filter(|&&slack| slack == 9_000).count();
        assert!((10_000..=20_000).contains(&held), "{held} polls of 100 ns");
        assert_eq!(slacks.last(), Some(&100));
    }
}
