//! Scratch memory of a poll: its caller lends it, so that the stages can borrow it beside the pipeline.

use crate::dataplane::frame::notes::BurstNotes;
use crate::io::Burst;

/// The bursts of a poll, and the notes about one. All polls of a thread may share one.
#[derive(Debug)]
pub struct Scratch<P> {
    /// The burst that is being processed, and the one that was received ahead.
    pub(crate) bursts: [Burst<P>; 2],
    pub(crate) notes: BurstNotes,
}

impl<P> Default for Scratch<P> {
    fn default() -> Self {
        Self { bursts: Default::default(), notes: BurstNotes::default() }
    }
}
