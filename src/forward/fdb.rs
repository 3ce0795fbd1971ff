//! The forwarding database: (VLAN, address) to port, learned and static, in buckets of one cache line.

use crate::packet::MAX_PORTS;
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

/// What is known of one address.
#[derive(Debug, Default, Clone, Copy)]
struct Entry {
    /// Coarse time it was last seen.
    seen: u32,
    /// Generation of its port when it was learned: an entry of an older one is gone.
    generation: u16,
    port: u8,
    origin: Origin,
}

/// Where an entry comes from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Origin {
    /// A frame.
    #[default]
    Seen,
    /// News from another lcore: known a quarter of the ageing time late, and forgotten as much later.
    Heard,
    /// The configuration: neither ages nor moves.
    Fixed,
}

impl Origin {
    fn mark_heard(&mut self) {
        if *self != Self::Fixed {
            *self = Self::Heard;
        }
    }
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
    /// The ways that hold `key`, as a mask: at most one. No branch on the way, which nothing could predict.
    #[inline]
    fn matching(&self, key: u64) -> u32 {
        let [a, b, c, d] = self.keys.map(|held| u32::from(held == key));
        a | b << 1 | c << 2 | d << 3
    }
}

/// A station, and where it would be: of use only to the database that located it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    key: u64,
    first: u32,
}

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
            sweep: 0,
        };
        for entry in &spec.entries {
            if fdb.insert(fdb.locate(entry.vlan, entry.mac), entry.port, Origin::Fixed) == Learned::Full {
                return Err(*entry);
            }
        }
        Ok(fdb)
    }

    /// The coarse time of the burst that follows.
    #[inline]
    pub fn set_time(&mut self, now: Ticks) {
        self.now = (now.0 >> self.coarse_shift) as u32;
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

    /// 48 bits of address and 12 of VLAN. Never zero, since no station is at address zero.
    #[inline]
    fn key(vlan: u16, mac: MacAddr) -> u64 {
        let [a, b, c, d, e, f] = mac.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f]) << 12 | u64::from(vlan & 0xfff)
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

    #[inline]
    fn is_live(&self, entry: &Entry) -> bool {
        let ageing = if entry.origin == Origin::Heard { self.ageing_heard } else { self.ageing };
        entry.origin == Origin::Fixed
            || (self.now.wrapping_sub(entry.seen) <= ageing
                && entry.generation == self.generations[usize::from(entry.port) % MAX_PORTS])
    }

    /// Where a station would be. A burst locates all of its stations before it needs the first, so that the misses of
    /// a large table overlap.
    #[inline]
    #[must_use]
    pub fn locate(&self, vlan: u16, mac: MacAddr) -> Spot {
        let key = Self::key(vlan, mac);
        Spot { key, first: (Self::hash(key) >> self.shift) as u32 }
    }

    /// Brings what is at `spot` near the core. The value means nothing; it must be used only so that the load is not
    /// optimised away.
    #[inline]
    #[must_use]
    pub fn touch(&self, spot: Spot) -> u64 {
        self.buckets[spot.first as usize].keys[0]
    }

    #[inline]
    fn find(&self, spot: Spot) -> Option<(usize, usize)> {
        let first = spot.first as usize;
        let ways = self.buckets[first].matching(spot.key);
        if ways != 0 {
            return Some((first, ways.trailing_zeros() as usize));
        }
        let second = self.second(spot.key);
        let ways = self.buckets[second].matching(spot.key);
        (ways != 0).then_some((second, ways.trailing_zeros() as usize))
    }

    /// Port behind which the station of `spot` is.
    #[inline]
    #[must_use]
    pub fn lookup(&self, spot: Spot) -> Option<usize> {
        let (place, way) = self.find(spot)?;
        let entry = &self.buckets[place].entries[way];
        self.is_live(entry).then_some(usize::from(entry.port))
    }

    /// The station of `spot` was seen as a source on `port`.
    #[inline]
    pub fn learn(&mut self, spot: Spot, port: usize) -> Learned {
        let generation = self.generations[port % MAX_PORTS];
        if let Some((place, way)) = self.find(spot) {
            let now = self.now;
            let entry = &mut self.buckets[place].entries[way];
            if usize::from(entry.port) == port && entry.generation == generation || entry.origin == Origin::Fixed {
                // Written only when it changes: a line that stays clean stays shared.
                let before = entry.seen;
                if before == now || entry.origin == Origin::Fixed {
                    return Learned::Known;
                }
                (entry.seen, entry.origin) = (now, Origin::Seen);
                // Each station has a phase of its own, or all that speak would be refreshed in one instant.
                let phase = (Self::hash(spot.key) >> 32) as u32;
                let quarter = |time: u32| time.wrapping_add(phase) >> self.refresh_shift;
                return if quarter(before) == quarter(now) { Learned::Known } else { Learned::Refreshed };
            }
            *entry = Entry { seen: now, generation, port: port as u8, origin: Origin::Seen };
            return Learned::New;
        }
        self.insert(spot, port as u8, Origin::Seen)
    }

    #[cold]
    fn insert(&mut self, spot: Spot, port: u8, origin: Origin) -> Learned {
        let Spot { key, first } = spot;
        for place in [first as usize, self.second(key)] {
            for way in 0..WAYS {
                let vacant = self.buckets[place].keys[way] == 0;
                if vacant || !self.is_live(&self.buckets[place].entries[way]) {
                    self.entries += u32::from(vacant);
                    let generation = self.generations[usize::from(port) % MAX_PORTS];
                    let bucket = &mut self.buckets[place];
                    bucket.keys[way] = key;
                    bucket.entries[way] = Entry { seen: self.now, generation, port, origin };
                    return Learned::New;
                }
            }
        }
        Learned::Full
    }

    /// Other databases could not be told of the station of `spot`: with its next frame it is [`Learned::Refreshed`] again.
    #[cold]
    pub fn tell_again(&mut self, spot: Spot) {
        if let Some((place, way)) = self.find(spot) {
            let entry = &mut self.buckets[place].entries[way];
            entry.seen = self.now.wrapping_sub(1 << self.refresh_shift);
        }
    }

    /// Another lcore has seen the station of `spot` at `port`: it says so four times in an ageing time, so that what it
    /// says is remembered for a quarter longer.
    pub fn hear(&mut self, spot: Spot, port: usize) -> Learned {
        let learned = self.learn(spot, port);
        if learned != Learned::Full
            && let Some((place, way)) = self.find(spot)
        {
            self.buckets[place].entries[way].origin.mark_heard();
        }
        learned
    }

    /// Forgets what was learned on `port`: its link went down.
    pub fn forget_port(&mut self, port: usize) {
        let generation = &mut self.generations[port % MAX_PORTS];
        *generation = generation.wrapping_add(1);
    }

    /// Removes what is no longer live from one bucket, the next in turn; called now and then, it keeps the count true.
    pub fn sweep(&mut self) {
        let place = self.sweep;
        self.sweep = (place + 1) & (self.buckets.len() - 1);
        for way in 0..WAYS {
            if self.buckets[place].keys[way] != 0 && !self.is_live(&self.buckets[place].entries[way]) {
                self.buckets[place].keys[way] = 0;
                self.entries -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Fdb {
        fn learn_at(&mut self, vlan: u16, mac: MacAddr, port: usize) -> Learned {
            self.learn(self.locate(vlan, mac), port)
        }

        fn port_of(&self, vlan: u16, mac: MacAddr) -> Option<usize> {
            self.lookup(self.locate(vlan, mac))
        }
    }

    const HZ: u64 = 1_000_000_000;

    #[test]
    fn a_station_is_refreshed_four_times_before_it_could_age() {
        let mut fdb = fdb(64, 300, vec![]);
        let refreshed = (0..1200_u64).filter(|quarter| {
            fdb.set_time(Ticks(quarter * HZ / 4));
            fdb.learn_at(1, mac(1), 3) == Learned::Refreshed
        });
        // A power of two of coarse ticks that is no more than a quarter, and more than an eighth, of the ageing time.
        assert!((4..=8).contains(&refreshed.count()));
    }

    #[test]
    fn a_station_nobody_could_be_told_of_stays_known_and_is_told_with_its_next_frame() {
        for ageing in [300, 0] {
            let mut fdb = fdb(64, ageing, vec![]);
            fdb.set_time(Ticks(1000 * HZ));
            assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::New);
            fdb.tell_again(fdb.locate(1, mac(1)));
            assert_eq!(fdb.port_of(1, mac(1)), Some(3));
            assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::Refreshed);
            assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::Known);
        }
    }

    #[test]
    fn stations_are_refreshed_at_different_times() {
        let mut fdb = fdb(4096, 300, vec![]);
        let mut most = 0;
        for eighth in 0..2400_u64 {
            fdb.set_time(Ticks(eighth * HZ / 8));
            let refreshed = (0..1000).filter(|&n| fdb.learn_at(1, mac(n), 1) == Learned::Refreshed).count();
            most = most.max(refreshed);
        }
        assert!((1..100).contains(&most), "{most} of 1000 at once");
    }

    #[test]
    fn what_was_heard_of_is_remembered_a_quarter_longer() {
        let mut fdb = fdb(64, 300, vec![]);
        fdb.hear(fdb.locate(1, mac(1)), 3);
        assert_eq!(fdb.learn_at(1, mac(2), 3), Learned::New);
        fdb.set_time(Ticks(370 * HZ));
        assert_eq!((fdb.port_of(1, mac(1)), fdb.port_of(1, mac(2))), (Some(3), None));
        fdb.set_time(Ticks(380 * HZ));
        assert_eq!(fdb.port_of(1, mac(1)), None);
    }

    fn fdb(capacity: u32, ageing_s: u64, entries: Vec<StaticEntry>) -> Fdb {
        Fdb::new(&FdbSpec { capacity, ageing: Nanos(ageing_s * 1_000_000_000), entries }, HZ)
    }

    fn mac(number: u16) -> MacAddr {
        MacAddr::local(9, number)
    }

    #[test]
    fn learns_moves_and_keeps_vlans_apart() {
        let mut fdb = fdb(1024, 300, vec![]);
        assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::New);
        assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::Known);
        assert_eq!(fdb.port_of(1, mac(1)), Some(3));
        assert_eq!(fdb.port_of(2, mac(1)), None);
        assert_eq!(fdb.learn_at(1, mac(1), 4), Learned::New);
        assert_eq!(fdb.port_of(1, mac(1)), Some(4));
        assert_eq!(fdb.len(), 1);
    }

    #[test]
    fn ages_after_its_time_and_not_before() {
        let mut fdb = fdb(1024, 10, vec![]);
        fdb.learn_at(1, mac(1), 3);
        fdb.set_time(Ticks(10 * HZ));
        assert_eq!(fdb.port_of(1, mac(1)), Some(3));
        fdb.set_time(Ticks(10 * HZ + HZ / 2));
        assert_eq!(fdb.port_of(1, mac(1)), None);
        for _ in 0..fdb.buckets.len() {
            fdb.sweep();
        }
        assert!(fdb.is_empty());
        assert_eq!(fdb.learn_at(1, mac(1), 5), Learned::New);
    }

    #[test]
    fn static_entries_neither_age_nor_move() {
        let entry = StaticEntry { vlan: 1, mac: mac(1), port: 7 };
        let mut fdb = fdb(1024, 10, vec![entry]);
        fdb.set_time(Ticks(1000 * HZ));
        fdb.forget_port(7);
        assert_eq!(fdb.learn_at(1, mac(1), 2), Learned::Known);
        assert_eq!(fdb.port_of(1, mac(1)), Some(7));
    }

    #[test]
    fn a_port_that_goes_down_is_forgotten() {
        let mut fdb = fdb(1024, 300, vec![]);
        fdb.learn_at(1, mac(1), 3);
        fdb.learn_at(1, mac(2), 4);
        fdb.forget_port(3);
        assert_eq!(fdb.port_of(1, mac(1)), None);
        assert_eq!(fdb.port_of(1, mac(2)), Some(4));
        assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::New);
        assert_eq!(fdb.port_of(1, mac(1)), Some(3));
    }

    #[test]
    fn fills_well_before_it_refuses_and_never_forgets_the_living() {
        let mut fdb = fdb(65_536, 300, vec![]);
        let learned = (0..=u16::MAX).filter(|&n| fdb.learn_at(1, mac(n), usize::from(n % 32)) == Learned::New).count();
        assert!(learned > 58_000, "two choices of four ways fill nine tenths, got {learned}");
        let found = (0..=u16::MAX).filter(|&n| fdb.port_of(1, mac(n)) == Some(usize::from(n % 32))).count();
        assert_eq!(found, learned);
        assert_eq!(fdb.len(), learned);
    }
}
