//! The headroom that all lossless groups of a switch share: one atomic, exact, no lease.
//!
//! Only packets after XOFF come here, so an atomic a packet is affordable, and a lease would be wrong: cells stranded
//! with one lcore would be a loss on another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::units::Cells;

/// Cells of headroom shared by all lossless groups on all lcores (SONiC's shared headroom pool).
#[derive(Debug)]
pub struct HeadroomPool {
    size: u32,
    /// Never above `size`.
    used: AtomicU32,
    highest: AtomicU32,
}

impl HeadroomPool {
    /// A pool of `size` cells, all free.
    #[must_use]
    pub fn new(size: Cells) -> Arc<Self> {
        Arc::new(Self { size: size.0, used: AtomicU32::new(0), highest: AtomicU32::new(0) })
    }

    /// Cells of the pool.
    #[must_use]
    pub fn size(&self) -> Cells {
        Cells(self.size)
    }

    /// Cells in use.
    #[must_use]
    pub fn used(&self) -> Cells {
        Cells(self.used.load(Ordering::Relaxed))
    }

    /// Most cells in use at once since the last reset.
    #[must_use]
    pub fn highest(&self) -> Cells {
        // A reset that crosses a take may store what was in use just before it.
        Cells(self.highest.load(Ordering::Relaxed)).max(self.used())
    }

    /// The watermark becomes what is in use now.
    pub fn reset_highest(&self) {
        self.highest.store(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Takes `cells` into use; false, and nothing taken, if the pool has not got them.
    /// Relaxed suffices: the count is all there is to agree on, no other memory hangs on it.
    #[must_use]
    pub fn take(&self, cells: Cells) -> bool {
        let after = |used: u32| used.checked_add(cells.0).filter(|&after| after <= self.size);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after) {
            Ok(before) => {
                self.highest.fetch_max(before + cells.0, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    /// Returns `cells` from use.
    pub fn give(&self, cells: Cells) {
        let before = self.used.fetch_sub(cells.0, Ordering::Relaxed);
        debug_assert!(before >= cells.0, "more headroom given back than was taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_to_the_last_cell_and_no_further() {
        let pool = HeadroomPool::new(Cells(10));
        assert!(pool.take(Cells(7)));
        assert!(!pool.take(Cells(4)), "a refused take takes nothing");
        assert!(!pool.take(Cells(u32::MAX)), "no overflow");
        assert!(pool.take(Cells(3)));
        assert_eq!((pool.used(), pool.highest(), pool.size()), (Cells(10), Cells(10), Cells(10)));
        pool.give(Cells(9));
        assert_eq!((pool.used(), pool.highest()), (Cells(1), Cells(10)));
        pool.reset_highest();
        assert_eq!(pool.highest(), Cells(1));
    }

    #[test]
    fn threads_never_take_more_than_there_is() {
        let pool = HeadroomPool::new(Cells(100));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if pool.take(Cells(30)) {
                            assert!(pool.used() <= pool.size());
                            pool.give(Cells(30));
                        }
                    }
                });
            }
        });
        assert_eq!(pool.used(), Cells(0));
        assert!(pool.highest() <= Cells(90));
    }
}
