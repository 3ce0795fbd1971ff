//! Simulated networks.

mod found;
mod random;
