//! The shared-buffer memory management unit (MMU): reserve, shared pool and headroom, decided packet by packet.
//!
//! This module is pure: it handles cells, groups and queues. It does not depend on frames, hardware ports or DPDK.
//!
//! # Example
//!
//! ```
//! use holdfast_lossless::mmu::{Admission, ExactPool, GroupProfile, HeadroomPolicy, Lease, Pools, PortLedger};
//! use holdfast_lossless::mmu::{PortProfile, SharedPool, Threshold};
//! use holdfast_base::units::Cells;
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

mod admission;
mod division;
mod hpcc;
mod ledger;
mod pool;
#[cfg(test)]
mod pool_tests;
mod profile;
mod queue;
mod tally;
#[cfg(test)]
mod tally_tests;

pub use admission::{Admission, Refusal};
pub use division::{BufferPools, PendingBuffer};
pub use hpcc::{HpccGroup, HpccPlace, HpccRule, HpccRules};
pub use ledger::{GroupState, Pools, PortLedger, ReverieGroups};
pub use pool::{ExactPool, Lease, MAX_LEASE, SharedPool};
pub use profile::{BufferPlan, GroupProfile, HeadroomPolicy, PortProfile, QueueLimit, Threshold};
pub use queue::{
    AbmSpec, BurstRequest, CongestionSums, DepthFilter, LimitPart, LossyPool, QueueAdmission, QueueDepth,
    QueueExplanation, QueueProfile, QueueRefusal, QueueRequest, QueueReserves, QueueVerdict,
};
pub use tally::{Tallies, TallyWriter};
