//! The stage after the parser, which sees each frame while its headers are at hand.

use crate::dataplane::frame::meta::Meta;
use crate::forward::fdb::Station;

/// Reads or prefetches what it needs for a burst that is being parsed.
pub(crate) trait NextStage {
    /// Sees a frame that has a class, at `index` of the burst, between the stations `dst` and `src`.
    fn see(&mut self, index: usize, bytes: &[u8], meta: &Meta, stations: (Station, Station));
}
