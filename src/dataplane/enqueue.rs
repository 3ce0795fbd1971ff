//! From the buffer into a queue, on whichever lcore that is.

use super::admit::Before;
use super::drops::DropReason;
use super::evidence::Refused;
use super::frame_desc::FrameDesc;
use super::handoff::Consumer;
use super::mesh::HandoffFrame;
use super::meta::{Meta, Verdict};
use super::pipeline::Pipeline;
use super::rewrite::BurstDemand;
use crate::mutant::{self, Mutant};
use crate::packet::{Burst, Packet, Ports};
use crate::qos::wred::WredVerdict;
use crate::sets::{BURST, ClassSet, PortSet};
use crate::units::{Bytes, Cells};

impl<P: Packet> Pipeline<P> {
    /// To the queue, or to the lcore that owns it.
    #[inline]
    pub(super) fn hand_over<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>, before: Option<Before>) {
        if self.own.contains(handed.egress.into()) {
            return self.enqueue(io, handed, before);
        }
        if !handed.must_accept && self.is_reserved_for_others(&handed) {
            // At the port it came in by: the counters of the other are another lcore's.
            self.note_drop(handed.desc.ingress().into(), Refused::by_queue(&handed), DropReason::QueueThreshold);
            self.uncharge_refused(handed.desc, before);
            let (port, class) = (usize::from(handed.desc.ingress()), Some(handed.desc.class()));
            return self.drop_frame(io, handed.packet, port, class, DropReason::QueueThreshold);
        }
        self.push_to_lcore(io, handed);
    }

    /// As [`Pipeline::hand_over`], of a frame that no queue of this lcore can refuse.
    #[inline]
    pub(super) fn hand_over_admitted<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>) {
        if self.own.contains(handed.egress.into()) {
            self.push(io, handed, None)
        } else {
            self.push_to_lcore(io, handed)
        }
    }

    /// Appends a burst of admitted frames, of which `demand` is, to queues of this lcore, none of which has a guarantee.
    #[inline]
    pub(super) fn push_all(&mut self, burst: &mut Burst<P>, metas: &[Meta; BURST], demand: &BurstDemand) {
        self.expect_room(burst.len());
        let frames = burst.len();
        for (packet, meta) in burst.drain(..).zip(metas) {
            let Verdict::Send(egress) = meta.verdict else { unreachable!("all of them are sent") };
            self.append(packet, meta.desc, egress.into());
        }
        self.appended(frames, demand.egresses, demand.queues);
    }

    /// Hands over those frames of an admitted burst that leave by ports of other lcores, and queues the others, likewise.
    #[inline]
    pub(super) fn hand_over_all<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        burst: &mut Burst<P>,
        metas: &[Meta; BURST],
        demand: &BurstDemand,
    ) {
        self.expect_room(burst.len());
        let mut appended = 0;
        for (packet, meta) in burst.drain(..).zip(metas) {
            let Verdict::Send(egress) = meta.verdict else { unreachable!("all of them are sent") };
            if self.own.contains(egress.into()) {
                appended += 1;
                self.append(packet, meta.desc, egress.into());
            } else {
                self.push_to_lcore(io, HandoffFrame::new(packet, meta, egress, meta.is_lossless()));
            }
        }
        self.appended(appended, demand.egresses & self.own, demand.queues);
    }

    /// Queues the next `frames` that an lcore has handed over. A queue may refuse a lossy one.
    #[inline]
    pub(super) fn enqueue_handoffs<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        ring: &mut Consumer<HandoffFrame<P>>,
        frames: usize,
    ) {
        self.expect_room(frames);
        // Ports whose queues want a closer look.
        let special =
            if self.buffer.guarantees.are_any() { PortSet::ALL } else { self.links.refusing | !self.links.up };
        // The pool is charged for them already, and gets nothing back before the poll ends.
        let free = self.buffer.pools.shared[0].free();
        let (mut appended, mut egresses, mut queues) = (0, PortSet::EMPTY, ClassSet::EMPTY);
        for _ in 0..frames {
            let Some(handed) = ring.pop() else { break };
            // It lies in the other core's cache, and leaves before the poll is over.
            handed.packet.prefetch();
            if !special.contains(handed.egress.into()) && (handed.must_accept || self.is_taken(&handed, free)) {
                egresses.insert(handed.egress.into());
                queues.insert(handed.desc.queue());
                appended += 1;
                self.append(handed.packet, handed.desc, handed.egress.into());
            } else {
                self.enqueue(io, handed, None);
            }
        }
        self.appended(appended, egresses, queues);
    }

    /// Whether a queue without guarantee is sure to take a lossy frame while its pool has `free` cells.
    #[inline]
    fn is_taken(&self, handed: &HandoffFrame<P>, free: Cells) -> bool {
        let (egress, queue) = (usize::from(handed.egress), handed.desc.queue());
        // WRED throws dice.
        let is_diced = self.egress.wred_queues.contains(queue) & handed.droppable;
        let depth = self.ports[egress].queues[queue].cells() + u32::from(handed.desc.cells());
        let limit = self.egress.specs[queue].limit.as_ref();
        !is_diced && limit.is_none_or(|limit| limit.admits(Cells(depth), free))
    }

    /// The slab has a slot for every cell of the buffer, so admitted frames always find some.
    #[inline]
    fn expect_room(&self, frames: usize) {
        assert!(self.egress.slab.has_room(frames), "fewer slots than cells of the buffer");
    }

    /// Appends a frame to a queue of this lcore that has no guarantee, and room. What depends on all such frames of a burst is for
    /// [`Pipeline::appended`]: what each frame adds to the same place in memory, each waits for.
    #[inline(always)]
    fn append(&mut self, packet: P, desc: FrameDesc, egress: usize) {
        self.ports[egress].queues[desc.queue()].append(&mut self.egress.slab, packet, desc);
        if mutant::is(Mutant::ReleasedWhenQueued) {
            let (port, group, cells) = desc.charge();
            self.buffer.releases.release(port, group, cells);
        }
    }

    /// So many frames were appended, to some of the queues `queues` of the ports `egresses`.
    #[inline]
    fn appended(&mut self, frames: usize, egresses: PortSet, queues: ClassSet) {
        self.egress.slab.appended(frames);
        for egress in egresses.iter() {
            let state = &mut self.ports[egress];
            for queue in queues.iter() {
                state.waiting |= u8::from(!state.queues[queue].is_empty()) << queue;
            }
        }
        self.telemetry.gauges_dirty |= egresses;
    }

    /// To the lcore that owns the queue.
    #[inline]
    fn push_to_lcore<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>) {
        if let Err(handed) = self.mesh.push(handed) {
            self.drop_handoff(io, handed);
        }
    }

    #[cold]
    fn drop_handoff<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>) {
        self.uncharge(handed.desc);
        let (port, class) = (usize::from(handed.desc.ingress()), Some(handed.desc.class()));
        self.drop_frame(io, handed.packet, port, class, DropReason::NoBuffer);
    }

    /// Whether a lossy frame for another lcore's queue, which is beyond its guarantee, has taken cells that queues are
    /// guaranteed: on its way they would be missing.
    #[inline]
    fn is_reserved_for_others(&self, handed: &HandoffFrame<P>) -> bool {
        let unused = self.buffer.guarantees.unused();
        unused > 0
            && self.buffer.pools.shared[0].free().0 < unused
            && !self.buffer.guarantees.covers(usize::from(handed.egress), handed.desc.queue(), handed.desc.charge().2)
    }

    /// Queues an admitted frame of any lcore at a port of this one; a lossy one is judged here a second time, against its
    /// queue, unless its group had it guaranteed. One that is refused is dropped, and its cells are free: at once if its
    /// group is this lcore's, so that the next frame of the burst finds them.
    #[inline]
    pub(super) fn enqueue<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>, before: Option<Before>) {
        match self.judge_at_queue(usize::from(handed.egress), handed.desc.queue(), &handed) {
            Ok(()) => self.push(io, handed, before),
            Err(reason) => {
                self.note_drop(handed.egress.into(), Refused::by_queue(&handed), reason);
                self.refuse(io, (handed.packet, handed.desc), handed.egress.into(), before, reason);
            }
        }
    }

    /// Appends a frame to its queue, one of this lcore's.
    #[inline]
    fn push<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>, before: Option<Before>) {
        let HandoffFrame { packet, desc, egress, .. } = handed;
        let (egress, queue) = (usize::from(egress), desc.queue());
        let state = &mut self.ports[egress];
        let depth = state.queues[queue].cells();
        // The slab has a slot for every cell of the buffer, so an admitted frame always finds one.
        if let Err(packet) = state.queues[queue].push(&mut self.egress.slab, packet, desc) {
            return self.refuse(io, (packet, desc), egress, before, DropReason::NoBuffer);
        }
        if mutant::is(Mutant::ReleasedWhenQueued) {
            let (port, group, cells) = desc.charge();
            self.buffer.releases.release(port, group, cells);
        }
        state.waiting |= 1 << queue;
        self.telemetry.gauges_dirty.insert(egress);
        self.buffer.guarantees.changed(egress, queue, depth, depth + u32::from(desc.cells()));
    }

    #[cold]
    fn refuse<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        (packet, desc): (P, FrameDesc),
        egress: usize,
        before: Option<Before>,
        reason: DropReason,
    ) {
        self.uncharge_refused(desc, before);
        self.drop_frame(io, packet, egress, Some(desc.class()), reason);
    }

    /// Whether the queue takes the frame.
    #[inline]
    fn judge_at_queue(&mut self, egress: usize, queue: usize, handed: &HandoffFrame<P>) -> Result<(), DropReason> {
        let state = &self.ports[egress];
        if state.dropping() >> queue & 1 == 1 {
            return Err(DropReason::Watchdog);
        }
        if state.is_closed(queue) {
            return Err(DropReason::EgressStuck);
        }
        // The link went down while the frame crossed from another lcore.
        if !self.links.up.contains(egress) {
            return Err(DropReason::EgressDown);
        }
        if handed.must_accept {
            return Ok(());
        }
        let spec = &self.egress.specs[queue];
        let depth = state.queues[queue].cells() + u32::from(handed.desc.cells());
        let of_port = || state.queues.iter().map(|queue| queue.cells()).sum();
        let depth = if mutant::is(Mutant::QueueOfPort) { depth.max(of_port()) } else { depth };
        if depth <= spec.reserve.0 {
            return Ok(());
        }
        if let Some(limit) = &spec.limit {
            // The pool is charged for the frame already. What others are guaranteed is not free.
            let (free, reserved) = (self.buffer.pools.shared[0].free().0, self.buffer.guarantees.unused());
            if free < reserved || !limit.admits(Cells(depth), Cells(free - reserved)) {
                return Err(DropReason::QueueThreshold);
            }
        }
        // What could be marked is marked when it leaves; of the rest only IP packets are dropped early, as RED has it for
        // those that can respond.
        if let Some(wred) = &spec.wred
            && handed.droppable
            && wred.judge(Bytes(state.queues[queue].bytes()), self.egress.rng.roll()) == WredVerdict::Congested
        {
            return Err(DropReason::Wred);
        }
        Ok(())
    }
}
