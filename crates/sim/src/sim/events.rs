//! Events of a run: one calendar for each part of the network, and one for the whole if it has several parts.

use super::calendar::Calendar;
use super::parts::Parts;

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
    /// A timer of a flow's congestion control or transport expires at its sender.
    FlowTimer { flow: u32, sender: u32 },
    /// The sending period of a lossless flow through a switch begins or ends.
    FlowSpan { flow: u32, switch: u32 },
    /// Routers follow the present state of the links.
    Reroute,
    /// A fault begins or ends.
    Fault(u32),
    /// A switch takes another configuration.
    Reload { switch: u32, number: u32 },
    /// A step of a new division of a buffer.
    Divide(u32),
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
    /// Returns the rank among events at equal times. Events of the whole network divide windows, and come first.
    /// Arrivals follow: one from another part may be known only after the window in which its frame was sent.
    #[inline]
    pub fn rank(self) -> u8 {
        match self {
            Event::HostReceive(_) | Event::RestEnd(_) => 1,
            Event::PollIn { .. }
            | Event::PollOut { .. }
            | Event::HostSend(_)
            | Event::HostHear(_)
            | Event::FlowTimer { .. }
            | Event::FlowSpan { .. } => 2,
            _ => 0,
        }
    }

    /// Whether the event changes the simulated network. Events that only observe are not counted, so observing changes
    /// no output.
    pub fn is_counted(self) -> bool {
        !matches!(
            self,
            Event::Sample
                | Event::SampleQueues
                | Event::Monitor
                | Event::FlowSpan { .. }
                | Event::RestEnd(_)
                | Event::Divide(_)
        )
    }
}

/// Slots of the calendar of a whole network, and log2 of the picoseconds of each: 4.2 us altogether.
const WHOLE: (usize, u32) = (1 << 12, 10);
/// Those of one part among several. It has few events, and is the smaller in caches: a microsecond altogether.
const PART: (usize, u32) = (1 << 6, 14);

/// Future events.
#[derive(Debug)]
pub struct Events {
    /// By part. The last calendar has the events that concern more than one part.
    calendars: Vec<Calendar>,
    parts: Parts,
}

/// Events that may be handled next, without others in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// One event of the whole network, and its time.
    One(u64, Event),
    /// The events of each part before this time, part by part.
    Window(u64),
}

impl Events {
    /// Returns the events of a network with these parts, before any event.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let (slots, slot_ps_log2) = if parts.count() > 1 { PART } else { WHOLE };
        // The only part of a network keeps all events, so that equal times are in order of creation.
        let calendars = if parts.count() > 1 { parts.count() + 1 } else { 1 };
        Self { calendars: (0..calendars).map(|_| Calendar::new(slots, slot_ps_log2)).collect(), parts }
    }

    /// Schedules `event` for `at_ps`. That is not before the last event that the event's part returned.
    #[inline]
    pub fn at(&mut self, at_ps: u64, event: Event) {
        let calendar = self.part_of(event).unwrap_or(self.calendars.len() - 1);
        self.calendars[calendar].at(at_ps, event);
    }

    /// Returns the part that an event concerns; `None`: the whole network.
    #[inline]
    fn part_of(&self, event: Event) -> Option<usize> {
        match event {
            Event::PollIn { switch, .. }
            | Event::PollOut { switch, .. }
            | Event::RestEnd(switch)
            | Event::FlowSpan { switch, .. } => Some(self.parts.of_switch(switch as usize)),
            Event::HostSend(host)
            | Event::HostReceive(host)
            | Event::HostHear(host)
            | Event::FlowTimer { sender: host, .. } => Some(self.parts.of_host(host as usize)),
            _ => None,
        }
    }

    /// Returns the events to be handled next; `None` if there are none. A network of one part has one window for all of
    /// its time.
    pub fn turn(&mut self, parts: &[usize]) -> Option<Turn> {
        if self.parts.count() == 1 {
            return (self.calendars[0].next_ps() < u64::MAX).then_some(Turn::Window(u64::MAX));
        }
        let (next_ps, whole_ps) = (self.next_ps(parts), self.whole_ps());
        if whole_ps <= next_ps {
            return self.calendars.last_mut()?.next().map(|(at, event)| Turn::One(at, event));
        }
        Some(Turn::Window(whole_ps.min(self.window_end(next_ps))))
    }

    /// Returns the time of the next event of these parts; `u64::MAX` if there is none.
    pub fn next_ps(&mut self, parts: &[usize]) -> u64 {
        parts.iter().map(|&part| self.calendars[part].next_ps()).min().unwrap_or(u64::MAX)
    }

    /// Returns the time of the next event of the whole network.
    pub fn whole_ps(&mut self) -> u64 {
        self.calendars.last_mut().map_or(u64::MAX, Calendar::next_ps)
    }

    /// Returns the end of the window in which `at_ps` is, in picoseconds.
    pub fn window_end(&self, at_ps: u64) -> u64 {
        self.parts.window_end(at_ps)
    }

    /// Moves the events of `part` to `to`, which has none.
    pub fn give(&mut self, part: usize, to: &mut Self) {
        std::mem::swap(&mut self.calendars[part], &mut to.calendars[part]);
    }

    /// Removes and returns the next event of `part` before `until_ps`, and its time.
    #[inline]
    pub fn next_before(&mut self, part: usize, until_ps: u64) -> Option<(u64, Event)> {
        let calendar = &mut self.calendars[part];
        if calendar.next_ps() < until_ps { calendar.next() } else { None }
    }
}
