//! The loop that an lcore runs: one instant, one poll of everything, then a look at its orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::pipeline::{Pipeline, bits};
use crate::packet::Ports;
use crate::units::Ticks;

/// Longest time that stopping waits for real peers, which may go on sending, in parts of a second.
const DRAIN_PARTS: u64 = 2;
/// Longest time that it waits for companions' frames, which come to an end, in seconds; and how long for the next one.
const DRAIN_SECONDS: u64 = 30;
const STALL_SECONDS: u64 = 1;
/// Quiet that counts as drained, in parts of a second.
const QUIET_PARTS: u64 = 100;
/// Longest time to get the last XON out, in parts of a second.
const FAREWELL_PARTS: u64 = 100;

/// What an lcore polls beside its switch, at the same instants: whatever stalls the switch stalls it too, so that a
/// machine with few cores shows the switch and not its scheduler.
pub trait Companion {
    /// Receives and sends what is due at `now`.
    fn poll(&mut self, now: Ticks);
    /// From now on it only receives.
    fn fall_silent(&mut self);
}

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
pub struct Work<I: Ports, C: Companion> {
    /// The switch.
    pub pipeline: Pipeline<I::Pkt>,
    /// Its ports.
    pub io: I,
    /// Whoever is polled beside it.
    pub companion: Option<C>,
    /// Orders.
    pub orders: Arc<Orders>,
    /// Ticks a second.
    pub hz: u64,
}

impl<I: Ports, C: Companion> Work<I, C> {
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
        if let Some(companion) = &mut self.companion {
            companion.poll(now);
        }
        moved
    }

    /// Lets what is queued leave. Silent companions send no more, so all of it does, as fast as ports let it; real peers
    /// may go on sending, so there the time has a bound.
    fn drain(&mut self, clock: &impl Fn() -> Ticks) {
        if let Some(companion) = &mut self.companion {
            companion.fall_silent();
        }
        let (longest, stall) = match self.companion {
            Some(_) => (self.hz * DRAIN_SECONDS, self.hz * STALL_SECONDS),
            None => (self.hz / DRAIN_PARTS, self.hz / DRAIN_PARTS),
        };
        let start = clock();
        let mut moved_at = start;
        loop {
            let now = clock();
            if self.poll(now) > 0 {
                moved_at = now;
            }
            let still = now.since(moved_at);
            // Frames may be on their way from a companion when nothing is queued.
            let quiet = self.pipeline.held_frames() == 0 && (self.companion.is_none() || still > self.hz / QUIET_PARTS);
            if quiet || still > stall || now.since(start) > longest {
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
            if let Some(companion) = &mut self.companion {
                companion.poll(now);
            }
            if done || now.since(start) > self.hz / FAREWELL_PARTS {
                return;
            }
        }
    }
}
