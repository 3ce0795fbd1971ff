//! What happens next: a heap of events in the order of their time, and of their making where that is the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to a part of the world, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// An lcore of a switch begins a poll.
    PollIn { switch: u32, lcore: u32 },
    /// It comes to the second half of it.
    PollOut { switch: u32, lcore: u32 },
    /// A host may have something to send.
    HostSend(u32),
    /// A frame arrives at a host.
    HostReceive(u32),
    /// A host has understood a PFC frame.
    HostHear(u32),
    /// A timer of a flow's congestion control ends.
    FlowTimer(u32),
    /// The time in which a lossless flow sends begins or ends.
    FlowSpan(u32),
    /// A fault begins or ends.
    Fault(u32),
    /// Time to look at what plots show.
    Sample,
    /// Time to look for pauses that have run out, and, after the end of sending, whether all has arrived.
    Look,
    /// Hosts fall silent.
    Stop,
    /// What has not arrived by now is waited for no longer.
    Deadline,
}

impl Event {
    /// Whether it changes the world. Events that only look are not counted, so that looking changes no output.
    pub fn is_counted(self) -> bool {
        !matches!(self, Event::Sample | Event::FlowSpan(_))
    }
}

/// Events to come.
#[derive(Debug, Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
}

impl Events {
    /// `event` happens at `at_ps`.
    #[inline]
    pub fn at(&mut self, at_ps: u64, event: Event) {
        self.made += 1;
        self.heap.push(Reverse((at_ps, self.made, event)));
    }

    /// The next event and its time.
    #[inline]
    pub fn next(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_comes_first_and_then_who_was_first() {
        let mut events = Events::default();
        for (at, event) in [(5, Event::Stop), (3, Event::Sample), (5, Event::HostSend(0)), (3, Event::Look)] {
            events.at(at, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(order, [(3, Event::Sample), (3, Event::Look), (5, Event::Stop), (5, Event::HostSend(0))]);
    }
}
