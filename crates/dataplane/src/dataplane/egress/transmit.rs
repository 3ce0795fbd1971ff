//! The egress half of a poll: each port by which the lcore sends has its bursts, as long as it may and there is time.

use super::{Offered, Sender};
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::io::{Packet, Ports};
use crate::plan::counters::PortCounters;
use crate::sets::{LEAST_BURST, PortSet};
use crate::units::Ticks;

/// Frames of a port that one poll discards when a queue must be emptied: they take the time of a few bursts.
const DISCARDED: usize = 4 * LEAST_BURST;

/// The work of a poll at one port.
pub(crate) struct Sent {
    pub frames: usize,
    /// Whether its bursts are used up and frames still wait.
    pub has_more: bool,
}

impl<P: Packet> Pipeline<P> {
    /// Runs the watchdogs that are due, and discards and sends at each port with frames. Returns the frames sent.
    #[inline]
    pub(crate) fn transmit_all<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> usize {
        if self.pauses.watch_at <= now {
            self.watch_all(now);
        }
        if self.egress.waiting.is_empty() {
            return 0;
        }
        let (moved, more) = self.transmit_once(io, now);
        if more.is_empty() { moved } else { moved + self.transmit_more(io, more, now) }
    }

    /// Discards and sends at each port with frames. Returns the frames sent, and the ports that may have more.
    #[inline]
    pub(crate) fn transmit_once<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> (usize, PortSet) {
        let (mut moved, mut more) = (0, PortSet::EMPTY);
        for port in (self.egress.waiting - self.egress.closed).iter() {
            if !self.ports[port].discarding.is_empty() {
                self.run_discards(io, port, DISCARDED);
            }
            if self.ports[port].waiting.is_empty() {
                self.egress.waiting.remove(port);
                continue;
            }
            let sent = self.transmit_bursts(io, port, now);
            moved += sent.frames;
            more |= PortSet::only_if(sent.has_more, port);
        }
        (moved, more)
    }

    /// Runs the watchdogs of the ports whose checks are due.
    #[inline(never)]
    fn watch_all(&mut self, now: Ticks) {
        let mut earliest = Ticks(u64::MAX);
        for port in self.sends.iter() {
            if self.ports[port].watch(port, &self.telemetry.counters, now) {
                self.links.refusing.set(port, self.ports[port].is_refusing());
                self.alert.insert(port);
                self.tell_pauses(port);
            }
            earliest = earliest.min(self.ports[port].pfc.next_check());
        }
        self.pauses.watch_at = earliest;
    }

    /// Sends the frames that `port` may send now, in at most as many bursts as hold the frames that a poll may receive
    /// from it.
    #[inline]
    fn transmit_bursts<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) -> Sent {
        let (mut frames, most) = (0, self.ports[port].most_frames() as usize + self.burst_size.sent_beyond());
        while frames < most {
            let sent = self.transmit(io, port, now);
            frames += sent;
            if sent < self.egress.burst {
                return Sent { frames, has_more: false };
            }
            // Each lcore has time for the ports that it owns, unless it is overloaded: each of them then sends a burst
            // after this. Joint ports may be far more.
            let has_backlog = self.shedder.is_on() || !self.pauses.backlogged.is_empty();
            let is_overloaded = has_backlog && self.shedder.is_timed();
            if (is_overloaded || !self.own.contains(port)) && self.is_late(io, now) {
                break;
            }
        }
        Sent { frames, has_more: !self.ports[port].waiting.is_empty() }
    }

    /// Ticks after the beginning of a poll until which it may send: three quarters of the gap, since receiving may have
    /// taken half.
    #[inline]
    pub(crate) fn latest(&self) -> u64 {
        self.telemetry.clock.half_gap() * 3 / 2
    }

    /// Whether the poll that began at `now` has used three quarters of the poll gap. Without a poll gap or a clock it
    /// never has.
    fn is_late<I: Ports<Pkt = P>>(&self, io: &mut I, now: Ticks) -> bool {
        let latest = self.latest();
        latest > 0 && io.time().is_some_and(|time| time.since(now) > latest)
    }

    /// Sends further bursts of the ports that have `more`, in rounds. The burst limit assumes MTU-sized frames, so a
    /// port of small frames can send far more in a poll gap. A round begins if the poll would end within three quarters
    /// of the gap. Without a clock there are no further rounds.
    #[inline(never)]
    fn transmit_more<I: Ports<Pkt = P>>(&mut self, io: &mut I, mut more: PortSet, now: Ticks) -> usize {
        let Some(start) = io.time() else { return 0 };
        let (mut moved, mut rounds, mut time) = (0, 0, start);
        let latest = self.latest();
        while !more.is_empty() && time.since(now) * rounds.max(1) + time.since(start) <= latest * rounds.max(1) {
            moved += self.transmit_round(io, &mut more, now);
            rounds += 1;
            time = io.time().unwrap_or(time);
        }
        moved
    }

    /// Sends a burst of each port that has `more` in turn, until `most` frames are sent or none has more.
    pub(crate) fn transmit_further<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        mut more: PortSet,
        most: usize,
        now: Ticks,
    ) -> usize {
        let mut moved = 0;
        while moved < most && !more.is_empty() {
            moved += self.transmit_round(io, &mut more, now);
        }
        moved
    }

    /// Sends a burst of each port that has `more`. Those that have no more leave the set.
    #[inline]
    fn transmit_round<I: Ports<Pkt = P>>(&mut self, io: &mut I, more: &mut PortSet, now: Ticks) -> usize {
        let mut moved = 0;
        for port in more.iter() {
            let sent = self.transmit(io, port, now);
            moved += sent;
            *more -= PortSet::only_if(sent < self.egress.burst, port);
        }
        moved
    }

    /// Sends a burst of port `number`. Returns the frames that the device took.
    #[inline]
    pub(crate) fn transmit<I: Ports<Pkt = P>>(&mut self, io: &mut I, number: usize, now: Ticks) -> usize {
        let port: &mut Port = &mut self.ports[number];
        if port.waiting.is_empty() {
            return 0;
        }
        let counters: &PortCounters = self.telemetry.written(number);
        let from = Sender { number, port, counters, mirror: &mut self.mirror };
        let Offered { taken, is_refused } = self.egress.transmit(io, from, &mut self.buffer, &self.queue_rule, now);
        if is_refused {
            self.links.note_refusal(number, &mut self.ports[number], counters, now);
        }
        if taken > 0 || is_refused {
            self.telemetry.gauges_dirty.insert(number);
        }
        taken
    }

    /// Discards up to `most` of the frames of `port` that are scheduled for discard.
    #[cold]
    pub(crate) fn run_discards<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, most: usize) {
        let Self { ports, egress, buffer, telemetry, trash, mirror, now, .. } = self;
        egress.run_discards(port, &mut ports[port], buffer, most, |packet, desc, reason| {
            if mirror.wants_dropped(reason) {
                mirror.copy_discarded(packet.bytes(), port, desc, reason, *now);
            }
            telemetry.count_drop(port, Some(desc.class()), reason);
            trash.add(io, packet);
        });
        telemetry.gauges_dirty.insert(port);
    }
}
