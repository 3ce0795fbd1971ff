//! Mirrors: they export the copies of frames that lcores make. Sessions write copies to ports and pcapng files, or
//! report them to collectors by sFlow version 5.
//!
//! [`Exporter`] takes copies and exports them. It has no clock. Each copy names its sessions. [`text`]
//! describes the event of a copy in a line: the comment of a packet in a file, or the trailer of a frame. [`pcapng`]
//! encodes packets. [`mod@file`] writes files of whole packets, also when the disk refuses some, each by a thread of
//! its own. [`sflow`] is the agent of sFlow. [`board`] is the state for tables, metrics and the API.
//!
//! # Example
//!
//! ```
//! use holdfast_plan::plan::exception::Buffered;
//! use holdfast_plan::plan::mirror::{CopyCause, CopyFrame, MirrorSession, MirrorSpec, SessionSet};
//! use holdfast_plan::plan::{Counters, DropReason};
//! use holdfast_edges::mirror::{Destination, Exporter, Inject, MirrorConfig, Target};
//! use holdfast_base::units::Nanos;
//!
//! struct Wire(Vec<u8>);
//! impl Inject for Wire {
//!     fn inject(&mut self, _: u8, bytes: &[u8]) -> bool {
//!         self.0 = bytes.to_vec();
//!         true
//!     }
//! }
//!
//! // A session that sends dropped frames by port 1, with their reason as the trailer.
//! let switch = holdfast_config::config::embedded().switch;
//! let mut exporter = Exporter::new(&switch, "tor1", Counters::of(&switch).into());
//! let to = Destination::Port { port: 1, has_trailer: true };
//! let config = MirrorConfig { targets: vec![Target { name: "drops".to_owned(), to }], sflow: None };
//! let sessions = [MirrorSession { dropped: true, ..MirrorSession::default() }].into_iter().collect();
//! exporter.configure(&config, &MirrorSpec { sessions, id: 7, ..MirrorSpec::default() }, Nanos(0));
//!
//! let cause = CopyCause::Dropped(DropReason::SamePort);
//! let mut copy = CopyFrame { cause, sessions: SessionSet(1), spec_id: 7, len: 60, ..CopyFrame::with_room(60) };
//! copy.bytes.resize(60, 0xff);
//! let mut wire = Wire(Vec::new());
//! exporter.take(&copy, 0, Nanos(0), &mut wire);
//! assert!(wire.0[60..].starts_with(b"holdfast tor1: dropped same_port: "));
//! assert_eq!(exporter.view().sessions[0].copies, 1);
//! ```

pub mod board;
pub mod exporter;
pub mod facts;
pub mod file;
pub mod pcapng;
pub mod sflow;
pub mod spec;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod text;

pub use board::{Board, CollectorView, Event, Failing, MirrorView, SessionView, SflowView};
pub use exporter::{Exporter, Inject, OpenFile};
pub use spec::{Destination, FileConfig, MOST_FILES, MirrorConfig, SflowConfig, Target};

/// The time that is `span` after `now`.
fn after(now: crate::units::Nanos, span: crate::units::Nanos) -> crate::units::Nanos {
    crate::units::Nanos(now.0.saturating_add(span.0))
}
