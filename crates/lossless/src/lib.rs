//! The rules of a lossless switch: who may use the buffer, when a sender must stop, which frames are marked, whose
//! turn it is.
//!
//! It decides in cells, quanta and turns. It knows no device and reads no clock: time is an argument.
//!
//! # Example
//!
//! A buffer decided packet by packet: a lossless group fills its reserve, its share, then its headroom, and stops its
//! sender.
//!
//! ```
//! use holdfast_lossless::mmu::{Admission, ExactPool, GroupProfile, HeadroomPolicy, Lease, Pools, PortLedger};
//! use holdfast_lossless::mmu::{PortProfile, SharedPool, Threshold};
//! use holdfast_lossless::units::Cells;
//!
//! // Each lossless group may use 20 shared cells beyond its reserve of 10, then 30 cells of headroom.
//! let group = GroupProfile {
//!     lossless: true,
//!     reserve: Cells(10),
//!     threshold: Threshold::Static(Cells(20)),
//!     xon_offset: Cells(0),
//!     xon_floor: Cells(0),
//!     headroom: Cells(30),
//! };
//! let policy = HeadroomPolicy::Independent;
//! let profile = PortProfile { groups: [group; 8], reserve: [Cells(0); 2], policy, insurance: Cells(0) };
//! let mut ledger = PortLedger::new(&profile);
//! let lease = || Lease::new(SharedPool::new(Cells(1000)));
//! let mut pools = Pools { shared: [lease(), lease()], headroom: ExactPool::new(Cells(0)) };
//! assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Reserve);
//! assert_eq!(ledger.admit(3, Cells(20), &mut pools), Admission::Shared);
//! assert!(ledger.xoff().is_empty());
//! assert_eq!(ledger.admit(3, Cells(5), &mut pools), Admission::Headroom);
//! assert!(ledger.xoff().contains(3));
//! ```

#![forbid(unsafe_code)]

pub mod headroom;
pub mod mmu;
pub mod pfc;
pub mod qos;

use holdfast_base::{mutant, sync, text};
pub use holdfast_base::{sets, units};
use holdfast_wire::wire;
