//! A burst on its way through the stages, with their notes about its frames.

use super::lanes::BurstLanes;
use super::meta::Meta;
use crate::io::Burst;
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

/// A received burst on its way through the stages.
#[derive(Debug)]
pub(crate) struct IngressBurst<'a, P> {
    /// Ingress port.
    pub port: usize,
    pub frames: &'a mut Burst<P>,
    pub notes: &'a mut BurstNotes,
}
