//! Real Linux hosts behind taps: each in a network namespace of its own, with real frames, and independent eyes on them.
//!
//! The switch runs in a namespace too, so that all traffic, and every interface, stays inside of what a test made and
//! removes. Needs root, `/dev/net/tun` and the `test` packages of docker/packages.txt; where something is missing the
//! tests say so and are skipped, but with `CI=true` they fail.
//!
//! What they assert is counts and order. Where time itself is the subject (a pause lasts as long as it says), bounds are
//! strict below, since nothing makes a timer end early, and generous above, since a busy machine makes everything late.

#![cfg(feature = "dpdk")]

mod capture;
mod frames;
mod hosts_talk;
mod interface;
mod iperf;
mod jumbo;
#[path = "../switch/metrics.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod metrics;
mod namespace;
mod pause_received;
mod pfc_sent;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod process;
#[path = "../switch/program.rs"]
mod program;
#[path = "../switch/quiet.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod quiet;
mod ready;
mod rig;
mod script;
mod stuck;
mod survival;
