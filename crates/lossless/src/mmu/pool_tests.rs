//! Tests of `pool.rs`. They are in a file of their own because `tests/loom` includes that file and does not need them.

use super::{ExactPool, Lease, MAX_LEASE, SharedPool};
use crate::units::Cells;

#[test]
fn single_lease_counts_free_cells_exactly() {
    let pool = SharedPool::new(Cells(1000));
    let mut lease = Lease::new(pool.clone());
    for used in 0..1000 {
        assert_eq!(lease.free(), Cells(1000 - used));
        assert!(lease.take(Cells(1)));
    }
    assert!(!lease.take(Cells(1)));
    lease.give(Cells(1000));
    assert_eq!(lease.free(), Cells(1000));
    lease.flush();
    assert_eq!(pool.leased(), Cells(0));
}

/// Two leases of one pool, as those of lossy and lossless groups of a switch that decides as Reverie.
#[test]
fn exact_leases_of_one_pool_see_all_free_cells() {
    let pool = SharedPool::new(Cells(1000));
    let mut leases = [Lease::exact(pool.clone()), Lease::exact(pool.clone())];
    assert!(leases[0].take(Cells(400)) && leases[1].take(Cells(599)));
    assert_eq!((leases[0].free(), leases[1].free()), (Cells(1), Cells(1)));
    assert!(!leases[0].take(Cells(2)) && leases[0].take(Cells(1)));
    leases[0].give(Cells(301));
    assert_eq!((leases[1].free(), leases[0].spare(), pool.leased()), (Cells(301), Cells(0), Cells(699)));
    leases[1].trim();
    assert!(leases[1].is_flushed() && leases[1].take(Cells(301)));
    assert_eq!((leases[0].used(), leases[1].used(), leases[0].free()), (Cells(100), Cells(900), Cells(0)));
}

#[test]
fn refused_take_leaves_the_lease_unchanged() {
    let mut lease = Lease::new(SharedPool::new(Cells(10)));
    assert!(lease.take(Cells(4)));
    assert!(!lease.take(Cells(7)));
    assert_eq!(lease.free(), Cells(6));
    assert!(lease.take(Cells(6)));
}

#[test]
fn two_lcores_never_take_more_cells_than_the_pool_has() {
    let pool = SharedPool::new(Cells(100));
    let mut leases = [Lease::new(pool.clone()), Lease::new(pool.clone())];
    let mut used = 0;
    while leases[0].take(Cells(3)) || leases[1].take(Cells(3)) {
        used += 3;
        assert!(used <= 100 && pool.leased().0 <= 100);
    }
    assert!(used > 100 - 2 * 3 - 12, "stranded cells stay few when the pool runs low, used {used}");
}

#[test]
fn spare_cells_of_each_lease_stay_within_the_bound() {
    let pool = SharedPool::new(Cells(100_000));
    let mut leases: Vec<_> = (0..4).map(|_| Lease::new(pool.clone())).collect();
    for lease in &mut leases {
        for _ in 0..1000 {
            assert!(lease.take(Cells(3)));
            assert!(lease.spare().0 <= MAX_LEASE);
        }
        for _ in 0..1000 {
            lease.give(Cells(3));
            assert!(lease.spare().0 <= MAX_LEASE);
        }
    }
    assert!(pool.leased().0 <= 4 * MAX_LEASE);
}

#[test]
fn an_lcore_that_trims_leaves_a_low_pool_to_others() {
    let pool = SharedPool::new(Cells(10_000));
    let (mut idle, mut busy) = (Lease::new(pool.clone()), Lease::new(pool.clone()));
    assert!(idle.take(Cells(1)));
    assert!(idle.spare().0 > 100, "a lease from a full pool is large");
    while busy.take(Cells(1)) {
        idle.trim();
        assert!(idle.spare().0 <= (pool.size().0 - pool.leased().0) / 8, "at most two batches");
    }
    assert_eq!(busy.used().0, 10_000 - 1, "nothing is stranded in the end");
}

#[test]
fn lease_batches_shrink_as_the_pool_empties() {
    let pool = SharedPool::new(Cells(1600));
    let mut lease = Lease::new(pool.clone());
    let mut free = 1600;
    while lease.take(Cells(1)) {
        let leased = free - (1600 - pool.leased().0);
        assert!(leased <= 1.max(free / 16), "{leased} of {free}");
        free -= leased;
    }
    assert_eq!((free, lease.used()), (0, Cells(1600)));
    lease.give(Cells(1));
    assert!(lease.is_flushed(), "an empty pool gets its cells back at once");
}

#[test]
fn flushed_lease_keeps_only_its_used_cells() {
    let pool = SharedPool::new(Cells(10_000));
    let mut lease = Lease::new(pool.clone());
    assert!(lease.is_flushed());
    assert!(lease.take(Cells(5)));
    assert!(!lease.is_flushed());
    lease.flush();
    assert!(lease.is_flushed());
    assert_eq!(pool.leased(), lease.used());
}

#[test]
fn an_exact_pool_gives_its_last_cell_and_no_more() {
    let pool = ExactPool::new(Cells(10));
    assert!(pool.take(Cells(7)));
    assert!(!pool.take(Cells(4)));
    assert!(pool.take(Cells(3)));
    assert!(pool.take(Cells(0)));
    assert!(!pool.take(Cells(u32::MAX)));
    assert_eq!((pool.used(), pool.free()), (Cells(10), Cells(0)));
    pool.give(Cells(10));
    assert_eq!((pool.used(), pool.free()), (Cells(0), Cells(10)));
}

#[test]
fn watermark_reset_starts_from_the_cells_in_use() {
    let pool = ExactPool::new(Cells(10));
    assert!(pool.take(Cells(8)));
    pool.give(Cells(6));
    assert_eq!(pool.highest(), Cells(8));
    pool.reset_highest();
    assert_eq!(pool.highest(), Cells(2));
    assert!(pool.take(Cells(1)));
    assert_eq!(pool.highest(), Cells(3));
}
