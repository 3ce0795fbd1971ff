//! The plan of a routed network: addresses, router interfaces, shortest paths and neighbours. docs/simulation.md lists
//! the addresses.
//!
//! Ports between switches are routed ports. The other ports of a switch share one VLAN, whose interface is the gateway
//! of the hosts there.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

use super::routes::Cables;
use super::spec::{End, PortRef, RoutedSpec, Scenario, SwitchNode};
use crate::forward::vlan::VlanMode;
use crate::route::{Attachment, FibSize, InterfaceSpec, NextHopSpec, RouteSpec, RoutingSpec, StaticNeighbour};
use crate::sets::PortSet;
use crate::wire::MacAddr;

/// Kind of the MAC addresses of routers among the locally administered ones.
const ROUTER_MAC: u8 = 2;
/// VLAN of routed port 0 inside its switch; further ports count down.
pub const HIGHEST_VLAN: u16 = 4094;
/// Prefix lengths of the network of a switch's hosts and of a link between switches.
const HOSTS: u8 = 24;
const LINK: u8 = 31;
/// Multiplier that gives each switch its own hash seed.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the MAC address of the router in switch number `switch`.
fn router_mac(switch: usize) -> MacAddr {
    MacAddr::local(ROUTER_MAC, switch as u16)
}

/// Returns the address of the gateway for the hosts of switch number `switch`.
fn gateway(switch: usize) -> Ipv4Addr {
    let [row, number] = (switch as u16 + 1).to_be_bytes();
    Ipv4Addr::new(10, number, row, 1)
}

/// Returns the address of the host at a port.
fn host_address(at: PortRef) -> Ipv4Addr {
    let [_, number, row, _] = gateway(at.switch).octets();
    Ipv4Addr::new(10, number, row, at.port as u8 + 2)
}

/// Returns the network of the hosts of switch number `switch`.
fn host_network(switch: usize) -> Ipv4Net {
    Ipv4Net::new_assert(gateway(switch), HOSTS)
}

/// Returns the address of one end of link number `link`.
fn link_address(link: usize, is_a: bool) -> Ipv4Addr {
    let offset = 2 * link as u32 + u32::from(!is_a);
    Ipv4Addr::from_bits(Ipv4Addr::new(172, 16, 0, 0).to_bits() + offset)
}

/// Returns the MAC address of the gateway of `host`, if frames of `host` to `other` are routed.
#[must_use]
pub fn gateway_between(scenario: &Scenario, cables: &Cables, host: usize, other: usize) -> Option<MacAddr> {
    scenario.routed?;
    let (from, to) = (cables.port_of(host)?, cables.port_of(other)?);
    (from.switch != to.switch).then(|| router_mac(from.switch))
}

/// Gives hosts and switches of `scenario` their addresses, and switches the routes of all shortest paths.
#[must_use]
pub fn apply(mut scenario: Scenario, routed: RoutedSpec) -> Scenario {
    scenario.routed = Some(routed);
    let cables = Cables::new(&scenario);
    for (host, node) in scenario.hosts.iter_mut().enumerate() {
        if let Some(at) = cables.port_of(host) {
            node.ip = host_address(at);
        }
    }
    let fabric = Fabric::new(&scenario);
    let plans: Vec<RoutingSpec> = (0..scenario.switches.len()).map(|switch| fabric.plan(switch, routed)).collect();
    for (node, routing) in scenario.switches.iter_mut().zip(plans) {
        let spec = &mut node.config.switch;
        for interface in &routing.interfaces {
            if let Attachment::Port(port) = interface.attachment {
                spec.ports[usize::from(port)].vlan = VlanMode::Access(interface.vlan);
            }
        }
        spec.routing = Some(routing);
    }
    scenario
}

/// A port that leads to another switch.
#[derive(Debug, Clone, Copy)]
struct Uplink {
    port: usize,
    peer: PortRef,
    /// Number of the link, and whether the port is its end `a`.
    link: usize,
    is_a: bool,
}

/// The switches of a scenario and the links between them.
#[derive(Debug)]
pub struct Fabric<'a> {
    scenario: &'a Scenario,
    uplinks: Vec<Vec<Uplink>>,
    /// Hosts of each switch, with their ports.
    hosts: Vec<Vec<(usize, PortRef)>>,
}

impl<'a> Fabric<'a> {
    /// Returns the fabric of `scenario`.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let switches = scenario.switches.len();
        let (mut uplinks, mut hosts) = (vec![Vec::new(); switches], vec![Vec::new(); switches]);
        for (link, node) in scenario.links.iter().enumerate() {
            match (node.a, node.b) {
                (End::Port(a), End::Port(b)) => {
                    for (own, peer, is_a) in [(a, b, true), (b, a, false)] {
                        uplinks[own.switch].push(Uplink { port: own.port, peer, link, is_a });
                    }
                }
                (End::Port(port), End::Host(host)) | (End::Host(host), End::Port(port)) => {
                    hosts[port.switch].push((host, port));
                }
                (End::Host(_), End::Host(_)) => {}
            }
        }
        Self { scenario, uplinks, hosts }
    }

    /// Returns the plan of the router in `switch` while all links are up.
    fn plan(&self, switch: usize, routed: RoutedSpec) -> RoutingSpec {
        let routes = self.routes(switch, &|_| true);
        let mut interfaces: Vec<InterfaceSpec> =
            self.uplinks[switch].iter().map(|uplink| self.link_interface(switch, uplink)).collect();
        let neighbours = self.uplinks[switch].iter().enumerate().map(|(index, uplink)| StaticNeighbour {
            interface: index as u16,
            address: link_address(uplink.link, !uplink.is_a).into(),
            mac: router_mac(uplink.peer.switch),
        });
        let mut neighbours: Vec<StaticNeighbour> = neighbours.collect();
        if let Some(hosts) = self.host_interface(switch) {
            neighbours.extend(self.host_neighbours(switch, interfaces.len() as u16));
            interfaces.push(hosts);
        }
        let hash_seed = routed.hash_seed.wrapping_add(1).wrapping_mul(SPREAD) ^ switch as u64;
        RoutingSpec {
            interfaces,
            routes,
            neighbours,
            hash_seed,
            is_symmetric: false,
            fib: FibSize::default(),
            linux: None,
        }
    }

    /// Returns the routes of `switch` to the hosts of all other switches, by all shortest paths over links that are up.
    ///
    /// The router itself excludes next hops on its own links that are down. Such a link stays in the routes, so that
    /// the group of next hops stays the same and only the flows of that link move.
    pub fn routes(&self, switch: usize, is_up: &dyn Fn(usize) -> bool) -> Vec<RouteSpec> {
        let mut routes = Vec::new();
        for other in (0..self.uplinks.len()).filter(|&other| other != switch && !self.hosts[other].is_empty()) {
            let away = self.distances(other, is_up);
            let hops = self.uplinks[switch].iter().enumerate().filter_map(|(index, uplink)| {
                let is_nearer = away[uplink.peer.switch] < away[switch];
                let address = IpAddr::from(link_address(uplink.link, !uplink.is_a));
                is_nearer.then_some(NextHopSpec { address, interface: index as u16, weight: 1 })
            });
            let next_hops: Vec<NextHopSpec> = hops.collect();
            if away[switch] < usize::MAX {
                routes.push(RouteSpec { prefix: host_network(other).trunc().into(), next_hops });
            }
        }
        routes
    }

    /// Returns the number of links that are up from each switch to `to`; `usize::MAX` without a path.
    fn distances(&self, to: usize, is_up: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let mut away = vec![usize::MAX; self.uplinks.len()];
        away[to] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(switch) = queue.pop_front() {
            for uplink in self.uplinks[switch].iter().filter(|uplink| is_up(uplink.link)) {
                let peer = uplink.peer.switch;
                if away[peer] == usize::MAX {
                    away[peer] = away[switch] + 1;
                    queue.push_back(peer);
                }
            }
        }
        away
    }

    fn node(&self, switch: usize) -> &SwitchNode {
        &self.scenario.switches[switch]
    }

    /// Returns the interface of a routed port.
    fn link_interface(&self, switch: usize, uplink: &Uplink) -> InterfaceSpec {
        let spec = &self.node(switch).config.switch.ports[uplink.port];
        let address = link_address(uplink.link, uplink.is_a);
        InterfaceSpec {
            name: spec.name.clone(),
            attachment: Attachment::Port(uplink.port as u8),
            vlan: HIGHEST_VLAN - uplink.port as u16,
            mac: router_mac(switch),
            ports: PortSet::only(uplink.port),
            addresses: vec![IpNet::V4(Ipv4Net::new_assert(address, LINK))],
            mtu: spec.mtu,
        }
    }

    /// Returns the interface of the VLAN of hosts; `None` if all ports lead to switches.
    fn host_interface(&self, switch: usize) -> Option<InterfaceSpec> {
        let spec = &self.node(switch).config.switch;
        let routed = self.uplinks[switch].iter().map(|uplink| uplink.port).collect();
        let ports = PortSet::first(spec.ports.len()) - routed;
        let vlan = spec.ports.get(ports.lowest()?)?.vlan.untagged()?;
        let mtu = ports.iter().map(|port| spec.ports[port].mtu).min()?;
        Some(InterfaceSpec {
            name: format!("vlan{vlan}"),
            attachment: Attachment::Vlan,
            vlan,
            mac: router_mac(switch),
            ports,
            addresses: vec![IpNet::V4(host_network(switch))],
            mtu,
        })
    }

    /// Returns the neighbours of `switch` that are hosts. The router does not know hosts with `known: false`.
    fn host_neighbours(&self, switch: usize, interface: u16) -> impl Iterator<Item = StaticNeighbour> {
        let known = self.hosts[switch].iter().map(|&(host, at)| (&self.scenario.hosts[host], at));
        let known = known.filter(|(node, _)| node.known);
        known.map(move |(node, at)| StaticNeighbour { interface, address: host_address(at).into(), mac: node.mac })
    }

    /// Returns the ports at which routed frames to `host` may enter switches, from the port `from` on.
    #[must_use]
    pub fn ingress_ports(&self, from: PortRef, home: PortRef) -> Vec<PortRef> {
        let away = self.distances(home.switch, &|_| true);
        let (mut ports, mut next) = (vec![from], 0);
        while let Some(&PortRef { switch, .. }) = ports.get(next) {
            for uplink in &self.uplinks[switch] {
                if away[uplink.peer.switch] < away[switch] && !ports.contains(&uplink.peer) {
                    ports.push(uplink.peer);
                }
            }
            next += 1;
        }
        ports
    }

    /// Returns the pairs of egress ports that a routed frame may take one after the other, from a host at `from` to the
    /// host at `home`, while all links are up.
    #[must_use]
    pub fn egress_pairs(&self, from: PortRef, home: PortRef) -> Vec<(PortRef, PortRef)> {
        let away = self.distances(home.switch, &|_| true);
        let egresses = |switch: usize| -> Vec<(PortRef, usize)> {
            if switch == home.switch {
                return vec![(home, switch)];
            }
            let nearer = self.uplinks[switch].iter().filter(|uplink| away[uplink.peer.switch] < away[switch]);
            nearer.map(|uplink| (PortRef { switch, port: uplink.port }, uplink.peer.switch)).collect()
        };
        let (mut pairs, mut reached, mut next) = (Vec::new(), vec![from.switch], 0);
        while let Some(&switch) = reached.get(next) {
            for (port, peer) in egresses(switch).into_iter().filter(|&(_, peer)| peer != switch) {
                pairs.extend(egresses(peer).into_iter().map(|(following, _)| (port, following)));
                if !reached.contains(&peer) {
                    reached.push(peer);
                }
            }
            next += 1;
        }
        pairs
    }
}
