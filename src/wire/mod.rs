//! Frames on the wire: readers that check every bound, and the valid representations that they return.

pub mod addr;
pub mod ecn;
pub mod glance;
pub mod mac_control;
pub mod parse;
pub mod plain;
pub mod usual;
pub mod vlan_tag;

pub use addr::MacAddr;
pub use glance::{Glance, Purpose, glance, glance_usual};
pub use parse::{Headers, ParseError, parse};
pub use plain::{Plain, parse_plain};
pub use usual::{Usual, parse_usual};
