//! An interface of the router: its addresses, and the routes that follow from them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::frames;
use super::groups::Groups;
use super::neighbours::Neighbours;
use super::rib::Source;
use crate::route::{Adjacency, AdjacencyId, Attachment, GroupId, InjectTo, InterfaceSpec, single_host};
use crate::sets::PortSet;
use crate::wire::MacAddr;

/// Own addresses of an interface, and networks whose hosts are neighbours there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Own addresses, with the lengths of their networks' prefixes.
    pub addresses: Vec<IpNet>,
    /// Networks: those of configured addresses, and those that the kernel's own routes have for other addresses.
    pub networks: Vec<IpNet>,
}

impl Attached {
    /// The addresses of a configuration with their networks.
    pub fn configured(addresses: &[IpNet]) -> Self {
        let is_network =
            |network: &&IpNet| !is_link_local(network.addr()) && network.prefix_len() < network.max_prefix_len();
        let mut networks: Vec<IpNet> = addresses.iter().filter(is_network).map(IpNet::trunc).collect();
        networks.sort_unstable();
        networks.dedup();
        Self { addresses: addresses.to_vec(), networks }
    }
}

/// Number of /24s that an IPv4 prefix touches; none of IPv6.
pub fn ipv4_blocks(prefix: IpNet) -> u64 {
    if prefix.addr().is_ipv4() { 1 << 24_u8.saturating_sub(prefix.prefix_len()) } else { 0 }
}

/// An interface.
#[derive(Debug)]
pub struct Interface {
    pub name: String,
    pub mac: MacAddr,
    pub vlan: u16,
    pub mtu: u16,
    pub ports: PortSet,
    /// The way of its frames.
    pub to: InjectTo,
    pub is_up: bool,
    /// Whether Linux has shut it.
    pub is_shut: bool,
    /// Its link-local address, by its MAC address.
    pub link_local: Ipv6Addr,
    attached: Attached,
}

/// Addresses that no packet may have as its destination, and the group that drops them.
pub fn fixed_routes() -> impl Iterator<Item = (IpNet, GroupId)> {
    // RFC 6890: this network, loopback, link-local; groups and reserved addresses. RFC 4291: the same for IPv6.
    const MARTIANS: [&str; 9] = [
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "::1/128",
        "fe80::/10",
        "ff00::/8",
    ];
    MARTIANS.iter().filter_map(|text| text.parse().ok()).map(|prefix| (prefix, GroupId::MARTIAN))
}

/// Whether an address is valid on its link only.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

impl Interface {
    /// Creates the interface of `spec` without addresses, up.
    pub fn new(spec: &InterfaceSpec) -> Self {
        let to = match spec.attachment {
            Attachment::Port(port) => InjectTo::Port(port),
            Attachment::Vlan => InjectTo::Vlan(spec.vlan),
        };
        Self {
            name: spec.name.clone(),
            mac: spec.mac,
            vlan: spec.vlan,
            mtu: spec.mtu,
            ports: spec.ports,
            to,
            is_up: true,
            is_shut: false,
            link_local: frames::link_local(spec.mac),
            attached: Attached::default(),
        }
    }

    /// The addresses and networks, in use or not.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// The addresses and networks in use: none while the interface is shut.
    fn used(&self) -> &Attached {
        static NONE: Attached = Attached { addresses: Vec::new(), networks: Vec::new() };
        if self.is_shut { &NONE } else { &self.attached }
    }

    /// The own addresses without the link-local one that follows from the MAC address; none of a shut interface.
    pub fn addresses(&self) -> &[IpNet] {
        &self.used().addresses
    }

    /// Sets the own addresses and networks. Returns those before.
    pub fn attach(&mut self, attached: Attached) -> Attached {
        std::mem::replace(&mut self.attached, attached)
    }

    /// All addresses of the router here, with the link-local one; none of a shut interface.
    pub fn own(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let link_local = (!self.is_shut).then_some(self.link_local.into());
        self.addresses().iter().map(IpNet::addr).chain(link_local)
    }

    /// Whether `address` is on a network of the interface.
    pub fn has_network_of(&self, address: IpAddr) -> bool {
        self.used().networks.iter().any(|network| network.contains(&address))
    }

    /// Whether a host here may have `address`: it is no group, no loopback, no network, no broadcast address (RFC 1812
    /// section 4.2.2.11), and not the anycast address of all routers of a network (RFC 4291 section 2.6.1).
    pub fn may_be_host(&self, address: IpAddr) -> bool {
        single_host::is_possible(address) && !self.broadcasts().any(|end| end == address) && !self.is_anycast(address)
    }

    /// Number of /24s that the IPv4 networks consist of.
    pub fn ipv4_blocks(&self) -> u64 {
        self.attached.networks.iter().map(|network| ipv4_blocks(*network)).sum()
    }

    /// The own address from which to ask for `target`.
    pub fn source_v4(&self, target: Ipv4Addr) -> Option<Ipv4Addr> {
        let own = |network: &&IpNet| network.contains(&IpAddr::V4(target));
        let v4 = |network: &IpNet| match network.addr() {
            IpAddr::V4(own) => Some(own),
            IpAddr::V6(_) => None,
        };
        self.addresses().iter().find(own).and_then(v4).or_else(|| self.addresses().iter().find_map(v4))
    }

    /// The own address from which to ask for `target`; the link-local one if none is on its network.
    pub fn source_v6(&self, target: Ipv6Addr) -> Ipv6Addr {
        let networks = self.addresses().iter().filter(|network| network.contains(&IpAddr::V6(target)));
        let mut own = networks.filter_map(|network| match network.addr() {
            IpAddr::V6(own) => Some(own),
            IpAddr::V4(_) => None,
        });
        own.next().unwrap_or(self.link_local)
    }

    /// An own address of the family of `peer` that other networks can reach.
    pub fn routable(&self, peer: IpAddr) -> Option<IpAddr> {
        let own = self.addresses().iter().map(IpNet::addr);
        own.filter(|own| own.is_ipv4() == peer.is_ipv4()).find(|own| !is_link_local(*own))
    }

    /// The routes that follow from the addresses and networks. Without a link there is no way to the networks.
    pub fn routes(&self, index: u16) -> Vec<(IpNet, Source, GroupId)> {
        let own = self.own().chain(self.anycasts().map(IpAddr::from));
        let own = own.map(|own| (IpNet::from(own), Source::Local, GroupId::LOCAL));
        let mut routes: Vec<_> = own.collect();
        if !self.is_up {
            return routes;
        }
        let networks = &self.used().networks;
        routes.extend(networks.iter().map(|network| (*network, Source::Connected, Groups::glean(index))));
        // RFC 2644: "A router MAY [...] disable receipt of network-prefix-directed broadcasts". Local: no neighbour
        // that claims such an address comes first.
        routes.extend(self.broadcasts().map(|end| (IpNet::from(end), Source::Local, GroupId::MARTIAN)));
        routes
    }

    /// The network and broadcast addresses of its networks, except own addresses.
    pub fn broadcasts(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let all = self.addresses().iter().chain(&self.used().networks);
        let v4 = all.filter_map(|network| if let IpNet::V4(network) = network { Some(*network) } else { None });
        v4.flat_map(single_host::broadcasts).map(IpAddr::from).filter(|end| self.own().all(|own| own != *end))
    }

    /// The subnet-router anycast addresses of its networks, except own addresses.
    pub fn anycasts(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let networks = self.used().networks.iter();
        let v6 = networks.filter_map(|network| if let IpNet::V6(network) = network { Some(*network) } else { None });
        v6.filter_map(single_host::anycast).filter(|anycast| self.own().all(|own| own != *anycast))
    }

    /// Whether `address` is the subnet-router anycast address of one of its networks.
    pub fn is_anycast(&self, address: IpAddr) -> bool {
        self.anycasts().any(|anycast| anycast == address)
    }
}

/// The adjacencies of all neighbours, by number. Numbers that no neighbour has lead nowhere, and no bucket has them.
pub fn adjacencies(interfaces: &[Interface], neighbours: &Neighbours) -> Box<[Adjacency]> {
    let ids = (0..neighbours.adjacencies()).map(|id| AdjacencyId(id as u16));
    let mut made: Box<[Adjacency]> = ids.map(Adjacency::unused).collect();
    for ((index, _), neighbour) in neighbours.iter() {
        let (Some(id), Some(interface)) = (neighbour.adjacency, interfaces.get(usize::from(index))) else { continue };
        let port = match interface.to {
            InjectTo::Port(port) | InjectTo::Link(port) => PortSet::only(port.into()),
            InjectTo::Vlan(_) => PortSet::EMPTY,
        };
        let macs = [neighbour.mac, interface.mac];
        let answered_by = neighbour.port.filter(|&port| interface.ports.contains(port.into()));
        made[usize::from(id.0)] =
            Adjacency::new(id, macs, interface.vlan, port, interface.mtu).answered_by(answered_by);
    }
    made
}
