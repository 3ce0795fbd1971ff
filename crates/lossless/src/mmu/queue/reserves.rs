//! Reserves of lossy egress queues: cells of the lossy pool that a queue can use regardless of other traffic.
//!
//! A queue that does not use its reserve keeps the cells free: no frame beyond a reserve is enqueued while the pool has
//! fewer free cells than the unused reserves. The depths of another lcore's queues are visible a poll late. A frame
//! that is admitted too early for that reason is judged again at its queue.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sets::{CLASSES, ClassSet};
use crate::sync::{AtomicU32, Ordering};
use crate::units::Cells;

/// The depths of the queues and the unused reserves of the lcores. Each value has one writer.
#[derive(Debug)]
struct Shared {
    /// Cells in each queue, by port; maintained only for queues with a reserve. Padded, because ports have different
    /// writers.
    depths: Box<[CachePadded<[AtomicU32; CLASSES]>]>,
    /// Cells that are reserved for an lcore's queues and not in use, by lcore.
    unused: Box<[CachePadded<AtomicU32>]>,
}

/// One lcore's view of the queue reserves.
#[derive(Debug, Clone)]
pub struct QueueReserves {
    lcore: usize,
    /// Cells reserved for each queue of a port; equal on every port.
    reserves: [Cells; CLASSES],
    /// Queues with a reserve.
    reserved: ClassSet,
    shared: Arc<Shared>,
}

impl QueueReserves {
    /// Creates the views of `lcores` lcores, with `reserves` for the queues of each port. `owners` has each port's
    /// lcore.
    #[must_use]
    pub fn fleet(reserves: [Cells; CLASSES], owners: &[u8], lcores: u8) -> Vec<Self> {
        let reserved = (0..CLASSES).filter(|&queue| reserves[queue] > Cells(0)).collect();
        let all: u32 = reserves.iter().map(|reserve| reserve.0).sum();
        let unused = |lcore: u8| all * owners.iter().filter(|&&owner| owner == lcore).count() as u32;
        let shared = Arc::new(Shared {
            depths: owners.iter().map(|_| CachePadded::default()).collect(),
            unused: (0..lcores).map(|lcore| CachePadded::new(AtomicU32::new(unused(lcore)))).collect(),
        });
        let view = |lcore| Self { lcore, reserves, reserved, shared: shared.clone() };
        (0..usize::from(lcores)).map(view).collect()
    }

    /// Whether no queue has a reserve.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reserved.is_empty()
    }

    /// Whether `cells` more fit the reserve of `queue` at `port`; the port may belong to any lcore.
    #[must_use]
    pub fn covers(&self, port: usize, queue: usize, cells: Cells) -> bool {
        let depth = self.shared.depths[port][queue].load(Ordering::Relaxed);
        self.reserved.contains(queue) && depth + cells.0 <= self.reserves[queue].0
    }

    /// Whether a frame of `cells`, already charged to the lossy pool, may go to `queue` at `port` of another lcore
    /// while the pool has `free` cells. It may not use cells that are reserved for queues: they would be missing while
    /// the frame is in the ring.
    #[inline]
    #[must_use]
    pub fn may_cross(&self, port: usize, queue: usize, cells: Cells, free: Cells) -> bool {
        let unused = self.unused();
        unused.0 == 0 || free >= unused || self.covers(port, queue, cells)
    }

    /// Cells of the lossy pool that stay free for queues below their reserve.
    #[inline]
    #[must_use]
    pub fn unused(&self) -> Cells {
        if self.is_empty() {
            return Cells(0);
        }
        Cells(self.shared.unused.iter().map(|unused| unused.load(Ordering::Relaxed)).sum())
    }

    /// The part of [`QueueReserves::unused`] that belongs to this lcore's queues.
    #[must_use]
    pub fn unused_here(&self) -> Cells {
        Cells(self.shared.unused[self.lcore].load(Ordering::Relaxed))
    }

    /// Cells in `queue` of `port` as all lcores see them; maintained only for queues with a reserve.
    #[must_use]
    pub fn depth(&self, port: usize, queue: usize) -> Cells {
        Cells(self.shared.depths[port][queue].load(Ordering::Relaxed))
    }

    /// Publishes that `queue` of `port`, owned by this lcore, went from `before` to `after`.
    #[inline]
    pub fn update(&self, port: usize, queue: usize, before: Cells, after: Cells) {
        if !self.reserved.contains(queue & 7) {
            return;
        }
        let reserve = self.reserves[queue];
        let (freed, taken) = (before.min(reserve), after.min(reserve));
        let unused = &self.shared.unused[self.lcore];
        unused.store(unused.load(Ordering::Relaxed) + freed.0 - taken.0, Ordering::Relaxed);
        self.shared.depths[port][queue].store(after.0, Ordering::Relaxed);
    }
}
