//! What measurements of the pipeline under load share: peers that obey PFC, a clock that sees when the core was taken
//! away, histograms, tables and plots.
//!
//! Peers and switch run on one core, the peers inside the calls of [`holdfast::packet::Ports`]. Their frames come by a
//! schedule on the TSC and not when they are asked for, so that a late poll finds what a late poll would find; what they
//! cost is measured and can be taken off.

// Each bench uses its part.
#![allow(dead_code, unused_imports)]

mod args;
mod bed;
mod frames;
mod generator;
mod histogram;
mod link;
mod output;
mod plot;
mod reaction;
mod shadow;
// The simulator's elements of a picture: private to the library, and with nothing of it in them.
#[path = "../../src/sim/plot/svg.rs"]
mod svg;
mod watch;

pub use args::Args;
pub use bed::{Bed, BedSpec, POLL_GAP_NS, Setup, calibrate, rate_of};
pub use frames::{Arrival, Parcel, Stamped, mac};
pub use generator::{Generator, Observer};
pub use histogram::{Histogram, Samples};
pub use link::{Flow, Link, LinkSpec, Probe, Storm};
pub use output::{Section, micros, write_json, write_plot};
pub use plot::{Curve, distributions};
pub use reaction::{Reaction, Times};
pub use shadow::{Cause, Shadow};
pub use watch::{Watch, control};
