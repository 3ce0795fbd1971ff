//! What a switch's public QoS suite checks of it, as black-box tests: a running switch on taps, frames injected from
//! outside, counts read from its metrics and exact to the cell.
//!
//! Buffers are small enough that each limit can be worked out by hand, which the comments do. An egress queue stands
//! still because its peer says so by PFC, so nothing hangs on how fast this machine is; where a port's pace is what
//! holds frames back, the test asserts that it still did. No host says anything by itself, and a test ends with the
//! kernel's own count of what each host sent and got, which must be what the switch counted.
//!
//! Needs what `tests/tap` needs. `HOLDFAST_TEST_ARGS` gives `holdfast run` more arguments.

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
