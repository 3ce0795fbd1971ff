//! Frames that a device lost because a receive queue was full: in a queue of lossy frames, or perhaps lossless ones.
//!
//! Few devices tell which queue lost a frame. Flow rules keep lossless frames in queues of their own, and the dataplane
//! knows if one of these may have been full ([`rx_queue_fills`]). If none was, the lost frames were lossy.
//!
//! [`rx_queue_fills`]: crate::dataplane::PortCounters::rx_queue_fills

use crate::dataplane::telemetry::counters::Counter;
use crate::sets::ClassSet;
use crate::stats::SwitchView;

/// Polls after which the dataplane has seen a queue that was full before them.
const POLLS_TO_SEE: u64 = 2;

/// What is known about a port at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Frames that the device has missed.
    missed: u64,
    /// Times that a lossless queue may have been full.
    fills: u64,
    /// Polls of the port's lcore.
    polls: u64,
    /// Queues to which flow rules lead lossless frames.
    steered: ClassSet,
    /// Whether another queue has brought lossless frames lately.
    is_mixed: bool,
}

impl Reading {
    /// Reads the counters of port `index`, whose device has missed `missed` frames and has rules for `steered`.
    pub fn of(switch_view: &SwitchView, index: usize, missed: u64, steered: ClassSet) -> Self {
        let (spec, counters) = (&switch_view.spec.ports[index], &switch_view.counters.ports[index]);
        let carries = counters.rx_queue_carries.iter().map(|mask| ClassSet::from_bits(mask.get() as u8));
        let others = carries.enumerate().filter(|(queue, _)| !steered.contains(*queue));
        Self {
            missed,
            fills: counters.rx_queue_fills.get(),
            polls: switch_view
                .counters
                .lcores
                .get(usize::from(spec.lcore))
                .map_or(0, |lcore| Counter::get(&lcore.polls)),
            steered,
            is_mixed: others.into_iter().any(|(_, groups)| !groups.is_empty()),
        }
    }
}

/// The missed frames of one port.
#[derive(Debug)]
pub(super) struct MissedFrames {
    /// Queues whose fill the dataplane watches: those with rules at the start.
    watched: ClassSet,
    lossy: u64,
    maybe_lossless: u64,
    /// Frames missed between the last two readings, which are not judged yet.
    open: u64,
    /// Whether these cannot be called lossy.
    is_open_mixed: bool,
    /// Fills before these frames were missed.
    fills: u64,
    last: Option<Reading>,
}

impl MissedFrames {
    /// Creates the counts of a port whose device had rules for the queues `watched` at the start.
    pub fn new(watched: ClassSet) -> Self {
        Self { watched, lossy: 0, maybe_lossless: 0, open: 0, is_open_mixed: false, fills: 0, last: None }
    }

    /// Frames that were lossy.
    pub fn lossy(&self) -> u64 {
        self.lossy
    }

    /// Frames that may have been lossless.
    pub fn maybe_lossless(&self) -> u64 {
        self.maybe_lossless
    }

    /// Judges the frames missed before the last reading, if the lcore has polled since.
    pub fn look(&mut self, now: Reading) {
        let Some(last) = self.last else { return self.begin(now) };
        if self.watched.is_empty() || now.polls >= last.polls + POLLS_TO_SEE {
            self.judge(now, last);
        }
    }

    /// Judges all frames. The lcores have ended.
    pub fn end(&mut self, now: Reading) {
        for _ in 0..2 {
            match self.last {
                Some(last) => self.judge(now, last),
                None => self.begin(now),
            }
        }
    }

    fn begin(&mut self, now: Reading) {
        (self.maybe_lossless, self.fills, self.last) = (now.missed, now.fills, Some(now));
    }

    fn judge(&mut self, now: Reading, last: Reading) {
        let is_mixed = |reading: Reading| reading.is_mixed || reading.steered != self.watched;
        let new = now.missed.saturating_sub(last.missed);
        if self.watched.is_empty() {
            self.maybe_lossless += new;
        } else {
            let is_lossy = now.fills == self.fills && !self.is_open_mixed && !is_mixed(now);
            *(if is_lossy { &mut self.lossy } else { &mut self.maybe_lossless }) += self.open;
            (self.open, self.is_open_mixed) = (new, is_mixed(now) || is_mixed(last));
        }
        (self.fills, self.last) = (last.fills, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEERED: ClassSet = ClassSet::only(1);

    fn reading(missed: u64, fills: u64, polls: u64) -> Reading {
        Reading { missed, fills, polls, steered: STEERED, is_mixed: false }
    }

    /// Counts after these readings: lossy frames, and those that may have been lossless.
    fn judged(watched: ClassSet, readings: &[Reading]) -> (u64, u64) {
        let mut missed = MissedFrames::new(watched);
        readings.iter().for_each(|reading| missed.look(*reading));
        (missed.lossy(), missed.maybe_lossless())
    }

    #[test]
    fn missed_frames_of_a_port_without_rules_may_have_been_lossless() {
        assert_eq!(judged(ClassSet::EMPTY, &[reading(3, 0, 0), reading(10, 0, 0)]), (0, 10));
    }

    #[test]
    fn missed_frames_are_lossy_if_no_lossless_queue_was_full_until_the_lcore_could_see_it() {
        let (start, missed) = (reading(0, 5, 0), reading(10, 5, 10));
        assert_eq!(judged(STEERED, &[start, missed]), (0, 0), "the lcore may see it later");
        assert_eq!(judged(STEERED, &[start, missed, reading(10, 5, 11)]), (0, 0), "not a whole poll");
        assert_eq!(judged(STEERED, &[start, missed, reading(10, 5, 12)]), (10, 0));
        assert_eq!(judged(STEERED, &[start, missed, reading(10, 6, 12)]), (0, 10), "it was full meanwhile");
        assert_eq!(judged(STEERED, &[start, reading(10, 6, 10), reading(10, 6, 12)]), (0, 10), "or before");
        let later = [reading(10, 5, 20), reading(30, 6, 30), reading(30, 6, 40), reading(30, 6, 50)];
        assert_eq!(judged(STEERED, &[&[start, missed][..], &later].concat()), (10, 20));
    }

    #[test]
    fn missed_frames_may_have_been_lossless_while_another_queue_has_such_frames() {
        let start = reading(0, 0, 0);
        let mixed = |missed, polls| Reading { is_mixed: true, ..reading(missed, 0, polls) };
        assert_eq!(judged(STEERED, &[start, mixed(10, 10), reading(10, 0, 20)]), (0, 10));
        assert_eq!(judged(STEERED, &[start, reading(10, 0, 10), mixed(10, 20)]), (0, 10));
        let other = |missed, polls| Reading { steered: ClassSet::only(2), ..reading(missed, 0, polls) };
        assert_eq!(judged(STEERED, &[start, other(10, 10), other(10, 20)]), (0, 10), "rules of a reload");
    }

    #[test]
    fn the_end_judges_every_frame() {
        let mut missed = MissedFrames::new(STEERED);
        [reading(0, 0, 0), reading(10, 0, 10)].into_iter().for_each(|reading| missed.look(reading));
        missed.end(reading(15, 0, 10));
        assert_eq!((missed.lossy(), missed.maybe_lossless()), (15, 0));
        missed.end(reading(15, 1, 10));
        assert_eq!((missed.lossy(), missed.maybe_lossless()), (15, 0));
    }
}
