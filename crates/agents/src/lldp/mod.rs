//! LLDP with the TLVs of data center bridging: the statements of each port, those of its peer, and their differences.
//!
//! [`stated`] computes the statement of a port from the configuration, [`compare()`] finds the differences of a peer,
//! [`Agent`] sends and receives. All of it is pure: without clock, input and output. The data units are in
//! [`crate::wire::lldp`].
//!
//! # Example
//!
//! ```
//! use holdfast_config::config;
//! use holdfast_agents::lldp::{Agent, System, Timing, stated};
//! use holdfast_base::units::Nanos;
//! use holdfast_wire::wire::lldp::{Aggregation, parse};
//!
//! let ports = "[{name: p1, device: net_tap0, speed: 25G}, {name: p2, device: net_tap1, speed: 25G}]";
//! let text = format!("{{preset: roce, ports: {ports}}}");
//! let spec = config::parse("rack.yaml", &text).expect("it is valid").switch;
//! let system = System { name: "tor1".to_owned(), ..System::default() };
//! let ports = (0..2).map(|port| stated(&spec, port, &system, Aggregation::default())).collect();
//! let mut agent = Agent::new(ports, Timing::default());
//! agent.link(0, true, Nanos(0));
//! let sent = agent.take_frames().pop().expect("a port that comes up sends at once");
//! let pdu = parse(&sent.frame).expect("it is LLDP").pdu;
//! assert_eq!((pdu.ttl, pdu.port.to_string()), (121, "p1".to_owned()));
//! assert!(pdu.dot1.pfc.expect("it states PFC").enabled.contains(3));
//! ```

pub mod agent;
pub mod board;
pub mod compare;
pub mod guard;
pub mod local;
pub mod probe;
#[cfg(test)]
mod probe_tests;
pub mod remedy;
#[cfg(test)]
mod tests;
pub mod view;

pub use agent::{Agent, Event, EventKind, LldpCounts, MOST_NEIGHBOURS, Outgoing, Timing};
pub use board::{Board, Settings};
pub use compare::{Comparison, Difference, DifferenceKind, Note, compare};
pub use guard::Guard;
pub use local::{Stated, System, stated};
pub use probe::{ProbedPort, Prober, Returned};
pub use remedy::{Remedy, Tools, remedy};
pub use view::{AgentView, NeighbourView, PortView};
