//! Checks before a switch runs: of a machine, and of a NIC that answers to PFC.
//!
//! They know facts and measurements that others collect, and return findings with remedies. They touch no device.

#![forbid(unsafe_code)]

pub mod doctor;
pub mod nic_check;

use holdfast_agents::router;
use holdfast_base::{cpus, io, sets, text, units};
use holdfast_config::config;
use holdfast_lossless::{headroom, pfc, qos};
use holdfast_wire::wire;
