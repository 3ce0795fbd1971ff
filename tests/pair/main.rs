//! Two switches in a row, each a process of its own, and a veth pair for the cable between them: congestion goes from
//! the far receiver hop by hop to the senders, and neither switch suffers from the other's sudden end.
//!
//! The configurations are those that users have, `conf/pair-a.yaml` and `conf/pair-b.yaml`; their comments say why a
//! machine that takes the CPU away for a while loses nothing. Needs what `tests/tap` needs.
//!
//! What is asserted is counts and order. Nothing is taken from how long something took but that no pause ended early.

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
