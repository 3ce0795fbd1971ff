//! How long an lcore lets frames wait before it sheds.
//!
//! A token bucket of time. While an lcore does not shed, it spends the time of a backlog that holds lossless senders,
//! and a quarter of that time if the backlog shrinks. It gains a small part of all time. So an interruption or a burst
//! sheds nothing, and trials without shedding take no more than that part of the time.

use crate::units::Ticks;

/// The part of the time that the bucket gains.
const PART: u64 = 64;
/// The part of the bucket that a trial without shedding needs.
const TRIAL_PART: u64 = 16;

/// The time for which lossless senders may still be held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    left: u64,
    most: u64,
    /// Until when the bucket has gained.
    gained: Ticks,
    /// The last trial, and whether it was in vain.
    tried: Ticks,
    is_vain: bool,
}

impl Patience {
    /// A full bucket of `most` ticks.
    pub fn new(most: u64) -> Self {
        Self { left: most, most, gained: Ticks(0), tried: Ticks(0), is_vain: false }
    }

    /// Spends `ticks` of a backlog.
    pub fn spend(&mut self, ticks: u64, now: Ticks) {
        self.gain(now);
        self.left = self.left.saturating_sub(ticks);
    }

    /// Whether no time is left, so that lossy frames must make room.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Shedding begins. It was in vain to do without if that was not for long.
    pub fn exhaust(&mut self, now: Ticks) {
        self.left = 0;
        self.is_vain = now.since(self.tried) < TRIAL_PART * self.most;
    }

    /// Whether there is time for a trial without shedding: a part of the bucket is full, or all of it if the frames are
    /// not likely to fit or the last trial was in vain. The trial ends when that part is spent.
    pub fn allows_trial(&mut self, now: Ticks, may_fit: bool) -> bool {
        self.gain(now);
        let part = self.most / TRIAL_PART;
        let is_allowed = self.left >= if may_fit && !self.is_vain { part } else { self.most };
        if is_allowed {
            (self.left, self.tried) = (part, now);
        }
        is_allowed
    }

    fn gain(&mut self, now: Ticks) {
        let gain = now.since(self.gained) / PART;
        if gain > 0 {
            self.left = (self.left + gain).min(self.most);
            self.gained = Ticks(self.gained.0 + gain * PART);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bucket_allows_a_trial_when_a_part_is_full_and_a_vain_one_when_all_is() {
        for (may_fit, full) in [(true, 50), (false, 800)] {
            let mut patience = Patience::new(800);
            patience.spend(900, Ticks(10));
            assert!(patience.is_spent() && !patience.allows_trial(Ticks(10 + (full - 1) * PART), may_fit));
            assert!(patience.allows_trial(Ticks(10 + full * PART), may_fit));
            patience.spend(50, Ticks(11 + full * PART));
            assert!(patience.is_spent(), "only that part is spent");
            patience.exhaust(Ticks(12 + full * PART));
            assert!(!patience.allows_trial(Ticks(12 + (full + 799) * PART), true), "it was in vain");
            assert!(patience.allows_trial(Ticks(12 + (full + 800) * PART), true));
        }
    }

    proptest! {
        /// Its senders are held for at most the bucket and its part of the time.
        #[test]
        fn patience_bounds_the_time_for_which_senders_are_held(polls in prop::collection::vec((1_u64..500, any::<bool>()), 1..400)) {
            let (mut patience, mut now, mut held) = (Patience::new(2_000), 0, 0);
            for (ticks, waits) in polls {
                now += ticks;
                if waits && !patience.is_spent() {
                    patience.spend(ticks, Ticks(now));
                    held += ticks;
                }
            }
            prop_assert!(held <= 2_000 + now / PART + 500, "{held} of {now}");
        }
    }
}
