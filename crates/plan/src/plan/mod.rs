//! A switch as data: its plan, its counters, its decisions, and what threads pass to each other.
//!
//! It knows what a switch has and what it reports. It does not know how a frame is forwarded, and it polls nothing:
//! readers of a switch (metrics, API, control plane) need no dataplane.
//!
//! # Example
//!
//! ```
//! use holdfast_plan::plan::{Counters, DropReason};
//!
//! // Counters of a switch of two ports and one lcore.
//! let counters = Counters::new(2, 1);
//! counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(1);
//! assert_eq!(counters.ports[0].drops[3][DropReason::HeadroomFull as usize].get(), 1);
//! ```

pub mod build_facts;
pub mod counters;
pub mod decision_log;
pub mod drops;
pub mod exception;
pub mod fdb_view;
#[cfg(test)]
mod fdb_view_tests;
pub mod history_ring;
#[cfg(test)]
mod history_ring_tests;
pub mod lcore;
pub mod mailbox;
pub mod mirror;
pub mod own_probes;
// The ring's slots are uninitialized memory that two threads share.
#[allow(unsafe_code)]
pub mod ring;
#[cfg(test)]
mod ring_tests;
pub mod spec;

pub use build_facts::BuildFacts;
pub use counters::Counters;
pub use drops::DropReason;
pub use lcore::{ClearedStations, Companion, LcoreControl, run_companion};
pub use mailbox::mailbox;
pub use spec::{PortLive, PortSpec, QueueSpec, SwitchSpec};
