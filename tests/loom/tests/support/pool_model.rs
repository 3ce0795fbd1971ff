//! Model of pools from which two or three lcores take cells, and to which they return them, concurrently.
//!
//! The cells in use are also counted beside the pool, with std's atomics. loom does not reorder those, so this count is
//! exact.

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU32, Ordering};

use loom::thread;

use crate::pool::{ExactPool, Lease, MAX_LEASE, SharedPool};
use crate::units::Cells;

/// The exact count of cells in use. It must never exceed `size`.
struct Truth {
    size: u32,
    used: AtomicU32,
}

impl Truth {
    fn new(size: u32) -> StdArc<Self> {
        StdArc::new(Self { size, used: AtomicU32::new(0) })
    }

    fn taken(&self, cells: u32) {
        let used = self.used.fetch_add(cells, Ordering::SeqCst) + cells;
        assert!(used <= self.size, "{used} cells are in use of {}", self.size);
    }

    /// Subtracts cells. Called before the cells are returned to the pool.
    fn giving(&self, cells: u32) {
        self.used.fetch_sub(cells, Ordering::SeqCst);
    }

    fn used(&self) -> u32 {
        self.used.load(Ordering::SeqCst)
    }
}

/// A lease, with the exact count for comparison.
struct Lcore {
    lease: Lease,
    truth: StdArc<Truth>,
}

impl Lcore {
    fn take(&mut self, cells: u32) -> bool {
        let taken = self.lease.take(Cells(cells));
        if taken {
            self.truth.taken(cells);
        }
        self.check();
        taken
    }

    fn give(&mut self, cells: u32) {
        self.truth.giving(cells);
        self.lease.give(Cells(cells));
        self.check();
    }

    fn check(&self) {
        assert!(self.lease.spare().0 <= MAX_LEASE, "an lcore strands more than its bound");
        let most = self.truth.size;
        assert!(self.lease.free().0 + self.lease.used().0 <= most, "more is free than is not in use");
    }
}

/// Runs `scripts` concurrently on a pool of `size` cells, and checks the accounts when all have ended.
fn leases_of<const LCORES: usize>(size: u32, start: fn(), scripts: [fn(&mut Lcore); LCORES]) {
    let (pool, truth) = (SharedPool::new(Cells(size)), Truth::new(size));
    let threads = scripts.map(|script| {
        let mut lcore = Lcore { lease: Lease::new(pool.clone()), truth: truth.clone() };
        thread::spawn(move || {
            start();
            script(&mut lcore);
            lcore
        })
    });
    let mut lcores = threads.map(|thread| thread.join().unwrap());
    let used: u32 = lcores.iter().map(|lcore| lcore.lease.used().0).sum();
    let spare: u32 = lcores.iter().map(|lcore| lcore.lease.spare().0).sum();
    assert_eq!((used, pool.leased().0), (truth.used(), used + spare), "the accounts are wrong");
    let reachable = (size - used).saturating_sub((LCORES as u32 - 1) * MAX_LEASE);
    assert!(lcores[0].take(reachable), "more is stranded than the bound");
    lcores[0].give(reachable);
    for lcore in &mut lcores {
        lcore.lease.flush();
        assert!(lcore.lease.is_flushed());
    }
    assert_eq!(pool.leased().0, used, "a flushed lease strands cells");
}

/// Three lcores take more cells than the pool has.
pub fn pool_never_grants_three_leases_more_than_it_has(start: fn()) {
    let script: fn(&mut Lcore) = |lcore| {
        if lcore.take(4) {
            lcore.give(1);
        }
        lcore.lease.flush();
    };
    leases_of(10, start, [script; 3]);
}

/// Two lcores use batches: each takes, returns and trims, and ends with cells in use and spare cells.
pub fn leases_in_batches_return_their_spare_cells(start: fn()) {
    let script: fn(&mut Lcore) = |lcore| {
        assert!(lcore.take(300));
        assert!(lcore.take(1));
        lcore.give(290);
        lcore.lease.trim();
    };
    leases_of(1000, start, [script; 2]);
}

/// Three lcores take more cells than an exact pool has.
pub fn exact_pool_never_grants_three_lcores_more_than_it_has(start: fn()) {
    let (pool, truth) = (ExactPool::new(Cells(10)), Truth::new(10));
    let threads = [6, 5, 4].map(|cells| {
        let (pool, truth) = (pool.clone(), truth.clone());
        thread::spawn(move || {
            start();
            if pool.take(Cells(cells)) {
                truth.taken(cells);
                truth.giving(2);
                pool.give(Cells(2));
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(pool.used().0, truth.used(), "the accounts are wrong");
    assert!(pool.highest() >= pool.used() && pool.highest() <= pool.size());
}

/// A pool shrinks and grows while two lcores take cells of it: cells that it does not have are in nobody's use.
pub fn withheld_cells_are_not_granted(start: fn()) {
    let (pool, truth) = (SharedPool::with_room(Cells(6), Cells(8)), Truth::new(8));
    // Two are withheld from the beginning.
    truth.taken(2);
    let lcores = [5, 4].map(|cells| {
        let mut lcore = Lcore { lease: Lease::new(pool.clone()), truth: truth.clone() };
        thread::spawn(move || {
            start();
            if lcore.take(cells) {
                lcore.give(cells);
            }
            lcore.lease.flush();
        })
    });
    start();
    let withheld = pool.withhold(Cells(6), Cells(1));
    truth.taken(withheld.0);
    assert_eq!(pool.size(), Cells(6 - withheld.0), "the accounts are wrong");
    truth.giving(2 + withheld.0);
    pool.restore(Cells(2 + withheld.0));
    for lcore in lcores {
        lcore.join().unwrap();
    }
    assert_eq!((pool.size(), pool.leased()), (Cells(8), Cells(0)), "the accounts are wrong");
}

/// Another thread restarts the watermark while two lcores take cells: it is never below the cells in use.
pub fn restarted_watermark_is_never_below_the_cells_in_use(starts: [fn(); 2]) {
    let pool = ExactPool::new(Cells(10));
    let mut threads = Vec::new();
    for cells in [3, 4] {
        let pool = pool.clone();
        threads.push(thread::spawn(move || {
            starts[0]();
            assert!(pool.take(Cells(cells)));
        }));
    }
    let seen = pool.clone();
    threads.push(thread::spawn(move || {
        starts[1]();
        seen.reset_highest();
    }));
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!((pool.used(), pool.highest()), (Cells(7), Cells(7)), "the watermark lost what is in use");
}
