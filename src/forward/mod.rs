//! Forwarding decisions: VLANs, the forwarding database and a cache of its answers.

pub mod fdb;
pub mod flow_cache;
pub mod vlan;

pub use fdb::{Fdb, FdbSpec, StaticEntry};
pub use flow_cache::FlowCache;
pub use vlan::{VlanMode, VlanTable};
