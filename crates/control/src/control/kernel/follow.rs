//! Takes addresses, neighbours and routes of the namespace into the router.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::netlink::{Address, Change, Neighbour, NextHop, Route, RouteKind, TableName};
use crate::route::NextHopSpec;
use crate::router::{Attached, Router, Source, is_link_local};
use crate::units::Nanos;
use crate::wire::MacAddr;

/// Routes of the kernel itself (`RTPROT_KERNEL`): to the networks of addresses and peers that have such routes.
const BY_KERNEL: u8 = 2;

/// Time for which a removed route stays. Daemons replace IPv6 routes by a removal and an addition, between which no
/// packet must be lost.
const LEAVING: Nanos = Nanos(50_000_000);

/// The state of the namespace as far as the router needs it again.
#[derive(Debug)]
pub struct Follower {
    /// Link of each interface's tap.
    taps: Vec<u32>,
    /// Addresses of all links in the namespace.
    addresses: BTreeSet<Address>,
    /// Networks of the taps' addresses and peers, with the interface.
    networks: BTreeMap<IpNet, u16>,
    /// Links whose addresses or networks have changed.
    changed: BTreeSet<u32>,
    /// Neighbours that never expire.
    permanent: BTreeMap<(u16, IpAddr), MacAddr>,
    /// Addresses that taps have lost.
    lost: BTreeSet<(u16, IpNet)>,
    /// Removed routes, with the time at which the router loses them.
    leaving: BTreeMap<IpNet, Nanos>,
    /// Tables that had no room for all entries.
    full: BTreeSet<TableName>,
    /// Tables with entries that could not be decoded.
    undecoded: BTreeSet<TableName>,
}

impl Follower {
    /// Follows the taps with these links.
    pub fn new(taps: Vec<u32>) -> Self {
        Self {
            taps,
            addresses: BTreeSet::new(),
            networks: BTreeMap::new(),
            changed: BTreeSet::new(),
            permanent: BTreeMap::new(),
            lost: BTreeSet::new(),
            leaving: BTreeMap::new(),
            full: BTreeSet::new(),
            undecoded: BTreeSet::new(),
        }
    }

    /// The interface of a link; `None` if the link is not a tap of the switch, such as lo or a link for management.
    fn interface(&self, link: u32) -> Option<u16> {
        self.taps.iter().position(|&tap| tap == link).map(|index| index as u16)
    }

    /// Takes a difference. Addresses and networks take effect with [`Follower::finish`].
    pub fn apply(&mut self, change: &Change, router: &mut Router, now: Nanos) {
        match change {
            Change::Address(address) => {
                self.addresses.insert(*address);
                self.changed.insert(address.index);
            }
            Change::AddressGone(address) => {
                self.addresses.remove(address);
                self.changed.insert(address.index);
                if let Some(interface) = self.interface(address.index) {
                    self.lost.insert((interface, address.address));
                }
            }
            Change::Neighbour(neighbour) => self.learn(neighbour, router, now),
            Change::NeighbourGone { index, address } => {
                if let Some(interface) = self.interface(*index) {
                    self.permanent.remove(&(interface, *address));
                }
            }
            Change::Route(route) => self.set_route(route, router, now),
            Change::RouteGone { prefix } => {
                self.leaving.insert(*prefix, Nanos(now.0 + LEAVING.0));
            }
            Change::Full { table, limit } => {
                self.full.insert(*table);
                crate::control::warn(&format!(
                    "the kernel has more than {limit} {table}; the router lacks the others, so their packets may be \
                     dropped or take shorter prefixes; docs/linux.md"
                ));
            }
            Change::NotFull { table } => _ = self.full.remove(table),
            Change::Undecoded { table } => {
                self.undecoded.insert(*table);
                crate::control::warn(&format!(
                    "some {table} of the kernel cannot be decoded; the router keeps what it knew of them, so their \
                     packets may take other ways than in Linux; docs/linux.md"
                ));
            }
            Change::Decoded { table } => _ = self.undecoded.remove(table),
            Change::Link(link) => self.set_shut(link.index, !link.is_admin_up, router, now),
            Change::LinkGone { index } => self.set_shut(*index, true, router, now),
        }
    }

    /// Shuts or opens the interface of a tap. A tap without a carrier is not shut: the switch takes the carrier away
    /// while no port of the interface has a link.
    fn set_shut(&self, link: u32, is_shut: bool, router: &mut Router, now: Nanos) {
        if let Some(interface) = self.interface(link) {
            router.set_shut(interface, is_shut, now);
        }
    }

    /// Takes the addresses that open taps have lost and still lack, though `is_wanted`: Linux removes IPv6 addresses
    /// from a link that is shut. Those of taps that are still shut stay here.
    pub fn take_lost(&mut self, router: &Router, is_wanted: impl Fn(u16, &IpNet) -> bool) -> BTreeSet<(u16, IpNet)> {
        let lost = std::mem::take(&mut self.lost).into_iter();
        let wanted =
            lost.filter(|(interface, address)| is_wanted(*interface, address) && !self.has(*interface, *address));
        let (stay, lost) = wanted.partition(|(interface, _)| router.is_shut(*interface));
        self.lost = stay;
        lost
    }

    /// Whether the tap of `interface` has an address.
    fn has(&self, interface: u16, address: IpNet) -> bool {
        self.taps
            .get(usize::from(interface))
            .is_some_and(|&index| self.addresses.contains(&Address { index, address, peer: None }))
    }

    /// Whether the router has every entry of the namespace's tables: each had room for all, and could be decoded.
    pub fn has_all(&self) -> bool {
        self.full.is_empty() && self.undecoded.is_empty()
    }

    /// Gives the router the addresses and networks that have changed: those of taps to their interfaces, all other
    /// addresses as own addresses without a network.
    pub fn finish(&mut self, router: &mut Router, now: Nanos) {
        if self.changed.is_empty() {
            return;
        }
        for link in std::mem::take(&mut self.changed) {
            let Some(interface) = self.interface(link) else { continue };
            let own = self.addresses.iter().filter(|address| address.index == link).map(Address::own);
            let networks = self.networks.iter().filter(|(_, of)| **of == interface).map(|(network, _)| *network);
            let attached = Attached { addresses: own.collect(), networks: networks.collect() };
            router.set_learned(interface, attached, now);
        }
        let elsewhere = self.addresses.iter().filter(|address| self.interface(address.index).is_none());
        let elsewhere = elsewhere.map(|address| address.address.addr()).filter(|address| is_reachable(*address));
        router.set_loopbacks(elsewhere.collect());
    }

    /// Confirms neighbours that never expire in Linux, so that they do not here either.
    pub fn refresh(&self, router: &mut Router, now: Nanos) {
        for (&(interface, address), &mac) in &self.permanent {
            router.confirm_neighbour(interface, address, mac, now);
        }
    }

    /// Removes the routes whose time is over. Call it often, before [`Follower::finish`].
    pub fn expire(&mut self, router: &mut Router, now: Nanos) {
        let over: Vec<IpNet> =
            self.leaving.iter().filter(|(_, until)| now >= **until).map(|(prefix, _)| *prefix).collect();
        for prefix in over {
            self.leaving.remove(&prefix);
            self.set_network(prefix, None);
            router.remove_route(Source::Kernel, prefix);
        }
    }

    /// Sets the interface that has `prefix` as a network.
    fn set_network(&mut self, prefix: IpNet, interface: Option<u16>) {
        let before = match interface {
            Some(interface) => self.networks.insert(prefix, interface),
            None => self.networks.remove(&prefix),
        };
        if before != interface {
            let concerned =
                [before, interface].into_iter().flatten().map(|interface| self.taps[usize::from(interface)]);
            self.changed.extend(concerned);
        }
    }

    fn learn(&mut self, neighbour: &Neighbour, router: &mut Router, now: Nanos) {
        let Some(interface) = self.interface(neighbour.index) else { return };
        if neighbour.mac.is_zero() || neighbour.mac.is_group() || !is_reachable_on_link(neighbour.address) {
            return;
        }
        let key = (interface, neighbour.address);
        if neighbour.is_permanent {
            self.permanent.insert(key, neighbour.mac);
            router.confirm_neighbour(interface, neighbour.address, neighbour.mac, now);
        } else {
            self.permanent.remove(&key);
            router.learn_neighbour(interface, neighbour.address, neighbour.mac, now);
        }
    }

    /// Takes a route.
    fn set_route(&mut self, route: &Route, router: &mut Router, now: Nanos) {
        let prefix = route.prefix;
        self.leaving.remove(&prefix);
        let treatment = self.treatment(route);
        self.set_network(prefix, if let Treatment::Network(interface) = treatment { Some(interface) } else { None });
        match treatment {
            // Without a free next-hop group the router tries again when there is one.
            Treatment::NextHops(hops) => _ = router.set_route(Source::Kernel, prefix, &hops, now),
            Treatment::OnLink(interface) => router.set_on_link(Source::Kernel, prefix, interface, now),
            Treatment::Network(_) | Treatment::None => router.remove_route(Source::Kernel, prefix),
        }
    }

    /// The treatment of a route's packets. Next hops by other links than taps are left out.
    ///
    /// Packets of routes that the router cannot follow are dropped: by a shorter prefix they would go elsewhere than in
    /// Linux.
    fn treatment(&self, route: &Route) -> Treatment {
        let is_by_kernel = route.protocol == BY_KERNEL;
        match route.kind {
            RouteKind::Unicast => {
                let on_link = |hop: &NextHop| self.interface(hop.index).filter(|_| hop.gateway.is_none());
                let next_hop = |hop: &NextHop| {
                    let (address, interface) = (hop.gateway?, self.interface(hop.index)?);
                    Some(NextHopSpec { address, interface, weight: hop.weight.max(1) })
                };
                let hops: Vec<NextHopSpec> = route.next_hops.iter().filter_map(next_hop).collect();
                match route.next_hops.iter().find_map(on_link) {
                    _ if !hops.is_empty() => Treatment::NextHops(hops),
                    // RFC 3927 section 2.6.2: packets to link-local addresses are not forwarded.
                    _ if is_link_local(route.prefix.addr()) => Treatment::None,
                    Some(interface) if is_by_kernel => Treatment::Network(interface),
                    Some(interface) => Treatment::OnLink(interface),
                    None => Treatment::None,
                }
            }
            RouteKind::Blackhole | RouteKind::Unreachable | RouteKind::Prohibit | RouteKind::Other if !is_by_kernel => {
                Treatment::NextHops(Vec::new())
            }
            _ => Treatment::None,
        }
    }
}

/// The treatment of a route's packets.
enum Treatment {
    /// By these next hops. Without any they are dropped.
    NextHops(Vec<NextHopSpec>),
    /// To neighbours on this interface.
    OnLink(u16),
    /// To neighbours on this interface, which has the prefix as a network.
    Network(u16),
    /// Not by this route.
    None,
}

/// Whether other hosts may use `address` for a packet to the switch.
fn is_reachable(address: IpAddr) -> bool {
    is_reachable_on_link(address) && !is_link_local(address)
}

fn is_reachable_on_link(address: IpAddr) -> bool {
    !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::netlink::Link;
    use crate::route::{FibWriter, GroupId, SoftFib};
    use crate::router::{RouteRange, State, fixture};
    use crate::sets::PortSet;

    const NOW: Nanos = Nanos(1_000_000_000);
    const LATER: Nanos = Nanos(NOW.0 + LEAVING.0);
    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);
    /// Links of the taps of the fixture's two interfaces, and another link.
    const TAPS: [u32; 2] = [5, 6];
    const OTHER: u32 = 9;

    fn rig() -> (Follower, Router) {
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
        (Follower::new(TAPS.to_vec()), Router::new(&fixture::two_ports(), fibs, NOW))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn prefix(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn own(index: u32, text: &str) -> Address {
        Address { index, address: prefix(text), peer: None }
    }

    /// The route of the kernel itself to a network of a link.
    fn network(to: &str, index: u32) -> Change {
        let next_hops = vec![NextHop { gateway: None, index, weight: 1 }];
        let (prefix, kind) = (prefix(to), RouteKind::Unicast);
        Change::Route(Arc::new(Route { prefix, metric: 0, protocol: BY_KERNEL, kind, next_hops }))
    }

    fn route(to: &str, hops: &[(&str, u32)], kind: RouteKind) -> Change {
        let hop = |&(gateway, index): &(&str, u32)| NextHop {
            gateway: (!gateway.is_empty()).then(|| address(gateway)),
            index,
            weight: 1,
        };
        let next_hops = hops.iter().map(hop).collect();
        Change::Route(Arc::new(Route { prefix: prefix(to), metric: 20, protocol: 186, kind, next_hops }))
    }

    fn hops(router: &Router, to: &str) -> Vec<(IpAddr, u16)> {
        let within = Some(prefix(to));
        let range = RouteRange { after: None, within, is_ipv6: None, most: 1, most_walked: 1 };
        let (routes, _) = router.routes_view(&range, Some(Source::Kernel));
        routes.iter().flat_map(|route| &route.next_hops).map(|hop| (hop.address, hop.interface)).collect()
    }

    #[test]
    fn next_hops_by_other_links_are_left_out_and_a_route_without_any_is_removed() {
        let (mut follower, mut router) = rig();
        let both = [("169.254.0.1", 5), ("10.9.9.9", OTHER), ("fe80::2", 6)];
        follower.apply(&route("10.8.0.0/16", &both, RouteKind::Unicast), &mut router, NOW);
        assert_eq!(hops(&router, "10.8.0.0/16"), [(address("169.254.0.1"), 0), (address("fe80::2"), 1)]);
        for change in [
            route("10.8.0.0/16", &[("10.9.9.9", OTHER)], RouteKind::Unicast),
            Change::RouteGone { prefix: prefix("10.8.0.0/16") },
        ] {
            follower.apply(&route("10.8.0.0/16", &both, RouteKind::Unicast), &mut router, NOW);
            follower.apply(&change, &mut router, NOW);
            follower.expire(&mut router, LATER);
            assert!(hops(&router, "10.8.0.0/16").is_empty(), "{change:?}");
            assert_eq!(router.route_to(address("10.8.0.1")), None, "{change:?}");
        }
    }

    #[test]
    fn packets_of_routes_that_cannot_be_followed_are_dropped() {
        let (mut follower, mut router) = rig();
        follower.apply(&route("10.0.0.0/8", &[("fe80::2", 6)], RouteKind::Unicast), &mut router, NOW);
        for change in [
            route("10.8.0.0/16", &[], RouteKind::Unreachable),
            route("10.8.0.0/16", &[("fe80::2", 6)], RouteKind::Other),
        ] {
            follower.apply(&change, &mut router, NOW);
            let found = router.route_to(address("10.8.0.1"));
            assert_eq!(found, Some((Source::Kernel, GroupId::BLACKHOLE)), "{change:?}");
            follower.apply(&Change::RouteGone { prefix: prefix("10.8.0.0/16") }, &mut router, NOW);
            follower.expire(&mut router, LATER);
        }
    }

    #[test]
    fn route_without_a_gateway_leads_to_neighbours_on_its_tap() {
        let (mut follower, mut router) = rig();
        let (to, host) = ("10.8.0.0/16", address("10.8.0.1"));
        let source = |router: &Router| router.route_to(host).map(|(source, _)| source);
        follower.apply(&route(to, &[("", OTHER), ("", 6)], RouteKind::Unicast), &mut router, NOW);
        assert!(router.is_connected(host));
        let learned = Neighbour { index: 6, address: host, mac: PEER, is_permanent: false };
        follower.apply(&Change::Neighbour(learned), &mut router, NOW);
        assert_eq!(source(&router), Some(Source::Neighbour));
        follower.apply(&route(to, &[("fe80::2", 5)], RouteKind::Unicast), &mut router, NOW);
        assert_eq!(source(&router), Some(Source::Kernel), "the neighbour is on no network now");
        follower.apply(&route(to, &[("", 6)], RouteKind::Unicast), &mut router, NOW);
        assert_eq!(source(&router), Some(Source::Neighbour));
        follower.apply(&Change::RouteGone { prefix: prefix(to) }, &mut router, NOW);
        follower.expire(&mut router, LATER);
        assert_eq!(source(&router), None);
        follower.apply(&route(to, &[("", OTHER)], RouteKind::Unicast), &mut router, NOW);
        assert_eq!(source(&router), None, "another link");
    }

    #[test]
    fn table_with_a_gap_is_known_until_the_gap_closes() {
        let (mut follower, mut router) = rig();
        let table = TableName::RoutesV4;
        for (opens, closes) in [
            (Change::Full { table, limit: 1 }, Change::NotFull { table }),
            (Change::Undecoded { table }, Change::Decoded { table }),
        ] {
            follower.apply(&opens, &mut router, NOW);
            assert!(!follower.has_all(), "{opens:?}");
            follower.apply(&closes, &mut router, NOW);
            assert!(follower.has_all(), "{closes:?}");
        }
    }

    #[test]
    fn route_that_is_removed_and_added_again_stays() {
        let (mut follower, mut router) = rig();
        let added = route("2001:db8:8::/48", &[("fe80::2", 6)], RouteKind::Unicast);
        follower.apply(&added, &mut router, NOW);
        follower.apply(&Change::RouteGone { prefix: prefix("2001:db8:8::/48") }, &mut router, NOW);
        follower.expire(&mut router, Nanos(LATER.0 - 1));
        assert_eq!(hops(&router, "2001:db8:8::/48").len(), 1);
        follower.apply(&added, &mut router, NOW);
        follower.expire(&mut router, LATER);
        assert_eq!(hops(&router, "2001:db8:8::/48").len(), 1);
    }

    /// FRR's entry for the router of an unnumbered link stays in the kernel while the link is down.
    #[test]
    fn permanent_neighbour_is_confirmed_again_when_its_link_returns() {
        let (mut follower, mut router) = rig();
        let gateway = address("169.254.0.1");
        let neighbour = Neighbour { index: 6, address: gateway, mac: PEER, is_permanent: true };
        follower.apply(&Change::Neighbour(neighbour), &mut router, NOW);
        let state = |router: &Router| {
            let neighbours = router.neighbours_view(NOW);
            neighbours.iter().find(|known| known.address == gateway && known.interface == 1).map(|known| known.state)
        };
        assert_eq!(state(&router), Some(State::Reachable));
        router.set_links(PortSet::only(0), NOW);
        follower.refresh(&mut router, NOW);
        assert_ne!(state(&router), Some(State::Reachable), "the link is down");
        router.set_links(PortSet::first(2), NOW);
        follower.refresh(&mut router, NOW);
        assert_eq!(state(&router), Some(State::Reachable));
        follower.apply(&Change::NeighbourGone { index: 6, address: gateway }, &mut router, NOW);
        router.set_links(PortSet::only(0), NOW);
        router.set_links(PortSet::first(2), NOW);
        follower.refresh(&mut router, NOW);
        assert_ne!(state(&router), Some(State::Reachable), "Linux has forgotten it");
    }

    /// Linux has entries too that only a solicitation has made.
    #[test]
    fn neighbour_of_linux_is_stale_until_it_answers_the_router() {
        let (mut follower, mut router) = rig();
        let neighbour = Neighbour { index: 6, address: address("10.0.1.9"), mac: PEER, is_permanent: false };
        follower.apply(&Change::Neighbour(neighbour), &mut router, NOW);
        assert_eq!(router.neighbours_view(NOW).iter().map(|one| one.state).collect::<Vec<_>>(), [State::Stale]);
    }

    #[test]
    fn addresses_of_taps_are_own_with_their_networks_and_others_without() {
        let (mut follower, mut router) = rig();
        let link = Link { index: OTHER, name: "lo".into(), is_admin_up: true, is_up: true, mac: None, mtu: 65_536 };
        for change in [
            Change::Link(link),
            Change::Address(own(5, "10.5.0.1/24")),
            Change::Address(own(OTHER, "10.255.0.1/16")),
            Change::Address(own(OTHER, "127.0.0.1/8")),
            network("10.5.0.0/24", 5),
            network("10.255.0.0/16", OTHER),
        ] {
            follower.apply(&change, &mut router, NOW);
        }
        follower.finish(&mut router, NOW);
        assert!(router.is_connected(address("10.5.0.9")));
        let local = Some((Source::Local, GroupId::LOCAL));
        assert_eq!((router.route_to(address("10.5.0.1")), router.route_to(address("10.255.0.1"))), (local, local));
        assert_eq!(router.route_to(address("10.255.0.9")), None, "no network of another link");
        assert_ne!(router.route_to(address("127.0.0.1")), local);
        follower.apply(&Change::RouteGone { prefix: prefix("10.5.0.0/24") }, &mut router, NOW);
        follower.expire(&mut router, LATER);
        follower.finish(&mut router, LATER);
        assert_eq!(router.route_to(address("10.5.0.9")), None, "without the route of the kernel");
    }

    #[test]
    fn tap_without_a_carrier_is_open_and_one_that_linux_disables_is_shut() {
        let (mut follower, mut router) = rig();
        let mut set = |is_admin_up, is_up, router: &mut Router| {
            let link = Link { index: 6, name: "p2".into(), is_admin_up, is_up, mac: None, mtu: 1500 };
            follower.apply(&Change::Link(link), router, NOW);
            router.is_shut(1)
        };
        assert!(!set(true, false, &mut router), "the switch takes the carrier away");
        assert!(router.is_connected(address("10.0.1.9")));
        assert!(set(false, false, &mut router));
        assert!(!router.is_connected(address("10.0.1.9")) && router.route_to(address("10.0.1.1")).is_none());
        assert!(!set(true, true, &mut router) && router.is_connected(address("10.0.1.9")));
        follower.apply(&Change::LinkGone { index: 6 }, &mut router, NOW);
        assert!(router.is_shut(1) && !router.is_shut(0), "only the removed tap");
    }

    #[test]
    fn address_that_a_shut_tap_has_lost_is_wanted_again_when_it_is_open() {
        let (mut follower, mut router) = rig();
        let (kept, other) = (own(6, "2001:db8:1::1/64"), own(6, "2001:db8:9::1/64"));
        let mut lost = |changes: &[Change], is_shut, router: &mut Router| {
            router.set_shut(1, is_shut, NOW);
            changes.iter().for_each(|change| follower.apply(change, router, NOW));
            follower.take_lost(router, |_, address| *address == kept.address).into_iter().collect::<Vec<_>>()
        };
        let (all, gone) = ([kept, other].map(Change::Address), [kept, other].map(Change::AddressGone));
        assert_eq!(lost(&all, false, &mut router), []);
        assert_eq!(lost(&gone, true, &mut router), []);
        assert_eq!(lost(&[], false, &mut router), [(1, kept.address)], "not those of others");
        assert_eq!(lost(&[], false, &mut router), [], "once");
        assert_eq!(lost(&gone, true, &mut router), []);
        assert_eq!(lost(&all, false, &mut router), [], "Linux has it");
    }

    #[test]
    fn network_is_that_of_the_peer_and_an_address_without_a_route_has_none() {
        let (mut follower, mut router) = rig();
        let peer = Address { index: 5, address: prefix("10.5.0.1/32"), peer: Some(prefix("10.6.0.2/32")) };
        let far = Address { index: 5, address: prefix("10.5.0.1/24"), peer: Some(prefix("10.7.0.2/24")) };
        for change in [
            Change::Address(peer),
            Change::Address(far),
            Change::Address(own(6, "10.8.0.1/24")),
            network("10.6.0.2/32", 5),
            network("10.7.0.0/24", 5),
            network("169.254.1.0/24", 5),
        ] {
            follower.apply(&change, &mut router, NOW);
        }
        follower.finish(&mut router, NOW);
        let is_local = |router: &Router, text| router.route_to(address(text)) == Some((Source::Local, GroupId::LOCAL));
        assert!(["10.6.0.2", "10.7.0.9"].iter().all(|text| router.is_connected(address(text))));
        assert!(!router.is_connected(address("169.254.1.9")), "its packets do not leave their link");
        assert!(is_local(&router, "10.5.0.1") && is_local(&router, "10.8.0.1"));
        assert_eq!(["10.5.0.9", "10.6.0.3", "10.8.0.9"].map(|text| router.route_to(address(text))), [None; 3]);
        follower.apply(&Change::AddressGone(peer), &mut router, NOW);
        follower.finish(&mut router, NOW);
        assert!(is_local(&router, "10.5.0.1"), "it has another peer");
    }
}
