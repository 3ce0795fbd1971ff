//! A trace of arrivals and departures, decided by the very code that decides packets, one event at a time.
//!
//! The order is the pipeline's: the ledger admits, the queue judges a lossy frame again, what leaves frees headroom,
//! then shared, then reserve, and after each event every paused group is judged. What the pipeline has between these
//! (parsing, forwarding, scheduling, pacing) is the trace's to say.

use super::drops::DropReason;
use super::queue::{Queue, Slab, Tag};
use super::spec::{PortSpec, QueueSpec, SwitchSpec};
use crate::mmu::{Admission, ExactPool, Lease, Pools, PortLedger, SharedPool};
use crate::qos::{CLASSES, ClassMap};
use crate::units::{Bytes, CellSize, Cells};

/// A frame, as a trace knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Port it came in by.
    pub port: usize,
    /// Its traffic class.
    pub class: u8,
    /// Its bytes in the buffer, without the frame check sequence.
    pub bytes: u16,
    /// Port it leaves by.
    pub egress: usize,
}

/// What became of an event's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Admitted within the group's guarantee.
    Reserve,
    /// Admitted within the port's guarantee.
    PortReserve,
    /// Admitted to the shared pool.
    Shared,
    /// Admitted to the headroom.
    Headroom,
    /// Not admitted, or refused by its queue.
    Dropped(DropReason),
    /// Departed: its cells are free.
    Released,
}

/// A group of a port that was told to stop, or to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The port.
    pub port: usize,
    /// Its priority group.
    pub group: usize,
    /// XOFF; otherwise XON.
    pub xoff: bool,
}

/// An event decided, and what the switch looks like after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The frame that came, or the one that left.
    pub frame: Frame,
    /// What became of it.
    pub outcome: Outcome,
    /// Cells it takes.
    pub cells: Cells,
    /// Its priority group at `frame.port`.
    pub group: usize,
    /// Its queue at `frame.egress`.
    pub queue: usize,
    /// The group's threshold: the one an arrival was judged by, the one there is after a departure.
    pub threshold: Cells,
    /// Cells of the group in reserve and shared.
    pub used: Cells,
    /// Cells of the group in headroom.
    pub headroom: Cells,
    /// Whether the group's pool is the lossless one.
    pub lossless: bool,
    /// Cells in use of the group's pool.
    pub pool_used: Cells,
    /// Bytes in the queue.
    pub queue_bytes: Bytes,
    /// Probability of WRED in parts of 2^32, if the queue has a profile: for an arrival by the depth after it, for a
    /// departure by the depth with the frame that leaves, which is how the pipeline marks.
    pub marking: Option<u64>,
    /// Who was told to stop or to go on, in this order.
    pub transitions: Vec<Transition>,
}

/// A frame that waits: its class, and its place in the order of all arrivals.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    class: u8,
    arrival: u64,
}

#[derive(Debug)]
struct PortState {
    ledger: PortLedger,
    queues: [Queue; CLASSES],
}

/// A switch without packets, links and time.
#[derive(Debug)]
pub struct Replay {
    ports: Vec<PortState>,
    classes: ClassMap,
    queue_specs: [QueueSpec; CLASSES],
    cell: CellSize,
    pools: Pools,
    slab: Slab<Waiting>,
    arrivals: u64,
}

impl Replay {
    /// An empty switch by `spec`.
    #[must_use]
    pub fn new(spec: &SwitchSpec) -> Self {
        let port = |spec: &PortSpec| PortState { ledger: PortLedger::new(&spec.buffer), queues: Default::default() };
        Self {
            ports: spec.ports.iter().map(port).collect(),
            classes: spec.classes.clone(),
            queue_specs: spec.queues,
            cell: CellSize::new(spec.buffer.cell),
            pools: Pools {
                shared: [spec.buffer.lossy_shared, spec.buffer.lossless_shared]
                    .map(|size| Lease::new(SharedPool::new(size))),
                headroom: ExactPool::new(spec.buffer.headroom),
            },
            slab: Slab::new(spec.buffer.total.0 as usize),
            arrivals: 0,
        }
    }

    /// A frame arrives. Every frame counts as ECN-capable, so that WRED marks and does not drop, and nothing is random.
    ///
    /// # Panics
    /// If a port or class is not one of the switch.
    pub fn arrive(&mut self, frame: Frame) -> Decision {
        let class = usize::from(frame.class);
        let group = usize::from(self.classes.tc_to_group[class]);
        let queue = usize::from(self.classes.tc_to_queue[class]);
        let cells = self.cell.cells_of(frame.bytes);
        let mut transitions = Vec::new();

        let state = &mut self.ports[frame.port];
        let lossless = state.ledger.profile().groups[group].lossless;
        let threshold = state.ledger.threshold(group, &self.pools);
        let before = state.ledger.xoff();
        let admission = state.ledger.admit(group, cells, &mut self.pools);
        // A drop judges XOFF too.
        transitions.extend(changes(frame.port, before, state.ledger.xoff()));
        let outcome = match admission {
            Admission::Reserve => Outcome::Reserve,
            Admission::PortReserve => Outcome::PortReserve,
            Admission::Shared => Outcome::Shared,
            Admission::Headroom => Outcome::Headroom,
            Admission::Refused(refusal) => Outcome::Dropped(refusal.into()),
        };
        let outcome = match outcome {
            Outcome::Dropped(_) => outcome,
            admitted => match self.enqueue(
                frame,
                group,
                queue,
                cells,
                lossless || matches!(admitted, Outcome::Reserve | Outcome::PortReserve),
            ) {
                Ok(()) => admitted,
                Err(reason) => {
                    self.ports[frame.port].ledger.release(group, cells, &mut self.pools);
                    Outcome::Dropped(reason)
                }
            },
        };
        self.judge_paused(&mut transitions);
        let depth = Bytes(self.ports[frame.egress].queues[queue].bytes());
        self.decision(frame, outcome, (group, queue), (cells, Some(threshold)), depth, transitions)
    }

    /// Queues an admitted frame; one that is neither lossless nor guaranteed is judged here a second time.
    fn enqueue(
        &mut self,
        frame: Frame,
        group: usize,
        queue: usize,
        cells: Cells,
        is_safe: bool,
    ) -> Result<(), DropReason> {
        let target = &mut self.ports[frame.egress].queues[queue];
        if !is_safe
            && let Some(limit) = &self.queue_specs[queue].limit
            && !limit.admits(Cells(target.cells() + cells.0), self.pools.shared[0].free())
        {
            return Err(DropReason::QueueThreshold);
        }
        let tag = Tag::new(frame.bytes, cells.0 as u16, frame.port as u8, group as u8, queue as u8);
        let waiting = Waiting { class: frame.class, arrival: self.arrivals };
        self.arrivals += 1;
        target.push(&mut self.slab, waiting, tag).map_err(|_| DropReason::NoBuffer)
    }

    /// The frame that is next to leave `egress`: of the queue of `class`, or the oldest of all queues.
    ///
    /// # Panics
    /// If the port or class is not one of the switch.
    pub fn next(&mut self, egress: usize, class: Option<u8>) -> Option<Frame> {
        let queue = self.next_queue(egress, class)?;
        let (waiting, tag) = self.peek(egress, queue)?;
        Some(Frame { port: usize::from(tag.ingress), class: waiting.class, bytes: tag.len, egress })
    }

    fn next_queue(&mut self, egress: usize, class: Option<u8>) -> Option<usize> {
        if let Some(class) = class {
            return Some(usize::from(self.classes.tc_to_queue[usize::from(class)]));
        }
        let arrivals = (0..CLASSES).filter_map(|queue| Some((self.peek(egress, queue)?.0.arrival, queue)));
        arrivals.collect::<Vec<_>>().into_iter().min().map(|(_, queue)| queue)
    }

    fn peek(&mut self, egress: usize, queue: usize) -> Option<(Waiting, Tag)> {
        let queue = &mut self.ports[egress].queues[queue];
        let (waiting, tag) = queue.pop(&mut self.slab)?;
        // It has just left its slot, so there is one.
        queue.push_front(&mut self.slab, waiting, tag).ok()?;
        Some((waiting, tag))
    }

    /// The frame that [`Replay::next`] names leaves, and its cells are free; `None` if nothing waits.
    ///
    /// # Panics
    /// If the port or class is not one of the switch.
    pub fn depart(&mut self, egress: usize, class: Option<u8>) -> Option<Decision> {
        let queue = self.next_queue(egress, class)?;
        let depth = Bytes(self.ports[egress].queues[queue].bytes());
        let (waiting, tag) = self.ports[egress].queues[queue].pop(&mut self.slab)?;
        let frame = Frame { port: usize::from(tag.ingress), class: waiting.class, bytes: tag.len, egress };
        let (group, cells) = (usize::from(tag.group), Cells(u32::from(tag.cells)));
        self.ports[frame.port].ledger.release(group, cells, &mut self.pools);
        let mut transitions = Vec::new();
        self.judge_paused(&mut transitions);
        Some(self.decision(frame, Outcome::Released, (group, queue), (cells, None), depth, transitions))
    }

    /// Judges every paused group, whether its own packets left or not: the threshold moves with others.
    fn judge_paused(&mut self, transitions: &mut Vec<Transition>) {
        for (port, state) in self.ports.iter_mut().enumerate() {
            let before = state.ledger.xoff();
            if state.ledger.judge(&self.pools) {
                transitions.extend(changes(port, before, state.ledger.xoff()));
            }
        }
    }

    fn decision(
        &self,
        frame: Frame,
        outcome: Outcome,
        (group, queue): (usize, usize),
        (cells, judged_by): (Cells, Option<Cells>),
        depth: Bytes,
        transitions: Vec<Transition>,
    ) -> Decision {
        let ledger = &self.ports[frame.port].ledger;
        let lossless = ledger.profile().groups[group].lossless;
        let held = ledger.group(group);
        Decision {
            frame,
            outcome,
            cells,
            group,
            queue,
            threshold: judged_by.unwrap_or_else(|| ledger.threshold(group, &self.pools)),
            used: held.used(),
            headroom: held.headroom,
            lossless,
            pool_used: self.pools.shared[usize::from(lossless)].used(),
            queue_bytes: Bytes(self.ports[frame.egress].queues[queue].bytes()),
            marking: self.queue_specs[queue].wred.map(|wred| wred.probability(depth)),
            transitions,
        }
    }
}

/// What changed from one mask of stopped groups to another.
fn changes(port: usize, before: u8, after: u8) -> impl Iterator<Item = Transition> {
    super::pipeline::bits(u64::from(before ^ after)).map(move |group| Transition {
        port,
        group,
        xoff: after >> group & 1 == 1,
    })
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
