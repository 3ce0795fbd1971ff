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
//! Both can change their size while they are used ([`SharedPool::withhold`]).
//!
//! Relaxed ordering suffices in both: the count is the only shared state, and no other memory depends on it. A late
//! read makes a threshold late by a burst, but never gives out a cell twice.

use crossbeam_utils::CachePadded;

use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};
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

/// The counts of a pool in one word, so that every reader sees both at one instant: taken cells in the lower half, and
/// those of them that the pool does not have now in the upper half.
#[derive(Debug)]
struct Counts(AtomicU64);

/// Cells that are counted as taken and as withheld.
const WITHHELD: u64 = 1 << 32;

impl Counts {
    /// Counts of a pool of `size` cells that may have `most`.
    fn new(size: Cells, most: Cells) -> Self {
        let withheld = most.0.checked_sub(size.0).expect("a pool has at most the cells that it has room for");
        Self(AtomicU64::new(u64::from(withheld) * (WITHHELD + 1)))
    }

    /// Cells that are taken or withheld, and cells that are withheld.
    #[inline]
    fn read(&self) -> (u32, u32) {
        let word = self.0.load(Ordering::Relaxed);
        (word as u32, (word >> 32) as u32)
    }

    /// Cells that users have taken.
    #[inline]
    fn taken(&self) -> u32 {
        let (taken, withheld) = self.read();
        taken - withheld
    }

    /// Adds `unit` times the result of `cells`, which is given the free cells of `most`; `None`, and nothing, if that
    /// is `None`. Returns what was added and the new word.
    fn add(&self, most: u32, unit: u64, cells: impl Fn(u32) -> Option<u32>) -> Option<(u32, u64)> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let add = cells(most - word as u32)?;
            let after = word + u64::from(add) * unit;
            match self.0.compare_exchange_weak(word, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some((add, after)),
                Err(now) => word = now,
            }
        }
    }

    /// Takes `least` cells, or `batch` of the free cells if that is more. Returns the cells taken now, and all that are
    /// taken or withheld and that are withheld; `None` if fewer than `least` are free.
    fn take(&self, most: u32, least: u32, batch: impl Fn(u32) -> u32) -> Option<(u32, u32, u32)> {
        let take = |free: u32| (free >= least).then(|| batch(free).max(least));
        self.add(most, 1, take).map(|(taken, word)| (taken, word as u32, (word >> 32) as u32))
    }

    /// Gives `cells` back.
    fn give(&self, cells: u32) {
        let before = self.0.fetch_sub(u64::from(cells), Ordering::Relaxed);
        debug_assert!((before as u32) - ((before >> 32) as u32) >= cells, "more cells returned than taken");
    }

    /// Withholds up to `cells` free cells, and leaves `keep` of them free. Returns how many.
    fn withhold(&self, most: u32, cells: Cells, keep: Cells) -> Cells {
        let free = |free: u32| Some(free.saturating_sub(keep.0).min(cells.0)).filter(|part| *part > 0);
        Cells(self.add(most, WITHHELD + 1, free).map_or(0, |(part, _)| part))
    }

    /// Ends the withholding of `cells`.
    fn restore(&self, cells: Cells) {
        let before = self.0.fetch_sub(u64::from(cells.0) * (WITHHELD + 1), Ordering::Relaxed);
        assert!((before >> 32) as u32 >= cells.0, "more cells restored than withheld");
    }
}

/// Cells shared by all groups of one kind (lossless or lossy), on all lcores.
#[derive(Debug)]
pub struct SharedPool {
    /// The most cells that it can have.
    most: u32,
    /// Cells leased to lcores, used or not.
    counts: CachePadded<Counts>,
}

impl SharedPool {
    /// A pool of `size` cells, all free.
    #[must_use]
    pub fn new(size: Cells) -> Arc<Self> {
        Self::with_room(size, size)
    }

    /// A pool of `size` cells, all free, that can grow to `most`.
    ///
    /// # Panics
    /// If `size` is above `most`.
    #[must_use]
    pub fn with_room(size: Cells, most: Cells) -> Arc<Self> {
        Arc::new(Self { most: most.0, counts: CachePadded::new(Counts::new(size, most)) })
    }

    /// Size of the pool in cells.
    #[must_use]
    pub fn size(&self) -> Cells {
        Cells(self.most - self.counts.read().1)
    }

    /// Cells leased to lcores: at least the cells in use, and at most [`MAX_LEASE`] more per lcore.
    #[inline]
    #[must_use]
    pub fn leased(&self) -> Cells {
        Cells(self.counts.taken())
    }

    /// Cells that no lcore has leased.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Cells {
        Cells(self.most - self.counts.read().0)
    }

    /// Makes the pool smaller by up to `cells`, as far as more than `keep` are free. Returns by how many. Cells that
    /// the pool does not have are counted as taken, so that a take is one comparison for any size.
    #[must_use]
    pub fn withhold(&self, cells: Cells, keep: Cells) -> Cells {
        self.counts.withhold(self.most, cells, keep)
    }

    /// Makes the pool larger by `cells`.
    ///
    /// # Panics
    /// If it would have more cells than it has room for.
    pub fn restore(&self, cells: Cells) {
        self.counts.restore(cells);
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
        Cells(self.pool.free().0 + self.spare)
    }

    /// The pool that the cells are leased from.
    #[must_use]
    pub fn pool(&self) -> &Arc<SharedPool> {
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
        let SharedPool { most, counts } = &*self.pool;
        let Some((lease, taken, _)) = counts.take(*most, missing, |free| batch(free, self.most)) else {
            return false;
        };
        self.spare += lease;
        self.keep = 2 * batch(most - taken, self.most);
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
        let batch = batch(self.pool.free().0, self.most);
        self.keep = 2 * batch;
        if self.spare > self.keep {
            self.pool.counts.give(self.spare - batch);
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
            self.pool.counts.give(std::mem::take(&mut self.spare));
        }
    }
}

/// Cells that all lcores share exactly: every take and give is visible to all at once.
#[derive(Debug)]
pub struct ExactPool {
    /// The most cells that it can have.
    most: u32,
    /// Both counts in one cache line, because every take accesses both.
    counts: CachePadded<ExactCounts>,
}

#[derive(Debug)]
struct ExactCounts {
    used: Counts,
    highest: AtomicU32,
}

impl ExactPool {
    /// A pool of `size` cells, all free.
    #[must_use]
    pub fn new(size: Cells) -> Arc<Self> {
        Self::with_room(size, size)
    }

    /// A pool of `size` cells, all free, that can grow to `most`.
    ///
    /// # Panics
    /// If `size` is above `most`.
    #[must_use]
    pub fn with_room(size: Cells, most: Cells) -> Arc<Self> {
        let counts = ExactCounts { used: Counts::new(size, most), highest: AtomicU32::new(0) };
        Arc::new(Self { most: most.0, counts: CachePadded::new(counts) })
    }

    /// Size of the pool in cells.
    #[must_use]
    pub fn size(&self) -> Cells {
        Cells(self.most - self.counts.used.read().1)
    }

    /// Cells in use.
    #[inline]
    #[must_use]
    pub fn used(&self) -> Cells {
        Cells(self.counts.used.taken())
    }

    /// Cells that are free.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Cells {
        Cells(self.most - self.counts.used.read().0)
    }

    /// Makes the pool smaller by up to `cells`, as far as more than `keep` are free. Returns by how many. Cells that
    /// the pool does not have are counted as taken, so that a take is one comparison for any size.
    #[must_use]
    pub fn withhold(&self, cells: Cells, keep: Cells) -> Cells {
        self.counts.used.withhold(self.most, cells, keep)
    }

    /// Makes the pool larger by `cells`.
    ///
    /// # Panics
    /// If it would have more cells than it has room for.
    pub fn restore(&self, cells: Cells) {
        self.counts.used.restore(cells);
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
        let Some((_, taken, withheld)) = self.counts.used.take(self.most, cells.0, |_| 0) else {
            return false;
        };
        // Release, so that a reset which erases this watermark sees the cells in use; on x86 it costs the same as
        // Relaxed.
        self.counts.highest.fetch_max(taken - withheld, Ordering::Release);
        true
    }

    /// Returns `cells` from use.
    #[inline]
    pub fn give(&self, cells: Cells) {
        self.counts.used.give(cells.0);
    }

    /// Restarts the watermark from the cells in use now.
    pub fn reset_highest(&self) {
        self.counts.highest.swap(0, Ordering::Acquire);
        self.counts.highest.fetch_max(self.used().0, Ordering::Relaxed);
    }
}
