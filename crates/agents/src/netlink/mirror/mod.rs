//! The mirror of the kernel's tables, as a state machine without sockets.
//!
//! Events and dumps go in, differences for consumers come out. The kernel changes some objects without a message; the
//! mirror repeats these changes by its own rules (`rules.rs`):
//!
//! | cause | silent effect in the kernel |
//! |---|---|
//! | a link is disabled | IPv4 routes whose next hops are all dead are flushed |
//! | a link is disabled or loses its carrier | next-hop objects on it are removed |
//! | a link is removed | IPv4 routes with any next hop on it are flushed |
//! | a link loses its last IPv4 address | as if it were disabled, for IPv4 routes without next-hop objects |
//! | a next-hop object is removed | routes with it are flushed; groups lose it |
//! | a group loses its last member | the group is removed |
//! | a link is enabled, or gets its first IPv4 address | dead next hops of multipath routes live again |
//!
//! A next hop on a link that is not up is never published, whether or not the kernel keeps the route. A prefix whose
//! routes have no usable next hop is published as gone, so shorter prefixes apply. Linux does the same with
//! `ignore_routes_with_linkdown`.
//!
//! If the mirror cannot be sure of a silent effect it asks for a dump ([`Mirror::wants_dump`]).

mod alternatives;
mod change;
mod dumps;
mod objects;
mod routes;
mod rules;
mod table;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

pub use change::{Change, TableName};
pub use dumps::DumpEnd;

use self::change::Published;
use self::dumps::Gaps;
use self::objects::ObjectTable;
use self::routes::{Family, RouteTable};
use self::table::Table;
use super::model::{
    Address, KernelEvent, KernelNextHop, Link, LinkState, Neighbour, NextHop, Route, RouteHops, RouteKind,
};

/// Most entries of each table. The mirror refuses new entries beyond them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Links.
    pub links: usize,
    /// Addresses.
    pub addresses: usize,
    /// Neighbours.
    pub neighbours: usize,
    /// Next-hop objects.
    pub next_hops: usize,
    /// Routes of both families, those that are not the best of their prefix included.
    pub routes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { links: 4096, addresses: 16_384, neighbours: 65_536, next_hops: 65_536, routes: 262_144 }
    }
}

/// Entries of the mirror's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Links.
    pub links: usize,
    /// Addresses.
    pub addresses: usize,
    /// Neighbours.
    pub neighbours: usize,
    /// Next-hop objects.
    pub next_hops: usize,
    /// Routes.
    pub routes: usize,
}

/// The tables of one network namespace.
#[derive(Debug)]
pub struct Mirror {
    limits: Limits,
    links: Table<u32, LinkState>,
    addresses: Table<Address, ()>,
    neighbours: Table<(u32, IpAddr), Neighbour>,
    objects: ObjectTable,
    routes: RouteTable,
    published_links: Published<u32, Link>,
    published_addresses: Published<Address, Address>,
    published_neighbours: Published<(u32, IpAddr), Neighbour>,
    published_routes: Published<IpNet, Arc<Route>>,
    notices: Vec<Change>,
    gaps: [Gaps; TableName::ALL.len()],
    refused: u64,
    wants_dump: bool,
}

impl Mirror {
    /// Creates an empty mirror, which wants a dump.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            links: Table::new(limits.links),
            addresses: Table::new(limits.addresses),
            neighbours: Table::new(limits.neighbours),
            objects: ObjectTable::new(limits.next_hops),
            routes: RouteTable::new(limits.routes),
            published_links: Published::default(),
            published_addresses: Published::default(),
            published_neighbours: Published::default(),
            published_routes: Published::default(),
            notices: Vec::new(),
            gaps: Default::default(),
            refused: 0,
            wants_dump: true,
        }
    }

    /// Applies an event that the kernel has sent unasked.
    pub fn feed(&mut self, event: KernelEvent) {
        match event {
            KernelEvent::Link(state) => self.put_link(state, false),
            KernelEvent::LinkGone { index } => self.remove_link(index),
            KernelEvent::Address(address) => self.put_address(address, false),
            KernelEvent::AddressGone(address) => self.remove_address(address),
            KernelEvent::Neighbour(neighbour) => self.put_neighbour(neighbour, false),
            KernelEvent::NeighbourGone { index, address } => self.remove_neighbour(index, address),
            KernelEvent::NextHop { id, object } => self.put_object(id, object, false),
            KernelEvent::NextHopGone { id } => self.remove_object(id),
            KernelEvent::Route { route, mode } => {
                self.want_object_of(&route.hops);
                let table = table_of(route.prefix);
                if !self.routes.put(route, mode) {
                    self.refuse(table);
                }
            }
            KernelEvent::RouteGone(route) => {
                self.wants_dump |= self.routes.remove(&route);
                self.make_room(table_of(route.prefix));
            }
        }
        self.forget_passing();
    }

    /// Applies an entry of the dump that is under way. Removals are ignored: a dump names what exists.
    pub fn feed_dumped(&mut self, event: KernelEvent) {
        match event {
            KernelEvent::Link(state) => self.put_link(state, true),
            KernelEvent::Address(address) => self.put_address(address, true),
            KernelEvent::Neighbour(neighbour) => self.put_neighbour(neighbour, true),
            KernelEvent::NextHop { id, object } => self.put_object(id, object, true),
            KernelEvent::Route { route, .. } => {
                self.want_object_of(&route.hops);
                let table = table_of(route.prefix);
                if !self.routes.put_dumped(route) {
                    self.refuse(table);
                }
            }
            KernelEvent::LinkGone { .. }
            | KernelEvent::AddressGone(_)
            | KernelEvent::NeighbourGone { .. }
            | KernelEvent::NextHopGone { .. }
            | KernelEvent::RouteGone(_) => {}
        }
        self.forget_passing();
    }

    /// Asks for a dump, for example because the socket has lost messages.
    pub fn want_dump(&mut self) {
        self.wants_dump = true;
    }

    /// Whether all tables should be dumped, because the mirror may differ from the kernel.
    #[must_use]
    pub fn wants_dump(&self) -> bool {
        self.wants_dump
    }

    /// Withdraws the wish for a dump, before the dump begins. Doubts that arise during the dump ask for another.
    pub fn clear_wish(&mut self) {
        self.wants_dump = false;
    }

    /// Entries that were refused because a table was full. A dump counts them again.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Entries of the tables.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        Sizes {
            links: self.links.len(),
            addresses: self.addresses.len(),
            neighbours: self.neighbours.len(),
            next_hops: self.objects.len(),
            routes: self.routes.len(),
        }
    }

    /// Takes at most `limit` differences since the last call, each key once. New values come before removals, and
    /// links before addresses, neighbours and routes. An empty list means that consumers know everything.
    pub fn changes(&mut self, limit: usize) -> Vec<Change> {
        let mut changes = Vec::new();
        while changes.len() < limit && !self.notices.is_empty() {
            changes.push(self.notices.remove(0));
        }
        let room = |changes: &Vec<Change>| limit.saturating_sub(changes.len());
        self.mark_routes();
        let links = &self.links;
        let new = self.published_links.take_new(room(&changes), |key| links.get(key).map(|state| state.link.clone()));
        changes.extend(new.into_iter().map(Change::Link));
        let new = self.published_addresses.take_new(room(&changes), |key| self.addresses.get(key).map(|()| *key));
        changes.extend(new.into_iter().map(Change::Address));
        let new = self.published_neighbours.take_new(room(&changes), |key| self.neighbours.get(key).copied());
        changes.extend(new.into_iter().map(Change::Neighbour));
        let (routes, objects) = (&self.routes, &self.objects);
        let best = |prefix: &IpNet| best(routes, objects, links, *prefix).map(Arc::new);
        changes.extend(self.published_routes.take_new(room(&changes), best).into_iter().map(Change::Route));
        let gone = self.published_routes.take_gone(room(&changes));
        changes.extend(gone.into_iter().map(|prefix| Change::RouteGone { prefix }));
        let gone = self.published_neighbours.take_gone(room(&changes));
        changes.extend(gone.into_iter().map(|(index, address)| Change::NeighbourGone { index, address }));
        let gone = self.published_addresses.take_gone(room(&changes));
        changes.extend(gone.into_iter().map(Change::AddressGone));
        let gone = self.published_links.take_gone(room(&changes));
        changes.extend(gone.into_iter().map(|index| Change::LinkGone { index }));
        changes
    }

    /// Number of keys that are marked as changed.
    #[cfg(test)]
    pub(super) fn marked(&self) -> usize {
        let routes = self.routes.dirty() + self.published_routes.marked();
        let stations = self.published_links.marked() + self.published_neighbours.marked();
        routes + stations + self.published_addresses.marked()
    }

    fn mark_routes(&mut self) {
        while let Some(prefix) = self.routes.pop_dirty() {
            self.published_routes.mark(prefix);
        }
    }

    /// Bounds the memory of changes that consumers do not take.
    fn forget_passing(&mut self) {
        let limits = self.limits;
        self.published_links.forget_passing(limits.links, |key| self.links.get(key).is_some());
        self.published_addresses.forget_passing(limits.addresses, |key| self.addresses.get(key).is_some());
        self.published_neighbours.forget_passing(limits.neighbours, |key| self.neighbours.get(key).is_some());
        if self.routes.dirty() > limits.routes {
            self.mark_routes();
            self.published_routes.forget_passing(limits.routes, |prefix| self.routes.routes(*prefix).next().is_some());
        }
    }
}

fn table_of(prefix: IpNet) -> TableName {
    match Family::of(prefix) {
        Family::V4 => TableName::RoutesV4,
        Family::V6 => TableName::RoutesV6,
    }
}

/// The first usable route of `prefix`.
fn best(routes: &RouteTable, objects: &ObjectTable, links: &Table<u32, LinkState>, prefix: IpNet) -> Option<Route> {
    let is_usable = |hop: &KernelNextHop| {
        let is_up = links.get(&hop.index).is_some_and(|state| state.link.is_up);
        is_up && !hop.is_dead && !hop.is_linkdown
    };
    routes.routes(prefix).find_map(|route| {
        let (kind, hops) = match &route.hops {
            RouteHops::Object(id) => objects.resolve(*id)?,
            RouteHops::Direct(hops) => (route.kind, hops.clone()),
        };
        let usable = hops.iter().filter(|hop| is_usable(hop));
        let next_hops: Vec<NextHop> =
            usable.map(|hop| NextHop { gateway: hop.gateway, index: hop.index, weight: hop.weight }).collect();
        let is_route = kind != RouteKind::Unicast || !next_hops.is_empty();
        is_route.then_some(Route { prefix, metric: route.metric, protocol: route.protocol, kind, next_hops })
    })
}
