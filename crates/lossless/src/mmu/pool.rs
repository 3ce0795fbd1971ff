//! Pools: cells that all lcores share. One atomic counts each pool for the whole switch.
//!
//! [`SharedPool`] is leased in batches, so that an lcore accesses the atomic once in many packets. The price: an lcore
//! may hold leased cells that it does not use. The following holds with any number of lcores:
//!
//! - `used <= leased <= size`. A lease is taken by compare-and-exchange, so the pool never goes below zero. Only leased
//!   cells are given back, so it never rises above its size.
//! - The other lcores strand at most `(lcores - 1) * MAX_LEASE` cells. An lcore counts its own lease as free, so with
//!   one lcore every figure is exact.
//! - A batch is 1/16 of the free cells. An lcore keeps at most two batches, by the pool's level when it last read it. A
//!   pool that runs low therefore strands few cells. A pool with fewer than 16 free cells strands none with an lcore
//!   that calls [`Lease::trim`] once a poll.
//!
//! [`Lease::exact`] keeps no cells for later, so that two leases of one lcore can share a pool. Only simulated switches
//! use it.
//!
//! [`ExactPool`] is for headroom, where a stranded cell would be a lost frame: each take or give is one atomic access,
//! and there is no lease.
//!
//! Relaxed ordering suffices in both: the count is the only shared state, and no other memory depends on it. A late
//! read makes a threshold late by a burst, but never gives out a cell twice.

use crossbeam_utils::CachePadded;

use crate::sync::{Arc, AtomicU32, Ordering};
use crate::units::Cells;

/// The most cells that an lcore keeps leased without use.
pub const MAX_LEASE: u32 = 256;

/// Divisor of the free cells: one lease may take this part of them.
const LEASE_SHARE: u32 = 16;

/// Cells of one lease, at most `most`, while the pool has `free` free cells.
const fn batch(free: u32, most: u32) -> u32 {
    let share = free / LEASE_SHARE;
    if share < most { share } else { most }
}

/// Takes `least` cells, or `batch` of the free cells if that is more, from a pool of `size` whose `count` cells are
/// taken. Returns the cells taken now and all taken cells; `None` if fewer than `least` are free.
fn take_from(count: &AtomicU32, size: u32, least: u32, batch: impl Fn(u32) -> u32) -> Option<(u32, u32)> {
    let mut taken = count.load(Ordering::Relaxed);
    loop {
        let free = size - taken;
        if free < least {
            return None;
        }
        let take = batch(free).max(least);
        match count.compare_exchange_weak(taken, taken + take, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some((take, taken + take)),
            Err(now) => taken = now,
        }
    }
}

/// Gives `cells` back to the pool whose taken cells are in `count`.
fn give_to(count: &AtomicU32, cells: u32) {
    let before = count.fetch_sub(cells, Ordering::Relaxed);
    debug_assert!(before >= cells, "more cells returned than taken");
}

/// Cells shared by all groups of one kind (lossless or lossy), on all lcores.
#[derive(Debug)]
pub struct SharedPool {
    size: u32,
    /// Cells leased to lcores, used or not. Never above `size`.
    leased: CachePadded<AtomicU32>,
}

impl SharedPool {
    /// A pool of `size` cells, all free.
    #[must_use]
    pub fn new(size: Cells) -> Arc<Self> {
        Arc::new(Self { size: size.0, leased: CachePadded::new(AtomicU32::new(0)) })
    }

    /// Size of the pool in cells.
    #[must_use]
    pub fn size(&self) -> Cells {
        Cells(self.size)
    }

    /// Cells leased to lcores: at least the cells in use, and at most [`MAX_LEASE`] more per lcore.
    #[inline]
    #[must_use]
    pub fn leased(&self) -> Cells {
        Cells(self.leased.load(Ordering::Relaxed))
    }

    #[inline]
    fn free(&self) -> u32 {
        self.size - self.leased().0
    }
}

/// An lcore's lease from a [`SharedPool`]: plain memory of that lcore beside the one atomic.
#[derive(Debug)]
pub struct Lease {
    pool: Arc<SharedPool>,
    /// The most cells of one batch; zero for an exact lease.
    most: u32,
    /// Cells that are leased and not in use.
    spare: u32,
    /// The most spare cells to keep: two batches, by the pool's level when it was last read.
    keep: u32,
    used: u32,
    used_highest: u32,
}

impl Lease {
    /// Creates a lease of no cells.
    #[must_use]
    pub fn new(pool: Arc<SharedPool>) -> Self {
        Self { pool, most: MAX_LEASE / 2, spare: 0, keep: 0, used: 0, used_highest: 0 }
    }

    /// Creates a lease that has no spare cells between two calls: all cells that are not in use are free for other
    /// leases.
    #[must_use]
    pub fn exact(pool: Arc<SharedPool>) -> Self {
        Self { most: 0, ..Self::new(pool) }
    }

    /// Cells that this lcore can still use, including its own spare cells. The Dynamic Threshold multiplies this
    /// figure.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Cells {
        Cells(self.pool.free() + self.spare)
    }

    /// The pool that the cells are leased from.
    #[must_use]
    pub fn pool(&self) -> &SharedPool {
        &self.pool
    }

    /// Cells that this lcore uses.
    #[inline]
    #[must_use]
    pub fn used(&self) -> Cells {
        Cells(self.used)
    }

    /// The most cells of the pool in use, as of any take by this lcore. With one lcore it is exact. With more it is too
    /// high by at most the other lcores' spare cells.
    #[must_use]
    pub fn used_highest(&self) -> Cells {
        Cells(self.used_highest)
    }

    /// Sets the watermark to the cells in use now.
    pub fn clear_watermark(&mut self) {
        self.used_highest = self.pool.leased().0 - self.spare;
    }

    /// Sets the watermark to `highest`, or to the cells in use now if that is more.
    pub(super) fn set_watermark(&mut self, highest: Cells) {
        self.used_highest = highest.0.max(self.pool.leased().0 - self.spare);
    }

    /// Cells that this lcore has leased and does not use: stranded for the other lcores.
    #[inline]
    #[must_use]
    pub fn spare(&self) -> Cells {
        Cells(self.spare)
    }

    /// Takes `cells` into use. Returns false, and takes nothing, if the pool has too few cells.
    #[inline]
    #[must_use]
    pub fn take(&mut self, cells: Cells) -> bool {
        if cells.0 > self.spare && !self.refill(cells.0 - self.spare) {
            return false;
        }
        self.spare -= cells.0;
        self.used += cells.0;
        self.used_highest = self.used_highest.max(self.pool.leased().0 - self.spare);
        true
    }

    /// Leases at least `missing` more cells. Out of line: runs once in many packets.
    #[cold]
    fn refill(&mut self, missing: u32) -> bool {
        let Some((lease, leased)) =
            take_from(&self.pool.leased, self.pool.size, missing, |free| batch(free, self.most))
        else {
            return false;
        };
        self.spare += lease;
        self.keep = 2 * batch(self.pool.size - leased, self.most);
        true
    }

    /// Returns `cells` from use; surplus cells go back to the pool.
    #[inline]
    pub fn give(&mut self, cells: Cells) {
        debug_assert!(cells.0 <= self.used, "more cells returned than taken");
        self.used -= cells.0;
        self.spare += cells.0;
        if self.spare > self.keep {
            self.trim();
        }
    }

    /// Reads the pool's level, and returns all spare cells but a batch if more than two batches are spare. Call it once
    /// a poll: otherwise an lcore that neither takes nor gives does not notice that the pool runs low. It makes no
    /// access if nothing is spare, and one load if the spare cells are within the limit.
    #[inline]
    pub fn trim(&mut self) {
        if self.spare == 0 {
            return;
        }
        let batch = batch(self.pool.free(), self.most);
        self.keep = 2 * batch;
        if self.spare > self.keep {
            give_to(&self.pool.leased, self.spare - batch);
            self.spare = batch;
        }
    }

    /// Whether no cell is leased beyond those in use: [`flush`](Self::flush) would do nothing.
    #[inline]
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.spare == 0
    }

    /// Returns all leased cells that are not in use, so that an idle lcore strands none. It touches no shared memory if
    /// there are none, so an idle lcore may call it at each poll.
    #[inline]
    pub fn flush(&mut self) {
        if !self.is_flushed() {
            give_to(&self.pool.leased, std::mem::take(&mut self.spare));
        }
    }
}

/// Cells that all lcores share exactly: every take and give is visible to all at once.
#[derive(Debug)]
pub struct ExactPool {
    size: u32,
    /// Both counts in one cache line, because every take accesses both.
    counts: CachePadded<ExactCounts>,
}

#[derive(Debug)]
struct ExactCounts {
    /// Never above `size`.
    used: AtomicU32,
    highest: AtomicU32,
}

impl ExactPool {
    /// A pool of `size` cells, all free.
    #[must_use]
    pub fn new(size: Cells) -> Arc<Self> {
        let counts = ExactCounts { used: AtomicU32::new(0), highest: AtomicU32::new(0) };
        Arc::new(Self { size: size.0, counts: CachePadded::new(counts) })
    }

    /// Size of the pool in cells.
    #[must_use]
    pub fn size(&self) -> Cells {
        Cells(self.size)
    }

    /// Cells in use.
    #[inline]
    #[must_use]
    pub fn used(&self) -> Cells {
        Cells(self.counts.used.load(Ordering::Relaxed))
    }

    /// Cells that are free.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Cells {
        Cells(self.size - self.used().0)
    }

    /// The most cells in use at once since the last [`reset_highest`](Self::reset_highest).
    #[must_use]
    pub fn highest(&self) -> Cells {
        Cells(self.counts.highest.load(Ordering::Relaxed))
    }

    /// Takes `cells` into use. Returns false, and takes nothing, if the pool has too few cells.
    #[inline]
    #[must_use]
    pub fn take(&self, cells: Cells) -> bool {
        let Some((_, used)) = take_from(&self.counts.used, self.size, cells.0, |_| 0) else {
            return false;
        };
        // Release, so that a reset which erases this watermark sees the cells in use; on x86 it costs the same as
        // Relaxed.
        self.counts.highest.fetch_max(used, Ordering::Release);
        true
    }

    /// Returns `cells` from use.
    #[inline]
    pub fn give(&self, cells: Cells) {
        give_to(&self.counts.used, cells.0);
    }

    /// Restarts the watermark from the cells in use now.
    pub fn reset_highest(&self) {
        self.counts.highest.swap(0, Ordering::Acquire);
        self.counts.highest.fetch_max(self.used().0, Ordering::Relaxed);
    }
}
