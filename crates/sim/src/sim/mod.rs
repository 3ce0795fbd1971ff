//! Holdfast in simulated time: the real pipeline over simulated ports, cables, hosts and faults, all determined by one
//! seed.
//!
//! The switch itself is not a model: [`crate::dataplane::Pipeline`] decides every frame. Only its surroundings are
//! simulated, in picoseconds. docs/simulation.md lists the exact parts and the assumptions.
//!
//! # Example
//!
//! ```
//! use holdfast_sim::sim::scenario::{self, Options};
//!
//! let text = "
//! duration: 100us
//! switches: [{name: tor, config: {preset: roce, ports: [{name: p*, count: 3, speed: 10G}]}}]
//! hosts: [{name: h*, count: 3, at: tor.p*}]
//! flows: [{from: h1, to: h3, rate: 10G}, {from: h2, to: h3, rate: 10G}]
//! ";
//! let scenarios = scenario::parse("incast.yaml", text, None, &Options::default()).expect("it is valid");
//! let outcome = holdfast_sim::sim::run(&scenarios[0].1, &mut |_| ());
//! assert!(holdfast_sim::sim::report::verdict(&scenarios[0].1, &outcome).kept);
//! ```

mod barrier;
mod calendar;
mod checks;
pub mod control;
mod course;
mod device;
mod engine;
#[cfg(test)]
mod engine_tests;
mod events;
mod faults;
mod finish;
mod flow;
mod flows;
mod frame;
mod garbage;
pub mod headroom;
mod held;
mod host;
pub mod hpcc;
mod launch;
mod load;
mod monitor;
mod net;
mod node;
mod obedience;
#[cfg(test)]
mod obedience_tests;
pub mod outcome;
mod own;
mod parts;
mod path;
pub mod plot;
pub mod queues;
pub mod random;
pub mod recording;
pub mod report;
mod rest;
pub mod rng;
#[cfg(test)]
mod routed_tests;
mod router;
mod routes;
mod routing;
mod sampler;
pub mod scenario;
pub mod shrink;
pub mod spec;
mod spread;
mod threads;
mod tokens;
mod traffic;
pub mod transport;
mod waivers;
mod watch;
mod wire;
pub mod workload;
#[cfg(test)]
mod workload_tests;

pub use engine::{run, run_on, run_recorded};

/// Ticks per second of the simulator's clock: one tick is a picosecond.
pub const HZ: u64 = 1_000_000_000_000;
/// Tick at which the simulation begins: the pipeline reserves zero for "never".
const EPOCH: u64 = HZ;
