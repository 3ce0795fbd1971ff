//! The state of a poll of several rounds, between two of them.

use crate::units::Ticks;

/// The state of a poll when it had sent all frames of its earlier rounds.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RoundStart {
    /// Beginning of the poll. The state of another poll is void.
    pub poll: Ticks,
    /// Ticks since the beginning of the poll.
    pub ticks: u64,
    /// Frames that were received, those of them that were shed, and frames that were sent.
    pub moved: usize,
    pub shed: usize,
    pub sent: usize,
}

impl RoundStart {
    /// This state if it is of the poll that began at `now`, or that of its beginning.
    #[inline]
    pub fn if_began_at(self, now: Ticks) -> Self {
        if self.poll == now { self } else { Self::default() }
    }
}
