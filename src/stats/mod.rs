//! What the switch tells people and machines about itself: `/metrics`, the live picture, the final report.
//!
//! Everything here looks on. Counters have one writer each and are read without locks; nothing on the packet path
//! waits for a reader or knows that there is one.

pub mod collector;
pub mod device;
pub mod format;
pub mod http;
pub mod live;
pub mod report;
pub mod snapshot;
pub mod subject;
pub mod table;
mod text;
pub mod verdict;

pub use collector::SwitchCollector;
pub use device::{DeviceCounters, DeviceStats};
pub use live::{Live, Style};
pub use report::Report;
pub use snapshot::Snapshot;
pub use subject::{PfcStanding, Subject};
pub use verdict::Verdict;

#[cfg(test)]
mod fixture;
