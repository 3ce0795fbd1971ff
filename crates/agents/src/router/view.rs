//! The state of the router as tables and metrics show it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};

use super::neighbours::{NeighbourCounts, State};
use super::rib::{Source, Start, UsedRoute};
use super::{Router, RouterCounts};
use crate::route::{AdjacencyId, FibMemory, GroupId, NextHopSpec};
use crate::sets::MAX_PORTS;
use crate::units::Nanos;
use crate::wire::MacAddr;

/// Sums of the router's state.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RouterView {
    /// Routes by origin in the order of [`Source::TABLE`], IPv4 and IPv6.
    pub routes: [[usize; 2]; Source::TABLE.len()],
    /// Neighbours by state in the order of [`State::TABLE`].
    pub neighbours: [usize; State::TABLE.len()],
    /// Sets of next hops.
    pub groups: usize,
    /// Sets without a usable next hop: the packets of their routes are dropped.
    pub unresolved_groups: usize,
    /// One forwarding table; the switch has two.
    pub fib: FibMemory,
    /// Number of the last tables.
    pub version: u64,
    /// Packets that wait for their next hop.
    pub waiting: usize,
    /// Counters.
    pub counts: RouterCounts,
    /// Counters of neighbours.
    pub neighbour_counts: NeighbourCounts,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceView {
    /// Name.
    pub name: String,
    /// VLAN inside the switch.
    pub vlan: u16,
    /// MAC address.
    pub mac: MacAddr,
    /// Longest IP packet in bytes.
    pub mtu: u16,
    /// Whether one of its ports has a link, and it is not shut.
    pub is_up: bool,
    /// Whether Linux has shut it.
    pub is_shut: bool,
    /// Addresses with the lengths of their networks, the link-local one last.
    pub addresses: Vec<IpNet>,
}

/// The exchange with Linux, which answers for the router's addresses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LinuxView {
    /// Counters of each interface's tap, by index.
    pub taps: Vec<TapCounts>,
    /// Frames that Linux did not get because their sender had no place in its neighbours, by port.
    pub withheld: Vec<u64>,
    /// Whether the router has all routes, addresses and neighbours of Linux.
    pub is_synced: bool,
    /// Complete readings of the tables of Linux.
    pub dumps: u64,
    /// Losses of messages about changes, each of which causes a reading.
    pub overruns: u64,
    /// Messages that could not be parsed.
    pub malformed: u64,
    /// Entries of Linux that the mirror of its tables had no room for.
    pub refused: u64,
}

impl LinuxView {
    /// Nothing was exchanged yet by the taps of so many interfaces.
    #[must_use]
    pub fn new(interfaces: usize) -> Self {
        Self { taps: vec![TapCounts::default(); interfaces], withheld: vec![0; MAX_PORTS], ..Self::default() }
    }
}

/// Counters of the tap of an interface, by which Linux exchanges frames with it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TapCounts {
    /// Frames given to Linux.
    pub to_linux: u64,
    /// Frames that Linux did not take.
    pub to_linux_drops: u64,
    /// Frames of Linux that left.
    pub from_linux: u64,
    /// Frames of Linux that found every buffer to the packet path in use.
    pub from_linux_drops: u64,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighbourView {
    /// Index of its interface.
    pub interface: u16,
    /// IP address.
    pub address: IpAddr,
    /// MAC address; `None`: not known.
    pub mac: Option<MacAddr>,
    /// State.
    pub state: State,
    /// Time since it was confirmed; `None`: it never was.
    pub age: Option<Nanos>,
    /// Number of its adjacency.
    pub adjacency: Option<AdjacencyId>,
    /// Sets of next hops that it is a member of.
    pub uses: u32,
}

/// A route in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteView {
    /// Destinations.
    pub prefix: IpNet,
    /// Origin.
    pub source: Source,
    /// Next hops; none: it drops, or its hosts are their own next hops.
    pub next_hops: Vec<HopView>,
    /// The interface whose hosts are their own next hops.
    pub connected: Option<u16>,
    /// Whether it drops.
    pub drops: bool,
}

/// A part of the routes in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRange {
    /// Only routes behind this prefix in their order: IPv4 first, then by address, shorter prefixes first.
    pub after: Option<IpNet>,
    /// Only this prefix and more specific ones.
    pub within: Option<IpNet>,
    /// Only IPv6 or only IPv4.
    pub is_ipv6: Option<bool>,
    /// Most routes to return.
    pub most: usize,
    /// Most routes to look at. It bounds the time for which the router's thread forwards nothing.
    pub most_walked: usize,
}

impl RouteRange {
    fn start(&self) -> Start {
        let ipv6 = IpNet::V6(Ipv6Net::default());
        let after = self.after.map(|prefix| Start { prefix: prefix.trunc(), is_after: true });
        let within = self.within.map(|prefix| Start { prefix: prefix.trunc(), is_after: false });
        let family = (self.is_ipv6 == Some(true)).then_some(Start { prefix: ipv6, is_after: false });
        [after, within, family].into_iter().flatten().max().unwrap_or_default()
    }

    /// Whether `prefix`, which is not before the start, is before the end.
    fn contains(&self, prefix: IpNet) -> bool {
        let is_family = self.is_ipv6 != Some(false) || matches!(prefix, IpNet::V4(_));
        is_family && self.within.is_none_or(|within| within.contains(&prefix))
    }
}

/// A next hop of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopView {
    /// Address.
    pub address: IpAddr,
    /// Index of its interface.
    pub interface: u16,
    /// Share of the flows; zero where no single route is meant.
    pub weight: u16,
    /// Whether packets go there now.
    pub is_usable: bool,
}

impl Router {
    /// Sums of the state.
    #[must_use]
    pub fn view(&self) -> RouterView {
        RouterView {
            routes: Source::TABLE.map(|(source, _)| self.rib.count(source)),
            neighbours: self.neighbours.by_state(),
            groups: self.groups.sets(),
            unresolved_groups: self.groups.unresolved(),
            fib: self.tables.memory(),
            version: self.tables.version(),
            waiting: self.neighbours.waiting(),
            counts: self.counts,
            neighbour_counts: self.neighbours.counts,
        }
    }

    /// All interfaces, by index.
    #[must_use]
    pub fn interfaces_view(&self) -> Vec<InterfaceView> {
        let views = self.interfaces.iter().map(|interface| InterfaceView {
            name: interface.name.clone(),
            vlan: interface.vlan,
            mac: interface.mac,
            mtu: interface.mtu,
            is_up: interface.is_up,
            is_shut: interface.is_shut,
            addresses: {
                let link_local = IpNet::new_assert(interface.link_local.into(), 64);
                interface.attached().addresses.iter().copied().chain([link_local]).collect()
            },
        });
        views.collect()
    }

    /// The exchange with Linux; `None` if the router answers by itself.
    #[must_use]
    pub fn linux_view(&self) -> Option<&LinuxView> {
        self.kernel.as_ref().map(|_| &self.linux)
    }

    /// All neighbours, by interface and address.
    #[must_use]
    pub fn neighbours_view(&self, now: Nanos) -> Vec<NeighbourView> {
        let views = self.neighbours.iter().map(|((interface, address), neighbour)| NeighbourView {
            interface,
            address,
            mac: (!neighbour.mac.is_zero()).then_some(neighbour.mac),
            state: neighbour.state,
            age: (neighbour.confirmed.0 > 0).then(|| Nanos(now.0.saturating_sub(neighbour.confirmed.0))),
            adjacency: neighbour.adjacency,
            uses: neighbour.uses,
        });
        views.collect()
    }

    /// Routes in use in `range`, only those of `source` if it is given, in their order. The second value is the prefix
    /// after which they continue, if a bound of the range has ended them.
    #[must_use]
    pub fn routes_view(&self, range: &RouteRange, source: Option<Source>) -> (Vec<RouteView>, Option<IpNet>) {
        let (mut views, mut last) = (Vec::new(), range.after);
        let routes = self.rib.used_from(range.start()).take_while(|route| range.contains(route.prefix));
        for (walked, route) in routes.enumerate() {
            if views.len() >= range.most || walked >= range.most_walked {
                return (views, last);
            }
            last = Some(route.prefix);
            if source.is_none_or(|source| source == route.source) {
                views.push(self.route_view(&route));
            }
        }
        (views, None)
    }

    /// The route in use that covers `address`, by longest prefix.
    #[must_use]
    pub fn lookup_view(&self, address: IpAddr) -> Option<RouteView> {
        self.rib.lookup(address).map(|route| self.route_view(&route))
    }

    fn route_view(&self, route: &UsedRoute) -> RouteView {
        let set = self.groups.set(route.group);
        let hops = set.iter().flat_map(|set| set.hops.iter().zip(&set.adjacencies));
        let hops = hops.map(|(hop, adjacency)| HopView {
            address: hop.address,
            interface: hop.interface,
            weight: hop.weight,
            is_usable: adjacency.is_some(),
        });
        RouteView {
            prefix: route.prefix,
            source: route.source,
            next_hops: hops.collect(),
            connected: self.groups.gleaned(route.group),
            drops: [GroupId::BLACKHOLE, GroupId::MARTIAN].contains(&route.group),
        }
    }

    /// Next hops of routes, by interface and address, without neighbours that are only their own next hop. `most`
    /// limits their number; the second value counts the others.
    #[must_use]
    pub fn next_hops_view(&self, most: usize) -> (Vec<HopView>, usize) {
        let mut found = BTreeMap::new();
        for (id, set) in self.groups.all() {
            let own = |hop: &NextHopSpec| self.rib.get(IpNet::from(hop.address), Source::Neighbour) == Some(id);
            if set.uses() == 1 && set.hops.len() == 1 && set.hops.iter().all(own) {
                continue;
            }
            for (hop, adjacency) in set.hops.iter().zip(&set.adjacencies) {
                found.insert((hop.interface, hop.address), adjacency.is_some());
            }
        }
        let more = found.len().saturating_sub(most);
        let hops = found.into_iter().take(most);
        let hops = hops.map(|((interface, address), is_usable)| HopView { address, interface, weight: 0, is_usable });
        (hops.collect(), more)
    }
}
