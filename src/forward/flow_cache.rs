//! A cache of forwarding decisions by pair of source and destination station.
//!
//! A frame needs two look-ups in the forwarding database, of its source and of its destination. An entry holds both
//! answers for a pair whose source is known at the ingress port and whose destination is behind another port of its
//! VLAN. A hit reads one cache line instead of two and takes a quarter of the instructions. The cache answers exactly
//! as the database would, because every change of the database ends all entries. It is bypassed for a while when too
//! many look-ups miss.

use super::Fdb;
use super::fdb::Station;
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
/// address (48). Second: source with its VLAN, which is the destination's too (60), upper half of the epoch (4).
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

impl CacheLookup {
    #[inline]
    fn words(self, dst: Station, src: Station) -> (u64, u64) {
        (dst.to_number() >> 12 << 16 | self.first, src.to_number() | self.second)
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
        Some(CacheLookup { first: ((port % MAX_PORTS) as u64) << 10 | lower << 6, second: upper << 60 })
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
    #[cfg(test)]
    pub fn give_up(&mut self) {
        self.bypass_left = u32::MAX;
    }

    #[inline]
    fn place(dst: Station, src: Station) -> usize {
        let both = dst.to_number() ^ src.to_number().rotate_left(32);
        (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SETS.ilog2())) as usize
    }

    /// Prefetches the set of a pair.
    #[inline]
    pub fn prefetch(&self, dst: Station, src: Station) {
        prefetch(&self.sets[Self::place(dst, src)]);
    }

    /// The egress port of a frame from `src` to `dst`, if the cache holds the pair.
    #[inline]
    #[must_use]
    pub fn get(&self, lookup: CacheLookup, dst: Station, src: Station) -> Option<usize> {
        let set = &self.sets[Self::place(dst, src)];
        let (first, second) = lookup.words(dst, src);
        // XOR with the key leaves the egress port of an entry that matches, and a larger number of any other entry:
        // each bit of the second word reaches bit 6 or above in one of the two shifts. At most one entry matches. The
        // minimum selects it without a branch, which would be mispredicted for every other frame.
        let left = |way: usize| {
            let rest = set.second[way] ^ second;
            set.first[way] ^ first | rest << 6 | rest >> 6
        };
        let egress = left(0).min(left(1));
        (egress <= EGRESS).then_some(egress as usize)
    }

    /// Counts a miss. `None` ends the look-ups of this burst: the frame has changed the database, which ended the
    /// epoch. A new epoch for each such frame would empty a part of the cache each time.
    #[inline]
    pub fn miss(&mut self, lookup: CacheLookup, fdb: &Fdb) -> Option<CacheLookup> {
        self.missed += 1;
        (self.version == fdb.version()).then_some(lookup)
    }

    /// Caches the database's answer after a miss: a frame from `src` to `dst` leaves by `egress`.
    #[cold]
    pub fn insert(&mut self, lookup: CacheLookup, dst: Station, src: Station, egress: usize) {
        let set = &mut self.sets[Self::place(dst, src)];
        let (first, second) = lookup.words(dst, src);
        // The newer entry moves to the second place; the older one is dropped.
        *set = Set { first: [first | egress as u64 & EGRESS, set.first[0]], second: [second, set.second[0]] };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::fdb::FdbSpec;
    use crate::units::{Nanos, Ticks};
    use proptest::prelude::*;

    const HZ: u64 = 1_000_000_000;

    fn fdb() -> Fdb {
        Fdb::new(&FdbSpec { capacity: 64, ageing: Nanos(2_000_000_000), entries: Vec::new() }, HZ)
    }

    /// Few stations in few VLANs, so that pairs repeat. `number` selects both.
    fn station(number: u8) -> Station {
        Station::new(1 + u16::from(number % 2), 0x0200_0000_0000 + u64::from(number / 2))
    }

    /// The answer of the database, as the switch computes it on a cache miss.
    fn usual(fdb: &Fdb, port: usize, dst: Station, src: Station) -> Option<usize> {
        let egress = fdb.lookup(dst)?;
        fdb.is_known(src, fdb.just_seen(port)).then_some(egress)
    }

    #[derive(Debug, Clone)]
    enum Event {
        Frame { port: usize, dst: u8, src: u8 },
        Heard { port: usize, who: u8 },
        ToldAgain(u8),
        Down(usize),
        Later(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            20 => (0_usize..3, 0_u8..8, 0_u8..8).prop_map(|(port, dst, src)| Event::Frame { port, dst, src }),
            1 => (0_usize..3, 0_u8..8).prop_map(|(port, who)| Event::Heard { port, who }),
            1 => (0_u8..8).prop_map(Event::ToldAgain),
            1 => (0_usize..3).prop_map(Event::Down),
            1 => (0_u64..1_000_000_000).prop_map(Event::Later),
        ]
    }

    proptest! {
        #[test]
        fn a_hit_answers_as_the_database_does(events in prop::collection::vec(event(), 1..400)) {
            let (mut fdb, mut cache, mut now) = (fdb(), FlowCache::default(), 0);
            for event in events {
                match event {
                    Event::Frame { port, dst, src } => {
                        let (dst, src) = (station(dst), station(src & !1 | dst & 1));
                        let lookup = cache.begin(port, 1, &fdb).unwrap();
                        let expected = usual(&fdb, port, dst, src);
                        match (cache.get(lookup, dst, src), expected) {
                            (Some(egress), _) => prop_assert_eq!(Some(egress), expected),
                            (None, Some(egress)) => {
                                cache.insert(lookup, dst, src, egress);
                                prop_assert_eq!(cache.get(lookup, dst, src), Some(egress));
                            }
                            (None, None) => _ = fdb.learn(src, port),
                        }
                    }
                    Event::Heard { port, who } => _ = fdb.learn_remote(station(who), port),
                    Event::ToldAgain(who) => fdb.readvertise(station(who)),
                    Event::Down(port) => fdb.forget_port(port),
                    Event::Later(ticks) => {
                        now += ticks;
                        fdb.set_time(Ticks(now));
                    }
                }
            }
        }
    }

    /// Two learned stations, behind ports 0 and 1, and the cached flow between them.
    fn with_one_flow() -> (Fdb, FlowCache, Station, Station) {
        let (mut fdb, mut cache) = (fdb(), FlowCache::default());
        let (one, other) = (station(0), station(2));
        fdb.learn(one, 0);
        fdb.learn(other, 1);
        let lookup = cache.begin(0, 1, &fdb).unwrap();
        cache.insert(lookup, other, one, 1);
        assert_eq!(cache.get(lookup, other, one), Some(1));
        (fdb, cache, one, other)
    }

    #[test]
    fn an_entry_belongs_to_its_ingress_port() {
        let (fdb, mut cache, one, other) = with_one_flow();
        let lookup = cache.begin(2, 1, &fdb).unwrap();
        assert_eq!(cache.get(lookup, other, one), None, "the source has moved");
        let lookup = cache.begin(0, 1, &fdb).unwrap();
        assert_eq!(cache.get(lookup, one, other), None, "the other way is another pair");
    }

    #[test]
    fn a_change_of_the_database_ends_the_lookup() {
        let (mut fdb, mut cache, one, _) = with_one_flow();
        let lookup = cache.begin(2, 1, &fdb).unwrap();
        assert!(cache.miss(lookup, &fdb).is_some(), "nothing has changed");
        fdb.learn(one, 2);
        assert!(cache.miss(lookup, &fdb).is_none(), "a station has moved");
    }

    #[test]
    fn no_entry_survives_until_its_epoch_returns() {
        let (mut fdb, mut cache, one, other) = with_one_flow();
        for _ in 0..3 * EPOCHS {
            fdb.forget_port(2);
            let lookup = cache.begin(0, 1, &fdb).unwrap();
            assert_eq!(cache.get(lookup, other, one), None);
        }
    }

    #[test]
    fn an_empty_place_matches_no_pair() {
        let (fdb, mut cache) = (fdb(), FlowCache::default());
        for port in 0..MAX_PORTS {
            let lookup = cache.begin(port, 1, &fdb).unwrap();
            assert_eq!(cache.get(lookup, Station::new(0, 0), Station::new(0, 0)), None);
        }
    }

    #[test]
    fn two_pairs_share_a_set() {
        let (fdb, mut cache) = (fdb(), FlowCache::default());
        let lookup = cache.begin(0, 1, &fdb).unwrap();
        let dst = Station::new(1, 1);
        let place = |number: u64| FlowCache::place(dst, Station::new(1, number));
        let others: Vec<u64> = (3..1 << 20).filter(|&number| place(number) == place(2)).take(2).collect();
        for (egress, number) in [2, others[0], others[1]].into_iter().enumerate() {
            cache.insert(lookup, dst, Station::new(1, number), egress);
        }
        let found = [2, others[0], others[1]].map(|number| cache.get(lookup, dst, Station::new(1, number)));
        assert_eq!(found, [None, Some(1), Some(2)]);
    }

    proptest! {
        /// A pair that differs in any bit is not found.
        #[test]
        fn pair_that_differs_in_any_bit_misses(dst in 1_u64..1 << 48, src in 1_u64..1 << 48, other in (0_u64..1 << 48, 0_u64..1 << 48), port in 0..MAX_PORTS) {
            let (fdb, mut cache) = (fdb(), FlowCache::default());
            let lookup = cache.begin(port, 1, &fdb).unwrap();
            let station = |number: u64| Station::new(1, number);
            // Copies the entry to the place of the other pair, as if both hashed to one place.
            cache.insert(lookup, station(dst), station(src), 5);
            let set = cache.sets[FlowCache::place(station(dst), station(src))];
            let place = FlowCache::place(station(other.0), station(other.1));
            cache.sets[place] = set;
            let is_same = other == (dst, src);
            prop_assert_eq!(cache.get(lookup, station(other.0), station(other.1)), is_same.then_some(5));
            for bit in 0..48 {
                for near in [(dst ^ 1 << bit, src), (dst, src ^ 1 << bit)].map(|(dst, src)| (station(dst), station(src))) {
                    cache.sets[FlowCache::place(near.0, near.1)] = set;
                    prop_assert_eq!(cache.get(lookup, near.0, near.1), None, "bit {}", bit);
                }
            }
        }
    }

    #[test]
    fn too_many_misses_bypass_the_cache_for_a_while() {
        let (fdb, mut cache) = (fdb(), FlowCache::default());
        let mut frames: u32 = 0;
        // Every frame misses, as if each were of a new pair.
        while let Some(lookup) = cache.begin(0, 32, &fdb) {
            (0..32).for_each(|_| _ = cache.miss(lookup, &fdb));
            frames += 32;
            assert!(frames <= 2 * SAMPLE, "it should have given up");
        }
        let rested = (0..).take_while(|_| cache.begin(0, 32, &fdb).is_none()).count() as u32;
        assert!((BYPASS_FRAMES / 32 - 2..=BYPASS_FRAMES / 32).contains(&rested), "{rested} bursts");
        // Few misses keep the cache in use.
        for _ in 0..4 * SAMPLE / 32 {
            let lookup = cache.begin(0, 32, &fdb).expect("worth it");
            (0..7).for_each(|_| _ = cache.miss(lookup, &fdb));
        }
    }
}
