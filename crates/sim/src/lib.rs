//! The packet path in simulated time: scenarios, hosts, cables, injected faults, checks, tables and plots.
//!
//! It runs the same pipeline as the switch. It reads no clock and no random source but its seed, so a scenario has one
//! result. It knows no DPDK, no thread and no socket.
//!
//! # Example
//!
//! ```
//! EXAMPLE
//! ```

#![forbid(unsafe_code)]

pub mod sim;

use holdfast_agents::router;
use holdfast_base::{io, mutant, sets, sync, text, units};
use holdfast_config::config;
use holdfast_dataplane::{dataplane, verify};
use holdfast_edges::hosts;
use holdfast_lossless::{headroom, mmu, pfc, qos};
use holdfast_plan::plan;
use holdfast_wire::{forward, route, wire};
