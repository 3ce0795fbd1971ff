//! Holdfast: a lossless top-of-rack switch in software.
//!
//! `docs/architecture.md` describes the modules and their dependencies. `wire`, `units`, `mmu`, `pfc`, `qos` and
//! `forward` are pure. `dataplane` combines them into a pipeline over any [`io::Ports`]. `docs/architecture.md` names
//! the files with unsafe code.

#![deny(unsafe_code)]

pub mod api;
pub mod build;
pub mod config;
#[cfg(feature = "dpdk")]
pub mod control;
pub mod dataplane;
pub mod doctor;
#[cfg(feature = "dpdk")]
#[allow(unsafe_code)]
pub mod dpdk;
pub mod faults;
pub mod hosts;
pub mod lacp;
#[allow(unsafe_code)]
pub mod linux;
pub mod lldp;
pub mod mirror;
pub mod netlink;
pub mod nic_check;
pub mod router;
pub mod sim;
pub mod stats;
pub mod top;
pub mod verify;
pub use holdfast_base::{board, io, isa, output, pulse, sets, text, units};
pub(crate) use holdfast_base::{mutant, prefetch, sync};
pub use holdfast_lossless::{headroom, mmu, pfc, qos};
pub use holdfast_plan::plan;
pub use holdfast_wire::{forward, route, wire};
