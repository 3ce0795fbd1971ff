//! Known neighbours have routes of their own while they are on a network of their interface.

use ipnet::IpNet;

use super::Router;
use super::groups::Groups;
use super::interface::{Interface, ipv4_blocks, is_link_local};
use super::neighbours::{Effect, Key};
use super::rib::Source;
use crate::route::{GroupId, NextHopSpec};
use crate::units::Nanos;

impl Router {
    /// Gives a neighbour on a network of its interface a route of its own. Link-local ones are only next hops.
    pub(super) fn add_host(&mut self, (interface, address): Key, now: Nanos) {
        let hop = NextHopSpec { address, interface, weight: 1 };
        if self.is_on_network((interface, address)) && !is_link_local(address) && !self.tables.is_own(address) {
            self.set_route(Source::Neighbour, IpNet::from(address), &[hop], now);
        }
    }

    /// Bounds the learned hosts, so that routes find room in the forwarding table.
    pub(super) fn limit_hosts(&mut self) {
        let blocks = self.interfaces.iter().map(Interface::ipv4_blocks).fold(self.on_link_blocks, u64::saturating_add);
        self.neighbours.set_limits(self.spec.fib.hosts(blocks));
    }

    /// Lets the learned hosts give way that a lower bound excludes.
    pub(super) fn fit_hosts(&mut self, now: Nanos) {
        let mut effect = Effect::default();
        self.neighbours.fit(&mut effect);
        self.apply(effect, now);
    }

    /// Number of /24s to which a route leads whose hosts are neighbours. Networks of interfaces are counted there.
    pub(super) fn on_link_blocks_of(&self, source: Source, prefix: IpNet, group: GroupId) -> u64 {
        let is_on_link = source != Source::Connected && self.groups.gleaned(group).is_some();
        if is_on_link { ipv4_blocks(prefix) } else { 0 }
    }

    pub(super) fn drop_host(&mut self, (interface, address): Key) {
        let prefix = IpNet::from(address);
        let group = self.rib.get(prefix, Source::Neighbour).and_then(|group| self.groups.set(group));
        let hops = group.map(|set| &set.hops).or_else(|| self.refused.get(&(Source::Neighbour, prefix)));
        // Another interface may have a neighbour with the same address.
        if hops.and_then(|hops| hops.first()).is_some_and(|hop| hop.interface == interface) {
            self.drop_group(Source::Neighbour, prefix);
        }
    }

    /// Whether `address` may be a neighbour without being a next hop: it is on a network of the interface, or a route
    /// leads to the interface without next hops.
    pub(super) fn is_on_network(&self, (interface, address): Key) -> bool {
        let leads_there = |group| self.groups.gleaned(group) == Some(interface);
        self.interfaces[usize::from(interface)].has_network_of(address)
            || self.rib.lookup_beside_neighbour(address).is_some_and(leads_there)
    }

    /// Whether some route beside its own has this neighbour as a next hop. Such a one may be on no network.
    pub(super) fn is_next_hop(&self, key: Key) -> bool {
        self.neighbours.get(key).is_some_and(|neighbour| neighbour.uses > 0)
    }

    /// Sets the route of `source` to `prefix`, whose hosts are neighbours on `interface`.
    pub fn set_on_link(&mut self, source: Source, prefix: IpNet, interface: u16, now: Nanos) {
        if usize::from(interface) < self.interfaces.len() {
            self.set_group(source, prefix, Groups::glean(interface));
            self.limit_hosts();
            self.fit_hosts(now);
            self.adopt_hosts(interface, prefix, now);
        }
    }

    /// Gives the known neighbours in the new network `prefix` of an interface their routes.
    pub(super) fn adopt_hosts(&mut self, interface: u16, prefix: IpNet, now: Nanos) {
        for address in self.neighbours.usable_in(interface, prefix) {
            self.add_host((interface, address), now);
        }
    }

    /// Takes their routes from the neighbours that were only on the network `prefix`, which the interface has lost.
    pub(super) fn disown_hosts(&mut self, interface: u16, prefix: IpNet) {
        for address in self.neighbours.usable_in(interface, prefix) {
            if !self.is_on_network((interface, address)) {
                self.drop_host((interface, address));
            }
        }
    }
}
