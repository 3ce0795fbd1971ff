//! The loop that an lcore runs: one instant, one poll of everything, then a look at its orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

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

/// What the control thread wants of the lcores, looked at once a poll, and how they end together.
#[derive(Debug)]
pub struct Orders {
    stop: AtomicBool,
    links: AtomicU64,
    /// Raised when watermarks are to be cleared.
    watermarks: AtomicU64,
    /// How many lcores there are.
    lcores: usize,
    /// Lcores that have nothing to do while they drain, as a mask.
    quiet: AtomicU64,
    /// Lcores that receive no more: none of them hands over a frame again.
    drained: AtomicUsize,
    /// Lcores that hold nothing, and have said so to the ledgers of the others.
    emptied: AtomicUsize,
}

impl Orders {
    /// For `lcores` lcores.
    ///
    /// # Panics
    /// If these are more than 64, of which a mask is made.
    #[must_use]
    pub fn new(lcores: usize) -> Self {
        assert!((1..=64).contains(&lcores), "a mask of lcores");
        Self {
            stop: AtomicBool::new(false),
            links: AtomicU64::new(u64::MAX),
            watermarks: AtomicU64::new(0),
            lcores,
            quiet: AtomicU64::new(0),
            drained: AtomicUsize::new(0),
            emptied: AtomicUsize::new(0),
        }
    }

    /// Virtual hosts fall silent, queues drain, every XOFF is followed by XON, and the loops end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The ports that have a link, as a mask.
    pub fn set_links(&self, up: u64) {
        self.links.store(up, Ordering::Relaxed);
    }

    /// Watermarks become what is held now.
    pub fn clear_watermarks(&self) {
        self.watermarks.fetch_add(1, Ordering::Relaxed);
    }

    /// Says whether lcore `number` is quiet. True if all are.
    fn quiet(&self, number: usize, is_quiet: bool) -> bool {
        let bit = 1 << number;
        let before = if is_quiet {
            self.quiet.fetch_or(bit, Ordering::Relaxed) | bit
        } else {
            self.quiet.fetch_and(!bit, Ordering::Relaxed) & !bit
        };
        before.count_ones() as usize == self.lcores
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
        let (mut links, mut watermarks) = (u64::MAX, 0);
        while !self.orders.stop.load(Ordering::Relaxed) {
            let now = clock();
            self.poll(now);
            let wanted = self.orders.links.load(Ordering::Relaxed);
            if wanted != links {
                for port in bits((wanted ^ links) & self.pipeline.port_mask()) {
                    self.pipeline.set_link(&mut self.io, port, wanted >> port & 1 == 1, now);
                }
                links = wanted;
            }
            let clear = self.orders.watermarks.load(Ordering::Relaxed);
            if clear != watermarks {
                self.pipeline.clear_watermarks();
                watermarks = clear;
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

    /// Lets what is queued leave, until all lcores have nothing left. Silent companions send no more, so all of it does, as
    /// fast as ports let it; real peers may go on sending, so there the time has a bound.
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
            // Frames may be on their way from a companion, or from another lcore, when nothing is queued.
            let at_once = self.companion.is_none() && self.orders.lcores == 1;
            let is_quiet = self.pipeline.held_frames() == 0 && (at_once || still > self.hz / QUIET_PARTS);
            let all_quiet = self.orders.quiet(self.pipeline.number(), is_quiet);
            // An lcore that has nothing to move waits for the others, which may have.
            let is_stuck = still > stall && !is_quiet;
            if all_quiet || is_stuck || now.since(start) > longest {
                return;
            }
        }
    }

    /// The last words: XON for every XOFF. It ends when no lcore holds a frame, or has one on its way to another.
    fn farewell(&mut self, clock: &impl Fn() -> Ticks) {
        let start = clock();
        self.orders.drained.fetch_add(1, Ordering::AcqRel);
        let (mut has_emptied, mut is_last) = (false, false);
        loop {
            let now = clock();
            // Before what follows: what others have handed over, or released, until then is seen by it.
            let all_drained = self.orders.drained.load(Ordering::Acquire) >= self.orders.lcores;
            let all_emptied = self.orders.emptied.load(Ordering::Acquire) >= self.orders.lcores;
            let done = self.pipeline.shutdown(&mut self.io, now);
            if let Some(companion) = &mut self.companion {
                companion.poll(now);
            }
            if all_drained && !has_emptied {
                self.orders.emptied.fetch_add(1, Ordering::AcqRel);
                has_emptied = true;
            }
            is_last |= done && all_emptied;
            if is_last || now.since(start) > self.patience() {
                return;
            }
        }
    }

    /// How long the farewell may take: other lcores may have to finish their drain first.
    fn patience(&self) -> u64 {
        let alone = self.orders.lcores == 1;
        if alone { self.hz / FAREWELL_PARTS } else { self.hz * (DRAIN_SECONDS + 1) }
    }
}
