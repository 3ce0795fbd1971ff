//! The router's control plane: routes, neighbours, and answers to packets for the switch itself.
//!
//! [`Router`] is a state machine without input, output and clock. Its caller passes punted frames, link states, routes
//! and the time; it returns frames to inject and, by [`Router::update`], the tables that lcores route by. The control
//! thread and the simulator run the same router.
//!
//! # The way of a route
//!
//! 1. A source gives a prefix and its next hops: [`Router::set_route`]. `Rib` keeps the routes of all sources and names
//!    the best one.
//! 2. `Groups::acquire` finds the group of this set of next hops, or makes one. Equal sets share a group, so that a
//!    lost next hop changes one group and no prefix.
//! 3. `Tables` notes the change of the prefix for both forwarding tables.
//! 4. [`Router::update`] writes the forwarding table that no lcore reads, and returns a new `RouteTable` over it.
//! 5. The thread sends it to the lcores by mailboxes. An lcore takes it between two polls.
//! 6. When all have taken it, [`Router::settle`] writes the same changes into the other forwarding table. Until then no
//!    further table is made.
//!
//! rte_fib of DPDK 22.11 may reuse memory while an lcore reads it. So a switch has two forwarding tables, and none is
//! written while it is read. A debug build checks that.
//!
//! # Next hops
//!
//! - `Neighbours` resolves an address when a packet or a route needs it, and asks again before it expires. Its times
//!   are shorter than the ageing time of the forwarding database, so a known neighbour is never flooded.
//! - `Buckets` assigns buckets to living next hops. A lost one gives up its buckets only, and takes them back when it
//!   returns. A set that replaces another one inherits its buckets.
//! - `Refused` keeps routes without a free group and prefixes without room. Each departure causes one round of
//!   attempts.
//! - `hosts` gives a known neighbour a route of its own while it is on a network of its interface, or on a route
//!   without gateway.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use holdfast_wire::route::{FibWriter, NextHopSpec, SoftFib};
//! use holdfast_agents::router::{Router, Source, fixture};
//! use holdfast_base::units::Nanos;
//!
//! let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
//! let mut router = Router::new(&fixture::two_ports(), fibs, Nanos(0));
//! let hop = NextHopSpec { address: "10.0.1.2".parse().unwrap(), interface: 1, weight: 1 };
//! router.set_route(Source::Static, "10.9.0.0/16".parse().unwrap(), &[hop], Nanos(0));
//! let table = router.update().expect("routes have changed");
//! assert_eq!(table.version, 1);
//! ```

pub mod buckets;
pub mod fixture;
mod frames;
pub mod groups;
pub mod handle;
mod hosts;
mod interface;
pub mod kernel;
mod links;
pub mod local;
mod loopbacks;
pub mod neighbours;
pub mod published;
mod respond;
mod retry;
pub mod rib;
#[cfg(test)]
mod share_tests;
mod statics;
mod tables;
#[cfg(test)]
mod tests;
pub mod view;

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

pub use self::handle::RouterHandle;
pub use self::interface::{Attached, is_link_local};
pub use self::neighbours::State;
pub use self::published::{Published, Summary};
pub use self::rib::{Source, UsedRoute};
pub use self::view::{InterfaceView, LinuxView, NeighbourView, RouteRange, RouterView, TapCounts};

use self::groups::Groups;
use self::interface::Interface;
use self::kernel::KernelShares;
use self::local::Unanswered;
use self::neighbours::{Effect, Key, Message, MessageKind, Neighbours, Question};
use self::retry::Refused;
use self::rib::{Rib, RibChange};
use self::tables::Tables;
use crate::route::{AdjacencyId, FibWriter, GroupId, InjectTo, NextHopSpec, RouteTable, RoutingSpec};
use crate::sets::{MAX_PORTS, PortSet};
use crate::units::Nanos;
use crate::wire::MacAddr;

/// Frames that wait to be injected. Further ones are dropped: each is an answer or a question that will be repeated.
const MOST_OUTPUT: usize = 1024;

/// A frame that the router sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The frame, without VLAN tag.
    pub bytes: Vec<u8>,
    /// Its way.
    pub to: InjectTo,
    /// VLAN of the frame inside the switch.
    pub vlan: u16,
}

/// Counters of the router.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RouterCounts {
    /// ICMP errors sent.
    pub icmp_errors: u64,
    /// Echo requests answered.
    pub echo_replies: u64,
    /// Packets to own addresses without an answer, in the order of [`Unanswered::TABLE`].
    pub unanswered: [u64; Unanswered::COUNT],
    /// ARP and neighbour discovery messages that others sent with an own address as theirs.
    pub conflicts: u64,
    /// Frames not sent because too many waited.
    pub output_drops: u64,
    /// Prefixes that the forwarding table had no room for.
    pub fib_refused: u64,
    /// Routes that had to wait because there are too many next-hop groups.
    pub groups_refused: u64,
    /// Buckets of next-hop groups that changed their member.
    pub buckets_moved: u64,
}

/// The router of a switch.
#[derive(Debug)]
pub struct Router {
    interfaces: Vec<Interface>,
    rib: Rib,
    groups: Groups,
    /// Routes that wait for a free group.
    refused: Refused<(Source, IpNet), Box<[NextHopSpec]>>,
    neighbours: Neighbours,
    tables: Tables,
    /// The shares in the neighbours of the Linux kernel, where it answers for the addresses of the router.
    kernel: Option<KernelShares>,
    output: Vec<Outgoing>,
    counts: RouterCounts,
    /// Number of /24s that the on-link routes beside those of interfaces' networks lead to.
    on_link_blocks: u64,
    /// Own addresses that belong to no interface.
    loopbacks: Vec<IpAddr>,
    /// Addresses and networks that Linux has beside the configured ones, by interface.
    learned: Vec<Attached>,
    /// The exchange with Linux.
    linux: LinuxView,
    /// Ports with a link.
    up: PortSet,
    /// The port that stands for each port in the forwarding database: that of its group.
    bridge_ports: [u8; MAX_PORTS],
    /// The configuration in force.
    spec: RoutingSpec,
}

impl Router {
    /// Creates the router of `spec` over two empty forwarding tables. All interfaces are up.
    #[must_use]
    pub fn new(spec: &RoutingSpec, fibs: [Arc<dyn FibWriter>; 2], now: Nanos) -> Self {
        let mut router = Self {
            interfaces: spec.interfaces.iter().map(Interface::new).collect(),
            rib: Rib::default(),
            groups: Groups::new(spec.interfaces.len()),
            refused: Refused::default(),
            neighbours: Neighbours::default(),
            tables: Tables::new(fibs, spec),
            kernel: None,
            output: Vec::new(),
            counts: RouterCounts::default(),
            on_link_blocks: 0,
            loopbacks: Vec::new(),
            learned: vec![Attached::default(); spec.interfaces.len()],
            linux: LinuxView::new(spec.interfaces.len()),
            up: PortSet::ALL,
            bridge_ports: std::array::from_fn(|port| port as u8),
            spec: RoutingSpec { routes: Vec::new(), neighbours: Vec::new(), ..spec.clone() },
        };
        for (prefix, group) in interface::fixed_routes() {
            router.set_group(Source::Local, prefix, group);
        }
        for (index, interface) in spec.interfaces.iter().enumerate() {
            // An interface without addresses has its link-local one.
            router.replace_routes(index as u16, &[]);
            router.attach(index as u16, Attached::configured(&interface.addresses), now);
        }
        router.update_own();
        router.limit_hosts();
        router.configure(spec, now);
        router
    }

    /// Sets the port that stands for each port in the forwarding database.
    pub fn set_bridge_ports(&mut self, of: impl Fn(usize) -> usize) {
        self.bridge_ports = std::array::from_fn(|port| of(port) as u8);
    }

    /// Brings static routes, static neighbours and addresses to `wanted`. Interfaces are those of the start.
    pub fn configure(&mut self, wanted: &RoutingSpec, now: Nanos) {
        for (index, interface) in wanted.interfaces.iter().enumerate().take(self.interfaces.len()) {
            let wanted = self.with_learned(index as u16, &interface.addresses);
            self.attach(index as u16, wanted, now);
            if std::mem::replace(&mut self.interfaces[index].ports, interface.ports) != interface.ports {
                self.tables.touch();
            }
        }
        self.set_links(self.up, now);
        let old = std::mem::replace(&mut self.spec, wanted.clone());
        for route in &old.routes {
            if !wanted.routes.iter().any(|new| new.prefix == route.prefix) {
                self.remove_route(Source::Static, route.prefix);
            }
        }
        for route in wanted.routes.iter().filter(|route| !old.routes.contains(route)) {
            self.set_static_route(route, now);
        }
        for neighbour in old.neighbours.iter().filter(|neighbour| !wanted.neighbours.contains(neighbour)) {
            self.neighbours.unset_static((neighbour.interface, neighbour.address), now);
        }
        let mut effect = Effect::default();
        for neighbour in wanted.neighbours.iter().filter(|neighbour| !old.neighbours.contains(neighbour)) {
            // A changed address is another entry of the list, so the old one is no longer static here.
            let key = (neighbour.interface, neighbour.address);
            self.neighbours.set_static(key, neighbour.mac, now, &mut effect);
        }
        self.apply(effect, now);
    }

    /// Sets the addresses and networks of an interface, and announces new addresses.
    fn attach(&mut self, index: u16, attached: Attached, now: Nanos) {
        let Some(interface) = self.interfaces.get_mut(usize::from(index)) else { return };
        let before = interface.routes(index);
        let old = interface.attach(attached.clone());
        if old == attached {
            return;
        }
        self.replace_routes(index, &before);
        self.update_own();
        self.limit_hosts();
        self.fit_hosts(now);
        let new: Vec<IpNet> =
            attached.addresses.into_iter().filter(|address| !old.addresses.contains(address)).collect();
        self.announce(index, &new);
        for network in old.networks.iter().filter(|network| !attached.networks.contains(network)) {
            self.disown_hosts(index, *network);
        }
        for network in attached.networks.into_iter().filter(|network| !old.networks.contains(network)) {
            self.adopt_hosts(index, network, now);
        }
    }

    /// Replaces the routes `before` of an interface by those that it has now. A route that it loses goes to another
    /// interface that has it: two may have the same link-local address or network.
    fn replace_routes(&mut self, index: u16, before: &[(IpNet, Source, GroupId)]) {
        let after = self.interfaces[usize::from(index)].routes(index);
        for &(prefix, source, _) in before.iter().filter(|route| !after.contains(route)) {
            let mut others = self.interfaces.iter().zip(0..).flat_map(|(other, index)| other.routes(index));
            let other = others.find(|&(same, of, _)| (same, of) == (prefix, source));
            let is_of_loopback = source == Source::Local && self.loopbacks.contains(&prefix.addr());
            match other {
                Some((_, _, group)) => self.set_group(source, prefix, group),
                None if is_of_loopback => {}
                None => self.drop_group(source, prefix),
            }
        }
        for (prefix, source, group) in after {
            self.set_group(source, prefix, group);
        }
    }

    /// Sends gratuitous ARP and unsolicited advertisements of `addresses`.
    fn announce(&mut self, index: u16, addresses: &[IpNet]) {
        let Some(interface) = self.interfaces.get(usize::from(index)).filter(|interface| interface.is_up) else {
            return;
        };
        let (mac, link_local) = (interface.mac, interface.link_local);
        let made: Vec<Vec<u8>> = addresses
            .iter()
            .map(|address| match address.addr() {
                IpAddr::V4(own) => frames::gratuitous_arp((mac, own)),
                IpAddr::V6(own) => frames::advertisement((mac, own), None, link_local),
            })
            .collect();
        made.into_iter().for_each(|bytes| self.send(index, bytes));
    }

    /// Sets the route of `source` to `prefix`: by `next_hops`, or, without any, to drop its packets. Returns false if
    /// there are too many groups: the source has no route to `prefix` then until a group is free.
    pub fn set_route(&mut self, source: Source, prefix: IpNet, next_hops: &[NextHopSpec], now: Nanos) -> bool {
        if self.try_route(source, prefix, next_hops, now) {
            return true;
        }
        // The route may have been the only one of its former group, which is free now.
        self.drop_group(source, prefix);
        let is_set = self.try_route(source, prefix, next_hops, now);
        if !is_set {
            self.counts.groups_refused += 1;
            self.refused.insert((source, prefix.trunc()), next_hops.into());
        }
        is_set
    }

    /// Tries again to set the routes that wait for a group.
    fn retry_routes(&mut self, now: Nanos) {
        for ((source, prefix), hops) in self.refused.due() {
            self.try_route(source, prefix, &hops, now);
        }
    }

    fn try_route(&mut self, source: Source, prefix: IpNet, next_hops: &[NextHopSpec], now: Nanos) -> bool {
        let known = |hop: &&NextHopSpec| usize::from(hop.interface) < self.interfaces.len();
        let hops: Vec<NextHopSpec> = next_hops.iter().filter(known).copied().collect();
        let mut effect = Effect::default();
        let group = if hops.is_empty() {
            GroupId::BLACKHOLE
        } else {
            let before = self.rib.get(prefix, source);
            let Some((group, is_new)) = self.groups.acquire(&hops, before) else { return false };
            if is_new {
                self.tables.touch();
            }
            // A neighbour's own route needs no neighbour.
            if source != Source::Neighbour && self.groups.hold(group) {
                // A group has each next hop once, and not more than it can.
                let held = self.groups.set(group).map(|set| &*set.hops).unwrap_or_default();
                held.iter().for_each(|hop| self.neighbours.hold((hop.interface, hop.address), now, &mut effect));
            }
            group
        };
        self.set_group(source, prefix, group);
        self.apply(effect, now);
        true
    }

    /// Removes the route of `source` to `prefix`.
    pub fn remove_route(&mut self, source: Source, prefix: IpNet) {
        self.drop_group(source, prefix);
    }

    fn set_group(&mut self, source: Source, prefix: IpNet, group: GroupId) {
        self.refused.remove(&(source, prefix.trunc()));
        let change = self.rib.set(prefix, source, group);
        self.on_link_blocks += self.on_link_blocks_of(source, prefix, group);
        self.follow(source, prefix, change);
    }

    fn drop_group(&mut self, source: Source, prefix: IpNet) {
        self.refused.remove(&(source, prefix.trunc()));
        let change = self.rib.remove(prefix, source);
        self.follow(source, prefix, change);
    }

    fn follow(&mut self, source: Source, prefix: IpNet, change: RibChange) {
        if let Some(entry) = change.entry {
            self.tables.change(prefix, entry);
        }
        if let Some((interface, group)) = change.replaced.and_then(|group| Some((self.groups.gleaned(group)?, group))) {
            self.on_link_blocks -= self.on_link_blocks_of(source, prefix, group);
            self.limit_hosts();
            self.disown_hosts(interface, prefix);
        }
        let unheld =
            change.replaced.filter(|_| source != Source::Neighbour).and_then(|group| self.groups.unhold(group));
        for hop in unheld.iter().flatten() {
            self.neighbours.unhold((hop.interface, hop.address));
        }
        if change.replaced.is_some_and(|group| self.groups.release(group)) {
            self.refused.note_room();
            self.tables.touch();
        }
    }

    /// All prefixes that `source` has routes to.
    #[must_use]
    pub fn prefixes(&self, source: Source) -> Vec<IpNet> {
        self.rib.prefixes(source)
    }

    /// Takes a neighbour that the administrator vouches for in the Linux kernel.
    pub fn confirm_neighbour(&mut self, interface: u16, address: IpAddr, mac: MacAddr, now: Nanos) {
        self.take_neighbour((interface, address), mac, MessageKind::Arp, now);
    }

    /// Takes a neighbour that the Linux kernel knows, perhaps from a solicitation: it must answer the router itself.
    pub fn learn_neighbour(&mut self, interface: u16, address: IpAddr, mac: MacAddr, now: Nanos) {
        self.take_neighbour((interface, address), mac, MessageKind::Solicitation, now);
    }

    fn take_neighbour(&mut self, key: Key, mac: MacAddr, kind: MessageKind, now: Nanos) {
        let mut effect = Effect::default();
        let interface = self.interfaces.get(usize::from(key.0));
        if interface.is_some_and(|interface| interface.is_up && interface.may_be_host(key.1)) {
            self.neighbours.hear(key, Message { kind, mac: Some(mac), port: None }, now, &mut effect);
        }
        self.apply(effect, now);
    }

    /// Takes note of the neighbours that packets use: others give way first. `frames` reads the counter of an
    /// adjacency.
    pub fn note_traffic(&mut self, now: Nanos, frames: impl Fn(AdjacencyId) -> u64) {
        self.neighbours.note_traffic(now, frames);
    }

    /// Acts on the time: asks for neighbours, gives up those that do not answer, and tries refused routes again. Call
    /// it a few times a second.
    pub fn tick(&mut self, now: Nanos) {
        self.retry_routes(now);
        let mut effect = Effect::default();
        self.neighbours.tick(now, &mut effect);
        self.apply(effect, now);
    }

    /// Carries out the effect of a change of neighbours.
    fn apply(&mut self, effect: Effect, now: Nanos) {
        if effect.is_changed {
            self.tables.touch();
        }
        for key in effect.lost {
            self.drop_host(key);
        }
        for key in effect.gained {
            self.add_host(key, now);
        }
        for question in effect.questions {
            self.ask(question);
        }
        for (key, packet) in effect.released {
            self.send_waiting(key, packet);
        }
        for (key, packet) in effect.given_up {
            self.answer_unreachable(key, &packet, now);
        }
    }

    /// Sends a question for a neighbour, if the interface is up and has an address to ask from.
    fn ask(&mut self, Question { key: (index, target), mac }: Question) {
        let interface = &self.interfaces[usize::from(index)];
        if !interface.is_up {
            return;
        }
        let bytes = match target {
            IpAddr::V4(target) => {
                let Some(own) = interface.source_v4(target) else { return };
                frames::arp_request((interface.mac, own), target, mac)
            }
            IpAddr::V6(target) => frames::solicitation((interface.mac, interface.source_v6(target)), target, mac),
        };
        self.send(index, bytes);
    }

    /// Sends a frame by an interface; none leaves by one that is shut.
    fn send(&mut self, index: u16, bytes: Vec<u8>) {
        if self.output.len() >= MOST_OUTPUT {
            self.counts.output_drops += 1;
            return;
        }
        let interface = &self.interfaces[usize::from(index)];
        if !interface.is_shut {
            self.output.push(Outgoing { bytes, to: interface.to, vlan: interface.vlan });
        }
    }

    /// Takes the frames to inject.
    pub fn take_output(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.output)
    }

    /// Makes the tables that contain all changes since the last call; `None` if there are none, or the lcores have not
    /// taken the last tables yet ([`Router::settle`]).
    pub fn update(&mut self) -> Option<Arc<RouteTable>> {
        if !self.tables.is_due() {
            return None;
        }
        let (neighbours, interfaces) = (&self.neighbours, &self.interfaces);
        self.counts.buckets_moved += self.groups.refresh(|hop| {
            let is_up = interfaces.get(usize::from(hop.interface)).is_some_and(|interface| interface.is_up);
            neighbours.adjacency((hop.interface, hop.address)).filter(|_| is_up)
        }) as u64;
        let adjacencies = interface::adjacencies(interfaces, neighbours);
        let (groups, buckets) = self.groups.tables();
        let (table, refused) = self.tables.make(groups, buckets, adjacencies);
        self.counts.fib_refused += refused;
        Some(table)
    }

    /// Tells that all lcores route by the tables of the last [`Router::update`].
    pub fn settle(&mut self) {
        self.tables.settle();
    }

    /// Index of the interface of `vlan`.
    #[must_use]
    pub fn interface_of(&self, vlan: u16) -> Option<u16> {
        self.interfaces.iter().position(|interface| interface.vlan == vlan).map(|index| index as u16)
    }
}
