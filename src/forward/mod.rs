//! Where a frame goes: VLANs and the forwarding database.

pub mod fdb;
pub mod vlan;

pub use fdb::{Fdb, FdbSpec, StaticEntry};
pub use vlan::{VlanMode, VlanTable};
