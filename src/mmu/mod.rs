//! The shared-buffer memory management unit (MMU): reserve, shared pool and headroom, decided packet by packet.
//!
//! This module is pure: it handles cells, groups and queues. It does not depend on frames, hardware ports or DPDK.

mod admission;
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
pub use ledger::{GroupState, Pools, PortLedger};
pub use pool::{ExactPool, Lease, MAX_LEASE, SharedPool};
pub use profile::{BufferPlan, GroupProfile, HeadroomPolicy, PortProfile, QueueLimit, Threshold};
pub use queue::{
    BurstRequest, LossyPool, QueueAdmission, QueueDepth, QueueExplanation, QueueProfile, QueueRefusal, QueueRequest,
    QueueReserves, QueueVerdict,
};
pub use tally::{Tallies, TallyWriter};
