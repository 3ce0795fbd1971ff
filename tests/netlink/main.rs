//! The netlink mirror beside a real kernel: `ip` changes a network namespace, and its view must become the mirror's.
//!
//! Needs root and the packages iproute2 and util-linux. If something is missing the tests print it and are skipped;
//! with `CI=true` they fail. The links are pairs of veth interfaces, since some kernels have no dummy interfaces.

mod kernel_view;
#[path = "../tap/namespace.rs"]
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod namespace;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod process;
mod random;
mod rig;
mod rules;
mod threads;
mod writes;
