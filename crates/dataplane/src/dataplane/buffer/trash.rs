//! Dropped frames whose buffers are freed together.

use crate::io::{Burst, Packet, Ports};

/// The frames that one lcore has dropped in this poll.
#[derive(Debug, Default)]
pub(crate) struct Trash<P> {
    pub frames: Burst<P>,
}

impl<P: Packet> Trash<P> {
    /// Adds a dropped frame; a full set is freed at once.
    #[inline]
    pub fn add<I: Ports<Pkt = P>>(&mut self, io: &mut I, packet: P) {
        if self.frames.is_full() {
            io.free(&mut self.frames);
        }
        self.frames.push(packet);
    }
}
