//! The stage after the parser, which sees each frame while its headers are at hand.

use crate::dataplane::frame::meta::Meta;
use crate::forward::fdb::Station;

/// Reads or prefetches what it needs for a burst that is being parsed.
pub(crate) trait NextStage {
    /// Whether [`NextStage::see_usual`] sees the usual frames. A stage that treats all frames alike needs one place for
    /// all of them: two cost it 5 instructions a frame.
    const SEES_USUAL: bool = false;

    /// Sees a frame that has a class, at `index` of the burst, between the stations `dst` and `src`.
    fn see(&mut self, index: usize, bytes: &[u8], meta: &Meta, stations: (Station, Station));

    /// Sees a usual frame, whose headers need no check any more.
    fn see_usual(&mut self, _index: usize, _bytes: &[u8], _stations: (Station, Station)) {}
}
