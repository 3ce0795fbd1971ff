//! Pools: cells that all lcores share, counted by one atomic each for the whole switch.
//!
//! [`SharedPool`] is leased in batches, so that an lcore touches the atomic once in many packets. The price is that
//! cells lie with an lcore which does not use them. What holds with any number of lcores:
//!
//! - `used <= leased <= size`: a lease is taken by compare-and-exchange, so the pool never goes below zero, and only
//!   what was leased is given back, so it never rises above its size.
//! - An lcore finds at most `(lcores - 1) * MAX_LEASE` cells stranded with the others. It counts its own lease as free,
//!   so with one lcore every figure is exact.
//! - Batches are 1/16 of what is free, and an lcore keeps twice a batch at most as it last saw the pool: a pool that
//!   runs low strands few cells, and one with fewer than 16 free strands none with an lcore that calls [`Lease::trim`]
//!   once a burst.
//!
//! [`ExactPool`] is for headroom, where a stranded cell would be a lost frame: one atomic access each way, no lease.
//!
//! Relaxed suffices in both: the count is all there is to agree on, no other memory hangs on it. A figure read late
//! makes a threshold late by a burst, and never gives out a cell twice.

use crossbeam_utils::CachePadded;

use crate::sync::{Arc, AtomicU32, Ordering};
use crate::units::Cells;

/// Most cells an lcore keeps leased without using them.
pub const MAX_LEASE: u32 = 256;

/// The part of what is free that one lease may take.
const LEASE_SHARE: u32 = 16;

/// Cells of one lease while `free` are free.
const fn batch(free: u32) -> u32 {
    let share = free / LEASE_SHARE;
    if share < MAX_LEASE / 2 { share } else { MAX_LEASE / 2 }
}

/// Takes `least` cells, or `batch` of what is free if that is more, from a pool of `size` with `count` taken. Returns
/// what it took and what is taken now; none if fewer than `least` are free.
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

/// Gives `cells` back to the pool whose `count` says what is taken.
fn give_to(count: &AtomicU32, cells: u32) {
    let before = count.fetch_sub(cells, Ordering::Relaxed);
    debug_assert!(before >= cells, "more cells given back than were taken");
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

    /// Cells of the pool.
    #[must_use]
    pub fn size(&self) -> Cells {
        Cells(self.size)
    }

    /// Cells leased to lcores: at least the cells in use, at most [`MAX_LEASE`] an lcore more.
    #[inline]
    #[must_use]
    pub fn leased(&self) -> Cells {
        Cells(self.leased.load(Ordering::Relaxed))
    }

    fn free(&self) -> u32 {
        self.size - self.leased().0
    }
}

/// An lcore's hand in a [`SharedPool`]: plain memory of that lcore beside the one atomic.
#[derive(Debug)]
pub struct Lease {
    pool: Arc<SharedPool>,
    /// Cells leased and not in use.
    spare: u32,
    /// Most spare cells it keeps: twice a batch, as the pool was when last looked at.
    keep: u32,
    used: u32,
    used_highest: u32,
}

impl Lease {
    /// A hand that holds nothing yet.
    #[must_use]
    pub fn new(pool: Arc<SharedPool>) -> Self {
        Self { pool, spare: 0, keep: 0, used: 0, used_highest: 0 }
    }

    /// Cells this lcore can still use, its own lease included: what the Dynamic Threshold multiplies.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Cells {
        Cells(self.pool.free() + self.spare)
    }

    /// The pool that it is a hand in.
    #[must_use]
    pub fn pool(&self) -> &SharedPool {
        &self.pool
    }

    /// Cells this lcore has in use.
    #[inline]
    #[must_use]
    pub fn used(&self) -> Cells {
        Cells(self.used)
    }

    /// Most cells of the pool that were ever in use when this lcore took some: with one lcore exact, with more at most what
    /// the others had leased and not in use too much.
    #[must_use]
    pub fn used_highest(&self) -> Cells {
        Cells(self.used_highest)
    }

    /// The watermark becomes what is in use now.
    pub fn clear_watermark(&mut self) {
        self.used_highest = self.pool.leased().0 - self.spare;
    }

    /// The watermark becomes `highest`, but not less than what is in use now.
    pub(super) fn set_watermark(&mut self, highest: Cells) {
        self.used_highest = highest.0.max(self.pool.leased().0 - self.spare);
    }

    /// Cells this lcore has leased and not in use: stranded, as others see it.
    #[inline]
    #[must_use]
    pub fn spare(&self) -> Cells {
        Cells(self.spare)
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
        self.used_highest = self.used_highest.max(self.pool.leased().0 - self.spare);
        true
    }

    /// Out of line: once in many packets.
    #[cold]
    fn refill(&mut self, missing: u32) -> bool {
        let Some((lease, leased)) = take_from(&self.pool.leased, self.pool.size, missing, batch) else {
            return false;
        };
        self.spare += lease;
        self.keep = 2 * batch(self.pool.size - leased);
        true
    }

    /// Returns `cells` from use; the surplus goes back to the pool.
    #[inline]
    pub fn give(&mut self, cells: Cells) {
        debug_assert!(cells.0 <= self.used, "more cells given back than were taken");
        self.used -= cells.0;
        self.spare += cells.0;
        if self.spare > self.keep {
            self.trim();
        }
    }

    /// Looks at the pool, and returns all but a batch if more than two are spare. Call it once a burst: an lcore that
    /// neither takes nor gives does not see otherwise that the pool runs low. No access at all if nothing is spare, one
    /// load if nothing is too many.
    #[inline]
    pub fn trim(&mut self) {
        if self.spare == 0 {
            return;
        }
        let batch = batch(self.pool.free());
        self.keep = 2 * batch;
        if self.spare > self.keep {
            give_to(&self.pool.leased, self.spare - batch);
            self.spare = batch;
        }
    }

    /// Nothing is leased beyond what is in use: [`flush`](Self::flush) would do nothing.
    #[inline]
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.spare == 0
    }

    /// Returns what is leased and unused, so that none is stranded with an lcore that rests. Touches nothing shared if
    /// there is none, so an idle lcore may call it at each poll.
    #[inline]
    pub fn flush(&mut self) {
        if !self.is_flushed() {
            give_to(&self.pool.leased, std::mem::take(&mut self.spare));
        }
    }
}

/// Cells shared by all lcores to the last one: every take and give is seen by all at once.
#[derive(Debug)]
pub struct ExactPool {
    size: u32,
    /// Both are touched by every take: one line.
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

    /// Cells of the pool.
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

    /// Cells that can still be used.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Cells {
        Cells(self.size - self.used().0)
    }

    /// Most cells that were in use at once since the last [`reset_highest`](Self::reset_highest).
    #[must_use]
    pub fn highest(&self) -> Cells {
        Cells(self.counts.highest.load(Ordering::Relaxed))
    }

    /// Takes `cells` into use; false, and nothing taken, if the pool has not got them.
    #[inline]
    #[must_use]
    pub fn take(&self, cells: Cells) -> bool {
        let Some((_, used)) = take_from(&self.counts.used, self.size, cells.0, |_| 0) else {
            return false;
        };
        // Release, so that a reset which erases this mark sees the cells in use; on x86 it costs what Relaxed does.
        self.counts.highest.fetch_max(used, Ordering::Release);
        true
    }

    /// Returns `cells` from use.
    #[inline]
    pub fn give(&self, cells: Cells) {
        give_to(&self.counts.used, cells.0);
    }

    /// Starts the watermark anew, from what is in use now.
    pub fn reset_highest(&self) {
        self.counts.highest.swap(0, Ordering::Acquire);
        self.counts.highest.fetch_max(self.used().0, Ordering::Relaxed);
    }
}
