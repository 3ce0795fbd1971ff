//! Holdfast: a lossless top-of-rack switch in software.
//!
//! This is a facade of the crates below `crates`: each room has one path here, wherever it is. `docs/architecture.md`
//! describes the crates, what they know and what they need.

#![forbid(unsafe_code)]

pub mod build;
#[cfg(target_os = "linux")]
pub use holdfast_agents::netlink;
pub use holdfast_agents::{lacp, lldp, router};
pub use holdfast_base::{board, io, isa, output, pulse, sets, text, units};
pub use holdfast_checks::{doctor, nic_check};
pub use holdfast_config::config;
#[cfg(feature = "dpdk")]
pub use holdfast_control::control;
pub use holdfast_dataplane::{dataplane, verify};
#[cfg(feature = "dpdk")]
pub use holdfast_dpdk::dpdk;
pub use holdfast_edges::{faults, hosts, linux, mirror};
pub use holdfast_lossless::{headroom, mmu, pfc, qos};
pub use holdfast_observe::{api, stats, top};
pub use holdfast_plan::plan;
pub use holdfast_sim::sim;
pub use holdfast_wire::{forward, route, wire};
