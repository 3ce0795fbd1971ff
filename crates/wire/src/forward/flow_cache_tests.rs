use super::*;
use crate::forward::fdb::{FdbSpec, Station};
use crate::units::{Nanos, Ticks};
use proptest::prelude::*;

const HZ: u64 = 1_000_000_000;

fn fdb() -> Fdb {
    Fdb::new(&FdbSpec { capacity: 64, ageing: Nanos(2_000_000_000), entries: Vec::new(), seed: 0 }, HZ)
}

/// Few stations in few VLANs, so that pairs repeat. `number` selects both.
fn station(number: u8) -> Station {
    Station::new(1 + u16::from(number % 2), 0x0200_0000_0000 + u64::from(number / 2))
}

fn pair(dst: Station, src: Station) -> StationPair {
    StationPair::new(src.vlan(), dst.to_number() >> 12, src.to_number() >> 12)
}

/// The answer of the cache.
fn get(cache: &FlowCache, lookup: CacheLookup, dst: Station, src: Station) -> Option<usize> {
    let place = cache.sets().prefetch(pair(dst, src));
    cache.get(lookup, place, pair(dst, src)).hit()
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
    fn flow_cache_hit_agrees_with_the_fdb(events in prop::collection::vec(event(), 1..400)) {
        let (mut fdb, mut cache, mut now) = (fdb(), FlowCache::default(), 0);
        for event in events {
            match event {
                Event::Frame { port, dst, src } => {
                    let (dst, src) = (station(dst), station(src & !1 | dst & 1));
                    let lookup = cache.begin(port, 1, &fdb).unwrap();
                    let expected = usual(&fdb, port, dst, src);
                    match (get(&cache, lookup, dst, src), expected) {
                        (Some(egress), _) => prop_assert_eq!(Some(egress), expected),
                        (None, Some(egress)) => {
                            cache.insert(lookup, pair(dst, src), egress);
                            prop_assert_eq!(get(&cache, lookup, dst, src), Some(egress));
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
    cache.insert(lookup, pair(other, one), 1);
    assert_eq!(get(&cache, lookup, other, one), Some(1));
    (fdb, cache, one, other)
}

#[test]
fn flow_cache_entry_matches_only_at_its_ingress_port() {
    let (fdb, mut cache, one, other) = with_one_flow();
    let lookup = cache.begin(2, 1, &fdb).unwrap();
    assert_eq!(get(&cache, lookup, other, one), None, "the source has moved");
    let lookup = cache.begin(0, 1, &fdb).unwrap();
    assert_eq!(get(&cache, lookup, one, other), None, "the other way is another pair");
}

#[test]
fn flow_cache_entry_does_not_survive_a_return_of_its_epoch() {
    let (mut fdb, mut cache, one, other) = with_one_flow();
    for _ in 0..3 * EPOCHS {
        fdb.forget_port(2);
        let lookup = cache.begin(0, 1, &fdb).unwrap();
        assert_eq!(get(&cache, lookup, other, one), None);
    }
}

#[test]
fn empty_place_of_the_flow_cache_matches_no_pair() {
    let (fdb, mut cache) = (fdb(), FlowCache::default());
    for port in 0..MAX_PORTS {
        let lookup = cache.begin(port, 1, &fdb).unwrap();
        assert_eq!(get(&cache, lookup, Station::new(0, 0), Station::new(0, 0)), None);
    }
}

#[test]
fn flow_cache_set_keeps_the_latest_two_pairs() {
    let (fdb, mut cache) = (fdb(), FlowCache::default());
    let lookup = cache.begin(0, 1, &fdb).unwrap();
    let dst = Station::new(1, 1);
    let place = |number: u64| CachePlace::of(pair(dst, Station::new(1, number)));
    let others: Vec<u64> = (3..1 << 20).filter(|&number| place(number) == place(2)).take(2).collect();
    for (egress, number) in [2, others[0], others[1]].into_iter().enumerate() {
        cache.insert(lookup, pair(dst, Station::new(1, number)), egress);
    }
    let found = [2, others[0], others[1]].map(|number| get(&cache, lookup, dst, Station::new(1, number)));
    assert_eq!(found, [None, Some(1), Some(2)]);
}

proptest! {
    /// A pair that differs in any bit is not found.
    #[test]
    fn flow_cache_misses_a_pair_that_differs_in_any_bit(dst in 1_u64..1 << 48, src in 1_u64..1 << 48, other in (0_u64..1 << 48, 0_u64..1 << 48), port in 0..MAX_PORTS) {
        let (fdb, mut cache) = (fdb(), FlowCache::default());
        let lookup = cache.begin(port, 1, &fdb).unwrap();
        let station = |number: u64| Station::new(1, number);
        let place = |dst, src| CachePlace::of(pair(dst, src)).index();
        // Copies the entry to the place of the other pair, as if both hashed to one place.
        cache.insert(lookup, pair(station(dst), station(src)), 5);
        let set = cache.sets[place(station(dst), station(src))];
        cache.sets[place(station(other.0), station(other.1))] = set;
        let is_same = other == (dst, src);
        prop_assert_eq!(get(&cache, lookup, station(other.0), station(other.1)), is_same.then_some(5));
        for bit in 0..48 {
            for near in [(dst ^ 1 << bit, src), (dst, src ^ 1 << bit)].map(|(dst, src)| (station(dst), station(src))) {
                cache.sets[place(near.0, near.1)] = set;
                prop_assert_eq!(get(&cache, lookup, near.0, near.1), None, "bit {}", bit);
            }
        }
    }
}

#[test]
fn too_many_misses_bypass_the_cache_for_a_while() {
    let (fdb, mut cache) = (fdb(), FlowCache::default());
    let mut frames: u32 = 0;
    // Every frame misses, as if each were of a new pair.
    while cache.begin(0, 32, &fdb).is_some() {
        (0..32).for_each(|_| cache.count_miss());
        frames += 32;
        assert!(frames <= 2 * SAMPLE, "it should have given up");
    }
    let rested = (0..).take_while(|_| cache.begin(0, 32, &fdb).is_none()).count() as u32;
    assert!((BYPASS_FRAMES / 32 - 2..=BYPASS_FRAMES / 32).contains(&rested), "{rested} bursts");
    // Few misses keep the cache in use.
    for _ in 0..4 * SAMPLE / 32 {
        assert!(cache.begin(0, 32, &fdb).is_some(), "worth it");
        (0..7).for_each(|_| cache.count_miss());
    }
}

#[test]
fn pairs_of_neighbouring_stations_have_sets_of_their_own() {
    // Addresses as hypervisors and tests give them: a port and a number.
    let address = |port: u64, number: u64| 2 << 40 | port << 32 | number;
    let to_next = |stations: u64| {
        (0..4).flat_map(move |port| {
            (0..stations).map(move |number| (address((port + 1) % 4, number), address(port, number)))
        })
    };
    let between_all = (0..8).flat_map(|one| {
        let others = (0..8).filter(move |&other| other != one);
        others.flat_map(move |other| (0..64).map(move |pair| (address(one, pair / 8), address(other, pair % 8))))
    });
    let cases: [(&str, Vec<(u64, u64)>); 3] =
        [("next", to_next(1024).collect()), ("more", to_next(4096).collect()), ("all", between_all.collect())];
    for (name, pairs) in cases {
        let mut pairs_of = vec![0_usize; SETS];
        pairs.iter().for_each(|&(dst, src)| pairs_of[CachePlace::of(StationPair::new(1, dst, src)).index()] += 1);
        let beyond: usize = pairs_of.iter().map(|pairs| pairs.saturating_sub(2)).sum();
        assert!(beyond * 100 <= pairs.len(), "{name}: {beyond} of {} pairs find their set full", pairs.len());
    }
}
