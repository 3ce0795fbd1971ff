//! Simulated networks.

mod found;
mod isolation;
mod max_load;
mod pacing;
mod published;
mod random;
mod reliable;
