//! The networks of all interfaces, and the interface of each host on them.

use std::net::IpAddr;

use ipnet::IpNet;

/// A network, and the index of its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    pub prefix: IpNet,
    pub interface: u16,
}

/// The networks of all interfaces, without those that lie in another one of the same interface.
#[derive(Debug, Default)]
pub struct Networks {
    /// Disjoint networks, in ascending order.
    covers: Vec<Network>,
}

impl Networks {
    /// Collects `networks`. Returns also each network that overlaps one of another interface, with that one.
    pub fn new(mut networks: Vec<Network>) -> (Self, Vec<(Network, Network)>) {
        // A prefix comes directly before all longer prefixes in it.
        networks.sort_unstable();
        let (mut covers, mut overlaps): (Vec<Network>, _) = (Vec::new(), Vec::new());
        for network in networks {
            match covers.last() {
                Some(cover) if cover.prefix.contains(&network.prefix) => {
                    if cover.interface != network.interface {
                        overlaps.push((network, *cover));
                    }
                }
                _ => covers.push(network),
            }
        }
        (Self { covers }, overlaps)
    }

    /// The network of `address`; `None` if it is on no interface's network.
    pub fn of(&self, address: IpAddr) -> Option<Network> {
        let after = self.covers.partition_point(|cover| cover.prefix.network() <= address);
        let cover = self.covers[..after].last()?;
        cover.prefix.contains(&address).then_some(*cover)
    }

    /// Some network of `interface`, or of any if `None`, in the family of `address`.
    pub fn example(&self, interface: Option<u16>, address: IpAddr) -> Option<Network> {
        let fits = |cover: &&Network| {
            interface.is_none_or(|interface| cover.interface == interface)
                && cover.prefix.addr().is_ipv4() == address.is_ipv4()
        };
        self.covers.iter().find(fits).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(prefixes: &[(&str, u16)]) -> (Networks, Vec<(Network, Network)>) {
        let network = |&(prefix, interface): &(&str, u16)| Network { prefix: prefix.parse().unwrap(), interface };
        Networks::new(prefixes.iter().map(network).collect())
    }

    #[test]
    fn address_belongs_to_the_interface_of_its_network() {
        let (networks, overlaps) = networks(&[
            ("10.2.0.0/16", 1),
            ("10.1.0.0/31", 0),
            ("fd00::/64", 2),
            ("10.2.3.0/24", 1),
            ("10.1.0.2/31", 3),
        ]);
        assert_eq!(overlaps, []);
        let of = |address: &str| networks.of(address.parse().unwrap()).map(|network| network.interface);
        assert_eq!(["10.1.0.1", "10.1.0.2", "10.2.3.4", "10.2.4.4", "fd00::9"].map(of), [0, 3, 1, 1, 2].map(Some));
        assert_eq!(["10.0.255.255", "10.1.0.4", "10.3.0.0", "fd00:0:0:1::", "::"].map(of), [None; 5]);
    }

    #[test]
    fn overlap_of_two_interfaces_is_found_whichever_is_longer() {
        let (_, overlaps) = networks(&[("10.0.1.0/24", 0), ("10.0.2.0/24", 1), ("10.0.0.0/16", 1), ("10.0.2.0/25", 1)]);
        let found: Vec<_> = overlaps.iter().map(|(network, cover)| (network.interface, cover.interface)).collect();
        assert_eq!(found, [(0, 1)]);
        assert_eq!(networks(&[("10.0.0.0/24", 0), ("10.0.0.0/24", 1)]).1.len(), 1);
        assert_eq!(networks(&[("10.0.0.0/24", 0), ("10.0.0.0/24", 0)]).1, []);
    }
}
