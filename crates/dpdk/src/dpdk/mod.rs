//! Safe wrappers of DPDK: the environment (EAL), buffers, ports, in-process links, lcores and forwarding tables.
//!
//! This module and the crate `dpdk-sys` hold the `unsafe` code that calls DPDK. These rules make it sound:
//!
//! - [`Eal`] is reference-counted: every pool, port, queue and running worker holds a share. DPDK is shut down only
//!   after the last of them is dropped, in any order.
//! - A [`Mbuf`] is a bare pointer without a share. If a [`Mempool`] is dropped while some of its buffers are out, the
//!   [`Eal`] takes it over and frees it at its own end. If buffers are still out then, the pool and DPDK stay in place
//!   for good.
//! - A driver may free memory of its queues in EAL's interrupt thread. Calls of such a driver are guarded: `guard.rs`.
//! - A [`PortQueues`] exists once per port and can be sent to another thread but not shared. It prevents its port from
//!   being stopped, so the packet path needs no lock and no check.
//!
//! # Example
//!
//! ```no_run
//! use holdfast_dpdk::dpdk::{Eal, EalOptions};
//!
//! let eal = Eal::init(&EalOptions::default())?;
//! println!("{} with {} workers", holdfast_dpdk::dpdk::version(), eal.workers().len());
//! # Ok::<(), holdfast_dpdk::dpdk::Error>(())
//! ```

mod check;
mod claim;
mod class_pfc;
mod clock;
mod device;
mod driver;
mod eal;
mod error;
mod fib;
mod gate;
mod guard;
mod idle;
mod interface;
mod interrupts;
mod io;
mod kernel_ring;
mod lcore;
mod log;
mod mbuf;
mod mempool;
mod port;
mod queue;
mod ring;
mod socket;
mod steering;
mod tags;
#[cfg(test)]
mod tests;

pub use check::interface_of;
pub use class_pfc::{ClassPfc, buffers_by_class};
pub use clock::{hz, now};
pub use eal::{Eal, EalOptions, Memory, version};
pub use error::Error;
pub use fib::RteFib;
pub use idle::{Sleeper, Waiter};
pub use interface::exists as interface_exists;
pub use interrupts::InterruptPulse;
pub use io::EthIo;
pub use lcore::{Lcore, Worker, allowed_cpus};
pub use mbuf::{HEADROOM, Mbuf};
pub use mempool::Mempool;
pub use port::{EthPort, FlowControl, LinkState, PortConfig, PortStats};
pub use queue::{PortQueues, PortSender};
pub use ring::RingLink;
pub use steering::{FlowRule, Frames, Steerable, steerable};
