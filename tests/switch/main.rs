//! The program from outside, on in-process ports: what it reports, serves and says, and what it leaves behind. Nothing
//! here needs root; what a process without privileges sees is tried as nobody where the tests run as root.
//!
//! A switch takes a whole CPU, so these tests go one at a time (`.config/nextest.toml`, or `--test-threads=1`), and what
//! they assert is counts and order, never how long something took. Where a CPU that is away for long changes a count, the
//! test goes by `quiet`.

#![cfg(feature = "dpdk")]

mod flood;
mod idle;
mod incast;
mod launch;
mod links;
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod metrics;
mod notify;
mod outputs;
mod overload;
mod process;
mod program;
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod quiet;
mod quiet_tests;
mod refusals;
mod scraping;
mod signals;
mod simulated;
mod unprivileged;
