//! Snapshots of a switch for people and programs: metrics, reports, verdicts, the API, the live screen.
//!
//! It reads counters and boards. It changes nothing but by requests that others carry out, and no lcore waits for it.

#![forbid(unsafe_code)]

pub mod api;
pub mod stats;
pub mod top;

use holdfast_agents::{lacp, lldp, router};
use holdfast_base::{output, pulse, sets, sync, text, units};
use holdfast_config::config;
use holdfast_edges::{faults, hosts, linux, mirror};
use holdfast_lossless::{headroom, mmu, pfc, qos};
use holdfast_plan::plan;
#[cfg(any(test, feature = "testing"))]
use holdfast_wire::wire;
use holdfast_wire::{forward, route};
