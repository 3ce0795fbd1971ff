//! Tests of the mirror: each rule by hand, and random operations of a kernel with lost messages.

mod dumps;
mod kernel;
mod links;
mod objects;
mod property;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::*;
use crate::netlink::decode::EntryKey;
use crate::netlink::model::{GroupMember, KernelRoute, NextHopObject, RouteMode};
use crate::wire::MacAddr;

/// The tables that a consumer has after some changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    pub links: BTreeMap<u32, Link>,
    pub addresses: BTreeSet<Address>,
    pub neighbours: BTreeMap<(u32, IpAddr), Neighbour>,
    pub routes: BTreeMap<IpNet, Route>,
}

impl View {
    /// Applies changes. Each must be a difference.
    #[track_caller]
    pub fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            let is_difference = match change.clone() {
                Change::Link(link) => self.links.insert(link.index, link.clone()) != Some(link),
                Change::LinkGone { index } => self.links.remove(&index).is_some(),
                Change::Address(address) => self.addresses.insert(address),
                Change::AddressGone(address) => self.addresses.remove(&address),
                Change::Neighbour(new) => self.neighbours.insert((new.index, new.address), new) != Some(new),
                Change::NeighbourGone { index, address } => self.neighbours.remove(&(index, address)).is_some(),
                Change::Route(route) => {
                    let route = Arc::unwrap_or_clone(route);
                    self.routes.insert(route.prefix, route.clone()) != Some(route)
                }
                Change::RouteGone { prefix } => self.routes.remove(&prefix).is_some(),
                Change::Full { .. } | Change::NotFull { .. } => true,
                Change::Undecoded { .. } | Change::Decoded { .. } => true,
            };
            assert!(is_difference, "{change:?}");
        }
    }

    /// Takes all changes of `mirror`.
    #[track_caller]
    pub fn follow(&mut self, mirror: &mut Mirror) {
        self.apply(mirror.changes(usize::MAX));
    }
}

fn prefix(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn link_state(index: u32, is_admin_up: bool, has_carrier: bool) -> LinkState {
    let is_up = is_admin_up && has_carrier;
    let link = Link { index, name: format!("eth{index}"), is_admin_up, is_up, mac: None, mtu: 1500 };
    LinkState { link, has_carrier, carrier_changes: 0 }
}

fn up(index: u32) -> KernelEvent {
    KernelEvent::Link(link_state(index, true, true))
}

fn disabled(index: u32) -> KernelEvent {
    KernelEvent::Link(link_state(index, false, true))
}

fn without_carrier(index: u32) -> KernelEvent {
    KernelEvent::Link(link_state(index, true, false))
}

fn hop(gateway: &str, index: u32) -> KernelNextHop {
    let gateway = (!gateway.is_empty()).then(|| address(gateway));
    KernelNextHop { gateway, index, weight: 1, is_dead: false, is_linkdown: false }
}

fn own(index: u32, text: &str) -> Address {
    Address { index, address: prefix(text), peer: None }
}

/// A static route with metric 0 for IPv4 and 1024 for IPv6, as the kernel sets it by default.
fn route(destination: &str, hops: &[KernelNextHop]) -> KernelRoute {
    let prefix = prefix(destination);
    let metric = if prefix.addr().is_ipv4() { 0 } else { 1024 };
    KernelRoute { prefix, metric, protocol: 4, kind: RouteKind::Unicast, hops: RouteHops::Direct(hops.to_vec()) }
}

fn object_route(destination: &str, id: u32) -> KernelRoute {
    KernelRoute { hops: RouteHops::Object(id), ..route(destination, &[]) }
}

fn with_metric(metric: u32, route: KernelRoute) -> KernelRoute {
    KernelRoute { metric, ..route }
}

fn add(route: KernelRoute) -> KernelEvent {
    KernelEvent::Route { route, mode: RouteMode::Exclusive }
}

fn append(route: KernelRoute) -> KernelEvent {
    KernelEvent::Route { route, mode: RouteMode::Append }
}

fn replace(route: KernelRoute) -> KernelEvent {
    KernelEvent::Route { route, mode: RouteMode::Replace }
}

fn object(id: u32, hop: KernelNextHop) -> KernelEvent {
    KernelEvent::NextHop { id, object: NextHopObject::Hop(hop) }
}

fn group(id: u32, members: &[(u32, u16)]) -> KernelEvent {
    let members = members.iter().map(|(id, weight)| GroupMember { id: *id, weight: *weight }).collect();
    KernelEvent::NextHop { id, object: NextHopObject::Group(members) }
}

/// A mirror with links 1 to 3, which are up, and its consumer.
struct Rig {
    mirror: Mirror,
    view: View,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self { mirror: Mirror::new(Limits::default()), view: View::default() };
        rig.mirror.clear_wish();
        rig.feed([up(1), up(2), up(3)]);
        rig
    }

    #[track_caller]
    fn feed(&mut self, events: impl IntoIterator<Item = KernelEvent>) {
        events.into_iter().for_each(|event| self.mirror.feed(event));
        self.view.follow(&mut self.mirror);
    }

    /// Dumps a table of these entries.
    #[track_caller]
    fn dump(&mut self, table: TableName, entries: impl IntoIterator<Item = KernelEvent>) -> DumpEnd {
        self.mirror.begin_dump(table);
        entries.into_iter().for_each(|event| self.mirror.feed_dumped(event));
        let end = self.mirror.end_dump(table);
        self.view.follow(&mut self.mirror);
        end
    }

    /// Next hops of the published route: gateways or `on-link`, links and weights. None: there is no route.
    #[track_caller]
    fn hops(&self, destination: &str) -> Option<String> {
        let route = self.view.routes.get(&prefix(destination))?;
        let hop = |hop: &NextHop| {
            let gateway = hop.gateway.map_or("on-link".to_owned(), |gateway| gateway.to_string());
            format!("{gateway}%{}*{}", hop.index, hop.weight)
        };
        let hops: Vec<String> = route.next_hops.iter().map(hop).collect();
        Some(if hops.is_empty() { format!("{:?}", route.kind) } else { hops.join(" ") })
    }
}
