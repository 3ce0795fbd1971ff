//! The shared-buffer memory management unit: reserve, shared and headroom, decided packet by packet.
//!
//! Pure: knows cells, groups and queues, and nothing of frames, ports' hardware or DPDK.

pub mod admission;
pub mod headroom;
mod headroom_pool;
mod ledger;
mod pool;
mod port_ledger;
mod port_threshold;
#[cfg(test)]
mod pool_tests;
mod profile;
mod tally;
#[cfg(test)]
mod tally_tests;

pub use headroom_pool::HeadroomPool;
pub use ledger::{Admission, Judgement, Ledger, Refusal};
pub use pool::{ExactPool, Lease, MAX_LEASE, SharedPool};
pub use port_ledger::{GroupState, Pools, PortLedger};
pub use profile::{BufferPlan, GroupProfile, HeadroomPolicy, PortProfile, QueueLimit, Threshold};
pub use tally::{Tallies, TallyWriter};
