//! Routing tables of the packet path: the forwarding table, next-hop groups and adjacencies.
//!
//! The forwarding table ([`Fib`]) maps an address to a [`Group`]. A group holds buckets, and the hash of a flow
//! ([`FlowHash`]) selects one. A bucket names an [`Adjacency`]: the egress port and the MAC addresses of the next hop.
//! `router` makes these tables; lcores only read them.
//!
//! # Example
//!
//! ```
//! use holdfast_wire::route::{Fib, FibWriter, FoundGroup, GroupId, SoftFib};
//!
//! let fib = SoftFib::default();
//! fib.set("10.1.0.0/16".parse().unwrap(), GroupId(7)).unwrap();
//! let mut groups = [FoundGroup::default(); 2];
//! fib.lookup_v4(&[0x0a01_0203, 0x0a02_0304], &mut groups);
//! assert_eq!(groups.map(FoundGroup::id), [GroupId(7), GroupId::NO_ROUTE]);
//! ```

pub mod fib;
pub mod filter;
pub mod hash;
pub mod punt;
pub mod single_host;
pub mod spec;
pub mod table;

pub use fib::{Fib, FibFull, FibMemory, FibWriter, FoundGroup, SoftFib};
pub use hash::FlowHash;
pub use punt::{InjectFrame, InjectTo, PuntCause, PuntFrame};
pub use spec::{Attachment, FibSize, InterfaceSpec, LinuxSpec, NextHopSpec, RouteSpec, RoutingSpec, StaticNeighbour};
pub use table::{Action, Adjacency, AdjacencyId, Group, GroupId, MAX_ADJACENCIES, ROUTER_PORT, RouteTable};
