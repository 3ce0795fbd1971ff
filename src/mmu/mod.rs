//! The shared-buffer memory management unit: reserve, shared and headroom, decided packet by packet.
//!
//! Pure: knows cells, groups and queues, and nothing of frames, ports' hardware or DPDK.

pub mod headroom;
mod ledger;
mod pool;
mod profile;
mod tally;

pub use ledger::{Admission, Judgement, Ledger, Refusal};
pub use pool::{Lease, MAX_LEASE, SharedPool};
pub use profile::{BufferPlan, GroupProfile, HeadroomPolicy, PortProfile, QueueLimit, Threshold};
pub use tally::Tallies;
