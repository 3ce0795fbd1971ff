//! Where a frame goes: VLANs and the forwarding database.

pub mod fdb;
pub mod pairs;
pub mod vlan;

pub use fdb::{Fdb, FdbSpec, StaticEntry};
pub use pairs::Pairs;
pub use vlan::{VlanMode, VlanTable};
