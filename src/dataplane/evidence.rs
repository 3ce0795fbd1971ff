//! What decided: the counters as they were when a frame was dropped or a peer was told to stop, for whoever asks why.
//!
//! Each port keeps the last few of each class, written by the lcore that owns the port, at most one a poll and class, so
//! that a flood of drops costs no more than a branch each. Readers never hold a writer up: what is being written over while
//! it is read is not shown.

use super::drops::DropReason;
use super::frame_desc::FrameDesc;
use super::history_ring::HistoryRing;
use super::mesh::HandoffFrame;
use super::pipeline::{Pipeline, bits};
use crate::mmu::HeadroomPolicy;
use crate::packet::Packet;
use crate::sets::CLASSES;

/// Words of a packed decision.
const WORDS: usize = 8;
/// The last four decisions of a class, and one that may be being written.
type Last = HistoryRing<WORDS, 5>;

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A frame was dropped.
    Dropped(DropReason),
    /// The peer was told to stop the priority.
    Stopped(Cause),
}

/// What made a group XOFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// A frame was beyond the group's threshold, or the pool was empty: it went to headroom.
    Group,
    /// All groups of the port together were beyond the sum of their thresholds (dynamic headroom).
    Port,
    /// More frames waited in the receive ring than its mark: the core did not keep up.
    Backlog,
}

/// A decision, and the counters that it followed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// When, in nanoseconds of the lcore's clock ([`super::counters::LcoreCounters::clock_ns`]); as of the poll before.
    pub at_ns: u64,
    /// What.
    pub decision: Decision,
    /// Port that the frame came by, and the one it should have left by; for a pause both are the port.
    pub ports: [u8; 2],
    /// Traffic class of the frame; for a pause the group.
    pub class: u8,
    /// Priority group at the port that it came by.
    pub group: u8,
    /// Cells of the frame; zero for a pause.
    pub cells: u32,
    /// Cells of the group: in its reserve, in the port's, in the shared pool, in headroom.
    pub held: [u32; 4],
    /// What the group could hold of the shared pool then, in cells: T, or with dynamic headroom X_qoff.
    pub limit: u32,
    /// Cells that were free of its pool.
    pub free: u32,
    /// Cells that headroom could still take: of the group, of the pool that all share, or of the port's insurance.
    pub headroom_left: u32,
    /// Cells of the queue that the frame should have joined, with it; zero where that was not asked, or is another lcore's.
    pub depth: u32,
    /// Limit of that queue in cells; `u32::MAX`: none.
    pub queue_limit: u32,
    /// Frames left in the receive ring by the last poll that left some.
    pub backlog: u32,
}

impl Evidence {
    fn pack(&self) -> [u64; WORDS] {
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let (kind, detail) = match self.decision {
            Decision::Dropped(reason) => (0, reason as u8),
            Decision::Stopped(cause) => (1, cause as u8),
        };
        let bytes = [kind, detail, self.ports[0], self.ports[1], self.class, self.group, 0, 0];
        let [reserve, port_reserve, shared, headroom] = self.held;
        [
            self.at_ns,
            u64::from_le_bytes(bytes),
            pair(self.cells, self.backlog),
            pair(reserve, port_reserve),
            pair(shared, headroom),
            pair(self.limit, self.free),
            pair(self.headroom_left, self.depth),
            u64::from(self.queue_limit),
        ]
    }

    fn unpack(words: [u64; WORDS]) -> Option<Self> {
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let [kind, detail, ingress, egress, class, group, ..] = words[1].to_le_bytes();
        let decision = match kind {
            0 => Decision::Dropped(DropReason::TABLE.get(usize::from(detail))?.0),
            _ => Decision::Stopped(*[Cause::Group, Cause::Port, Cause::Backlog].get(usize::from(detail))?),
        };
        Some(Self {
            at_ns: words[0],
            decision,
            ports: [ingress, egress],
            class,
            group,
            cells: low(words[2]),
            backlog: high(words[2]),
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
pub struct PortEvidence {
    pub(super) drops: [Last; CLASSES],
    pub(super) pauses: [Last; CLASSES],
}

impl PortEvidence {
    /// The last frames of `class` that were dropped by their group, the watchdog or their queue, the newest first.
    #[must_use]
    pub fn last_drops(&self, class: usize) -> Vec<Evidence> {
        self.drops[class].last().into_iter().filter_map(Evidence::unpack).collect()
    }

    /// The last times that the peer was told to stop `group`, the newest first.
    #[must_use]
    pub fn last_pauses(&self, group: usize) -> Vec<Evidence> {
        self.pauses[group].last().into_iter().filter_map(Evidence::unpack).collect()
    }
}

impl<P: Packet> Pipeline<P> {
    /// A frame of `class` that came by `ports[0]` for `ports[1]` was refused by its group, or at `queue`, for `reason`.
    /// It counts at port `at`.
    #[cold]
    pub(super) fn log_drop(&mut self, at: usize, frame: RefusedFrame, reason: DropReason) {
        let polls = self.telemetry.clock.polls();
        let noted = &mut self.ports[at].noted_drops[usize::from(frame.class & 7)];
        if std::mem::replace(noted, polls) == polls {
            return;
        }
        let mut evidence = self.evidence(frame.ports, usize::from(frame.group & 7), Decision::Dropped(reason));
        (evidence.class, evidence.cells) = (frame.class, frame.cells);
        if let Some(queue) = frame.queue {
            let explained = self.queue_rule.explain(queue, self.buffer.lossy_pool());
            let limit = explained.limit.filter(|_| reason == DropReason::QueueThreshold);
            evidence.queue_limit = limit.map_or(u32::MAX, |limit| limit.0);
            if self.own.contains(frame.ports[1].into()) {
                evidence.depth = self.ports[usize::from(frame.ports[1])].queues[queue].cells() + frame.cells;
            }
            evidence.free = explained.free.0;
        }
        self.telemetry.counters.evidence[at].drops[usize::from(frame.class & 7)].note(evidence.pack());
    }

    /// The peer of `port` is to stop `groups`, which it was not before.
    #[cold]
    pub(super) fn log_pauses(&mut self, port: usize, groups: u8) {
        let ledger = &self.ports[port].ledger;
        let of_port = if ledger.is_port_xoff() { u8::MAX } else { 0 };
        let (of_groups, of_port) = (ledger.groups_xoff(), of_port & ledger.xoff());
        for group in bits(u64::from(groups)) {
            let cause = match (of_groups >> group & 1, of_port >> group & 1) {
                (1, _) => Cause::Group,
                (_, 1) => Cause::Port,
                _ => Cause::Backlog,
            };
            let evidence = self.evidence([port as u8; 2], group, Decision::Stopped(cause));
            self.telemetry.counters.evidence[port].pauses[group].note(evidence.pack());
        }
    }

    /// How group `group` of `ports[0]` stands, as far as this lcore knows.
    fn evidence(&self, ports: [u8; 2], group: usize, decision: Decision) -> Evidence {
        let state = &self.ports[usize::from(ports[0])];
        let (ledger, held) = (&state.ledger, state.ledger.group(group));
        let profile = ledger.profile();
        let is_lossless = profile.groups[group].lossless;
        let own = profile.groups[group].headroom.0.saturating_sub(held.headroom.0);
        let (limit, headroom_left) = match profile.policy {
            _ if !is_lossless => (ledger.threshold(group, &self.buffer.pools), 0),
            HeadroomPolicy::Independent => (ledger.threshold(group, &self.buffer.pools), own),
            HeadroomPolicy::SharedPool => {
                (ledger.threshold(group, &self.buffer.pools), own.min(self.buffer.pools.headroom.free().0))
            }
            HeadroomPolicy::Dynamic => {
                let left = profile.insurance.0.saturating_sub(ledger.insurance_used().0);
                (ledger.xoff_level(group, &self.buffer.pools), left)
            }
        };
        let is_own = self.own.contains(ports[0].into());
        Evidence {
            at_ns: self.telemetry.clock.last_ns(),
            decision,
            ports,
            class: group as u8,
            group: group as u8,
            cells: 0,
            // Of a port of another lcore this one knows nothing but its settings.
            held: if is_own {
                [held.reserve, held.port_reserve, held.shared, held.headroom].map(|part| part.0)
            } else {
                [0; 4]
            },
            limit: limit.0,
            free: self.buffer.pools.shared[usize::from(is_lossless)].free().0,
            headroom_left,
            depth: 0,
            queue_limit: u32::MAX,
            backlog: self.telemetry.counters.ports[usize::from(ports[0])].backlog_frames.get() as u32,
        }
    }
}

/// A frame that is not taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusedFrame {
    /// Where it came in, and where it should have left.
    pub ports: [u8; 2],
    pub class: u8,
    pub group: u8,
    pub cells: u32,
    /// The queue that did not take it, if that was who refused.
    pub queue: Option<usize>,
}

impl RefusedFrame {
    /// A frame for `egress` that its group did not take.
    pub fn by_group(desc: &FrameDesc, egress: usize) -> Self {
        let (ports, cells) = ([desc.ingress(), egress as u8], desc.cells().into());
        Self { ports, class: desc.class(), group: desc.group(), cells, queue: None }
    }

    /// A frame that its queue did not take.
    pub fn by_queue<P>(handed: &HandoffFrame<P>) -> Self {
        Self { queue: Some(handed.desc.queue()), ..Self::by_group(&handed.desc, handed.egress.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64) -> Evidence {
        let n = number as u32;
        Evidence {
            at_ns: number,
            decision: if n.is_multiple_of(2) {
                Decision::Dropped(DropReason::QueueThreshold)
            } else {
                Decision::Stopped(Cause::Backlog)
            },
            ports: [1, 63],
            class: 7,
            group: 3,
            cells: n,
            held: [n; 4],
            limit: n,
            free: n,
            headroom_left: n,
            depth: n,
            queue_limit: n,
            backlog: n,
        }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        for number in 0..20 {
            assert_eq!(Evidence::unpack(sample(number).pack()), Some(sample(number)));
        }
    }
}
