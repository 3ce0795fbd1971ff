//! The protocols of a switch as state machines: frames and time in, frames and tables out.
//!
//! They know their standards and the plan of the switch. They know no thread and no socket but those of `netlink`, and
//! no dataplane.

#![forbid(unsafe_code)]

pub mod lacp;
pub mod lldp;
#[cfg(target_os = "linux")]
pub mod netlink;
pub mod router;

use holdfast_base::{board, sets, units};
#[cfg(target_os = "linux")]
use holdfast_base::{pulse, sync};
#[cfg(test)]
use holdfast_config::config;
#[cfg(test)]
use holdfast_lossless::pfc;
use holdfast_lossless::qos;
use holdfast_plan::plan;
use holdfast_wire::{forward, route, wire};
