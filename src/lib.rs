//! Holdfast: a lossless top-of-rack switch in software.
//!
//! `docs/architecture.md` describes the modules and their dependencies. `wire`, `units`, `mmu`, `pfc`, `qos` and
//! `forward` are pure. `dataplane` combines them into a pipeline over any [`io::Ports`]. `docs/architecture.md` names
//! the files with unsafe code.

#![deny(unsafe_code)]

pub mod api;
pub mod build;
#[cfg(feature = "dpdk")]
pub mod control;
pub mod doctor;
#[cfg(feature = "dpdk")]
#[allow(unsafe_code)]
pub mod dpdk;
pub mod nic_check;
pub mod stats;
pub mod top;
pub use holdfast_agents::{lacp, lldp, netlink, router};
pub use holdfast_base::{board, io, isa, output, pulse, sets, text, units};
pub(crate) use holdfast_base::sync;
pub use holdfast_config::config;
pub use holdfast_dataplane::{dataplane, verify};
pub use holdfast_edges::{faults, hosts, linux, mirror};
pub use holdfast_lossless::{headroom, mmu, pfc, qos};
pub use holdfast_plan::plan;
pub use holdfast_wire::{forward, route, wire};
pub use holdfast_sim::sim;
