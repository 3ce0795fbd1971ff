//! The lowest crate of Holdfast: units, sets of ports and classes, the traits of devices and frames, text, atomics.
//!
//! It knows no protocol and no switch. Numbers of other crates have its types, so that a face never shows a bare
//! integer with a unit. Every atomic comes from its `sync`, which loom replaces in models.

#![deny(unsafe_code)]

pub mod board;
pub mod cpus;
pub mod io;
pub mod isa;
pub mod mutant;
pub mod output;
pub mod prefetch;
pub mod pulse;
pub mod sets;
#[cfg(test)]
mod sets_tests;
pub mod sync;
pub mod text;
pub mod units;
