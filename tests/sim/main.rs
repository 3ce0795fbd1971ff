//! Simulated networks.

mod found;
mod random;
mod reliable;
