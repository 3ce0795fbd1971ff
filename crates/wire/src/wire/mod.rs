//! Frames on the wire: readers that check every bound, and the valid representations that they return.
//!
//! # Example
//!
//! ```
//! use holdfast_base::sets::ClassSet;
//! use holdfast_base::units::Quanta;
//! use holdfast_wire::wire::MacAddr;
//! use holdfast_wire::wire::mac_control::{self, MacControl, PfcFrame};
//!
//! let mut xoff = PfcFrame { enabled: ClassSet::only(3), ..PfcFrame::default() };
//! xoff.quanta[3] = Quanta(0xffff);
//! let frame = xoff.emit(MacAddr::local(0, 1));
//! assert_eq!(mac_control::parse(&frame), Some(MacControl::Pfc(xoff)));
//! ```

pub mod addr;
pub mod cnm;
pub mod ecn;
pub mod extensions;
pub mod glance;
pub mod inband;
pub mod ip;
pub mod lacp;
pub mod link_protocol;
pub mod lldp;
pub mod loop_probe;
pub mod mac_control;
pub mod parse;
pub mod plain;
pub(crate) mod plain_kind;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub mod plain_vector;
pub mod roce;
pub mod usual;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub mod usual_vector;
pub mod vlan_tag;

pub use addr::MacAddr;
pub use glance::{Glance, Purpose, glance, glance_roce, glance_usual};
pub use parse::{Headers, ParseError, parse};
pub use plain::{Plain, parse_plain};
pub use plain_kind::{KindFields, PlainKind};
pub use roce::RoceControl;
pub use usual::{Usual, parse_usual};
