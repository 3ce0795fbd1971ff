//! Quality of service: the class of a frame, the schedule of its queue, and its ECN mark.
//!
//! # Example
//!
//! ```
//! use holdfast_lossless::qos::{QueueDiscipline, Scheduler};
//! use holdfast_base::sets::ClassSet;
//!
//! let mut disciplines = [QueueDiscipline::Dwrr { weight: 1 }; 8];
//! disciplines[7] = QueueDiscipline::Strict;
//! let mut scheduler = Scheduler::new(disciplines);
//! let ready: ClassSet = [3, 7].into_iter().collect();
//! assert_eq!(scheduler.choose(ready, |_| 1000), Some(7), "a strict queue goes first");
//! ```

pub mod classify;
pub mod flood;
pub mod joint_pacer;
pub mod joint_wire;
pub mod max_rate;
pub mod policer;
pub mod qcn;
pub mod scheduler;
pub mod shaper;
pub mod wred;

pub use classify::{ClassMap, MarkMap, Rewrite, RoceMap, Trust, only_class};
pub use flood::{FloodKind, FloodLimits};
pub use max_rate::{MaxRate, QueueShapers};
pub use qcn::CongestionPointSpec;
pub use scheduler::{QueueDiscipline, Scheduler};
pub use shaper::Shaper;
pub use wred::{WredProfile, WredVerdict};
