//! When an lcore with nothing to do may rest, and until when: a state machine without a clock of its own.
//!
//! Nothing may come for a while, then rests begin, short ones first, so that what comes soon after the last frame finds
//! the lcore almost awake. A rest is counted from the poll before it, not from where it begins: what it must not exceed is
//! the gap between two polls, of which the poll is part.

use crate::units::{Nanos, Ticks};

/// The first rest is this part of the longest one; each doubles the one before.
const FIRST_PART: u64 = 8;

/// How an lcore rests: until the instant given, with its ports at hand, or less.
pub type Rest<I> = Box<dyn FnMut(&I, Ticks) + Send>;

/// When an lcore rests, and how.
pub struct Resting<I> {
    /// When.
    pub idle: Idle,
    /// How.
    pub rest: Rest<I>,
}

/// For how long nothing has come, and how long the next rest is.
#[derive(Debug, Clone)]
pub struct Idle {
    /// Ticks.
    after: u64,
    first: u64,
    longest: u64,
    /// The first of the polls that found nothing.
    since: Option<Ticks>,
    next: u64,
}

impl Idle {
    /// Rests of at most `longest` once nothing has come for `after`, on a clock of `hz` ticks a second.
    #[must_use]
    pub fn new(after: Nanos, longest: Nanos, hz: u64) -> Self {
        let longest = ticks(longest, hz);
        let first = longest.div_ceil(FIRST_PART);
        Self { after: ticks(after, hz), first, longest, since: None, next: first }
    }

    /// There was something to do, or there will be soon.
    #[inline]
    pub fn busy(&mut self) {
        self.since = None;
    }

    /// The poll at `now` found nothing. True if that has lasted for long enough.
    pub fn is_due(&mut self, now: Ticks) -> bool {
        let since = *self.since.get_or_insert_with(|| {
            self.next = self.first;
            now
        });
        now.since(since) >= self.after
    }

    /// Until when the next rest may last, after a poll at `now`.
    #[must_use]
    pub fn until(&self, now: Ticks) -> Ticks {
        Ticks(now.0.saturating_add(self.next))
    }

    /// That rest has been had: the next may be longer.
    pub fn rested(&mut self) {
        self.next = self.next.saturating_mul(2).min(self.longest);
    }
}

/// `time` on a clock of `hz`, rounded down: a rest must not be longer than it may be.
fn ticks(time: Nanos, hz: u64) -> u64 {
    u64::try_from(u128::from(time.0) * u128::from(hz) / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tick a nanosecond.
    const GHZ: u64 = 1_000_000_000;

    fn idle() -> Idle {
        Idle::new(Nanos(50), Nanos(80), GHZ)
    }

    /// The rest that a poll at `now` that found nothing leads to.
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
    fn work_begins_it_anew() {
        let mut idle = idle();
        for now in [0, 50, 60, 80] {
            rest(&mut idle, now);
        }
        idle.busy();
        let rests = [100, 149, 150].map(|now| rest(&mut idle, now));
        assert_eq!(rests, [None, None, Some(10)]);
    }

    #[test]
    fn a_rest_that_was_not_had_does_not_lengthen_the_next() {
        let mut idle = idle();
        idle.is_due(Ticks(0));
        assert!(idle.is_due(Ticks(50)) && idle.is_due(Ticks(51)));
        assert_eq!(idle.until(Ticks(51)), Ticks(61));
    }

    #[test]
    fn the_end_of_time_is_no_trouble() {
        let mut idle = Idle::new(Nanos(u64::MAX), Nanos(u64::MAX), u64::MAX);
        assert!(!idle.is_due(Ticks(0)));
        idle.rested();
        assert_eq!(idle.until(Ticks(u64::MAX)), Ticks(u64::MAX));
        assert!(idle.is_due(Ticks(u64::MAX)), "after all there is");
    }

    proptest! {
        /// Whatever comes when: quiet comes first, no rest is longer than allowed, and each is the double of the one
        /// before until then.
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
