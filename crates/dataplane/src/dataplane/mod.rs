//! The packet path of the switch: receive bursts, decide, send bursts.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use holdfast_dataplane::dataplane::{Pipeline, Scratch};
//! use holdfast_plan::plan::Counters;
//! use holdfast_base::io::memory::{MemPacket, MemPorts};
//! use holdfast_base::units::Ticks;
//!
//! // The switch of the embedded configuration, without its hosts, on ports in memory.
//! let switch = holdfast_config::config::embedded().switch;
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
pub mod observed;
pub(crate) mod pipeline;
mod poll;
pub(crate) mod port;
pub(crate) mod replacement;
pub mod telemetry;

pub use ingress::scratch::Scratch;
pub use lcore::division::Division;
pub use lcore::idle::{Idle, Rest, Resting};
pub use lcore::live_config::LiveConfig;
pub use lcore::{Exchange, Work};
pub use observed::ClassView;
pub use pipeline::Pipeline;
