//! The time of a wire on which several lcores send.
//!
//! An lcore takes the time of its frames before it sends them, with one compare-and-exchange, and gives back what its
//! frames did not need. So all lcores together never take more than the wire has, and none waits for another.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering};

/// Attempts to take time. Each failure means that another lcore has taken some.
const ATTEMPTS: usize = 4;

/// The tick at which a wire becomes free, counted by all lcores that send on it.
#[derive(Debug)]
pub struct JointWire {
    free_at: CachePadded<AtomicU64>,
}

/// Ticks of a wire that an lcore has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Ticks in which frames may start.
    pub starting: u64,
    /// Ticks for the end of the last frame.
    pub last: u64,
    /// The tick at which the wire has sent these, and all that was taken before.
    pub until: u64,
}

impl Default for JointWire {
    fn default() -> Self {
        Self { free_at: CachePadded::new(AtomicU64::new(0)) }
    }
}

impl JointWire {
    /// Takes up to `wanted` ticks of the wire, of those from `earliest` up to and including `latest`. Time before
    /// `earliest` is lost. If less is left than wanted, it also takes `last` ticks for the end of the last frame, so
    /// that no other lcore starts a frame meanwhile. Returns `None` if no frame may start: the wire is busy beyond
    /// `latest`, or others took its time at the same moment.
    #[inline]
    pub fn take(&self, wanted: u64, last: u64, earliest: u64, latest: u64) -> Option<Taken> {
        let mut seen = self.free_at.load(Ordering::Relaxed);
        for _ in 0..ATTEMPTS {
            let start = seen.max(earliest);
            let room = (latest + 1).checked_sub(start).filter(|room| *room > 0)?;
            let (starting, last) = if wanted <= room { (wanted, 0) } else { (room, last) };
            let until = start + starting + last;
            // Relaxed: the count orders no other memory.
            match self.free_at.compare_exchange_weak(seen, until, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Taken { starting, last, until }),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Changes the taken time to that which the frames need: adds `ticks` if they are positive, else gives time back
    /// that the caller has taken.
    #[inline]
    pub fn settle(&self, ticks: i64) {
        if ticks > 0 {
            self.free_at.fetch_add(ticks.unsigned_abs(), Ordering::Relaxed);
        } else if ticks < 0 {
            self.free_at.fetch_sub(ticks.unsigned_abs(), Ordering::Relaxed);
        }
    }

    /// Charges `ticks` for a frame that was sent in any case. Time before `earliest` is lost.
    pub fn charge(&self, ticks: u64, earliest: u64) {
        self.free_at.fetch_max(earliest, Ordering::Relaxed);
        self.free_at.fetch_add(ticks, Ordering::Relaxed);
    }

    /// The tick at which the wire becomes free.
    #[must_use]
    pub fn free_at(&self) -> u64 {
        self.free_at.load(Ordering::Relaxed)
    }
}
