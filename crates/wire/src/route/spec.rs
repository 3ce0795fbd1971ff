//! The plan of a router: interfaces, static routes and neighbours, as the configuration has checked them.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::sets::PortSet;
use crate::wire::MacAddr;

/// The place of an interface in the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// A routed port: it bridges nothing. The VLAN is internal, and no other port is in it.
    Port(u8),
    /// A bridged VLAN.
    Vlan,
}

/// A router interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceSpec {
    /// Name in metrics, tables and errors: that of the port, or `vlan10`.
    pub name: String,
    /// Port or VLAN.
    pub attachment: Attachment,
    /// VLAN of the interface's frames inside the switch.
    pub vlan: u16,
    /// Source address of its frames. Frames to this address are routed.
    pub mac: MacAddr,
    /// Ports that can carry its frames: the routed port, or the members of the VLAN.
    pub ports: PortSet,
    /// Own addresses, each with the length of its network's prefix.
    pub addresses: Vec<IpNet>,
    /// Longest IP packet in bytes: the smallest MTU of its ports.
    pub mtu: u16,
}

/// A next hop of a static route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextHopSpec {
    /// Address of the next router.
    pub address: IpAddr,
    /// Index of the interface that leads to it.
    pub interface: u16,
    /// Share of the flows, in proportion to the other next hops; at least 1.
    pub weight: u16,
}

impl NextHopSpec {
    /// Whether the other next hop is this one, regardless of its weight.
    #[must_use]
    pub fn is_same(&self, other: Option<&Self>) -> bool {
        other.is_some_and(|other| (self.interface, self.address) == (other.interface, other.address))
    }
}

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSpec {
    /// Destinations.
    pub prefix: IpNet,
    /// Next hops; none: its packets are dropped.
    pub next_hops: Vec<NextHopSpec>,
}

/// A neighbour whose MAC address is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticNeighbour {
    /// Index of its interface.
    pub interface: u16,
    /// Its IP address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: MacAddr,
}

/// Room of the forwarding table, in prefixes. Neighbours and own addresses count too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FibSize {
    /// IPv4 prefixes.
    pub ipv4: u32,
    /// IPv6 prefixes.
    pub ipv6: u32,
}

impl Default for FibSize {
    fn default() -> Self {
        Self { ipv4: 65_536, ipv6: 16_384 }
    }
}

impl FibSize {
    /// Tables of 256 entries, the tbl8s, that the forwarding table has, IPv4 and IPv6.
    ///
    /// IPv4: a tbl8 serves all prefixes of more than 24 bits in a /24. Small tables have one for each prefix, large
    /// ones 4,096 and one for each sixteenth prefix.
    ///
    /// IPv6: a prefix needs up to 13 tbl8s, which it shares with its neighbours. Small tables have 13 for each prefix.
    /// Large ones have 8,192 and three for each two prefixes: a /48 or /64 needs about one, a host with a random
    /// interface identifier eight beyond those of its /64.
    #[must_use]
    pub fn tbl8s(self) -> [u32; 2] {
        let (ipv4, ipv6) = (self.ipv4.max(1), self.ipv6.max(1));
        [
            ipv4.min(4096 + ipv4 / 16),
            ipv6.saturating_mul(13).min(8192_u32.saturating_add(ipv6).saturating_add(ipv6 / 2)),
        ]
    }

    /// Most learned hosts, IPv4 and IPv6. They take at most half of the prefixes and of the tbl8s, so that routes have
    /// room. The networks of IPv4 hosts consist of `blocks` /24s.
    #[must_use]
    pub fn hosts(self, blocks: u64) -> [usize; 2] {
        let [ipv4, ipv6] = self.tbl8s().map(|tbl8s| tbl8s / 2);
        let by_blocks = if blocks <= ipv4.into() { u32::MAX } else { ipv4 };
        [(self.ipv4 / 2).min(by_blocks), (self.ipv6 / 2).min(ipv6 / 8)].map(|hosts| hosts as usize)
    }
}

/// The part of Linux in a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxSpec {
    /// Name of the network namespace that has the router's addresses and routing daemons, as `ip netns` shows it.
    pub namespace: String,
}

/// The plan of a router. Interfaces, routes, next hops and neighbours are sorted, because their order in the
/// configuration has no meaning: routed ports by number, then VLANs; the others by address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingSpec {
    /// Interfaces by index.
    pub interfaces: Vec<InterfaceSpec>,
    /// Static routes.
    pub routes: Vec<RouteSpec>,
    /// Static neighbours.
    pub neighbours: Vec<StaticNeighbour>,
    /// Seed of the flow hash.
    pub hash_seed: u64,
    /// Whether both directions of a flow hash alike.
    pub is_symmetric: bool,
    /// Room of the forwarding table.
    pub fib: FibSize,
    /// Linux answers for the router's addresses, and routes come from it; `None`: the router answers.
    pub linux: Option<LinuxSpec>,
}

impl RoutingSpec {
    /// A router of `interfaces` without routes, with a fixed seed, and forwarding tables of the default size.
    #[must_use]
    pub fn of(interfaces: Vec<InterfaceSpec>) -> Self {
        Self {
            interfaces,
            routes: Vec::new(),
            neighbours: Vec::new(),
            hash_seed: 1,
            is_symmetric: false,
            fib: FibSize::default(),
            linux: None,
        }
    }

    /// The seed of the flow hash of a switch whose first port has the address `mac`. Switches need different seeds:
    /// with equal ones, the second tier of a fabric would use only some of its links.
    #[must_use]
    pub const fn default_seed(mac: MacAddr) -> u64 {
        mac.to_number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_leave_half_of_the_forwarding_table_to_routes() {
        assert_eq!(FibSize::default().hosts(48), [32_768, 2048]);
        assert_eq!(FibSize::default().hosts(65_536), [4096, 2048], "each host may need a tbl8");
        for bits in 10..=22 {
            let size = FibSize { ipv4: 1 << bits, ipv6: 1 << bits.min(20) };
            let ([ipv4, ipv6], tbl8s) = (size.hosts(u64::MAX), size.tbl8s());
            assert!(2 * ipv4 <= size.ipv4 as usize && 2 * ipv4 <= tbl8s[0] as usize && ipv4 > 0);
            assert!(2 * ipv6 <= size.ipv6 as usize && 16 * ipv6 <= tbl8s[1] as usize && ipv6 > 0);
        }
    }
}
