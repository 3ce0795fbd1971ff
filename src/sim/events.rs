//! Future events: a heap in order of time, and in order of creation for equal times.

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
    /// Time to sample the values that plots show.
    Sample,
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
        !matches!(self, Event::Sample | Event::FlowSpan(_))
    }
}

/// Future events.
#[derive(Debug, Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
}

impl Events {
    /// Schedules `event` for `at_ps`.
    #[inline]
    pub fn at(&mut self, at_ps: u64, event: Event) {
        self.made += 1;
        self.heap.push(Reverse((at_ps, self.made, event)));
    }

    /// Removes and returns the next event and its time.
    #[inline]
    pub fn next(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
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
}
