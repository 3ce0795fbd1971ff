//! The ingress half of a poll: it receives one burst of each port in turn, in rounds, while there are more frames and
//! time.

use super::round_start::RoundStart;
use super::rx_queues::Conditions;
use super::shed::{Lateness, PortBacklog, Shedder};
use super::shed_frames::Shed;
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::dataplane::telemetry::log::RefusedFrame;
use crate::io::{Burst, Packet, Ports};
use crate::mutant::{self, Mutant};
use crate::plan::drops::DropReason;
use crate::sets::{CLASSES, LEAST_BURST, PortSet};
use crate::units::Ticks;

/// A burst that was received from `port`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakenBurst {
    pub port: usize,
    /// Whether it was full, so that more frames may wait.
    pub is_full: bool,
    /// Whether it was full, and the last that the limit per poll allows the port.
    pub is_last: bool,
}

/// The ports still to be polled: each once in a round, even those with few frames in the last round.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PollRound {
    /// Ports that are still to be polled in this round, and those after them.
    pub left: PortSet,
    pub later: PortSet,
    /// Whether it is the first round of the poll.
    pub is_first: bool,
    /// Ports that may be polled in a further round: their frames of full bursts are below the limit.
    pub again: PortSet,
    /// Ports among these whose burst was full, so that more frames may wait.
    pub more: PortSet,
}

/// Frames of a poll: processed, and received but not yet processed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollFrames {
    pub moved: usize,
    pub pending: usize,
}

impl PollRound {
    /// Ports that the round has not polled.
    #[inline]
    pub fn unvisited(&self) -> PortSet {
        self.left | self.later
    }
}

impl Port {
    /// Receives a burst from the queues of the port, which has the number `port`, that may be polled. An lcore that
    /// sheds receives no more lossy frames than may pass.
    #[inline(never)]
    fn receive_queues<I: Ports>(
        &mut self,
        io: &mut I,
        port: usize,
        burst: &mut Burst<I::Pkt>,
        round: &PollRound,
        shedder: &mut Shedder,
        now: Ticks,
    ) {
        let is_late = shedder.is_on();
        if round.is_first {
            self.rx_queues.begin_poll(if is_late { shedder.most_passed(port) } else { usize::MAX });
        }
        let conditions = Conditions { xoff: self.pfc.xoff(), is_late };
        self.rx_queues.receive(io, port, now, conditions, burst);
        if is_late && self.rx_queues.is_cut() {
            shedder.leave();
        }
    }
}

impl<P: Packet> Pipeline<P> {
    /// Sheds the excess frames of `burst` of `port`. Shed frames do not count towards the port's limit per poll.
    /// Returns whether the port has reached that limit.
    #[inline(never)]
    pub(crate) fn shed_burst<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        port: usize,
        is_full: bool,
        burst: &mut Burst<P>,
        round: &mut PollRound,
    ) -> bool {
        let shed = self.shed(io, port, burst);
        let state = &mut self.ports[port];
        state.taken = state.taken.saturating_sub(if is_full { shed as u32 } else { 0 });
        let may_more = state.may_take_more() || self.shedder.is_timed();
        round.again |= PortSet::only_if(may_more, port);
        round.more |= PortSet::only_if(is_full && may_more, port);
        !may_more
    }

    /// The ports that this poll visits.
    #[inline]
    pub(crate) fn visited<I: Ports<Pkt = P>>(&self, io: &I) -> PortSet {
        if I::KNOWS_FILLED && !self.shedder.is_on() { self.own & (self.alert | io.filled()) } else { self.own }
    }

    /// A round of `ports`.
    #[inline]
    pub(crate) fn round_of(&mut self, ports: PortSet) -> PollRound {
        if !self.shedder.turns_rounds() {
            return PollRound { left: ports, ..PollRound::default() };
        }
        let left = self.shedder.first_ports(ports);
        PollRound { left, later: ports - left, ..PollRound::default() }
    }

    /// Ends the alert of `port`, which had no frames, if a poll has nothing else to do there.
    fn calm(&mut self, port: usize, round: &PollRound, now: Ticks) {
        let state = &self.ports[port];
        if round.is_first && !state.rx_queues.is_managed() && state.is_at_rest(true, now) {
            self.alert.remove(port);
        }
    }

    /// Receives the next burst of the round; `None` at the end of the round. An empty burst is returned only if its
    /// port has other work: a PFC frame that is due, or a backlog that may have ended. Always inlined: a call would
    /// cost every poll of a port its registers.
    #[inline(always)]
    pub(crate) fn take<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        round: &mut PollRound,
        burst: &mut Burst<P>,
        now: Ticks,
    ) -> Option<TakenBurst> {
        loop {
            let port = match round.left.pop_lowest() {
                Some(port) => port,
                None if round.later.is_empty() => return None,
                None => {
                    round.left = std::mem::take(&mut round.later);
                    continue;
                }
            };
            let state = &mut self.ports[port];
            if round.is_first {
                state.taken = 0;
                if state.pfc.start_pauses(now) {
                    self.joint.tell_pauses(self.lcore, port, &state.pfc);
                }
            }
            let full = if state.rx_queues.is_managed() {
                state.receive_queues(io, port, burst, round, &mut self.shedder, now);
                LEAST_BURST
            } else {
                let most = self.burst_size.frames();
                io.rx(port, most, burst);
                most
            };
            if burst.is_empty() && state.pfc.due(now).is_none() && !state.backlog.is_watching() {
                round.again.insert(port);
                if I::KNOWS_FILLED {
                    self.calm(port, round, now);
                }
                continue;
            }
            let is_full = burst.len() >= full;
            // A burst that drained the ring does not count towards the port's limit.
            state.taken += if is_full { full as u32 } else { 0 };
            let may_more = state.may_take_more() || self.shedder.is_timed();
            round.again |= PortSet::only_if(may_more, port);
            round.more |= PortSet::only_if(is_full && may_more, port);
            return Some(TakenBurst { port, is_full, is_last: is_full && !may_more });
        }
    }

    /// Whether a timed poll that began at `now` and has had `frames` has time for another burst. The headroom formula
    /// assumes a poll gap, so the poll must have sent all within three quarters of it. Without this bound, a core that
    /// is too slow for its links would poll the later, the more it received.
    #[inline(never)]
    pub(crate) fn has_time<I: Ports<Pkt = P>>(&self, io: &mut I, frames: PollFrames, now: Ticks) -> bool {
        let PollFrames { moved, pending } = frames;
        let Some(time) = io.time() else { return true };
        let (elapsed, latest) = (time.since(now), self.latest());
        let began = self.round_start.if_began_at(now);
        let frames = moved - began.moved;
        if self.shedder.is_on() {
            let unsent = frames - (self.shedder.shed_frames() - began.shed);
            // Further bursts are received too. As many of their frames cannot be shed as until now.
            let further = (pending + 2 * self.burst_size.frames()) * self.shedder.other_frames() / moved.max(1);
            return elapsed + self.shedder.owed_ticks(unsent + further) <= latest;
        }
        // With one more burst at the same pace, all frames must be received and sent. Those of earlier rounds are sent,
        // and frames that had waited in queues too. Others take twice the time in which they were received.
        let handled = began.moved.max(began.moved.midpoint(began.sent));
        let (ticks, of) = if began.moved > 0 { (began.ticks, handled) } else { (2 * elapsed, frames + pending) };
        let all = moved + pending + self.burst_size.frames();
        ticks * all as u64 <= latest * of as u64 && elapsed <= latest
    }

    /// Receives the next burst of the round, unless the poll, which has processed `moved` frames and received `pending`
    /// further ones, has no time for it. Ports that it does not visit then remain in `round`.
    #[inline]
    pub(crate) fn take_in_time<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        round: &mut PollRound,
        burst: &mut Burst<P>,
        frames: PollFrames,
        now: Ticks,
    ) -> Option<TakenBurst> {
        let PollFrames { moved, pending } = frames;
        let is_measured = moved > 0 && moved + pending >= LEAST_BURST;
        if is_measured && self.shedder.is_timed() && !self.has_time(io, frames, now) {
            return None;
        }
        self.take(io, round, burst, now)
    }

    /// Begins a further round of a poll that began at `now` and has received `moved` frames: sends these first, while
    /// they are in the cache. Returns the round and the frames sent; `None`: there is no time for it.
    #[inline(never)]
    pub(crate) fn next_round<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        round: &PollRound,
        moved: usize,
        now: Ticks,
    ) -> Option<(PollRound, usize)> {
        if !self.shedder.is_timed() {
            return Some((self.round_of(round.again), 0));
        }
        if !self.has_time(io, PollFrames { moved, pending: 0 }, now) {
            return None;
        }
        if self.congestion.is_some() {
            // Congestion points bound their messages by poll.
            return Some((self.round_of(round.again), 0));
        }
        let (mut sent, more) = self.transmit_once(io, now);
        let began = self.round_start.if_began_at(now);
        let received = moved - began.moved;
        if sent < received && !more.is_empty() {
            // The bursts of a port count MTU-sized frames, and small ones may be far more.
            sent += self.transmit_further(io, more, received - sent, now);
        }
        let ticks = io.time().map_or(0, |time| time.since(now));
        let shed = self.shedder.shed_frames();
        self.round_start = RoundStart { poll: now, ticks, moved, shed, sent: began.sent + sent };
        Some((self.round_of(round.again), sent))
    }

    /// Ends a poll that has no time for the rest of `round` or for another one. Any frame left is a backlog, because
    /// the headroom formula assumes a poll that receives all that it may. Ports that it did not visit still send their
    /// due PFC frames, and the next poll begins behind the port `last`, which it visited last.
    #[cold]
    pub(crate) fn cut_short<I: Ports<Pkt = P>>(&mut self, io: &mut I, round: &PollRound, last: usize, now: Ticks) {
        let (unvisited, mut is_skipping) = (round.unvisited(), false);
        for port in (round.more | unvisited).iter() {
            if round.is_first && unvisited.contains(port) {
                self.skip(port, now);
            }
            let left = self.left(io, port);
            is_skipping |= unvisited.contains(port) && left != Some(0);
            if !self.ports[port].rx_queues.keeps_frames() {
                self.judge_left(io, port, left, 1, now);
            }
            self.send_pfc(io, port, now);
        }
        // Whether empty ports are visited too makes no difference.
        self.shedder.cut(is_skipping.then_some(last + 1));
    }

    /// Begins the poll of `port`, from which this poll receives nothing.
    fn skip(&mut self, port: usize, now: Ticks) {
        let state = &mut self.ports[port];
        state.rx_queues.skip_poll();
        if state.pfc.start_pauses(now) {
            self.tell_pauses(port);
        }
    }

    /// Frames left in the receive ring of `port`; `None` if its device cannot count them. Lossy frames in queues of
    /// their own do not count, nor do lossless ones that came after their queues were drained in this poll.
    fn left<I: Ports<Pkt = P>>(&self, io: &mut I, port: usize) -> Option<usize> {
        let queues = &self.ports[port].rx_queues;
        if queues.is_drained() { Some(0) } else { io.backlog(port, queues.backlogged()) }
    }

    /// Evaluates the backlog of `port`: frames left in the receive ring count as buffer occupancy too. Beyond a mark
    /// they make the port's lossless groups XOFF until the ring is drained.
    #[cold]
    pub(crate) fn judge_backlog<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, is_drained: bool, now: Ticks) {
        if self.ports[port].rx_queues.keeps_frames() {
            return;
        }
        // The last of several queues may be asked for few frames, so a short burst does not show that all are empty.
        let is_drained = is_drained && !self.ports[port].rx_queues.is_managed();
        let left = if is_drained { Some(0) } else { self.left(io, port) };
        self.judge_left(io, port, left, u32::MAX, now);
    }

    /// Evaluates the frames `left` in the receive ring of `port`, and sends XOFF or XON if the state changed. `most`
    /// frames are a backlog even if the mark is higher.
    fn judge_left<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, left: Option<usize>, most: u32, now: Ticks) {
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        if self.pauses.judge_backlog(port, state, left, most, counters, now) {
            self.update_pfc(port);
            self.send_pfc(io, port, now);
        }
    }

    /// Sheds the excess frames of `burst` of `port`. Returns the number of frames shed; no other stage sees them.
    fn shed<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, burst: &mut Burst<P>) -> usize {
        if mutant::is(Mutant::ShedsOnlyWhereHeld) && !self.pauses.backlogged.contains(port) {
            return 0;
        }
        let classifier = &self.ports[port].classifier;
        let (frames, sums) = self.shedder.choose(port, classifier, burst);
        if !frames.is_empty() {
            self.telemetry.gauges_dirty.insert(port);
            if self.ports[port].rx_queues.is_managed() {
                self.ports[port].rx_queues.remove(frames);
            }
            self.count_shed(port, &sums);
            if self.mirror.wants_dropped(DropReason::Shed) {
                self.copy_shed(burst, port, frames, sums.map(Shed::frames));
            }
            io.shed(burst, frames);
        }
        frames.len()
    }

    /// Counts the frames shed at `port`, by class, and logs them for `why-dropped`. Their destination was not read.
    fn count_shed(&mut self, port: usize, sums: &[Shed; CLASSES]) {
        for (class, sum) in sums.iter().enumerate().filter(|(_, sum)| !sum.is_empty()) {
            let counters = &self.telemetry.counters.ports[port];
            counters.rx_frames[class].add(sum.frames());
            counters.rx_bytes[class].add(sum.bytes().0);
            counters.drops[class][DropReason::Shed as usize].add(sum.frames());
            let group = self.ports[port].classifier.of_class(class).desc.group();
            self.log_drop(port, RefusedFrame::shed(port, class as u8, group), DropReason::Shed);
        }
    }

    /// Decides whether the poll that has begun sheds, and how many lossy frames it forwards then.
    #[inline]
    pub(crate) fn begin_shedding<I: Ports<Pkt = P>>(&mut self, io: &mut I) {
        if self.shedder.must_plan() || !self.pauses.backlogged.is_empty() {
            let backlog = |port: usize| {
                let Port { backlog, rx_queues, .. } = &self.ports[port];
                PortBacklog { port, backlog, rings: rx_queues.backlogged().len() }
            };
            let lateness = Lateness::from_backlogs(self.pauses.backlogged.iter().map(backlog));
            self.shedder.plan(self.own, io.time().is_some(), lateness, self.now);
        }
    }
}
