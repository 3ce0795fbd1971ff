//! A queue of future events, in order of time. Equal times are in order of rank, then of creation.
//!
//! The queue is a calendar (Brown, "Calendar queues", CACM 1988): a ring of slots of equal length holds the near
//! future unsorted, and a slot is sorted when its time comes. A heap holds the events beyond the ring. Most events of a
//! fabric lie within a microsecond, so an event costs the same with ten switches and with a thousand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::events::Event;

const WORD: usize = 64;

/// Place of an event's rank above its number by creation.
const RANK: u32 = 62;

/// An event with its time, and its rank and number by creation.
type Scheduled = (u64, u64, Event);

/// Future events of one part of a network.
#[derive(Debug)]
pub struct Calendar {
    slot_ps_log2: u32,
    /// Number of the slot whose events are in `due`. Slot n begins at n * 2^`slot_ps_log2` ps.
    current: u64,
    /// Events of the current slot, the next one last.
    due: Vec<Scheduled>,
    /// Events of the slots after the current one, each at its number modulo the number of slots, unsorted.
    ring: Vec<Vec<Scheduled>>,
    /// Slots of the ring with events, a bit each.
    occupied: Box<[u64]>,
    /// Events beyond the ring.
    far: BinaryHeap<Reverse<Scheduled>>,
    made: u64,
}

impl Calendar {
    /// Returns a calendar without events. Its ring has `slots`, a power of two and at least 64, each of
    /// 2^`slot_ps_log2` ps.
    #[must_use]
    pub fn new(slots: usize, slot_ps_log2: u32) -> Self {
        assert!(slots.is_power_of_two() && slots >= WORD, "{slots} slots");
        Self {
            slot_ps_log2,
            current: 0,
            due: Vec::new(),
            ring: vec![Vec::new(); slots],
            occupied: vec![0; slots / WORD].into_boxed_slice(),
            far: BinaryHeap::new(),
            made: 0,
        }
    }

    /// Schedules `event` for `at_ps`, which is not before the last event that [`Calendar::next`] returned.
    #[inline]
    pub fn at(&mut self, at_ps: u64, event: Event) {
        self.made += 1;
        let order = u64::from(event.rank()) << RANK | self.made;
        self.put((at_ps, order, event));
    }

    #[inline]
    fn put(&mut self, event: Scheduled) {
        let slot = event.0 >> self.slot_ps_log2;
        if slot <= self.current {
            let place = self.due.partition_point(|due| *due > event);
            self.due.insert(place, event);
        } else if slot - self.current < self.ring.len() as u64 {
            let place = self.place(slot);
            self.ring[place].push(event);
            self.occupied[place / WORD] |= 1 << (place % WORD);
        } else {
            self.far.push(Reverse(event));
        }
    }

    /// Removes and returns the next event and its time.
    #[inline]
    pub fn next(&mut self) -> Option<(u64, Event)> {
        if self.due.is_empty() {
            self.advance()?;
        }
        self.due.pop().map(|(at, _, event)| (at, event))
    }

    /// Returns the place in the ring of slot number `slot`.
    #[inline]
    fn place(&self, slot: u64) -> usize {
        slot as usize & (self.ring.len() - 1)
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_ps(&mut self) -> u64 {
        if self.due.is_empty() && self.advance().is_none() {
            return u64::MAX;
        }
        self.due.last().map_or(u64::MAX, |(at, ..)| *at)
    }

    /// Moves on to the next slot with events. Returns `None` if there are no events.
    fn advance(&mut self) -> Option<()> {
        // Events beyond the ring are later than all events in it.
        self.current = match self.next_occupied() {
            Some(slot) => slot,
            None => self.far.peek()?.0.0 >> self.slot_ps_log2,
        };
        let place = self.place(self.current);
        std::mem::swap(&mut self.due, &mut self.ring[place]);
        self.occupied[place / WORD] &= !(1 << (place % WORD));
        self.due.sort_unstable_by(|a, b| b.cmp(a));
        while let Some(Reverse(event)) = self.far.peek().copied()
            && (event.0 >> self.slot_ps_log2) - self.current < self.ring.len() as u64
        {
            self.far.pop();
            self.put(event);
        }
        Some(())
    }

    /// Returns the number of the first slot after the current one that has events in the ring.
    fn next_occupied(&self) -> Option<u64> {
        let (slots, first) = (self.ring.len(), self.place(self.current + 1));
        let words = slots / WORD;
        // The word of `first` is visited twice: for its upper bits, and at the end for its lower ones.
        for step in 0..=words {
            let word = (first / WORD + step) % words;
            let mask = match step {
                0 => u64::MAX << (first % WORD),
                _ if step == words => !(u64::MAX << (first % WORD)),
                _ => u64::MAX,
            };
            let bits = self.occupied[word] & mask;
            if bits != 0 {
                let place = word * WORD + bits.trailing_zeros() as usize;
                return Some(self.current + 1 + ((place + slots - first) & (slots - 1)) as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const SLOTS: usize = 128;
    const SLOT_PS_LOG2: u32 = 10;

    #[test]
    fn events_are_ordered_by_time_rank_and_insertion() {
        let mut events = Calendar::new(SLOTS, SLOT_PS_LOG2);
        let made = [Event::HostSend(1), Event::HostSend(0), Event::HostReceive(0), Event::Stop, Event::HostHear(0)];
        made.into_iter().zip([5, 5, 5, 5, 3]).for_each(|(event, at)| events.at(at, event));
        let order: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        let order: Vec<_> = order.into_iter().map(|(_, event)| event).collect();
        assert_eq!(order, [made[4], made[3], made[2], made[0], made[1]]);
    }

    /// Delays around the width of a slot and the span of the ring, and equal ones.
    fn delay() -> impl Strategy<Value = u64> {
        let span = (SLOTS as u64) << SLOT_PS_LOG2;
        prop_oneof![Just(0), 0..3_u64 << SLOT_PS_LOG2, 0..span, span - 2_000..span + 2_000, 0..20 * span, Just(1 << 50)]
    }

    proptest! {
        /// The reference is a sorted map. A step schedules some events at delays after the present and takes one.
        #[test]
        fn calendar_returns_events_like_a_sorted_map(
            steps in prop::collection::vec(prop::collection::vec(delay(), 0..4), 1..200),
        ) {
            let (mut events, mut reference, mut now, mut made) = (Calendar::new(SLOTS, SLOT_PS_LOG2), BTreeMap::new(), 0, 0_u32);
            for delays in &steps {
                for delay in delays {
                    made += 1;
                    events.at(now + delay, Event::HostSend(made));
                    reference.insert((now + delay, made), Event::HostSend(made));
                }
                let expected = reference.pop_first().map(|((at, _), event)| (at, event));
                prop_assert_eq!(events.next(), expected);
                now = expected.map_or(now, |(at, _)| at);
            }
            while let Some(((at, _), event)) = reference.pop_first() {
                prop_assert_eq!(events.next(), Some((at, event)));
            }
            prop_assert_eq!(events.next(), None);
        }
    }
}
