//! Finds a port whose device takes no frames, and sees when it takes some again.
//!
//! A peer that goes away leaves a transmit ring that stays full. What waits for it holds cells, and every group that these
//! are charged to stays XOFF, although its frames for other ports could go. No link state tells of each such case, so the
//! proof is that frames are offered and none is taken.

use crate::units::{Nanos, Ticks};

/// Probes in the time after which a port counts as stuck.
const PROBES: u64 = 10;

/// Whether the device of one port takes what it is offered.
///
/// **Stuck.** Evidence is a run of refusals: bursts of which the device took no frame, while it took no other frame either.
/// The port is stuck at the refusal that ends a run as long as the limit. A paused or paced queue is not offered, so that
/// neither is evidence. A run ends where half the limit passes without a refusal: the core stood still then, or nothing
/// waited, and what the device did meanwhile is not known.
///
/// **Probes.** While the port is stuck its frames are discarded, but for one now and then that is offered. A frame that the
/// device takes, PFC included, shows that it moves again. A PFC frame that stops the peer is offered at every poll.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    /// Ticks; `None`: never stuck.
    limit: Option<u64>,
    /// The refusal with which the run began, and the last one.
    since: Ticks,
    last: Ticks,
    /// Frames that the device had ever taken when the run began.
    taken: u64,
    is_stuck: bool,
    /// When the next probe may be offered, and whether one may be now.
    probe_at: Ticks,
    is_probing: bool,
}

impl Progress {
    /// A device counts as stuck after `limit` on a clock of `hz` ticks a second; without a limit never.
    pub fn new(limit: Option<Nanos>, hz: u64) -> Self {
        let mut progress = Self {
            limit: None,
            since: Ticks(0),
            last: Ticks(0),
            taken: u64::MAX,
            is_stuck: false,
            probe_at: Ticks(0),
            is_probing: false,
        };
        progress.set_limit(limit, hz);
        progress
    }

    /// Goes on by another limit.
    pub fn set_limit(&mut self, limit: Option<Nanos>, hz: u64) {
        let ticks =
            |limit: Nanos| u64::try_from(u128::from(limit.0) * u128::from(hz) / 1_000_000_000).unwrap_or(u64::MAX);
        self.limit = limit.map(|limit| ticks(limit).max(1));
    }

    /// The device took none of the frames that it was offered at `now`; it has ever taken `taken`. True if the port is stuck
    /// from now on.
    pub fn refused(&mut self, now: Ticks, taken: u64) -> bool {
        let Some(limit) = self.limit else { return false };
        if self.is_stuck {
            if self.is_probing {
                self.close(now, limit);
            }
            return false;
        }
        if taken != self.taken || now.since(self.last) > limit / 2 {
            (self.since, self.taken) = (now, taken);
        }
        self.last = now;
        self.is_stuck = now.since(self.since) >= limit;
        if self.is_stuck {
            self.close(now, limit);
        }
        self.is_stuck
    }

    /// No frame is to be offered until the next probe.
    fn close(&mut self, now: Ticks, limit: u64) {
        self.is_probing = false;
        self.probe_at = Ticks(now.0.saturating_add(limit / PROBES));
    }

    /// Whether the device, which has ever taken `taken` frames, has taken one since the port got stuck.
    pub fn has_moved(&self, taken: u64) -> bool {
        taken != self.taken
    }

    /// Lets a probe be offered from now on, if it is time. True if none could be until now.
    pub fn probe(&mut self, now: Ticks) -> bool {
        let begins = self.is_stuck && !self.is_probing && self.probe_at <= now;
        self.is_probing |= begins;
        begins
    }

    /// The port is not stuck, as far as is known.
    pub fn clear(&mut self) {
        (self.is_stuck, self.is_probing, self.taken) = (false, false, u64::MAX);
    }

    /// Whether the device takes nothing.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Whether frames are not to be offered: the port is stuck, and it is not time for a probe.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.is_stuck && !self.is_probing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn progress() -> Progress {
        Progress::new(Some(Nanos(100 * MS)), 1_000_000_000)
    }

    /// Refusals each millisecond from `from` until before `to`, none of a frame taken. True if the port gets stuck.
    fn refuse(progress: &mut Progress, from: u64, to: u64) -> bool {
        (from..to).any(|ms| progress.refused(Ticks(ms * MS), 7))
    }

    #[test]
    fn stuck_after_the_limit_and_not_before() {
        let mut progress = progress();
        assert!(!refuse(&mut progress, 10, 110));
        assert!(progress.refused(Ticks(110 * MS), 7) && progress.is_stuck());
        assert!(!progress.refused(Ticks(111 * MS), 7), "told once");
    }

    #[test]
    fn a_frame_taken_meanwhile_begins_the_time_anew() {
        let mut progress = progress();
        assert!(!refuse(&mut progress, 0, 99));
        assert!(!progress.refused(Ticks(99 * MS), 8));
        assert!(!progress.refused(Ticks(198 * MS), 8), "since 99 ms, and not seen for half the limit");
        let mut moved = Progress::new(Some(Nanos(100 * MS)), 1_000_000_000);
        assert!(!(0..1000).any(|ms| moved.refused(Ticks(ms * MS), ms / 90)));
    }

    #[test]
    fn a_time_in_which_nothing_is_offered_is_no_evidence() {
        let mut progress = progress();
        assert!(!refuse(&mut progress, 0, 60));
        // A pause, or a core that stood still.
        assert!(!refuse(&mut progress, 111, 211));
        assert!(refuse(&mut progress, 211, 212));
        let mut seldom = self::progress();
        assert!(!(0..100).any(|number| seldom.refused(Ticks(number * 51 * MS), 7)));
        assert!((0..100).any(|number| seldom.refused(Ticks((6000 + number * 50) * MS), 7)));
    }

    #[test]
    fn probes_come_now_and_then_until_a_frame_is_taken() {
        let mut progress = progress();
        assert!(refuse(&mut progress, 0, 101));
        assert!(!progress.probe(Ticks(109 * MS)) && progress.is_closed());
        assert!(progress.probe(Ticks(110 * MS)) && !progress.is_closed());
        assert!(!progress.probe(Ticks(111 * MS)), "it is open already");
        assert!(!progress.refused(Ticks(112 * MS), 7) && progress.is_closed());
        assert!(progress.probe(Ticks(122 * MS)));
        assert!(!progress.has_moved(7) && progress.has_moved(8));
        progress.clear();
        assert!(!progress.is_stuck() && !progress.is_closed());
        assert!(!progress.refused(Ticks(1000 * MS), 7), "evidence begins anew");
    }

    #[test]
    fn without_a_limit_never() {
        let mut progress = Progress::new(None, 1_000_000_000);
        assert!(!refuse(&mut progress, 0, 100_000));
        progress.set_limit(Some(Nanos(10 * MS)), 1_000_000_000);
        assert!(refuse(&mut progress, 100_000, 100_011));
    }
}
