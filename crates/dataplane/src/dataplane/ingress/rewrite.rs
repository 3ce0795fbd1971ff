//! Rewrite: gives each frame the VLAN tag, marks and length with which its egress port sends it, before admission.
//! Admission then charges the frame at the length that it has in the queue.

use super::forwarder::Egresses;
use super::parse::Arrived;
use super::port_classifier::Classification;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::fast_path::{self, FastPath};
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::frame::run::{BurstSum, RunKind};
use crate::dataplane::port::Port;
use crate::io::{Burst, Packet};
use crate::plan::drops::DropReason;
use crate::plan::spec::{PortSpec, SwitchSpec};
use crate::qos::Rewrite;
use crate::sets::{BURST, CLASSES, ClassSet, FrameSet, MAX_PORTS, PortSet};
use crate::units::{CellSize, Cells};
use crate::wire::{MacAddr, ecn, vlan_tag};

/// The settings of an egress port that ingress needs. It is small, because a burst may go to many ports. A reload
/// replaces it as a whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EgressView {
    /// VLAN whose frames leave untagged; zero: none.
    untagged: u16,
    /// Longest packet in bytes.
    mtu: u16,
    /// Whether frames keep their DSCP and PCP.
    keeps_marks: bool,
}

impl EgressView {
    pub fn new(spec: &PortSpec) -> Self {
        Self {
            untagged: spec.vlan.untagged().unwrap_or(0),
            mtu: spec.mtu,
            keeps_marks: spec.live.rewrite == Rewrite::default(),
        }
    }

    /// The view of a port that does not exist.
    pub const NONE: Self = Self { untagged: 0, mtu: 0, keeps_marks: false };

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
            & (self.leaves_tagged(meta) == (meta.class_bits.tags() > 0))
            & !meta.class_bits.has_priority_tag()
            & (u32::from(meta.desc.frame_len()) <= longest)
    }

    /// A view that rewrites every frame, for tests that compare the paths.
    #[cfg(test)]
    pub fn changing(self) -> Self {
        Self { keeps_marks: false, ..self }
    }

    /// Inserts, removes or keeps the VLAN tag. Returns the new offset of the network header; `None` if the mbuf has no
    /// room for a tag.
    ///
    /// IEEE 802.1Q YANG (clause 6.9.3): unless a port uses the DEI, "the DEI shall be transmitted as zero and ignored
    /// on receipt." An inserted tag obeys this; a kept tag leaves with the DEI that it came with.
    #[inline]
    fn retag(self, packet: &mut impl Packet, meta: &Meta) -> Option<u8> {
        let (offset, tag_len) = (meta.desc.l3_offset(), vlan_tag::TAG_LEN as u8);
        match (meta.class_bits.tags() > 0, self.leaves_tagged(meta)) {
            (false, false) => Some(offset),
            (true, true) => {
                // A priority tag (VLAN 0) gets the frame's VLAN.
                vlan_tag::set_id(packet, meta.vlan());
                Some(offset)
            }
            (true, false) => vlan_tag::remove(packet).then(|| offset - tag_len),
            (false, true) => {
                let tci = u16::from(meta.class_bits.class()) << 13 | meta.vlan();
                vlan_tag::insert(packet, tci).then(|| offset + tag_len)
            }
        }
    }
}

/// The rewriting state of one lcore: the settings of all egress ports, by port.
#[derive(Debug)]
pub(crate) struct Rewriter {
    pub views: Box<[EgressView; MAX_PORTS]>,
    /// The marks that each port sets.
    pub marks: Box<[Rewrite]>,
    /// Ports that change marks.
    pub remarking: PortSet,
    cell: CellSize,
}

impl Rewriter {
    pub fn new(spec: &SwitchSpec) -> Self {
        let views = std::array::from_fn(|port| spec.ports.get(port).map_or(EgressView::NONE, EgressView::new));
        let mut rewriter = Self {
            views: Box::new(views),
            marks: spec.ports.iter().map(|port| port.live.rewrite).collect(),
            remarking: PortSet::EMPTY,
            cell: CellSize::new(spec.buffer.cell),
        };
        rewriter.find_remarking();
        rewriter
    }

    /// Replaces the settings of the egress `port`.
    pub fn set(&mut self, port: usize, view: EgressView, marks: Rewrite) {
        (self.views[port], self.marks[port]) = (view, marks);
        self.find_remarking();
    }

    fn find_remarking(&mut self) {
        self.remarking = (0..self.marks.len()).filter(|&port| !self.views[port].keeps_marks).collect();
    }

    /// Rewrites the frames of `arrived` that leave by one of `egresses` each. Returns the sums that admission needs.
    #[inline]
    pub fn rewrite<P: Packet>(
        &self,
        ingress: &Port,
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        arrived: &Arrived,
        egresses: Egresses,
    ) -> BurstDemand {
        let changed_at = arrived.retagged_at | self.remarking | ingress.smaller_mtu;
        if egresses.are_single && (egresses.ports & changed_at).is_empty() {
            if !arrived.data.is_empty() {
                fast_path::hit(FastPath::Unchanged);
            }
            let sent = Sent { frames: arrived.data, egresses: egresses.ports, floods: false };
            let demand = BurstDemand::new(ingress, sent, &arrived.sums, arrived.has_padded);
            return BurstDemand { is_in_lanes: egresses.are_in_lanes, ..demand };
        }
        let demand = self.rewrite_burst(ingress, burst, metas, arrived, changed_at);
        BurstDemand { is_in_lanes: egresses.are_in_lanes, ..demand }
    }

    /// Rewrites the frames of `arrived` one by one; a frame that leaves by a port outside of `changed_at` does not
    /// change.
    #[inline(never)]
    fn rewrite_burst<P: Packet>(
        &self,
        ingress: &Port,
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        arrived: &Arrived,
        changed_at: PortSet,
    ) -> BurstDemand {
        let Arrived { data, mut has_padded, .. } = *arrived;
        let (mut sent, mut egresses, mut floods, mut sums) =
            (data, PortSet::EMPTY, false, [BurstSum::default(); CLASSES]);
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            let Forwarding::Send(egress) = meta.forwarding() else {
                // A probe of another switch, which belongs to no link, is flooded too.
                floods |= match meta.forwarding() {
                    Forwarding::Flood => true,
                    Forwarding::Link => meta.stations.dst().mac() == MacAddr::LOOPBACK_ASSISTANCE,
                    _ => false,
                };
                sent.remove(index);
                continue;
            };
            let egress = usize::from(egress) % MAX_PORTS;
            if changed_at.contains(egress)
                && !self.views[egress].sends_unchanged(meta)
                && let Err(reason) = self.rewrite_frame(&mut burst[index], meta, egress)
            {
                meta.set_forwarding(Forwarding::Drop(reason));
                sent.remove(index);
                continue;
            }
            egresses.insert(egress);
            // A frame without its tag may have become too short.
            has_padded |= meta.desc.is_padded();
            sums[usize::from(meta.class_bits.class())].add(meta.desc);
        }
        BurstDemand::new(ingress, Sent { frames: sent, egresses, floods }, &sums, has_padded)
    }

    /// Rewrites one frame for `egress`. Always inline, for the loop over a burst.
    #[inline(always)]
    pub fn rewrite_frame(&self, packet: &mut impl Packet, meta: &mut Meta, egress: usize) -> Result<(), DropReason> {
        let view = self.views[egress % MAX_PORTS];
        let Some(l3_offset) = view.retag(packet, meta) else { return Err(DropReason::NoBuffer) };
        let len = packet.len();
        if len > usize::from(view.mtu) + usize::from(l3_offset) {
            return Err(DropReason::EgressMtu);
        }
        if !view.keeps_marks {
            self.rewrite_marks(egress, packet, meta, l3_offset);
        }
        meta.desc = meta.desc.reshaped(len as u16, self.cell.cells_of(len as u16), l3_offset);
        Ok(())
    }

    /// Writes the DSCP and PCP that `egress` sets for the frame's class.
    #[inline(never)]
    fn rewrite_marks(&self, egress: usize, packet: &mut impl Packet, meta: &Meta, l3_offset: u8) {
        let (marks, class) = (&self.marks[egress], usize::from(meta.class_bits.class()));
        if let Some(dscp) = marks.dscp[class] {
            ecn::set_dscp(packet.bytes_mut(), meta.class_bits.l3(), usize::from(l3_offset), dscp);
        }
        if let Some(pcp) = marks.pcp[class]
            && self.views[egress].leaves_tagged(meta)
        {
            vlan_tag::set_pcp(packet, pcp);
        }
    }
}

/// The sums of a burst that admission needs.
#[derive(Debug)]
pub(crate) struct BurstDemand {
    /// Frames that leave by exactly one port.
    pub sent: FrameSet,
    /// Cells of these frames by group.
    pub cells: [Cells; CLASSES],
    /// Egress ports of these frames.
    pub egresses: PortSet,
    /// Queues of these frames.
    pub queues: ClassSet,
    /// Queues of the lossy ones.
    pub lossy_queues: ClassSet,
    /// Whether the burst also has flooded frames. Their copies are judged one by one, in order with the others.
    pub floods: bool,
    /// Properties of the frames of each queue, without their charge.
    pub kind: RunKind,
    /// Whether the egress port and the queue of each frame are in its lanes.
    pub is_in_lanes: bool,
}

/// The frames of a burst that leave.
struct Sent {
    /// Those that leave by exactly one port, and these ports.
    frames: FrameSet,
    egresses: PortSet,
    /// Whether there are also flooded ones.
    floods: bool,
}

impl BurstDemand {
    /// The demand of the frames `sent` of a burst of port `ingress`, with sums by class. `has_padded`: the wire pads
    /// some of them.
    #[inline]
    fn new(ingress: &Port, sent: Sent, sums: &[BurstSum; CLASSES], has_padded: bool) -> BurstDemand {
        let kind = RunKind::new(FrameDesc::NONE, ingress.classifier.mixes_groups(), has_padded);
        let Sent { frames: sent, egresses, floods } = sent;
        let (none, cells) = (ClassSet::EMPTY, [Cells(0); CLASSES]);
        let mut demand =
            Self { sent, cells, egresses, queues: none, lossy_queues: none, floods, kind, is_in_lanes: false };
        for (class, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.frames() > 0) {
            demand.add(ingress.classifier.of_class(class), sum.cells());
        }
        demand
    }

    /// Adds `cells` of frames of one `classification`.
    #[inline]
    fn add(&mut self, classification: Classification, cells: Cells) {
        self.cells[usize::from(classification.desc.group())] += cells;
        self.queues.insert(classification.desc.queue());
        self.lossy_queues |= classification.class_bits.lossy_queue();
    }

    /// Groups with cells.
    #[inline]
    pub fn groups(&self) -> ClassSet {
        (0..CLASSES)
            .fold(ClassSet::EMPTY, |groups, group| groups | ClassSet::only_if(self.cells[group] > Cells(0), group))
    }
}
