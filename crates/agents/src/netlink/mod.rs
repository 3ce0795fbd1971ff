//! Mirror of the tables of one Linux network namespace: links, addresses, neighbours and routes, by netlink.
//!
//! [`Mirror`] is the state machine: it takes events and dumps, and gives differences. [`Watcher`] runs it in a thread
//! on a netlink socket inside the namespace, and sends the differences in batches. [`KernelWriter`] changes links,
//! addresses and neighbours of a namespace.
//!
//! The mirror holds the main table (254). It ignores the local table (255), since the addresses of the links imply
//! it. It also ignores other tables, routes of a type of service or of a source prefix, cached routes, and routes to
//! multicast and link-local destinations.
//!
//! # Example
//!
//! ```
//! use holdfast_agents::netlink::{Change, KernelEvent, Link, LinkState, Limits, Mirror};
//!
//! let mut mirror = Mirror::new(Limits::default());
//! let link = Link { index: 2, name: "eth0".into(), is_admin_up: true, is_up: true, mac: None, mtu: 1500 };
//! mirror.feed(KernelEvent::Link(LinkState { link: link.clone(), has_carrier: true, carrier_changes: 1 }));
//! assert_eq!(mirror.changes(100), [Change::Link(link)]);
//! mirror.feed(KernelEvent::LinkGone { index: 2 });
//! assert_eq!(mirror.changes(100), [Change::LinkGone { index: 2 }]);
//! ```

pub mod decode;
mod error;
mod frame;
pub mod mirror;
pub mod model;
mod socket;
mod watcher;
mod writer;

pub use decode::decode;
pub use error::NetlinkError;
pub use frame::messages;
pub use mirror::{Change, DumpEnd, Limits, Mirror, Sizes, TableName};
pub use model::{
    Address, GroupMember, KernelEvent, KernelNextHop, KernelRoute, Link, LinkState, Neighbour, NextHop, NextHopObject,
    Route, RouteHops, RouteKind, RouteMode,
};
pub use socket::Namespace;
pub use watcher::{Batch, Counters, Options, Watcher};
pub use writer::KernelWriter;
