//! Holdfast: a lossless top-of-rack switch in software.
//!
//! `docs/architecture.md` describes the modules and their dependencies. `wire`, `units`, `mmu`, `pfc`, `qos` and
//! `forward` are pure. `dataplane` combines them into a pipeline over any [`io::Ports`]. `docs/architecture.md` names
//! the files with unsafe code.

#![deny(unsafe_code)]

pub mod build;
pub use holdfast_agents::{lacp, lldp, netlink, router};
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
