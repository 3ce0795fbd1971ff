//! Enqueue: moves admitted frames into a queue of this lcore.
//!
//! Bursts that no queue can refuse take [`Egress::push_all`] or [`Egress::append`]. [`Egress::enqueue`] judges a single
//! frame.

use arrayvec::ArrayVec;

use super::Egress;
use super::links::Links;
use super::slots::Unpacked;
use crate::dataplane::buffer::Buffer;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::fast_path::{self, FastPath};
use crate::dataplane::frame::lanes::BurstLanes;
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::frame::notes::BurstNotes;
use crate::dataplane::handoff::mesh::HandoffFrame;
use crate::dataplane::ingress::rewrite::BurstDemand;
use crate::dataplane::port::Port;
use crate::dataplane::telemetry::log::RefusingQueue;
use crate::io::{Burst, Packet};
use crate::mmu::{LossyPool, QueueAdmission, QueueDepth};
use crate::mutant::{self, Mutant};
use crate::plan::drops::DropReason;
use crate::plan::ring::Consumer;
use crate::sets::{BURST, ClassSet, PortSet};

/// Frames that queues refused, each with the reason and the state of its queue at that moment.
pub(crate) type Refused<P> = ArrayVec<(HandoffFrame<P>, DropReason, RefusingQueue), BURST>;

/// The owners that a frame passes on its way into a queue.
pub(crate) struct QueueContext<'a> {
    pub ports: &'a mut [Port],
    pub buffer: &'a mut Buffer,
    pub rule: &'a QueueAdmission,
    pub links: &'a Links,
}

/// Frames that were appended and not yet accounted for.
#[derive(Debug, Default)]
pub(crate) struct Appended {
    pub frames: usize,
    pub egresses: PortSet,
    pub queues: ClassSet,
}

/// Fills the lanes of egress ports and queues of the first `frames` frames, all of which are sent.
#[inline(never)]
fn fill_lanes(metas: &[Meta; BURST], frames: usize) -> BurstLanes {
    let mut lanes = BurstLanes::default();
    for (index, meta) in metas[..frames].iter().enumerate() {
        let Forwarding::Send(egress) = meta.forwarding() else { unreachable!("every frame of the burst is sent") };
        lanes.egresses.set(index, egress);
        lanes.queues.set(index, meta.desc.queue() as u8);
    }
    lanes
}

impl<P: Packet> Egress<P> {
    /// Appends a burst of admitted frames to queues of this lcore, none of which has a reserve. `demand` covers these
    /// frames. Not inlined: the loop needs the registers that its caller would keep.
    #[inline(never)]
    pub fn push_all(
        &mut self,
        ports: &mut [Port],
        buffer: &mut Buffer,
        burst: &mut Burst<P>,
        notes: &BurstNotes,
        demand: &BurstDemand,
    ) {
        let (BurstNotes { metas, lanes }, frames) = (notes, burst.len());
        fast_path::hit(FastPath::Appended);
        self.expect_room(frames);
        let filled;
        let lanes = if demand.is_in_lanes {
            debug_assert!(lanes.are_like(&fill_lanes(metas, frames), frames), "lanes that are not of these frames");
            lanes
        } else {
            filled = fill_lanes(metas, frames);
            &filled
        };
        let mut packets = Unpacked::new(burst);
        for egress in demand.egresses.iter() {
            let (state, of_port) = (&mut ports[egress], lanes.egresses.equal(egress as u8) & packets.left());
            for queue in demand.queues.iter() {
                let members = lanes.queues.equal(queue as u8) & of_port;
                let Some(first) = members.lowest() else { continue };
                let kind = demand.kind.charged_to(metas[first % BURST].desc);
                state.queues[queue].append_run(&mut self.slab, &mut packets, members, kind, metas);
                state.waiting.insert(queue);
            }
        }
        assert!(packets.left().is_empty(), "every frame of the burst is sent");
        self.waiting |= demand.egresses;
        self.slab.appended(frames);
        if mutant::is(Mutant::ReleasedWhenQueued) {
            metas[..frames].iter().for_each(|meta| buffer.uncharge(meta.desc));
        }
    }

    /// Asserts that the slab has room for `frames` more. It has a slot for every cell of the buffer, so admitted frames
    /// always fit.
    #[inline]
    pub fn expect_room(&self, frames: usize) {
        assert!(self.slab.has_room(frames), "more frames than cells of the buffer");
    }

    /// Appends an admitted frame to a queue without a reserve. [`Egress::finish`] must follow: it updates the counts
    /// that all frames of a burst share, because an update by each frame would wait for the one before.
    #[inline(always)]
    pub fn append(&mut self, state: &mut Port, buffer: &mut Buffer, packet: P, desc: FrameDesc) {
        state.queues[desc.queue()].append(&mut self.slab, packet, desc);
        if mutant::is(Mutant::ReleasedWhenQueued) {
            buffer.uncharge(desc);
        }
    }

    /// Accounts for appended frames.
    #[inline]
    pub fn finish(&mut self, ports: &mut [Port], appended: &Appended) {
        self.waiting |= appended.egresses;
        self.slab.appended(appended.frames);
        for egress in appended.egresses.iter() {
            let state = &mut ports[egress];
            for queue in appended.queues.iter() {
                state.waiting |= ClassSet::only_if(!state.queues[queue].is_empty(), queue);
            }
        }
    }

    /// Enqueues the next `frames` frames that another lcore has handed over, and collects the refused ones. Returns the
    /// ports whose queues have grown.
    #[inline]
    pub fn accept(
        &mut self,
        context: QueueContext<'_>,
        ring: &mut Consumer<HandoffFrame<P>>,
        frames: usize,
        refused: &mut Refused<P>,
    ) -> PortSet {
        self.expect_room(frames);
        let QueueContext { ports, buffer, rule, links } = context;
        // Ports whose queues need more checks than the admission rule.
        let special = if buffer.reserves.is_empty() { links.refusing | !links.up } else { PortSet::ALL };
        // The pool is charged for these frames already, and no cells return to it before the poll ends.
        let pool = buffer.lossy_pool();
        let (mut appended, mut grown) = (Appended::default(), PortSet::EMPTY);
        for _ in 0..frames {
            let Some(handed) = ring.pop() else { break };
            // The frame is in the cache of the other core, and leaves before the poll ends.
            handed.packet.prefetch();
            let egress = usize::from(handed.egress);
            if special.contains(egress) {
                grown.insert(egress);
                self.enqueue_or_refuse(&mut QueueContext { ports, buffer, rule, links }, handed, refused);
                continue;
            }
            let state = &mut ports[egress];
            if !handed.must_accept
                && let Err(reason) = self.judge(state, &handed, rule, pool)
            {
                refuse(refused, handed, reason, state, pool);
                continue;
            }
            appended.egresses.insert(egress);
            appended.queues.insert(handed.desc.queue());
            appended.frames += 1;
            self.append(state, buffer, handed.packet, handed.desc);
        }
        self.finish(ports, &appended);
        grown | appended.egresses
    }

    /// Enqueues a frame, or collects it if its queue refuses it.
    #[cold]
    #[inline(never)]
    fn enqueue_or_refuse(&mut self, context: &mut QueueContext<'_>, handed: HandoffFrame<P>, refused: &mut Refused<P>) {
        if let Err((handed, reason)) = self.enqueue(context, handed) {
            let state = &context.ports[usize::from(handed.egress)];
            let queue = RefusingQueue::of(Some(state), handed.desc, context.buffer.lossy_pool());
            refused.push((handed, reason, queue));
        }
    }

    /// Enqueues an admitted frame, from any lcore, at a port of this one.
    ///
    /// # Errors
    /// The frame, and the reason for which its queue refused it.
    #[inline]
    pub fn enqueue(
        &mut self,
        context: &mut QueueContext<'_>,
        handed: HandoffFrame<P>,
    ) -> Result<(), (HandoffFrame<P>, DropReason)> {
        let (egress, queue) = (usize::from(handed.egress), handed.desc.queue());
        let state = &context.ports[egress];
        let judged = match state.refusal(queue, context.links.drops_for(egress)) {
            Some(reason) => Err(reason),
            None => self.judge(state, &handed, context.rule, context.buffer.lossy_pool()),
        };
        match judged {
            Ok(()) => self.push(context, handed).map_err(|handed| (handed, DropReason::NoBuffer)),
            Err(reason) => Err((handed, reason)),
        }
    }

    /// Applies the admission rule of the frame's queue at port `state`.
    #[inline]
    fn judge(
        &mut self,
        state: &Port,
        handed: &HandoffFrame<P>,
        rule: &QueueAdmission,
        pool: LossyPool,
    ) -> Result<(), DropReason> {
        let queue = &state.queues[handed.desc.queue()];
        let of_port = || state.queues.iter().map(|queue| queue.cells()).sum();
        let cells = if mutant::is(Mutant::QueueOfPort) { of_port() } else { queue.cells() };
        let cells = match &state.filters {
            // A reserve is for the cells that the queue holds, whatever the filter says of them.
            Some(filters) if P::EMULATES => {
                let reserve = rule.profile(handed.desc.queue()).reserve;
                filters[handed.desc.queue()].of(cells).max(cells.min(reserve))
            }
            _ => cells,
        };
        let elsewhere = state.elsewhere(handed.desc.queue());
        let drain = state.drains[handed.desc.queue()];
        let depth = QueueDepth { cells: cells + elsewhere.cells, bytes: queue.bytes() + elsewhere.bytes, drain };
        // Limits divide memory, so they count the cells that are held. WRED counts what waits for the wire.
        let posted = || state.posted(self.now);
        let draw = || self.rng.roll();
        rule.admit(handed.desc.queue(), handed.request(), depth, pool, posted, draw).map_err(DropReason::from)
    }

    /// Appends a frame to its queue, with or without a reserve.
    ///
    /// # Errors
    /// The frame, if the slab is full. The slab has a slot for every cell of the buffer, so this is a fault.
    #[inline]
    pub fn push(&mut self, context: &mut QueueContext<'_>, handed: HandoffFrame<P>) -> Result<(), HandoffFrame<P>> {
        let (egress, queue, desc) = (usize::from(handed.egress), handed.desc.queue(), handed.desc);
        let state = &mut context.ports[egress];
        let depth = state.queues[queue].cells();
        if let Err(packet) = state.queues[queue].push(&mut self.slab, handed.packet, desc) {
            return Err(HandoffFrame { packet, ..handed });
        }
        if mutant::is(Mutant::ReleasedWhenQueued) {
            context.buffer.uncharge(desc);
        }
        state.waiting.insert(queue);
        self.waiting.insert(egress);
        context.buffer.reserves.update(egress, queue, depth, depth + desc.cells());
        Ok(())
    }
}

#[cold]
#[inline(never)]
fn refuse<P>(refused: &mut Refused<P>, handed: HandoffFrame<P>, reason: DropReason, state: &Port, pool: LossyPool) {
    let queue = RefusingQueue::of(Some(state), handed.desc, pool);
    refused.push((handed, reason, queue));
}
