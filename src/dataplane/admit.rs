//! From a verdict to the buffer: the frames of a burst that leave are admitted together where nothing can be refused, and one by
//! one otherwise. Both come to the same, to the cell and to the watermark.

use super::drops::DropReason;
use super::evidence::Refused;
use super::frame_desc::FrameDesc;
use super::mesh::HandoffFrame;
use super::meta::{Meta, Verdict};
use super::pipeline::{Pipeline, bits};
use super::rewrite::BurstDemand;
use super::ways::{self, Way};
use crate::mmu::{Admission, GroupState};
use crate::packet::{Burst, Packet, Ports};
use crate::sets::{BURST, PortSet};
use crate::units::Cells;

/// A lossy group and the lossy pool before a frame was admitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    group: GroupState,
    pool_highest: Cells,
}

impl<P: Packet> Pipeline<P> {
    /// Does with each frame of a burst what its verdict says; `demand` is of those that leave by one port.
    #[inline]
    pub(super) fn dispatch<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        port: usize,
        burst: &mut Burst<P>,
        metas: &[Meta; BURST],
        demand: &BurstDemand,
    ) {
        let together = !demand.floods && self.admit_together(port, metas, demand);
        let all = demand.sent.len() == burst.len();
        if together && all && !self.buffer.guarantees.are_any() {
            if (demand.egresses - self.own).is_empty() {
                return self.push_all(burst, metas, demand);
            }
            return self.hand_over_all(io, burst, metas, demand);
        }
        for (packet, meta) in burst.drain(..).zip(metas) {
            match meta.verdict {
                Verdict::Send(egress) if together => {
                    let handed = HandoffFrame::new(packet, meta, egress, meta.is_lossless());
                    self.hand_over_admitted(io, handed);
                }
                Verdict::Send(egress) => self.send(io, port, usize::from(egress), packet, meta),
                Verdict::Flood => self.send_copies(io, port, packet, meta),
                Verdict::Drop(reason) => self.drop_frame(io, packet, port, meta.class(), reason),
                Verdict::Consumed => self.discard(io, packet),
            }
        }
    }

    /// Admits all frames of `demand` at once if that is what one by one would come to: none refused, at the buffer or at its
    /// queue, and no XOFF that was not said before. Otherwise admits none.
    #[inline]
    fn admit_together(&mut self, port: usize, metas: &[Meta; BURST], demand: &BurstDemand) -> bool {
        let groups = demand.groups();
        // The watchdog drops a priority both ways.
        if !((demand.egresses | PortSet::only(port)) & self.links.refusing).is_empty()
            || !self.queues_take(port, metas, demand, groups & !self.ports[port].lossless)
            || !self.ports[port].ledger.admit_all(&demand.cells, groups, &mut self.buffer.pools)
        {
            return false;
        }
        let state = &mut self.ports[port];
        if groups != 0 {
            ways::took(Way::Together);
        }
        if state.ledger.xoff() & groups != 0 {
            ways::took(Way::InHeadroom);
        }
        for group in bits(groups.into()) {
            state.admitted[group] += u64::from(demand.cells[group]);
        }
        state.holding |= groups;
        self.buffer.holding |= PortSet::only_if(groups != 0, port);
        true
    }

    /// Whether every frame of `demand` in one of the groups `lossy` is sure to find room in its queue, whichever is judged
    /// first.
    #[inline]
    fn queues_take(&self, port: usize, metas: &[Meta; BURST], demand: &BurstDemand, lossy: u8) -> bool {
        let wanted: u32 = bits(lossy.into()).map(|group| demand.cells[group]).sum();
        let (free, reserved) = (self.buffer.pools.shared[0].free().0, self.buffer.guarantees.unused());
        let crosses = !(demand.egresses - self.own).is_empty();
        // Cells that are kept for queues must not be on their way to others, and what a group has guaranteed is not judged
        // after it has crossed: one by one it is known which frames these are.
        let is_guaranteed = |group| self.ports[port].ledger.has_free_reserve(group);
        if lossy == 0 {
            return true;
        }
        if free < reserved + wanted || crosses && (reserved > 0 || bits(lossy.into()).any(is_guaranteed)) {
            return false;
        }
        let free = Cells(free - reserved - wanted);
        // WRED throws dice for each frame in its turn.
        if !(demand.lossy_queues & self.egress.wred_queues).is_empty()
            && demand.sent.iter().any(|index| self.is_diced(&metas[index]))
        {
            return false;
        }
        // How deep each queue may be with all of them, lossless ones too, which may share it; by port and queue, not by
        // frame, since these are fewer.
        let all: u32 = demand.cells.iter().sum();
        demand.lossy_queues.iter().all(|queue| {
            let limit = self.egress.specs[queue].limit.as_ref();
            let deepest = limit.map_or(u32::MAX, |limit| limit.threshold.limit(free).0);
            demand.egresses.iter().all(|egress| self.ports[egress].queues[queue].cells() + all <= deepest)
        })
    }

    /// Whether WRED throws dice for a frame at its queue.
    #[inline]
    fn is_diced(&self, meta: &Meta) -> bool {
        self.egress.wred_queues.contains(meta.desc.queue()) & !meta.is_lossless() & meta.is_droppable()
    }

    /// A copy for each port of the VLAN but the last, which gets the frame itself. Each is admitted, and charged, on its own.
    #[cold]
    fn send_copies<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, packet: P, meta: &Meta) {
        let egresses = self.forwarder.flooded_to(port, meta.vlan(), self.links.up);
        let Some(last) = egresses.highest() else { unreachable!("a flood leaves by some port") };
        for egress in (egresses - PortSet::only(last)).iter() {
            match io.copy(&packet) {
                Some(copy) => self.send_copy(io, port, egress, copy, *meta),
                None => {
                    let row = usize::from(meta.kind.class());
                    self.telemetry.counters.ports[port].drops[row][DropReason::NoBuffer as usize].add(1);
                }
            }
        }
        self.send_copy(io, port, last, packet, *meta);
    }

    fn send_copy<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, egress: usize, mut packet: P, mut meta: Meta) {
        match self.rewriter.rewrite_frame(&mut packet, &mut meta, egress) {
            Ok(()) => self.send(io, port, egress, packet, &meta),
            Err(reason) => self.drop_frame(io, packet, port, meta.class(), reason),
        }
    }

    /// Admits a frame that is fit for `egress` to the buffer and queues it.
    fn send<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, egress: usize, packet: P, meta: &Meta) {
        let before = (!meta.is_lossless()).then(|| self.before(port, usize::from(meta.desc.group())));
        let admission = match self.admit(port, egress, meta) {
            Ok(admission) => admission,
            Err(reason) => {
                self.note_drop(port, Refused::by_group(&meta.desc, egress), reason);
                return self.drop_frame(io, packet, port, meta.class(), reason);
            }
        };
        let must_accept = meta.is_lossless() || admission.is_guaranteed();
        self.hand_over(io, HandoffFrame::new(packet, meta, egress as u8, must_accept), before);
    }

    /// What there is to go back to if a lossy frame's queue refuses it.
    #[inline]
    fn before(&self, port: usize, group: usize) -> Before {
        Before { group: self.ports[port].ledger.group(group), pool_highest: self.buffer.pools.shared[0].used_highest() }
    }

    /// Charges the buffer, and tells the peer to stop if its group is at its limit now.
    #[inline]
    fn admit(&mut self, port: usize, egress: usize, meta: &Meta) -> Result<Admission, DropReason> {
        let (group, queue) = (usize::from(meta.desc.group()), meta.desc.queue());
        let cells = Cells(meta.desc.cells().into());
        // The watchdog drops a priority both ways: what comes in of it would only wait for others of its kind.
        if self.ports[port].dropping() >> queue & 1 == 1 {
            return Err(DropReason::Watchdog);
        }
        let state = &mut self.ports[port];
        let mut admission = state.ledger.admit(group, cells, &mut self.buffer.pools);
        if meta.is_lossless() {
            if state.ledger.xoff() != 0 {
                // A drop judges XOFF too.
                self.update_pfc(port);
            }
        } else if matches!(admission, Admission::Refused(_)) && self.buffer.guarantees.covers(egress, queue, cells) {
            admission = state.ledger.admit_guaranteed(group, cells, &mut self.buffer.pools);
        }
        if let Admission::Refused(refusal) = admission {
            return Err(refusal.into());
        }
        let state = &mut self.ports[port];
        state.admitted[group] += u64::from(cells.0);
        state.holding |= 1 << group;
        self.buffer.holding.insert(port);
        Ok(admission)
    }

    /// The cells of a frame that its queue refused are free.
    #[cold]
    pub(super) fn uncharge_refused(&mut self, desc: FrameDesc, before: Option<Before>) {
        let Some(before) = before else { return self.uncharge(desc) };
        let (port, group, cells) = desc.charge();
        let state = &mut self.ports[port];
        state.ledger.undo(group, &before.group, before.pool_highest, &mut self.buffer.pools);
        state.admitted[group] -= u64::from(cells.0);
        if state.admitted[group] == state.released[group] {
            state.holding &= !(1 << group);
        }
    }
}
