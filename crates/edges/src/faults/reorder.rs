//! Frames that wait until a number of later frames of their lane has passed.

use arrayvec::ArrayVec;

use super::hold::Ticket;

/// Most frames of one lane that wait at one time.
const MOST: usize = 8;

/// The waiting frames of one lane.
#[derive(Debug, Default, Clone)]
pub(super) struct Behind(ArrayVec<(Ticket, u16), MOST>);

impl Behind {
    /// Whether no further frame may wait.
    pub fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Removes the frames that do not wait any more.
    pub fn retain(&mut self, is_waiting: impl Fn(Ticket) -> bool) {
        self.0.retain(|(ticket, _)| is_waiting(*ticket));
    }

    /// Lets the frame of `ticket` wait for `count` later frames.
    pub fn push(&mut self, ticket: Ticket, count: u16) {
        let _ = self.0.try_push((ticket, count));
    }

    /// Records that a later frame has passed.
    pub fn pass(&mut self) {
        self.0.iter_mut().for_each(|(_, left)| *left = left.saturating_sub(1));
    }

    /// Takes a frame that has waited for enough later ones.
    pub fn take(&mut self) -> Option<Ticket> {
        let index = self.0.iter().position(|(_, left)| *left == 0)?;
        Some(self.0.remove(index).0)
    }
}
