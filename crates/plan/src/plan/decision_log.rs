//! The decision log: the state of the buffer when a frame was dropped or a peer was paused, for `why-dropped`.
//!
//! Each port keeps the last few decisions of each class. The lcore that owns the port logs at most one drop per poll
//! and class, so a flood of drops costs one branch each. Readers never delay the writer: an entry that changes while it
//! is read is not shown.

use super::drops::DropReason;
use super::history_ring::HistoryRing;
use crate::sets::CLASSES;
use crate::units::{Cells, Nanos};

/// Words of a packed decision.
const WORDS: usize = 8;
/// The last four decisions of a class, and a fifth slot for the record that may be under construction.
type Last = HistoryRing<WORDS, 5>;

/// The kind of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedEvent {
    /// A frame was dropped.
    Dropped(DropReason),
    /// The peer was sent XOFF for the priority.
    Stopped(PauseCause),
}

/// The cause of a group's XOFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PauseCause {
    /// A frame was beyond the group's threshold, or the pool was empty, so that it went to headroom or was refused.
    /// With dynamic headroom: the group's share passed X_qoff.
    Group,
    /// All lossless groups of the port together exceeded the sum of their thresholds (dynamic headroom).
    Port,
    /// More frames than the mark allows waited in the receive ring: the core did not keep up.
    Backlog,
}

/// A decision, and the buffer state that led to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedDecision {
    /// Time of the decision by the lcore's clock ([`super::counters::LcoreCounters::clock_ns`]): the
    /// instant of the previous poll.
    pub at: Nanos,
    /// The decision.
    pub decision: LoggedEvent,
    /// Ingress port of the frame, and its intended egress port; for a pause both are the paused port.
    pub ports: [u8; 2],
    /// Traffic class of the frame; for a pause, the group.
    pub class: u8,
    /// Priority group at the ingress port.
    pub group: u8,
    /// Cells of the frame; zero for a pause.
    pub cells: Cells,
    /// Bytes of the frame, without its frame check sequence; zero for a pause.
    pub frame_bytes: u16,
    /// Cells that the group held in its reserve, in the port's reserve, in the shared pool and in headroom.
    pub held: [Cells; 4],
    /// Limit on the group's share of the shared pool at that time: T, or X_qoff with dynamic headroom.
    pub limit: Cells,
    /// Free cells of the group's pool; after a refusal by a queue, without the cells that are reserved for queues.
    pub free: Cells,
    /// Free headroom: of the group, of the shared headroom pool, or of the port's insurance.
    pub headroom_left: Cells,
    /// Depth of the frame's queue, including the frame. Zero if no queue was consulted, or another lcore owns
    /// the queue.
    pub depth: Cells,
    /// Limit of that queue; `u32::MAX`: none.
    pub queue_limit: Cells,
    /// Frames left in the receive ring by the last poll that left frames behind.
    pub backlog: u32,
}

impl LoggedDecision {
    /// The decision as words of a history ring.
    pub fn pack(&self) -> [u64; WORDS] {
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let cells = |low: Cells, high: Cells| pair(low.0, high.0);
        let (kind, detail) = match self.decision {
            LoggedEvent::Dropped(reason) => (0, reason as u8),
            LoggedEvent::Stopped(cause) => (1, cause as u8),
        };
        let [low, high] = self.frame_bytes.to_le_bytes();
        let bytes = [kind, detail, self.ports[0], self.ports[1], self.class, self.group, low, high];
        let [reserve, port_reserve, shared, headroom] = self.held;
        [
            self.at.0,
            u64::from_le_bytes(bytes),
            pair(self.cells.0, self.backlog),
            cells(reserve, port_reserve),
            cells(shared, headroom),
            cells(self.limit, self.free),
            cells(self.headroom_left, self.depth),
            u64::from(self.queue_limit.0),
        ]
    }

    fn unpack(words: [u64; WORDS]) -> Option<Self> {
        let (low, high) = (|word: u64| Cells(word as u32), |word: u64| Cells((word >> 32) as u32));
        let [kind, detail, ingress, egress, class, group, frame_bytes @ ..] = words[1].to_le_bytes();
        let decision = match kind {
            0 => LoggedEvent::Dropped(DropReason::TABLE.get(usize::from(detail))?.0),
            _ => LoggedEvent::Stopped(
                *[PauseCause::Group, PauseCause::Port, PauseCause::Backlog].get(usize::from(detail))?,
            ),
        };
        Some(Self {
            at: Nanos(words[0]),
            decision,
            ports: [ingress, egress],
            class,
            group,
            cells: low(words[2]),
            frame_bytes: u16::from_le_bytes(frame_bytes),
            backlog: high(words[2]).0,
            held: [low(words[3]), high(words[3]), low(words[4]), high(words[4])],
            limit: low(words[5]),
            free: high(words[5]),
            headroom_left: low(words[6]),
            depth: high(words[6]),
            queue_limit: low(words[7]),
        })
    }
}

/// The last decisions of a port: drops by traffic class, pauses by priority group.
#[derive(Debug, Default)]
pub struct DecisionLog {
    /// The last drop of each class.
    pub drops: [Last; CLASSES],
    /// The last XOFF or XON of each priority.
    pub pauses: [Last; CLASSES],
}

impl DecisionLog {
    /// The last frames of `class` dropped by their group, by the watchdog, by their queue or by shedding, the newest
    /// first.
    #[must_use]
    pub fn last_drops(&self, class: usize) -> Vec<LoggedDecision> {
        self.drops[class].last().into_iter().filter_map(LoggedDecision::unpack).collect()
    }

    /// The last times that the peer was paused for `group`, the newest first.
    #[must_use]
    pub fn last_pauses(&self, group: usize) -> Vec<LoggedDecision> {
        self.pauses[group].last().into_iter().filter_map(LoggedDecision::unpack).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64) -> LoggedDecision {
        let n = number as u32;
        LoggedDecision {
            at: Nanos(number),
            decision: if n.is_multiple_of(2) {
                LoggedEvent::Dropped(DropReason::QueueThreshold)
            } else {
                LoggedEvent::Stopped(PauseCause::Backlog)
            },
            ports: [1, 63],
            class: 7,
            group: 3,
            cells: Cells(n),
            frame_bytes: 1514 + n as u16,
            held: [Cells(n); 4],
            limit: Cells(n),
            free: Cells(n),
            headroom_left: Cells(n),
            depth: Cells(n),
            queue_limit: Cells(n),
            backlog: n,
        }
    }

    #[test]
    fn logged_decision_is_unpacked_as_packed() {
        for number in 0..20 {
            assert_eq!(LoggedDecision::unpack(sample(number).pack()), Some(sample(number)));
        }
    }
}
