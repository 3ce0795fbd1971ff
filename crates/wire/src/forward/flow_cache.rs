//! A cache of forwarding decisions by pair of source and destination station.
//!
//! A frame needs two look-ups in the forwarding database, of its source and of its destination. An entry holds both
//! answers for a pair whose source is known at the ingress port and whose destination is behind another port of its
//! VLAN. A hit reads one cache line instead of two and takes a quarter of the instructions. The cache answers exactly
//! as the database would, because every change of the database ends all entries. It is bypassed for a while when too
//! many look-ups miss.

use super::Fdb;
use super::fdb::StationPair;
use crate::prefetch::prefetch;
use crate::sets::MAX_PORTS;

/// Sets of two pairs, of which two make a cache line: a megabyte.
const SETS: usize = 1 << 15;

/// Frames of a sample, after which the share of misses is judged: several for each entry.
const SAMPLE: u32 = 1 << 18;

/// Largest share of a sample that may miss, as a divisor. A miss costs a look-up here and two in the database.
const MISSED: u32 = 4;

/// Frames that bypass the cache after a sample with too many misses: many, because such a sample costs both look-ups.
const BYPASS_FRAMES: u32 = 1 << 23;

/// Epochs that an entry can name. Epoch zero is never used, because an empty entry would belong to it.
const EPOCHS: u64 = 256;

/// Mask of the egress port, at the end of an entry's first word.
const EGRESS: u64 = MAX_PORTS as u64 - 1;

const _: () = assert!(MAX_PORTS == 64, "ingress and egress take six bits each");

/// Two entries. First word, from below: egress (6 bits), lower half of the epoch (4), ingress (6), destination's
/// address (48). Second: VLAN (12), upper half of the epoch (4), source's address (48).
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(32))]
struct Set {
    first: [u64; 2],
    second: [u64; 2],
}

/// The cached pairs of stations of one lcore.
#[derive(Debug)]
pub struct FlowCache {
    sets: Box<[Set; SETS]>,
    /// Entries of another epoch are void: 1 to 255.
    epoch: u64,
    /// The database's version in this epoch.
    version: u64,
    /// Frames of this sample, and how many of them missed.
    sampled: u32,
    missed: u32,
    /// Frames that still bypass the cache.
    bypass_left: u32,
}

/// The parts of a key that all frames of a burst share.
#[derive(Debug, Clone, Copy)]
pub struct CacheLookup {
    first: u64,
    second: u64,
}

/// The place of a pair of stations in the cache: the offset of its set in bytes, so that no look-up computes it again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CachePlace(u32);

const _: () = assert!((size_of::<Set>() * SETS).is_power_of_two() && size_of::<Set>() * SETS <= 1 << 31);

impl CachePlace {
    /// The place of `pair`.
    #[inline]
    fn of(pair: StationPair) -> Self {
        let (dst, src) = pair.words();
        // The rotation keeps apart the addresses of neighbouring stations and ports. With 32, 3,456 of 3,584 pairs
        // between 8 ports of 8 stations found their set full; with 13 none did.
        let both = dst ^ src.rotate_left(13);
        let offset = both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - (SETS * size_of::<Set>()).ilog2());
        Self(offset as u32 & !(size_of::<Set>() as u32 - 1))
    }

    /// Index of the set.
    #[inline]
    fn index(self) -> usize {
        self.0 as usize / size_of::<Set>() % SETS
    }
}

/// The sets of the cache, to be prefetched.
#[derive(Debug, Clone, Copy)]
pub struct CacheSets<'a>(&'a [Set; SETS]);

impl CacheSets<'_> {
    /// Prefetches the set of a pair, and returns its place for [`FlowCache::get`].
    #[inline]
    pub fn prefetch(self, pair: StationPair) -> CachePlace {
        let place = CachePlace::of(pair);
        prefetch(self.0.as_ptr().wrapping_byte_add(place.0 as usize));
        place
    }
}

/// The cache's answer for a pair of stations: an egress port, or a larger number if nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CacheAnswer(u64);

impl CacheAnswer {
    /// The egress port, if the cache holds the pair.
    #[inline]
    #[must_use]
    pub fn hit(self) -> Option<usize> {
        self.is_hit().then_some(self.port())
    }

    /// The egress port of a hit, and some port of a miss.
    #[inline]
    #[must_use]
    pub fn port(self) -> usize {
        (self.0 & EGRESS) as usize
    }

    /// The egress port of a hit, and a number from 64 on of a miss.
    #[inline]
    #[must_use]
    pub fn egress_or_miss(self) -> u8 {
        self.0.min(u8::MAX.into()) as u8
    }

    /// Whether the cache holds the pair.
    #[inline]
    #[must_use]
    pub fn is_hit(self) -> bool {
        self.0 <= EGRESS
    }
}

impl CacheLookup {
    #[inline]
    fn words(self, pair: StationPair) -> (u64, u64) {
        let (dst, src) = pair.words();
        (dst | self.first, src | self.second)
    }
}

impl Default for FlowCache {
    fn default() -> Self {
        let Ok(sets) = vec![Set::default(); SETS].into_boxed_slice().try_into() else {
            unreachable!("the slice has the length of the array");
        };
        Self { sets, epoch: 1, version: 0, sampled: 0, missed: 0, bypass_left: 0 }
    }
}

impl FlowCache {
    /// Begins the look-ups of a burst of `frames` from `port`; `None` while the cache is bypassed.
    #[inline]
    pub fn begin(&mut self, port: usize, frames: usize, fdb: &Fdb) -> Option<CacheLookup> {
        if self.bypass_left > 0 {
            self.bypass_left = self.bypass_left.saturating_sub(frames as u32);
            return None;
        }
        if self.version != fdb.version() {
            self.version = fdb.version();
            self.forget();
        }
        self.sampled += frames as u32;
        if self.sampled > SAMPLE {
            self.bypass_left = if self.missed > self.sampled / MISSED { BYPASS_FRAMES } else { 0 };
            (self.sampled, self.missed) = (0, 0);
        }
        let (lower, upper) = (self.epoch & 15, self.epoch >> 4);
        Some(CacheLookup { first: ((port % MAX_PORTS) as u64) << 10 | lower << 6, second: upper << 12 })
    }

    /// Begins the next epoch. Each epoch empties a 256th part of the sets, so no entry survives until its epoch's
    /// number is used again.
    #[cold]
    fn forget(&mut self) {
        self.epoch = if self.epoch + 1 == EPOCHS { 1 } else { self.epoch + 1 };
        let part = SETS / EPOCHS as usize;
        let begin = self.epoch as usize * part;
        self.sets[begin..begin + part].fill(Set::default());
        if self.epoch == 1 {
            self.sets[..part].fill(Set::default());
        }
    }

    /// Bypasses the cache for the time of a test.
    #[cfg(any(test, feature = "testing"))]
    pub fn give_up(&mut self) {
        self.bypass_left = u32::MAX;
    }

    /// The sets, to be prefetched.
    #[inline]
    #[must_use]
    pub fn sets(&self) -> CacheSets<'_> {
        CacheSets(&self.sets)
    }

    /// The egress port of a frame between the stations `pair`, if the cache holds them. `place` is that of the pair.
    #[inline]
    #[must_use]
    pub fn get(&self, lookup: CacheLookup, place: CachePlace, pair: StationPair) -> CacheAnswer {
        let set = &self.sets[place.index()];
        let (first, second) = lookup.words(pair);
        // XOR with the key leaves the egress port of an entry that matches, and a larger number of any other entry. At
        // most one entry matches. The minimum selects it without a branch, which would be mispredicted for every other
        // frame.
        let left = |way: usize| {
            let differs = u64::from(set.second[way] != second).wrapping_neg();
            set.first[way] ^ first | differs
        };
        CacheAnswer(left(0).min(left(1)))
    }

    /// The egress port of a frame between the stations `pair`, if the cache holds them.
    #[inline]
    #[must_use]
    pub fn find(&self, lookup: CacheLookup, pair: StationPair) -> Option<usize> {
        self.get(lookup, CachePlace::of(pair), pair).hit()
    }

    /// Counts a miss. If the database has changed since [`FlowCache::begin`], the look-ups of the burst have ended.
    #[inline]
    pub fn count_miss(&mut self) {
        self.missed += 1;
    }

    /// Caches the database's answer after a miss: a frame between the stations `pair` leaves by `egress`.
    #[inline]
    pub fn insert(&mut self, lookup: CacheLookup, pair: StationPair, egress: usize) {
        let set = &mut self.sets[CachePlace::of(pair).index()];
        let (first, second) = lookup.words(pair);
        // The newer entry moves to the second place; the older one is dropped.
        *set = Set { first: [first | egress as u64 & EGRESS, set.first[0]], second: [second, set.second[0]] };
    }
}

#[cfg(test)]
#[path = "flow_cache_tests.rs"]
mod tests;
