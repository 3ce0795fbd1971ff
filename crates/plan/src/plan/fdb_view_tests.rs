//! Tests of the window into a forwarding database.

use std::collections::BTreeSet;

use super::fdb_view::*;
use crate::forward::fdb::{Sighting, Station};
use crate::forward::{Fdb, FdbSpec, StaticEntry};
use crate::sets::PortSet;
use crate::units::{Nanos, Ticks};
use crate::wire::MacAddr;

fn station(number: u16) -> Station {
    Station::new(1 + number % 2, MacAddr::local(3, number).to_number())
}

/// Requests one part, and polls until it is published.
fn part(window: &FdbWindow, showing: &mut Showing, fdb: &Fdb, own: PortSet, from: usize) -> Part {
    window.ask(from);
    assert_eq!(window.answer(), None, "the table is not published yet");
    let asked = window.asked();
    for _ in 0..fdb.buckets().div_ceil(BUCKETS) {
        assert_ne!(showing.shown, asked);
        window.show(showing, asked, fdb, own);
        if let Some(part) = window.answer() {
            assert_eq!(showing.shown, asked);
            return part;
        }
    }
    panic!("the table was never published");
}

fn all(fdb: &Fdb, own: PortSet) -> Vec<Sighting> {
    let (window, mut showing) = (FdbWindow::default(), Showing::default());
    let mut entries = Vec::new();
    let mut from = Some(0);
    while let Some(bucket) = from {
        let part = part(&window, &mut showing, fdb, own, bucket);
        assert!(part.next.is_none_or(|next| next > bucket));
        entries.extend(part.entries);
        from = part.next;
    }
    entries
}

#[test]
fn every_station_of_ones_own_ports_is_shown_once_with_its_age() {
    let entry = StaticEntry { vlan: 9, mac: MacAddr::local(4, 1), port: 2 };
    let spec = FdbSpec { capacity: 4096, ageing: Nanos(100_000_000_000), entries: vec![entry], seed: 0 };
    let mut fdb = Fdb::new(&spec, 1000);
    for number in 0..2000 {
        fdb.learn(station(number), usize::from(number % 4));
    }
    fdb.set_time(Ticks(40_000));
    let shown = all(&fdb, PortSet::from_bits(0b0110));
    let stations: BTreeSet<u64> = shown.iter().map(|seen| seen.station.to_number()).collect();
    assert_eq!((shown.len(), stations.len()), (1001, 1001));
    let fixed = Sighting { station: Station::new(9, entry.mac.to_number()), port: 2, age: None };
    assert!(shown.contains(&fixed));
    for number in 0..2000 {
        let port = usize::from(number % 4);
        let is_own = port == 1 || port == 2;
        assert_eq!(stations.contains(&station(number).to_number()), is_own, "{number}");
        let age = shown.iter().find(|seen| seen.station == station(number)).map(|seen| (seen.port, seen.age));
        assert_eq!(age, is_own.then_some((port, Some(40_000 >> 6 << 6))), "{number}");
    }
}

#[test]
fn new_fdb_query_replaces_an_unfinished_one() {
    let mut fdb = Fdb::new(&FdbSpec { capacity: 4096, ageing: Nanos(0), entries: vec![], seed: 0 }, 1000);
    for number in 0..50 {
        fdb.learn(station(number), 0);
    }
    let (window, mut showing) = (FdbWindow::default(), Showing::default());
    window.ask(0);
    window.show(&mut showing, window.asked(), &fdb, PortSet::only(0));
    window.ask(0);
    assert_eq!(window.answer(), None);
    let asked = window.asked();
    (0..64).for_each(|_| window.show(&mut showing, asked, &fdb, PortSet::only(0)));
    assert_eq!(window.answer().expect("64 times 16 buckets are all").entries.len(), 50);
    fdb.forget_port(0);
    assert_eq!(part(&window, &mut showing, &fdb, PortSet::only(0), 0).entries, []);
    assert_eq!(part(&window, &mut showing, &fdb, PortSet::only(0), 1 << 40), Part { entries: vec![], next: None });
}
