//! Scratch memory of a poll.

use super::meta::Meta;
use crate::packet::Burst;
use crate::sets::BURST;

/// The bursts of a poll, and the metadata of one.
#[derive(Debug)]
pub(super) struct Scratch<P> {
    /// The burst being worked on and the one taken ahead.
    pub bursts: [Burst<P>; 2],
    /// Metadata of the first burst's frames; old beyond its length.
    pub metas: [Meta; BURST],
}

impl<P> Default for Scratch<P> {
    fn default() -> Self {
        Self { bursts: Default::default(), metas: [Meta::EMPTY; BURST] }
    }
}
