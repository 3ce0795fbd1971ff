//! The poll: the life of a packet, in order. docs/architecture.md shows it as a diagram.
//!
//! [`Pipeline::poll_in`] receives and decides, [`Pipeline::poll_out`] sends. Each stage is a method of the owner of its
//! state; this file and `ingress/process.rs` call them. Loops over ports, and branches for refused frames and for other
//! lcores, are in `ingress/rounds.rs`, `ingress/dispatch.rs`, `ingress/lossless.rs`, `handoff/accept.rs` and
//! `egress/transmit.rs`.

use super::egress::links::StuckLook;
use super::frame::notes::IngressBurst;
use super::ingress::rounds::{PollFrames, PollRound, TakenBurst};
use super::ingress::scratch::Scratch;
use super::ingress::shed::MOST_ROUNDS;
use super::pipeline::Pipeline;
use crate::dataplane::telemetry::log::{RefusedFrame, Standing};
use crate::io::{Packet, Ports};
use crate::mmu::Lease;
use crate::mutant::{self, Mutant};
use crate::plan::drops::DropReason;
use crate::sets::ClassSet;
use crate::units::Ticks;
use crate::wire::mac_control::PfcFrame;

impl<P: Packet> Pipeline<P> {
    /// Polls the ports of this lcore at the instant `now`. `scratch` has no content between polls. Returns the number
    /// of frames received, accepted from other lcores and sent.
    pub fn poll<I: Ports<Pkt = P>>(&mut self, io: &mut I, scratch: &mut Scratch<P>, now: Ticks) -> usize {
        let received = self.poll_in(io, scratch, now);
        self.poll_out(io, now, received)
    }

    /// The first half of a poll: maintenance, then ingress. Returns the frames received, and sent between rounds. Other
    /// lcores of the simulator poll between the halves, so that the data they publish is as old as it can be.
    #[inline]
    pub(crate) fn poll_in<I: Ports<Pkt = P>>(&mut self, io: &mut I, scratch: &mut Scratch<P>, now: Ticks) -> usize {
        self.begin(now);
        self.forwarder.apply_fdb_updates(&self.telemetry.counters.lcores[self.lcore]);
        self.hear_joint();
        // Mutants are faults for tests, constant false in the program.
        if !mutant::is(Mutant::TallyReadLast) {
            self.collect_releases();
        }
        if self.abm.is_some() {
            self.measure_drains(now);
        }
        self.resume_peers(io, now);
        let received = self.receive_all(io, scratch, now);
        if mutant::is(Mutant::TallyReadLast) {
            self.collect_releases();
        }
        received
    }

    /// Begins a poll.
    #[inline]
    pub(crate) fn begin(&mut self, now: Ticks) {
        let interval = now.since(self.now);
        self.adapt_burst_size(interval);
        self.shedder.begin(interval);
        // A gap counts if frames moved or waited before it.
        if (self.moved > 0 || !self.egress.waiting.is_empty())
            && let Some(slack) = self.slack.note(interval, now)
        {
            self.set_slack(slack);
        }
        (self.now, self.egress.now) = (now, now);
        self.forwarder.fdb.set_time(now);
    }

    /// Posts frames up to `slack` ticks ahead of the wires from now on.
    #[cold]
    fn set_slack(&mut self, slack: u64) {
        self.sends.iter().for_each(|port| self.ports[port].set_slack(slack));
    }

    /// Measures drain rates and congested queues for ABM.
    #[inline(never)]
    pub(crate) fn measure_drains(&mut self, now: Ticks) {
        let Self { abm: Some(abm), egress, ports, queue_rule, telemetry, .. } = self else { return };
        abm.poll(egress.waiting, ports, queue_rule, &telemetry.counters.ports, now);
    }

    /// Adapts the size of bursts to the poll before, which began `interval` ticks ago.
    #[inline]
    fn adapt_burst_size(&mut self, interval: u64) {
        // Shed frames take less time than others.
        self.burst_size.adapt(self.moved - self.shedder.shed_frames(), interval);
        self.egress.burst = self.burst_size.frames();
    }

    /// Receives one burst of each own port in turn, in rounds, as long as some port has more and its limit allows it.
    /// After each burst it sends the port's due PFC frame, so that XOFF waits at most for one burst of each port. The
    /// next burst is received before the present one is processed: the memory latency of its headers then costs no
    /// time. Ports without frames are polled on the way to it.
    #[inline(never)]
    fn receive_all<I: Ports<Pkt = P>>(&mut self, io: &mut I, scratch: &mut Scratch<P>, now: Ticks) -> usize {
        let Scratch { bursts: [burst, ahead], notes } = scratch;
        let (mut burst, mut ahead) = (burst, ahead);
        self.begin_shedding(io);
        let visited = self.visited(io);
        let mut round = PollRound { is_first: true, ..self.round_of(visited) };
        let (mut taken, mut moved, mut rounds, mut sent) = (self.take(io, &mut round, burst, now), 0, 1, 0);
        while let Some(TakenBurst { port, is_full, mut is_last }) = taken {
            let mut next = self.take_in_time(io, &mut round, ahead, PollFrames { moved, pending: burst.len() }, now);
            let received = burst.len();
            let is_drained = !is_full;
            if received > 0 {
                if self.shedder.is_on() {
                    is_last = self.shed_burst(io, port, is_full, burst, &mut round) && is_last;
                }
                // For recorders: bursts are received one ahead, so `rx` does not show the order of decisions.
                io.begin(port);
                if !burst.is_empty() {
                    self.process(io, &mut IngressBurst { port, frames: burst, notes });
                }
                self.publish_handoffs();
                moved += received;
            }
            // At once, because frames that the peer sends until it obeys go into the headroom.
            self.send_pfc(io, port, now);
            // The ring may hold more than the port may receive in this poll, or its backlog has just been drained.
            if is_last || is_drained && self.ports[port].backlog.is_watching() {
                self.judge_backlog(io, port, is_drained, now);
            }
            // No burst is received ahead across rounds, so that the round is complete when its time is measured.
            let unvisited = round.unvisited();
            if next.is_none() && !(round.more | unvisited).is_empty() {
                let further = if unvisited.is_empty() && (rounds < MOST_ROUNDS || self.shedder.is_timed()) {
                    self.next_round(io, &round, moved, now)
                } else {
                    None
                };
                let Some((further, frames)) = further else {
                    self.cut_short(io, &round, port, now);
                    break;
                };
                (round, rounds, sent) = (further, rounds + 1, sent + frames);
                next = self.take(io, &mut round, ahead, now);
            }
            std::mem::swap(&mut burst, &mut ahead);
            taken = next;
        }
        self.shedder.end(moved);
        moved + sent
    }

    /// The second half of the poll that has moved `before` frames: egress, then publication. Returns the number of all
    /// frames moved.
    #[inline]
    pub(crate) fn poll_out<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks, before: usize) -> usize {
        let accepted = self.accept_handoffs(io) + self.accept_injected(io);
        // Watchdogs that are due. Then, for each port with frames, run_discards and `Egress::transmit`: schedule, mark,
        // tx, release, put_back.
        let (samples, ports) = (self.congestion.is_some(), self.egress.waiting);
        if samples {
            self.sample_all(io, now);
        }
        let sent = self.transmit_all(io, now);
        if samples {
            self.note_ends(ports);
        }
        if !self.links.stuck.is_empty() {
            self.look_at_stuck(io, now);
        }
        let moved = before + accepted + sent;
        self.moved = moved;
        self.tell_joint();
        self.finish_poll(io, now, moved);
        moved
    }

    /// Gives the ledgers the cells that have left since the last poll.
    #[inline]
    pub(crate) fn collect_releases(&mut self) {
        let held = self.buffer.collect_releases::<P>(&mut self.ports);
        self.telemetry.gauges_dirty |= held;
    }

    /// Judges the peers that are paused, and sends XON for each paused group that may resume. Every paused group is
    /// evaluated, because the threshold moves with the pool, no matter which group's cells were released.
    #[inline]
    fn resume_peers<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        for port in self.pauses.told.iter() {
            self.judge_peer(port, now);
        }
        for port in self.pauses.xoff.iter() {
            if self.ports[port].ledger.reevaluate_xoff(&self.buffer.pools) {
                self.update_pfc(port);
                self.send_pfc(io, port, now);
            }
        }
    }

    /// Passes the XOFF state of `port` (buffer and receive backlog) to its PFC.
    #[inline]
    pub(crate) fn update_pfc(&mut self, port: usize) {
        let fresh = self.pauses.update(port, &mut self.ports[port]);
        if !fresh.is_empty() {
            if !self.ports[port].pfc.sends_frames() {
                let stops = &self.telemetry.counters.ports[port].queue_stops;
                fresh.iter().for_each(|priority| stops[priority].add(1));
            }
            self.log_pauses(port, fresh);
        }
        self.alert.insert(port);
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Sends the PFC frame of `port` that is due, past every queue and outside of pacing.
    #[inline]
    pub(crate) fn send_pfc<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) {
        if let Some(frame) = self.ports[port].pfc.due(now) {
            self.send_pfc_frame(io, port, &frame, now);
        }
    }

    /// Sends a PFC frame of `port`. Out of line, because most polls have none.
    #[inline(never)]
    fn send_pfc_frame<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, frame: &PfcFrame, now: Ticks) {
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        self.links.send_pfc(io, port, state, frame, counters, now);
        self.pauses.told.set(port, state.pfc.is_judging());
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Judges whether the peer of `port`, which is paused, has stopped.
    #[inline(never)]
    fn judge_peer(&mut self, port: usize, now: Ticks) {
        let is_told = self.ports[port].judge_peer(&self.telemetry.counters.ports[port], now);
        self.pauses.told.set(port, is_told);
    }

    /// Lets stuck ports whose devices take frames send again.
    #[cold]
    fn look_at_stuck<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        for port in self.links.stuck.iter() {
            let (state, counters) = (&mut self.ports[port], self.telemetry.written(port));
            match self.links.look_at_stuck(port, state, counters, now) {
                StuckLook::Moves => self.telemetry.gauges_dirty.insert(port),
                StuckLook::Probe if self.own.contains(port) => {
                    state.pfc.announce();
                    self.alert.insert(port);
                }
                StuckLook::Probe if state.pfc.generated().is_empty() => {}
                // Only the owner knows the state of the priorities, so this probe has none.
                StuckLook::Probe => self.links.send_pfc(io, port, state, &PfcFrame::default(), counters, now),
                StuckLook::Waits => {}
            }
        }
    }

    /// Ends a poll that `moved` frames: frees buffers, publishes releases and gauges.
    #[inline]
    fn finish_poll<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks, moved: usize) {
        self.buffer.releases.publish();
        io.free(&mut self.trash.frames);
        if self.mesh.has_peers() {
            // Cells that an lcore keeps leased are not available to the others when the pool runs low.
            self.buffer.pools.shared.iter_mut().for_each(if moved == 0 { Lease::flush } else { Lease::trim });
        }
        self.telemetry.clock.poll(&self.telemetry.counters.lcores[self.lcore], now, moved);
        if self.telemetry.clock.is_gauge_time() || moved == 0 {
            self.publish_gauges(now);
            self.forwarder.sweep();
        }
    }

    /// Publishes the gauges of the ports that changed, and of the lcore.
    pub(crate) fn publish_gauges(&mut self, now: Ticks) {
        self.telemetry.publish_ports(&mut self.ports, now);
        let (frames, stations) = (self.egress.slab.held(), self.forwarder.fdb.len());
        self.telemetry.publish_lcore(self.lcore, &self.buffer, frames, stations, now);
        let (fdb, lcore) = (&mut self.forwarder.fdb, &self.telemetry.counters.lcores[self.lcore]);
        for port in fdb.take_changed_shares().iter() {
            lcore.fdb_stations[port].set(u64::from(fdb.stations_of(port)));
            lcore.fdb_evicted[port].set(fdb.evicted_of(port));
        }
    }

    /// Logs that the peer of `port` gets XOFF for `groups`, which were not at XOFF before.
    #[cold]
    fn log_pauses(&mut self, port: usize, groups: ClassSet) {
        let Self { ports, own, buffer, queue_rule, telemetry, .. } = self;
        telemetry.log_pauses(Standing { ports, own: *own, buffer, rule: queue_rule }, port, groups);
    }

    /// Logs that `frame` was refused for `reason`; its drop counts at port `at`.
    #[cold]
    pub(crate) fn log_drop(&mut self, at: usize, frame: RefusedFrame, reason: DropReason) {
        let Self { ports, own, buffer, queue_rule, telemetry, .. } = self;
        telemetry.log_drop(Standing { ports, own: *own, buffer, rule: queue_rule }, at, frame, reason);
    }

    /// Logs that `frame` with these `bytes` was refused for `reason`, and copies it.
    #[cold]
    pub(crate) fn note_refused(&mut self, at: usize, bytes: &[u8], frame: RefusedFrame, reason: DropReason) {
        self.log_drop(at, frame, reason);
        if self.mirror.wants_dropped(reason) {
            self.copy_refused(bytes, frame, reason);
        }
    }
}
