//! Dropped frames whose buffers go back to their pools together.

use crate::packet::{Burst, Packet, Ports};

/// The frames that one lcore has dropped in this poll.
#[derive(Debug, Default)]
pub(super) struct Trash<P> {
    pub frames: Burst<P>,
}

impl<P: Packet> Trash<P> {
    /// Adds a buffer; a full set goes back at once.
    #[inline]
    pub fn add<I: Ports<Pkt = P>>(&mut self, io: &mut I, packet: P) {
        if self.frames.is_full() {
            io.free(&mut self.frames);
        }
        self.frames.push(packet);
    }
}
