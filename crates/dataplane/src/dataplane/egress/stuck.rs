//! Detects a port whose device takes no frames, and its recovery.
//!
//! A peer that goes away leaves a transmit ring that stays full. Frames that wait for it hold cells, and every group
//! that these are charged to stays XOFF, although its frames for other ports could leave. Not every such case changes
//! the link state, so the proof is that frames are offered and none is taken.

use crate::units::{Nanos, Ticks};

/// Number of probes in the time after which a port counts as stuck.
const PROBES: u64 = 10;

/// Tracks whether the device of one port takes the frames that it is offered.
///
/// **Stuck.** The evidence is a run of refusals: offered bursts of which the device took no frame, while it took no
/// other frame either. The port is stuck at the refusal that makes the run as long as the limit. A paused or paced
/// queue is not offered, so neither is evidence. A run ends if half the limit passes without a refusal: the core was
/// stalled then, or no frame waited, and the device's state meanwhile is unknown.
///
/// **Probes.** While the port is stuck its frames are discarded, except one now and then that is offered. A frame that
/// the device takes, PFC included, proves that it moves again. A PFC frame that pauses the peer is offered at every
/// poll.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// Limit in ticks; `None`: never stuck.
    limit: Option<u64>,
    /// The first and the last refusal of the run.
    since: Ticks,
    last: Ticks,
    /// Number of frames that the device had ever taken when the run began.
    taken: u64,
    is_stuck: bool,
    /// Instant from which the next probe may be offered, and whether one may be offered now.
    probe_at: Ticks,
    is_probing: bool,
}

impl Progress {
    /// Creates the state of a device that counts as stuck after `limit`, on a clock of `hz` ticks a second; `None`:
    /// never.
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

    /// Replaces the limit.
    pub fn set_limit(&mut self, limit: Option<Nanos>, hz: u64) {
        let ticks =
            |limit: Nanos| u64::try_from(u128::from(limit.0) * u128::from(hz) / 1_000_000_000).unwrap_or(u64::MAX);
        self.limit = limit.map(|limit| ticks(limit).max(1));
    }

    /// Records that the device took none of the frames offered at `now`; it has ever taken `taken`. Returns true if
    /// this makes the port stuck.
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

    /// Stops offering frames until the next probe.
    fn close(&mut self, now: Ticks, limit: u64) {
        self.is_probing = false;
        self.probe_at = Ticks(now.0.saturating_add(limit / PROBES));
    }

    /// Whether the device, which has ever taken `taken` frames, has taken one since the port got stuck.
    pub fn has_moved(&self, taken: u64) -> bool {
        taken != self.taken
    }

    /// Permits a probe from now on, if it is time. Returns true if this call permitted it.
    pub fn probe(&mut self, now: Ticks) -> bool {
        let begins = self.is_stuck && !self.is_probing && self.probe_at <= now;
        self.is_probing |= begins;
        begins
    }

    /// Ends the stuck state and the run of refusals.
    pub fn clear(&mut self) {
        (self.is_stuck, self.is_probing, self.taken) = (false, false, u64::MAX);
    }

    /// Whether the device takes no frames.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Whether no frames may be offered: the port is stuck, and no probe is due.
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

    /// Refuses each millisecond from `from` until before `to`, with no frame taken. Returns true if the port gets
    /// stuck.
    fn refuse(progress: &mut Progress, from: u64, to: u64) -> bool {
        (from..to).any(|ms| progress.refused(Ticks(ms * MS), 7))
    }

    #[test]
    fn port_is_stuck_after_the_limit_and_not_before() {
        let mut progress = progress();
        assert!(!refuse(&mut progress, 10, 110));
        assert!(progress.refused(Ticks(110 * MS), 7) && progress.is_stuck());
        assert!(!progress.refused(Ticks(111 * MS), 7), "reported once");
    }

    #[test]
    fn taken_frame_restarts_the_stuck_time() {
        let mut progress = progress();
        assert!(!refuse(&mut progress, 0, 99));
        assert!(!progress.refused(Ticks(99 * MS), 8));
        assert!(!progress.refused(Ticks(198 * MS), 8), "since 99 ms, and not seen for half the limit");
        let mut moved = Progress::new(Some(Nanos(100 * MS)), 1_000_000_000);
        assert!(!(0..1000).any(|ms| moved.refused(Ticks(ms * MS), ms / 90)));
    }

    #[test]
    fn time_without_offered_frames_does_not_count_as_stuck() {
        let mut progress = progress();
        assert!(!refuse(&mut progress, 0, 60));
        // A gap, as from a pause or a stalled core.
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
    fn port_without_a_limit_is_never_stuck() {
        let mut progress = Progress::new(None, 1_000_000_000);
        assert!(!refuse(&mut progress, 0, 100_000));
        progress.set_limit(Some(Nanos(10 * MS)), 1_000_000_000);
        assert!(refuse(&mut progress, 100_000, 100_011));
    }
}
