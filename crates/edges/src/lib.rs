//! The other end of a port: virtual hosts, destinations of copies, injected faults, and the Linux that lends taps.
//!
//! It knows frames and the plan of the switch. It knows no dataplane.

#![deny(unsafe_code)]

pub mod faults;
pub mod hosts;
#[allow(unsafe_code)]
pub mod linux;
pub mod mirror;

use holdfast_base::{board, io, pulse, sets, sync, units};
#[cfg(test)]
use holdfast_config::config;
use holdfast_lossless::{pfc, qos};
use holdfast_plan::plan;
use holdfast_wire::wire;
