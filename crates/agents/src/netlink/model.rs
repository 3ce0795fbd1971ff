//! Objects of the kernel's tables, and the events that change them.
//!
//! An event is the meaning of one netlink message. It names no netlink type, so tests can make events by hand.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::wire::MacAddr;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Number of the interface in its namespace.
    pub index: u32,
    /// Name, such as `eth0`.
    pub name: String,
    /// Whether the administrator has enabled it.
    pub is_admin_up: bool,
    /// Whether it is enabled, has a carrier and is operational.
    pub is_up: bool,
    /// Its address, if it is an Ethernet address.
    pub mac: Option<MacAddr>,
    /// Longest IP packet in bytes.
    pub mtu: u32,
}

/// A link with the details from which the mirror infers silent flushes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// Description for consumers.
    pub link: Link,
    /// Whether the kernel keeps next-hop objects on the link: `IFF_RUNNING` or `IFF_LOWER_UP` is set.
    pub has_carrier: bool,
    /// Number of changes of the carrier since the link exists.
    pub carrier_changes: u32,
}

/// An address of a link. It does not tell which networks the link has: routes of the kernel do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Index of the link.
    pub index: u32,
    /// The own address (`IFA_LOCAL`), with the length of the prefix of its own or the peer's network.
    pub address: IpNet,
    /// Address of the peer (`IFA_ADDRESS`) with the same length, if the own address is not in a network of its own. An
    /// own address may have several peers.
    pub peer: Option<IpNet>,
}

impl Address {
    /// The own address in the network that it is in: without others if it has a peer.
    #[must_use]
    pub fn own(&self) -> IpNet {
        if self.peer.is_some() { IpNet::from(self.address.addr()) } else { self.address }
    }
}

/// A neighbour whose MAC address the kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Index of its link.
    pub index: u32,
    /// IP address.
    pub address: IpAddr,
    /// MAC address.
    pub mac: MacAddr,
    /// Whether it never expires.
    pub is_permanent: bool,
}

/// A next hop as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelNextHop {
    /// Address of the next router; none: the destinations are neighbours on the link. May be IPv6 for an IPv4 route
    /// (RFC 5549).
    pub gateway: Option<IpAddr>,
    /// Index of the link.
    pub index: u32,
    /// Share of the flows in proportion to the other next hops; at least 1.
    pub weight: u16,
    /// Whether the kernel has disabled it (`RTNH_F_DEAD`).
    pub is_dead: bool,
    /// Whether its link has no carrier (`RTNH_F_LINKDOWN`).
    pub is_linkdown: bool,
}

impl KernelNextHop {
    /// Whether both are the same path. State and weight are ignored.
    #[must_use]
    pub fn is_same_path(&self, other: &Self) -> bool {
        self.gateway == other.gateway && self.index == other.index
    }
}

/// Treatment of a route's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// Forward to a next hop.
    Unicast,
    /// Drop silently.
    Blackhole,
    /// Drop and answer that the host is unreachable.
    Unreachable,
    /// Drop and answer that communication is prohibited.
    Prohibit,
    /// Deliver to the host itself.
    Local,
    /// Not supported: for example `throw`, or an encapsulation.
    Other,
}

/// Next hops of a route, written out or by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteHops {
    /// Next hops in the route itself.
    Direct(Vec<KernelNextHop>),
    /// Number of a next-hop object, which many routes can share.
    Object(u32),
}

/// A route of the kernel's main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRoute {
    /// Destinations.
    pub prefix: IpNet,
    /// Metric (priority): the lowest of a prefix wins.
    pub metric: u32,
    /// Origin of the route (`RTPROT_*`), such as 2 for the kernel and 186 for BGP.
    pub protocol: u8,
    /// Treatment of packets.
    pub kind: RouteKind,
    /// Next hops; of unicast routes only.
    pub hops: RouteHops,
}

/// Relation of a new route to the routes of its prefix and metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMode {
    /// There is no other.
    Exclusive,
    /// It comes before the others.
    Prepend,
    /// It comes after the others. An IPv6 next hop joins the next hops that are there.
    Append,
    /// It takes the place of the first.
    Replace,
}

/// A member of a group of next hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMember {
    /// Number of its next-hop object.
    pub id: u32,
    /// Share of the flows in proportion to the other members; at least 1.
    pub weight: u16,
}

/// A next-hop object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextHopObject {
    /// One next hop.
    Hop(KernelNextHop),
    /// Several objects that share the flows.
    Group(Vec<GroupMember>),
    /// Drops packets.
    Blackhole,
    /// Not supported: for example an encapsulation.
    Other,
}

/// The meaning of one netlink message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelEvent {
    /// A link is new or has changed.
    Link(LinkState),
    /// A link was removed.
    LinkGone {
        /// Its index.
        index: u32,
    },
    /// A link has an address.
    Address(Address),
    /// A link has lost an address.
    AddressGone(Address),
    /// A neighbour is new or has changed.
    Neighbour(Neighbour),
    /// A neighbour was removed, or its MAC address is unknown.
    NeighbourGone {
        /// Index of its link.
        index: u32,
        /// IP address.
        address: IpAddr,
    },
    /// A next-hop object is new or has changed.
    NextHop {
        /// Its number.
        id: u32,
        /// Its content.
        object: NextHopObject,
    },
    /// A next-hop object was removed.
    NextHopGone {
        /// Its number.
        id: u32,
    },
    /// A route is new or has changed.
    Route {
        /// The route.
        route: KernelRoute,
        /// Its relation to other routes. A dump ignores it.
        mode: RouteMode,
    },
    /// A route was removed, or some of its next hops were (IPv6).
    RouteGone(KernelRoute),
}

/// A usable next hop of a published route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// Address of the next router; none: the destinations are neighbours on the link.
    pub gateway: Option<IpAddr>,
    /// Index of the link, which is up.
    pub index: u32,
    /// Share of the flows in proportion to the other next hops; at least 1.
    pub weight: u16,
}

/// The best usable route of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Destinations.
    pub prefix: IpNet,
    /// Metric.
    pub metric: u32,
    /// Origin of the route (`RTPROT_*`).
    pub protocol: u8,
    /// Treatment of packets.
    pub kind: RouteKind,
    /// Usable next hops: at least one if the route is unicast, else none.
    pub next_hops: Vec<NextHop>,
}
