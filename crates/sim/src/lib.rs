//! The packet path in simulated time: scenarios, hosts, cables, injected faults, checks, tables and plots.
//!
//! It runs the same pipeline as the switch. It reads no clock and no random source but its seed, so a scenario has one
//! result. It knows no DPDK, no thread and no socket.
//!
//! # Example
//!
//! Two senders at line rate to one receiver: no frame may be lost.
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

#![forbid(unsafe_code)]

pub mod sim;

use holdfast_agents::router;
pub use holdfast_base::{io, sets, units};
use holdfast_base::{mutant, sync, text};
use holdfast_config::config;
use holdfast_dataplane::{dataplane, verify};
use holdfast_edges::hosts;
use holdfast_lossless::{headroom, mmu, pfc, qos};
use holdfast_plan::plan;
use holdfast_wire::{forward, route, wire};
