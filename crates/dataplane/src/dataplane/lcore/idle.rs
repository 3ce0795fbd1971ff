//! Decides when an idle lcore may rest, and for how long. A rest is a sleep between two polls. This is a state machine
//! without its own clock.
//!
//! Rests begin after a time without frames. The first rests are short, so that a frame soon after the last one finds
//! the lcore almost awake. The length of a rest counts from the poll before it, because the bound applies to the gap
//! between two polls, which includes the poll.

use crate::units::{Nanos, Ticks};

/// The first rest is the longest one divided by this; each further rest is twice as long as the one before.
const FIRST_PART: u64 = 8;

/// Function that puts an lcore to rest: it gets the ports, and sleeps until the given instant or for less.
pub type Rest<I> = Box<dyn FnMut(&I, Ticks) + Send>;

/// When an lcore rests, and the function that rests.
pub struct Resting<I> {
    /// Decides when to rest.
    pub idle: Idle,
    /// Performs the rest.
    pub rest: Rest<I>,
}

/// Tracks for how long no frame has come, and the length of the next rest.
#[derive(Debug, Clone)]
pub struct Idle {
    /// Time without frames before the first rest; then the length of the first and of the longest rest. All in ticks.
    after: u64,
    first: u64,
    longest: u64,
    /// Instant of the first poll in a row without frames, and the length of the next rest in ticks.
    since: Option<Ticks>,
    next: u64,
}

impl Idle {
    /// Creates the state for rests of at most `longest` after a time `after` without frames, on a clock of `hz` ticks a
    /// second.
    #[must_use]
    pub fn new(after: Nanos, longest: Nanos, hz: u64) -> Self {
        let longest = ticks(longest, hz);
        let first = longest.div_ceil(FIRST_PART);
        Self { after: ticks(after, hz), first, longest, since: None, next: first }
    }

    /// Restarts the wait: the last poll had work, or work is due soon.
    #[inline]
    pub fn busy(&mut self) {
        self.since = None;
    }

    /// Records that the poll at `now` had no work. Returns whether that has lasted for long enough to rest.
    pub fn is_due(&mut self, now: Ticks) -> bool {
        let since = *self.since.get_or_insert_with(|| {
            self.next = self.first;
            now
        });
        now.since(since) >= self.after
    }

    /// Latest end of the next rest, after a poll at `now`.
    #[must_use]
    pub fn until(&self, now: Ticks) -> Ticks {
        Ticks(now.0.saturating_add(self.next))
    }

    /// Records that the rest took place: the next one may be longer.
    pub fn rested(&mut self) {
        self.next = self.next.saturating_mul(2).min(self.longest);
    }
}

/// Converts `time` to ticks on a clock of `hz`, rounded down: a rest must not exceed its limit.
fn ticks(time: Nanos, hz: u64) -> u64 {
    u64::try_from(u128::from(time.0) * u128::from(hz) / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One tick is one nanosecond.
    const GHZ: u64 = 1_000_000_000;

    fn idle() -> Idle {
        Idle::new(Nanos(50), Nanos(80), GHZ)
    }

    /// Length of the rest after a poll at `now` that found no work.
    fn rest(idle: &mut Idle, now: u64) -> Option<u64> {
        idle.is_due(Ticks(now)).then(|| {
            let until = idle.until(Ticks(now));
            idle.rested();
            until.0 - now
        })
    }

    #[test]
    fn rests_begin_after_quiet_and_grow() {
        let mut idle = idle();
        let rests: Vec<Option<u64>> = [0, 49, 50, 60, 80, 120, 200].iter().map(|&now| rest(&mut idle, now)).collect();
        assert_eq!(rests, [None, None, Some(10), Some(20), Some(40), Some(80), Some(80)]);
    }

    #[test]
    fn work_restarts_the_quiet_time_and_the_shortest_rest() {
        let mut idle = idle();
        for now in [0, 50, 60, 80] {
            rest(&mut idle, now);
        }
        idle.busy();
        let rests = [100, 149, 150].map(|now| rest(&mut idle, now));
        assert_eq!(rests, [None, None, Some(10)]);
    }

    #[test]
    fn skipped_rest_does_not_lengthen_the_next() {
        let mut idle = idle();
        idle.is_due(Ticks(0));
        assert!(idle.is_due(Ticks(50)) && idle.is_due(Ticks(51)));
        assert_eq!(idle.until(Ticks(51)), Ticks(61));
    }

    #[test]
    fn idle_at_the_largest_tick_does_not_overflow() {
        let mut idle = Idle::new(Nanos(u64::MAX), Nanos(u64::MAX), u64::MAX);
        assert!(!idle.is_due(Ticks(0)));
        idle.rested();
        assert_eq!(idle.until(Ticks(u64::MAX)), Ticks(u64::MAX));
        assert!(idle.is_due(Ticks(u64::MAX)), "after all there is");
    }

    proptest! {
        /// At any pattern of polls: a quiet time precedes the first rest, no rest exceeds the limit, and each is twice
        /// the one before up to that limit.
        #[test]
        fn rests_are_after_quiet_bounded_and_double(
            after in 0_u64..1000,
            longest in 1_u64..1000,
            polls in prop::collection::vec((1_u64..300, prop::bool::weighted(0.2)), 1..200),
        ) {
            let mut idle = Idle::new(Nanos(after), Nanos(longest), GHZ);
            let (mut now, mut quiet_since, mut before) = (0_u64, None, None);
            for (gap, is_busy) in polls {
                now += gap;
                if is_busy {
                    idle.busy();
                    (quiet_since, before) = (None, None);
                    continue;
                }
                let quiet = now - *quiet_since.get_or_insert(now);
                let rest = rest(&mut idle, now);
                prop_assert_eq!(rest.is_some(), quiet >= after);
                if let Some(rest) = rest {
                    let expected = before.map_or(longest.div_ceil(FIRST_PART), |before: u64| (2 * before).min(longest));
                    prop_assert_eq!(rest, expected);
                    prop_assert!(rest >= 1 && rest <= longest);
                    now += rest;
                    before = Some(rest);
                }
            }
        }
    }
}
