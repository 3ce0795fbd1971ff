//! Real Linux hosts behind taps, each in its own network namespace, with real frames and independent tools to observe
//! them.
//!
//! The switch runs in a namespace too, so all traffic and all interfaces stay in namespaces that a test creates and
//! removes. Needs root, `/dev/net/tun` and the `test` packages of docker/packages.txt. If something is missing the
//! tests print it and are skipped; with `CI=true` they fail.
//!
//! The tests assert counts and order. Durations have limits only where they are the subject, such as that of a pause.
//! The lower limits are strict, since no timer ends early. The upper limits are generous, since a busy machine delays
//! everything.

#![cfg(feature = "dpdk")]

mod af_xdp;
mod capture;
mod claims;
mod faults;
mod flood;
mod frames;
mod hosts_talk;
mod interface;
mod iperf;
mod jumbo;
mod lag;
mod leaf_spine;
mod linux;
mod lldp;
mod loops;
#[path = "../switch/metrics.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod metrics;
mod mirror;
mod namespace;
mod nic_check;
mod pause_received;
mod peer;
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
mod reload;
mod rig;
mod routed;
mod script;
mod services;
mod stuck;
mod survival;
mod upgrade;
