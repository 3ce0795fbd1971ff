//! The hand-over of one value at a time from the control thread to an lcore, and of its memory back.
//!
//! The lcore neither allocates nor frees: it reads the value, and returns the box. The rings order the writes of both
//! sides.

use super::ring::{Consumer, Producer, ring};

/// The control thread's end.
pub struct Sender<T> {
    given: Producer<Box<T>>,
    back: Consumer<Box<T>>,
    is_underway: bool,
}

/// An lcore's end.
pub struct Receiver<T> {
    given: Consumer<Box<T>>,
    back: Producer<Box<T>>,
}

/// A mailbox for one value at a time.
#[must_use]
pub fn mailbox<T>() -> (Sender<T>, Receiver<T>) {
    let ((given, taken), (back, returned)) = (ring(1), ring(1));
    (Sender { given, back: returned, is_underway: false }, Receiver { given: taken, back })
}

impl<T> Sender<T> {
    /// Sends a value.
    ///
    /// # Errors
    /// The value, while the lcore has not returned the one before.
    pub fn send(&mut self, value: Box<T>) -> Result<(), Box<T>> {
        if !self.is_idle() {
            return Err(value);
        }
        self.given.push(value)?;
        self.given.publish();
        self.is_underway = true;
        Ok(())
    }

    /// Whether the lcore has applied every value that was sent.
    pub fn is_idle(&mut self) -> bool {
        drop(self.returned());
        !self.is_underway
    }

    /// The value that was sent, with what the lcore has left in it; `None` until it has applied the value, and once it
    /// was fetched.
    pub fn returned(&mut self) -> Option<Box<T>> {
        if !self.is_underway || self.back.refresh() == 0 {
            return None;
        }
        let value = self.back.pop();
        self.back.release();
        self.is_underway = false;
        value
    }
}

impl<T> Receiver<T> {
    /// Applies the value that was sent, if there is one, and returns its memory.
    #[inline]
    pub fn receive(&mut self, apply: impl FnOnce(&mut T)) {
        if self.given.refresh() > 0 {
            self.take(apply);
        }
    }

    #[cold]
    fn take(&mut self, apply: impl FnOnce(&mut T)) {
        let Some(mut value) = self.given.pop() else { return };
        self.given.release();
        apply(&mut value);
        // There is room: the sender sends one value at a time.
        let _ = self.back.push(value);
        self.back.publish();
    }
}
