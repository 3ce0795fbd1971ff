//! The program from outside, on in-process ports: its reports, metrics and messages, and the files it leaves. Nothing
//! here needs root. Where the tests run as root, those of an unprivileged process run as UID 65534.
//!
//! A switch takes a whole CPU, so these tests run one at a time (`.config/nextest.toml`, or `--test-threads=1`). They
//! assert counts and order, never durations. Where the long absence of a CPU changes a count, the test uses `quiet`.

#![cfg(feature = "dpdk")]

mod flood;
mod frontend;
mod idle;
mod incast;
mod journal;
mod launch;
mod links;
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod metrics;
mod notify;
mod outputs;
mod overload;
mod peer;
mod process;
mod program;
mod queues;
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod quiet;
mod quiet_tests;
mod refusals;
mod scraping;
mod signals;
mod simulated;
mod sonic;
mod threads;
mod unprivileged;
mod unread;
mod vhost;
