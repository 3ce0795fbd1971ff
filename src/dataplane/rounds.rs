//! What a poll receives: a burst of each port in turn, in rounds, as long as there is more and time for it.

use super::drops::DropReason;
use super::log::RefusedFrame;
use super::pipeline::Pipeline;
use super::scratch::Scratch;
use super::shed::{self, PollLoad, Shed};
use crate::mutant::{self, Mutant};
use crate::packet::{Burst, Packet, Ports};
use crate::sets::{BURST, CLASSES, PortSet};
use crate::units::Ticks;

/// A burst of `port` that was taken.
#[derive(Debug, Clone, Copy)]
struct Turn {
    port: usize,
    /// It was full, and the last that its poll gap lets the port have.
    is_last: bool,
}

/// Who is asked for a burst next: each port once in a round, those too that had little in the last one.
#[derive(Debug, Default, Clone, Copy)]
struct Turns {
    /// Ports that are still to be asked in this round.
    left: PortSet,
    /// It is the poll's first.
    is_first: bool,
    /// Ports that may be asked once more: those that have had no more full bursts than they may.
    again: PortSet,
    /// Those of them that have more.
    more: PortSet,
}

impl<P: Packet> Pipeline<P> {
    /// Takes one burst of each own port in turn, and tells its peer after each what it must be told; in rounds, as long as
    /// some port has more and its poll gap lets it. No peer waits longer than a burst of each port takes until it hears XOFF.
    /// The next burst is taken before work on one begins: what its headers wait for is then no time lost.
    #[inline]
    pub(super) fn receive_all<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> usize {
        // Out of self, so that the stages may use the rest of it.
        let Some(mut scratch) = self.scratch.take() else { return 0 };
        let Scratch { bursts: [burst, ahead], metas } = &mut *scratch;
        let (mut burst, mut ahead) = (burst, ahead);
        self.shedder.begin(self.own);
        let mut turns = Turns { left: self.own, is_first: true, ..Turns::default() };
        let (mut turn, mut moved, mut rounds) = (self.take(io, &mut turns, burst, now), 0, 1);
        while let Some(Turn { port, mut is_last }) = turn {
            let mut next = self.take(io, &mut turns, ahead, now);
            let received = burst.len();
            let is_drained = received < BURST;
            if received > 0 {
                if self.shedder.is_on() {
                    is_last = self.shed_burst(io, port, burst, &mut turns) && is_last;
                }
                io.begin(port);
                if !burst.is_empty() {
                    self.receive(io, port, burst, metas, now);
                }
                moved += received;
            }
            self.publish_handoffs();
            // At once: what a peer still sends until it hears this goes into the headroom.
            self.send_pfc(io, port, now);
            if is_last || is_drained && self.ports[port].backlog.is_watching() {
                self.judge_backlog(io, port, is_drained, now);
            }
            // None is taken ahead from one round to the next, so that all of this one is done when the time is looked at.
            if next.is_none() && !turns.more.is_empty() {
                if rounds == shed::MOST_ROUNDS || !self.has_time(io, rounds, now) {
                    self.cut_short(io, turns.more, now);
                    break;
                }
                turns = Turns { left: turns.again, ..Turns::default() };
                rounds += 1;
                next = self.take(io, &mut turns, ahead, now);
            }
            std::mem::swap(&mut burst, &mut ahead);
            turn = next;
        }
        self.scratch = Some(scratch);
        self.end_shedding(io, now);
        moved
    }

    /// Sheds what `burst` of `port` has too much of. Frames that are shed take nothing from what the port may have in this
    /// poll; returns whether it has had that.
    #[inline(never)]
    fn shed_burst<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        port: usize,
        burst: &mut Burst<P>,
        turns: &mut Turns,
    ) -> bool {
        let is_full = burst.is_full();
        let shed = self.shed(io, port, burst);
        let state = &mut self.ports[port];
        state.taken = state.taken.saturating_sub(if is_full { shed as u32 } else { 0 });
        self.shedder.take(state.taken, state.most_frames());
        let may_more = state.may_take_more();
        turns.again |= PortSet::only_if(may_more, port);
        turns.more |= PortSet::only_if(is_full && may_more, port);
        !may_more
    }

    /// Takes the next burst of the round, if there is one; an empty one may be among them.
    #[inline]
    fn take<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        turns: &mut Turns,
        burst: &mut Burst<P>,
        now: Ticks,
    ) -> Option<Turn> {
        let port = turns.left.pop_lowest()?;
        let state = &mut self.ports[port];
        if turns.is_first {
            state.start_pauses(now);
            state.taken = 0;
        }
        io.rx(port, burst);
        let is_full = burst.is_full();
        // What came to a port that was drained takes nothing from what it may have.
        state.taken += if is_full { BURST as u32 } else { 0 };
        let may_more = state.may_take_more();
        turns.again |= PortSet::only_if(may_more, port);
        turns.more |= PortSet::only_if(is_full && may_more, port);
        Some(Turn { port, is_last: is_full && !may_more })
    }

    /// Whether a poll that began at `now` and has had `rounds` may have another one like those: until it has worked for half of
    /// the poll gap that headroom was told, since to send takes as long as to receive. A core that is too slow for all that its
    /// wires bring would come later the more it took.
    #[inline(never)]
    fn has_time<I: Ports<Pkt = P>>(&self, io: &mut I, rounds: u64, now: Ticks) -> bool {
        let Some(time) = io.time() else { return true };
        // One more round makes `rounds + 1` of them in that time by `rounds`.
        time.since(now) * (rounds + 1) <= self.telemetry.clock.half_gap() * rounds
    }

    /// The poll has no time for another round, though `ports` have more: what is left is a backlog, however little. Headroom
    /// counts on a poll that takes all that it may.
    #[cold]
    fn cut_short<I: Ports<Pkt = P>>(&mut self, io: &mut I, ports: PortSet, now: Ticks) {
        for port in ports.iter() {
            let left = io.backlog(port);
            self.judge_left(io, port, left, 1, now);
        }
    }

    /// What the core did not get done is buffer occupancy too: frames left in the receive ring beyond a mark make the
    /// port's lossless groups XOFF until it is drained.
    #[cold]
    fn judge_backlog<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, is_drained: bool, now: Ticks) {
        let left = if is_drained { Some(0) } else { io.backlog(port) };
        self.judge_left(io, port, left, u32::MAX, now);
    }

    /// Judges the frames `left` in the receive ring of `port`, and tells the peer if it has to stop or may go on.
    fn judge_left<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, left: Option<usize>, most: u32, now: Ticks) {
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        if self.pauses.judge_backlog((port, state), (left, most), counters, now) {
            self.update_pfc(port);
            self.send_pfc(io, port, now);
        }
    }

    /// Sheds what `burst` of `port` has too much of. Returns the number of frames shed; no other stage sees them.
    fn shed<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, burst: &mut Burst<P>) -> usize {
        if mutant::is(Mutant::ShedsOnlyWhereHeld) && !self.pauses.backlogged.contains(port) {
            return 0;
        }
        let classifier = &self.ports[port].classifier;
        let (frames, sums) = self.shedder.choose(port, classifier, burst);
        if !frames.is_empty() {
            self.telemetry.gauges_dirty.insert(port);
            self.count_shed(port, &sums);
            io.shed(burst, frames);
        }
        frames.len()
    }

    /// Counts the frames shed at `port`, by class, and logs them for `why-dropped`. Their destination was not read.
    fn count_shed(&mut self, port: usize, sums: &[Shed; CLASSES]) {
        for (class, sum) in sums.iter().enumerate().filter(|(_, sum)| !sum.is_empty()) {
            let counters = &self.telemetry.counters.ports[port];
            counters.rx_frames[class].add(sum.frames());
            counters.rx_bytes[class].add(sum.bytes());
            counters.drops[class][DropReason::Shed as usize].add(sum.frames());
            let group = self.ports[port].classifier.of_class(class).desc.group();
            let frame = RefusedFrame { ports: [port as u8; 2], class: class as u8, group, cells: 0, queue: None };
            self.log_drop(port, frame, DropReason::Shed);
        }
    }

    /// Adapts the shedder to the poll that began at `now` and has received.
    #[inline]
    fn end_shedding<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        if self.shedder.is_on() {
            self.adapt_shedding(io, now);
        } else if !self.pauses.backlogged.is_empty() {
            self.shed_if_stalled();
        }
    }

    #[inline(never)]
    fn adapt_shedding<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        let latest = self.telemetry.clock.half_gap() - self.telemetry.clock.half_gap() / 4;
        let is_slow = io.time().is_some_and(|time| time.since(now) > latest);
        self.shedder.adapt(PollLoad { is_late: !self.pauses.backlogged.is_empty(), is_slow });
    }

    #[cold]
    fn shed_if_stalled(&mut self) {
        if self.pauses.backlogged.iter().any(|port| self.ports[port].backlog.is_stalled()) {
            self.shedder.start();
        }
    }
}
