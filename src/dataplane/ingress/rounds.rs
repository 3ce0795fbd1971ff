//! The ingress half of a poll: it receives one burst of each port in turn, in rounds, while there are more frames and
//! time.

use super::rx_queues::Conditions;
use super::shed::{PollLoad, Shed, Shedder};
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::dataplane::telemetry::drops::DropReason;
use crate::dataplane::telemetry::log::RefusedFrame;
use crate::io::{Burst, Packet, Ports};
use crate::mutant::{self, Mutant};
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
    /// Ports that are still to be polled in this round.
    pub left: PortSet,
    /// Whether it is the first round of the poll.
    pub is_first: bool,
    /// Ports that may be polled in a further round: their frames of full bursts are below the limit.
    pub again: PortSet,
    /// Ports among these whose burst was full, so that more frames may wait.
    pub more: PortSet,
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
        (round, shedder): (&PollRound, &mut Shedder),
        now: Ticks,
    ) {
        let is_late = shedder.is_on();
        if round.is_first {
            self.rx_queues.begin_poll(if is_late { shedder.most_passed() } else { usize::MAX });
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
        (port, is_full): (usize, bool),
        burst: &mut Burst<P>,
        round: &mut PollRound,
    ) -> bool {
        let shed = self.shed(io, port, burst);
        let state = &mut self.ports[port];
        state.taken = state.taken.saturating_sub(if is_full { shed as u32 } else { 0 });
        self.shedder.take(state.taken, state.most_frames());
        let may_more = state.may_take_more();
        round.again |= PortSet::only_if(may_more, port);
        round.more |= PortSet::only_if(is_full && may_more, port);
        !may_more
    }

    /// The ports that this poll visits.
    #[inline]
    pub(crate) fn visited<I: Ports<Pkt = P>>(&self, io: &I) -> PortSet {
        if I::KNOWS_FILLED && !self.shedder.is_on() { self.own & (self.alert | io.filled()) } else { self.own }
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
            let port = round.left.pop_lowest()?;
            let state = &mut self.ports[port];
            if round.is_first {
                state.taken = 0;
                if state.pfc.start_pauses(now) {
                    self.tell_pauses(port);
                }
            }
            let state = &mut self.ports[port];
            let full = if state.rx_queues.is_managed() {
                state.receive_queues(io, port, burst, (round, &mut self.shedder), now);
                LEAST_BURST
            } else {
                let most = self.burst_size.frames();
                io.rx(port, most, burst);
                most
            };
            if burst.is_empty() && state.pfc.due(now).is_none() && !state.backlog.is_watching() {
                debug_assert!(state.may_take_more(), "an empty burst counts nothing towards the limit");
                round.again.insert(port);
                if I::KNOWS_FILLED {
                    self.calm(port, round, now);
                }
                continue;
            }
            let is_full = burst.len() >= full;
            // A burst that drained the ring does not count towards the port's limit.
            state.taken += if is_full { full as u32 } else { 0 };
            let may_more = state.may_take_more();
            round.again |= PortSet::only_if(may_more, port);
            round.more |= PortSet::only_if(is_full && may_more, port);
            return Some(TakenBurst { port, is_full, is_last: is_full && !may_more });
        }
    }

    /// Whether a poll that began at `now` and has had `rounds` rounds has time for another of equal length. Receiving
    /// may take half of the poll gap in the headroom formula, because sending takes as long. Without this bound, a core
    /// that is too slow for its links would poll the later, the more it received.
    #[inline(never)]
    pub(crate) fn has_time<I: Ports<Pkt = P>>(&self, io: &mut I, rounds: u64, now: Ticks) -> bool {
        let Some(time) = io.time() else { return true };
        // With one more round at the same pace, `rounds + 1` rounds must fit.
        time.since(now) * (rounds + 1) <= self.telemetry.clock.half_gap() * rounds
    }

    /// Ends a poll that has no time for another round although `ports` have more frames. Any frame left is a backlog,
    /// because the headroom formula assumes a poll that receives all that it may.
    #[cold]
    pub(crate) fn cut_short<I: Ports<Pkt = P>>(&mut self, io: &mut I, ports: PortSet, now: Ticks) {
        for port in ports.iter() {
            if self.ports[port].rx_queues.keeps_frames() {
                continue;
            }
            let left = self.left(io, port);
            self.judge_left(io, port, left, 1, now);
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
        if self.pauses.judge_backlog((port, state), (left, most), counters, now) {
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
                self.copy_shed(burst, port, (frames, sums.map(Shed::frames)));
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

    /// Adapts the shedder to the poll that began at `now` and has received.
    #[inline]
    pub(crate) fn end_shedding<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        if self.shedder.is_on() {
            self.adapt_shedding(io, now);
        } else if !self.pauses.backlogged.is_empty() {
            self.shed_if_stalled();
        }
    }

    /// Adapts the allowance of lossy frames. A poll is slow if receiving took more than three quarters of its time.
    #[inline(never)]
    fn adapt_shedding<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        let latest = self.telemetry.clock.half_gap() - self.telemetry.clock.half_gap() / 4;
        let is_slow = io.time().is_some_and(|time| time.since(now) > latest);
        self.shedder.adapt(PollLoad { is_late: !self.pauses.backlogged.is_empty(), is_slow });
    }

    /// Begins to shed if the backlog of some port does not shrink.
    #[cold]
    fn shed_if_stalled(&mut self) {
        if self.pauses.backlogged.iter().any(|port| self.ports[port].backlog.is_stalled()) {
            self.shedder.start();
        }
    }
}
