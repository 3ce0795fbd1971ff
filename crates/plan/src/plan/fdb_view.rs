//! Forwarding databases for the control thread: each lcore copies its own on request, a few buckets per poll.
//!
//! A window holds one part of a database at a time. The control thread requests the entries from some bucket on. The
//! lcore writes live entries of stations behind its own ports until the window is full or the database ends, and then
//! publishes them. All lcores together show every station once, from the lcore that receives its frames. Without a
//! request, a poll costs one load and one predictable branch.

use crate::forward::Fdb;
use crate::forward::fdb::{Sighting, Station};
use crate::sets::PortSet;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Entries that a window holds.
pub(crate) const SLOTS: usize = 512;
/// Buckets that an lcore copies in one poll.
pub const BUCKETS: usize = 16;
/// The most entries in these buckets.
pub const MOST: usize = BUCKETS * Fdb::WAYS;
/// Value of `next` if no entries follow this window.
const END: usize = usize::MAX;
/// Age value of an entry that does not age.
const STATIC: u64 = (1 << 56) - 1;

/// The window of one lcore.
#[derive(Debug)]
pub struct FdbWindow {
    /// Number of the last request. Only the control thread stores it, after `from`.
    asked: AtomicU64,
    from: AtomicUsize,
    /// Number of the request that the window answers. Only the lcore stores it, after all fields below.
    shown: AtomicU64,
    count: AtomicUsize,
    next: AtomicUsize,
    /// Each slot has the station in its first word; in the second the port (8 bits) and above it the age in ticks.
    slots: Box<[[AtomicU64; 2]]>,
}

/// The progress of an lcore with its window.
#[derive(Debug, Default)]
pub struct Showing {
    /// Number of the last request that was answered completely.
    pub shown: u64,
    /// Number of the request in progress, its next bucket, and the entries written so far.
    asked: u64,
    bucket: usize,
    count: usize,
}

/// A part of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Entries of the part.
    pub entries: Vec<Sighting>,
    /// Bucket at which the next part begins; `None`: this was the last.
    pub next: Option<usize>,
}

impl Default for FdbWindow {
    fn default() -> Self {
        Self {
            asked: AtomicU64::new(0),
            from: AtomicUsize::new(0),
            shown: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            next: AtomicUsize::new(END),
            slots: (0..SLOTS).map(|_| Default::default()).collect(),
        }
    }
}

impl FdbWindow {
    /// Requests the entries from bucket `from` on. Only one thread at a time may request; an earlier request is
    /// abandoned.
    pub fn ask(&self, from: usize) {
        self.from.store(from, Ordering::Relaxed);
        self.asked.fetch_add(1, Ordering::Release);
    }

    /// The answer to the last request, once the lcore has published it.
    #[must_use]
    pub fn answer(&self) -> Option<Part> {
        if self.shown.load(Ordering::Acquire) != self.asked.load(Ordering::Relaxed) {
            return None;
        }
        let slots = self.slots.iter().take(self.count.load(Ordering::Relaxed));
        let entries = slots.map(|[station, place]| {
            let (station, place) = (station.load(Ordering::Relaxed), place.load(Ordering::Relaxed));
            let age = place >> 8;
            let age = (age != STATIC).then_some(age);
            Sighting { station: Station::from_number(station), port: usize::from(place as u8), age }
        });
        let next = self.next.load(Ordering::Relaxed);
        Some(Part { entries: entries.collect(), next: (next != END).then_some(next) })
    }

    /// Number of the last request.
    #[inline]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Continues with request `asked`: copies entries of `fdb` behind the ports `own`.
    #[cold]
    pub fn show(&self, showing: &mut Showing, asked: u64, fdb: &Fdb, own: PortSet) {
        if showing.asked != asked {
            let bucket = self.from.load(Ordering::Relaxed);
            *showing = Showing { asked, bucket, count: 0, shown: showing.shown };
        }
        let end = fdb.buckets().min(showing.bucket.saturating_add(BUCKETS));
        for bucket in showing.bucket..end {
            for seen in fdb.in_bucket(bucket).filter(|seen| own.contains(seen.port & 63)) {
                let age = seen.age.map_or(STATIC, |age| age.min(STATIC - 1));
                let [station, place] = &self.slots[showing.count];
                station.store(seen.station.to_number(), Ordering::Relaxed);
                place.store(age << 8 | seen.port as u64 & 0xff, Ordering::Relaxed);
                showing.count += 1;
            }
        }
        showing.bucket = end;
        let is_end = end == fdb.buckets();
        if is_end || showing.count + MOST > SLOTS {
            self.count.store(showing.count, Ordering::Relaxed);
            self.next.store(if is_end { END } else { showing.bucket }, Ordering::Relaxed);
            self.shown.store(asked, Ordering::Release);
            showing.shown = asked;
        }
    }
}
