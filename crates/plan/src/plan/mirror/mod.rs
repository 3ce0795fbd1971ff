//! Mirrors as data: which frames are copied, and a copy on its way to the thread that exports it.

pub mod copy;
pub mod spec;

pub use copy::{CopyFrame, GroupState, QueueState};
pub use spec::{CopyCause, MAX_SESSIONS, MirrorSession, MirrorSpec, ReasonSet, SessionSet};
