//! Monitoring of the switch: Prometheus rules and alerts, and Grafana dashboards. Each of their queries returns data
//! from a real Prometheus that scrapes a running switch.
//!
//! Needs promtool, prometheus, node and npm (docker/packages.txt). Where one is missing the test prints so and is
//! skipped, except in CI, where it fails.

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
