//! Future events, in order of time, and in order of creation for equal times.
//!
//! The queue is a calendar (Brown, "Calendar queues", CACM 1988): a ring of slots of about a nanosecond holds the near
//! future unsorted, and a slot is sorted when its time comes. A heap holds the events beyond the ring. Most events of a
//! fabric lie within a microsecond, so an event costs the same with ten switches and with a thousand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event, with the index of the part of the simulated network that it concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// An lcore of a switch begins a poll.
    PollIn { switch: u32, lcore: u32 },
    /// An lcore begins the second half of its poll.
    PollOut { switch: u32, lcore: u32 },
    /// A host may have something to send.
    HostSend(u32),
    /// A frame arrives at a host.
    HostReceive(u32),
    /// A host begins to obey a PFC frame that it received.
    HostHear(u32),
    /// A timer of a flow's congestion control or transport expires.
    FlowTimer(u32),
    /// The sending period of a lossless flow begins or ends.
    FlowSpan(u32),
    /// Routers follow the present state of the links.
    Reroute,
    /// A fault begins or ends.
    Fault(u32),
    /// A frame arrives at a switch that rests.
    RestEnd(u32),
    /// Time to sample the values that plots show.
    Sample,
    /// Time to sample the lengths of queues.
    SampleQueues,
    /// Time to count the lengths of queues port by port.
    Monitor,
    /// A flow of a workload starts.
    Arrival(u32),
    /// Time to check for expired pauses and, after hosts have stopped sending, whether every frame has arrived.
    Look,
    /// Hosts stop sending.
    Stop,
    /// The run ends, even if frames have not arrived.
    Deadline,
}

impl Event {
    /// Whether the event changes the simulated network. Events that only observe are not counted, so observing changes
    /// no output.
    pub fn is_counted(self) -> bool {
        !matches!(self, Event::Sample | Event::SampleQueues | Event::Monitor | Event::FlowSpan(_) | Event::RestEnd(_))
    }
}

/// Log2 of the picoseconds of a slot.
const SLOT_PS_LOG2: u32 = 10;
/// Slots of the ring, which spans 4.2 us.
const SLOTS: usize = 1 << 12;
const WORD: usize = 64;

/// An event with its time and its number by creation.
type Scheduled = (u64, u64, Event);

/// Future events.
#[derive(Debug)]
pub struct Events {
    /// Number of the slot whose events are in `due`. Slot n begins at n * 2^[`SLOT_PS_LOG2`] ps.
    current: u64,
    /// Events of the current slot, the next one last.
    due: Vec<Scheduled>,
    /// Events of the slots after the current one, each at its number modulo [`SLOTS`], unsorted.
    ring: Vec<Vec<Scheduled>>,
    /// Slots of the ring with events, a bit each.
    occupied: [u64; SLOTS / WORD],
    /// Events beyond the ring.
    far: BinaryHeap<Reverse<Scheduled>>,
    made: u64,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            current: 0,
            due: Vec::new(),
            ring: vec![Vec::new(); SLOTS],
            occupied: [0; SLOTS / WORD],
            far: BinaryHeap::new(),
            made: 0,
        }
    }
}

impl Events {
    /// Schedules `event` for `at_ps`, which is not before the last event that [`Events::next`] returned.
    #[inline]
    pub fn at(&mut self, at_ps: u64, event: Event) {
        self.made += 1;
        self.put((at_ps, self.made, event));
    }

    #[inline]
    fn put(&mut self, event: Scheduled) {
        let slot = event.0 >> SLOT_PS_LOG2;
        if slot <= self.current {
            let place = self.due.partition_point(|due| *due > event);
            self.due.insert(place, event);
        } else if slot - self.current < SLOTS as u64 {
            let place = slot as usize % SLOTS;
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

    /// Moves on to the next slot with events. Returns `None` if there are no events.
    fn advance(&mut self) -> Option<()> {
        // Events beyond the ring are later than all events in it.
        self.current = match self.next_occupied() {
            Some(slot) => slot,
            None => self.far.peek()?.0.0 >> SLOT_PS_LOG2,
        };
        let place = self.current as usize % SLOTS;
        std::mem::swap(&mut self.due, &mut self.ring[place]);
        self.occupied[place / WORD] &= !(1 << (place % WORD));
        self.due.sort_unstable_by(|a, b| b.cmp(a));
        while let Some(Reverse(event)) = self.far.peek().copied()
            && (event.0 >> SLOT_PS_LOG2) - self.current < SLOTS as u64
        {
            self.far.pop();
            self.put(event);
        }
        Some(())
    }

    /// Returns the number of the first slot after the current one that has events in the ring.
    fn next_occupied(&self) -> Option<u64> {
        let first = (self.current + 1) as usize % SLOTS;
        let words = SLOTS / WORD;
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
                return Some(self.current + 1 + ((place + SLOTS - first) % SLOTS) as u64);
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

    #[test]
    fn events_are_ordered_by_time_then_by_insertion() {
        let mut events = Events::default();
        for (at, event) in [(5, Event::Stop), (3, Event::Sample), (5, Event::HostSend(0)), (3, Event::Look)] {
            events.at(at, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(order, [(3, Event::Sample), (3, Event::Look), (5, Event::Stop), (5, Event::HostSend(0))]);
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
            let (mut events, mut reference, mut now, mut made) = (Events::default(), BTreeMap::new(), 0, 0_u32);
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
