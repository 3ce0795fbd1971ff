//! From a verdict into a queue: the tag, admission to the buffer, hand-off to the egress port.

use super::crossing::Handed;
use super::drops::DropReason;
use super::ingress::{Meta, Verdict};
use super::pipeline::{Pipeline, bits};
use super::queue::Tag;
use crate::mmu::{Admission, GroupState};
use crate::mutant::{self, Mutant};
use crate::packet::{Packet, Ports};
use crate::qos::wred::WredVerdict;
use crate::units::{Bytes, Cells};
use crate::wire::parse::L3;
use crate::wire::{ecn, vlan_tag};

/// A lossy group and the lossy pool before a frame was admitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    group: GroupState,
    pool_highest: Cells,
}

impl<P: Packet> Pipeline<P> {
    /// Does what the verdict says.
    #[inline]
    pub(super) fn dispatch<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, packet: P, meta: &Meta) {
        match meta.verdict {
            Verdict::Send(egress) => self.send(io, port, usize::from(egress), packet, meta),
            Verdict::Flood(egresses) => self.send_copies(io, port, egresses, packet, meta),
            Verdict::Drop(reason) => self.drop_frame(io, packet, port, meta.class, reason),
            Verdict::Consumed => self.discard(io, packet),
        }
    }

    /// A copy for each port but the last, which gets the frame itself. Each is admitted, and charged, on its own.
    #[cold]
    fn send_copies<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, egresses: u64, packet: P, meta: &Meta) {
        let last = 63 - egresses.leading_zeros() as usize;
        for egress in bits(egresses & !(1 << last)) {
            match io.copy(&packet) {
                Some(copy) => self.send(io, port, egress, copy, meta),
                None => {
                    let row = meta.class.map_or(super::counters::UNCLASSIFIED, usize::from);
                    self.counters.ports[port].drops[row][DropReason::NoBuffer as usize].add(1);
                }
            }
        }
        self.send(io, port, last, packet, meta);
    }

    /// Makes the frame fit to leave by `egress`, admits it to the buffer and queues it.
    #[inline]
    fn send<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, egress: usize, mut packet: P, meta: &Meta) {
        let Some(l3_offset) = self.retag(egress, &mut packet, meta) else {
            return self.drop_frame(io, packet, port, meta.class, DropReason::NoBuffer);
        };
        let len = packet.len();
        if len > self.ports[egress].mtu as usize + usize::from(l3_offset) {
            return self.drop_frame(io, packet, port, meta.class, DropReason::EgressMtu);
        }
        self.rewrite(egress, &mut packet, meta, l3_offset);
        let cells = self.cell.cells_of(len as u16);
        let before = (!meta.lossless).then(|| self.before(port, usize::from(meta.group & 7)));
        let admission = match self.admit(port, egress, meta, cells) {
            Ok(admission) => admission,
            Err(reason) => return self.drop_frame(io, packet, port, meta.class, reason),
        };
        let tag = Tag::new(len as u16, cells.0 as u16, port as u8, meta.group, meta.queue)
            .with_class(meta.class.unwrap_or(0))
            .with_ip(meta.headers.l3, l3_offset, is_ect(meta));
        let handed = Handed {
            packet,
            tag,
            egress: egress as u8,
            kept: meta.lossless || admission.is_guaranteed(),
            droppable: meta.headers.l3 != L3::Other && meta.headers.ecn() == ecn::NOT_ECT,
        };
        self.hand_over(io, handed, before);
    }

    /// What there is to go back to if a lossy frame's queue refuses it.
    #[inline]
    fn before(&self, port: usize, group: usize) -> Before {
        Before { group: self.ports[port].ledger.group(group), pool_highest: self.pools.shared[0].used_highest() }
    }

    /// To the queue, or to the lcore that owns it.
    #[inline]
    fn hand_over<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: Handed<P>, before: Option<Before>) {
        let owner = usize::from(self.ports[usize::from(handed.egress)].owner);
        if owner == self.lcore {
            return self.enqueue(io, handed, before);
        }
        if !handed.kept && self.is_kept_for_others(&handed) {
            // At the port it came in by: the counters of the other are another lcore's.
            self.uncharge_refused(handed.tag, before);
            let (port, class) = (usize::from(handed.tag.ingress), Some(handed.tag.class()));
            return self.drop_frame(io, handed.packet, port, class, DropReason::QueueThreshold);
        }
        let Some(neighbour) = self.neighbours.get_mut(owner).and_then(Option::as_mut) else {
            unreachable!("a port belongs to an lcore of the switch");
        };
        match neighbour.frames_out.push(handed) {
            Ok(()) => self.counters.lcores[self.lcore].handed_off_frames.add(1),
            // The ring holds as many frames as the buffer has cells, and each of those in it has one at least.
            Err(handed) => {
                self.uncharge(handed.tag);
                let (port, class) = (usize::from(handed.tag.ingress), Some(handed.tag.class()));
                self.drop_frame(io, handed.packet, port, class, DropReason::NoBuffer);
            }
        }
    }

    /// Whether a lossy frame for another lcore's queue, which is beyond its guarantee, has taken cells that queues are
    /// guaranteed: on its way they would be missing.
    #[inline]
    fn is_kept_for_others(&self, handed: &Handed<P>) -> bool {
        let unused = self.guarantees.unused();
        unused > 0
            && self.pools.shared[0].free().0 < unused
            && !self.guarantees.covers(usize::from(handed.egress), handed.tag.queue(), handed.tag.charge().2)
    }

    /// Gives the frame the marks that `egress` has for its class.
    #[inline]
    fn rewrite(&self, egress: usize, packet: &mut P, meta: &Meta, l3_offset: u8) {
        if !self.ports[egress].rewrites {
            return;
        }
        let rewrite = &self.ports[egress].rewrite;
        let class = usize::from(meta.class.unwrap_or(0) & 7);
        if let Some(dscp) = rewrite.dscp[class] {
            ecn::set_dscp(packet.bytes_mut(), meta.headers.l3, usize::from(l3_offset), dscp);
        }
        if let Some(pcp) = rewrite.pcp[class]
            && self.vlans.leaves_tagged(egress, meta.vlan)
        {
            vlan_tag::set_pcp(packet, pcp);
        }
    }

    /// Puts the VLAN tag on, takes it off or leaves it, as `egress` has it. The offset of the network header then;
    /// `None` if there is no room for a tag.
    #[inline]
    fn retag(&self, egress: usize, packet: &mut P, meta: &Meta) -> Option<u8> {
        let (offset, tag_len) = (meta.headers.l3_offset, vlan_tag::TAG_LEN as u8);
        match (meta.headers.tci, self.vlans.leaves_tagged(egress, meta.vlan)) {
            (None, false) => Some(offset),
            (Some(tci), true) => {
                if tci & 0xfff != meta.vlan {
                    vlan_tag::set_id(packet, meta.vlan);
                }
                Some(offset)
            }
            (Some(_), false) => vlan_tag::remove(packet).then(|| offset - tag_len),
            (None, true) => {
                let tci = u16::from(meta.class.unwrap_or(0)) << 13 | meta.vlan;
                vlan_tag::insert(packet, tci).then(|| offset + tag_len)
            }
        }
    }

    /// Charges the buffer, and tells the peer to stop if its group is at its limit now.
    #[inline]
    fn admit(&mut self, port: usize, egress: usize, meta: &Meta, cells: Cells) -> Result<Admission, DropReason> {
        let group = usize::from(meta.group & 7);
        let queue = usize::from(meta.queue & 7);
        // The watchdog drops a priority both ways: what comes in of it would only wait for others of its kind.
        if self.ports[port].dropping() >> queue & 1 == 1 {
            return Err(DropReason::Watchdog);
        }
        let state = &mut self.ports[port];
        let mut admission = state.ledger.admit(group, cells, &mut self.pools);
        if meta.lossless {
            if state.ledger.xoff() != 0 {
                // A drop judges XOFF too.
                self.tell_generator(port);
            }
        } else if matches!(admission, Admission::Refused(_)) && self.guarantees.covers(egress, queue, cells) {
            admission = state.ledger.admit_guaranteed(group, cells, &mut self.pools);
        }
        if let Admission::Refused(refusal) = admission {
            return Err(refusal.into());
        }
        let state = &mut self.ports[port];
        state.admitted[group] += u64::from(cells.0);
        state.holding |= 1 << group;
        self.holding |= 1 << port;
        Ok(admission)
    }

    /// Queues an admitted frame of any lcore at a port of this one; a lossy one is judged here a second time, against its
    /// queue, unless its group had it guaranteed. One that is refused is dropped, and its cells are free: at once if its
    /// group is this lcore's, so that the next frame of the burst finds them.
    #[inline]
    pub(super) fn enqueue<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: Handed<P>, before: Option<Before>) {
        let (egress, queue) = (usize::from(handed.egress), handed.tag.queue());
        let verdict = self.judge_at_queue(egress, queue, &handed);
        let Handed { packet, tag, .. } = handed;
        let state = &mut self.ports[egress];
        let depth = state.queues[queue].cells();
        let (packet, reason) = match verdict {
            // The slab has a slot for every cell of the buffer, so an admitted frame always finds one.
            Ok(()) => match state.queues[queue].push(&mut self.slab, packet, tag) {
                Ok(()) => {
                    if mutant::is(Mutant::TallyOrder) {
                        let (port, group, cells) = tag.charge();
                        self.releases.release(port, group, cells);
                    }
                    state.waiting |= 1 << queue;
                    self.touched |= 1 << egress;
                    return self.guarantees.changed(egress, queue, depth, depth + u32::from(tag.cells));
                }
                Err(packet) => (packet, DropReason::NoBuffer),
            },
            Err(reason) => (packet, reason),
        };
        self.uncharge_refused(tag, before);
        self.drop_frame(io, packet, egress, Some(tag.class()), reason);
    }

    /// The cells of a frame that its queue refused are free.
    #[cold]
    fn uncharge_refused(&mut self, tag: Tag, before: Option<Before>) {
        let Some(before) = before else { return self.uncharge(tag) };
        let (port, group, cells) = tag.charge();
        let state = &mut self.ports[port];
        state.ledger.undo(group, &before.group, before.pool_highest, &mut self.pools);
        state.admitted[group] -= u64::from(cells.0);
        if state.admitted[group] == state.released[group] {
            state.holding &= !(1 << group);
        }
    }

    /// Whether the queue takes the frame.
    #[inline]
    fn judge_at_queue(&mut self, egress: usize, queue: usize, handed: &Handed<P>) -> Result<(), DropReason> {
        let state = &self.ports[egress];
        if state.dropping() >> queue & 1 == 1 {
            return Err(DropReason::Watchdog);
        }
        // The link went down while the frame crossed from another lcore.
        if self.up >> egress & 1 == 0 {
            return Err(DropReason::EgressDown);
        }
        if handed.kept {
            return Ok(());
        }
        let spec = &self.queue_specs[queue];
        let depth = state.queues[queue].cells() + u32::from(handed.tag.cells);
        if depth <= spec.reserve.0 {
            return Ok(());
        }
        if let Some(limit) = &spec.limit {
            // The pool is charged for the frame already. What others are guaranteed is not free.
            let (free, kept) = (self.pools.shared[0].free().0, self.guarantees.unused());
            if free < kept || !limit.admits(Cells(depth), Cells(free - kept)) {
                return Err(DropReason::QueueThreshold);
            }
        }
        // What could be marked is marked when it leaves; of the rest only IP packets are dropped early, as RED has it for
        // those that can respond.
        if let Some(wred) = &spec.wred
            && handed.droppable
            && wred.judge(Bytes(state.queues[queue].bytes()), self.dice.roll()) == WredVerdict::Congested
        {
            return Err(DropReason::Wred);
        }
        Ok(())
    }
}

/// ECT(0) or ECT(1): neither Not-ECT nor marked already.
#[inline]
fn is_ect(meta: &Meta) -> bool {
    !matches!(meta.headers.ecn(), ecn::NOT_ECT | ecn::CE)
}
