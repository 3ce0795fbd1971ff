//! The PFC watchdog: detects queues that a peer pauses for too long, and their restoration (modelled on SONiC's pfcwd).

use super::{WatchdogAction, WatchdogSpec};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Nanos, Ticks};

/// Minimum number of looks per detection time, except where the shortest interval limits it.
const LOOKS: u64 = 4;
/// Shortest interval between looks. Closer looks would only measure the jitter of the polls.
const SHORTEST_LOOK: Nanos = Nanos(100_000);
/// Longest interval between looks (SONiC's shortest). A longer one would delay the detection of a storm.
const LONGEST_LOOK: Nanos = Nanos(100_000_000);
/// Share of time in percent that a queue must be paused for a storm: more than this (sonic-swss #3036).
const PAUSED_PERCENT: u128 = 99;

/// The watchdog of one port over its eight queues. It judges each queue independently of the others.
///
/// It looks every quarter of the detection time T. The interval is at least 0.1 ms and at most 100 ms; where 100 ms
/// limits it, a whole number of looks makes T. Between two looks the watchdog observes nothing.
///
/// **Storm.** Evidence is a run of looks. At each look the queue has frames, has sent none since the first look, and
/// was paused for more than 99 % of the run. A look without these properties starts the next run. A storm is detected
/// at the look where the pauses of the run reach T. Consider a stuck queue with frames that is paused without a break
/// from time s on. It is detected between s + T and s + T plus one interval, if the looks are in time; each late look
/// adds its delay. A pause shorter than T is never a storm.
///
/// **Restoration.** A run of quiet consists of looks without a pause of even one tick between them. The storm ends at
/// the first look at which this run is as long as the restoration time R. This happens between R and R plus two
/// intervals after the last pause. If R is a multiple of the interval, it takes at most R plus one interval. Evidence
/// then starts anew: the next storm takes a whole T.
///
/// **Late looks.** A look more than two intervals after the previous one means that the lcore stood still. The queue
/// sent nothing because the lcore did not run, and XON or XOFF may wait unread. Such an interval counts as evidence
/// only if the queue was paused all the time. Even then the late look detects no storm: the queue has until the next
/// look to receive its XON and to send. A late look never counts as quiet.
#[derive(Debug, Clone)]
pub struct Watchdog {
    action: WatchdogAction,
    /// Queues that the watchdog observes.
    watched: ClassSet,
    hz: u64,
    /// Detection time, in ticks like the two fields below.
    detection: u64,
    restoration: u64,
    interval: u64,
    /// The times of the last look and of the next.
    looked: Ticks,
    due: Ticks,
    /// Queues that had frames at the last look, and so may be in a run of evidence.
    suspects: ClassSet,
    storm: ClassSet,
    runs: [Run; CLASSES],
    /// Total paused ticks of each queue at the last look.
    paused: [u64; CLASSES],
}

/// The state of a queue at the look where its run began: a run of evidence, or of quiet during a storm.
#[derive(Debug, Default, Clone, Copy)]
struct Run {
    since: Ticks,
    sent: u64,
    paused: u64,
}

/// The result of a look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct WatchdogEvents {
    /// Queues whose storm began.
    pub detected: ClassSet,
    /// Queues whose storm ended.
    pub restored: ClassSet,
}

impl Watchdog {
    /// Creates a watchdog with `spec` over the queues in `watched`, on a clock of `hz` ticks per second.
    #[must_use]
    pub fn new(spec: WatchdogSpec, watched: ClassSet, hz: u64) -> Self {
        let mut watchdog = Self {
            action: spec.action,
            watched,
            hz,
            detection: 0,
            restoration: 0,
            interval: 0,
            looked: Ticks(0),
            due: Ticks(0),
            suspects: ClassSet::EMPTY,
            storm: ClassSet::EMPTY,
            runs: [Run::default(); CLASSES],
            paused: [0; CLASSES],
        };
        watchdog.set_spec(spec);
        watchdog
    }

    /// Changes to `spec`. Storms, evidence and quiet so far remain, and count towards the new times.
    pub fn set_spec(&mut self, spec: WatchdogSpec) {
        self.action = spec.action;
        self.detection = ticks(spec.detection, self.hz);
        self.restoration = ticks(spec.restoration, self.hz);
        // The interval divides the detection time into whole looks; otherwise rounding would cost one more look.
        let looks = self.detection.div_ceil(ticks(LONGEST_LOOK, self.hz)).max(LOOKS);
        self.interval = self.detection.div_ceil(looks).max(ticks(SHORTEST_LOOK, self.hz));
        self.due = Ticks(self.due.0.min(self.looked.0.saturating_add(self.interval)));
    }

    /// Observes `queues` from now on. Those that were observed keep their evidence. Returns the queues whose storms
    /// have ended, because they are not observed any more.
    pub fn watch(&mut self, queues: ClassSet) -> ClassSet {
        let ended = self.storm - queues;
        self.storm -= ended;
        // Others begin without evidence.
        self.suspects &= self.watched;
        self.watched = queues;
        ended
    }

    /// Whether [`Watchdog::tick`] is due.
    #[inline]
    #[must_use]
    pub fn is_due(&self, now: Ticks) -> bool {
        self.due <= now
    }

    /// Instant of the next look.
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.due
    }

    /// Looks at the queues. `backlog` are the queues that hold frames now, and `sent` the total frames that each has
    /// sent. `paused` is the total of ticks up to `now` for which each was paused, whether obeyed or not.
    pub fn tick(
        &mut self,
        now: Ticks,
        backlog: ClassSet,
        sent: &[u64; CLASSES],
        paused: &[u64; CLASSES],
    ) -> WatchdogEvents {
        let gap = now.since(self.looked);
        let late = gap > self.interval.saturating_mul(2);
        let mut events = WatchdogEvents::default();
        for queue in self.watched.iter() {
            let seen = Run { since: now, sent: sent[queue], paused: paused[queue] };
            let held = paused[queue].saturating_sub(self.paused[queue]);
            if self.storm.contains(queue) {
                if late || held > 0 {
                    self.runs[queue] = seen;
                } else if now.since(self.runs[queue].since) >= self.restoration {
                    events.restored.insert(queue);
                    self.runs[queue] = seen;
                }
            } else if !(self.suspects & backlog).contains(queue)
                || late && held < gap
                || !self.runs[queue].is_stuck(&seen)
            {
                self.runs[queue] = seen;
            } else if !late && seen.paused - self.runs[queue].paused >= self.detection {
                events.detected.insert(queue);
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

    /// Returns the queues in a storm.
    #[inline]
    #[must_use]
    pub fn storm(&self) -> ClassSet {
        self.storm
    }

    /// Returns the queues whose frames must be discarded: those in a storm, if the action is [`WatchdogAction::Drop`].
    #[inline]
    #[must_use]
    pub fn dropping(&self) -> ClassSet {
        if self.action == WatchdogAction::Drop { self.storm } else { ClassSet::EMPTY }
    }

    /// Returns the queues whose pauses must be ignored: those in a storm, unless the action is
    /// [`WatchdogAction::Alert`].
    #[inline]
    #[must_use]
    pub fn ignoring(&self) -> ClassSet {
        if self.action == WatchdogAction::Alert { ClassSet::EMPTY } else { self.storm }
    }
}

impl Run {
    /// Whether a queue sent nothing from this look to `seen`, and was paused for more than 99 % of the time.
    fn is_stuck(&self, seen: &Run) -> bool {
        let held = seen.paused.saturating_sub(self.paused);
        let elapsed = seen.since.since(self.since);
        seen.sent == self.sent && u128::from(held) * 100 > u128::from(elapsed) * PAUSED_PERCENT
    }
}

/// Converts `time` to ticks of a clock of `hz`, rounded up, at least one.
fn ticks(time: Nanos, hz: u64) -> u64 {
    let ticks = (u128::from(time.0) * u128::from(hz)).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
#[path = "watchdog_tests.rs"]
mod tests;
