//! Holdfast: a lossless top-of-rack switch in software.
//!
//! `docs/architecture.md` describes the modules and their dependencies. `wire`, `units`, `mmu`, `pfc`, `qos` and
//! `forward` are pure. `dataplane` combines them into a pipeline over any [`io::Ports`]. `docs/architecture.md` names
//! the files with unsafe code.

#![deny(unsafe_code)]

pub mod api;
pub mod board;
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
pub mod forward;
pub mod headroom;
pub mod hosts;
pub mod io;
pub mod isa;
pub mod lacp;
#[allow(unsafe_code)]
pub mod linux;
pub mod lldp;
pub mod mirror;
pub mod mmu;
mod mutant;
pub mod netlink;
pub mod nic_check;
pub mod output;
pub mod pfc;
pub mod plan;
mod prefetch;
pub mod pulse;
pub mod qos;
pub mod route;
pub mod router;
pub mod sets;
#[cfg(test)]
mod sets_tests;
pub mod sim;
pub mod stats;
mod sync;
pub mod text;
pub mod top;
pub mod units;
pub mod verify;
pub mod wire;
