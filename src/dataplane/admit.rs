//! From a verdict into a queue: the tag, admission to the buffer, hand-off to the egress port.

use super::drops::DropReason;
use super::ingress::{Meta, Verdict};
use super::pipeline::{LCORE, Pipeline, bits};
use super::queue::Tag;
use crate::mmu::Admission;
use crate::packet::{Packet, Ports};
use crate::qos::wred::WredVerdict;
use crate::units::{Bytes, Cells};
use crate::wire::parse::L3;
use crate::wire::{ecn, vlan_tag};

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
        let cells = self.cell.cells_of(len as u16);
        let guaranteed = match self.admit(port, meta, cells) {
            Ok(admission) => admission == Admission::Reserve,
            Err(reason) => return self.drop_frame(io, packet, port, meta.class, reason),
        };
        let tag = Tag::new(len as u16, cells.0 as u16, port as u8, meta.group, meta.queue & 7).with_ip(
            meta.headers.l3,
            l3_offset,
            is_ect(meta),
        );
        if let Err((packet, reason)) = self.enqueue(egress, packet, tag, meta, guaranteed) {
            self.tallies.release(LCORE, port, usize::from(meta.group & 7), cells);
            self.drop_frame(io, packet, egress, meta.class, reason);
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
    fn admit(&mut self, port: usize, meta: &Meta, cells: Cells) -> Result<Admission, DropReason> {
        let group = usize::from(meta.group & 7);
        let state = &mut self.ports[port];
        let admission = state.ledgers[group].admit(cells, &mut self.pools[usize::from(meta.lossless)]);
        if state.ledgers[group].is_xoff() {
            // A drop judges XOFF too.
            state.follow_ledger(group);
            self.xoff |= 1 << port;
        }
        if let Admission::Refused(refusal) = admission {
            return Err(refusal.into());
        }
        state.admitted[group] += u64::from(cells.0);
        state.holding |= 1 << group;
        self.holding |= 1 << port;
        Ok(admission)
    }

    /// Queues an admitted frame; a lossy one is judged here a second time, against its queue, unless its group had it
    /// `guaranteed`.
    #[inline]
    fn enqueue(
        &mut self,
        egress: usize,
        packet: P,
        tag: Tag,
        meta: &Meta,
        guaranteed: bool,
    ) -> Result<(), (P, DropReason)> {
        let queue = usize::from(tag.queue);
        let state = &mut self.ports[egress];
        let spec = &self.queue_specs[queue];
        if !meta.lossless && !guaranteed {
            let depth = state.queues[queue].cells() + u32::from(tag.cells);
            if let Some(limit) = &spec.limit
                && !limit.admits(Cells(depth), self.pools[0].free())
            {
                return Err((packet, DropReason::QueueThreshold));
            }
            // What could be marked is marked when it leaves; of the rest only IP packets are dropped early, as RED has
            // it for those that can respond.
            if let Some(wred) = &spec.wred
                && meta.headers.l3 != L3::Other
                && meta.headers.ecn() == ecn::NOT_ECT
                && wred.judge(Bytes(state.queues[queue].bytes()), self.dice.roll()) == WredVerdict::Congested
            {
                return Err((packet, DropReason::Wred));
            }
        }
        // The slab has a slot for every cell of the buffer, so an admitted frame always finds one.
        state.queues[queue].push(&mut self.slab, packet, tag).map_err(|back| (back, DropReason::NoBuffer))?;
        state.waiting |= 1 << queue;
        self.touched |= 1 << egress;
        Ok(())
    }
}

/// ECT(0) or ECT(1): neither Not-ECT nor marked already.
#[inline]
fn is_ect(meta: &Meta) -> bool {
    !matches!(meta.headers.ecn(), ecn::NOT_ECT | ecn::CE)
}
