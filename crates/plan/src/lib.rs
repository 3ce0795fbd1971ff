//! A switch as data: what it is built from, what it reports, and what its threads pass to each other.
//!
//! It knows what a switch has. It does not know how a frame is forwarded, and it polls nothing.

#![deny(unsafe_code)]

pub mod plan;

use holdfast_base::{sets, sync, units};
use holdfast_lossless::{mmu, pfc, qos};
use holdfast_wire::{forward, route, wire};
