//! Two switches in a row, each in its own process, with a veth pair as the cable. Congestion spreads from the far
//! receiver hop by hop to the senders, and neither switch suffers from a sudden end of the other.
//!
//! The configurations are the users' own, `conf/pair-a.yaml` and `conf/pair-b.yaml`. Their comments explain why nothing
//! is lost when the machine takes the CPU away for a while. The tests need the same environment as `tests/tap`.
//!
//! The tests assert counts and order. The only duration that they use shows that no pause ended early.

#![cfg(feature = "dpdk")]

#[path = "../tap/capture.rs"]
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod capture;
mod congestion;
#[path = "../tap/interface.rs"]
mod interface;
mod killed;
#[path = "../switch/metrics.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod metrics;
#[path = "../tap/namespace.rs"]
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod namespace;
mod peer;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod process;
#[path = "../switch/program.rs"]
mod program;
#[path = "../switch/quiet.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod quiet;
#[path = "../tap/ready.rs"]
mod ready;
mod rig;
mod stalled;
