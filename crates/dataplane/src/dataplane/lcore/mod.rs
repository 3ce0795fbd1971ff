//! The loop of an lcore: it reads the clock, polls all its ports once, and then reads the requests of the control
//! thread.

mod clearing;
pub(crate) mod division;
pub mod idle;
pub(crate) mod live_config;
mod rest;
mod taken_out;

use std::sync::Arc;

use super::pipeline::Pipeline;
use crate::dataplane::egress::joint::JointPorts;
use crate::dataplane::ingress::scratch::Scratch;
use crate::dataplane::lcore::clearing::Clearing;
use crate::dataplane::lcore::idle::Resting;
use crate::dataplane::lcore::live_config::LiveConfig;
use crate::io::Ports;
use crate::plan::counters::GAP_BUCKETS;
use crate::plan::fdb_view::Showing;
use crate::plan::mailbox::Receiver;
use crate::plan::{Companion, LcoreControl};
use crate::route::RouteTable;
use crate::sets::{MAX_PORTS, PortSet};
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

/// Exchanges devices of ports.
pub type Exchange<I> = Box<dyn FnMut(&mut I) + Send>;

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
    /// Exchanges devices of ports that are out, when settings come; `None`: no port gets another one.
    pub exchange: Option<Exchange<I>>,
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
        let (mut showing, mut clearing) = (Showing::default(), Clearing::default());
        let delay = self.control.delay_ticks();
        let mut resting = self.resting.take();
        // Before the first frame, because a frame to a port without a link is lost.
        self.follow_links(&mut links, clock());
        self.pipeline.announce_all();
        while !self.control.is_stopped() {
            let now = clock();
            let moved = self.poll(now);
            while delay > 0 && clock().since(now) < delay {
                std::hint::spin_loop();
            }
            if self.control.link_changes() != links.changes {
                self.follow_links(&mut links, now);
            }
            let clear = self.control.watermark_clears();
            if clear != watermarks {
                self.pipeline.clear_watermarks();
                self.pipeline.telemetry.counters.lcores[self.pipeline.lcore].rest_overshoot_highest_ns.set(0);
                watermarks = clear;
            }
            if let Some(receiver) = &mut self.live_config {
                receiver.receive(|live_config| {
                    self.pipeline.resume_before_shut(&mut self.io, live_config, now);
                    self.pipeline.apply(live_config);
                    if let Some(exchange) = &mut self.exchange {
                        exchange(&mut self.io);
                    }
                });
            }
            if let Some(receiver) = &mut self.route_tables {
                receiver.receive(|table| self.pipeline.set_routes(table));
            }
            let asked = self.control.stations()[self.pipeline.lcore].asked();
            if asked != showing.shown {
                let (fdb, own) = (&self.pipeline.forwarder.fdb, self.pipeline.own);
                self.control.stations()[self.pipeline.lcore].show(&mut showing, asked, fdb, own);
            }
            let asked = self.control.station_clears();
            let is_clearing = asked != clearing.done;
            if is_clearing {
                let (lcore, own) = (self.pipeline.lcore, self.pipeline.own);
                clearing.proceed(&self.control, asked, lcore, &mut self.pipeline.forwarder.fdb, own);
            }
            // After the requests: one that is made during the rest waits until the lcore wakes.
            match &mut resting {
                Some(resting) if moved > 0 || is_clearing => resting.idle.busy(),
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
        links.changes = self.control.link_changes();
        let up = self.control.device_links();
        if let Some(state) = self.control.lag_state() {
            self.pipeline.set_lags(state);
        }
        for port in self.pipeline.all_ports().iter() {
            let flaps = self.control.flaps(port);
            if std::mem::replace(&mut links.flaps[port], flaps) != flaps {
                self.pipeline.set_link(port, false, now);
            }
            self.pipeline.set_link(port, up.contains(port), now);
        }
        // Last, because it looks at the members.
        self.pipeline.set_blocked(self.control.blocked(), self.control.looped());
        let asked = self.control.drain_request();
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
        let has_companion = self.companion.is_some() || self.control.has_companion_apart();
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
            if self.control.may_companion_send() | (self.poll(now) > 0) {
                moved_at = now;
            }
            let still = now.since(moved_at);
            // Even if nothing is queued, frames may be on their way from a companion or from another lcore.
            let at_once = !has_companion && self.control.stations().len() == 1;
            // The faults end first, so that virtual hosts and peers receive the frames that faults hold.
            let is_settled = self.io.settle();
            let is_quiet = is_settled && self.pipeline.held_frames() == 0 && (at_once || still > self.hz / QUIET_PARTS);
            let all_quiet = self.control.shutdown().set_quiet(self.pipeline.number(), is_quiet);
            // An lcore that has nothing to move waits for the others, which may still move frames.
            let is_stuck = still > stall && !is_quiet;
            if all_quiet || is_stuck || now.since(start) > longest {
                // An lcore that gives up must not make the others wait.
                self.control.shutdown().set_quiet(self.pipeline.number(), true);
                return;
            }
        }
    }

    /// Sends XON for every XOFF. It ends when no lcore holds a frame, or has one on its way to another.
    fn shutdown_handshake(&mut self, clock: &impl Fn() -> Ticks) {
        let (control, start) = (self.control.clone(), clock());
        let (mut emptying, mut alone_since) = (control.shutdown().drained(), None);
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
