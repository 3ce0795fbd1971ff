//! Room in the database: which station gives way when a port is at its limit, or when the table is full.

use super::{Entry, Fdb, Learned, Origin, Station, WAYS};
use crate::sets::{MAX_PORTS, PortSet};

/// Most places of a port that one eviction examines.
const EXAMINED: usize = 32;

/// A port with more of the places of two buckets than this gives way there, even if others have more in the table. So
/// addresses that fall into chosen buckets cannot take them all.
const MOST_OF_TWO_BUCKETS: usize = 2 * WAYS - 2;

/// A station that gave way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evicted {
    /// The station.
    pub station: Station,
    /// Index of the port that led to it.
    pub port: usize,
}

/// The result of learning a station to which others may give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// The result of the last attempt.
    pub learned: Learned,
    /// The stations that gave way.
    pub evicted: [Option<Evicted>; 2],
}

impl Fdb {
    /// Sets the most stations of each port. A port that is not among `limits` has no limit.
    #[must_use]
    pub fn limited(mut self, limits: impl IntoIterator<Item = u32>) -> Self {
        limits.into_iter().take(MAX_PORTS).enumerate().for_each(|(port, limit)| self.shares.set_limit(port, limit));
        self
    }

    /// Sets the most stations of `port`. Those that it has beyond stay until others come.
    pub fn set_limit(&mut self, port: usize, limit: u32) {
        self.shares.set_limit(port, limit);
    }

    /// Stations learned at `port`, including aged ones that no sweep has removed yet.
    #[must_use]
    pub fn stations_of(&self, port: usize) -> u32 {
        self.shares.stations(port)
    }

    /// Stations of `port` that gave way to others.
    #[must_use]
    pub fn evicted_of(&self, port: usize) -> u64 {
        self.shares.evicted(port)
    }

    /// Ports whose stations or evictions have changed in number since the previous call.
    #[inline]
    pub fn take_changed_shares(&mut self) -> PortSet {
        self.shares.take_changed()
    }

    /// Learns `station` at `port` like [`Fdb::learn`]. If that returns `Limited` or `Full`, others give way: one
    /// because of the limit of the port, and one because of the table.
    ///
    /// At its limit, the port's own oldest station gives way. If both buckets of the station are full, the oldest
    /// station there gives way of the port that has most; at the port's limit, its own oldest there. The number of
    /// places that are examined is bounded, for each call and for each port and coarse tick.
    #[cold]
    pub fn learn_in_room(&mut self, station: Station, port: usize) -> Admission {
        let mut admission = Admission { learned: self.learn(station, port), evicted: [None; 2] };
        for evicted in &mut admission.evicted {
            if !matches!(admission.learned, Learned::Limited | Learned::Full) {
                break;
            }
            let Some(place) = self.place_to_clear(station, port) else { break };
            *evicted = Some(self.evict(place));
            admission.learned = self.learn(station, port);
        }
        admission
    }

    /// Learns `station` like [`Fdb::learn_remote`]. If the table is full, another gives way: the lcore that has learned
    /// the station keeps the limits of ports and bounds the evictions.
    #[cold]
    pub fn learn_remote_in_room(&mut self, station: Station, port: usize) -> Admission {
        let mut admission = Admission { learned: self.learn_remote(station, port), evicted: [None; 2] };
        if admission.learned == Learned::Full
            && let Some(place) = self.oldest_of_most(station, port, true)
        {
            admission.evicted[0] = Some(self.evict(place));
            admission.learned = self.learn_remote(station, port);
        }
        admission
    }

    /// The place whose station gives way to `station`, which cannot be learned at `port`.
    fn place_to_clear(&mut self, station: Station, port: usize) -> Option<usize> {
        if self.find(station).is_some() || self.free_place(station).is_some() {
            return self.oldest_of(port);
        }
        let may_look = self.shares.take_look(port, self.now);
        may_look.then(|| self.oldest_of_most(station, port, !self.shares.is_at_limit(port))).flatten()
    }

    /// Forgets a station of `port` that gave way on another lcore.
    pub fn remove(&mut self, evicted: Evicted) {
        let Some((bucket, way)) = self.find(evicted.station) else { return };
        let entry = self.buckets[bucket].entries[way];
        if entry.origin() != Origin::Fixed && entry.port() == evicted.port {
            self.clear(bucket * WAYS + way);
            self.change();
        }
    }

    /// The oldest station of `port` that has not sent again since it came to its place in the order. A station that has
    /// goes to the end, so that a flood of addresses that send once does not evict stations that send often. If all
    /// that may be examined have sent again, the one of these that was silent for longest.
    fn oldest_of(&mut self, port: usize) -> Option<usize> {
        let (mut oldest, mut requeued) = (None, None);
        for _ in 0..EXAMINED {
            let Some((place, placed)) = self.shares.oldest(port) else { break };
            if requeued == Some(place) {
                break;
            }
            if !self.shares.take_look(port, self.now) {
                return None;
            }
            let entry = self.entry(place);
            let is_active = entry.seen().wrapping_sub(placed).cast_signed() > 0 && self.is_live(entry);
            if !is_active {
                return Some(place);
            }
            self.shares.requeue(place, port, entry.seen());
            requeued = requeued.or(Some(place));
            let age = self.age(entry);
            if oldest.is_none_or(|(_, longest)| age > longest) {
                oldest = Some((place, age));
            }
        }
        oldest.map(|(place, _)| place)
    }

    /// The oldest station in the two full buckets of `station` of the port that has most, or more than
    /// [`MOST_OF_TWO_BUCKETS`] here. `None` if no port would have more than `port` with its new station. Unless
    /// `takes_others`, a station of `port` itself.
    fn oldest_of_most(&self, station: Station, port: usize, takes_others: bool) -> Option<usize> {
        let learned = || self.places(station).filter(|&place| self.entry(place).origin() != Origin::Fixed);
        let mut here = [0_u8; MAX_PORTS];
        here[port % MAX_PORTS] = 1;
        learned().for_each(|place| here[self.entry(place).port() % MAX_PORTS] += 1);
        let weight = |of: usize| {
            let stations = self.shares.stations(of) + u32::from(of == port);
            (usize::from(here[of % MAX_PORTS]) > MOST_OF_TWO_BUCKETS, stations)
        };
        let rank = |place: usize| {
            let entry = self.entry(place);
            let is_eligible = entry.port() == port || takes_others && weight(entry.port()) > weight(port);
            is_eligible.then(|| ((weight(entry.port()), self.age(entry)), place))
        };
        learned().filter_map(rank).max_by_key(|(rank, _)| *rank).map(|(_, place)| place)
    }

    fn age(&self, entry: Entry) -> u32 {
        self.now.wrapping_sub(entry.seen())
    }

    fn evict(&mut self, place: usize) -> Evicted {
        let (bucket, way) = (place / WAYS, place % WAYS);
        let (station, entry) = (Station(self.buckets[bucket].keys[way]), self.buckets[bucket].entries[way]);
        if self.is_live(entry) {
            self.shares.count_evicted(entry.port());
        }
        self.clear(place);
        self.change();
        Evicted { station, port: entry.port() }
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
