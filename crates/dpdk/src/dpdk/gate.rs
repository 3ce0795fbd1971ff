//! The gate in front of a driver: an lcore is inside during a call, and the control side can close it.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, Ordering};

/// An lcore is in the driver.
const INSIDE: u32 = 1;
/// No lcore may enter.
const CLOSED: u32 = 2;

/// A gate with one lcore that enters. The lcore never waits: it does without the call while the gate is closed.
#[derive(Debug)]
pub(super) struct Gate(CachePadded<AtomicU32>);

impl Gate {
    pub fn new(is_closed: bool) -> Self {
        Self(CachePadded::new(AtomicU32::new(if is_closed { CLOSED } else { 0 })))
    }

    /// Enters, unless the gate is closed. Each success must be followed by [`Gate::leave`].
    #[inline]
    pub fn enter(&self) -> bool {
        // Acquire: the lcore sees what the closer wrote before it opened the gate.
        self.0.compare_exchange(0, INSIDE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Leaves.
    #[inline]
    pub fn leave(&self) {
        // Release: the closer sees the end of all that the lcore did inside.
        self.0.fetch_and(!INSIDE, Ordering::Release);
    }

    /// Closes the gate, and calls `wait` until the lcore is outside.
    pub fn close(&self, mut wait: impl FnMut()) {
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
        while self.0.load(Ordering::Acquire) & INSIDE != 0 {
            wait();
        }
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.0.fetch_and(!CLOSED, Ordering::Release);
    }
}
