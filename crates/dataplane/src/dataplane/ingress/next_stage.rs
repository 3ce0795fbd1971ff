//! The stage after the parser, which sees the stations of each frame as soon as they are read.

use crate::dataplane::frame::meta::Meta;
use crate::forward::fdb::StationPair;
use crate::forward::flow_cache::CachePlace;

/// Prefetches what it needs for a burst that is being parsed.
pub(crate) trait NextStage: Copy {
    /// Sees a frame that has a class. Notes its `place` in the flow cache, if it is looked up there.
    fn see(self, meta: &Meta, place: &mut CachePlace);

    /// Sees a frame between `stations` that is usual by its headers. A frame that turns out to be shorter than its
    /// packet is dropped.
    fn see_usual(self, stations: StationPair, place: &mut CachePlace);
}

/// No next stage, where the flow cache is not used: the router and the database read the burst in loops of their own.
#[derive(Clone, Copy)]
pub(crate) struct NoStage;

impl NextStage for NoStage {
    #[inline(always)]
    fn see(self, _: &Meta, _: &mut CachePlace) {}

    #[inline(always)]
    fn see_usual(self, _: StationPair, _: &mut CachePlace) {}
}
