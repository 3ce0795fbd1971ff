//! Notes of the stages about the frames of a burst.

use super::lanes::BurstLanes;
use super::meta::Meta;
use crate::sets::BURST;

/// Notes about the frames of the burst that is being processed; those beyond its length are stale.
#[derive(Debug)]
pub(crate) struct BurstNotes {
    pub metas: [Meta; BURST],
    pub lanes: BurstLanes,
}

impl Default for BurstNotes {
    fn default() -> Self {
        Self { metas: [Meta::EMPTY; BURST], lanes: BurstLanes::default() }
    }
}
