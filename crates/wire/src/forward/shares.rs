//! Shares of the forwarding database: how many stations each port has, and in which order they came.
//!
//! Each place of the table that holds a learned station is in one list: that of its port, the oldest first, or the list
//! of void places, whose port went down. The lists are doubly linked circles through a link for each place and a head
//! for each list. So each change takes a few stores, whatever the size of the table.

use crate::sets::{MAX_PORTS, PortSet};

/// Places that evictions may examine for a port in a coarse tick, an eighth of a second. A flood of addresses thus
/// replaces at most so many stations, and sends at most twice so many updates to other lcores.
pub const LOOKS: u32 = 128;

/// One place in its list.
#[derive(Debug, Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
    /// Coarse time at which the station was last seen when it came to the end of the list.
    placed: u32,
}

/// The share of one port.
#[derive(Debug, Clone, Copy)]
struct Share {
    stations: u32,
    limit: u32,
    evicted: u64,
    /// Places examined in the coarse tick `tick`.
    looks: u32,
    tick: u32,
}

/// The shares of all ports.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    /// A link for each place, then the head of each port's list, then the head of the void places.
    links: Box<[Link]>,
    /// Number of places.
    places: u32,
    ports: [Share; MAX_PORTS],
    /// Ports whose numbers have changed since [`Shares::take_changed`].
    changed: PortSet,
}

impl Shares {
    /// Shares of a table with `places` places, without limits.
    pub fn new(places: usize) -> Self {
        let link = |index: usize| Link { prev: index as u32, next: index as u32, placed: 0 };
        let share = Share { stations: 0, limit: u32::MAX, evicted: 0, looks: 0, tick: 0 };
        Self {
            links: (0..=places + MAX_PORTS).map(link).collect(),
            places: places as u32,
            ports: [share; MAX_PORTS],
            changed: PortSet::EMPTY,
        }
    }

    fn head(&self, port: usize) -> u32 {
        self.places + (port % MAX_PORTS) as u32
    }

    fn void_head(&self) -> u32 {
        self.places + MAX_PORTS as u32
    }

    /// Sets the most stations of `port`.
    pub fn set_limit(&mut self, port: usize, limit: u32) {
        self.ports[port % MAX_PORTS].limit = limit;
    }

    /// Whether `port` may have no further station.
    pub fn is_at_limit(&self, port: usize) -> bool {
        let share = &self.ports[port % MAX_PORTS];
        share.stations >= share.limit
    }

    /// Stations of `port`, including aged ones that no sweep has removed yet.
    pub fn stations(&self, port: usize) -> u32 {
        self.ports[port % MAX_PORTS].stations
    }

    /// Stations of `port` that gave way to others.
    pub fn evicted(&self, port: usize) -> u64 {
        self.ports[port % MAX_PORTS].evicted
    }

    /// Ports whose numbers have changed since the previous call.
    #[inline]
    pub fn take_changed(&mut self) -> PortSet {
        std::mem::take(&mut self.changed)
    }

    /// Adds the station at `place` to `port`, as its newest.
    pub fn add(&mut self, place: usize, port: usize, seen: u32) {
        self.append(place as u32, port, seen);
        self.ports[port % MAX_PORTS].stations += 1;
        self.changed.insert(port % MAX_PORTS);
    }

    /// Removes the station at `place`, which counts at `port` unless the port went down since.
    pub fn remove(&mut self, place: usize, port: Option<usize>) {
        self.unlink(place as u32);
        if let Some(port) = port {
            let share = &mut self.ports[port % MAX_PORTS];
            share.stations = share.stations.saturating_sub(1);
            self.changed.insert(port % MAX_PORTS);
        }
    }

    /// Counts a station of `port` that gave way.
    pub fn count_evicted(&mut self, port: usize) {
        self.ports[port % MAX_PORTS].evicted += 1;
        self.changed.insert(port % MAX_PORTS);
    }

    /// The oldest place of `port`, and the time at which its station was last seen when it was placed there.
    pub fn oldest(&self, port: usize) -> Option<(usize, u32)> {
        let first = self.links[self.head(port) as usize].next;
        (first < self.places).then(|| (first as usize, self.links[first as usize].placed))
    }

    /// Moves `place` to the end of the list of `port`, because its station was seen again at `seen`.
    pub fn requeue(&mut self, place: usize, port: usize, seen: u32) {
        self.unlink(place as u32);
        self.append(place as u32, port, seen);
    }

    /// Makes all places of `port` void.
    pub fn forget(&mut self, port: usize) {
        let (head, void) = (self.head(port), self.void_head());
        let Link { prev: last, next: first, .. } = self.links[head as usize];
        self.ports[port % MAX_PORTS].stations = 0;
        self.changed.insert(port % MAX_PORTS);
        if first == head {
            return;
        }
        self.join(head, head);
        self.join(self.links[void as usize].prev, first);
        self.join(last, void);
    }

    /// Takes one of the looks of `port` in the coarse tick `now`. Returns false if it has none left.
    pub fn take_look(&mut self, port: usize, now: u32) -> bool {
        let share = &mut self.ports[port % MAX_PORTS];
        if share.tick != now {
            (share.tick, share.looks) = (now, 0);
        }
        let is_left = share.looks < LOOKS;
        share.looks += u32::from(is_left);
        is_left
    }

    fn append(&mut self, place: u32, port: usize, seen: u32) {
        let head = self.head(port);
        self.join(self.links[head as usize].prev, place);
        self.join(place, head);
        self.links[place as usize].placed = seen;
    }

    fn unlink(&mut self, place: u32) {
        let Link { prev, next, .. } = self.links[place as usize];
        self.join(prev, next);
    }

    fn join(&mut self, before: u32, after: u32) {
        self.links[before as usize].next = after;
        self.links[after as usize].prev = before;
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
