//! The buffer as one lcore sees it: the shared pools, what queues have reserved, and the releases of all lcores.

use std::sync::Arc;

use super::guarantee::QueueGuarantees;
use super::spec::SwitchSpec;
use crate::mmu::{ExactPool, Lease, Pools, SharedPool, Tallies, TallyWriter};
use crate::sets::PortSet;
use crate::units::CellSize;

/// One lcore's part in the shared buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    pub cell: CellSize,
    /// This lcore's leases of the pools.
    pub pools: Pools,
    pub guarantees: QueueGuarantees,
    /// Cells that have left the switch, by the lcore that sent them.
    pub tallies: Arc<Tallies>,
    /// This lcore's part of the tallies.
    pub releases: TallyWriter,
    /// Ports with groups that hold cells.
    pub holding: PortSet,
}

impl Buffer {
    /// The part of `lcore` in the buffer of `spec`, whose pools and tallies all lcores share.
    pub fn new(
        spec: &SwitchSpec,
        pools: &[Arc<SharedPool>; 2],
        headroom: &Arc<ExactPool>,
        guarantees: QueueGuarantees,
        tallies: Arc<Tallies>,
        lcore: usize,
    ) -> Self {
        Self {
            cell: CellSize::new(spec.buffer.cell),
            pools: Pools { shared: pools.each_ref().map(|pool| Lease::new(pool.clone())), headroom: headroom.clone() },
            guarantees,
            releases: tallies.writer(lcore),
            tallies,
            holding: PortSet::EMPTY,
        }
    }
}
