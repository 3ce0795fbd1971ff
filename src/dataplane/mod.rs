//! The packet path of the switch: receive bursts, decide, send bursts.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use holdfast::dataplane::{Pipeline, Scratch};
//! use holdfast::plan::Counters;
//! use holdfast::io::memory::{MemPacket, MemPorts};
//! use holdfast::units::Ticks;
//!
//! // The switch of the embedded configuration, without its hosts, on ports in memory.
//! let switch = holdfast::config::embedded().switch;
//! let counters = Arc::new(Counters::new(switch.ports.len(), 1));
//! let mut pipeline: Pipeline<MemPacket> = Pipeline::new(&switch, counters.clone(), 1_000_000_000, 1);
//! let (mut ports, mut scratch) = (MemPorts::new(switch.ports.len()), Scratch::default());
//! // A broadcast frame of 60 bytes from station 02:00:00:00:00:07.
//! let mut frame = [0; 60];
//! frame[..6].fill(0xff);
//! frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 7]);
//! ports.inject(0, &frame);
//! pipeline.poll(&mut ports, &mut scratch, Ticks(1_000_000_000));
//! assert!(ports.sent_all(1).iter().any(|sent| sent[..6] == [0xff; 6]), "flooded to every other port");
//! ```

pub(crate) mod buffer;
pub mod egress;
pub mod frame;
pub mod handoff;
pub(crate) mod ingress;
pub mod lcore;
mod lifecycle;
pub mod mirror;
pub(crate) mod pipeline;
mod poll;
pub(crate) mod port;
pub mod telemetry;

pub use ingress::scratch::Scratch;
pub use lcore::Work;
pub use lcore::idle::{Idle, Rest, Resting};
pub use lcore::live_config::LiveConfig;
pub use pipeline::Pipeline;
pub use telemetry::view::ClassView;
