//! Holdfast in simulated time: the pipeline itself, over simulated ports, cables, hosts and faults, by one seed.
//!
//! Not a model of the switch: [`crate::dataplane::Pipeline`] decides every frame. What is simulated is the world around
//! it, in picoseconds. docs/simulation.md tells what is exact and what is chosen.

mod checks;
pub mod dcqcn;
mod engine;
#[cfg(test)]
mod engine_tests;
mod events;
mod faults;
mod finish;
mod flow;
mod frame;
mod garbage;
pub mod headroom;
mod held;
mod host;
mod load;
mod node;
pub mod outcome;
pub mod plot;
pub mod random;
pub mod recording;
pub mod report;
pub mod rng;
mod routes;
mod sampler;
pub mod scenario;
pub mod shrink;
pub mod spec;
mod spread;
mod traffic;
mod waivers;
mod watch;
mod wire;

pub use engine::{run, run_recorded};

/// Ticks a second of the simulator's clock: one is a picosecond.
pub const HZ: u64 = 1_000_000_000_000;
