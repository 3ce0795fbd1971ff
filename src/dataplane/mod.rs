//! The packet path of the switch: receive bursts, decide, send bursts.

pub(crate) mod buffer;
pub mod egress;
pub mod frame;
pub mod handoff;
pub(crate) mod ingress;
pub mod lcore;
mod lifecycle;
pub(crate) mod pipeline;
mod poll;
pub(crate) mod port;
pub mod spec;
pub mod telemetry;

pub use handoff::mailbox::mailbox;
pub use ingress::scratch::Scratch;
pub use lcore::idle::{Idle, Rest, Resting};
pub use lcore::live_config::LiveConfig;
pub use lcore::{Companion, LcoreControl, Work, run_companion};
pub use pipeline::Pipeline;
pub use spec::{PortSpec, QueueSpec, SwitchSpec};
pub use telemetry::counters::Counters;
pub use telemetry::drops::DropReason;
pub use telemetry::view::ClassView;
