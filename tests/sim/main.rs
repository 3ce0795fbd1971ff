//! Simulated networks.

mod found;
mod pacing;
mod random;
mod reliable;
