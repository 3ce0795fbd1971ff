//! The division of the buffer and the use that each priority group may make of it: checked once, then constant.

use crate::sets::CLASSES;
use crate::text::format::word_of;
use crate::units::{Alpha, Bytes, Cells};

/// Limit on the cells of a pool that a group or queue may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Dynamic Threshold: alpha times the free cells of the pool (Choudhury & Hahne 1998).
    Dynamic(Alpha),
    /// A fixed number of cells.
    Static(Cells),
}

impl Threshold {
    /// The factor of a Dynamic Threshold; `None`: the limit is static.
    #[must_use]
    pub fn alpha(self) -> Option<Alpha> {
        match self {
            Self::Dynamic(alpha) => Some(alpha),
            Self::Static(_) => None,
        }
    }

    /// The static limit; `None`: it follows the free part of the pool.
    #[must_use]
    pub fn cells(self) -> Option<Cells> {
        match self {
            Self::Dynamic(_) => None,
            Self::Static(cells) => Some(cells),
        }
    }

    /// The limit while the pool has `free` cells. It takes one shift, so constant time.
    #[inline]
    #[must_use]
    pub fn limit(self, free: Cells) -> Cells {
        match self {
            Threshold::Dynamic(alpha) => alpha.of(free),
            Threshold::Static(cells) => cells,
        }
    }
}

/// The buffer settings of one ingress (port, priority group).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupProfile {
    /// Whether the group is lossless: it uses the lossless pool and has headroom and PFC. A lossy group uses the lossy
    /// pool and has neither.
    pub lossless: bool,
    /// Cells guaranteed to the group.
    pub reserve: Cells,
    /// Limit on the group's share of its pool. Crossing it turns a lossless group XOFF; a lossy group drops the frame.
    pub threshold: Threshold,
    /// XON is due when the share is this far below the threshold.
    pub xon_offset: Cells,
    /// The XON level is at least this: with a threshold near zero the offset alone would never let a group resume.
    pub xon_floor: Cells,
    /// Cells for frames that arrive after XOFF (eta); zero for a lossy group. With [`HeadroomPolicy::SharedPool`] it
    /// caps the group's use of the pool. With [`HeadroomPolicy::Dynamic`] the group turns XOFF this far before its
    /// threshold.
    pub headroom: Cells,
}

impl GroupProfile {
    /// With [`HeadroomPolicy::Dynamic`], the share beyond which the group is XOFF while its pool has `free` cells:
    /// X_qoff = T - eta. It is at least floor plus offset. Otherwise XON, which the floor holds up, would follow within
    /// less than the offset, with a pause per packet.
    #[inline]
    #[must_use]
    pub fn xoff_level(&self, free: Cells) -> Cells {
        let floor = self.xon_floor.saturating_add(self.xon_offset);
        self.threshold.limit(free).saturating_sub(self.headroom).max(floor)
    }
}

/// The place of frames that arrive for lossless groups after XOFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeadroomPolicy {
    /// Each lossless group has its own eta.
    #[default]
    Independent,
    /// All lossless groups use one pool that is smaller than the sum of their etas, each up to its eta. This is SONiC's
    /// shared headroom pool, with its over-subscription ratio.
    SharedPool,
    /// Dynamic and Shared Headroom (Shan et al., ICDCS 2023): each port has one eta as insurance. All other headroom is
    /// shared buffer. To keep it free, a group is paused an eta before its threshold, and a port at the sum of its
    /// groups' thresholds.
    Dynamic,
}

impl HeadroomPolicy {
    /// The words of the configuration for it.
    pub const WORDS: [(&'static str, Self); 3] =
        [("independent", Self::Independent), ("shared-pool", Self::SharedPool), ("dynamic", Self::Dynamic)];

    /// The word of the configuration for it.
    #[must_use]
    pub fn label(self) -> &'static str {
        word_of(&Self::WORDS, &self)
    }
}

/// The buffer settings of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortProfile {
    /// Settings of each priority group.
    pub groups: [GroupProfile; CLASSES],
    /// Cells guaranteed to the port, for any of its groups of one kind beyond their own reserves. Indexed by
    /// `lossless as usize`.
    pub reserve: [Cells; 2],
    /// Headroom policy of the lossless groups; equal on every port of a switch.
    pub policy: HeadroomPolicy,
    /// With [`HeadroomPolicy::Dynamic`], the port's insurance; otherwise zero.
    pub insurance: Cells,
}

impl PortProfile {
    /// Cells that only this port may use: reserves, and headroom by its policy.
    #[must_use]
    pub fn own_cells(&self) -> u64 {
        let groups = self.groups.iter();
        let reserves = groups.clone().map(|group| group.reserve).chain(self.reserve);
        let reserves: u64 = reserves.map(|cells| u64::from(cells.0)).sum();
        let headroom = match self.policy {
            HeadroomPolicy::Independent => groups.map(|group| u64::from(group.headroom.0)).sum(),
            HeadroomPolicy::SharedPool => 0,
            HeadroomPolicy::Dynamic => u64::from(self.insurance.0),
        };
        reserves + headroom
    }

    /// Sum of the groups' etas.
    pub(super) fn all_headroom(&self) -> Cells {
        self.groups.iter().map(|group| group.headroom).sum()
    }

    /// A port with these groups, each with its own headroom, and without a port reserve or insurance.
    #[must_use]
    pub fn independent(groups: [GroupProfile; CLASSES]) -> Self {
        Self { groups, reserve: [Cells(0); 2], policy: HeadroomPolicy::Independent, insurance: Cells(0) }
    }
}

/// The limit of an egress queue, by which a lossy packet is judged after its ingress group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimit {
    /// Limit on the queue's depth, relative to the lossy pool.
    pub threshold: Threshold,
    /// Whether Active Buffer Management multiplies the limit ([`crate::mmu::AbmSpec`]).
    pub abm: bool,
}

impl From<Threshold> for QueueLimit {
    fn from(threshold: Threshold) -> Self {
        Self { threshold, abm: false }
    }
}

/// The division of the buffer. The configuration builds it. With checked arithmetic it proves that
/// `reserves + lossless_shared + headroom + lossy_shared <= total`. Queue reserves are part of the lossy pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferPlan {
    /// Size of a cell in bytes.
    pub cell: Bytes,
    /// All cells of the buffer.
    pub total: Cells,
    /// Sum of the groups' and ports' reserves.
    pub reserves: Cells,
    /// All headroom: the sum of the lossless groups' etas, the pool that they share, or the sum of the ports'
    /// insurance.
    pub headroom: Cells,
    /// Policy by which the headroom is used.
    pub policy: HeadroomPolicy,
    /// Cells of the pool that lossless groups share.
    pub lossless_shared: Cells,
    /// Cells of the pool that lossy groups share; no cell belongs to both pools, unless they are [one
    /// pool](Self::share_pools).
    pub lossy_shared: Cells,
}

impl BufferPlan {
    /// Merges the shared pools: lossy and lossless groups share one, which has the cells of both. Each size is that of
    /// the whole pool then. For simulated switches that decide as Reverie.
    pub fn share_pools(&mut self) {
        let all = self.lossy_shared.saturating_add(self.lossless_shared);
        (self.lossy_shared, self.lossless_shared) = (all, all);
    }
}
