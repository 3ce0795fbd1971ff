//! Halves the window if a frame of the last round trip was marked, and else adds a frame to it.

use super::{Ack, CongestionControl, Loss, Path};
use crate::units::{BitRate, Bytes};

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HalvingSpec {
    /// The window never falls below this many frames.
    pub least_frames: u32,
}

impl Default for HalvingSpec {
    fn default() -> Self {
        Self { least_frames: 1 }
    }
}

/// The sender of one flow. Sizes are in bytes.
#[derive(Debug)]
pub struct Halving {
    rate: BitRate,
    frame: u64,
    window: u64,
    least: u64,
    most: u64,
    /// An ACK beyond this frame ends the round trip.
    ends_at: u64,
    was_marked: bool,
}

impl Halving {
    /// Begins a flow of at most `rate` on `path`.
    #[must_use]
    pub fn new(spec: &HalvingSpec, rate: BitRate, path: &Path) -> Self {
        let (frame, most) = (path.frame.0, path.bdp().0.max(path.frame.0));
        let least = most.min(frame * u64::from(spec.least_frames));
        Self { rate, frame, window: most, least, most, ends_at: 0, was_marked: false }
    }
}

impl CongestionControl for Halving {
    fn rate(&self) -> BitRate {
        self.rate
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes(self.window))
    }

    fn acked(&mut self, ack: &Ack) {
        self.was_marked |= ack.marked > 0;
        if ack.cumulative > self.ends_at {
            let window = if self.was_marked { self.window / 2 } else { self.window + self.frame };
            self.window = window.clamp(self.least, self.most);
            (self.ends_at, self.was_marked) = (ack.next, false);
        }
    }

    fn lost(&mut self, _: Loss, _now_ps: u64) {
        self.window = self.least;
    }
}
