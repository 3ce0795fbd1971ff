//! The tables behind the forwarding table: next-hop groups, their buckets, and adjacencies.

use std::net::IpAddr;
use std::sync::Arc;

use super::fib::Fib;
use super::hash::FlowHash;
use crate::forward::fdb::Station;
use crate::sets::MAX_PORTS;
use crate::wire::MacAddr;

/// Index of a next-hop group in the [`RouteTable`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct GroupId(pub u32);

impl GroupId {
    /// No prefix covers the address.
    pub const NO_ROUTE: Self = Self(0);
    /// The address is one of the switch.
    pub const LOCAL: Self = Self(1);
    /// A route that drops.
    pub const BLACKHOLE: Self = Self(2);
    /// An address that no packet may have as its destination (RFC 1812 section 5.3.7, RFC 6890).
    pub const MARTIAN: Self = Self(3);
    /// The first group that is not one of the above.
    pub const FIRST: u32 = 4;
}

/// Index of an adjacency in the [`RouteTable`]; it stays the same while the next hop exists.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdjacencyId(pub u16);

/// Maximum number of adjacencies of a switch: each is a neighbour that is the next hop of some route.
pub const MAX_ADJACENCIES: usize = 1 << 14;

/// The port number that stands for the router in VLANs, the forwarding database and the flow cache. No device has it.
pub const ROUTER_PORT: usize = MAX_PORTS - 1;

/// The treatment of packets that match a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// They leave by an adjacency.
    Forward,
    /// They are dropped, because no prefix covers their destination.
    NoRoute,
    /// They are for the switch itself.
    Local,
    /// They are dropped by a route's order.
    Blackhole,
    /// They are dropped, because their destination is not an address of a host.
    Martian,
    /// Their destination is on a network of this interface, and its MAC address is not known.
    Glean(u16),
    /// No next hop of the route has a known MAC address. The interface of the first next hop.
    Incomplete(u16),
}

/// A next-hop group: buckets in a row, of which the hash of a flow selects one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Index of the first bucket in [`RouteTable::buckets`]. A group of one bucket has its adjacency here instead.
    pub first: u32,
    /// Number of buckets minus one; the number is a power of two.
    pub mask: u16,
    /// The treatment of its packets.
    pub action: Action,
}

impl Group {
    /// A group without buckets.
    #[must_use]
    pub const fn without_buckets(action: Action) -> Self {
        Self { first: 0, mask: 0, action }
    }

    /// A group of the adjacencies `ids`, which it appends to `buckets` if there is a choice. Their number is a power of
    /// two.
    #[must_use]
    pub fn of(ids: &[AdjacencyId], buckets: &mut Vec<AdjacencyId>) -> Self {
        assert!(ids.len().is_power_of_two() && ids.len() <= 1 << 16, "{} buckets", ids.len());
        let (first, mask) = (buckets.len() as u32, (ids.len() - 1) as u16);
        if let [only] = ids {
            return Self { first: u32::from(only.0), mask, action: Action::Forward };
        }
        buckets.extend(ids);
        Self { first, mask, action: Action::Forward }
    }

    /// The adjacency of a group of one bucket.
    #[inline]
    #[must_use]
    pub fn only_adjacency(&self) -> AdjacencyId {
        AdjacencyId(self.first as u16)
    }
}

/// The way to the station of a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Egress {
    /// A routed port.
    Port(u8),
    /// The port that leads to the station in a bridged VLAN, by the forwarding database.
    Bridged,
}

/// A next hop on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(32))]
pub struct Adjacency {
    /// Destination and source address of the frames, as they stand on the wire.
    pub addresses: [u8; 12],
    /// The next hop's station in the VLAN of its interface.
    pub station: Station,
    /// Its port.
    pub egress: Egress,
    /// The routed port, or [`ROUTER_PORT`] for a station in a bridged VLAN: one comparison tells both.
    pub port: u8,
    /// Index of the interface.
    pub interface: u16,
    /// Longest IP packet in bytes that the interface sends.
    pub mtu: u16,
}

const _: () = assert!(size_of::<Adjacency>() == 32);

impl Adjacency {
    /// Creates the adjacency of a next hop with the address `next_hop`, for frames with the source `own` in `vlan`.
    #[must_use]
    pub fn new(next_hop: MacAddr, own: MacAddr, vlan: u16, egress: Egress, (interface, mtu): (u16, u16)) -> Self {
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&next_hop.0);
        addresses[6..].copy_from_slice(&own.0);
        let port = if let Egress::Port(port) = egress { port } else { ROUTER_PORT as u8 };
        Self { addresses, station: Station::new(vlan, next_hop.to_number()), egress, port, interface, mtu }
    }
}

/// Entries of the filter of own addresses.
const FILTER: usize = 1 << FILTER_BITS;
const FILTER_BITS: u32 = 10;

/// A set of addresses, by a few bits of their hash: it may name an address that is not a member, never the reverse.
#[derive(Clone, PartialEq, Eq)]
pub struct AddressFilter([bool; FILTER]);

impl AddressFilter {
    /// The filter of no addresses.
    pub const EMPTY: Self = Self([false; FILTER]);

    #[inline]
    fn place(key: u64) -> usize {
        // The highest bits of a product by the golden ratio (Knuth, The Art of Computer Programming 3, section 6.4).
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - FILTER_BITS)) as usize % FILTER
    }

    /// Adds the address with this key.
    pub fn insert(&mut self, key: u64) {
        self.0[Self::place(key)] = true;
    }

    /// Whether the address with this key may be a member.
    #[inline]
    #[must_use]
    pub fn may_contain(&self, key: u64) -> bool {
        self.0[Self::place(key)]
    }

    /// The key of an IPv6 address.
    #[inline]
    #[must_use]
    pub fn key_v6(address: [u8; 16]) -> u64 {
        let [high, low] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| address[at + byte])));
        high.rotate_left(29) ^ low
    }
}

impl std::fmt::Debug for AddressFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressFilter").finish_non_exhaustive()
    }
}

/// Everything that an lcore needs to route. It never changes: an update is a new table.
#[derive(Debug, Clone)]
pub struct RouteTable {
    /// The forwarding table.
    pub fib: Arc<dyn Fib>,
    /// Next-hop groups by [`GroupId`]; the first four are those of the constants.
    pub groups: Box<[Group]>,
    /// Adjacencies of the groups' buckets.
    pub buckets: Box<[AdjacencyId]>,
    /// Next hops by [`AdjacencyId`].
    pub adjacencies: Box<[Adjacency]>,
    /// Own addresses, sorted: no received packet may have one as its source.
    pub own: Box<[IpAddr]>,
    /// A filter over `own`, for a fast first check.
    pub own_filter: AddressFilter,
    /// The hash of flows.
    pub hash: FlowHash,
    /// Number of this table in the order in which they were made.
    pub version: u64,
}

impl RouteTable {
    /// A table without routes over `fib`.
    #[must_use]
    pub fn empty(fib: Arc<dyn Fib>) -> Self {
        Self {
            fib,
            groups: Self::fixed_groups().into(),
            buckets: Box::default(),
            adjacencies: Box::default(),
            own: Box::default(),
            own_filter: AddressFilter::EMPTY,
            hash: FlowHash::default(),
            version: 0,
        }
    }

    /// The groups of the constants of [`GroupId`].
    #[must_use]
    pub fn fixed_groups() -> [Group; GroupId::FIRST as usize] {
        [Action::NoRoute, Action::Local, Action::Blackhole, Action::Martian].map(Group::without_buckets)
    }

    /// Sets the own addresses.
    pub fn set_own(&mut self, own: impl IntoIterator<Item = IpAddr>) {
        let mut own: Vec<IpAddr> = own.into_iter().collect();
        own.sort_unstable();
        own.dedup();
        self.own_filter = AddressFilter::EMPTY;
        for address in &own {
            self.own_filter.insert(match address {
                IpAddr::V4(address) => u64::from(address.to_bits()),
                IpAddr::V6(address) => AddressFilter::key_v6(address.octets()),
            });
        }
        self.own = own.into();
    }

    /// The adjacencies of the buckets of `group`.
    pub fn buckets_of(&self, group: Group) -> impl Iterator<Item = AdjacencyId> + '_ {
        let (first, count) = (group.first as usize, usize::from(group.mask) + 1);
        let only = (count == 1 && group.action == Action::Forward).then(|| group.only_adjacency());
        let several = if count > 1 { &self.buckets[first..first + count] } else { &[] };
        only.into_iter().chain(several.iter().copied())
    }

    /// Whether `address` is an address of the switch.
    #[must_use]
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.binary_search(&address).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::SoftFib;

    #[test]
    fn filter_never_misses_an_own_address() {
        let mut table = RouteTable::empty(Arc::new(SoftFib::default()));
        let own: Vec<IpAddr> = (0..40).map(|n| IpAddr::from([10, 0, n, 1])).collect();
        table.set_own(own.iter().copied().chain(["fd00::1".parse().unwrap()]));
        for address in own {
            let IpAddr::V4(v4) = address else { unreachable!() };
            assert!(table.own_filter.may_contain(v4.to_bits().into()) && table.is_own(address));
        }
        let v6: std::net::Ipv6Addr = "fd00::1".parse().unwrap();
        assert!(table.own_filter.may_contain(AddressFilter::key_v6(v6.octets())) && table.is_own(v6.into()));
        let foreign = (0..10_000_u32).filter(|n| table.own_filter.may_contain(u64::from(0x0b00_0000 + n))).count();
        assert!(foreign < 1_000, "{foreign} of 10,000 other addresses need the exact check");
    }
}
