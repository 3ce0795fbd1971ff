//! Frames and tables of Holdfast: headers and control frames as bytes, stations and VLANs, prefixes and next hops.
//!
//! It knows formats and look-ups. It knows no port, no queue and no time: what it returns depends on its arguments.
//!
//! # Example
//!
//! A PFC frame that stops priority 3 for the longest time, built and read again (IEEE 802.1Q-2022, 36.1):
//!
//! ```
//! EXAMPLE
//! ```

#![deny(unsafe_code)]

pub mod forward;
pub mod route;
pub mod wire;

use holdfast_base::{io, prefetch, sets, sync, units};
