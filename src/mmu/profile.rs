//! What the buffer is divided into and how each priority group may use it: checked once, then constant.

use crate::sets::CLASSES;
use crate::units::{Alpha, Bytes, Cells};

/// Limit on what a group or queue may hold of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Dynamic Threshold: alpha times what the pool has free (Choudhury & Hahne 1998).
    Dynamic(Alpha),
    /// A fixed number of cells.
    Static(Cells),
}

impl Threshold {
    /// The limit while the pool has `free` cells. One shift, so constant time.
    #[inline]
    #[must_use]
    pub fn limit(self, free: Cells) -> Cells {
        match self {
            Threshold::Dynamic(alpha) => alpha.of(free),
            Threshold::Static(cells) => cells,
        }
    }
}

/// How one ingress (port, priority group) uses the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupProfile {
    /// Uses the lossless pool and has headroom and PFC; otherwise the lossy pool and neither.
    pub lossless: bool,
    /// Cells guaranteed to the group.
    pub reserve: Cells,
    /// Limit on the group's share of its pool; crossing it is XOFF for a lossless group, a drop for a lossy one.
    pub threshold: Threshold,
    /// XON waits until the share is this far below the threshold.
    pub xon_offset: Cells,
    /// XON needs no less than this: with a threshold near zero the offset alone would never let a group go on.
    pub xon_floor: Cells,
    /// Cells for what arrives after XOFF (eta); zero for a lossy group. With [`HeadroomPolicy::SharedPool`] a cap on what
    /// the group may use of the pool; with [`HeadroomPolicy::Dynamic`] how far before its threshold the group is XOFF.
    pub headroom: Cells,
}

impl GroupProfile {
    /// With [`HeadroomPolicy::Dynamic`] the share beyond which the group is XOFF while its pool has `free` cells: X_qoff =
    /// T - eta, but never so low that XON, which the floor holds up, would follow within less than its offset: that would be
    /// a pause per packet.
    #[inline]
    #[must_use]
    pub fn xoff_level(&self, free: Cells) -> Cells {
        let floor = self.xon_floor.0.saturating_add(self.xon_offset.0);
        Cells(self.threshold.limit(free).0.saturating_sub(self.headroom.0).max(floor))
    }
}

/// Where lossless groups put what arrives after XOFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeadroomPolicy {
    /// Each lossless group has an eta of its own.
    #[default]
    Independent,
    /// Each lossless group may use up to its eta of one pool that is smaller than their sum (SONiC's shared headroom
    /// pool, with its over-subscription ratio).
    SharedPool,
    /// Dynamic and Shared Headroom (Shan et al., ICDCS 2023): each port has one eta as insurance; beyond it headroom is
    /// shared buffer, kept free by pausing a group an eta before its threshold and a port at the sum of its groups'.
    Dynamic,
}

/// How one port uses the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortProfile {
    /// Per priority group.
    pub groups: [GroupProfile; CLASSES],
    /// Cells guaranteed to the port, for any of its lossy and of its lossless groups beyond their own reserves: indexed
    /// by `lossless as usize`.
    pub reserve: [Cells; 2],
    /// What the lossless groups do after XOFF; the same on every port of a switch.
    pub policy: HeadroomPolicy,
    /// With [`HeadroomPolicy::Dynamic`]: the port's insurance; else zero.
    pub insurance: Cells,
}

impl PortProfile {
    /// The sum of the groups' etas.
    pub(super) fn all_headroom(&self) -> u32 {
        self.groups.iter().map(|group| group.headroom.0).sum()
    }

    /// These groups, each with a headroom of its own, and nothing that belongs to the port alone.
    #[must_use]
    pub fn independent(groups: [GroupProfile; CLASSES]) -> Self {
        Self { groups, reserve: [Cells(0); 2], policy: HeadroomPolicy::Independent, insurance: Cells(0) }
    }
}

/// The second judgement of a lossy packet, at its egress queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimit {
    /// Limit on the queue's depth, against the lossy pool.
    pub threshold: Threshold,
}

impl QueueLimit {
    /// Whether a queue may hold `depth` cells while the lossy pool, already charged for the frame, has `free` ones.
    #[inline]
    #[must_use]
    pub fn admits(&self, depth: Cells, free: Cells) -> bool {
        depth <= self.threshold.limit(free)
    }
}

/// The division of the buffer. Built by the configuration, which proves with checked arithmetic that
/// `reserves + lossless_shared + headroom + lossy_shared <= total` (queue reserves are part of the lossy pool).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferPlan {
    /// Bytes in a cell.
    pub cell: Bytes,
    /// All cells of the buffer.
    pub total: Cells,
    /// Sum of the groups' and ports' reserves.
    pub reserves: Cells,
    /// All headroom: the sum of the lossless groups' etas, the pool that they share, or the sum of the ports' insurance.
    pub headroom: Cells,
    /// How it is used.
    pub policy: HeadroomPolicy,
    /// Pool that lossless groups share.
    pub lossless_shared: Cells,
    /// Pool that lossy groups share; hard-partitioned from the other.
    pub lossy_shared: Cells,
}
