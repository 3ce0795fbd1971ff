//! DPDK, safely: the environment (EAL), buffers, ports, in-process links and lcores.
//!
//! This module and the crate `dpdk-sys` hold all the `unsafe` of Holdfast. What makes it sound as a whole:
//!
//! - [`Eal`] is counted: every pool, port, queue and running worker holds a share, so DPDK is shut down only after
//!   the last of them is gone, whatever the order in which they are dropped.
//! - A [`Mbuf`] is a bare pointer without a share. Instead a [`Mempool`] whose buffers are not all back when it is
//!   dropped is handed to the [`Eal`], which frees it when they are, or else leaves it (and DPDK) in place for good.
//! - A [`PortQueue`] exists once per queue, can be sent to another thread but not shared, and keeps its port from
//!   being stopped, so the packet path needs no lock and no check.

mod check;
mod clock;
mod device;
mod driver;
mod eal;
mod error;
mod idle;
mod interface;
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
#[cfg(test)]
mod tests;

pub use clock::{hz, now};
pub use eal::{Eal, EalOptions, Memory, version};
pub use error::Error;
pub use idle::{Sleeper, Waiter};
pub use io::EthIo;
pub use lcore::{Lcore, Worker, allowed_cpus, pin_to};
pub use mbuf::{HEADROOM, Mbuf};
pub use mempool::Mempool;
pub use port::{EthPort, FlowControl, LinkState, PortConfig, PortStats};
pub use queue::PortQueue;
pub use ring::RingLink;
