//! The forwarding database: it maps (VLAN, address) to a port. Entries are learned or static, in buckets of one cache
//! line.

mod fixed;
mod hash;
mod room;

pub use fixed::StaticChange;
pub use room::{Admission, Evicted};

use self::hash::Hash;
use super::shares::Shares;
pub use super::station::{Station, StationPair};
use crate::prefetch::prefetch;
use crate::sets::MAX_PORTS;
use crate::units::{Nanos, Ticks};
use crate::wire::MacAddr;

/// A configured entry, which neither ages nor moves.
///
/// IEEE 802.1Q YANG (clause 8.8.1): "Forwarded, independently of any dynamic filtering information held by the FDB."
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticEntry {
    /// VLAN id.
    pub vlan: u16,
    /// MAC address of the station.
    pub mac: MacAddr,
    /// Index of the port that leads to the station.
    pub port: u8,
}

/// Capacity, ageing time and static entries of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FdbSpec {
    /// Maximum number of entries; rounded up to a power of two of whole buckets.
    pub capacity: u32,
    /// Ageing time: a dynamic entry not seen for this long is void (IEEE 802.1Q clause 8.8.3; 300 s by default). Zero:
    /// entries never age.
    pub ageing: Nanos,
    /// Static entries, each with its port.
    pub entries: Vec<StaticEntry>,
    /// Seed of the hash; zero: a fixed hash, for simulations.
    pub seed: u64,
}

const WAYS: usize = 4;

/// The entry of one address in one word, so that one comparison compares all of it. From the lowest bit: the port (8
/// bits); the generation of that port when the entry was learned (16 bits; an entry of an older generation is void);
/// the origin (8 bits); the coarse time at which the station was last seen (32 bits).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    fn new(seen: u32, generation: u16, port: u8, origin: Origin) -> Self {
        Self(u64::from(seen) << 32 | u64::from(origin as u8) << 24 | u64::from(generation) << 8 | u64::from(port))
    }

    #[inline]
    fn port(self) -> usize {
        usize::from(self.0 as u8)
    }

    fn generation(self) -> u16 {
        (self.0 >> 8) as u16
    }

    fn origin(self) -> Origin {
        match (self.0 >> 24) as u8 {
            0 => Origin::Seen,
            1 => Origin::Heard,
            _ => Origin::Fixed,
        }
    }

    #[inline]
    fn seen(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Port, generation and origin: all of the entry except the time.
    #[inline]
    fn where_from(self) -> u32 {
        self.0 as u32
    }
}

/// The source of an entry.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Origin {
    /// A frame received by this lcore.
    #[default]
    Seen,
    /// An update from another lcore. It may be a quarter of the ageing time old, so the entry lives that much longer.
    Heard,
    /// The configuration: the entry neither ages nor moves.
    Fixed,
}

/// Four entries in one cache line. A way with key zero is empty.
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(64))]
struct Bucket {
    keys: [u64; WAYS],
    entries: [Entry; WAYS],
}

const _: () = assert!(std::mem::size_of::<Bucket>() == 64);

impl Bucket {
    /// The way that holds `key`, or `None`. The index is summed without a branch: no branch predictor could guess which
    /// way matches.
    #[inline]
    fn way_of(&self, key: u64) -> Option<usize> {
        let is = |way: usize| usize::from(self.keys[way] == key);
        let way = (is(1) + 2 * is(2) + 3 * is(3)) & (WAYS - 1);
        (self.keys[way] == key).then_some(way)
    }
}

/// The entry that a station on some port has if its last frame came in the current coarse tick.
#[derive(Debug, Clone, Copy)]
pub struct JustSeen(Entry);

/// The result of learning an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// The station was known at this port already, or it has a static entry.
    Known,
    /// The station was known at this port, and its age has passed another quarter of the ageing time. Other lcores,
    /// which do not receive its frames, must get an update before their entries age out.
    Refreshed,
    /// The station is new, or it moved here from another port.
    New,
    /// Both buckets of the station are full of live entries.
    Full,
    /// The port has as many stations as it may have.
    Limited,
}

/// A live entry, as the API and the tests show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The station that the entry is for.
    pub station: Station,
    /// Index of the port that leads to the station.
    pub port: usize,
    /// Ticks since the station was last seen, to an eighth of a second; `None` for a static entry.
    pub age: Option<u64>,
}

/// The forwarding database of one lcore.
#[derive(Debug, Clone)]
pub struct Fdb {
    buckets: Box<[Bucket]>,
    hash: Hash,
    /// 64 minus the number of bits in a bucket index.
    shift: u32,
    /// Coarse ticks after which a dynamic entry is void; `u32::MAX`: never.
    ageing: u32,
    /// Coarse ticks after which an entry from another lcore is void; `u32::MAX`: never.
    ageing_heard: u32,
    /// A shift that divides the coarse time into periods of at most a quarter of the ageing time.
    refresh_shift: u32,
    /// Number of low bits of a tick count that the coarse time drops.
    coarse_shift: u32,
    /// Coarse time of the current burst.
    now: u32,
    /// Generation of each port. It is incremented when the port goes down, which voids the port's entries at no cost.
    generations: [u16; MAX_PORTS],
    entries: u32,
    shares: Shares,
    /// Incremented whenever an answer about a known station may have changed.
    version: u64,
    /// Bucket that the next sweep examines.
    sweep: usize,
}

impl Fdb {
    /// Creates a database with only the static entries, on a clock of `hz` ticks a second.
    ///
    /// # Panics
    /// If a static entry finds no place. The configuration has checked this with [`Fdb::try_new`].
    #[must_use]
    pub fn new(spec: &FdbSpec, hz: u64) -> Self {
        Self::try_new(spec, hz).unwrap_or_else(|entry| panic!("no place for the static entry of {}", entry.mac))
    }

    /// Creates a database like [`Fdb::new`], but returns an error instead of a panic.
    ///
    /// # Errors
    /// The first static entry whose eight places are taken by others.
    pub fn try_new(spec: &FdbSpec, hz: u64) -> Result<Self, StaticEntry> {
        let buckets = (spec.capacity as usize).div_ceil(WAYS).next_power_of_two().clamp(2, 1 << 24);
        // The largest power of two of ticks within an eighth of a second: a shift replaces a division per burst.
        let coarse_shift = (hz / 8).max(1).ilog2();
        let coarse = (u128::from(spec.ageing.0) * u128::from(hz) / 1_000_000_000) >> coarse_shift;
        // One more, so that a station seen late in a coarse tick does not age early.
        let ageing = if spec.ageing.0 == 0 { u32::MAX } else { u32::try_from(coarse + 1).unwrap_or(u32::MAX) };
        let mut fdb = Self {
            buckets: vec![Bucket::default(); buckets].into_boxed_slice(),
            hash: Hash::new(spec.seed),
            shift: 64 - buckets.ilog2(),
            ageing,
            ageing_heard: ageing.saturating_add(ageing / 4),
            refresh_shift: (ageing / 4).max(1).ilog2(),
            coarse_shift,
            now: 0,
            generations: [0; MAX_PORTS],
            entries: 0,
            shares: Shares::new(buckets * WAYS),
            version: 0,
            sweep: 0,
        };
        for entry in &spec.entries {
            if fdb.insert(Station::new(entry.vlan, entry.mac.to_number()), entry.port, Origin::Fixed) == Learned::Full {
                return Err(*entry);
            }
        }
        Ok(fdb)
    }

    /// Sets the coarse time for the next burst.
    #[inline]
    pub fn set_time(&mut self, now: Ticks) {
        let now = (now.0 >> self.coarse_shift) as u32;
        if now != self.now {
            self.now = now;
            self.change();
        }
    }

    /// The version of the database. Answers of [`Fdb::lookup`] and [`Fdb::is_known`] about known stations stay valid
    /// while it is unchanged.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Starts a new version: earlier answers may be invalid.
    pub fn change(&mut self) {
        self.version = self.version.wrapping_add(1);
    }

    /// Number of entries, including aged entries that no sweep has removed yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries as usize
    }

    /// Whether the database has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The second bucket that may hold a station.
    #[inline]
    fn second(&self, station: Station) -> usize {
        (self.hash.second(station.0) >> self.shift) as usize
    }

    /// The entry that a frame received now at `port` makes.
    #[inline]
    fn fresh(&self, port: usize) -> Entry {
        Entry(u64::from(self.now) << 32 | u64::from(self.generations[port % MAX_PORTS]) << 8 | port as u64 & 0xff)
    }

    #[inline]
    fn is_live(&self, entry: Entry) -> bool {
        let is_young = self.now.wrapping_sub(entry.seen()) <= self.ageing;
        // The origin is zero for stations seen by a frame, which is the usual case.
        let is_of_now = entry.where_from() == self.fresh(entry.port()).where_from();
        is_young & is_of_now || self.is_live_otherwise(entry)
    }

    fn is_live_otherwise(&self, entry: Entry) -> bool {
        match entry.origin() {
            Origin::Seen => false,
            Origin::Heard => {
                self.now.wrapping_sub(entry.seen()) <= self.ageing_heard
                    && entry.generation() == self.generations[entry.port() % MAX_PORTS]
            }
            Origin::Fixed => true,
        }
    }

    /// The first bucket that may hold a station.
    #[inline]
    fn first(&self, station: Station) -> usize {
        (self.hash.first(station.0) >> self.shift) as usize
    }

    /// Prefetches the first bucket of `station`. A burst prefetches all its stations before it needs the first.
    #[inline]
    pub fn prefetch(&self, station: Station) {
        prefetch(&self.buckets[self.first(station)]);
    }

    /// Bucket and way of `station`.
    #[inline]
    fn find(&self, station: Station) -> Option<(usize, usize)> {
        let first = self.first(station);
        match self.buckets[first].way_of(station.0) {
            Some(way) => Some((first, way)),
            None => self.find_second(station),
        }
    }

    /// Searches the second bucket. Out of line: few stations are not in their first bucket.
    #[cold]
    fn find_second(&self, station: Station) -> Option<(usize, usize)> {
        let second = self.second(station);
        self.buckets[second].way_of(station.0).map(|way| (second, way))
    }

    /// The port that leads to `station`, if it has a live entry.
    #[inline]
    #[must_use]
    pub fn lookup(&self, station: Station) -> Option<usize> {
        let bucket = &self.buckets[self.first(station)];
        let entry = match bucket.way_of(station.0) {
            Some(way) => bucket.entries[way],
            None => self.entry_in_second(station)?,
        };
        self.is_live(entry).then_some(entry.port())
    }

    #[cold]
    fn entry_in_second(&self, station: Station) -> Option<Entry> {
        self.find_second(station).map(|(bucket, way)| self.buckets[bucket].entries[way])
    }

    /// The entry of a station that was seen on `port` in this coarse tick.
    #[inline]
    #[must_use]
    pub fn just_seen(&self, port: usize) -> JustSeen {
        JustSeen(self.fresh(port))
    }

    /// Whether a frame of `station` teaches nothing new: its entry equals `seen` or is static. A station in its second
    /// bucket returns false, so false is no proof.
    #[inline]
    #[must_use]
    pub fn is_known(&self, station: Station, seen: JustSeen) -> bool {
        let bucket = &self.buckets[self.first(station)];
        bucket.way_of(station.0).is_some_and(|way| {
            let entry = bucket.entries[way];
            entry == seen.0 || entry.origin() == Origin::Fixed
        })
    }

    /// Learns that a frame with source `station` was received on `port`, within the limit of the port.
    ///
    /// IEEE 802.1Q clause 8, in substance: an entry follows the station to the port of its last frame, and never
    /// replaces a static one.
    #[inline]
    pub fn learn(&mut self, station: Station, port: usize) -> Learned {
        self.learn_within(station, port, true)
    }

    #[inline]
    fn learn_within(&mut self, station: Station, port: usize, has_limit: bool) -> Learned {
        let Some((bucket, way)) = self.find(station) else {
            if has_limit && self.shares.is_at_limit(port) {
                return Learned::Limited;
            }
            return self.insert(station, port as u8, Origin::Seen);
        };
        let fresh = self.fresh(port);
        let entry = &mut self.buckets[bucket].entries[way];
        if entry.origin() == Origin::Fixed {
            return Learned::Known;
        }
        if (entry.port(), entry.generation()) != (fresh.port(), fresh.generation()) {
            return self.move_here(bucket * WAYS + way, fresh, has_limit);
        }
        let (before, now) = (entry.seen(), self.now);
        // Reached only when the time changed: a clean cache line stays shared.
        if before == now {
            return Learned::Known;
        }
        *entry = fresh;
        // Each station has its own phase. Otherwise all active stations would be refreshed at the same instant.
        let phase = (self.hash.first(station.0) >> 32) as u32;
        let quarter = |time: u32| time.wrapping_add(phase) >> self.refresh_shift;
        if quarter(before) == quarter(now) { Learned::Known } else { Learned::Refreshed }
    }

    /// Gives the station at `place` the entry `fresh`, of another port or of a newer generation.
    #[cold]
    fn move_here(&mut self, place: usize, fresh: Entry, has_limit: bool) -> Learned {
        if has_limit && self.shares.is_at_limit(fresh.port()) {
            return Learned::Limited;
        }
        self.shares.remove(place, self.counted_at(self.entry(place)));
        self.shares.add(place, fresh.port(), fresh.seen());
        self.buckets[place / WAYS].entries[place % WAYS] = fresh;
        self.change();
        Learned::New
    }

    /// The port at which a learned station counts: none if the port went down since.
    fn counted_at(&self, entry: Entry) -> Option<usize> {
        let port = entry.port() % MAX_PORTS;
        (entry.generation() == self.generations[port]).then_some(port)
    }

    #[cold]
    fn insert(&mut self, station: Station, port: u8, origin: Origin) -> Learned {
        let Some(place) = self.free_place(station) else { return Learned::Full };
        self.clear(place);
        let generation = self.generations[usize::from(port) % MAX_PORTS];
        self.store(place, station, Entry::new(self.now, generation, port, origin));
        if origin != Origin::Fixed {
            self.shares.add(place, port.into(), self.now);
        }
        Learned::New
    }

    /// Writes an entry into a vacant place.
    fn store(&mut self, place: usize, station: Station, entry: Entry) {
        let bucket = &mut self.buckets[place / WAYS];
        (bucket.keys[place % WAYS], bucket.entries[place % WAYS]) = (station.0, entry);
        self.entries += 1;
    }

    /// The entry at `place`, which is [`WAYS`] times its bucket plus its way.
    fn entry(&self, place: usize) -> Entry {
        self.buckets[place / WAYS].entries[place % WAYS]
    }

    /// The places that may hold `station`.
    fn places(&self, station: Station) -> impl Iterator<Item = usize> + use<> {
        let buckets = [self.first(station), self.second(station)];
        buckets.into_iter().flat_map(|bucket| (0..WAYS).map(move |way| bucket * WAYS + way))
    }

    /// A place for `station` without a live entry.
    fn free_place(&self, station: Station) -> Option<usize> {
        self.places(station).find(|&place| self.is_vacant(place) || !self.is_live(self.entry(place)))
    }

    fn is_vacant(&self, place: usize) -> bool {
        self.buckets[place / WAYS].keys[place % WAYS] == 0
    }

    /// Removes the station at `place`, if there is one.
    fn clear(&mut self, place: usize) {
        if !self.is_vacant(place) {
            // Only learned stations have shares.
            if self.entry(place).origin() != Origin::Fixed {
                self.shares.remove(place, self.counted_at(self.entry(place)));
            }
            self.buckets[place / WAYS].keys[place % WAYS] = 0;
            self.entries -= 1;
        }
    }

    /// Makes the next frame of `station` return [`Learned::Refreshed`] again, because an update to other lcores was
    /// lost.
    #[cold]
    pub fn readvertise(&mut self, station: Station) {
        if let Some((bucket, way)) = self.find(station) {
            let entry = &mut self.buckets[bucket].entries[way];
            let seen = self.now.wrapping_sub(1 << self.refresh_shift);
            *entry = Entry::new(seen, entry.generation(), entry.port() as u8, entry.origin());
            self.change();
        }
    }

    /// Learns that another lcore has seen `station` at `port`. Updates come four times in an ageing time, so the entry
    /// lives a quarter longer. The other lcore keeps the limit of the port.
    pub fn learn_remote(&mut self, station: Station, port: usize) -> Learned {
        let before = self.where_from(station);
        let learned = self.learn_within(station, port, false);
        if learned != Learned::Full
            && let Some((bucket, way)) = self.find(station)
        {
            let entry = &mut self.buckets[bucket].entries[way];
            if entry.origin() != Origin::Fixed {
                *entry = Entry::new(entry.seen(), entry.generation(), entry.port() as u8, Origin::Heard);
            }
        }
        // Most updates repeat a known entry and change nothing.
        if before != self.where_from(station) {
            self.change();
        }
        learned
    }

    /// The entry of `station` without its time.
    fn where_from(&self, station: Station) -> Option<u32> {
        self.find(station).map(|(bucket, way)| self.buckets[bucket].entries[way].where_from())
    }

    /// Voids all entries learned on `port`, because its link went down.
    pub fn forget_port(&mut self, port: usize) {
        let generation = &mut self.generations[port % MAX_PORTS];
        *generation = generation.wrapping_add(1);
        self.shares.forget(port);
        self.change();
    }

    /// Removes the learned stations of `bucket` for which `is_meant` returns true, and returns their number. The caller
    /// walks all buckets, a few in each poll.
    pub fn forget_in_bucket(&mut self, bucket: usize, is_meant: impl Fn(&Sighting) -> bool) -> u32 {
        let mut removed = 0;
        for way in 0..WAYS {
            let place = bucket * WAYS + way;
            let entry = self.entry(place);
            if self.is_vacant(place) || entry.origin() == Origin::Fixed || !self.is_live(entry) {
                continue;
            }
            let station = Station(self.buckets[bucket].keys[way]);
            if is_meant(&Sighting { station, port: entry.port(), age: Some(0) }) {
                self.clear(place);
                removed += 1;
            }
        }
        if removed > 0 {
            self.change();
        }
        removed
    }

    /// Entries per bucket.
    pub const WAYS: usize = WAYS;

    /// Number of buckets.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Live entries of one bucket; none if `bucket` is out of range.
    pub fn in_bucket(&self, bucket: usize) -> impl Iterator<Item = Sighting> + '_ {
        let ways = self.buckets.get(bucket).into_iter().flat_map(|bucket| bucket.keys.iter().zip(&bucket.entries));
        ways.filter(|(key, entry)| **key != 0 && self.is_live(**entry)).map(|(key, entry)| {
            let age = || u64::from(self.now.wrapping_sub(entry.seen())) << self.coarse_shift;
            let is_fixed = entry.origin() == Origin::Fixed;
            Sighting { station: Station(*key), port: entry.port(), age: (!is_fixed).then(age) }
        })
    }

    /// Removes the void entries of one bucket, the next in turn, and learned ones whose station cannot be at their port
    /// by `may_be_at`. Regular calls keep the entry count true.
    pub fn sweep(&mut self, may_be_at: impl Fn(Station, usize) -> bool) {
        let bucket = self.sweep;
        self.sweep = (bucket + 1) & (self.buckets.len() - 1);
        for way in 0..WAYS {
            let Bucket { keys, entries } = &self.buckets[bucket];
            let (station, entry) = (Station(keys[way]), entries[way]);
            let is_possible = || entry.origin() == Origin::Fixed || may_be_at(station, entry.port());
            if station.0 != 0 && !(self.is_live(entry) && is_possible()) {
                self.clear(bucket * WAYS + way);
            }
        }
    }

    /// Forgets `station` if it was learned. Returns false if it has a static entry.
    #[cold]
    pub fn forget(&mut self, station: Station) -> bool {
        let Some((bucket, way)) = self.find(station) else { return true };
        let is_learned = self.buckets[bucket].entries[way].origin() != Origin::Fixed;
        if is_learned {
            self.clear(bucket * WAYS + way);
            self.change();
        }
        is_learned
    }
}

#[cfg(test)]
#[path = "fdb_tests.rs"]
mod tests;
