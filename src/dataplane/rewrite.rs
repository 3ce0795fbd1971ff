//! Rewrite: gives each frame the VLAN tag, marks and length with which its egress port sends it, before admission.
//! Admission then charges the frame at the length that it has in the queue.

use super::drops::DropReason;
use super::meta::Meta;
use super::pipeline::Pipeline;
use super::port_classifier::Classification;
use super::spec::{PortSpec, SwitchSpec};
use crate::packet::Packet;
use crate::qos::Rewrite;
use crate::sets::{CLASSES, ClassSet, FrameSet, MAX_PORTS, PortSet};
use crate::wire::{ecn, vlan_tag};

/// The settings of an egress port that ingress needs. It is small, because a burst may go to many ports. A reload replaces it
/// whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct EgressView {
    /// VLAN whose frames leave untagged; zero: none.
    untagged: u16,
    /// Longest packet in bytes.
    mtu: u16,
    /// The lcore that owns the port.
    owner: u8,
    /// Whether frames keep their DSCP and PCP.
    keeps_marks: bool,
}

impl EgressView {
    pub fn new(spec: &PortSpec) -> Self {
        Self {
            untagged: spec.vlan.untagged().unwrap_or(0),
            mtu: spec.mtu,
            owner: spec.lcore,
            keeps_marks: spec.rewrite == Rewrite::default(),
        }
    }

    /// The view of a port that does not exist.
    pub const NONE: Self = Self { untagged: 0, mtu: 0, owner: 0, keeps_marks: false };

    /// Those of `ports` (all, in order) that change marks.
    pub fn remarking(ports: impl Iterator<Item = Self>) -> PortSet {
        ports.enumerate().filter(|(_, view)| !view.keeps_marks).map(|(port, _)| port).collect()
    }

    /// The lcore that owns the port.
    #[inline]
    pub fn owner(self) -> usize {
        self.owner.into()
    }

    /// Whether a frame leaves with a tag.
    #[inline]
    fn leaves_tagged(self, meta: &Meta) -> bool {
        meta.vlan() != self.untagged
    }

    /// Whether a frame needs no rewrite.
    #[inline]
    pub fn sends_unchanged(self, meta: &Meta) -> bool {
        let longest = u32::from(self.mtu) + u32::from(meta.desc.l3_offset());
        self.keeps_marks
            & (self.leaves_tagged(meta) == (meta.kind.tags() > 0))
            & !meta.kind.has_priority_tag()
            & (u32::from(meta.desc.frame_len()) <= longest)
    }

    /// A view that rewrites every frame, for tests that compare the paths.
    #[cfg(test)]
    pub fn changing(self) -> Self {
        Self { keeps_marks: false, ..self }
    }

    /// Inserts, removes or keeps the VLAN tag. Returns the new offset of the network header; `None` if the mbuf has no room
    /// for a tag.
    #[inline]
    fn retag(self, packet: &mut impl Packet, meta: &Meta) -> Option<u8> {
        let (offset, tag_len) = (meta.desc.l3_offset(), vlan_tag::TAG_LEN as u8);
        match (meta.kind.tags() > 0, self.leaves_tagged(meta)) {
            (false, false) => Some(offset),
            (true, true) => {
                // A priority tag (VLAN 0) gets the frame's VLAN.
                vlan_tag::set_id(packet, meta.vlan());
                Some(offset)
            }
            (true, false) => vlan_tag::remove(packet).then(|| offset - tag_len),
            (false, true) => {
                let tci = u16::from(meta.kind.class()) << 13 | meta.vlan();
                vlan_tag::insert(packet, tci).then(|| offset + tag_len)
            }
        }
    }
}

/// The rewriting state of one lcore.
#[derive(Debug)]
pub(super) struct Rewriter {
    /// The settings of each egress port.
    pub views: Box<[EgressView; MAX_PORTS]>,
    /// Ports that change marks.
    pub remarking: PortSet,
}

impl Rewriter {
    pub fn new(spec: &SwitchSpec) -> Self {
        Self {
            views: Box::new(std::array::from_fn(|port| spec.ports.get(port).map_or(EgressView::NONE, EgressView::new))),
            remarking: EgressView::remarking(spec.ports.iter().map(EgressView::new)),
        }
    }
}

/// The sums of a burst that admission needs.
#[derive(Debug, Default)]
pub(super) struct BurstDemand {
    /// Frames that leave by exactly one port.
    pub sent: FrameSet,
    /// Cells of these frames by group.
    pub cells: [u32; CLASSES],
    /// Egress ports of these frames.
    pub egresses: PortSet,
    /// Queues of these frames.
    pub queues: ClassSet,
    /// Queues of the lossy ones.
    pub lossy_queues: ClassSet,
    /// Whether the burst also has flooded frames. Their copies are judged one by one, in order with the others.
    pub floods: bool,
}

impl BurstDemand {
    /// Adds `cells` of frames of one `classification`; the caller adds them to `sent` and `egresses`.
    #[inline]
    pub fn add(&mut self, classification: Classification, cells: u32) {
        self.cells[usize::from(classification.desc.group())] += cells;
        self.queues.insert(classification.desc.queue());
        self.lossy_queues |= classification.kind.lossy_queue();
    }

    /// Groups with cells, as a mask.
    #[inline]
    pub fn groups(&self) -> u8 {
        (0..CLASSES).fold(0, |mask, group| mask | u8::from(self.cells[group] > 0) << group)
    }
}

impl<P: Packet> Pipeline<P> {
    /// Rewrites one frame for `egress`. Always inline, for the loop over a burst.
    #[inline(always)]
    pub(super) fn rewrite_frame(&self, packet: &mut P, meta: &mut Meta, egress: usize) -> Result<(), DropReason> {
        let view = self.rewriter.views[egress % MAX_PORTS];
        let Some(l3_offset) = view.retag(packet, meta) else { return Err(DropReason::NoBuffer) };
        let len = packet.len();
        if len > usize::from(view.mtu) + usize::from(l3_offset) {
            return Err(DropReason::EgressMtu);
        }
        if !view.keeps_marks {
            self.rewrite_marks(egress, packet, meta, l3_offset);
        }
        meta.desc = meta.desc.reshaped(len as u16, self.buffer.cell.cells_of(len as u16).0 as u16, l3_offset);
        Ok(())
    }

    /// Writes the DSCP and PCP that `egress` sets for the frame's class.
    #[inline(never)]
    fn rewrite_marks(&self, egress: usize, packet: &mut P, meta: &Meta, l3_offset: u8) {
        let rewrite = &self.ports[egress].rewrite;
        let class = usize::from(meta.kind.class());
        if let Some(dscp) = rewrite.dscp[class] {
            ecn::set_dscp(packet.bytes_mut(), meta.kind.l3(), usize::from(l3_offset), dscp);
        }
        if let Some(pcp) = rewrite.pcp[class]
            && self.rewriter.views[egress].leaves_tagged(meta)
        {
            vlan_tag::set_pcp(packet, pcp);
        }
    }
}
