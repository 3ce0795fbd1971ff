//! Guarantees of lossy egress queues: cells of the lossy pool that a queue can have whatever the others took.
//!
//! A queue with a guarantee that it does not use keeps the cells free: no frame beyond a guarantee is queued while the
//! pool has fewer than the guarantees still ask for. What another lcore's queues hold is seen a poll late; a frame that
//! slips in meanwhile is judged again at its queue.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::spec::SwitchSpec;
use crate::sets::CLASSES;
use crate::sync::{AtomicU32, Ordering};
use crate::units::Cells;

/// What each queue holds, and what each lcore's queues still may ask for; each value has one writer.
#[derive(Debug)]
struct Shared {
    /// Per port, on cache lines of its own since the next may be another lcore's, the cells in each queue; only those with
    /// a guarantee are kept up to date.
    depths: Box<[CachePadded<[AtomicU32; CLASSES]>]>,
    /// Per lcore, cells guaranteed to its queues and not in use.
    unused: Box<[CachePadded<AtomicU32>]>,
}

/// One lcore's view of them.
#[derive(Debug)]
pub(super) struct QueueGuarantees {
    lcore: usize,
    /// Cells guaranteed to each queue of a port; the same on every port.
    reserves: [u32; CLASSES],
    /// Queues that have one.
    guaranteed: u8,
    shared: Arc<Shared>,
}

impl QueueGuarantees {
    /// One for each lcore of `spec`.
    pub fn fleet(spec: &SwitchSpec) -> Vec<Self> {
        let reserves = spec.queues.map(|queue| queue.reserve.0);
        let guaranteed = (0..CLASSES).fold(0, |mask, queue| mask | u8::from(reserves[queue] > 0) << queue);
        let all: u32 = reserves.iter().sum();
        let unused = |lcore: u8| all * spec.ports.iter().filter(|port| port.lcore == lcore).count() as u32;
        let shared = Arc::new(Shared {
            depths: spec.ports.iter().map(|_| CachePadded::default()).collect(),
            unused: (0..spec.lcores).map(|lcore| CachePadded::new(AtomicU32::new(unused(lcore)))).collect(),
        });
        let view = |lcore| Self { lcore, reserves, guaranteed, shared: shared.clone() };
        (0..usize::from(spec.lcores)).map(view).collect()
    }

    /// Whether any queue has a guarantee.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.guaranteed != 0
    }

    /// Whether `queue` has a guarantee at all.
    #[inline]
    pub fn has(&self, queue: usize) -> bool {
        self.guaranteed >> (queue & 7) & 1 == 1
    }

    /// Whether `cells` more fit what `queue` of `port`, of whatever lcore, is guaranteed.
    pub fn covers(&self, port: usize, queue: usize, cells: Cells) -> bool {
        let depth = self.shared.depths[port][queue].load(Ordering::Relaxed);
        self.has(queue) && depth + cells.0 <= self.reserves[queue]
    }

    /// Cells of the pool that are kept for queues that do not use what they are guaranteed.
    #[inline]
    pub fn unused(&self) -> u32 {
        if self.guaranteed == 0 {
            return 0;
        }
        self.shared.unused.iter().map(|unused| unused.load(Ordering::Relaxed)).sum()
    }

    /// Of them, those for this lcore's queues.
    pub fn unused_here(&self) -> u32 {
        self.shared.unused[self.lcore].load(Ordering::Relaxed)
    }

    /// Cells in `queue` of `port` as lcores see them, if it has a guarantee.
    pub fn depth(&self, port: usize, queue: usize) -> u32 {
        self.shared.depths[port][queue].load(Ordering::Relaxed)
    }

    /// `queue` of `port`, one of this lcore's, held `before` cells and holds `after` now.
    #[inline]
    pub fn changed(&self, port: usize, queue: usize, before: u32, after: u32) {
        if !self.has(queue) {
            return;
        }
        let reserve = self.reserves[queue];
        let (freed, taken) = (before.min(reserve), after.min(reserve));
        let unused = &self.shared.unused[self.lcore];
        unused.store(unused.load(Ordering::Relaxed) + freed - taken, Ordering::Relaxed);
        self.shared.depths[port][queue].store(after, Ordering::Relaxed);
    }
}
