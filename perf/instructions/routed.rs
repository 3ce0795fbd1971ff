//! Cases of routed packets through the whole pipeline: 1,024 routes, 16 next hops, 1,024 flows at each port.
//!
//! Each port has an interface of the router. Behind it are 256 networks: IPv4 prefixes of 24 bits, which take one
//! look-up, or IPv6 prefixes of 48 bits, which take four. Network n of a port has its next hop n modulo 4.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use holdfast::forward::VlanMode;
use holdfast::plan::SwitchSpec;
use holdfast::qos::Trust;
use holdfast::route::{Adjacency, AdjacencyId, Attachment, Group, GroupId, InterfaceSpec, RouteTable, RoutingSpec};
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;

use crate::dir24::Dir24;
use crate::frames::{Headers, PORTS, Traffic, mac};
use crate::pipelines::{Bench, spec};

/// Networks behind each port.
const NETWORKS: u32 = 256;
/// Next hops behind each port.
const HOPS: u32 = 4;
/// The VLAN of port 0; the other ports have the next ones.
const FIRST_VLAN: u16 = 100;

/// The router's address at `port`.
fn own_mac(port: usize) -> MacAddr {
    MacAddr([2, 0xff, 0, 0, 0, port as u8])
}

fn vlan(port: usize) -> u16 {
    FIRST_VLAN + port as u16
}

/// The upper 24 bits of network `network` behind `port`.
fn network(port: usize, network: u32) -> [u8; 3] {
    [10, 100 + port as u8, network as u8]
}

/// Gives a frame at `port` the router as its next hop, and a host behind another port as its destination. Its source is
/// the host of this number behind `port`. A tag gets the VLAN of the port.
fn address(bytes: &mut [u8], port: usize, destination: (usize, u32)) {
    let (to, host) = destination;
    bytes[..6].copy_from_slice(&own_mac(port).0);
    let is_tagged = bytes[12..14] == [0x81, 0];
    if is_tagged {
        let pcp = bytes[14] & 0xe0;
        bytes[14..16].copy_from_slice(&(u16::from(pcp) << 8 | vlan(port)).to_be_bytes());
    }
    let packet = &mut bytes[if is_tagged { 18 } else { 14 }..];
    let [own, network] = [port, to].map(|port| network(port, host % NETWORKS));
    let host = (host / NETWORKS) as u8 + 1;
    if packet[0] >> 4 == 4 {
        packet[12..16].copy_from_slice(&[own[0], own[1], own[2], host]);
        packet[16..20].copy_from_slice(&[network[0], network[1], network[2], host]);
        let (header, _) = etherparse::Ipv4Header::from_slice(packet).expect("a header");
        packet[10..12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    } else {
        packet[24..40]
            .copy_from_slice(&[0x20, 1, 0x0d, network[0], network[1], network[2], 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
}

/// The switch with an interface of the router at each port, whose VLANs are of the kind that `mode` makes.
fn routing_spec(flows: u32, mode: fn(u16) -> VlanMode) -> SwitchSpec {
    let mut spec = spec(flows);
    for (port, number) in spec.ports.iter_mut().zip(0..) {
        port.vlan = mode(vlan(number));
    }
    let is_routed = |port: usize| matches!(spec.ports[port].vlan, VlanMode::Routed(_));
    let interface = |port: usize| InterfaceSpec {
        name: format!("interface{port}"),
        attachment: if is_routed(port) { Attachment::Port(port as u8) } else { Attachment::Vlan },
        vlan: vlan(port),
        mac: own_mac(port),
        ports: PortSet::only(port),
        addresses: Vec::new(),
        mtu: spec.ports[port].mtu,
    };
    spec.routing = Some(RoutingSpec::of((0..PORTS).map(interface).collect()));
    spec
}

/// Routes to all networks. Each group has `buckets` buckets, which go on through the port's next hops.
fn table(spec: &SwitchSpec, buckets: u32) -> Arc<RouteTable> {
    let (mut fib, mut groups, mut ids) = (Dir24::new(), RouteTable::fixed_groups().to_vec(), Vec::new());
    let interfaces = &spec.routing.as_ref().expect("a router").interfaces;
    let hops = interfaces.iter().zip(0..).flat_map(|(interface, port)| {
        let egress = match interface.attachment {
            Attachment::Port(port) => PortSet::only(port.into()),
            Attachment::Vlan => PortSet::EMPTY,
        };
        let adjacency = move |hop| {
            let (id, macs) = (AdjacencyId((port as u32 * HOPS + hop) as u16), [mac(port, hop), interface.mac]);
            Adjacency::new(id, macs, interface.vlan, egress, interface.mtu)
        };
        (0..HOPS).map(adjacency)
    });
    let adjacencies: Box<[Adjacency]> = hops.collect();
    for (port, number) in (0..PORTS).flat_map(|port| (0..NETWORKS).map(move |number| (port, number))) {
        let group = GroupId(groups.len() as u32);
        let hops = (0..buckets).map(|bucket| AdjacencyId((port as u32 * HOPS + (number + bucket) % HOPS) as u16));
        groups.push(Group::of(&hops.collect::<Vec<_>>(), &mut ids));
        let [a, b, c] = network(port, number);
        fib.set_v4(Ipv4Addr::new(a, b, c, 0), 24, group);
        let [b_c, a] = [u16::from_be_bytes([b, c]), u16::from_be_bytes([0x0d, a])];
        fib.set_v6(Ipv6Addr::new(0x2001, a, b_c, 0, 0, 0, 0, 0), 48, group);
    }
    let mut table = RouteTable::empty(Arc::new(fib));
    table.set_groups(groups.into(), ids.into(), adjacencies);
    let of_network = |host: u8| (0..PORTS as u8).map(move |port| [10, 255, port, host].into());
    table.set_own(of_network(1));
    table.set_broadcasts(of_network(0).chain(of_network(255)));
    Arc::new(table)
}

/// Counts the traffic `traffic`, all of it routed.
fn count(mode: fn(u16) -> VlanMode, buckets: u32, traffic: Traffic) -> u64 {
    let mut spec = routing_spec(traffic.flows, mode);
    if !traffic.tagged.is_empty() {
        spec.ports.iter_mut().for_each(|port| port.live.trust = Trust::Pcp);
    }
    let mut bench = Bench::new(&spec, traffic);
    bench.set_routes(&table(&spec, buckets));
    let sent = bench.run();
    assert!(bench.routed() >= sent, "a count of frames that are routed");
    sent
}

fn traffic() -> Traffic {
    Traffic { address: Some(address), ..Traffic::default() }
}

/// Between routed ports.
pub fn usual() -> u64 {
    count(VlanMode::Routed, 1, traffic())
}

/// One packet of 64 is a fragment, which takes the long way.
pub fn odd() -> u64 {
    let address = |bytes: &mut [u8], port, (to, host): (usize, u32)| {
        bytes[20] = if host % 64 == 0 { 0x20 } else { 0 };
        address(bytes, port, (to, host));
    };
    count(VlanMode::Routed, 1, Traffic { address: Some(address), ..traffic() })
}

/// Each route has four next hops behind the same port, so that only the selection differs.
pub fn ecmp() -> u64 {
    count(VlanMode::Routed, 64, traffic())
}

pub fn ipv6() -> u64 {
    count(VlanMode::Routed, 1, Traffic { headers: Headers::Ipv6, ..traffic() })
}

/// Between VLANs of one port each, untagged.
pub fn vlans() -> u64 {
    count(VlanMode::Access, 1, traffic())
}

/// Between VLANs of one port each, whose frames have tags.
pub fn tagged_vlans() -> u64 {
    let trunk = |vlan| VlanMode::Trunk { tagged: vec![vlan], native: None };
    count(trunk, 1, Traffic { tagged: PortSet::ALL, ..traffic() })
}
