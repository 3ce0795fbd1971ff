//! Between the decision and the buffer: each frame becomes what its egress port sends, with the tag, the marks and the
//! length that it will leave with.

use super::drops::DropReason;
use super::lanes::Lane;
use super::meta::Meta;
use super::pipeline::Pipeline;
use super::spec::PortSpec;
use crate::packet::Packet;
use crate::qos::Rewrite;
use crate::sets::{CLASSES, ClassSet, FrameSet, MAX_PORTS, PortSet};
use crate::wire::{ecn, vlan_tag};

/// What a frame must know of the port that it leaves by: small, since any port may be next, and replaced as a whole by a reload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outward {
    /// VLAN whose frames leave without a tag; zero: none. All others leave with one.
    untagged: u16,
    /// Longest packet in bytes.
    mtu: u16,
    /// The lcore that sends them.
    owner: u8,
    /// Frames keep their marks.
    keeps_marks: bool,
}

impl Outward {
    pub fn new(spec: &PortSpec) -> Self {
        Self {
            untagged: spec.vlan.untagged().unwrap_or(0),
            mtu: spec.mtu,
            owner: spec.lcore,
            keeps_marks: spec.rewrite == Rewrite::default(),
        }
    }

    /// Of a port that is not there.
    pub const NONE: Self = Self { untagged: 0, mtu: 0, owner: 0, keeps_marks: false };

    /// Of all `ports`, in order, those that give frames other marks, as a mask.
    pub fn remarking(ports: impl Iterator<Item = Self>) -> PortSet {
        ports.enumerate().filter(|(_, outward)| !outward.keeps_marks).map(|(port, _)| port).collect()
    }

    /// The lcore that it belongs to.
    #[inline]
    pub fn owner(self) -> usize {
        self.owner.into()
    }

    /// Whether a frame has a tag when it leaves.
    #[inline]
    fn leaves_tagged(self, meta: &Meta) -> bool {
        meta.vlan() != self.untagged
    }

    /// Whether a frame leaves as it is.
    #[inline]
    pub fn fits(self, meta: &Meta) -> bool {
        let longest = u32::from(self.mtu) + u32::from(meta.desc.l3_offset());
        self.keeps_marks
            & (self.leaves_tagged(meta) == (meta.kind.tags() > 0))
            & !meta.kind.has_priority_tag()
            & (u32::from(meta.desc.frame_len()) <= longest)
    }

    /// As if it gave each frame marks, were they the ones that it has: none leaves as it is.
    #[cfg(test)]
    pub fn changing(self) -> Self {
        Self { keeps_marks: false, ..self }
    }

    /// Puts the VLAN tag on, takes it off or leaves it. The offset of the network header then; `None` if there is no room for
    /// a tag.
    #[inline]
    fn retag(self, packet: &mut impl Packet, meta: &Meta) -> Option<u8> {
        let (offset, tag_len) = (meta.desc.l3_offset(), vlan_tag::TAG_LEN as u8);
        match (meta.kind.tags() > 0, self.leaves_tagged(meta)) {
            (false, false) => Some(offset),
            (true, true) => {
                // A priority tag gets its VLAN.
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

/// What the frames of a burst ask for together.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// Frames that leave by one port.
    pub sent: FrameSet,
    /// Their cells by group.
    pub cells: [u32; CLASSES],
    /// Ports that they leave by.
    pub egresses: PortSet,
    /// Queues that they leave by.
    pub queues: ClassSet,
    /// Those of them that lossy ones leave by.
    pub lossy_queues: ClassSet,
    /// There are frames besides of which copies leave, each judged by itself: what they find depends on who is first.
    pub floods: bool,
}

impl Demand {
    /// And `cells` of frames that are among those sent, whose ports are known to it, and that came by `lane`.
    #[inline]
    pub fn add(&mut self, lane: Lane, cells: u32) {
        self.cells[usize::from(lane.desc.group())] += cells;
        self.queues.insert(lane.desc.queue());
        self.lossy_queues |= lane.kind.lossy_queue();
    }

    /// Groups that have any.
    #[inline]
    pub fn groups(&self) -> u8 {
        (0..CLASSES).fold(0, |mask, group| mask | u8::from(self.cells[group] > 0) << group)
    }
}

impl<P: Packet> Pipeline<P> {
    /// Makes one frame fit to leave by `egress`. Always inline, for the loop over a burst; who floods is slow anyway.
    #[inline(always)]
    pub(super) fn fit(&self, packet: &mut P, meta: &mut Meta, egress: usize) -> Result<(), DropReason> {
        let outward = self.outward[egress % MAX_PORTS];
        let Some(l3_offset) = outward.retag(packet, meta) else { return Err(DropReason::NoBuffer) };
        let len = packet.len();
        if len > usize::from(outward.mtu) + usize::from(l3_offset) {
            return Err(DropReason::EgressMtu);
        }
        if !outward.keeps_marks {
            self.rewrite(egress, packet, meta, l3_offset);
        }
        meta.desc = meta.desc.reshaped(len as u16, self.cell.cells_of(len as u16).0 as u16, l3_offset);
        Ok(())
    }

    /// Gives the frame the marks that `egress` has for its class.
    #[inline(never)]
    fn rewrite(&self, egress: usize, packet: &mut P, meta: &Meta, l3_offset: u8) {
        let rewrite = &self.ports[egress].rewrite;
        let class = usize::from(meta.kind.class());
        if let Some(dscp) = rewrite.dscp[class] {
            ecn::set_dscp(packet.bytes_mut(), meta.kind.l3(), usize::from(l3_offset), dscp);
        }
        if let Some(pcp) = rewrite.pcp[class]
            && self.outward[egress].leaves_tagged(meta)
        {
            vlan_tag::set_pcp(packet, pcp);
        }
    }
}
