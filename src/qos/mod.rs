//! Quality of service: which class a packet has, when its queue may send, when it is marked.

pub mod classify;
pub mod scheduler;
pub mod shaper;
pub mod wred;

pub use classify::{ClassMap, MarkMap, Rewrite, Trust, only_class};
pub use scheduler::{QueueDiscipline, Scheduler};
pub use shaper::Shaper;
pub use wred::{WredProfile, WredVerdict};
