//! Forwarding decisions: VLANs, the forwarding database and a cache of its answers, link aggregation groups.
//!
//! # Example
//!
//! ```
//! use holdfast_wire::forward::fdb::Station;
//! use holdfast_wire::forward::{Fdb, FdbSpec};
//! use holdfast_base::units::{Nanos, Ticks};
//!
//! let spec = FdbSpec { capacity: 1024, ageing: Nanos(300_000_000_000), entries: vec![], seed: 0 };
//! let mut fdb = Fdb::new(&spec, 1_000_000_000);
//! fdb.set_time(Ticks(1_000_000_000));
//! let station = Station::new(1, 0x02_00_00_00_00_07);
//! assert_eq!(fdb.lookup(station), None);
//! fdb.learn(station, 5);
//! assert_eq!(fdb.lookup(station), Some(5));
//! ```

pub mod fdb;
pub mod flow_cache;
pub mod lag;
mod shares;
mod station;
pub mod vlan;

pub use fdb::{Fdb, FdbSpec, StaticChange, StaticEntry};
pub use flow_cache::FlowCache;
pub use lag::{LagSpec, LagState, LagsSpec};
pub use vlan::{VlanMode, VlanTable};
