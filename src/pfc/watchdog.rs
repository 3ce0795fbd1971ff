//! The watchdog: finds queues that a peer holds for too long, and sees when it lets go (SONiC's pfcwd).

use super::{WatchdogAction, WatchdogSpec};
use crate::sets::CLASSES;
use crate::sets::indices;
use crate::units::{Nanos, Ticks};

/// Looks in a detection time, unless that is too long for so few.
const LOOKS: u64 = 4;
/// Looks closer than this would find nothing but the jitter of the polls.
const SHORTEST_LOOK: Nanos = Nanos(100_000);
/// Looks further apart than this would make a storm wait (SONiC's shortest interval between looks).
const LONGEST_LOOK: Nanos = Nanos(100_000_000);
/// What a storm must hold of the time, in percent: more than this (sonic-swss #3036).
const PAUSED_PERCENT: u128 = 99;

/// The watchdog of one port over its eight queues. Each queue is judged for itself, whatever the others do.
///
/// It looks every quarter of the detection time T (0.1 ms at least; 100 ms at most, and then oftener, so that whole
/// looks make T). Between two looks it sees nothing.
///
/// **Storm.** LoggedDecision is a run of looks at each of which the queue has frames and has sent none since the first, and was
/// paused for more than 99 % of the run so far. A look that breaks this starts the next run. It is a storm at the look
/// where the pauses of the run come to T. So a queue that is paused without a break from s on, with frames and stuck, is
/// found at a look from s + T to s + T plus one interval between looks, if the looks are in time; each that is late adds
/// its lateness. A storm that lasts for less than T is never one.
///
/// **Restoration.** The storm is over at the first look that ends a run of looks without any pause, not for a tick, that
/// is as long as the restoration time R: from R to R plus two intervals after the last pause, one if R is a multiple of
/// the interval. LoggedDecision starts anew then: the next storm takes a whole T.
///
/// **Late looks.** A look more than two intervals after the one before means that the core stood still: it sent nothing
/// because nobody sent, and XON or XOFF may wait unread. Such an interval counts as evidence only if it was paused all
/// the time, and even then the look that ends it finds no storm: the queue has until the next one to hear its XON and to
/// send. As quiet it does not count at all.
#[derive(Debug, Clone)]
pub struct Watchdog {
    action: WatchdogAction,
    /// Queues that are watched.
    watched: u8,
    hz: u64,
    /// Ticks.
    detection: u64,
    restoration: u64,
    interval: u64,
    /// The last look, and the next.
    looked: Ticks,
    due: Ticks,
    /// Queues that had frames at the last look, and so may be in a run of evidence.
    suspects: u8,
    storm: u8,
    runs: [Run; CLASSES],
    /// Ticks ever paused, at the last look.
    paused: [u64; CLASSES],
}

/// How things stood at the look with which a queue's run began: a run of evidence, or in a storm of quiet.
#[derive(Debug, Default, Clone, Copy)]
struct Run {
    since: Ticks,
    sent: u64,
    paused: u64,
}

/// What a look has found, as masks of queues.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct WatchdogEvents {
    /// Queues whose storm began.
    pub detected: u8,
    /// Queues whose storm ended.
    pub restored: u8,
}

impl Watchdog {
    /// A watchdog by `spec` over the queues `watched`, on a clock of `hz` ticks a second.
    #[must_use]
    pub fn new(spec: WatchdogSpec, watched: u8, hz: u64) -> Self {
        let mut watchdog = Self {
            action: spec.action,
            watched,
            hz,
            detection: 0,
            restoration: 0,
            interval: 0,
            looked: Ticks(0),
            due: Ticks(0),
            suspects: 0,
            storm: 0,
            runs: [Run::default(); CLASSES],
            paused: [0; CLASSES],
        };
        watchdog.set_spec(spec);
        watchdog
    }

    /// Goes on by `spec`. Storms, evidence and quiet so far stay, and count towards the new times.
    pub fn set_spec(&mut self, spec: WatchdogSpec) {
        self.action = spec.action;
        self.detection = ticks(spec.detection, self.hz);
        self.restoration = ticks(spec.restoration, self.hz);
        // Whole looks make a detection time, or rounding would cost one more.
        let looks = self.detection.div_ceil(ticks(LONGEST_LOOK, self.hz)).max(LOOKS);
        self.interval = self.detection.div_ceil(looks).max(ticks(SHORTEST_LOOK, self.hz));
        self.due = Ticks(self.due.0.min(self.looked.0.saturating_add(self.interval)));
    }

    /// Due for [`Watchdog::tick`]?
    #[inline]
    #[must_use]
    pub fn is_due(&self, now: Ticks) -> bool {
        self.due <= now
    }

    /// Looks at the queues: `backlog` is a mask of those that hold frames now, `sent` the frames each has ever sent,
    /// `paused` the ticks for which it was ever paused, obeyed or not, up to `now`.
    pub fn tick(&mut self, now: Ticks, backlog: u8, sent: &[u64; CLASSES], paused: &[u64; CLASSES]) -> WatchdogEvents {
        let gap = now.since(self.looked);
        let late = gap > self.interval.saturating_mul(2);
        let mut events = WatchdogEvents::default();
        for queue in indices(self.watched) {
            let bit = 1 << queue;
            let seen = Run { since: now, sent: sent[queue], paused: paused[queue] };
            let held = paused[queue].saturating_sub(self.paused[queue]);
            if self.storm & bit != 0 {
                if late || held > 0 {
                    self.runs[queue] = seen;
                } else if now.since(self.runs[queue].since) >= self.restoration {
                    events.restored |= bit;
                    self.runs[queue] = seen;
                }
            } else if self.suspects & backlog & bit == 0 || late && held < gap || !self.runs[queue].is_stuck(&seen) {
                self.runs[queue] = seen;
            } else if !late && seen.paused - self.runs[queue].paused >= self.detection {
                events.detected |= bit;
                self.runs[queue] = seen;
            }
        }
        self.storm ^= events.detected | events.restored;
        self.suspects = backlog;
        self.paused = *paused;
        self.looked = now;
        self.due = Ticks(now.0.saturating_add(self.interval));
        events
    }

    /// Queues in a storm.
    #[inline]
    #[must_use]
    pub fn storm(&self) -> u8 {
        self.storm
    }

    /// Queues whose frames are to be discarded: those in a storm, if the action is to drop.
    #[inline]
    #[must_use]
    pub fn dropping(&self) -> u8 {
        if self.action == WatchdogAction::Drop { self.storm } else { 0 }
    }

    /// Queues whose pauses are to be ignored: those in a storm, unless the action is only to tell.
    #[inline]
    #[must_use]
    pub fn ignoring(&self) -> u8 {
        if self.action == WatchdogAction::Alert { 0 } else { self.storm }
    }
}

impl Run {
    /// Whether a queue has sent nothing from this look to `seen`, and was paused for almost all of the time.
    fn is_stuck(&self, seen: &Run) -> bool {
        let held = seen.paused.saturating_sub(self.paused);
        let elapsed = seen.since.since(self.since);
        seen.sent == self.sent && u128::from(held) * 100 > u128::from(elapsed) * PAUSED_PERCENT
    }
}

/// `time` on a clock of `hz`, rounded up; one at least.
fn ticks(time: Nanos, hz: u64) -> u64 {
    let ticks = (u128::from(time.0) * u128::from(hz)).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
#[path = "watchdog_tests.rs"]
mod tests;
