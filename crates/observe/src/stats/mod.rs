//! Reports of the switch for people and machines: `/metrics`, the live picture, events and advice while it runs, and
//! the final report.
//!
//! This module only observes. Each counter has one writer and is read without locks. The packet path never waits for a
//! reader.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use holdfast_plan::plan::Counters;
//! use holdfast_observe::stats::{Current, SwitchCollector, SwitchView};
//!
//! let switch = holdfast_config::config::embedded().switch;
//! let counters = Arc::new(Counters::new(switch.ports.len(), 1));
//! counters.ports[0].rx_frames[3].add(5);
//! let collector = SwitchCollector::new(Current::new(SwitchView::new(switch, counters)));
//! assert!(collector.text().contains(r#"holdfast_port_received_frames_total{port="p1",tc="3"} 5"#));
//! ```

pub mod advice;
pub mod bounded;
pub mod collector;
pub mod current;
pub mod device;
pub mod events;
pub mod flow_control;
pub mod former;
pub mod health;
pub mod http;
pub mod links;
pub mod live;
pub mod losses;
pub mod monitor;
pub mod needs;
pub mod notice;
pub mod peer;
pub mod pending;
pub mod report;
mod screen;
pub mod snapshot;
pub mod switch_view;
mod text;
pub mod verdict;
pub mod watermarks;

pub use collector::SwitchCollector;
pub use current::Current;
pub use device::{BufferPool, DeviceCounters, DeviceStats};
pub use flow_control::DeviceFlowControl;
pub use live::{Live, Style};
pub use monitor::Monitor;
pub use notice::{Notice, NoticeKind};
pub use pending::PendingCell;
pub use report::Report;
pub use snapshot::Snapshot;
pub use switch_view::{PfcStanding, SwitchView};
pub use verdict::Verdict;

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fixture;
