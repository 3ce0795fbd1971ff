//! Quality of service: the class of a frame, the schedule of its queue, and its ECN mark.

pub mod classify;
pub mod scheduler;
pub mod shaper;
pub mod wred;

pub use classify::{ClassMap, MarkMap, Rewrite, Trust, only_class};
pub use scheduler::{QueueDiscipline, Scheduler};
pub use shaper::Shaper;
pub use wred::{WredProfile, WredVerdict};
