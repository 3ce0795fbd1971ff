//! The loop that an lcore runs: one instant, one poll of everything, then a look at its orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::pipeline::{Pipeline, bits};
use crate::hosts::Hosts;
use crate::packet::Ports;
use crate::units::Ticks;

/// Longest time that stopping waits for queues to empty, in parts of a second.
const DRAIN_PARTS: u64 = 2;
/// Quiet that counts as drained, in parts of a second.
const QUIET_PARTS: u64 = 100;
/// Longest time to get the last XON out, in parts of a second.
const FAREWELL_PARTS: u64 = 100;

/// What the control thread wants of an lcore, looked at once a poll.
#[derive(Debug)]
pub struct Orders {
    stop: AtomicBool,
    links: AtomicU64,
}

impl Default for Orders {
    fn default() -> Self {
        Self { stop: AtomicBool::new(false), links: AtomicU64::new(u64::MAX) }
    }
}

impl Orders {
    /// Virtual hosts fall silent, queues drain, every XOFF is followed by XON, and the loop ends.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The ports that have a link, as a mask.
    pub fn set_links(&self, up: u64) {
        self.links.store(up, Ordering::Relaxed);
    }
}

/// Everything that one lcore owns while it runs, and gives back when it ends.
pub struct Work<I: Ports, H: Ports> {
    /// The switch.
    pub pipeline: Pipeline<I::Pkt>,
    /// Its ports.
    pub io: I,
    /// Virtual hosts and their ends of the links. They are polled by the same lcore at the same instant, so that
    /// whatever stalls the switch stalls them too: a machine with few cores then shows the switch, not its scheduler.
    pub hosts: Option<(Hosts, H)>,
    /// Orders.
    pub orders: Arc<Orders>,
    /// Ticks a second.
    pub hz: u64,
}

impl<I: Ports, H: Ports> Work<I, H> {
    /// Runs until ordered to stop. `clock` is read once a poll.
    #[must_use]
    pub fn run(mut self, clock: impl Fn() -> Ticks) -> Self {
        let mut links = u64::MAX;
        while !self.orders.stop.load(Ordering::Relaxed) {
            self.poll(clock());
            let wanted = self.orders.links.load(Ordering::Relaxed);
            if wanted != links {
                for port in bits((wanted ^ links) & self.pipeline.port_mask()) {
                    self.pipeline.set_link(&mut self.io, port, wanted >> port & 1 == 1);
                }
                links = wanted;
            }
        }
        self.drain(&clock);
        self.farewell(&clock);
        self
    }

    #[inline]
    fn poll(&mut self, now: Ticks) -> usize {
        let moved = self.pipeline.poll(&mut self.io, now);
        if let Some((hosts, io)) = &mut self.hosts {
            hosts.poll(io, now);
        }
        moved
    }

    /// Lets what is queued leave. With virtual hosts silent all of it does; real ones may go on sending, so that time
    /// has a bound.
    fn drain(&mut self, clock: &impl Fn() -> Ticks) {
        if let Some((hosts, _)) = &mut self.hosts {
            hosts.stop_sending();
        }
        let start = clock();
        let mut busy = start;
        loop {
            let now = clock();
            if self.poll(now) > 0 || self.pipeline.held_frames() > 0 {
                busy = now;
            }
            let quiet = self.hosts.is_none() && self.pipeline.held_frames() == 0;
            if quiet || now.since(busy) > self.hz / QUIET_PARTS || now.since(start) > self.hz / DRAIN_PARTS {
                return;
            }
        }
    }

    /// The last words: XON for every XOFF.
    fn farewell(&mut self, clock: &impl Fn() -> Ticks) {
        let start = clock();
        loop {
            let now = clock();
            let done = self.pipeline.shutdown(&mut self.io, now);
            if let Some((hosts, io)) = &mut self.hosts {
                hosts.poll(io, now);
            }
            if done || now.since(start) > self.hz / FAREWELL_PARTS {
                return;
            }
        }
    }
}
