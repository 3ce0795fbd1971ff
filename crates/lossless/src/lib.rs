//! The rules of a lossless switch: who may use the buffer, when a sender must stop, which frames are marked, whose
//! turn it is.
//!
//! It decides in cells, quanta and turns. It knows no device and reads no clock: time is an argument.
//!
//! # Example
//!
//! ```
//! EXAMPLE
//! ```

#![forbid(unsafe_code)]

pub mod headroom;
pub mod mmu;
pub mod pfc;
pub mod qos;

use holdfast_base::{mutant, sets, sync, text, units};
use holdfast_wire::wire;
