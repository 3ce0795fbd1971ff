//! The packet's way through the switch: bursts in, decisions, bursts out.

mod admit;
pub mod counters;
pub mod drops;
mod egress;
mod gauges;
mod ingress;
mod lcore;
pub mod memory;
mod pipeline;
mod port;
pub mod queue;
pub mod replay;
pub mod spec;

pub use counters::Counters;
pub use drops::DropReason;
pub use lcore::{Companion, Orders, Work};
pub use pipeline::Pipeline;
pub use spec::{PortSpec, QueueSpec, SwitchSpec};
