//! RDMA between virtual machines through the switch: `make test-rdma`.
//!
//! Four guests of QEMU run Linux's soft-RoCE (rdma_rxe) and perftest, each at a vhost port of the switch. Three send to
//! the first, whose port is the bottleneck. The guests' counters of sequence errors and retries judge the switch: it
//! does not take part in them. The same traffic with `pfc: off` must cause errors, or the test could not fail.
//!
//! The test needs neither root nor KVM, and counts rather than measures: a slow machine takes longer, no more. It is
//! ignored by `make test`, because it needs packages of its own and minutes.

#![cfg(feature = "dpdk")]

#[path = "../guests/agent.rs"]
mod agent;
mod bond;
#[path = "../guests/boot.rs"]
mod boot;
mod guest;
mod image;
mod injected;
mod lab;
#[path = "../switch/metrics.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod metrics;
mod phases;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod process;
mod ready;
mod traffic;
