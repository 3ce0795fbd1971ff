//! Mirrors: copies of dropped, marked and sampled frames, for the thread that exports them.

mod copies;
mod fair_policer;
pub(crate) mod lcore;
pub(crate) mod sampler;
