use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{FdbSpec, Learned};
use super::*;
use crate::units::{Nanos, Ticks};

const HZ: u64 = 1_000_000_000;
const TICK: u64 = HZ / 8;

fn fdb(capacity: u32, limits: impl IntoIterator<Item = u32>) -> Fdb {
    Fdb::new(&FdbSpec { capacity, ageing: Nanos(300 * HZ), entries: vec![], seed: 0 }, HZ).limited(limits)
}

fn station(number: u64) -> Station {
    Station::new(1, 0x0200_0000_0000 | number)
}

/// Learned stations that are live, by port.
fn live(fdb: &Fdb) -> BTreeMap<usize, usize> {
    let mut ports = BTreeMap::new();
    for seen in (0..fdb.buckets()).flat_map(|bucket| fdb.in_bucket(bucket)) {
        *ports.entry(seen.port).or_default() += usize::from(seen.age.is_some());
    }
    ports
}

#[test]
fn oldest_station_of_a_port_at_its_limit_gives_way() {
    let mut fdb = fdb(1024, [3, 3]);
    for number in 0..3 {
        fdb.set_time(Ticks(number * TICK));
        assert_eq!(fdb.learn_in_room(station(number), 0).learned, Learned::New);
    }
    fdb.set_time(Ticks(3 * TICK));
    fdb.learn_in_room(station(0), 0);
    assert_eq!(fdb.learn(station(9), 0), Learned::Limited);
    let evicted = [Some(Evicted { station: station(1), port: 0 }), None];
    assert_eq!(fdb.learn_in_room(station(9), 0), Admission { learned: Learned::New, evicted }, "the first sent again");
    assert_eq!((fdb.stations_of(0), fdb.evicted_of(0), fdb.lookup(station(1))), (3, 1, None));
    assert_eq!(fdb.learn(station(9), 1), Learned::New, "a move is no new station of the old port");
    assert_eq!((fdb.stations_of(0), fdb.stations_of(1)), (2, 1));
}

#[test]
fn stations_that_send_often_outlive_a_flood_at_their_port() {
    let mut fdb = fdb(4096, [500]);
    let mut next = 1000;
    for tick in 0..200 {
        fdb.set_time(Ticks(tick * TICK));
        for number in 0..20 {
            fdb.learn_in_room(station(number), 0);
        }
        let before = fdb.evicted_of(0);
        for _ in 0..if tick > 2 { 2000 } else { 0 } {
            next += 1;
            fdb.learn_in_room(station(next), 0);
        }
        assert!(fdb.evicted_of(0) - before <= 128, "a flood replaces a bounded number of stations in a tick");
        assert!(fdb.stations_of(0) <= 500);
        assert!((0..20).all(|number| fdb.lookup(station(number)) == Some(0)), "tick {tick}");
    }
    assert!(fdb.evicted_of(0) > 10_000);
}

#[test]
fn table_filled_by_some_ports_has_room_for_stations_of_others() {
    let mut fdb = fdb(16_384, []);
    fdb.set_time(Ticks(HZ));
    for number in 0..1000 {
        assert_eq!(fdb.learn_in_room(station(number), 2).learned, Learned::New);
    }
    for number in 0..60_000 {
        fdb.learn_in_room(station(1_000_000 + number * 7919), number as usize % 2);
    }
    assert!(fdb.len() > 16_000);
    for eighth in 0..20 {
        fdb.set_time(Ticks(HZ + eighth * TICK));
        for number in 0..64 {
            let number = 100_000 + 64 * eighth + number;
            assert_eq!(fdb.learn_in_room(station(number), 3).learned, Learned::New);
            // The flood goes on.
            fdb.learn_in_room(station(9_000_000 + number), 0);
        }
    }
    assert!((0..1000).all(|number| fdb.lookup(station(number)) == Some(2)), "no known station of a small port is lost");
    assert!((0..1280).all(|number| fdb.lookup(station(100_000 + number)) == Some(3)), "nor a new one");
}

#[test]
fn port_with_few_stations_in_chosen_buckets_does_not_keep_out_others() {
    let mut fdb = fdb(64, []);
    let mine = station(1);
    let places = [fdb.first(mine), fdb.second(mine)];
    let is_beside = |other: &Station| places.contains(&fdb.first(*other)) && places.contains(&fdb.second(*other));
    let chosen: Vec<Station> = (1000..200_000).map(station).filter(is_beside).take(40).collect();
    for number in 10..20 {
        fdb.learn_in_room(station(number), 1);
    }
    for station in &chosen {
        fdb.learn_in_room(*station, 0);
    }
    assert!(fdb.stations_of(0) < fdb.stations_of(1) + 1, "{} stations", fdb.stations_of(0));
    assert_eq!(fdb.learn_in_room(mine, 1).learned, Learned::New);
    for station in &chosen {
        fdb.learn_in_room(*station, 0);
    }
    assert_eq!(fdb.lookup(mine), Some(1));
}

/// A database of a switch with random hash, unless `seed` is zero.
fn seeded(capacity: u32, seed: u64) -> Fdb {
    Fdb::new(&FdbSpec { capacity, ageing: Nanos(300 * HZ), entries: vec![], seed }, HZ)
}

/// Two hostile ports send addresses that share both buckets with a gateway in the fixed hash. Returns whether the
/// gateway, whose port has most stations, keeps its entry, and whether it gets it back.
fn keeps_gateway(seed: u64) -> [bool; 2] {
    const GATEWAY: u64 = 1;
    let (fixed, mut fdb) = (seeded(1024, 0), seeded(1024, seed));
    let places = [fixed.first(station(GATEWAY)), fixed.second(station(GATEWAY))];
    let collides = |other: &Station| places.contains(&fixed.first(*other)) && places.contains(&fixed.second(*other));
    let chosen: Vec<Station> = (1_000..500_000).map(station).filter(collides).take(12).collect();
    assert_eq!(chosen.len(), 12, "few of the addresses that a host can send");
    (GATEWAY..50).for_each(|number| _ = fdb.learn_in_room(station(number), 2));
    for tick in 1..4 {
        fdb.set_time(Ticks(tick * TICK));
        chosen.iter().enumerate().for_each(|(index, station)| _ = fdb.learn_in_room(*station, index % 2));
    }
    let is_kept = fdb.lookup(station(GATEWAY)) == Some(2);
    fdb.learn_in_room(station(GATEWAY), 2);
    [is_kept, fdb.lookup(station(GATEWAY)) == Some(2)]
}

#[test]
fn hosts_that_do_not_know_the_seed_cannot_choose_addresses_that_evict_another() {
    assert_eq!(keeps_gateway(0), [false; 2], "with a known hash a dozen addresses suffice");
    assert!((1..100).all(|seed| keeps_gateway(seed) == [true; 2]));
}

/// Addresses at equal distances, such as those of a rack of equal cards.
#[test]
fn consecutive_stations_find_places_with_each_seed() {
    for seed in 0..60 {
        for step in [1, 2, 3, 4, 16, 256] {
            let mut fdb = seeded(4096, seed);
            let refused = (1..2049).filter(|number| fdb.learn(station(number * step), 0) == Learned::Full).count();
            assert!(refused <= 60, "seed {seed}, step {step}: {refused} of 2,048 refused at half of the capacity");
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Seen { who: u64, port: usize },
    Heard { who: u64, port: usize },
    Gone { who: u64, port: usize },
    Down(usize),
    Ticks(u64),
    Swept,
}

const PORTS: usize = 4;
const LIMITS: [u32; PORTS] = [1, 3, 12, u32::MAX];

fn event() -> impl Strategy<Value = Event> {
    let at = || (0_u64..60, 0..PORTS);
    prop_oneof![
        20 => at().prop_map(|(who, port)| Event::Seen { who, port }),
        4 => at().prop_map(|(who, port)| Event::Heard { who, port }),
        2 => at().prop_map(|(who, port)| Event::Gone { who, port }),
        1 => (0..PORTS).prop_map(Event::Down),
        3 => prop_oneof![Just(1_u64), Just(100), Just(1300), Just(2600)].prop_map(Event::Ticks),
        2 => Just(Event::Swept),
    ]
}

proptest! {
    /// Counts by port agree with the table, no port has more stations than its limit by frames of its own, and a limit
    /// costs no other port a station.
    #[test]
    fn station_counts_by_port_agree_with_the_fdb(events in prop::collection::vec(event(), 1..300)) {
        let (mut fdb, mut now) = (fdb(32, LIMITS), 0);
        let mut heard = [0_u32; PORTS];
        for event in events {
            match event {
                Event::Seen { who, port } => {
                    let has_place = fdb.find(station(who)).is_some() || fdb.free_place(station(who)).is_some();
                    let is_over = fdb.stations_of(port) >= LIMITS[port];
                    let Admission { learned, evicted } = fdb.learn_in_room(station(who), port);
                    for evicted in evicted.into_iter().flatten() {
                        prop_assert_eq!(fdb.lookup(evicted.station), None);
                        prop_assert!(evicted.port == port || !has_place && !is_over, "a limit costs no other port a station");
                    }
                    if learned == Learned::New {
                        prop_assert!(fdb.stations_of(port) <= LIMITS[port].saturating_add(heard[port]));
                        prop_assert_eq!(fdb.lookup(station(who)), Some(port));
                    }
                }
                Event::Heard { who, port } => {
                    let Admission { learned, evicted } = fdb.learn_remote_in_room(station(who), port);
                    prop_assert!(learned != Learned::Full || evicted == [None; 2]);
                    heard[port] += 1;
                }
                Event::Gone { who, port } => {
                    let is_there = fdb.lookup(station(who)) == Some(port);
                    fdb.remove(Evicted { station: station(who), port });
                    prop_assert!(!is_there || fdb.lookup(station(who)).is_none());
                }
                Event::Down(port) => {
                    fdb.forget_port(port);
                    prop_assert_eq!(fdb.stations_of(port), 0);
                }
                Event::Ticks(ticks) => {
                    now += ticks;
                    fdb.set_time(Ticks(now * TICK));
                }
                Event::Swept => {
                    (0..fdb.buckets()).for_each(|_| fdb.sweep(|_, _| true));
                    let live = live(&fdb);
                    for port in 0..PORTS {
                        prop_assert_eq!(fdb.stations_of(port) as usize, live.get(&port).copied().unwrap_or(0));
                    }
                    prop_assert_eq!(fdb.len(), live.values().sum::<usize>());
                }
            }
        }
    }
}
