//! The pools of a buffer while its division changes, from the side of the thread that changes it.

use super::{BufferPlan, ExactPool, QueueReserves, Resize, SharedPool};
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
    #[must_use]
    pub fn shrink_towards(&self, plan: &BufferPlan) -> [Cells; 3] {
        let shrink = |pool: &dyn Resize, wanted: Cells, keep: Cells| {
            let beyond = pool.size().saturating_sub(wanted);
            beyond - pool.withhold(beyond, keep)
        };
        let [lossy, lossless] = &self.shared;
        [
            shrink(&**lossy, plan.lossy_shared, self.reserves.unused()),
            shrink(&**lossless, plan.lossless_shared, Cells(0)),
            shrink(&*self.headroom, plan.headroom, Cells(0)),
        ]
    }

    /// Gives the pools the sizes of `plan`. All that shrinks must have given up its cells.
    ///
    /// # Panics
    /// If a pool is larger than in `plan`.
    pub fn grow_to(&self, plan: &BufferPlan) {
        let grow = |pool: &dyn Resize, wanted: Cells| pool.restore(wanted - pool.size());
        let [lossy, lossless] = &self.shared;
        grow(&**lossy, plan.lossy_shared);
        grow(&**lossless, plan.lossless_shared);
        grow(&*self.headroom, plan.headroom);
    }
}
