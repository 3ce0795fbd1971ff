//! Parts of the benchmarks that a wrong figure would not give away.

#[path = "../../perf/rig/arrival.rs"]
#[allow(dead_code, reason = "the benchmarks use all of it")]
mod arrival;
#[path = "../../perf/instructions/golden.rs"]
#[allow(dead_code, reason = "the guard uses all of it")]
mod counts;
mod golden;
#[path = "../../perf/rig/link.rs"]
#[allow(dead_code, reason = "the benchmarks use all of it")]
mod link;
mod peer;
