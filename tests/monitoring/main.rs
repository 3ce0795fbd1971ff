//! What watches the switch: Prometheus' rules and alerts, Grafana's dashboards, and that every query of theirs has an answer
//! from a real Prometheus that scrapes a running switch.
//!
//! Needs promtool, prometheus, node and npm (docker/packages.txt). Where one cannot be had a test says so and is skipped,
//! but never in CI.

#![cfg(feature = "dpdk")]

mod dashboards;
mod health;
mod live;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the program use more of it")]
mod process;
mod prometheus;
mod rules;
mod switch;
mod tools;
