//! The pools of a buffer while its division changes, from the side of the thread that changes it.

use super::{BufferPlan, ExactPool, QueueReserves, SharedPool};
use crate::sets::PortSet;
use crate::sync::Arc;
use crate::units::Cells;

/// Parts of the buffer that are larger than planned, because frames hold their cells.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PendingBuffer {
    /// Cells that pools must give up: lossy, lossless, headroom.
    pub pools: [Cells; 3],
    /// Ports with reserves or headroom that must shrink.
    pub ports: PortSet,
}

/// The pools that the lcores share.
#[derive(Debug, Clone)]
pub struct BufferPools {
    /// The lossy and the lossless pool, indexed by `lossless as usize`.
    pub shared: [Arc<SharedPool>; 2],
    /// The headroom pool; used with [`crate::mmu::HeadroomPolicy::SharedPool`] only.
    pub headroom: Arc<ExactPool>,
    /// The reserves of queues, for which cells of the lossy pool stay free.
    pub reserves: QueueReserves,
}

impl BufferPools {
    /// Takes cells from the pools that `plan` makes smaller, as far as they are free. Returns the cells that they must
    /// still give up: lossy, lossless, headroom. One thread calls this and [`grow_to`](Self::grow_to).
    ///
    /// The headroom pool shrinks only once `etas_are_small`: until then a group that is XOFF may claim what its former
    /// eta has promised.
    #[must_use]
    pub fn shrink_towards(&self, plan: &BufferPlan, etas_are_small: bool) -> [Cells; 3] {
        let [lossy, lossless] = &self.shared;
        let headroom = self.headroom.size().saturating_sub(plan.headroom);
        let withheld = if etas_are_small { self.headroom.withhold(headroom, Cells(0)) } else { Cells(0) };
        let shared = lossless.size().saturating_sub(plan.lossless_shared);
        [
            self.shrink_lossy(lossy.size().saturating_sub(plan.lossy_shared)),
            shared - lossless.withhold(shared, Cells(0)),
            headroom - withheld,
        ]
    }

    /// Makes the lossy pool smaller by up to `beyond`, and leaves free what queues below their reserve may need.
    /// Returns the cells that it must still give up.
    fn shrink_lossy(&self, beyond: Cells) -> Cells {
        let lossy = &self.shared[0];
        let withheld = lossy.withhold(beyond, self.reserves.unused());
        // Frames that have left a queue meanwhile leave a promise behind.
        let missing = self.reserves.unused().saturating_sub(lossy.free()).min(withheld);
        lossy.restore(missing);
        beyond - withheld + missing
    }

    /// Gives the pools the sizes of `plan`. All that shrinks must have given up its cells.
    ///
    /// # Panics
    /// If a pool is larger than in `plan`.
    pub fn grow_to(&self, plan: &BufferPlan) {
        let [lossy, lossless] = &self.shared;
        lossy.restore(plan.lossy_shared - lossy.size());
        lossless.restore(plan.lossless_shared - lossless.size());
        self.headroom.restore(plan.headroom - self.headroom.size());
    }
}
