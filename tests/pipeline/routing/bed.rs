//! The switch of the routing tests, its tables, and its control plane.
//!
//! Ports 0 and 1 are routed. Ports 2 and 5 are in VLAN 10, port 4 is in VLAN 20, and port 3 carries both with tags. The
//! router has an interface in each VLAN. [`HOPS`] lists the next hops.

use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use holdfast::forward::VlanMode;
use holdfast::plan::exception::ExceptionLink;
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::route::{
    Action, Adjacency, AdjacencyId, Attachment, FibWriter, FlowHash, Group, GroupId, InterfaceSpec, PuntCause,
    PuntFrame, RouteTable, RoutingSpec, SoftFib,
};
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;

use super::packet::Packet;
use crate::harness::*;

pub const PORTS: usize = 6;
/// VLAN of each interface: the first two are routed ports.
pub const VLANS: [u16; 4] = [4094, 4093, 10, 20];

/// A next hop.
pub struct Hop {
    /// Index of its interface.
    pub interface: usize,
    /// Station behind the port, by its number.
    pub station: usize,
    /// The port that leads to it; `None` if the forwarding database does not know it.
    pub port: Option<usize>,
}

/// Next hops. Number n has the routes 10.n.0.0/16 and fd00:n::/32.
pub const HOPS: [Hop; 7] = [
    Hop { interface: 0, station: 0, port: Some(0) },
    Hop { interface: 1, station: 1, port: Some(1) },
    Hop { interface: 2, station: 2, port: Some(2) },
    Hop { interface: 3, station: 3, port: Some(3) },
    Hop { interface: 3, station: 4, port: Some(4) },
    Hop { interface: 2, station: 5, port: Some(5) },
    Hop { interface: 2, station: 77, port: None },
];

impl Hop {
    pub fn vlan(&self) -> u16 {
        VLANS[self.interface]
    }

    /// Source and destination address of frames to the next hop.
    pub fn macs(&self) -> (MacAddr, MacAddr) {
        (own_mac(self.interface), mac(self.station))
    }

    pub fn adjacency(&self, id: AdjacencyId) -> Adjacency {
        let port = PortSet::only_if(self.interface < 2, self.interface);
        Adjacency::new(id, [mac(self.station), own_mac(self.interface)], self.vlan(), port, 1500)
    }
}

/// The router's MAC address on an interface.
pub fn own_mac(interface: usize) -> MacAddr {
    MacAddr::local(9, interface as u16)
}

/// The interface to which frames on `port` in the VLAN of `tag` belong.
pub fn interface_at(port: usize, tag: Option<u16>) -> usize {
    match (port, tag) {
        (0 | 1, _) => port,
        (2 | 5, _) | (3, Some(10)) => 2,
        _ => 3,
    }
}

/// A switch with the ports and interfaces of this module.
pub fn routing_spec() -> SwitchSpec {
    routing_spec_of(&[4094, 4093, 10, 0, 20, 10])
}

/// A switch with the interfaces of this module. Ports but the fourth are in these VLANs.
pub fn routing_spec_of(vlans: &[u16]) -> SwitchSpec {
    let mut spec = spec(vlans.len());
    for (port, &vlan) in spec.ports.iter_mut().zip(vlans) {
        port.vlan = if vlan > 4000 { VlanMode::Routed(vlan) } else { VlanMode::Access(vlan) };
    }
    spec.ports[3].vlan = VlanMode::Trunk { tagged: vec![10, 20], native: None };
    let interface = |index: usize| InterfaceSpec {
        name: format!("interface{index}"),
        attachment: if index < 2 { Attachment::Port(index as u8) } else { Attachment::Vlan },
        vlan: VLANS[index],
        mac: own_mac(index),
        ports: (0..vlans.len()).filter(|&port| carries(&spec.ports[port].vlan, VLANS[index])).collect::<PortSet>(),
        addresses: ["24", "64"]
            .iter()
            .zip(own_addresses(index))
            .map(|(len, own)| net(&format!("{own}/{len}")))
            .collect(),
        mtu: 1500,
    };
    spec.routing = Some(RoutingSpec::of((0..VLANS.len()).map(interface).collect()));
    spec
}

fn carries(mode: &VlanMode, vlan: u16) -> bool {
    mode.untagged() == Some(vlan) || mode.tagged().contains(&vlan)
}

/// The router's addresses on an interface.
pub fn own_addresses(interface: usize) -> [IpAddr; 2] {
    [format!("10.250.{interface}.1"), format!("fd00:250:{interface}::1")].map(|text| text.parse().unwrap())
}

fn net(text: &str) -> ipnet::IpNet {
    text.parse().unwrap_or_else(|_| panic!("{text} is a prefix"))
}

/// Routing tables under construction.
pub struct Tables {
    /// The port by which the next hop without a known port has answered.
    pub answered_by: Option<u8>,
    pub table: RouteTable,
    fib: Arc<SoftFib>,
    groups: Vec<Group>,
    buckets: Vec<AdjacencyId>,
}

impl Default for Tables {
    /// The routes of [`HOPS`] and of the own addresses, and one of each kind that does not forward: 10.200.0.0/16
    /// drops, the neighbours of 10.201.0.0/16 are not known, and the next hop of 10.202.0.0/16 is not known. The same
    /// numbers stand in IPv6 prefixes. 10.100.0.0/16 has four next hops: those of ports 0, 1, 2 and 4.
    fn default() -> Self {
        let mut tables = Self::empty();
        for number in 0..HOPS.len() {
            tables.forward(&[&format!("10.{number}.0.0/16"), &format!("fd00:{number}::/32")], &[number]);
        }
        tables.forward(&["10.100.0.0/16", "fd00:100::/32"], &[0, 1, 2, 4]);
        for (prefixes, group) in [
            (["10.200.0.0/16", "fd00:200::/32"], Action::Blackhole),
            (["10.201.0.0/16", "fd00:201::/32"], Action::Glean(0)),
            (["10.202.0.0/16", "fd00:202::/32"], Action::Incomplete(1)),
        ] {
            let group = tables.group(Group::without_buckets(group));
            prefixes.iter().for_each(|prefix| tables.set(prefix, group));
        }
        for prefix in ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"] {
            tables.set(prefix, GroupId::MARTIAN);
        }
        for prefix in ["::/128", "::1/128", "fe80::/10", "ff00::/8"] {
            tables.set(prefix, GroupId::MARTIAN);
        }
        for own in (0..VLANS.len()).flat_map(own_addresses).chain(["fe80::9".parse().unwrap()]) {
            tables.set(&ipnet::IpNet::from(own).to_string(), GroupId::LOCAL);
        }
        tables
    }
}

impl Tables {
    /// Tables with adjacencies and own addresses, without routes.
    pub fn empty() -> Self {
        let fib = Arc::new(SoftFib::default());
        let mut table = RouteTable::empty(fib.clone());
        table.hash = FlowHash::new(1, false);
        table.set_own((0..VLANS.len()).flat_map(own_addresses).chain(["fe80::9".parse().unwrap()]));
        Self { answered_by: None, table, fib, groups: RouteTable::fixed_groups().into(), buckets: Vec::new() }
    }

    /// Adds a group.
    pub fn group(&mut self, group: Group) -> GroupId {
        self.groups.push(group);
        GroupId(self.groups.len() as u32 - 1)
    }

    /// Adds a group whose buckets are `hops`, as many as a power of two.
    pub fn hops(&mut self, hops: &[usize]) -> GroupId {
        let ids: Vec<_> = hops.iter().map(|&hop| AdjacencyId(hop as u16)).collect();
        let group = Group::of(&ids, &mut self.buckets);
        self.group(group)
    }

    pub fn set(&mut self, prefix: &str, group: GroupId) {
        self.fib.set(net(prefix), group).unwrap();
    }

    /// Routes `prefixes` to `hops`.
    pub fn forward(&mut self, prefixes: &[&str], hops: &[usize]) {
        let group = self.hops(hops);
        prefixes.iter().for_each(|prefix| self.set(prefix, group));
    }

    pub fn share(self) -> Arc<RouteTable> {
        let Self { answered_by, mut table, groups, buckets, .. } = self;
        let answer = |hop: &Hop| answered_by.filter(|_| hop.port.is_none());
        let adjacency = |(id, hop): (AdjacencyId, &Hop)| hop.adjacency(id).answered_by(answer(hop));
        let adjacencies = (0..).map(AdjacencyId).zip(&HOPS).map(adjacency).collect();
        table.set_groups(groups.into(), buckets.into(), adjacencies);
        Arc::new(table)
    }
}

/// A switch that routes, and its control plane.
pub struct RoutingBed {
    bed: Bed,
    /// Ends of the control plane, by lcore.
    pub links: Vec<ExceptionLink>,
}

impl Deref for RoutingBed {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

impl DerefMut for RoutingBed {
    fn deref_mut(&mut self) -> &mut Bed {
        &mut self.bed
    }
}

impl RoutingBed {
    /// Creates the switch of this module with its tables. It knows all stations of [`HOPS`] that have a port.
    pub fn new() -> Self {
        Self::with(&routing_spec(), Tables::default())
    }

    /// Creates a switch by a changed `spec` or with other tables.
    pub fn with(spec: &SwitchSpec, tables: Tables) -> Self {
        let mut bed = Bed::new(spec);
        bed.switch.set_routes(&tables.share());
        let mtu = spec.ports.iter().map(|port| port.mtu).max().unwrap();
        // An Ethernet header and two tags.
        let links = bed.switch.attach_exceptions(usize::from(mtu) + 22);
        let mut bed = Self { bed, links };
        bed.learn();
        bed
    }

    /// Learns the stations of [`HOPS`] in bridged VLANs.
    pub fn learn(&mut self) {
        for hop in HOPS.iter().filter(|hop| hop.interface >= 2) {
            hop.port.into_iter().for_each(|port| self.switch.learn(hop.vlan(), mac(hop.station), port));
        }
        self.run(2_000);
    }

    /// Receives `frame` at `port`, and lets all that follows happen.
    pub fn receive(&mut self, port: usize, frame: &[u8]) {
        self.io.inject(port, frame);
        self.run(10_000);
    }

    /// The punted frames, in the order of the lcores.
    pub fn punted(&mut self) -> Vec<PuntFrame> {
        let mut punted = Vec::new();
        for link in &mut self.links {
            while let Some(frame) = link.receive() {
                punted.push(PuntFrame::clone(&frame));
                link.give_back(frame);
            }
        }
        punted
    }

    /// Causes of the punted frames.
    pub fn causes(&mut self) -> Vec<PuntCause> {
        self.punted().iter().map(|frame| frame.cause).collect()
    }

    /// Data frames sent by each port since the last call.
    pub fn sent(&mut self) -> Vec<(usize, Vec<u8>)> {
        (0..PORTS).flat_map(|port| self.data(port).into_iter().map(move |frame| (port, frame))).collect()
    }

    /// Every drop since the start: port, reason and number.
    pub fn all_drops(&self) -> Vec<(usize, DropReason, u64)> {
        let ports = (0..PORTS).flat_map(|port| DropReason::TABLE.iter().map(move |(reason, ..)| (port, *reason)));
        let drops = ports.map(|(port, reason)| (port, reason, self.drops(port, reason)));
        drops.filter(|(_, _, count)| *count > 0).collect()
    }

    /// Number of data frames that `port` has sent.
    pub fn tx_frames(&self, port: usize) -> u64 {
        self.counters.of_port(port).flat_map(|port| &port.tx_frames).map(|count| count.get()).sum()
    }

    /// Sum of a counter over all lcores.
    pub fn sum(&self, counter: impl Fn(&holdfast::plan::counters::LcoreCounters) -> u64) -> u64 {
        self.counters.lcores.iter().map(|lcore| counter(lcore)).sum()
    }
}

/// A packet that arrives at `port`, with a tag of VLAN `tag`, to the router there. It goes to next hop `hop` by IPv4,
/// or by IPv6 if `is_v6`.
pub fn packet_at(port: usize, tag: Option<u16>, hop: usize, is_v6: bool) -> Packet {
    let macs = (mac(100 + port), own_mac(interface_at(port, tag)));
    let (src, dst) = if is_v6 {
        ("fd00:77::9".to_owned(), format!("fd00:{hop}::7"))
    } else {
        ("10.77.0.9".to_owned(), format!("10.{hop}.0.7"))
    };
    let tag = tag.map(|vlan| (super::packet::CUSTOMER, vlan));
    Packet { tag, ..Packet::new(macs, &src, &dst) }
}

/// The frame by which `packet` leaves to next hop `hop`, untagged.
pub fn at_next_hop(packet: &Packet, hop: usize) -> Packet {
    let (from, to) = HOPS[hop].macs();
    packet.routed(from, to)
}
