//! Holdfast in simulated time: the pipeline itself, over simulated ports, cables, hosts and faults, by one seed.
//!
//! Not a model of the switch: [`crate::dataplane::Pipeline`] decides every frame. What is simulated is the world around
//! it, in picoseconds. docs/simulation.md tells what is exact and what is chosen.

pub mod dcqcn;
pub mod outcome;
pub mod rng;
pub mod spec;

/// Ticks a second of the simulator's clock: one is a picosecond.
pub const HZ: u64 = 1_000_000_000_000;
