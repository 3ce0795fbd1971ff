//! The loop that an lcore runs: one instant, one poll of everything, then a look at its orders.

use std::sync::Arc;

use super::counters::GAP_BUCKETS;
use super::fdb_view::{FdbWindow, Showing};
use super::idle::Resting;
use super::mailbox::Receiver;
use super::pipeline::Pipeline;
use super::shutdown::Shutdown;
use super::tuning::Tuning;
use crate::packet::Ports;
use crate::sets::{MAX_PORTS, PortSet};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
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
    /// Receives all that is left: the switch has ended and sends no more.
    fn finish(&mut self, now: Ticks) {
        self.poll(now);
    }
    /// Whether it does nothing of itself from `now`, when it was polled, until `until`: neither sends nor counts time.
    /// Whoever does not say keeps the lcore from resting.
    fn is_silent_until(&self, now: Ticks, until: Ticks) -> bool {
        let _ = (now, until);
        false
    }
}

/// What the control thread wants of the lcores, looked at once a poll, and how they end together.
#[derive(Debug)]
pub struct Orders {
    stop: AtomicBool,
    links: AtomicU64,
    /// Times that each port's link was seen to go down: every lcore sees each, also one that came up again meanwhile, or
    /// what they know of stations would differ for long.
    flaps: Box<[AtomicU32]>,
    /// Raised when a link has changed.
    link_changes: AtomicU64,
    /// Raised when watermarks are to be cleared.
    watermarks: AtomicU64,
    /// Windows into the lcores' forwarding databases.
    stations: Box<[FdbWindow]>,
    /// Ticks to wait after each poll.
    delay: AtomicU64,
    /// Whether a companion has an lcore of its own, which may still be sending; none means that nobody is.
    apart: AtomicBool,
    has_apart: bool,
    /// Raised when no lcore of the switch runs any more.
    dismissed: AtomicBool,
    shutdown: Shutdown,
}

impl Orders {
    /// For `lcores` lcores.
    ///
    /// # Panics
    /// If these are more than 64, of which a mask is made.
    #[must_use]
    pub fn new(lcores: usize) -> Self {
        Self {
            stop: AtomicBool::new(false),
            links: AtomicU64::new(u64::MAX),
            flaps: (0..MAX_PORTS).map(|_| AtomicU32::new(0)).collect(),
            link_changes: AtomicU64::new(0),
            watermarks: AtomicU64::new(0),
            stations: (0..lcores).map(|_| FdbWindow::default()).collect(),
            delay: AtomicU64::new(0),
            apart: AtomicBool::new(false),
            has_apart: false,
            dismissed: AtomicBool::new(false),
            shutdown: Shutdown::new(lcores),
        }
    }

    /// The same with a companion on an lcore of its own ([`accompany`]).
    #[must_use]
    pub fn with_companion_apart(mut self) -> Self {
        (self.has_apart, self.apart) = (true, AtomicBool::new(true));
        self
    }

    /// The switch has ended: a companion on an lcore of its own may end too.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
    }

    /// Virtual hosts fall silent, queues drain, every XOFF is followed by XON, and the loops end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The ports that have a link, as a mask. One thread at a time may say so.
    pub fn set_links(&self, up: u64) {
        let before = self.links.load(Ordering::Relaxed);
        if before == up {
            return;
        }
        for port in PortSet::from_bits(before & !up).iter() {
            self.flaps[port].fetch_add(1, Ordering::Relaxed);
        }
        self.links.store(up, Ordering::Relaxed);
        self.link_changes.fetch_add(1, Ordering::Release);
    }

    /// Ends the shutdown for lcore `number`, which will not start or has panicked: the others must not wait for it.
    pub fn give_up(&self, number: usize) {
        self.shutdown.give_up(number);
    }

    /// Every lcore that starts from now on waits this long after each poll until it drains: a core that is too slow for its
    /// load, to see what becomes of it.
    pub fn set_delay(&self, ticks: u64) {
        self.delay.store(ticks, Ordering::Relaxed);
    }

    /// By lcore, the window into its forwarding database.
    #[must_use]
    pub fn stations(&self) -> &[FdbWindow] {
        &self.stations
    }

    /// Watermarks become what is held now.
    pub fn clear_watermarks(&self) {
        self.watermarks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls `companion` on an lcore of its own until it is dismissed. Ordered to stop, it falls silent, and receives on while
/// the switch drains.
#[must_use]
pub fn accompany<C: Companion>(mut companion: C, orders: &Orders, clock: impl Fn() -> Ticks) -> C {
    while !orders.stop.load(Ordering::Relaxed) {
        companion.poll(clock());
    }
    companion.fall_silent();
    // After its last frame is in the link, for those who look there once more.
    orders.apart.store(false, Ordering::Release);
    while !orders.dismissed.load(Ordering::Relaxed) {
        companion.poll(clock());
    }
    companion.finish(clock());
    companion
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
    /// What it does when nothing comes; `None`: it polls on.
    pub resting: Option<Resting<I>>,
    /// Where new settings come from; `None`: it goes on as it began.
    pub live_config: Option<Receiver<Tuning>>,
}

impl<I: Ports, C: Companion> Work<I, C> {
    /// Runs until ordered to stop. `clock` is read once a poll.
    #[must_use]
    pub fn run(mut self, clock: impl Fn() -> Ticks) -> Self {
        let mut present = Presence { orders: self.orders.clone(), number: self.pipeline.number(), is_over: false };
        let mut links = Links::default();
        let mut watermarks = 0;
        let mut showing = Showing::default();
        let delay = self.orders.delay.load(Ordering::Relaxed);
        let mut resting = self.resting.take();
        // Before the first frame: what leaves by a port without a link is lost.
        self.follow_links(&mut links, clock());
        self.pipeline.announce_all();
        while !self.orders.stop.load(Ordering::Relaxed) {
            let now = clock();
            let moved = self.poll(now);
            while delay > 0 && clock().since(now) < delay {
                std::hint::spin_loop();
            }
            if self.orders.link_changes.load(Ordering::Acquire) != links.changes {
                self.follow_links(&mut links, now);
            }
            let clear = self.orders.watermarks.load(Ordering::Relaxed);
            if clear != watermarks {
                self.pipeline.clear_watermarks();
                self.pipeline.telemetry.counters.lcores[self.pipeline.lcore].rest_overshoot_highest_ns.set(0);
                watermarks = clear;
            }
            if let Some(receiver) = &mut self.live_config {
                receiver.receive(|tuning| self.pipeline.tune(tuning));
            }
            let asked = self.orders.stations[self.pipeline.lcore].asked();
            if asked != showing.shown {
                let (fdb, own) = (&self.pipeline.forwarder.fdb, self.pipeline.own);
                self.orders.stations[self.pipeline.lcore].show(&mut showing, asked, fdb, own);
            }
            // After the orders: those that are given meanwhile wait until it wakes.
            match &mut resting {
                Some(resting) if moved > 0 => resting.idle.busy(),
                Some(resting) => self.rest(resting, now, &clock),
                None => {}
            }
        }
        self.drain(&clock);
        self.farewell(&clock);
        present.is_over = true;
        self
    }

    /// Tells the switch of the links that went down, if only for a moment, and of those that are up.
    #[cold]
    fn follow_links(&mut self, links: &mut Links, now: Ticks) {
        links.changes = self.orders.link_changes.load(Ordering::Acquire);
        let up = self.orders.links.load(Ordering::Relaxed);
        for port in self.pipeline.all_ports().iter() {
            let flaps = self.orders.flaps[port].load(Ordering::Relaxed);
            if std::mem::replace(&mut links.flaps[port], flaps) != flaps {
                self.pipeline.set_link(port, false, now);
            }
            self.pipeline.set_link(port, up >> port & 1 == 1, now);
        }
    }

    /// Rests after the poll at `now`, which has moved no frame, if that has lasted for long enough and nothing waits.
    #[cold]
    fn rest(&mut self, resting: &mut Resting<I>, now: Ticks, clock: &impl Fn() -> Ticks) {
        let idle = &mut resting.idle;
        if !idle.is_due(now) {
            return;
        }
        let until = idle.until(now);
        let is_silent = self.companion.as_ref().is_none_or(|companion| companion.is_silent_until(now, until));
        if !is_silent || !self.pipeline.may_rest(&mut self.io, now) {
            return idle.busy();
        }
        let start = clock();
        // A poll may take longer than a short rest.
        if start < until {
            (resting.rest)(&self.io, until);
            self.count_rest(start, until, clock());
        }
        idle.rested();
    }

    /// A rest from `start` that was to last until `until` has lasted until `end`.
    fn count_rest(&self, start: Ticks, until: Ticks, end: Ticks) {
        let (clock, counters) =
            (&self.pipeline.telemetry.clock, &self.pipeline.telemetry.counters.lcores[self.pipeline.lcore]);
        let overshoot = clock.nanos(end.since(until));
        counters.rests.add(1);
        counters.rested_ns.add(clock.nanos(end.since(start)));
        counters.rest_overshoot[(64 - overshoot.leading_zeros() as usize).min(GAP_BUCKETS - 1)].add(1);
        counters.rest_overshoot_sum_ns.add(overshoot);
        counters.rest_overshoot_highest_ns.raise(overshoot);
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
        let accompanied = self.companion.is_some() || self.orders.has_apart;
        let (longest, stall) = if accompanied {
            (self.hz * DRAIN_SECONDS, self.hz * STALL_SECONDS)
        } else {
            (self.hz / DRAIN_PARTS, self.hz / DRAIN_PARTS)
        };
        let start = clock();
        let mut moved_at = start;
        loop {
            let now = clock();
            // A companion on an lcore of its own may not have been told yet.
            if self.orders.apart.load(Ordering::Acquire) | (self.poll(now) > 0) {
                moved_at = now;
            }
            let still = now.since(moved_at);
            // Frames may be on their way from a companion, or from another lcore, when nothing is queued.
            let at_once = !accompanied && self.orders.stations.len() == 1;
            let is_quiet = self.pipeline.held_frames() == 0 && (at_once || still > self.hz / QUIET_PARTS);
            let all_quiet = self.orders.shutdown.set_quiet(self.pipeline.number(), is_quiet);
            // An lcore that has nothing to move waits for the others, which may have.
            let is_stuck = still > stall && !is_quiet;
            if all_quiet || is_stuck || now.since(start) > longest {
                // Whoever gives up keeps nobody waiting.
                self.orders.shutdown.set_quiet(self.pipeline.number(), true);
                return;
            }
        }
    }

    /// The last words: XON for every XOFF. It ends when no lcore holds a frame, or has one on its way to another.
    fn farewell(&mut self, clock: &impl Fn() -> Ticks) {
        let (orders, start) = (self.orders.clone(), clock());
        let (mut emptying, mut alone_since) = (orders.shutdown.drained(), None);
        loop {
            let now = clock();
            let (done, all_emptied) = emptying.round(|| {
                let done = self.pipeline.shutdown(&mut self.io, now);
                if let Some(companion) = &mut self.companion {
                    companion.poll(now);
                }
                done
            });
            // Long is only the wait for others, which may have to drain first; a port that takes no XON is given up soon.
            let alone = all_emptied.then(|| *alone_since.get_or_insert(now));
            let is_over = alone.is_some_and(|since| done || now.since(since) > self.hz / FAREWELL_PARTS);
            if is_over || now.since(start) > self.hz * (DRAIN_SECONDS + 1) {
                return;
            }
        }
    }
}

/// What a loop knows of the links.
struct Links {
    changes: u64,
    flaps: [u32; MAX_PORTS],
}

impl Default for Links {
    fn default() -> Self {
        Self { changes: 0, flaps: [0; MAX_PORTS] }
    }
}

/// An lcore that panics must not keep the others waiting.
struct Presence {
    orders: Arc<Orders>,
    number: usize,
    is_over: bool,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if !self.is_over {
            self.orders.give_up(self.number);
        }
    }
}
