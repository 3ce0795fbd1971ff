//! From a configuration to frames and back to an idle machine: devices, threads, reloads, reports.
//!
//! It knows all other crates but the simulator, and starts what they describe.

#![forbid(unsafe_code)]

pub mod control;

use holdfast_agents::{lacp, lldp, netlink, router};
use holdfast_base::{io, output, pulse, sets, sync, units};
use holdfast_checks::nic_check;
use holdfast_config::config;
use holdfast_dataplane::dataplane;
use holdfast_dpdk::dpdk;
use holdfast_edges::{faults, hosts, linux, mirror};
use holdfast_lossless::{mmu, pfc, qos};
use holdfast_observe::{api, stats};
use holdfast_plan::plan;
use holdfast_wire::{forward, route, wire};
