//! The API of a running switch and the programs that ask it, from outside, on in-process ports: nothing here needs root.
//!
//! A switch takes a whole CPU, so these tests go one at a time (`.config/nextest.toml`, or `--test-threads=1`), and what
//! they assert is counts and order, never how long something took.

#![cfg(feature = "dpdk")]

mod abuse;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the program use more of it")]
mod process;
mod reload;
mod resources;
mod rig;
mod shows;
mod sockets;
