//! The tables behind the forwarding table: next-hop groups, their buckets, and adjacencies.

use std::net::IpAddr;
use std::sync::Arc;

use super::fib::Fib;
use super::filter::SourceFilter;
use super::hash::FlowHash;
use crate::forward::fdb::Station;
use crate::sets::{MAX_PORTS, PortSet};
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
    /// Index of the first bucket in the buckets of the [`RouteTable`]. A group of one bucket has its adjacency here
    /// instead.
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

    /// The adjacency of a group of one bucket; `None` for another group.
    #[inline]
    #[must_use]
    pub fn only_adjacency(&self) -> Option<AdjacencyId> {
        (self.mask == 0 && self.action == Action::Forward).then_some(AdjacencyId(self.first as u16))
    }
}

/// A next hop on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(32))]
pub struct Adjacency {
    /// Destination and source address of the frames, as they stand on the wire.
    pub addresses: [u8; 12],
    /// Longest IP packet in bytes that the interface sends.
    pub mtu: u16,
    /// Its number.
    pub id: AdjacencyId,
    /// VLAN of its interface.
    pub vlan: u16,
    /// The routed port of its interface; empty for a station in a bridged VLAN, whose port the forwarding database
    /// knows.
    pub port: PortSet,
    /// Number of the routed port; 64 without one.
    pub port_number: u8,
    /// In a bridged VLAN: the port of the neighbour's last message, for when the forwarding database lacks it; 64: not
    /// known.
    pub answered_by: u8,
}

const _: () = assert!(size_of::<Adjacency>() == 32);

impl Adjacency {
    /// No next hop.
    pub const NONE: Self = Self::unused(AdjacencyId(0));

    /// Adjacency `id` of no next hop. No bucket has it.
    #[must_use]
    pub const fn unused(id: AdjacencyId) -> Self {
        Self {
            addresses: [0; 12],
            mtu: 0,
            id,
            vlan: 0,
            port: PortSet::EMPTY,
            port_number: MAX_PORTS as u8,
            answered_by: MAX_PORTS as u8,
        }
    }

    /// Creates adjacency `id` of a next hop with the address `next_hop`, for frames with the source `own` in `vlan`. It
    /// leaves by `port`, which is empty in a bridged VLAN, and its IP packets have at most `mtu` bytes.
    #[must_use]
    pub fn new(id: AdjacencyId, [next_hop, own]: [MacAddr; 2], vlan: u16, port: PortSet, mtu: u16) -> Self {
        assert!(port.len() <= 1, "an adjacency has one port");
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&next_hop.0);
        addresses[6..].copy_from_slice(&own.0);
        let (port_number, answered_by) = (port.bits().trailing_zeros() as u8, MAX_PORTS as u8);
        Self { addresses, mtu, id, vlan: vlan & 0xfff, port, port_number, answered_by }
    }

    /// The adjacency with the port of the neighbour's last message.
    #[must_use]
    pub fn answered_by(self, port: Option<u8>) -> Self {
        Self { answered_by: port.unwrap_or(MAX_PORTS as u8), ..self }
    }

    /// The next hop's station in the VLAN of its interface.
    #[must_use]
    pub fn station(&self) -> Station {
        let [a, b, c, d, e, f, ..] = self.addresses;
        Station::new(self.vlan, MacAddr([a, b, c, d, e, f]).to_number())
    }
}

/// Everything that an lcore needs to route. It never changes: an update is a new table.
#[derive(Debug, Clone)]
pub struct RouteTable {
    /// The forwarding table.
    pub fib: Arc<dyn Fib>,
    /// The only next hop of each group, by [`GroupId`]; [`Adjacency::NONE`] for a group with a choice, or with none.
    /// Most packets need no more than this.
    pub direct: Box<[Adjacency]>,
    /// Next-hop groups by [`GroupId`]; the first four are those of the constants.
    pub groups: Box<[Group]>,
    /// Adjacencies of the groups' buckets.
    pub buckets: Box<[AdjacencyId]>,
    /// Next hops by [`AdjacencyId`].
    pub adjacencies: Box<[Adjacency]>,
    /// Own addresses, sorted: no received packet may have one as its source.
    own: Box<[IpAddr]>,
    /// Network and broadcast addresses of the router's networks, sorted: no packet may come from one.
    broadcasts: Box<[IpAddr]>,
    /// VLANs of the interfaces that are shut: frames to the router there are dropped.
    pub shut: Box<[u16]>,
    /// A filter over sources, for a fast first check.
    pub sources: Box<SourceFilter>,
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
            direct: [Adjacency::NONE; GroupId::FIRST as usize].into(),
            groups: Self::fixed_groups().into(),
            buckets: Box::default(),
            adjacencies: Box::default(),
            own: Box::default(),
            broadcasts: Box::default(),
            shut: Box::default(),
            sources: Box::new(SourceFilter::new([])),
            hash: FlowHash::default(),
            version: 0,
        }
    }

    /// The groups of the constants of [`GroupId`].
    #[must_use]
    pub fn fixed_groups() -> [Group; GroupId::FIRST as usize] {
        [Action::NoRoute, Action::Local, Action::Blackhole, Action::Martian].map(Group::without_buckets)
    }

    /// Sets the groups, the adjacencies of their buckets, and all adjacencies.
    pub fn set_groups(&mut self, groups: Box<[Group]>, buckets: Box<[AdjacencyId]>, adjacencies: Box<[Adjacency]>) {
        let only = |group: &Group| group.only_adjacency().and_then(|id| adjacencies.get(usize::from(id.0)));
        self.direct = groups.iter().map(|group| only(group).copied().unwrap_or(Adjacency::NONE)).collect();
        (self.groups, self.buckets, self.adjacencies) = (groups, buckets, adjacencies);
    }

    /// Sets the own addresses.
    pub fn set_own(&mut self, own: impl IntoIterator<Item = IpAddr>) {
        self.own = sorted(own);
        *self.sources = SourceFilter::new(self.own.iter().chain(&self.broadcasts));
    }

    /// Sets the network and broadcast addresses of the router's networks.
    pub fn set_broadcasts(&mut self, broadcasts: impl IntoIterator<Item = IpAddr>) {
        self.broadcasts = sorted(broadcasts);
        *self.sources = SourceFilter::new(self.own.iter().chain(&self.broadcasts));
    }

    /// The adjacencies of the buckets of `group`.
    pub fn buckets_of(&self, group: Group) -> impl Iterator<Item = AdjacencyId> + '_ {
        let (first, count) = (group.first as usize, usize::from(group.mask) + 1);
        let several = if count > 1 { &self.buckets[first..first + count] } else { &[] };
        group.only_adjacency().into_iter().chain(several.iter().copied())
    }

    /// Whether `address` is an address of the switch.
    #[must_use]
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.binary_search(&address).is_ok()
    }

    /// Whether the interface of `vlan` is shut.
    #[inline]
    #[must_use]
    pub fn is_shut(&self, vlan: u16) -> bool {
        self.shut.contains(&vlan)
    }

    /// Whether `address` is the network or broadcast address of a network of the router.
    #[must_use]
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        self.broadcasts.binary_search(&address).is_ok()
    }
}

fn sorted(addresses: impl IntoIterator<Item = IpAddr>) -> Box<[IpAddr]> {
    let mut sorted: Vec<IpAddr> = addresses.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::SoftFib;

    #[test]
    fn only_groups_of_one_next_hop_are_direct() {
        let (ids, mut buckets) = ([AdjacencyId(0), AdjacencyId(1)], Vec::new());
        let groups = [Group::of(&ids[1..], &mut buckets), Group::of(&ids, &mut buckets)];
        let adjacencies = ids.map(|id| Adjacency::new(id, [MacAddr([2, 0, 0, 0, 0, 1]); 2], 1, PortSet::only(3), 1500));
        let mut table = RouteTable::empty(Arc::new(SoftFib::default()));
        let groups = RouteTable::fixed_groups().into_iter().chain(groups).collect();
        table.set_groups(groups, buckets.into(), adjacencies.into());
        let [fixed @ .., only, several] = &*table.direct else { unreachable!("the groups are six") };
        assert!(fixed.iter().chain([several]).all(|adjacency| *adjacency == Adjacency::NONE));
        assert_eq!(*only, adjacencies[1]);
        assert_eq!((only.station(), only.port_number), (Station::new(1, 0x0200_0000_0001), 3));
        assert_eq!(Adjacency::NONE.port_number, 64);
    }
}
