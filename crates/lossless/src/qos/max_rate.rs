//! Maximum rates of the egress queues of a port.
//!
//! Each limited queue has a [`Shaper`] of its own: a queue may begin a frame while its shaper is free, as a port may. A
//! queue that may not begin one is held: the scheduler chooses among the others.

use super::scheduler::{QUANTUM, QueueDiscipline};
use super::shaper::{Pace, Shaper};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Bytes, Nanos, Ticks, WIRE_OVERHEAD};

/// The maximum rate of an egress queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxRate {
    /// Bits per second on the wire, with preamble, frame check sequence and gap as in the pacing of ports.
    pub rate: BitRate,
    /// Bytes on the wire that the queue may send at once after it was below its rate.
    pub burst: Bytes,
}

impl MaxRate {
    /// The burst of a queue of `discipline` that has none configured, for frames of at most `largest` bytes. `slack` is
    /// the longest time between two polls that the pacing of its port makes up.
    ///
    /// It covers the waits in which the queue earns credit that it cannot use: between two polls, and for its turn. A
    /// round gives the queue its quantum. With a rate up to its share, a round lasts for at most a quantum of the rate.
    /// A frame needs as many rounds as it has quanta. All is doubled, since frames of 60 bytes take 84 on the wire.
    #[must_use]
    pub fn usual_burst(rate: BitRate, slack: Nanos, discipline: QueueDiscipline, largest: Bytes) -> Bytes {
        rate.bytes_in(slack) + Bytes(2 * (quantum(discipline) + largest.0))
    }

    /// The least burst with which a queue of `discipline` reaches its rate, with frames of `largest` bytes and polls up
    /// to `gap` apart.
    ///
    /// Credit beyond the burst is lost. Between two polls the queue earns `gap` of its rate. In a wait for its turn it
    /// earns a frame, and with DWRR a quantum too, as in [`MaxRate::usual_burst`].
    #[must_use]
    pub fn least_burst(rate: BitRate, gap: Nanos, discipline: QueueDiscipline, largest: Bytes) -> Bytes {
        rate.bytes_in(gap) + Bytes(quantum(discipline) + largest.0 + u64::from(WIRE_OVERHEAD))
    }
}

/// Bytes that a round of the scheduler gives a queue of `discipline`; zero for a strict queue, which has no rounds.
fn quantum(discipline: QueueDiscipline) -> u64 {
    match discipline {
        QueueDiscipline::Strict => 0,
        QueueDiscipline::Dwrr { weight } => u64::from(weight) * u64::from(QUANTUM),
    }
}

/// The shapers of the queues of one port that have a maximum rate.
#[derive(Debug, Clone)]
pub struct QueueShapers {
    limited: ClassSet,
    shapers: [Shaper; CLASSES],
    /// Queues that had frames and were held at `since`.
    held: ClassSet,
    since: Ticks,
    /// Ticks for which each queue was held while it had frames.
    held_ticks: [u64; CLASSES],
    /// Nanoseconds of a tick, in parts of 2^32.
    tick_ns: u64,
}

impl QueueShapers {
    /// Creates the shapers of queues that were idle before, on a clock of `hz` ticks a second.
    #[must_use]
    pub fn new(maxima: &[Option<MaxRate>; CLASSES], hz: u64) -> Self {
        let mut shapers = Self {
            limited: ClassSet::EMPTY,
            shapers: std::array::from_fn(|_| Shaper::new(BitRate(1), hz, Nanos(0))),
            held: ClassSet::EMPTY,
            since: Ticks(0),
            held_ticks: [0; CLASSES],
            tick_ns: ((1_000_000_000_u128 << 32) / u128::from(hz.max(1))) as u64,
        };
        shapers.set(maxima, hz);
        shapers
    }

    /// Sets the maximum rates, which hold from the next frame on. A queue that was limited before keeps its debt.
    pub fn set(&mut self, maxima: &[Option<MaxRate>; CLASSES], hz: u64) {
        let before = self.limited;
        self.limited = ClassSet::EMPTY;
        for (queue, maximum) in maxima.iter().enumerate() {
            let Some(MaxRate { rate, burst }) = *maximum else { continue };
            let shaper = Shaper::with_burst(rate, hz, burst);
            if before.contains(queue) {
                self.shapers[queue].set_rate(&shaper);
            } else {
                self.shapers[queue] = shaper;
            }
            self.limited.insert(queue);
        }
        self.held &= self.limited;
    }

    /// Queues that have a maximum rate.
    #[inline]
    #[must_use]
    pub fn limited(&self) -> ClassSet {
        self.limited
    }

    /// Those of `queues` that may not begin a frame at `now`.
    #[inline]
    #[must_use]
    pub fn exhausted(&self, queues: ClassSet, now: Ticks) -> ClassSet {
        (queues & self.limited).iter().filter(|&queue| !self.shapers[queue].is_free(now)).collect()
    }

    /// The pace of `queue` at `now`, if it has a maximum rate and may begin a frame. [`QueueShapers::keep`] must
    /// follow.
    #[inline]
    #[must_use]
    pub fn pace(&self, queue: usize, now: Ticks) -> Option<Pace> {
        if self.limited.contains(queue) { self.shapers[queue & 7].pace(now) } else { None }
    }

    /// Stores `pace`, to which the frames of `queue` sent at `now` were charged.
    #[inline]
    pub fn keep(&mut self, queue: usize, pace: Pace, now: Ticks) {
        self.shapers[queue & 7].keep(pace, now);
    }

    /// Gives back `bytes` on the wire, of frames of `queue` that the device did not take.
    #[inline]
    pub fn give_back(&mut self, queue: usize, bytes: u64) {
        if self.limited.contains(queue) {
            self.shapers[queue & 7].give_back(bytes);
        }
    }

    /// Adds the time up to `now` to that of the queues that were held before. Returns these queues.
    #[inline]
    pub fn count_held(&mut self, now: Ticks) -> ClassSet {
        for queue in self.held.iter() {
            // A queue may have got its credit back between two polls.
            let end = self.shapers[queue].starts_at().min(now);
            self.held_ticks[queue] += end.since(self.since);
        }
        self.since = now;
        std::mem::replace(&mut self.held, ClassSet::EMPTY)
    }

    /// Notes that `queues` have frames and are held from `now` on.
    #[inline]
    pub fn note_held(&mut self, queues: ClassSet, now: Ticks) {
        (self.held, self.since) = (queues, now);
    }

    /// Time for which `queue` was held while it had frames that no pause stopped.
    #[must_use]
    pub fn held_time(&self, queue: usize) -> Nanos {
        Nanos(((u128::from(self.held_ticks[queue & 7]) * u128::from(self.tick_ns)) >> 32) as u64)
    }
}

#[cfg(test)]
#[path = "max_rate_tests.rs"]
mod tests;
