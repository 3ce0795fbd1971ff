//! Cells of the buffer that a reload gives to other parts, while frames still hold them.

use std::sync::{PoisonError, RwLock};

use crate::mmu::PendingBuffer;

/// The parts that are still larger than configured, written by the control thread; `None`: the buffer is divided as
/// configured.
#[derive(Debug, Default)]
pub struct PendingCell(RwLock<Option<PendingBuffer>>);

impl PendingCell {
    /// Parts that are still larger than configured.
    #[must_use]
    pub fn get(&self) -> Option<PendingBuffer> {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces them.
    pub fn set(&self, pending: Option<PendingBuffer>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = pending;
    }
}
