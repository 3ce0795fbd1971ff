//! The API of a running switch and its client programs, tested from outside on in-process ports. Nothing here needs
//! root.
//!
//! A switch takes a whole CPU, so these tests run one at a time (`.config/nextest.toml`, or `--test-threads=1`). They
//! assert counts and order, never durations.

#![cfg(feature = "dpdk")]

mod abuse;
#[path = "../pages/blocks.rs"]
mod blocks;
mod description;
mod faults;
mod history;
mod pages;
mod ports;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the program use more of it")]
mod process;
mod reload;
mod resources;
mod rig;
mod roles;
mod shows;
mod sockets;
mod stations;
