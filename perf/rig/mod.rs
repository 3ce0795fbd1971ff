//! Shared parts of the benches that measure the pipeline under load: peers that obey PFC, a clock that detects when the
//! core was taken away, histograms, tables and plots.
//!
//! Peers and switch run on one core, the peers inside the calls of [`holdfast::io::Ports`]. Their frames arrive by
//! a schedule on the TSC, not on request. So a late poll finds the frames that a late poll would find at a NIC. The
//! cost of the peers is measured and can be subtracted.

// Each bench uses only some of the items.
#![allow(dead_code, unused_imports)]

mod args;
mod arrival;
mod bed;
mod frames;
mod generator;
mod histogram;
mod link;
mod output;
mod plot;
mod reaction;
mod shadow;
// The SVG elements of the simulator. They are private to the library and do not depend on it.
#[path = "../../crates/sim/src/sim/plot/svg.rs"]
mod svg;
mod watch;

pub use args::Args;
pub use arrival::Arrival;
pub use bed::{Bed, BedSpec, POLL_GAP_NS, Setup, calibrate, rate_of};
pub use frames::{Parcel, Stamped, mac};
pub use generator::{Generator, Left, Observer};
pub use histogram::{Histogram, Samples};
pub use link::{Flow, Link, LinkSpec, PeriodicPause, Probe};
pub use output::{Section, micros, write_json, write_plot};
pub use plot::{Curve, distributions};
pub use reaction::{Reaction, Times};
pub use shadow::{Cause, Shadow};
pub use watch::{Machine, Watch};
