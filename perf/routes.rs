//! Routes for `pipeline`: each port is routed, and networks of 24 bits lie behind it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use holdfast::dpdk::{Eal, RteFib};
use holdfast::forward::VlanMode;
use holdfast::plan::SwitchSpec;
use holdfast::route::{
    Adjacency, AdjacencyId, Attachment, FibSize, FibWriter, Group, GroupId, InterfaceSpec, RouteTable, RoutingSpec,
};
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;
use ipnet::Ipv4Net;

/// Next hops behind each port. Network n has next hop n modulo this number.
const HOPS: u32 = 4;
/// The networks of port 0 begin at 64.0.0.0; each port has 2^26 addresses.
const FIRST: u32 = 0x4000_0000;
const ADDRESS_BITS: u32 = 26;
/// The VLAN number that stands for port 0 as a network.
const VLAN: u16 = 100;

/// Networks behind each port: their number is two to the power of this.
#[derive(Debug, Clone, Copy)]
pub struct Networks {
    pub bits: u32,
}

impl Networks {
    /// The switch's own address at `port`.
    pub fn own_mac(port: usize) -> MacAddr {
        MacAddr([2, 0xff, 0, 0, 0, port as u8])
    }

    /// The address of host `host` behind `port`: neighbouring numbers are in neighbouring networks.
    #[inline]
    pub fn address(self, port: usize, host: u32) -> u32 {
        let network = host & ((1 << self.bits) - 1);
        let within = (host >> self.bits) & 0xff;
        FIRST + ((port as u32) << ADDRESS_BITS) + (network << 8) + within
    }

    fn size(self, ports: usize) -> FibSize {
        FibSize { ipv4: ((ports as u32) << self.bits) + 1024, ipv6: 1024 }
    }

    /// MiB of the forwarding table for `ports` ports.
    pub fn mib(self, ports: usize) -> u32 {
        RteFib::mib(self.size(ports))
    }

    /// Gives each port of `spec` an interface of the router.
    pub fn route(self, spec: &mut SwitchSpec) {
        let interface = |port: usize, mtu| InterfaceSpec {
            name: format!("p{port}"),
            attachment: Attachment::Port(port as u8),
            vlan: VLAN + port as u16,
            mac: Self::own_mac(port),
            ports: PortSet::only(port),
            addresses: Vec::new(),
            mtu,
        };
        let mut interfaces = Vec::new();
        for (port, port_spec) in spec.ports.iter_mut().enumerate() {
            port_spec.vlan = VlanMode::Routed(VLAN + port as u16);
            interfaces.push(interface(port, port_spec.mtu));
        }
        let fib = self.size(interfaces.len());
        spec.routing = Some(RoutingSpec { fib, ..RoutingSpec::of(interfaces) });
    }

    /// The routes to all networks behind the ports of `spec`.
    pub fn table(self, eal: &Eal, spec: &SwitchSpec) -> Arc<RouteTable> {
        let interfaces = &spec.routing.as_ref().expect("a router").interfaces;
        let fib = RteFib::create(eal, "bench", self.size(interfaces.len())).unwrap_or_else(|error| panic!("{error}"));
        let (mut groups, mut adjacencies, mut buckets) = (RouteTable::fixed_groups().to_vec(), Vec::new(), Vec::new());
        for (port, interface) in interfaces.iter().enumerate() {
            let first = groups.len() as u32;
            for hop in 0..HOPS {
                let next_hop = MacAddr([2, 0, port as u8, 0, 0, hop as u8]);
                let id = AdjacencyId(adjacencies.len() as u16);
                let macs = [next_hop, interface.mac];
                adjacencies.push(Adjacency::new(id, macs, interface.vlan, PortSet::only(port), interface.mtu));
                groups.push(Group::of(&[id], &mut buckets));
            }
            for network in 0..1 << self.bits {
                let prefix = Ipv4Net::new_assert(Ipv4Addr::from_bits(self.address(port, network)), 24);
                let group = GroupId(first + network % HOPS);
                fib.set(prefix.into(), group).unwrap_or_else(|_| panic!("the table is large enough for {prefix}"));
            }
        }
        let mut table = RouteTable::empty(Arc::new(fib));
        table.set_groups(groups.into(), buckets.into(), adjacencies.into());
        table.set_own((0..interfaces.len() as u8).map(|port| IpAddr::from([10, 255, port, 1])));
        Arc::new(table)
    }
}
