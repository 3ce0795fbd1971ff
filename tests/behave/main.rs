//! Black-box tests of the checks in a switch's public QoS suite. They run a switch on taps, inject frames from outside,
//! and read counts from its metrics. The counts are exact to the cell.
//!
//! Buffers are so small that each limit can be calculated by hand; the comments show the calculation. A peer stops an
//! egress queue by PFC, so no result depends on the speed of this machine. Where the speed of a port holds frames back,
//! the test asserts that frames still waited. No host sends frames on its own. A test ends by comparing the kernel's
//! count of each host's frames with the switch's counters.
//!
//! Needs the same environment as `tests/tap`. `HOLDFAST_TEST_ARGS` gives `holdfast run` more arguments.

#![cfg(feature = "dpdk")]

mod bed;
#[path = "../tap/capture.rs"]
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod capture;
mod clocks;
mod flooding;
mod frame;
#[path = "../tap/frames.rs"]
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod frames;
mod guarantees;
mod headroom;
#[path = "../tap/interface.rs"]
mod interface;
mod mapped;
mod maps;
mod marking;
#[path = "../switch/metrics.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod metrics;
#[path = "../tap/namespace.rs"]
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod namespace;
mod pauses;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod process;
#[path = "../switch/program.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod program;
#[path = "../switch/quiet.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod quiet;
#[path = "../tap/ready.rs"]
mod ready;
#[path = "../tap/rig.rs"]
#[allow(dead_code, reason = "the tests over taps use more of it")]
mod rig;
mod seen;
mod shares;
mod speeds;
mod watchdog;
mod watermarks;
mod xoff;
mod xon;
