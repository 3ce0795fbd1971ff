//! Scratch memory of a poll.

use crate::dataplane::frame::meta::Meta;
use crate::io::Burst;
use crate::sets::BURST;

/// The bursts of a poll, and the metadata of one.
#[derive(Debug)]
pub(crate) struct Scratch<P> {
    /// The burst that is being processed, and the one that was received ahead.
    pub bursts: [Burst<P>; 2],
    /// Metadata of the frames that are being processed; entries beyond the burst's length are stale.
    pub metas: [Meta; BURST],
}

impl<P> Default for Scratch<P> {
    fn default() -> Self {
        Self { bursts: Default::default(), metas: [Meta::EMPTY; BURST] }
    }
}
