//! Every atomic type of the library. `tests/loom` replaces them with the types of loom to test every interleaving.
//!
//! Loom models `mmu::{tally, pool, queue::reserves}`, `qos::joint_wire` and `dataplane::{handoff, history_ring,
//! mailbox, shutdown, fdb_clear, fdb_view, told}`, `dpdk::gate`. A model replaces `Arc` too where a module imports it
//! from here.
//! `tests/architecture` rejects an atomic from elsewhere.

pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// [`std::cell::UnsafeCell`] with the interface of loom: each access is a closure, so that loom detects overlapping
/// accesses.
#[derive(Debug)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell with `value`.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Passes the pointer to `read`. No thread may write to the cell during the call.
    #[inline]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Passes the pointer to `write`. No other thread may access the cell during the call.
    #[inline]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
