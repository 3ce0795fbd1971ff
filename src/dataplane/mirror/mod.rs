//! Mirrors: copies of dropped, marked and sampled frames, for the thread that exports them.

mod copies;
pub mod copy;
mod fair_policer;
pub(crate) mod lcore;
pub(crate) mod sampler;
pub mod spec;

pub use copy::{CopyFrame, GroupState, QueueState};
pub use spec::{CopyCause, MAX_SESSIONS, MirrorSession, MirrorSpec, ReasonSet, SessionSet};
