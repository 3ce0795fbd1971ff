//! Frames and tables of Holdfast: headers and control frames as bytes, stations and VLANs, prefixes and next hops.
//!
//! It knows formats and look-ups. It knows no port, no queue and no time: what it returns depends on its arguments.
//!
//! # Example
//!
//! A PFC frame that stops priority 3 for the longest time, built and read again (IEEE 802.1Q-2022, 36.1):
//!
//! ```
//! use holdfast_wire::sets::ClassSet;
//! use holdfast_wire::units::Quanta;
//! use holdfast_wire::wire::MacAddr;
//! use holdfast_wire::wire::mac_control::{self, MacControl, PfcFrame};
//!
//! let mut xoff = PfcFrame { enabled: ClassSet::only(3), ..PfcFrame::default() };
//! xoff.quanta[3] = Quanta(0xffff);
//! let frame = xoff.emit(MacAddr::local(0, 1));
//! assert_eq!(mac_control::parse(&frame), Some(MacControl::Pfc(xoff)));
//! ```

#![deny(unsafe_code)]

pub mod forward;
pub mod route;
pub mod wire;

pub use holdfast_base::{io, sets, units};
use holdfast_base::{prefetch, sync};
