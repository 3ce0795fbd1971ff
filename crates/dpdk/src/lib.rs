//! DPDK behind safe types: environment, pools, mbufs, ports, lcores, forwarding tables.
//!
//! It holds the unsafe code of Holdfast beside `ffi/`. It knows no buffer rule, no queue and no configuration.

#![allow(unsafe_code)]

pub mod dpdk;

use holdfast_base::{cpus, io, output, prefetch, pulse, sets, sync, units};
#[cfg(test)]
use holdfast_config::config;
#[cfg(test)]
use holdfast_dataplane::dataplane;
#[cfg(test)]
use holdfast_plan::plan;
#[cfg(test)]
use holdfast_sim::sim;
use holdfast_wire::route;
#[cfg(test)]
use holdfast_wire::wire;
