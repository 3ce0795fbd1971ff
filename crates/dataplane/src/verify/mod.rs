//! Watches the dataplane: the auditor checks its invariants, and replay decides recorded frames again.
//!
//! # Example
//!
//! ```
//! use holdfast_dataplane::verify::replay::{Ecn, EventResult, Frame, Replay};
//!
//! let switch = holdfast_config::config::embedded().switch;
//! let mut replay = Replay::new(&switch);
//! let decision = replay.arrive(Frame { port: 0, egress: 4, class: 3, bytes: 1000, ecn: Ecn::Ect0 });
//! assert_eq!(decision.outcome, EventResult::Reserve, "the first frame of a group fits its reserve");
//! ```

pub mod audit;
pub mod record;
pub mod replay;
