//! From YAML to a plan that is known to fit, or every reason why not, each with its place and remedy.
//!
//! It knows every key. It starts nothing and touches no device.

#![forbid(unsafe_code)]

pub mod config;

#[cfg(test)]
use holdfast_agents::router;
use holdfast_base::{sets, units};
#[cfg(test)]
use holdfast_dataplane::dataplane;
use holdfast_edges::{faults, hosts, linux, mirror};
use holdfast_lossless::{headroom, mmu, pfc, qos};
use holdfast_plan::plan;
use holdfast_wire::{forward, route, wire};
