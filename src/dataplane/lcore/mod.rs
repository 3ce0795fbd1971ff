//! The loop of an lcore: it reads the clock, polls all its ports once, and then reads the requests of the control
//! thread.

pub mod idle;
mod lags;
pub(crate) mod live_config;
mod rest;
mod shutdown;

use std::sync::Arc;

use super::pipeline::Pipeline;
use crate::dataplane::egress::joint::JointPorts;
use crate::dataplane::handoff::fdb_view::{FdbWindow, Showing};
use crate::dataplane::handoff::mailbox::Receiver;
use crate::dataplane::ingress::scratch::Scratch;
use crate::dataplane::lcore::idle::Resting;
use crate::dataplane::lcore::lags::LagControl;
use crate::dataplane::lcore::live_config::LiveConfig;
use crate::dataplane::lcore::shutdown::Shutdown;
use crate::dataplane::telemetry::counters::GAP_BUCKETS;
use crate::forward::LagState;
use crate::io::Ports;
use crate::route::RouteTable;
use crate::sets::{MAX_PORTS, PortSet};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::units::{Nanos, Ticks};

/// Limit on the time for which a stop waits for real peers, which may continue to send: one second divided by this.
const DRAIN_PARTS: u64 = 2;
/// Limits in seconds of a stop with companions, whose frames come to an end. The first is for the whole drain, the
/// second for the time without any frame.
const DRAIN_SECONDS: u64 = 30;
const STALL_SECONDS: u64 = 1;
/// Time without frames that counts as drained: one second divided by this.
const QUIET_PARTS: u64 = 100;
/// Limit on the time to send the last XON: one second divided by this.
const XON_PARTS: u64 = 100;

/// Code that an lcore polls together with its switch, at the same instants: virtual hosts. A stall of the switch stalls
/// them too, so that a machine with few cores measures the switch and not its scheduler.
pub trait Companion {
    /// Receives frames, and sends those that are due at `now`.
    fn poll(&mut self, now: Ticks);
    /// Stops sending for good; it continues to receive.
    fn fall_silent(&mut self);
    /// Receives all frames that are left: the switch has ended and sends no more.
    fn finish(&mut self, now: Ticks) {
        self.poll(now);
    }
    /// Whether it neither sends nor measures time from `now`, the instant of its last poll, until `until`. The default
    /// prevents the lcore from resting.
    fn is_silent_until(&self, now: Ticks, until: Ticks) -> bool {
        let _ = (now, until);
        false
    }
}

/// Requests of the control thread to the lcores, which read them once a poll, and the state of their common shutdown.
#[derive(Debug)]
pub struct LcoreControl {
    stop: AtomicBool,
    /// Ports that have a link, as the bits of a [`PortSet`].
    links: AtomicU64,
    /// Ports that forward nothing because of a loop, and all ports of such loops.
    blocked: AtomicU64,
    looped: AtomicU64,
    /// Number of times that each port's link went down. Every lcore sees each of them, even if the link came up again
    /// meanwhile. Otherwise the forwarding databases would differ for a long time.
    flaps: Box<[AtomicU32]>,
    /// The members of link aggregation groups.
    lags: LagControl,
    /// Incremented when a link, a blocked port or a member of a group has changed.
    link_changes: AtomicU64,
    /// Incremented to request that watermarks are cleared.
    watermarks: AtomicU64,
    /// Windows into the lcores' forwarding databases.
    stations: Box<[FdbWindow]>,
    /// Minimum duration of a poll in ticks; see [`LcoreControl::set_delay`].
    delay: AtomicU64,
    /// Whether a companion on its own lcore may still be sending, and whether there is such a companion at all.
    apart: AtomicBool,
    has_apart: bool,
    /// Set when all lcores of the switch have ended.
    dismissed: AtomicBool,
    shutdown: Shutdown,
}

impl LcoreControl {
    /// Creates the requests to `lcores` lcores: none yet.
    ///
    /// # Panics
    /// If `lcores` is zero or above 64, the width of the mask.
    #[must_use]
    pub fn new(lcores: usize) -> Self {
        Self {
            stop: AtomicBool::new(false),
            links: AtomicU64::new(PortSet::ALL.bits()),
            blocked: AtomicU64::new(0),
            looped: AtomicU64::new(0),
            flaps: (0..MAX_PORTS).map(|_| AtomicU32::new(0)).collect(),
            lags: LagControl::new(lcores),
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

    /// Adds a companion on its own lcore ([`run_companion`]).
    #[must_use]
    pub fn with_companion_apart(mut self) -> Self {
        (self.has_apart, self.apart) = (true, AtomicBool::new(true));
        self
    }

    /// Signals that the switch has ended: a companion on its own lcore may end too.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
    }

    /// Stops the switch: virtual hosts stop sending, queues drain, every XOFF is followed by XON, and the loops end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Sets the ports that have a link to `up`. Only one thread at a time may call this.
    pub fn set_links(&self, up: PortSet) {
        let before = PortSet::from_bits(self.links.load(Ordering::Relaxed));
        if before == up {
            return;
        }
        for port in (before - up).iter() {
            self.flaps[port].fetch_add(1, Ordering::Relaxed);
        }
        self.links.store(up.bits(), Ordering::Relaxed);
        self.link_changes.fetch_add(1, Ordering::Release);
    }

    /// Sets the ports that forward nothing because of a loop, and the ports `looped` of these loops. An lcore may see
    /// one change before the other; it forgets stations at each.
    pub fn set_blocked(&self, blocked: PortSet, looped: PortSet) {
        let is_new = |ports: &AtomicU64, new: PortSet| ports.swap(new.bits(), Ordering::Relaxed) != new.bits();
        if is_new(&self.looped, looped) | is_new(&self.blocked, blocked) {
            self.link_changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Sets the state of the members of link aggregation groups. Only one thread at a time may call this.
    pub fn set_lags(&self, state: LagState) {
        if self.lags.set(state) {
            self.link_changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Asks the lcores to note the frames that the members `ports` hold now. Returns the number of the request; `None`
    /// if an lcore has not taken the one before.
    pub fn request_drain(&self, ports: PortSet) -> Option<u64> {
        let number = self.lags.request_drain(ports);
        self.link_changes.fetch_add(1, Ordering::Release);
        number
    }

    /// Whether all frames have left `ports` that were noted for request `number`. A negative answer makes the lcores
    /// look again.
    pub fn is_drained(&self, number: u64, ports: PortSet) -> bool {
        let is_drained = self.lags.is_drained(number, ports);
        if !is_drained {
            self.link_changes.fetch_add(1, Ordering::Release);
        }
        is_drained
    }

    /// Says that lcore `lcore` has noted the frames of request `number`, and that some wait at the members `pending`.
    pub(crate) fn answer_drain(&self, lcore: usize, number: u64, pending: PortSet) {
        self.lags.answer(lcore, number, pending);
    }

    /// Number of times that the link of `port` went down.
    #[must_use]
    pub fn flaps(&self, port: usize) -> u32 {
        self.flaps[port].load(Ordering::Relaxed)
    }

    /// Ports that have a link.
    #[must_use]
    pub fn links(&self) -> PortSet {
        PortSet::from_bits(self.links.load(Ordering::Relaxed))
    }

    /// Ends the shutdown for lcore `number`, which will not start or has panicked: the others must not wait for it.
    pub fn give_up(&self, number: usize) {
        self.shutdown.give_up(number);
    }

    /// Sets a minimum duration for each poll, for lcores that start from now on, until they drain. It simulates a core
    /// that is too slow for its load.
    pub fn set_delay(&self, ticks: u64) {
        self.delay.store(ticks, Ordering::Relaxed);
    }

    /// Windows into the forwarding databases, by lcore.
    #[must_use]
    pub fn stations(&self) -> &[FdbWindow] {
        &self.stations
    }

    /// Requests that all watermarks are set to the present values.
    pub fn clear_watermarks(&self) {
        self.watermarks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls `companion` on its own lcore until it is dismissed. After the order to stop it sends no more, and continues to
/// receive while the switch drains.
#[must_use]
pub fn run_companion<C: Companion>(mut companion: C, control: &LcoreControl, clock: impl Fn() -> Ticks) -> C {
    while !control.stop.load(Ordering::Relaxed) {
        companion.poll(clock());
    }
    companion.fall_silent();
    // Stored after the companion's last frame is in the link, so that an lcore that sees it and polls once more finds
    // the frame.
    control.apart.store(false, Ordering::Release);
    while !control.dismissed.load(Ordering::Relaxed) {
        companion.poll(clock());
    }
    companion.finish(clock());
    companion
}

/// Everything that one lcore owns while it runs, and returns when it ends.
pub struct Work<I: Ports, C: Companion> {
    /// The switch.
    pub pipeline: Pipeline<I::Pkt>,
    /// Scratch memory of a poll. Boxed, because this struct is moved between threads.
    pub scratch: Box<Scratch<I::Pkt>>,
    /// The ports of the switch.
    pub io: I,
    /// The companion that is polled together with the switch.
    pub companion: Option<C>,
    /// The requests of the control thread.
    pub control: Arc<LcoreControl>,
    /// Clock ticks per second.
    pub hz: u64,
    /// Rests while no frames come; `None`: it polls without a pause.
    pub resting: Option<Resting<I>>,
    /// Source of new settings; `None`: the settings never change.
    pub live_config: Option<Receiver<LiveConfig>>,
    /// Source of routing tables; `None`: the switch only bridges.
    pub route_tables: Option<Receiver<Arc<RouteTable>>>,
}

impl<I: Ports, C: Companion> Work<I, C> {
    /// Runs until ordered to stop. Each turn reads `clock` once for its poll.
    #[must_use]
    pub fn run(mut self, clock: impl Fn() -> Ticks) -> Self {
        let joint = (self.pipeline.joint.clone(), self.pipeline.own);
        let number = self.pipeline.number();
        let mut present = Presence { control: self.control.clone(), number, joint, is_over: false };
        let mut links = SeenLinks::default();
        let mut watermarks = 0;
        let mut showing = Showing::default();
        let delay = self.control.delay.load(Ordering::Relaxed);
        let mut resting = self.resting.take();
        // Before the first frame, because a frame to a port without a link is lost.
        self.follow_links(&mut links, clock());
        self.pipeline.announce_all();
        while !self.control.stop.load(Ordering::Relaxed) {
            let now = clock();
            let moved = self.poll(now);
            while delay > 0 && clock().since(now) < delay {
                std::hint::spin_loop();
            }
            if self.control.link_changes.load(Ordering::Acquire) != links.changes {
                self.follow_links(&mut links, now);
            }
            let clear = self.control.watermarks.load(Ordering::Relaxed);
            if clear != watermarks {
                self.pipeline.clear_watermarks();
                self.pipeline.telemetry.counters.lcores[self.pipeline.lcore].rest_overshoot_highest_ns.set(0);
                watermarks = clear;
            }
            if let Some(receiver) = &mut self.live_config {
                receiver.receive(|live_config| self.pipeline.apply(live_config));
            }
            if let Some(receiver) = &mut self.route_tables {
                receiver.receive(|table| self.pipeline.set_routes(table));
            }
            let asked = self.control.stations[self.pipeline.lcore].asked();
            if asked != showing.shown {
                let (fdb, own) = (&self.pipeline.forwarder.fdb, self.pipeline.own);
                self.control.stations[self.pipeline.lcore].show(&mut showing, asked, fdb, own);
            }
            // After the requests: one that is made during the rest waits until the lcore wakes.
            match &mut resting {
                Some(resting) if moved > 0 => resting.idle.busy(),
                Some(resting) => self.rest(resting, now, &clock),
                None => {}
            }
        }
        self.drain(&clock);
        self.shutdown_handshake(&clock);
        present.is_over = true;
        self
    }

    /// Passes the link state to the pipeline: every link that went down, even if only for a moment, and those that are
    /// up.
    #[cold]
    fn follow_links(&mut self, links: &mut SeenLinks, now: Ticks) {
        links.changes = self.control.link_changes.load(Ordering::Acquire);
        let up = PortSet::from_bits(self.control.links.load(Ordering::Relaxed));
        if let Some(state) = self.control.lags.state() {
            self.pipeline.set_lags(state);
        }
        for port in self.pipeline.all_ports().iter() {
            let flaps = self.control.flaps[port].load(Ordering::Relaxed);
            if std::mem::replace(&mut links.flaps[port], flaps) != flaps {
                self.pipeline.set_link(port, false, now);
            }
            self.pipeline.set_link(port, up.contains(port), now);
        }
        // Last, because it looks at the members.
        let ports = |ports: &AtomicU64| PortSet::from_bits(ports.load(Ordering::Relaxed));
        self.pipeline.set_blocked(ports(&self.control.blocked), ports(&self.control.looped));
        let asked = self.control.lags.asked();
        if links.drain != asked.number && self.pipeline.note_members(asked.ports) {
            links.drain = asked.number;
        }
        if links.drain == asked.number {
            let pending = self.pipeline.undrained_members();
            self.control.answer_drain(self.pipeline.number(), asked.number, pending);
        }
    }

    /// Rests after the poll at `now`, which moved no frame, if that has lasted for long enough and nothing is pending.
    #[cold]
    fn rest(&mut self, resting: &mut Resting<I>, now: Ticks, clock: &impl Fn() -> Ticks) {
        let idle = &mut resting.idle;
        if !idle.is_due(now) {
            return;
        }
        let until = idle.until(now);
        let is_silent = self.companion.as_ref().is_none_or(|companion| companion.is_silent_until(now, until));
        if !is_silent || self.io.is_busy(until) || !self.pipeline.may_rest(&mut self.io, now) {
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

    /// Counts a rest that began at `start`, was due to end at `until` and ended at `end`.
    fn count_rest(&self, start: Ticks, until: Ticks, end: Ticks) {
        let (clock, counters) =
            (&self.pipeline.telemetry.clock, &self.pipeline.telemetry.counters.lcores[self.pipeline.lcore]);
        let Nanos(overshoot) = clock.nanos(end.since(until));
        counters.rests.add(1);
        counters.rested_ns.add(clock.nanos(end.since(start)).0);
        counters.rest_overshoot[(64 - overshoot.leading_zeros() as usize).min(GAP_BUCKETS - 1)].add(1);
        counters.rest_overshoot_sum_ns.add(overshoot);
        counters.rest_overshoot_highest_ns.raise(overshoot);
    }

    #[inline]
    fn poll(&mut self, now: Ticks) -> usize {
        let moved = self.pipeline.poll(&mut self.io, &mut self.scratch, now);
        if let Some(companion) = &mut self.companion {
            companion.poll(now);
        }
        moved
    }

    /// Sends the queued frames until all lcores are empty. Silent companions send no more, so all frames leave as fast
    /// as the ports allow. Real peers may continue to send, so then the time has a bound.
    fn drain(&mut self, clock: &impl Fn() -> Ticks) {
        // The control plane opens none from now on.
        self.pipeline.open_members();
        if let Some(companion) = &mut self.companion {
            companion.fall_silent();
        }
        let has_companion = self.companion.is_some() || self.control.has_apart;
        let (longest, stall) = if has_companion {
            (self.hz * DRAIN_SECONDS, self.hz * STALL_SECONDS)
        } else {
            (self.hz / DRAIN_PARTS, self.hz / DRAIN_PARTS)
        };
        let start = clock();
        let mut moved_at = start;
        loop {
            let now = clock();
            // A companion on its own lcore may not have seen the order yet.
            if self.control.apart.load(Ordering::Acquire) | (self.poll(now) > 0) {
                moved_at = now;
            }
            let still = now.since(moved_at);
            // Even if nothing is queued, frames may be on their way from a companion or from another lcore.
            let at_once = !has_companion && self.control.stations.len() == 1;
            // The faults end first, so that virtual hosts and peers receive the frames that faults hold.
            let is_settled = self.io.settle();
            let is_quiet = is_settled && self.pipeline.held_frames() == 0 && (at_once || still > self.hz / QUIET_PARTS);
            let all_quiet = self.control.shutdown.set_quiet(self.pipeline.number(), is_quiet);
            // An lcore that has nothing to move waits for the others, which may still move frames.
            let is_stuck = still > stall && !is_quiet;
            if all_quiet || is_stuck || now.since(start) > longest {
                // An lcore that gives up must not make the others wait.
                self.control.shutdown.set_quiet(self.pipeline.number(), true);
                return;
            }
        }
    }

    /// Sends XON for every XOFF. It ends when no lcore holds a frame, or has one on its way to another.
    fn shutdown_handshake(&mut self, clock: &impl Fn() -> Ticks) {
        let (control, start) = (self.control.clone(), clock());
        let (mut emptying, mut alone_since) = (control.shutdown.drained(), None);
        loop {
            let now = clock();
            let (done, all_emptied) = emptying.round(|| {
                let done = self.pipeline.shutdown(&mut self.io, now);
                if let Some(companion) = &mut self.companion {
                    companion.poll(now);
                }
                done
            });
            // Only the wait for other lcores is long, because they may have to drain first. A port that takes no XON is
            // given up soon.
            let alone = all_emptied.then(|| *alone_since.get_or_insert(now));
            let is_over = alone.is_some_and(|since| done || now.since(since) > self.hz / XON_PARTS);
            if is_over || now.since(start) > self.hz * (DRAIN_SECONDS + 1) {
                return;
            }
        }
    }
}

/// The link state that the loop has already passed to the pipeline.
struct SeenLinks {
    changes: u64,
    flaps: [u32; MAX_PORTS],
    /// The last request to note the frames of members.
    drain: u64,
}

impl Default for SeenLinks {
    fn default() -> Self {
        Self { changes: 0, flaps: [0; MAX_PORTS], drain: 0 }
    }
}

/// Releases the other lcores from waiting if this lcore panics.
struct Presence {
    control: Arc<LcoreControl>,
    number: usize,
    /// Its joint ports, by which the others must send nothing that a pause may stop.
    joint: (JointPorts, PortSet),
    is_over: bool,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if !self.is_over {
            self.joint.0.leave(self.number, self.joint.1);
            self.control.give_up(self.number);
        }
    }
}
