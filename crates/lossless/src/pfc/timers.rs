//! Timers of received pauses, one per priority. Each PFC frame sets them anew; XON or expiry ends them.

use super::held::HeldTime;
use super::{PriorityMap, quantum_ticks};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Ticks};
use crate::wire::mac_control::PfcFrame;

/// The pause timers of one port. IEEE 802.1Q clause 36.1.3.2, in substance: the last value received overwrites the
/// timer, and a priority is paused while its timer runs.
///
/// The timers record the pauses that the peer requests. The caller masks off those that it does not obey
/// ([`super::PfcMode::obeyed`], the action of a watchdog), so that paused time counts whether obeyed or not. Paused
/// time lasts from a frame to XON or expiry. A frame that arrives while the timer runs continues the same pause.
#[derive(Debug, Clone)]
pub struct PauseTimers {
    until: [Ticks; CLASSES],
    /// Priorities whose timer runs, or has expired since the last poll of the timers.
    running: ClassSet,
    /// No timer expires before this time.
    next_end: Ticks,
    quantum: u64,
    map: PriorityMap,
    priorities: HeldTime,
    /// Paused time of the queues. Maintained only where it differs from that of the priorities.
    queues: HeldTime,
}

const NEVER: Ticks = Ticks(u64::MAX);

impl PauseTimers {
    /// Creates timers for a port of `rate` on a clock of `hz` ticks per second, where each priority pauses the queue of
    /// its number.
    #[must_use]
    pub fn new(rate: BitRate, hz: u64) -> Self {
        Self::with_map(rate, hz, PriorityMap::IDENTITY)
    }

    /// Creates timers for a port where priorities pause queues as in `map`.
    #[must_use]
    pub fn with_map(rate: BitRate, hz: u64, map: PriorityMap) -> Self {
        Self {
            until: [Ticks(0); CLASSES],
            running: ClassSet::EMPTY,
            next_end: NEVER,
            quantum: quantum_ticks(rate, hz),
            map,
            priorities: HeldTime::default(),
            queues: HeldTime::default(),
        }
    }

    /// Goes on with the pauses and the times of `before`. Quanta that are received from now on have the rate of these
    /// timers.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        let quantum = self.quantum;
        *self = Self { quantum, ..before.clone() };
    }

    /// Applies the pauses of `frame`, received at `now`.
    pub fn receive(&mut self, frame: &PfcFrame, now: Ticks) {
        // Timers that have expired by now end first: a refresh that arrives too late starts a new pause.
        self.paused(now);
        let (mut on, mut off) = (ClassSet::EMPTY, ClassSet::EMPTY);
        // IEEE 802.1Q clause 36, in substance: priorities outside of the vector keep their timers.
        for priority in frame.enabled.iter() {
            let quanta = frame.quanta[priority].0;
            if quanta == 0 {
                off.insert(priority);
            } else {
                // Rounded up: a pause must not end early.
                let ticks = ((u64::from(quanta) * self.quantum) >> 16) + 1;
                self.until[priority] = Ticks(now.0.saturating_add(ticks));
                self.next_end = self.next_end.min(self.until[priority]);
                on.insert(priority);
            }
        }
        self.running = (self.running - off) | on;
        self.priorities.begin(on, now);
        self.priorities.end(off, now);
        if !self.map.is_identity() {
            let held = self.map.queues(self.running);
            self.queues.begin(held, now);
            self.queues.end(!held, now);
        }
    }

    /// Returns the priorities paused at `now`. Ends the timers that have expired.
    #[inline]
    pub fn paused(&mut self, now: Ticks) -> ClassSet {
        if self.next_end <= now {
            self.expire(now);
        }
        self.running
    }

    /// Returns the queues paused at `now`: those with at least one paused priority.
    #[inline]
    pub fn paused_queues(&mut self, now: Ticks) -> ClassSet {
        let paused = self.paused(now);
        self.map.queues(paused)
    }

    /// Returns the priorities paused at `now`, like [`PauseTimers::paused`], without a change to the timers.
    #[must_use]
    pub fn paused_at(&self, now: Ticks) -> ClassSet {
        self.running.iter().filter(|&priority| self.until[priority] > now).collect()
    }

    /// Priorities that were paused at the last look.
    #[must_use]
    pub fn running(&self) -> ClassSet {
        self.running
    }

    /// Ends the timers that have expired at `now`. Returns whether there were any.
    #[inline]
    pub fn end(&mut self, now: Ticks) -> bool {
        let has_ended = self.next_end <= now;
        if has_ended {
            self.expire(now);
        }
        has_ended
    }

    #[cold]
    fn expire(&mut self, now: Ticks) {
        let before = self.running;
        self.next_end = NEVER;
        for priority in before.iter() {
            let until = self.until[priority];
            if until <= now {
                self.running.remove(priority);
                self.priorities.end(ClassSet::only(priority), until);
            } else {
                self.next_end = self.next_end.min(until);
            }
        }
        if !self.map.is_identity() {
            for queue in (self.queues.held() - self.map.queues(self.running)).iter() {
                self.queues.end(ClassSet::only(queue), self.last_end(before, queue));
            }
        }
    }

    /// Returns the time at which the last timer in `running` that pauses `queue` expires.
    fn last_end(&self, running: ClassSet, queue: usize) -> Ticks {
        let timers = running & self.map.priorities_of(ClassSet::only(queue));
        timers.iter().map(|priority| self.until[priority]).max().unwrap_or_default()
    }

    /// Returns the total ticks, up to `now`, for which the peer has paused each priority. The totals never decrease.
    #[must_use]
    pub fn paused_ticks(&self, now: Ticks) -> [u64; CLASSES] {
        self.priorities.ticks(|priority| now.min(self.until[priority]))
    }

    /// Returns the total ticks, up to `now`, for which the peer has paused each queue. Time in which two of a queue's
    /// priorities are paused counts once. The totals never decrease.
    #[must_use]
    pub fn paused_queue_ticks(&self, now: Ticks) -> [u64; CLASSES] {
        if self.map.is_identity() {
            return self.paused_ticks(now);
        }
        self.queues.ticks(|queue| now.min(self.last_end(self.running, queue)))
    }

    /// Ends all pauses at `now`, because the link went down.
    pub fn clear(&mut self, now: Ticks) {
        self.paused(now);
        self.running = ClassSet::EMPTY;
        self.next_end = NEVER;
        self.priorities.end(ClassSet::ALL, now);
        self.queues.end(ClassSet::ALL, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Quanta;
    use proptest::prelude::*;

    /// Ticks per second of the simulator: one tick is a picosecond.
    const PS: u64 = 1_000_000_000_000;

    fn set(bits: u8) -> ClassSet {
        ClassSet::from_bits(bits)
    }

    fn frame(enabled: u8, quanta: u16) -> PfcFrame {
        PfcFrame { enabled: set(enabled), quanta: [Quanta(quanta); CLASSES] }
    }

    #[test]
    fn longest_pause_lasts_65535_quanta() {
        for (gigabits, nanoseconds) in [(10, 3_355_392), (25, 1_342_157), (100, 335_539), (400, 83_885)] {
            let mut timers = PauseTimers::new(BitRate(gigabits * 1_000_000_000), PS);
            timers.receive(&frame(1 << 3, 0xffff), Ticks(0));
            assert_eq!(timers.paused(Ticks(nanoseconds * 1000 - 1000)), ClassSet::only(3), "{gigabits}G");
            assert_eq!(timers.paused(Ticks(nanoseconds * 1000 + 1000)), ClassSet::EMPTY, "{gigabits}G");
        }
    }

    #[test]
    fn last_quanta_set_the_timers_of_enabled_priorities_only() {
        let mut timers = PauseTimers::new(BitRate(10_000_000_000), PS);
        timers.receive(&frame(0b1000, 100), Ticks(0));
        timers.receive(&frame(0b1000, 1), Ticks(0));
        assert_eq!(timers.paused(Ticks(51_200)), set(0b1000));
        assert_eq!(timers.paused(Ticks(51_202)), ClassSet::EMPTY);
        timers.receive(&frame(0b1001, 100), Ticks(0));
        timers.receive(&frame(0b0001, 0), Ticks(0));
        assert_eq!(timers.paused(Ticks(1)), set(0b1000), "XON of 0 leaves 3 paused");
        timers.receive(&frame(0, 0), Ticks(1));
        assert_eq!(timers.paused(Ticks(2)), set(0b1000), "an empty vector changes nothing");
    }

    /// Returns the ticks of `quanta` at 10G, as the timers count them.
    fn ticks(quanta: u64) -> u64 {
        quanta * 51_200 + 1
    }

    fn at_10g() -> PauseTimers {
        PauseTimers::new(BitRate(10_000_000_000), PS)
    }

    fn total(timers: &PauseTimers, now: u64) -> u64 {
        timers.paused_ticks(Ticks(now))[3]
    }

    #[test]
    fn paused_time_runs_from_the_frame_to_xon() {
        let mut timers = at_10g();
        timers.receive(&frame(0b1000, 100), Ticks(1000));
        assert_eq!(total(&timers, 1000), 0);
        assert_eq!(total(&timers, 5000), 4000, "the running part counts");
        timers.receive(&frame(0b1000, 0), Ticks(6000));
        assert_eq!(total(&timers, 1 << 40), 5000);
        assert_eq!(timers.paused_ticks(Ticks(1 << 40)), [0, 0, 0, 5000, 0, 0, 0, 0]);
    }

    #[test]
    fn paused_time_ends_with_the_timer_however_late_it_is_read() {
        let mut timers = at_10g();
        timers.receive(&frame(0b1000, 100), Ticks(0));
        assert_eq!(total(&timers, 1 << 40), ticks(100), "before a look");
        timers.paused(Ticks(1 << 40));
        assert_eq!(total(&timers, 1 << 40), ticks(100), "after a look");
        timers.receive(&frame(0b1000, 100), Ticks(1 << 41));
        timers.receive(&frame(0b1000, 100), Ticks(1 << 42));
        assert_eq!(total(&timers, 1 << 43), 3 * ticks(100), "a refresh that comes too late begins anew");
    }

    #[test]
    fn refreshed_pause_counts_its_time_once() {
        let mut timers = at_10g();
        for refresh in 0..10 {
            timers.receive(&frame(0b1000, 100), Ticks(refresh * ticks(50)));
        }
        assert_eq!(total(&timers, 1 << 40), 9 * ticks(50) + ticks(100));
    }

    #[test]
    fn pause_frame_received_twice_counts_as_one_pause() {
        let mut timers = at_10g();
        timers.receive(&frame(0b1000, 100), Ticks(1000));
        timers.receive(&frame(0b1000, 100), Ticks(3000));
        assert_eq!(total(&timers, 1 << 40), 2000 + ticks(100), "obeyed from the first to the end of the second");
        timers.receive(&frame(0b1000, 0), Ticks(1 << 40));
        timers.receive(&frame(0b1000, 0), Ticks((1 << 40) + 7));
        assert_eq!(total(&timers, 1 << 41), 2000 + ticks(100));
    }

    #[test]
    fn a_shorter_pause_shortens_the_time() {
        let mut timers = at_10g();
        timers.receive(&frame(0b1000, 100), Ticks(0));
        timers.receive(&frame(0b1000, 1), Ticks(1000));
        assert_eq!(total(&timers, 1 << 40), 1000 + ticks(1));
    }

    #[test]
    fn a_link_that_goes_down_ends_the_time() {
        let mut timers = at_10g();
        timers.receive(&frame(0b1000, 100), Ticks(0));
        timers.clear(Ticks(1000));
        assert_eq!((timers.paused(Ticks(1000)), total(&timers, 1 << 40)), (ClassSet::EMPTY, 1000));
        timers.clear(Ticks(1 << 40));
        assert_eq!(total(&timers, 1 << 40), 1000);
    }

    #[test]
    fn a_queue_is_paused_while_any_of_its_priorities_is() {
        let map = PriorityMap::new([0, 1, 2, 3, 3, 5, 6, 7]);
        let mut timers = PauseTimers::with_map(BitRate(10_000_000_000), PS, map);
        timers.receive(&frame(0b01000, 100), Ticks(0));
        timers.receive(&frame(0b10000, 100), Ticks(1000));
        assert_eq!((timers.paused(Ticks(1001)), timers.paused_queues(Ticks(1001))), (set(0b11000), set(0b1000)));
        timers.receive(&frame(0b01000, 0), Ticks(2000));
        assert_eq!(timers.paused_queues(Ticks(2000)), set(0b1000), "4 holds it still");
        assert_eq!(timers.paused_queue_ticks(Ticks(3000)), [0, 0, 0, 3000, 0, 0, 0, 0]);
        assert_eq!(timers.paused_queues(Ticks(1000 + ticks(100))), ClassSet::EMPTY);
        assert_eq!(timers.paused_queue_ticks(Ticks(1 << 40))[3], 1000 + ticks(100));
    }

    #[test]
    fn timers_at_the_largest_tick_do_not_overflow() {
        let mut timers = PauseTimers::new(BitRate(1), u64::MAX);
        timers.receive(&frame(0xff, 0xffff), Ticks(u64::MAX - 1));
        assert_eq!(timers.paused(Ticks(u64::MAX - 1)), ClassSet::ALL);
        assert_eq!(timers.paused(NEVER), ClassSet::EMPTY);
        assert_eq!(timers.paused_ticks(NEVER), [1; 8]);
    }

    /// An event for timers and for a model that counts every tick.
    #[derive(Debug, Clone)]
    enum Event {
        Frame { enabled: ClassSet, quanta: [u16; 8] },
        Look,
        Clear,
    }

    fn event() -> impl Strategy<Value = (u64, Event)> {
        let event = prop_oneof![
            6 => (any::<u8>(), prop::array::uniform8(0_u16..6))
                .prop_map(|(enabled, quanta)| Event::Frame { enabled: set(enabled), quanta }),
            3 => Just(Event::Look),
            1 => Just(Event::Clear),
        ];
        (0_u64..40, event)
    }

    proptest! {
        #[test]
        fn paused_time_equals_a_tick_by_tick_reference(
            to_queue in prop::array::uniform8(0_u8..8),
            identity: bool,
            events in prop::collection::vec(event(), 1..60),
        ) {
            // A quantum of 512 bits lasts 8 ticks.
            let (rate, hz) = (BitRate(64), 1);
            let map = if identity { PriorityMap::IDENTITY } else { PriorityMap::new(to_queue) };
            let mut timers = PauseTimers::with_map(rate, hz, map);
            let (mut until, mut ticks, mut queue_ticks) = ([0_u64; 8], [0_u64; 8], [0_u64; 8]);
            let mut now = 0;
            for (gap, event) in events {
                for instant in now..now + gap {
                    let paused: ClassSet = (0..8).filter(|&p| until[p] > instant).collect();
                    paused.iter().for_each(|p| ticks[p] += 1);
                    map.queues(paused).iter().for_each(|q| queue_ticks[q] += 1);
                }
                now += gap;
                match event {
                    Event::Frame { enabled, quanta } => {
                        let frame = PfcFrame { enabled, quanta: quanta.map(Quanta) };
                        timers.receive(&frame, Ticks(now));
                        for p in enabled.iter() {
                            until[p] = if quanta[p] == 0 { 0 } else { now + u64::from(quanta[p]) * 8 + 1 };
                        }
                    }
                    Event::Look => {
                        let paused: ClassSet = (0..8).filter(|&p| until[p] > now).collect();
                        prop_assert_eq!(timers.paused_at(Ticks(now)), paused);
                        prop_assert_eq!(timers.paused(Ticks(now)), paused);
                        prop_assert_eq!(timers.paused_queues(Ticks(now)), map.queues(paused));
                    }
                    Event::Clear => {
                        timers.clear(Ticks(now));
                        until = [0; 8];
                    }
                }
                prop_assert_eq!(timers.paused_ticks(Ticks(now)), ticks);
                prop_assert_eq!(timers.paused_queue_ticks(Ticks(now)), queue_ticks);
            }
        }
    }
}
