//! Every atomic type of the library, in one place: `tests/loom` replaces them with loom's to try every interleaving.
//!
//! `mmu::tally`, `mmu::pool`, `dataplane::handoff` and `dataplane::history_ring` are modelled so, and take `Arc` from here too. Other
//! modules import only atomics. `tests/architecture.rs` finds an atomic that comes from elsewhere.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(feature = "dpdk")]
pub(crate) use std::sync::atomic::{AtomicI32, AtomicPtr};

/// [`std::cell::UnsafeCell`] with loom's face: access has a beginning and an end, so that loom can see two overlap.
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Gives `read` the pointer to read through; nobody may write meanwhile.
    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Gives `write` the pointer to write through; nobody else may touch the cell meanwhile.
    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
