//! Link aggregation control (IEEE 802.1AX-2014): which members of each group take and send frames.
//!
//! [`Agent`] runs the state machines of all members. It is pure: without clock, input and output. The data units are in
//! [`crate::wire::lacp`], the groups as the packet path uses them in [`crate::forward::lag`].
//!
//! A group has one aggregator, which the configuration gives it. So the machines of clause 6.4 become simpler:
//!
//! - The selection logic only decides which partner the group has ([`select`]).
//! - A member attaches at once. The standard waits for two seconds, so that ports that come up together change the
//!   aggregator once; here members come and go without any change of the others.
//! - A group without LACP has members that are active while they have a link.
//!
//! # Example
//!
//! ```
//! use holdfast_agents::lacp::{Agent, GroupSettings, Negotiation, Settings};
//! use holdfast_base::sets::PortSet;
//! use holdfast_base::units::Nanos;
//! use holdfast_wire::wire::MacAddr;
//!
//! let negotiation = Some(Negotiation { is_active: true, is_fast: true });
//! let group = GroupSettings { name: "bond0".to_owned(), ports: PortSet::first(2), negotiation, min_links: 1 };
//! let names = ["p1", "p2"].map(str::to_owned).to_vec();
//! let macs = vec![MacAddr::local(0, 1), MacAddr::local(0, 2)];
//! let mut agent = Agent::new(Settings { system: macs[0], names, macs, groups: vec![group] });
//! agent.link(0, true, Nanos(1));
//! assert_eq!(agent.take_frames().len(), 1, "a port that comes up speaks at once");
//! assert!(agent.distributing().is_empty(), "no peer has answered");
//! ```

pub mod agent;
mod member;
pub mod select;
#[cfg(test)]
mod tests;
pub mod view;

pub use agent::{Agent, Event, EventKind, GroupSettings, Negotiation, Outgoing, Settings};
pub use member::MemberCounts;
pub use view::{AgentView, GroupView, MemberView, Obstacle, PartnerView};

/// The meeting point of the agent's thread with others.
pub type Board = crate::board::Board<AgentView, Event>;
