//! The packet path of the switch: receive bursts, decide, send bursts.

mod accept;
pub mod audit;
mod backlog;
mod buffer;
mod class_bits;
mod control;
pub mod counters;
pub mod decision_log;
mod dispatch;
pub mod drops;
mod egress;
mod enqueue;
mod fast_path;
pub mod fdb_view;
#[cfg(test)]
mod fdb_view_tests;
mod forwarder;
pub mod frame_desc;
// The ring's slots are uninitialized memory that two lcores share. Outside `dpdk`, only `handoff` and `prefetch` have
// unsafe code.
#[allow(unsafe_code)]
pub mod handoff;
#[cfg(test)]
mod handoff_tests;
mod history_ring;
#[cfg(test)]
mod history_ring_tests;
pub mod idle;
mod ingress;
mod lcore;
mod lifecycle;
mod links;
mod live_config;
mod log;
pub mod mailbox;
pub mod memory;
mod mesh;
mod meta;
#[cfg(test)]
mod pacing_tests;
mod parse;
mod pauses;
mod pipeline;
mod poll;
mod port;
mod port_classifier;
pub mod queue;
pub mod record;
pub mod replay;
mod rest;
mod rewrite;
mod rounds;
mod scratch;
mod shed;
mod shutdown;
pub mod spec;
mod stuck;
mod telemetry;
mod transmit;
mod trash;
mod view;

pub use counters::Counters;
pub use drops::DropReason;
pub use idle::{Idle, Rest, Resting};
pub use lcore::{Companion, LcoreControl, Work, run_companion};
pub use live_config::LiveConfig;
pub use mailbox::mailbox;
pub use pipeline::Pipeline;
pub use spec::{PortSpec, QueueSpec, SwitchSpec};
pub use view::ClassView;
