//! The shared pool: one atomic for the whole switch, from which each lcore leases cells in batches.
//!
//! A lease can strand up to [`MAX_LEASE`] cells with an lcore; the batch shrinks as the pool empties, and the pool can
//! never go below zero. Seen from an lcore its own lease counts as free, so with one lcore every figure is exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::units::Cells;

/// Most cells an lcore keeps leased without using them.
pub const MAX_LEASE: u32 = 256;

/// The part of what is free that one lease may take.
const LEASE_SHARE: u32 = 16;

/// Cells shared by all groups of one kind (lossless or lossy), on all lcores.
#[derive(Debug)]
pub struct SharedPool {
    size: u32,
    /// Cells leased to lcores, used or not. Never above `size`.
    leased: AtomicU32,
}

impl SharedPool {
    /// A pool of `size` cells, all free.
    #[must_use]
    pub fn new(size: Cells) -> Arc<Self> {
        Arc::new(Self { size: size.0, leased: AtomicU32::new(0) })
    }

    /// Cells of the pool.
    #[must_use]
    pub fn size(&self) -> Cells {
        Cells(self.size)
    }

    /// Cells leased to lcores: at least the cells in use, at most [`MAX_LEASE`] an lcore more.
    #[must_use]
    pub fn leased(&self) -> Cells {
        Cells(self.leased.load(Ordering::Relaxed))
    }

    /// Leases between `least` and `most` cells; none if fewer than `least` are free.
    /// Relaxed suffices: the count is all there is to agree on, no other memory hangs on it.
    fn lease(&self, least: u32, most: u32) -> Option<u32> {
        let mut leased = self.leased.load(Ordering::Relaxed);
        loop {
            let free = self.size - leased;
            if free < least {
                return None;
            }
            let take = most.min(free / LEASE_SHARE).max(least);
            match self.leased.compare_exchange_weak(leased, leased + take, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(take),
                Err(now) => leased = now,
            }
        }
    }

    fn give_back(&self, cells: u32) {
        let before = self.leased.fetch_sub(cells, Ordering::Relaxed);
        debug_assert!(before >= cells, "more cells given back than were leased");
    }
}

/// An lcore's hand in a [`SharedPool`]: plain memory of that lcore beside the one atomic.
#[derive(Debug)]
pub struct Lease {
    pool: Arc<SharedPool>,
    /// Cells leased and not in use.
    spare: u32,
    used: u32,
    used_highest: u32,
}

impl Lease {
    /// A hand that holds nothing yet.
    #[must_use]
    pub fn new(pool: Arc<SharedPool>) -> Self {
        Self { pool, spare: 0, used: 0, used_highest: 0 }
    }

    /// Cells this lcore can still use, its own lease included: what the Dynamic Threshold multiplies.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Cells {
        Cells(self.pool.size - self.pool.leased().0 + self.spare)
    }

    /// Cells this lcore has in use.
    #[inline]
    #[must_use]
    pub fn used(&self) -> Cells {
        Cells(self.used)
    }

    /// Most cells it ever had in use.
    #[must_use]
    pub fn used_highest(&self) -> Cells {
        Cells(self.used_highest)
    }

    /// Takes `cells` into use; false, and nothing taken, if the pool has not got them.
    #[inline]
    #[must_use]
    pub fn take(&mut self, cells: Cells) -> bool {
        if cells.0 > self.spare && !self.refill(cells.0 - self.spare) {
            return false;
        }
        self.spare -= cells.0;
        self.used += cells.0;
        self.used_highest = self.used_highest.max(self.used);
        true
    }

    /// Out of line: once in many packets.
    #[cold]
    fn refill(&mut self, missing: u32) -> bool {
        let lease = self.pool.lease(missing, MAX_LEASE / 2);
        self.spare += lease.unwrap_or(0);
        lease.is_some()
    }

    /// Returns `cells` from use; the surplus goes back to the pool.
    #[inline]
    pub fn give(&mut self, cells: Cells) {
        debug_assert!(cells.0 <= self.used, "more cells given back than were taken");
        self.used -= cells.0;
        self.spare += cells.0;
        if self.spare > MAX_LEASE {
            self.pool.give_back(self.spare - MAX_LEASE / 2);
            self.spare = MAX_LEASE / 2;
        }
    }

    /// Returns what is leased and unused, so that none is stranded with an lcore that rests.
    pub fn flush(&mut self) {
        if self.spare > 0 {
            self.pool.give_back(std::mem::take(&mut self.spare));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lcore_sees_exact_figures() {
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

    #[test]
    fn a_refused_take_takes_nothing() {
        let mut lease = Lease::new(SharedPool::new(Cells(10)));
        assert!(lease.take(Cells(4)));
        assert!(!lease.take(Cells(7)));
        assert_eq!(lease.free(), Cells(6));
        assert!(lease.take(Cells(6)));
    }

    #[test]
    fn two_lcores_never_take_more_than_there_is() {
        let pool = SharedPool::new(Cells(100));
        let mut leases = [Lease::new(pool.clone()), Lease::new(pool.clone())];
        let mut used = 0;
        while leases[0].take(Cells(3)) || leases[1].take(Cells(3)) {
            used += 3;
            assert!(used <= 100 && pool.leased().0 <= 100);
        }
        assert!(used > 100 - 2 * 3 - 12, "stranded cells stay few when the pool runs low, used {used}");
    }
}
