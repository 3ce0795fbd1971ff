//! Scratch memory of a poll: its caller lends it, so that the stages can borrow it beside the pipeline.

use crate::dataplane::frame::meta::Meta;
use crate::io::Burst;
use crate::sets::BURST;

/// The bursts of a poll, and the metadata of one. All polls of a thread may share one.
#[derive(Debug)]
pub struct Scratch<P> {
    /// The burst that is being processed, and the one that was received ahead.
    pub(crate) bursts: [Burst<P>; 2],
    /// Metadata of the frames that are being processed; entries beyond the burst's length are stale.
    pub(crate) metas: [Meta; BURST],
}

impl<P> Default for Scratch<P> {
    fn default() -> Self {
        Self { bursts: Default::default(), metas: [Meta::EMPTY; BURST] }
    }
}
