//! The forwarding database: (VLAN, address) to port, learned and static, in buckets of one cache line.

use crate::near::prefetch;
use crate::sets::MAX_PORTS;
use crate::units::{Nanos, Ticks};
use crate::wire::MacAddr;

/// A configured entry, which neither ages nor moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticEntry {
    /// VLAN id.
    pub vlan: u16,
    /// Station.
    pub mac: MacAddr,
    /// Index of the port behind which it is.
    pub port: u8,
}

/// How large the database is and how long it remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FdbSpec {
    /// Entries; rounded up to a power of two of whole buckets.
    pub capacity: u32,
    /// A dynamic entry not seen for this long is gone (IEEE 802.1Q 8.8.3; 300 s by default); zero: never.
    pub ageing: Nanos,
    /// Static entries.
    pub entries: Vec<StaticEntry>,
}

const WAYS: usize = 4;

/// What is known of one address, as one word, so that to compare it is one comparison: from below the port (8 bits), the
/// generation of its port when it was learned (16 bits; an entry of an older one is gone), the origin (8 bits), and the
/// coarse time it was last seen (32 bits).
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

    /// All but when it was seen.
    #[inline]
    fn where_from(self) -> u32 {
        self.0 as u32
    }
}

/// Where an entry comes from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Origin {
    /// A frame.
    #[default]
    Seen,
    /// Update from another lcore: it may be a quarter of the ageing time old, so the entry lasts that much longer.
    Heard,
    /// The configuration: neither ages nor moves.
    Fixed,
}

/// Four entries in one cache line; key zero is an empty way.
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(64))]
struct Bucket {
    keys: [u64; WAYS],
    entries: [Entry; WAYS],
}

const _: () = assert!(std::mem::size_of::<Bucket>() == 64);

impl Bucket {
    /// The way that holds `key`, if any does. The sum is computed and not searched for: which way it is, no branch predictor
    /// could know.
    #[inline]
    fn way_of(&self, key: u64) -> Option<usize> {
        let is = |way: usize| usize::from(self.keys[way] == key);
        let way = (is(1) + 2 * is(2) + 3 * is(3)) & (WAYS - 1);
        (self.keys[way] == key).then_some(way)
    }
}

/// A station: 48 bits of address, above 12 of VLAN. Never zero for one that there is, since no station is at address zero.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Station(u64);

impl Station {
    /// The station at `address` ([`MacAddr::to_number`]) in `vlan`.
    #[inline]
    #[must_use]
    pub const fn new(vlan: u16, address: u64) -> Self {
        Self(address << 12 | vlan as u64 & 0xfff)
    }

    /// As one number.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        self.0
    }

    /// The station with this number.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Its VLAN.
    #[inline]
    #[must_use]
    pub const fn vlan(self) -> u16 {
        (self.0 & 0xfff) as u16
    }

    /// Its address.
    #[must_use]
    pub const fn mac(self) -> MacAddr {
        MacAddr::from_number(self.0 >> 12)
    }
}

/// A station that was just seen on some port.
#[derive(Debug, Clone, Copy)]
pub struct JustSeen(Entry);

/// What learning an address did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// It was known there already.
    Known,
    /// It was known there, and has been seen for another quarter of the ageing time: databases of other lcores, which
    /// see no frames of it, should hear so before they forget it.
    Refreshed,
    /// It is new, or moved here from another port.
    New,
    /// Both of its buckets are full of live entries.
    Full,
}

/// A live entry, for those who look on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The station.
    pub station: Station,
    /// Index of the port behind which it is.
    pub port: usize,
    /// Ticks since it was last seen, to an eighth of a second; `None` of a static one.
    pub age: Option<u64>,
}

/// The forwarding database of one lcore.
#[derive(Debug)]
pub struct Fdb {
    buckets: Box<[Bucket]>,
    /// 64 less the bits of a bucket index.
    shift: u32,
    /// Coarse ticks after which a dynamic entry is gone; `u32::MAX`: never.
    ageing: u32,
    /// The same for entries heard of.
    ageing_heard: u32,
    /// Bits of the coarse time that a quarter of the ageing time leaves out.
    refresh_shift: u32,
    /// Bits of a tick that the coarse time leaves out.
    coarse_shift: u32,
    /// Coarse time of the burst being forwarded.
    now: u32,
    /// Raised when a port goes down, which forgets what was learned there at no cost.
    generations: [u16; MAX_PORTS],
    entries: u32,
    /// Raised whenever it may have begun to say something else of a station that was known.
    version: u64,
    /// Bucket that the sweep looks at next.
    sweep: usize,
}

impl Fdb {
    /// A database with only the static entries, on a clock of `hz` ticks a second.
    ///
    /// # Panics
    /// If a static entry finds no place, which the configuration has tried ([`Fdb::try_new`]).
    #[must_use]
    pub fn new(spec: &FdbSpec, hz: u64) -> Self {
        Self::try_new(spec, hz).unwrap_or_else(|entry| panic!("no place for the static entry of {}", entry.mac))
    }

    /// As [`Fdb::new`].
    ///
    /// # Errors
    /// The first static entry whose eight places are taken by others.
    pub fn try_new(spec: &FdbSpec, hz: u64) -> Result<Self, StaticEntry> {
        let buckets = (spec.capacity as usize).div_ceil(WAYS).next_power_of_two().clamp(2, 1 << 24);
        // The largest power of two of ticks within an eighth of a second: a shift instead of a division per burst.
        let coarse_shift = (hz / 8).max(1).ilog2();
        let coarse = (u128::from(spec.ageing.0) * u128::from(hz) / 1_000_000_000) >> coarse_shift;
        // One more, since a time seen late in a coarse tick must not age early.
        let ageing = if spec.ageing.0 == 0 { u32::MAX } else { u32::try_from(coarse + 1).unwrap_or(u32::MAX) };
        let mut fdb = Self {
            buckets: vec![Bucket::default(); buckets].into_boxed_slice(),
            shift: 64 - buckets.ilog2(),
            ageing,
            ageing_heard: ageing.saturating_add(ageing / 4),
            refresh_shift: (ageing / 4).max(1).ilog2(),
            coarse_shift,
            now: 0,
            generations: [0; MAX_PORTS],
            entries: 0,
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

    /// The coarse time of the burst that follows.
    #[inline]
    pub fn set_time(&mut self, now: Ticks) {
        let now = (now.0 >> self.coarse_shift) as u32;
        if now != self.now {
            self.now = now;
            self.change();
        }
    }

    /// What it has said of known stations, by [`Fdb::lookup`] and [`Fdb::is_known`], holds as long as this is the same.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What was said so far may hold no longer.
    pub fn change(&mut self) {
        self.version = self.version.wrapping_add(1);
    }

    /// Entries there are, aged ones that were not swept yet among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Multiplicative hashing: the high bits depend on all of the key.
    #[inline]
    fn hash(key: u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The other bucket a key may be in.
    #[inline]
    fn second(&self, key: u64) -> usize {
        let hash = (Self::hash(key).rotate_left(29) ^ key).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (hash >> self.shift) as usize
    }

    /// What an entry says that a frame has just made, at `port`.
    #[inline]
    fn fresh(&self, port: usize) -> Entry {
        Entry(u64::from(self.now) << 32 | u64::from(self.generations[port % MAX_PORTS]) << 8 | port as u64 & 0xff)
    }

    #[inline]
    fn is_live(&self, entry: Entry) -> bool {
        let is_young = self.now.wrapping_sub(entry.seen()) <= self.ageing;
        // Seen by a frame, which is how most are known, the origin is zero.
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

    /// The bucket in which a station would be first.
    #[inline]
    fn first(&self, station: Station) -> usize {
        (Self::hash(station.0) >> self.shift) as usize
    }

    /// Asks for what is known of `station`: a burst does so for all of its stations before it needs the first.
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

    /// Few stations are not where they would be first.
    #[cold]
    fn find_second(&self, station: Station) -> Option<(usize, usize)> {
        let second = self.second(station.0);
        self.buckets[second].way_of(station.0).map(|way| (second, way))
    }

    /// Port behind which `station` is.
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
        self.find_second(station).map(|(place, way)| self.buckets[place].entries[way])
    }

    /// What a station on `port` looks like that was seen in this coarse tick.
    #[inline]
    #[must_use]
    pub fn just_seen(&self, port: usize) -> JustSeen {
        JustSeen(self.fresh(port))
    }

    /// Whether there is nothing to learn of `station`, since it looks as `seen` has it. It may say no of one that does.
    #[inline]
    #[must_use]
    pub fn is_known(&self, station: Station, seen: JustSeen) -> bool {
        let bucket = &self.buckets[self.first(station)];
        bucket.way_of(station.0).is_some_and(|way| {
            let entry = bucket.entries[way];
            entry == seen.0 || entry.origin() == Origin::Fixed
        })
    }

    /// `station` was seen as a source on `port`.
    pub fn learn(&mut self, station: Station, port: usize) -> Learned {
        let Some((place, way)) = self.find(station) else { return self.insert(station, port as u8, Origin::Seen) };
        let fresh = self.fresh(port);
        let entry = &mut self.buckets[place].entries[way];
        if entry.origin() == Origin::Fixed {
            return Learned::Known;
        }
        if (entry.port(), entry.generation()) != (fresh.port(), fresh.generation()) {
            *entry = fresh;
            self.change();
            return Learned::New;
        }
        let (before, now) = (entry.seen(), self.now);
        // Written only when it changes: a line that stays clean stays shared.
        if before == now {
            return Learned::Known;
        }
        *entry = fresh;
        // Each station has a phase of its own, or all that speak would be refreshed in one instant.
        let phase = (Self::hash(station.0) >> 32) as u32;
        let quarter = |time: u32| time.wrapping_add(phase) >> self.refresh_shift;
        if quarter(before) == quarter(now) { Learned::Known } else { Learned::Refreshed }
    }

    #[cold]
    fn insert(&mut self, station: Station, port: u8, origin: Origin) -> Learned {
        let key = station.0;
        for place in [self.first(station), self.second(key)] {
            for way in 0..WAYS {
                let vacant = self.buckets[place].keys[way] == 0;
                if vacant || !self.is_live(self.buckets[place].entries[way]) {
                    self.entries += u32::from(vacant);
                    let generation = self.generations[usize::from(port) % MAX_PORTS];
                    let bucket = &mut self.buckets[place];
                    bucket.keys[way] = key;
                    bucket.entries[way] = Entry::new(self.now, generation, port, origin);
                    return Learned::New;
                }
            }
        }
        Learned::Full
    }

    /// Other databases could not be told of `station`: with its next frame it is [`Learned::Refreshed`] again.
    #[cold]
    pub fn readvertise(&mut self, station: Station) {
        if let Some((place, way)) = self.find(station) {
            let entry = &mut self.buckets[place].entries[way];
            let seen = self.now.wrapping_sub(1 << self.refresh_shift);
            *entry = Entry::new(seen, entry.generation(), entry.port() as u8, entry.origin());
            self.change();
        }
    }

    /// Learns that another lcore has seen `station` at `port`. Updates come four times in an ageing time, so the entry lasts
    /// a quarter longer.
    pub fn learn_remote(&mut self, station: Station, port: usize) -> Learned {
        let before = self.where_from(station);
        let learned = self.learn(station, port);
        if learned != Learned::Full
            && let Some((place, way)) = self.find(station)
        {
            let entry = &mut self.buckets[place].entries[way];
            if entry.origin() != Origin::Fixed {
                *entry = Entry::new(entry.seen(), entry.generation(), entry.port() as u8, Origin::Heard);
            }
        }
        // Most updates repeat what is known, and change nothing.
        if before != self.where_from(station) {
            self.change();
        }
        learned
    }

    /// All that is known of `station` but when it was seen.
    fn where_from(&self, station: Station) -> Option<u32> {
        self.find(station).map(|(place, way)| self.buckets[place].entries[way].where_from())
    }

    /// Forgets what was learned on `port`: its link went down.
    pub fn forget_port(&mut self, port: usize) {
        let generation = &mut self.generations[port % MAX_PORTS];
        *generation = generation.wrapping_add(1);
        self.change();
    }

    /// Most entries of a bucket.
    pub const WAYS: usize = WAYS;

    /// How many buckets there are.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Live entries of one bucket; there are none beyond the last.
    pub fn in_bucket(&self, bucket: usize) -> impl Iterator<Item = Sighting> + '_ {
        let ways = self.buckets.get(bucket).into_iter().flat_map(|bucket| bucket.keys.iter().zip(&bucket.entries));
        ways.filter(|(key, entry)| **key != 0 && self.is_live(**entry)).map(|(key, entry)| {
            let age = || u64::from(self.now.wrapping_sub(entry.seen())) << self.coarse_shift;
            let is_fixed = entry.origin() == Origin::Fixed;
            Sighting { station: Station(*key), port: entry.port(), age: (!is_fixed).then(age) }
        })
    }

    /// Removes what is no longer live from one bucket, the next in turn; called now and then, it keeps the count true.
    pub fn sweep(&mut self) {
        let place = self.sweep;
        self.sweep = (place + 1) & (self.buckets.len() - 1);
        for way in 0..WAYS {
            if self.buckets[place].keys[way] != 0 && !self.is_live(self.buckets[place].entries[way]) {
                self.buckets[place].keys[way] = 0;
                self.entries -= 1;
            }
        }
    }
}

#[cfg(test)]
#[path = "fdb_tests.rs"]
mod tests;
