//! The stage after the parser, which sees each frame while its headers are at hand.

use crate::dataplane::frame::meta::Meta;
use crate::forward::fdb::StationPair;
use crate::forward::flow_cache::CachePlace;

/// Reads or prefetches what it needs for a burst that is being parsed.
pub(crate) trait NextStage {
    /// Sees a frame that has a class, at `index` of the burst. Notes its `place` in the flow cache, if it is looked up
    /// there.
    fn see(&mut self, index: usize, bytes: &[u8], meta: &Meta, place: &mut CachePlace);

    /// Sees a frame between `stations` that is usual by its headers. A frame that turns out to be shorter than its
    /// packet is dropped.
    fn see_usual(&mut self, index: usize, bytes: &[u8], stations: StationPair, place: &mut CachePlace);

    /// Ends a burst of `frames` frames. The stage has seen each data frame.
    #[inline(always)]
    fn end(&mut self, frames: usize) {
        let _ = frames;
    }
}
