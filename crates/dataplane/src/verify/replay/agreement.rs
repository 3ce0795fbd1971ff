//! Checks that a replay of a pipeline's record agrees with it. It compares the PFC state after each burst, every count
//! after each poll's arrivals, the frame and mark of each departure, and the sums at the end.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::{CERTAIN, Decision, Ecn, EventResult, Frame, Replay, Transition};
use crate::dataplane::egress::queue::Queue;
use crate::dataplane::pipeline::Pipeline;
use crate::mmu::{GroupState, Lease, Pools, PortLedger};
use crate::plan::counters::Counters;
use crate::plan::drops::DropReason;
use crate::plan::spec::SwitchSpec;
use crate::qos::shaper::MIN_FRAME;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, Ticks, WIRE_OVERHEAD};
use crate::verify::record::{SentPfc, Stations, Step, Tape, TapeLook};

/// Counts by name. Zero counts are absent.
pub type Counts = BTreeMap<String, u64>;

/// Adds `count` to the counter `what` of a port and a class, group or queue.
pub fn add(counts: &mut Counts, port: usize, class: usize, what: &str, count: u64) {
    if count > 0 {
        *counts.entry(format!("port {port} class {class}: {what}")).or_default() += count;
    }
}

/// Drop reasons of buffer and queues, which a replay also decides.
pub const DROPS: [DropReason; 6] = [
    DropReason::HeadroomFull,
    DropReason::HeadroomPoolEmpty,
    DropReason::Threshold,
    DropReason::PoolEmpty,
    DropReason::QueueThreshold,
    DropReason::Wred,
];

/// The results of a replayed record.
#[derive(Debug, Default)]
pub struct Agreed {
    /// Counts to compare with the counters of the pipeline.
    pub counts: Counts,
    /// Number of decisions of each kind, so that a test can check that it covered them.
    pub decided: BTreeMap<&'static str, u64>,
    /// Number of polls after which every count agreed.
    pub looks: usize,
    /// Pauses that began at the peer, by port and class.
    pub begun: Counts,
    /// Watermarks: cells in use and in headroom.
    pub highest: Counts,
}

impl Agreed {
    fn note(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.decided.entry(what).or_default() += count;
        }
    }
}

/// Replays all of `tape`, recorded on a clock of `hz` ticks per second.
///
/// # Panics
/// At the first difference.
pub fn agree(tape: &Tape, spec: &SwitchSpec, stations: &Stations, hz: u64) -> Agreed {
    assert!(!tape.is_cut(), "the tape is complete");
    let mut bench = Bench {
        replay: Replay::with_clock(spec, hz),
        recorded: vec![ClassSet::EMPTY; spec.ports.len()],
        is_sending: false,
        leaving: Vec::new(),
        left: vec![(Ticks(0), 0); spec.ports.len()],
        agreed: Agreed::default(),
    };
    let mut looks = tape.looks.iter().peekable();
    for traced in tape.steps(spec, stations) {
        while let Some(look) = looks.next_if(|look| look.at <= traced.index) {
            bench.look(*look, traced.index);
        }
        bench.begin_poll(traced.poll);
        match traced.step {
            Step::Arrive(frame) => bench.arrive(frame),
            Step::Depart(frame) => bench.depart(frame, traced.index),
            Step::Pfc(sent) => bench.announced(sent, traced.index),
            Step::Refused { port, bytes } => bench.replay.charge(port, bytes.into()),
        }
    }
    looks.for_each(|look| bench.look(*look, look.at));
    bench.end()
}

struct Bench {
    replay: Replay,
    /// Priorities that are paused at the peer of each port.
    recorded: Vec<ClassSet>,
    /// Whether frames have left since the last arrival. The ledgers of the pipeline collect their releases at the next
    /// poll.
    is_sending: bool,
    /// Frames that have left in this poll. The ledgers get their cells at the next one.
    leaving: Vec<Frame>,
    /// The last poll in which frames left each port, and their number.
    left: Vec<(Ticks, u64)>,
    agreed: Agreed,
}

impl Bench {
    /// Begins `poll`, unless it has begun: the ledgers collect what has left before.
    fn begin_poll(&mut self, poll: Ticks) {
        if poll != self.replay.now {
            let transitions = self.replay.release(&std::mem::take(&mut self.leaving));
            self.note_pauses(&transitions);
            self.replay.set_time(poll);
        }
    }

    fn look(&mut self, look: TapeLook, index: usize) {
        self.begin_poll(look.poll);
        assert_eq!(self.replay.digest(), look.digest, "counts after event {index}: {:?}", self.replay);
        self.agreed.looks += 1;
    }

    fn arrive(&mut self, frame: Frame) {
        self.is_sending = false;
        let decision = self.replay.arrive(frame);
        if let Some(dropping) = decision.dropping {
            assert!(dropping == 0 || dropping >= CERTAIN, "a random drop, which a replay cannot reproduce");
        }
        let class = usize::from(frame.class);
        let label = match decision.outcome {
            EventResult::Reserve => "reserve",
            EventResult::PortReserve => "port_reserve",
            EventResult::Shared => "shared",
            EventResult::Headroom => "headroom",
            EventResult::Dropped(reason) => {
                // A drop by a queue counts at the egress port.
                let at_queue = matches!(reason, DropReason::QueueThreshold | DropReason::Wred);
                let port = if at_queue { frame.egress } else { frame.port };
                add(&mut self.agreed.counts, port, class, reason.label(), 1);
                reason.label()
            }
            EventResult::Released => unreachable!("it arrives"),
        };
        self.agreed.note(label, 1);
        self.note_pauses(&decision.transitions);
    }

    fn depart(&mut self, left: Frame, index: usize) {
        // Frames leave only after all peers received the PFC state that the poll's arrivals caused.
        let is_settled = !std::mem::replace(&mut self.is_sending, true);
        for (port, recorded) in self.recorded.iter().enumerate().filter(|_| is_settled) {
            assert_eq!(self.replay.ports[port].announced(), *recorded, "port {port} before event {index}");
        }
        let next = self.replay.next(left.egress, Some(left.class)).expect("the departing frame was admitted");
        assert_eq!(Frame { ecn: left.ecn, ..next }, left, "event {index}");
        let decision =
            self.replay.depart_later(left.egress, Some(left.class)).expect("the departing frame was admitted");
        self.leaving.push(decision.frame);
        if let Some(marking) = decision.marking {
            assert!(marking == 0 || marking >= CERTAIN, "a random mark, which a replay cannot reproduce");
        }
        if decision.frame.ecn != left.ecn {
            self.assert_judged_within_burst(&decision, next.ecn, index);
        }
        self.count_at_wire(left.egress);
        let (egress, queue) = (left.egress, decision.queue);
        add(&mut self.agreed.counts, egress, queue, "sent frames", 1);
        add(&mut self.agreed.counts, egress, queue, "sent bytes", left.bytes.into());
        let marked = u64::from(next.ecn.is_ect() && left.ecn == Ecn::Ce);
        add(&mut self.agreed.counts, egress, queue, "marked", marked);
        self.agreed.note("marked", marked);
        self.agreed.note("departed", 1);
    }

    /// Asserts that a mark depends on the frames of the present poll that the pipeline counts without their overhead on
    /// the wire: those of the frame's own burst. A replay does not know where the bursts of a poll end.
    fn assert_judged_within_burst(&self, decision: &Decision, ecn: Ecn, index: usize) {
        let (poll, frames) = self.left[decision.frame.egress];
        let frames = if poll == self.replay.now { frames } else { 0 };
        let highest = decision.at_queue.bytes + Bytes(decision.frame.bytes.into()) + decision.posted;
        // A byte for the rounding of each sum.
        let lowest = highest.saturating_sub(Bytes(frames * u64::from(WIRE_OVERHEAD) + 2));
        let [lower, upper] =
            [lowest, highest + Bytes(2)].map(|depth| self.replay.marking(ecn, decision.queue, depth).unwrap_or(0));
        assert!(lower == 0 && upper >= CERTAIN, "mark of event {index}: {decision:?}, {frames} frames before");
    }

    /// Counts a frame of the present poll that has left by `egress`.
    fn count_at_wire(&mut self, egress: usize) {
        let (poll, frames) = self.left[egress];
        self.left[egress] = (self.replay.now, if poll == self.replay.now { frames + 1 } else { 1 });
    }

    fn note_pauses(&mut self, transitions: &[Transition]) {
        for change in transitions {
            self.agreed.note(if change.xoff { "XOFF" } else { "XON" }, 1);
        }
    }

    fn announced(&mut self, sent: SentPfc, index: usize) {
        self.is_sending = false;
        let SentPfc { port, named, stopped } = sent;
        self.replay.charge(port, MIN_FRAME);
        assert_eq!(self.replay.ports[port].announced() & named, stopped, "PFC frame of event {index}");
        for class in 0..CLASSES {
            let is = |groups: ClassSet| u64::from(groups.contains(class));
            add(&mut self.agreed.counts, port, class, "XOFF sent", is(stopped));
            add(&mut self.agreed.counts, port, class, "XON sent", is(named - stopped));
            add(&mut self.agreed.begun, port, class, "pauses", is(stopped - self.recorded[port]));
        }
        self.recorded[port] = (self.recorded[port] - named) | stopped;
    }

    fn end(mut self) -> Agreed {
        self.begin_poll(Ticks(u64::MAX));
        assert_eq!(self.replay.slab.held(), 0, "all that was admitted has left");
        assert!(
            self.recorded.iter().all(|recorded| recorded.is_empty()),
            "a peer is still paused: {:?}",
            self.recorded
        );
        for (port, state) in self.replay.ports.iter().enumerate() {
            for class in 0..CLASSES {
                let group = state.ledger.group(class);
                assert_eq!(group.held().0, 0, "cells that were not released");
                add(&mut self.agreed.highest, port, class, "cells", group.used_highest.0.into());
                add(&mut self.agreed.highest, port, class, "headroom", group.headroom_highest.0.into());
                add(&mut self.agreed.highest, port, class, "queue", state.queues[class].cells_highest().0.into());
            }
        }
        self.agreed
    }
}

/// Returns the counters of a pipeline that a replay decides, too.
pub fn counted(counters: &Counters) -> Counts {
    let mut counts = Counts::new();
    for (port, of) in counters.ports.iter().enumerate() {
        for class in 0..CLASSES {
            for reason in DROPS {
                add(&mut counts, port, class, reason.label(), of.drops[class][reason as usize].get());
            }
            let rows = [
                ("sent frames", &of.tx_frames),
                ("sent bytes", &of.tx_bytes),
                ("marked", &of.ecn_marked),
                ("XOFF sent", &of.pfc_tx_xoff),
                ("XON sent", &of.pfc_tx_xon),
            ];
            for (what, row) in rows {
                add(&mut counts, port, class, what, row[class].get());
            }
        }
    }
    counts
}

impl Replay {
    fn digest(&self) -> u64 {
        let ports = self.ports.iter().map(|port| (&port.ledger, &port.queues, port.announced()));
        digest(ports, &self.pools, self.reserves.unused().0)
    }
}

impl<P> Pipeline<P> {
    /// Returns a digest of every count of the buffer, with watermarks, and of the paused groups.
    pub fn digest(&self) -> u64 {
        let ports = self.ports.iter().map(|port| (&port.ledger, &port.queues, port.pfc.xoff()));
        digest(ports, &self.buffer.pools, self.buffer.reserves.unused().0)
    }
}

fn digest<'a>(
    ports: impl Iterator<Item = (&'a PortLedger, &'a [Queue; CLASSES], ClassSet)>,
    pools: &Pools,
    unused: u32,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (ledger, queues, announced) in ports {
        for (group, queue) in queues.iter().enumerate() {
            let state = ledger.group(group);
            let GroupState {
                reserve,
                port_reserve,
                shared,
                headroom,
                used_highest,
                shared_highest,
                headroom_highest,
                refused,
            } = state;
            [reserve, port_reserve, shared, headroom, used_highest, shared_highest, headroom_highest, refused]
                .map(|cells| cells.0)
                .hash(&mut hasher);
            (queue.frames(), queue.cells(), queue.bytes(), queue.cells_highest()).hash(&mut hasher);
        }
        let sums = (ledger.reserve_used().map(|cells| cells.0), ledger.shared().map(|cells| cells.0));
        (sums, ledger.insurance_used().0, ledger.xoff(), ledger.is_port_xoff(), announced).hash(&mut hasher);
    }
    let pool = |pool: &Lease| [pool.used().0, pool.free().0, pool.used_highest().0];
    pools.shared.each_ref().map(pool).hash(&mut hasher);
    (pools.headroom.used().0, pools.headroom.highest().0, unused).hash(&mut hasher);
    hasher.finish()
}
