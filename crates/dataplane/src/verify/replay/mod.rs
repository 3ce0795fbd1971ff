//! Replays a trace of arrivals and departures, event by event, with the same code that decides on packets.
//!
//! The order is that of the pipeline: the ledger admits, and the queue judges a lossy frame again. A release frees
//! headroom, then shared, then reserve, and after each event every paused group is judged. The trace supplies the
//! results of the stages between: parsing, forwarding, scheduling, pacing. `replay_differential_tests.rs` compares
//! replay and pipeline.

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod agreement;
mod decision;
mod hpcc;

use crate::dataplane::egress::queue::{Queue, Slab};
use crate::dataplane::frame::desc::FrameDesc;
use crate::mmu::{
    Admission, ExactPool, HeadroomPolicy, Lease, LimitPart, LossyPool, Pools, PortLedger, QueueAdmission, QueueDepth,
    QueueRefusal, QueueRequest, QueueReserves, QueueVerdict, SharedPool,
};
use crate::plan::drops::DropReason;
use crate::plan::spec::{PortSpec, SwitchSpec};
use crate::qos::wred::CERTAIN;
use crate::qos::{ClassMap, Shaper};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, CellSize, Cells, Nanos, Ticks};

pub use self::decision::{
    Decision, DynamicLimits, Ecn, EventResult, Frame, Limits, PortUse, QueueUse, Split, Transition,
};

/// A queued frame, and its position in the order of all arrivals.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    class: u8,
    ecn: Ecn,
    arrival: u64,
}

#[derive(Debug)]
struct PortState {
    ledger: PortLedger,
    queues: [Queue; CLASSES],
    /// Groups for which the port sends PFC.
    generated: ClassSet,
    /// Clock of the port's wire.
    wire: Shaper,
}

impl PortState {
    fn new(spec: &PortSpec, hz: u64) -> Self {
        Self {
            ledger: PortLedger::new(&spec.buffer),
            queues: Default::default(),
            generated: spec.pfc.generated(spec.lossless_groups()),
            wire: Shaper::new(spec.rate, hz, Nanos(0)),
        }
    }

    /// Returns the groups whose XOFF the port sends to its peer.
    fn announced(&self) -> ClassSet {
        self.ledger.xoff() & self.generated
    }
}

/// The group and queue of a frame, by the class maps.
#[derive(Debug, Clone, Copy)]
struct Way {
    group: usize,
    queue: usize,
    cells: Cells,
    lossless: bool,
}

/// The limits by which a queue judged an arrival, as far as it judged it.
#[derive(Debug, Default, Clone, Copy)]
struct Judged {
    threshold: Option<Cells>,
    dropping: Option<u64>,
}

/// A switch without packets and links, with the decisions of one lcore. Wires send at the rates of their ports.
#[derive(Debug)]
pub struct Replay {
    ports: Vec<PortState>,
    classes: ClassMap,
    admission: QueueAdmission,
    cell: CellSize,
    pools: Pools,
    /// Whether all lossless groups share one headroom pool.
    shares_headroom: bool,
    reserves: QueueReserves,
    slab: Slab<Waiting>,
    arrivals: u64,
    /// Time of the present event.
    now: Ticks,
}

/// Ticks per second of a trace's clock: nanoseconds.
const TRACE_HZ: u64 = 1_000_000_000;

/// A frame that has been sent.
struct Sent {
    frame: Frame,
    marking: Option<u64>,
    posted: Bytes,
}

impl Replay {
    /// Creates an empty switch with `spec`, whose clock counts nanoseconds.
    #[must_use]
    pub fn new(spec: &SwitchSpec) -> Self {
        Self::with_clock(spec, TRACE_HZ)
    }

    /// Creates an empty switch with `spec` on a clock of `hz` ticks per second.
    pub(crate) fn with_clock(spec: &SwitchSpec, hz: u64) -> Self {
        Self {
            ports: spec.ports.iter().map(|port| PortState::new(port, hz)).collect(),
            classes: spec.classes.clone(),
            admission: QueueAdmission::new(spec.queues.map(|queue| queue.admission())),
            cell: CellSize::new(spec.buffer.cell),
            pools: Pools {
                shared: [spec.buffer.lossy_shared, spec.buffer.lossless_shared]
                    .map(|size| Lease::new(SharedPool::new(size))),
                headroom: ExactPool::new(spec.buffer.headroom),
            },
            shares_headroom: spec.buffer.policy == HeadroomPolicy::SharedPool,
            reserves: reserves(spec),
            slab: Slab::new(spec.buffer.total.0 as usize, spec.ports.len() * CLASSES),
            arrivals: 0,
            now: Ticks(0),
        }
    }

    /// Sets the time of the next events.
    pub fn set_time(&mut self, now: Ticks) {
        self.now = now;
    }

    /// Charges the wire of `egress` with a frame of `len` bytes that is not in the trace.
    #[cfg(any(test, feature = "testing"))]
    fn charge(&mut self, egress: usize, len: u32) {
        self.ports[egress].wire.charge(len, self.now);
    }

    /// Bytes that the wire of `egress` has yet to send, rounded up.
    #[must_use]
    pub fn posted(&self, egress: usize) -> Bytes {
        self.ports[egress].wire.posted(self.now)
    }

    /// Decides on an arriving frame. WRED acts only with a probability of one, so that the same trace always has the
    /// same decisions.
    ///
    /// # Panics
    /// If the switch does not have the port or the class.
    pub fn arrive(&mut self, frame: Frame) -> Decision {
        let way = self.way(&frame);
        let limits = self.limits(frame.port, way.group);
        let state = &self.ports[frame.port];
        let (before, announced) = (state.ledger.group(way.group), state.announced());
        let pool_highest = self.pools.shared[0].used_highest();

        let admission = self.admit(&frame, way);
        // A drop also judges XOFF.
        let mut transitions: Vec<_> = changes(frame.port, announced, self.ports[frame.port].announced()).collect();
        let mut judged = Judged::default();
        let mut outcome = outcome(admission);
        if !matches!(outcome, EventResult::Dropped(_)) {
            let is_kept = way.lossless || admission.is_guaranteed();
            if let Err(reason) = self.enqueue(&frame, way, is_kept, &mut judged) {
                self.ports[frame.port].ledger.undo(way.group, &before, pool_highest, &mut self.pools);
                outcome = EventResult::Dropped(reason);
            }
        }
        let went = match outcome {
            EventResult::Dropped(_) => Split::default(),
            _ => Split::between(&before.into(), &self.ports[frame.port].ledger.group(way.group).into()),
        };
        self.judge_paused(&mut transitions);
        let (depth, posted) = (self.ports[frame.egress].queues[way.queue].bytes(), self.posted(frame.egress));
        let marking = self.marking(frame.ecn, way.queue, depth + posted);
        Decision { went, limits, marking, posted, ..self.decision(frame, way, outcome, judged, transitions) }
    }

    fn way(&self, frame: &Frame) -> Way {
        let class = usize::from(frame.class);
        let group = usize::from(self.classes.tc_to_group[class]);
        Way {
            group,
            queue: usize::from(self.classes.tc_to_queue[class]),
            cells: self.cell.cells_of(frame.bytes),
            lossless: self.ports[frame.port].ledger.profile().groups[group].lossless,
        }
    }

    fn limits(&self, port: usize, group: usize) -> Limits {
        let ledger = &self.ports[port].ledger;
        let profile = ledger.profile();
        let is_dynamic = profile.policy == HeadroomPolicy::Dynamic && profile.groups[group].lossless;
        Limits {
            threshold: ledger.threshold(group, &self.pools),
            dynamic: is_dynamic.then(|| DynamicLimits {
                group_xoff: ledger.xoff_level(group, &self.pools),
                port_xoff: ledger.port_threshold(&self.pools),
            }),
        }
    }

    /// Admits a frame by its ledger. A refused lossy frame is admitted again if its queue has less than its reserve.
    fn admit(&mut self, frame: &Frame, way: Way) -> Admission {
        let ledger = &mut self.ports[frame.port].ledger;
        let admission = ledger.admit(way.group, way.cells, &mut self.pools);
        let is_refused = matches!(admission, Admission::Refused(_));
        if is_refused && !way.lossless && self.reserves.covers(frame.egress, way.queue, way.cells) {
            return ledger.admit_guaranteed(way.group, way.cells, &mut self.pools);
        }
        admission
    }

    /// Queues an admitted frame. The queue judges it again if it is neither lossless nor guaranteed.
    fn enqueue(&mut self, frame: &Frame, way: Way, is_kept: bool, judged: &mut Judged) -> Result<(), DropReason> {
        if !is_kept {
            self.judge_at_queue(frame, way, judged)?;
        }
        let desc = FrameDesc::new(frame.bytes, way.cells, frame.port as u8, way.group as u8, way.queue as u8);
        let waiting = Waiting { class: frame.class, ecn: frame.ecn, arrival: self.arrivals };
        self.arrivals += 1;
        let queue = &mut self.ports[frame.egress].queues[way.queue];
        let depth = queue.cells();
        queue.push(&mut self.slab, waiting, desc).map_err(|_| DropReason::NoBuffer)?;
        self.reserves.update(frame.egress, way.queue, depth, depth + way.cells);
        Ok(())
    }

    fn judge_at_queue(&self, frame: &Frame, way: Way, judged: &mut Judged) -> Result<(), DropReason> {
        let (rule, queue) = (&self.admission, &self.ports[frame.egress].queues[way.queue]);
        let depth = QueueDepth {
            cells: queue.cells(),
            bytes: queue.bytes() + self.posted(frame.egress),
            drain: LimitPart::ONE,
        };
        let droppable = frame.ecn == Ecn::NotEct;
        let request = QueueRequest { cells: way.cells, must_accept: false, droppable };
        if depth.cells + way.cells > rule.profile(way.queue).reserve {
            judged.threshold = rule.explain(way.queue, LimitPart::ONE, self.lossy_pool()).limit;
        }
        match rule.judge(way.queue, request, depth, self.lossy_pool()) {
            QueueVerdict::Accept => {}
            QueueVerdict::OverLimit => return Err(QueueRefusal::OverLimit.into()),
            QueueVerdict::Draw(probability) => {
                judged.dropping = Some(probability);
                if probability >= CERTAIN {
                    return Err(QueueRefusal::Wred.into());
                }
            }
        }
        Ok(())
    }

    fn lossy_pool(&self) -> LossyPool {
        LossyPool { free: self.pools.shared[0].free(), reserved: self.reserves.unused() }
    }

    fn marking(&self, ecn: Ecn, queue: usize, depth: Bytes) -> Option<u64> {
        self.admission.wred(queue).filter(|_| ecn.is_ect()).map(|wred| wred.probability(depth))
    }

    /// Returns the next frame to leave `egress`: from the queue of `class`, or the oldest of all queues.
    ///
    /// # Panics
    /// If the switch does not have the port or the class.
    pub fn next(&mut self, egress: usize, class: Option<u8>) -> Option<Frame> {
        let queue = self.next_queue(egress, class)?;
        let (waiting, desc) = self.peek(egress, queue)?;
        Some(left(&waiting, &desc, egress))
    }

    fn next_queue(&mut self, egress: usize, class: Option<u8>) -> Option<usize> {
        if let Some(class) = class {
            return Some(usize::from(self.classes.tc_to_queue[usize::from(class)]));
        }
        let mut oldest: Option<(u64, usize)> = None;
        for queue in 0..CLASSES {
            let head = self.peek(egress, queue).map(|(waiting, _)| (waiting.arrival, queue));
            oldest = oldest.into_iter().chain(head).min();
        }
        oldest.map(|(_, queue)| queue)
    }

    fn peek(&mut self, egress: usize, queue: usize) -> Option<(Waiting, FrameDesc)> {
        let queue = &mut self.ports[egress].queues[queue];
        let (waiting, desc) = queue.pop(&mut self.slab)?;
        // The frame has just left a slot, so a slot is free.
        queue.push_front(&mut self.slab, waiting, desc).ok()?;
        Some((waiting, desc))
    }

    /// Releases the frame that [`Replay::next`] returns, and its cells. Returns `None` if no frame waits.
    ///
    /// # Panics
    /// If the switch does not have the port or the class.
    pub fn depart(&mut self, egress: usize, class: Option<u8>) -> Option<Decision> {
        let Sent { frame, marking, posted } = self.send(egress, class)?;
        let way = self.way(&frame);
        let before = self.ports[frame.port].ledger.group(way.group);
        let transitions = self.release(std::slice::from_ref(&frame));
        let went = Split::between(&self.ports[frame.port].ledger.group(way.group).into(), &before.into());
        let decision = self.decision(frame, way, EventResult::Released, Judged::default(), transitions);
        Some(Decision { went, marking, posted, ..decision })
    }

    /// Sends the frame that [`Replay::next`] returns, for [`Replay::release`] later.
    #[cfg(any(test, feature = "testing"))]
    fn depart_later(&mut self, egress: usize, class: Option<u8>) -> Option<Decision> {
        let Sent { frame, marking, posted } = self.send(egress, class)?;
        let decision = self.decision(frame, self.way(&frame), EventResult::Released, Judged::default(), Vec::new());
        Some(Decision { marking, posted, ..decision })
    }

    /// Sends the frame that [`Replay::next`] returns, and keeps its cells. Returns `None` if no frame waits.
    fn send(&mut self, egress: usize, class: Option<u8>) -> Option<Sent> {
        let queue = self.next_queue(egress, class)?;
        let state = &mut self.ports[egress].queues[queue];
        let (bytes, depth_cells) = (state.bytes(), state.cells());
        let (waiting, desc) = state.pop(&mut self.slab)?;
        self.reserves.update(egress, queue, depth_cells, depth_cells - desc.cells());
        let mut frame = left(&waiting, &desc, egress);
        let posted = self.posted(egress);
        let marking = self.marking(frame.ecn, queue, bytes + posted);
        self.ports[egress].wire.charge(frame.bytes.into(), self.now);
        if marking.is_some_and(|marking| marking >= CERTAIN) {
            frame.ecn = Ecn::Ce;
        }
        Some(Sent { frame, marking, posted })
    }

    /// Releases the cells of `frames`, and judges the paused groups. Returns what changed.
    fn release(&mut self, frames: &[Frame]) -> Vec<Transition> {
        for frame in frames {
            let way = self.way(frame);
            self.ports[frame.port].ledger.release(way.group, way.cells, &mut self.pools);
        }
        let mut transitions = Vec::new();
        self.judge_paused(&mut transitions);
        transitions
    }

    /// Judges every paused group, even without releases of its own: the threshold changes with other groups.
    fn judge_paused(&mut self, transitions: &mut Vec<Transition>) {
        for (port, state) in self.ports.iter_mut().enumerate() {
            let announced = state.announced();
            if state.ledger.reevaluate_xoff(&self.pools) {
                transitions.extend(changes(port, announced, state.announced()));
            }
        }
    }

    /// Describes the state of the switch after an event of `frame`. The limits are the current ones.
    fn decision(
        &self,
        frame: Frame,
        way: Way,
        outcome: EventResult,
        judged: Judged,
        transitions: Vec<Transition>,
    ) -> Decision {
        let (ledger, queue) = (&self.ports[frame.port].ledger, &self.ports[frame.egress].queues[way.queue]);
        let kind = usize::from(way.lossless);
        Decision {
            frame,
            outcome,
            cells: way.cells,
            went: Split::default(),
            group: way.group,
            queue: way.queue,
            lossless: way.lossless,
            limits: self.limits(frame.port, way.group),
            held: ledger.group(way.group).into(),
            is_xoff: self.ports[frame.port].announced().contains(way.group),
            port: PortUse {
                reserve: ledger.reserve_used()[kind],
                shared: ledger.shared()[kind],
                insurance: ledger.insurance_used(),
                is_xoff: ledger.is_port_xoff(),
            },
            pool_used: self.pools.shared[kind].used(),
            headroom_pool_used: self.shares_headroom.then(|| self.pools.headroom.used()),
            at_queue: QueueUse {
                cells: queue.cells(),
                bytes: queue.bytes(),
                threshold: judged
                    .threshold
                    .or_else(|| self.admission.explain(way.queue, LimitPart::ONE, self.lossy_pool()).limit),
            },
            posted: Bytes(0),
            marking: None,
            dropping: judged.dropping,
            transitions,
        }
    }
}

/// Creates the reserves of the queues, as one lcore that owns all ports has them.
fn reserves(spec: &SwitchSpec) -> QueueReserves {
    let mut alone = SwitchSpec { lcores: 1, ..spec.clone() };
    alone.ports.iter_mut().for_each(|port| port.lcore = 0);
    alone.queue_reserves().remove(0)
}

/// Describes the queued frame that leaves `egress`.
fn left(waiting: &Waiting, desc: &FrameDesc, egress: usize) -> Frame {
    Frame { port: usize::from(desc.ingress()), class: waiting.class, bytes: desc.frame_len(), egress, ecn: waiting.ecn }
}

fn outcome(admission: Admission) -> EventResult {
    match admission {
        Admission::Reserve => EventResult::Reserve,
        Admission::PortReserve => EventResult::PortReserve,
        Admission::Shared => EventResult::Shared,
        Admission::Headroom => EventResult::Headroom,
        Admission::Refused(refusal) => EventResult::Dropped(refusal.into()),
    }
}

/// Returns the transitions between two sets of groups at XOFF.
fn changes(port: usize, before: ClassSet, after: ClassSet) -> impl Iterator<Item = Transition> {
    (before ^ after).iter().map(move |group| Transition { port, group, xoff: after.contains(group) })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod differential_tests;

#[cfg(test)]
mod burst_tests;
