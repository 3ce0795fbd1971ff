//! The stage after the parser, which sees each frame while its headers are at hand.

use crate::dataplane::frame::meta::Meta;
use crate::forward::fdb::StationPair;

/// Reads or prefetches what it needs for a burst that is being parsed.
pub(crate) trait NextStage {
    /// Sees a frame that has a class, at `index` of the burst.
    fn see(&mut self, index: usize, bytes: &[u8], meta: &Meta);

    /// Sees a usual frame between `stations`, whose headers need no check any more.
    fn see_usual(&mut self, index: usize, bytes: &[u8], stations: StationPair);
}
