//! Static entries that change while the switch runs.
//!
//! The place of a static entry follows from the static entries before it alone, never from learned ones. So every
//! database that has seen the same changes finds room for the same entries: one can be asked for all.

use std::collections::BTreeMap;

use super::{Entry, Fdb, FdbSpec, Origin, Station, WAYS};
use crate::wire::MacAddr;

/// A change of the static entry of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticChange {
    /// The station.
    pub station: Station,
    /// Index of the port that leads to it; `None`: it has no static entry any more.
    pub port: Option<u8>,
}

impl StaticChange {
    /// The changes from the entries of `running` to those of `wanted`. Those that make room come first.
    #[must_use]
    pub fn between(running: &FdbSpec, wanted: &FdbSpec) -> Vec<Self> {
        let ports = |spec: &FdbSpec| -> BTreeMap<(u16, MacAddr), u8> {
            spec.entries.iter().map(|entry| ((entry.vlan, entry.mac), entry.port)).collect()
        };
        let change = |&(vlan, mac): &(u16, MacAddr), port| Self { station: Station::new(vlan, mac.to_number()), port };
        let (before, after) = (ports(running), ports(wanted));
        let gone = before.keys().filter(|key| !after.contains_key(key)).map(|key| change(key, None));
        let new = after.iter().filter(|(key, port)| before.get(key) != Some(port));
        gone.chain(new.map(|(key, port)| change(key, Some(*port)))).collect()
    }
}

/// A learned station that a static entry displaces.
struct Displaced {
    station: Station,
    entry: Entry,
}

impl Fdb {
    /// Makes, moves or removes a static entry. A learned entry of the station gives way; one of another station in its
    /// place moves, or gives way if it has no other place. Returns false, and changes nothing, if all places of the
    /// station have static entries of others.
    #[cold]
    pub fn set_static(&mut self, change: StaticChange) -> bool {
        let StaticChange { station, port } = change;
        let known = self.find(station).map(|(bucket, way)| bucket * WAYS + way);
        let own = known.filter(|place| port.is_some() || self.entry(*place).origin() == Origin::Fixed);
        let Some(port) = port else {
            own.into_iter().for_each(|place| self.clear(place));
            self.change();
            return true;
        };
        let Some(place) = self.fixed_place(station) else { return false };
        own.into_iter().for_each(|place| self.clear(place));
        let displaced = self.displace(place);
        self.store(place, station, Entry::new(self.now, 0, port, Origin::Fixed));
        displaced.into_iter().for_each(|displaced| self.resettle(displaced));
        self.change();
        true
    }

    /// The first place of `station` without a static entry of another.
    pub(super) fn fixed_place(&self, station: Station) -> Option<usize> {
        let is_taken = |place: usize| {
            let is_own = self.buckets[place / WAYS].keys[place % WAYS] == station.0;
            !self.is_vacant(place) && !is_own && self.entry(place).origin() == Origin::Fixed
        };
        self.places(station).find(|place| !is_taken(*place))
    }

    /// Empties a place. Returns the live station that was there.
    fn displace(&mut self, place: usize) -> Option<Displaced> {
        let (station, entry) = (Station(self.buckets[place / WAYS].keys[place % WAYS]), self.entry(place));
        let is_there = !self.is_vacant(place) && self.is_live(entry);
        self.clear(place);
        is_there.then_some(Displaced { station, entry })
    }

    /// Gives a displaced station its other place, if that is free.
    fn resettle(&mut self, Displaced { station, entry }: Displaced) {
        let Some(place) = self.free_place(station) else { return self.shares.count_evicted(entry.port()) };
        self.clear(place);
        self.store(place, station, entry);
        self.shares.add(place, entry.port(), entry.seen());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Learned, StaticEntry};
    use super::*;
    use crate::units::{Nanos, Ticks};

    const HZ: u64 = 1_000_000_000;

    fn station(number: u16) -> Station {
        Station::new(1, MacAddr::local(9, number).to_number())
    }

    fn spec(capacity: u32, entries: impl IntoIterator<Item = (u16, u8)>) -> FdbSpec {
        let entry = |(number, port)| StaticEntry { vlan: 1, mac: MacAddr::local(9, number), port };
        FdbSpec { capacity, ageing: Nanos(10 * HZ), entries: entries.into_iter().map(entry).collect(), seed: 0 }
    }

    fn fixed(number: u16, port: u8) -> StaticChange {
        StaticChange { station: station(number), port: Some(port) }
    }

    fn gone(number: u16) -> StaticChange {
        StaticChange { station: station(number), port: None }
    }

    #[test]
    fn changes_name_each_entry_that_differs_and_removals_come_first() {
        let (running, wanted) = (spec(64, [(1, 1), (2, 2), (3, 3)]), spec(64, [(2, 2), (3, 4), (5, 5)]));
        assert_eq!(StaticChange::between(&running, &wanted), [gone(1), fixed(3, 4), fixed(5, 5)]);
        assert_eq!(StaticChange::between(&running, &running), []);
    }

    #[test]
    fn static_entry_replaces_a_learned_one_moves_and_leaves_no_trace() {
        let mut fdb = Fdb::new(&spec(64, []), HZ);
        fdb.learn(station(1), 3);
        fdb.learn(station(2), 3);
        let version = fdb.version();
        assert!(fdb.set_static(fixed(1, 7)));
        assert_ne!(fdb.version(), version, "cached answers are void");
        assert_eq!((fdb.lookup(station(1)), fdb.stations_of(3), fdb.stations_of(7), fdb.len()), (Some(7), 1, 0, 2));
        fdb.learn(station(1), 3);
        fdb.set_time(Ticks(1000 * HZ));
        assert_eq!(fdb.lookup(station(1)), Some(7), "it neither moves nor ages");
        assert!(fdb.set_static(fixed(1, 8)));
        assert_eq!(fdb.lookup(station(1)), Some(8));
        assert!(fdb.set_static(gone(1)) && fdb.set_static(gone(1)));
        assert_eq!((fdb.lookup(station(1)), fdb.len()), (None, 1));
        fdb.learn(station(1), 3);
        assert!(fdb.set_static(gone(1)));
        assert_eq!(fdb.lookup(station(1)), Some(3), "a learned one stays");
    }

    #[test]
    fn learned_station_that_a_static_entry_displaces_finds_another_place_or_is_counted() {
        let mut fdb = Fdb::new(&spec(16, []), HZ);
        let learned: Vec<u16> = (0..12).filter(|&number| fdb.learn(station(number), 3) == Learned::New).collect();
        let (mut number, mut wanted) = (100, Vec::new());
        while wanted.len() < 8 {
            if fdb.set_static(fixed(number, 5)) {
                wanted.push(number);
            }
            number += 1;
        }
        assert!(wanted.iter().all(|&number| fdb.lookup(station(number)) == Some(5)));
        let left = learned.iter().filter(|&&number| fdb.lookup(station(number)) == Some(3)).count();
        assert_eq!(left as u64 + fdb.evicted_of(3), learned.len() as u64, "each stays or is counted");
        assert_eq!((fdb.stations_of(3) as usize, fdb.len()), (left, left + wanted.len()));
        assert!(left >= 4, "{left} of {} stay in the eight other places", learned.len());
    }

    /// Learned stations do not decide whether a static one finds a place, nor where.
    #[test]
    fn databases_with_other_learned_stations_take_the_same_static_entries() {
        let (mut empty, mut full) = (Fdb::new(&spec(64, [(1, 1)]), HZ), Fdb::new(&spec(64, [(1, 1)]), HZ));
        let places = |fdb: &Fdb| {
            let fixed = |bucket| fdb.in_bucket(bucket).filter(|seen| seen.age.is_none()).map(|seen| seen.station);
            (0..fdb.buckets()).map(|bucket| fixed(bucket).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let (mut refused, mut next) = (0, 7_u32);
        for step in 0..5_000_u16 {
            next = next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (next >> 24) as u16;
            full.learn(station(1000 + step), usize::from(step % 8));
            full.set_time(Ticks(u64::from(step) * HZ / 8));
            let change = if next >> 20 & 3 == 0 { gone(number) } else { fixed(number, (number % 5) as u8) };
            let is_made = empty.set_static(change);
            assert_eq!(full.set_static(change), is_made, "{change:?}");
            refused += u32::from(!is_made);
            assert_eq!(places(&full), places(&empty), "after {change:?}");
        }
        assert!(refused > 100, "the places are scarce: {refused}");
    }
}
