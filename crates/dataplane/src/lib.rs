//! The packet path: frames in, frames out, and the auditor that checks each step.
//!
//! It owns the state of an lcore. On the way of a packet there is no allocation, no lock, no system call and no
//! formatting. It knows no configuration file and no device: ports are [`io::Ports`].

#![deny(unsafe_code)]

pub mod dataplane;
pub mod verify;

use holdfast_base::{io, isa, mutant, prefetch, sets, sync, units};
#[cfg(test)]
use holdfast_config::config;
#[cfg(test)]
use holdfast_edges::hosts;
use holdfast_lossless::{headroom, mmu, pfc, qos};
use holdfast_plan::plan;
use holdfast_wire::{forward, route, wire};
