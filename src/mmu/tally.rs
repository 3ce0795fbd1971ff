//! Tallies: what was admitted and what was released, as counters that only grow, each with one writer.
//!
//! The ingress owner of a group writes `admitted`; each lcore that owns egress ports writes its own `released`.
//! Occupancy is `admitted - sum of released`; whoever sees a release late over-estimates and so never over-admits.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::qos::CLASSES;
use crate::units::Cells;

/// Released cells of every ingress (port, priority group), by the lcore that released them.
#[derive(Debug)]
pub struct Tallies {
    /// Per lcore a block of its own cache lines, indexed by `port * CLASSES + group`.
    released: Box<[CachePadded<Box<[AtomicU64]>>]>,
}

impl Tallies {
    /// Zero for `lcores` times `ports`.
    #[must_use]
    pub fn new(lcores: usize, ports: usize) -> Self {
        let block = || CachePadded::new((0..ports * CLASSES).map(|_| AtomicU64::new(0)).collect());
        Self { released: (0..lcores).map(|_| block()).collect() }
    }

    /// Lcore `lcore` sent or dropped `cells` that were admitted at `port` and `group`. Only that lcore may say so:
    /// one writer, so a load and a store do, and no read-modify-write.
    #[inline]
    pub fn release(&self, lcore: usize, port: usize, group: usize, cells: Cells) {
        let tally = &self.released[lcore][port * CLASSES + group];
        tally.store(tally.load(Ordering::Relaxed) + u64::from(cells.0), Ordering::Release);
    }

    /// Cells of `port` and `group` released so far by all lcores.
    #[inline]
    #[must_use]
    pub fn released(&self, port: usize, group: usize) -> u64 {
        self.released.iter().map(|block| block[port * CLASSES + group].load(Ordering::Acquire)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_all_lcores_add_up() {
        let tallies = Tallies::new(2, 3);
        tallies.release(0, 2, 3, Cells(5));
        tallies.release(1, 2, 3, Cells(7));
        tallies.release(1, 2, 3, Cells(1));
        assert_eq!(tallies.released(2, 3), 13);
        assert_eq!(tallies.released(2, 4), 0);
    }
}
