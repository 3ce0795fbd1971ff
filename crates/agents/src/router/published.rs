//! The state of a router that its thread publishes for metrics. A reader copies it and never waits for the router.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::neighbours::{Key, NO_PORT, PortShare};
use super::{LinuxView, Router, RouterView};
use crate::route::AdjacencyId;

/// Most next hops with metrics of their own.
pub const MAX_NEXT_HOPS: usize = 256;

/// The published state.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Sums of the router's state.
    pub view: RouterView,
    /// Whether each interface is up, by index.
    pub interfaces_up: Vec<bool>,
    /// Next hops of routes, by interface and address; at most [`MAX_NEXT_HOPS`].
    pub next_hops: Vec<NextHopUse>,
    /// Next hops beyond these.
    pub more_next_hops: usize,
    /// Shares of the neighbours, by port; the last is for neighbours without a port.
    pub shares: Vec<PortShare>,
    /// The exchange with Linux; `None` if the router answers by itself.
    pub linux: Option<LinuxView>,
}

/// The use of a next hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHopUse {
    /// Index of its interface.
    pub interface: u16,
    /// Address.
    pub address: IpAddr,
    /// Whether packets go there now.
    pub is_usable: bool,
    /// Frames routed to it.
    pub frames: u64,
}

/// The latest state of a router. One thread publishes it; others read it.
#[derive(Debug, Default)]
pub struct Published(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    summary: Summary,
    traffic: Traffic,
}

impl Published {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the state of `router`. `frames` reads the counter of an adjacency.
    pub fn publish(&self, router: &Router, frames: impl Fn(AdjacencyId) -> u64) {
        // Made before the lock, so that a reader waits for a copy only.
        let view = router.view();
        let interfaces_up = router.interfaces.iter().map(|interface| interface.is_up).collect();
        let (hops, more_next_hops) = router.next_hops_view(MAX_NEXT_HOPS);
        let mut inner = self.lock();
        // Each change of an adjacency makes new tables.
        if inner.summary.view.version != view.version || view.version == 0 {
            inner.traffic.follow(router, &frames);
        }
        let next_hops = hops.iter().map(|hop| NextHopUse {
            interface: hop.interface,
            address: hop.address,
            is_usable: hop.is_usable,
            frames: inner.traffic.frames((hop.interface, hop.address), &frames),
        });
        let linux = router.linux_view().cloned();
        let (next_hops, shares) =
            (next_hops.collect(), (0..=NO_PORT).map(|port| router.neighbours.share(port)).collect());
        inner.summary = Summary { view, interfaces_up, next_hops, more_next_hops, shares, linux };
    }

    /// The latest state.
    #[must_use]
    pub fn get(&self) -> Summary {
        self.lock().summary.clone()
    }

    /// Neighbours in the share of `port` that gave way to others.
    #[must_use]
    pub fn evicted(&self, port: usize) -> u64 {
        self.lock().summary.shares.get(port).map_or(0, |share| share.evicted)
    }

    /// Frames of `port` that Linux did not get because their sender had no place in its neighbours.
    #[must_use]
    pub fn withheld(&self, port: usize) -> u64 {
        let inner = self.lock();
        inner.summary.linux.as_ref().and_then(|linux| linux.withheld.get(port)).copied().unwrap_or(0)
    }

    /// Frames routed to each of these neighbours. `frames` reads the counter of an adjacency.
    #[must_use]
    pub fn frames(&self, neighbours: &[Key], frames: impl Fn(AdjacencyId) -> u64) -> Vec<u64> {
        let inner = self.lock();
        neighbours.iter().map(|key| inner.traffic.frames(*key, &frames)).collect()
    }
}

/// Frames by neighbour. Counters belong to adjacency numbers, which another neighbour may get later.
#[derive(Debug, Default)]
struct Traffic(BTreeMap<Key, Counted>);

#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    /// Present number, and its counter when the neighbour got it.
    now: Option<(AdjacencyId, u64)>,
    /// Frames counted by earlier numbers.
    past: u64,
}

impl Traffic {
    /// Follows changed adjacency numbers. Forgets neighbours that the router no longer knows.
    fn follow(&mut self, router: &Router, frames: impl Fn(AdjacencyId) -> u64) {
        let mut followed = BTreeMap::new();
        for (key, neighbour) in router.neighbours.iter() {
            let mut counted = self.0.get(&key).copied().unwrap_or_default();
            if counted.now.map(|(id, _)| id) != neighbour.adjacency {
                counted.past += counted.now.map_or(0, |(id, base)| frames(id).saturating_sub(base));
                counted.now = neighbour.adjacency.map(|id| (id, frames(id)));
            }
            followed.insert(key, counted);
        }
        self.0 = followed;
    }

    fn frames(&self, key: Key, frames: impl Fn(AdjacencyId) -> u64) -> u64 {
        let Some(counted) = self.0.get(&key) else { return 0 };
        counted.past + counted.now.map_or(0, |(id, base)| frames(id).saturating_sub(base))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::route::{FibWriter, NextHopSpec, SoftFib};
    use crate::router::{Source, fixture};
    use crate::sets::PortSet;
    use crate::units::Nanos;
    use crate::wire::MacAddr;

    const NOW: Nanos = Nanos(1_000_000_000);

    fn router() -> Router {
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
        Router::new(&fixture::two_ports(), fibs, NOW)
    }

    fn confirm(router: &mut Router, interface: u16, last: u8) {
        let address = [10, 0, interface as u8, last].into();
        router.confirm_neighbour(interface, address, MacAddr([2, 0, 0, 0, interface as u8, last]), NOW);
        router.update();
        router.settle();
    }

    #[test]
    fn next_hops_of_routes_are_published_without_plain_neighbours() {
        let mut router = router();
        let hop = |interface: u16| NextHopSpec { address: [10, 0, interface as u8, 2].into(), interface, weight: 1 };
        router.set_route(Source::Static, "10.9.0.0/16".parse().unwrap(), &[hop(0), hop(1)], NOW);
        router.set_route(Source::Static, "10.8.0.0/16".parse().unwrap(), &[hop(1)], NOW);
        for (interface, last) in [(0, 2), (0, 3)] {
            confirm(&mut router, interface, last);
        }
        let published = Published::default();
        published.publish(&router, |_| 0);
        let summary = published.get();
        let hops: Vec<_> = summary.next_hops.iter().map(|hop| (hop.address.to_string(), hop.is_usable)).collect();
        assert_eq!(hops, [("10.0.0.2".to_owned(), true), ("10.0.1.2".to_owned(), false)]);
        assert_eq!((summary.more_next_hops, summary.interfaces_up.as_slice()), (0, &[true, true][..]));
        assert_eq!((summary.view.groups, summary.view.unresolved_groups), (4, 1));
        assert_eq!(router.next_hops_view(1).1, 1);
    }

    #[test]
    fn frames_follow_a_neighbour_to_another_adjacency() {
        let (mut router, published) = (router(), Published::default());
        let keys = [(0, IpAddr::from([10, 0, 0, 2])), (1, IpAddr::from([10, 0, 1, 2]))];
        // A next hop stays known.
        let hop = NextHopSpec { address: keys[0].1, interface: 0, weight: 1 };
        router.set_route(Source::Static, "10.9.0.0/16".parse().unwrap(), &[hop], NOW);
        confirm(&mut router, 0, 2);
        published.publish(&router, |_| 0);
        assert_eq!(published.frames(&keys, |_| 100), [100, 0]);
        // The first neighbour is lost after 100 frames. The other one gets its number.
        router.set_links(PortSet::only(1), NOW);
        router.update();
        router.settle();
        published.publish(&router, |_| 100);
        confirm(&mut router, 1, 2);
        published.publish(&router, |_| 100);
        assert_eq!(published.frames(&keys, |_| 130), [100, 30]);
    }
}
