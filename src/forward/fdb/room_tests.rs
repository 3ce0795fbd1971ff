use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{FdbSpec, Learned};
use super::*;
use crate::units::{Nanos, Ticks};

const HZ: u64 = 1_000_000_000;
const TICK: u64 = HZ / 8;

fn fdb(capacity: u32, limits: impl IntoIterator<Item = u32>) -> Fdb {
    Fdb::new(&FdbSpec { capacity, ageing: Nanos(300 * HZ), entries: vec![] }, HZ).limited(limits)
}

fn station(number: u64) -> Station {
    Station::new(1, 0x0200_0000_0000 | number)
}

impl Fdb {
    /// Learns `station`, and makes room if it needs to.
    fn learn_in_room(&mut self, station: Station, port: usize) -> Learned {
        let mut learned = self.learn(station, port);
        for _ in 0..2 {
            if matches!(learned, Learned::Full | Learned::Limited) && self.make_room(station, port).is_some() {
                learned = self.learn(station, port);
            }
        }
        learned
    }
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
        assert_eq!(fdb.learn_in_room(station(number), 0), Learned::New);
    }
    fdb.set_time(Ticks(3 * TICK));
    fdb.learn_in_room(station(0), 0);
    assert_eq!(fdb.learn(station(9), 0), Learned::Limited);
    assert_eq!(fdb.make_room(station(9), 0), Some(Evicted { station: station(1), port: 0 }), "the first sent again");
    assert_eq!(fdb.learn(station(9), 0), Learned::New);
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
        assert_eq!(fdb.learn_in_room(station(number), 2), Learned::New);
    }
    for number in 0..60_000 {
        fdb.learn_in_room(station(1_000_000 + number * 7919), number as usize % 2);
    }
    assert!(fdb.len() > 16_000);
    for eighth in 0..20 {
        fdb.set_time(Ticks(HZ + eighth * TICK));
        for number in 0..64 {
            let number = 100_000 + 64 * eighth + number;
            assert_eq!(fdb.learn_in_room(station(number), 3), Learned::New);
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
    let places = [fdb.first(mine), fdb.second(mine.to_number())];
    let is_beside =
        |other: &Station| places.contains(&fdb.first(*other)) && places.contains(&fdb.second(other.to_number()));
    let chosen: Vec<Station> = (1000..200_000).map(station).filter(is_beside).take(40).collect();
    for number in 10..20 {
        fdb.learn_in_room(station(number), 1);
    }
    for station in &chosen {
        fdb.learn_in_room(*station, 0);
    }
    assert!(fdb.stations_of(0) < fdb.stations_of(1) + 1, "{} stations", fdb.stations_of(0));
    assert_eq!(fdb.learn_in_room(mine, 1), Learned::New);
    for station in &chosen {
        fdb.learn_in_room(*station, 0);
    }
    assert_eq!(fdb.lookup(mine), Some(1));
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
    fn shares_agree_with_the_table(events in prop::collection::vec(event(), 1..300)) {
        let (mut fdb, mut now) = (fdb(32, LIMITS), 0);
        let mut heard = [0_u32; PORTS];
        for event in events {
            match event {
                Event::Seen { who, port } => {
                    let mut learned = fdb.learn(station(who), port);
                    for _ in 0..2 {
                        if !matches!(learned, Learned::Full | Learned::Limited) {
                            break;
                        }
                        let has_place = fdb.find(station(who)).is_some() || fdb.free_place(station(who)).is_some();
                        let is_limited = learned == Learned::Limited;
                        let Some(evicted) = fdb.make_room(station(who), port) else { break };
                        prop_assert_eq!(fdb.lookup(evicted.station), None);
                        prop_assert!(evicted.port == port || !has_place && !is_limited, "a limit costs no other port a station");
                        learned = fdb.learn(station(who), port);
                    }
                    if learned == Learned::New {
                        prop_assert!(fdb.stations_of(port) <= LIMITS[port].saturating_add(heard[port]));
                        prop_assert_eq!(fdb.lookup(station(who)), Some(port));
                    }
                }
                Event::Heard { who, port } => {
                    if fdb.learn_remote(station(who), port) == Learned::Full
                        && fdb.make_room_remote(station(who), port).is_some()
                    {
                        prop_assert_ne!(fdb.learn_remote(station(who), port), Learned::Full);
                    }
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
                    (0..fdb.buckets()).for_each(|_| fdb.sweep());
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
