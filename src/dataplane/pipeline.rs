//! The life of a packet, in order. Each stage is a function over a burst; this file reads like the picture in
//! docs/architecture.md.

use std::sync::Arc;

use super::buffer::Buffer;
use super::counters::Counters;
use super::dispatch::Trash;
use super::drops::DropReason;
use super::egress::Egress;
use super::forwarder::Forwarder;
use super::gauges::Telemetry;
use super::links::Links;
use super::mesh::Mesh;
use super::port::Port;
use super::queue::Queue;
use super::rewrite::Rewriter;
use super::rounds::{PauseState, Scratch};
use super::shed::Shedder;
use super::spec::SwitchSpec;
use crate::forward::fdb::{Learned, Station};
use crate::mmu::{Lease, QueueAdmission};
use crate::mutant::{self, Mutant};
use crate::packet::{Burst, Packet, Ports};
use crate::qos::shaper::MIN_FRAME;
use crate::sets::{CLASSES, MAX_PORTS, PortSet};
use crate::units::Ticks;
use crate::wire::MacAddr;
use crate::wire::mac_control::PfcFrame;

/// The switch as one lcore runs it: its ports, and the owners of the stages' state.
#[derive(Debug)]
pub struct Pipeline<P> {
    /// Its number among the dataplane lcores.
    pub(super) lcore: usize,
    /// The ports that it owns.
    pub(super) own: PortSet,
    /// All ports. Of those of other lcores only the settings are read.
    pub(super) ports: Box<[Port]>,
    pub(super) links: Links,
    pub(super) forwarder: Forwarder,
    pub(super) rewriter: Rewriter,
    pub(super) buffer: Buffer,
    /// Whether a queue takes a frame.
    pub(super) queue_rule: QueueAdmission,
    pub(super) egress: Egress<P>,
    pub(super) mesh: Mesh<P>,
    pub(super) pauses: PauseState,
    /// Drops lossy frames when the lcore has more frames than time.
    pub(super) shedder: Shedder,
    pub(super) telemetry: Telemetry,
    /// Dropped frames whose buffers go back together.
    pub(super) trash: Trash<P>,
    /// Scratch memory of a poll; `None` only while a poll receives. Boxed: moving it would cost hundreds of instructions per
    /// idle poll.
    pub(super) scratch: Option<Box<Scratch<P>>>,
}

impl<P: Packet> Pipeline<P> {
    /// A switch by `spec` on a clock of `hz` ticks a second, which one lcore runs: all links are up, all queues empty.
    ///
    /// # Panics
    /// As [`Pipeline::fleet`], and on a spec for several lcores.
    #[must_use]
    pub fn new(spec: &SwitchSpec, counters: Arc<Counters>, hz: u64, seed: u32) -> Self {
        let mut fleet = Self::fleet(spec, &counters, hz, seed);
        assert!(fleet.len() == 1, "a switch of several lcores is a fleet");
        fleet.remove(0)
    }

    /// The same switch in as many parts as `spec` has lcores, in their order: each is for one thread.
    ///
    /// # Panics
    /// On a spec that the configuration would have refused: too many ports, an lcore that is not there, maps beyond
    /// eight classes.
    #[must_use]
    pub fn fleet(spec: &SwitchSpec, counters: &Arc<Counters>, hz: u64, seed: u32) -> Vec<Self> {
        let (ports, lcores) = (spec.ports.len(), usize::from(spec.lcores));
        assert!(ports <= MAX_PORTS && ports == counters.ports.len(), "as many counters as ports, and no more than fit");
        assert!(lcores > 0 && lcores == counters.lcores.len(), "as many counters as lcores, and one at least");
        assert!(spec.ports.iter().all(|port| usize::from(port.lcore) < lcores), "a port of an lcore that is not there");
        assert!(spec.classes.is_valid(), "a class map beyond eight classes");
        let parts = Mesh::fleet(spec).into_iter().zip(Forwarder::fleet(spec, hz)).zip(Buffer::fleet(spec)).enumerate();
        parts
            .map(|(lcore, ((mesh, forwarder), buffer))| {
                let own = owned_by(lcore, spec);
                // Each lcore needs its own seed, or all would mark the same frames.
                let seed = seed.wrapping_add((lcore as u32).wrapping_mul(0x9e37_79b9));
                Self {
                    lcore,
                    own,
                    ports: spec.ports.iter().map(|port| Port::new(port, spec, hz)).collect(),
                    links: Links::new(ports),
                    forwarder,
                    rewriter: Rewriter::new(spec),
                    buffer,
                    queue_rule: QueueAdmission::new(spec.queues.map(|queue| queue.admission())),
                    egress: Egress::new(spec, seed),
                    mesh,
                    pauses: PauseState::default(),
                    shedder: Shedder::default(),
                    telemetry: Telemetry::new(counters.clone(), own, hz, spec.poll_gap),
                    trash: Trash { frames: Burst::new() },
                    scratch: Some(Box::default()),
                }
            })
            .collect()
    }

    /// One round over the ports of this lcore at the instant `now`, or several while some port has more. Returns the frames
    /// received, taken over and sent.
    pub fn poll<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> usize {
        let received = self.poll_in(io, now);
        self.poll_out(io, now, received)
    }

    /// The first half of a poll: what others have said is heard, what has arrived is received and decided. Apart from the
    /// second for the simulator, in which other lcores poll in between: what is heard here is as old as it can be when the
    /// second half publishes.
    #[inline]
    pub(crate) fn poll_in<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> usize {
        self.forwarder.fdb.set_time(now);
        self.forwarder.apply_fdb_updates(&self.telemetry.counters.lcores[self.lcore]);
        if !mutant::is(Mutant::TallyReadLast) {
            self.collect_releases();
        }
        self.judge_paused(io, now);
        let received = self.receive_all(io, now);
        if mutant::is(Mutant::TallyReadLast) {
            self.collect_releases();
        }
        received
    }

    /// The second half, of the poll that has `received` frames: what others hand over is queued, what may leave is sent,
    /// and what has left is published.
    #[inline]
    pub(crate) fn poll_out<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks, received: usize) -> usize {
        let moved = received + self.accept_handoffs(io) + self.transmit_all(io, now);
        if !self.links.stuck.is_empty() {
            self.look_at_stuck(now);
        }
        self.finish_poll(io, now, moved);
        moved
    }

    /// Lets stuck ports send again whose devices take frames.
    #[cold]
    fn look_at_stuck(&mut self, now: Ticks) {
        for port in self.links.stuck.iter() {
            let counters = &self.telemetry.counters.ports[port];
            let moves = self.links.look_at_stuck((port, &mut self.ports[port]), counters, now);
            self.telemetry.gauges_dirty |= PortSet::only_if(moves, port);
        }
    }

    /// Lets `port` send again if it was stuck.
    pub(super) fn release_stuck(&mut self, port: usize) {
        let counters = &self.telemetry.counters.ports[port];
        let moves = self.links.release_stuck((port, &mut self.ports[port]), counters);
        self.telemetry.gauges_dirty |= PortSet::only_if(moves, port);
    }

    /// The end of a poll: buffers go back, others see what this lcore has done, observers see the gauges.
    #[inline]
    fn finish_poll<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks, moved: usize) {
        self.buffer.releases.publish();
        io.free(&mut self.trash.frames);
        if self.mesh.has_peers() {
            // What an lcore keeps leased is missing to the others when the pool runs low.
            self.buffer.pools.shared.iter_mut().for_each(if moved == 0 { Lease::flush } else { Lease::trim });
        }
        self.telemetry.clock.poll(&self.telemetry.counters.lcores[self.lcore], now, moved);
        if self.telemetry.clock.is_gauge_time() || moved == 0 {
            self.publish_gauges(now);
            self.forwarder.fdb.sweep();
        }
    }

    /// Gives the ledgers the cells that have left since the last poll.
    #[inline]
    fn collect_releases(&mut self) {
        let held = self.buffer.collect_releases(&mut self.ports);
        self.telemetry.gauges_dirty |= held;
    }

    /// Judges every paused group, whether its own packets left or not: the threshold moves with others.
    #[inline]
    fn judge_paused<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        for port in self.pauses.xoff.iter() {
            if self.ports[port].ledger.judge(&self.buffer.pools) {
                self.update_pfc(port);
                self.send_pfc(io, port, now);
            }
        }
    }

    /// What the ledger and the backlog of `port` say of its groups, to who tells the peer.
    #[inline]
    pub(super) fn update_pfc(&mut self, port: usize) {
        let state = &mut self.ports[port];
        let xoff = state.ledger.xoff();
        self.pauses.xoff.set(port, xoff != 0);
        let xoff_told = state.wants_xoff() & state.generated;
        let fresh = xoff_told & !state.generator.xoff();
        state.generator.set_all(xoff_told);
        if fresh != 0 {
            self.log_pauses(port, fresh);
        }
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Sends the PFC frame that is due, past every queue and outside of pacing.
    #[inline]
    pub(super) fn send_pfc<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) {
        if let Some(frame) = self.ports[port].generator.due(now) {
            self.send_pfc_frame(io, port, &frame, now);
        }
    }

    #[inline(never)]
    fn send_pfc_frame<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, frame: &PfcFrame, now: Ticks) {
        let state = &mut self.ports[port];
        if !self.links.up.contains(port) || state.progress.is_closed() && state.generator.xoff() == 0 {
            return;
        }
        // No buffer or no room in the ring: it stays due, and the next poll tries again.
        let Some(packet) = io.make(&frame.emit(state.mac)) else { return };
        let mut one = Burst::new();
        one.push(packet);
        io.tx(port, &mut one);
        if !one.is_empty() {
            io.free(&mut one);
            if state.progress.is_stuck() {
                let counters = &self.telemetry.counters.ports[port];
                self.links.note_refusal((port, &mut self.ports[port]), counters, now);
            }
            return;
        }
        state.generator.sent(frame, now);
        // It has gone past pacing, but not past the wire: what follows makes up for its time, or what lies ahead of the
        // next PFC frame would grow by each.
        state.shaper.charge(MIN_FRAME, now);
        let counters = &self.telemetry.counters.ports[port];
        counters.pfc_tx_frames.add(1);
        for priority in bits(u64::from(frame.enabled)) {
            let xoff = frame.quanta[priority].0 > 0;
            let side = if xoff { &counters.pfc_tx_xoff } else { &counters.pfc_tx_xon };
            side[priority].add(1);
        }
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Buffers that go back at the end of the poll that is under way.
    pub(crate) fn discarded_frames(&self) -> usize {
        self.trash.frames.len()
    }

    /// Forgets the highest figures ever seen: from now on they are what is held now.
    pub fn clear_watermarks(&mut self) {
        for port in self.own.iter() {
            let state = &mut self.ports[port];
            state.ledger.clear_watermarks();
            state.queues.iter_mut().for_each(Queue::clear_watermark);
            self.telemetry.counters.ports[port].backlog_highest_frames.set(0);
        }
        self.buffer.pools.shared.iter_mut().for_each(Lease::clear_watermark);
        self.buffer.pools.headroom.reset_highest();
        let counters = &self.telemetry.counters.lcores[self.lcore];
        counters.handoff_highest_frames.set(0);
        counters.poll_gap_highest_ns.set(0);
        self.telemetry.gauges_dirty |= self.own;
    }

    /// The link of `port` went up or down. Down: what waits for it is dropped, what was learned there is forgotten,
    /// and its peer's pauses end with the peer. Up: the peer hears again what it must not send, and what it may.
    pub fn set_link(&mut self, port: usize, up: bool, now: Ticks) {
        if self.links.up.contains(port) == up {
            return;
        }
        self.links.up.set(port, up);
        self.release_stuck(port);
        self.forwarder.fdb.change();
        if !up {
            self.forwarder.fdb.forget_port(port);
        }
        if !self.own.contains(port) {
            return;
        }
        if up {
            self.announce_pfc(port);
        } else {
            let state = &mut self.ports[port];
            state.timers.clear(now);
            state.arrived = PfcFrame::default();
            state.generator.link_down(now);
            state.schedule_discard(u8::MAX, DropReason::EgressDown);
        }
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Work begins on links that are up already: their peers may have been left paused by a switch that died.
    pub fn greet_all(&mut self) {
        for port in (self.own & self.links.up).iter() {
            self.announce_pfc(port);
        }
    }

    /// With the next PFC frame of `port` its peer hears how each priority is for which PFC is generated.
    fn announce_pfc(&mut self, port: usize) {
        let state = &mut self.ports[port];
        state.generator.repeat(state.generated);
    }

    /// Ends the switch's work: every XOFF is followed by XON, and every buffer goes back. The frames still queued, or on
    /// their way from other lcores, are dropped as `shutdown`. False if a port would not take its XON; calling again tries
    /// again, and takes what other lcores have handed over meanwhile.
    pub fn shutdown<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> bool {
        self.publish_handoffs();
        self.accept_handoffs(io);
        for port in self.own.iter() {
            self.ports[port].schedule_discard(u8::MAX, DropReason::Shutdown);
            self.run_discards(io, port, usize::MAX);
            // Its XON is offered, stuck or not.
            self.release_stuck(port);
            self.ports[port].generator.set_all(0);
            self.send_pfc(io, port, now);
        }
        self.buffer.releases.publish();
        self.collect_releases();
        io.free(&mut self.trash.frames);
        self.telemetry.gauges_dirty |= self.telemetry.running_pauses;
        self.publish_gauges(now);
        (self.own & self.links.up).iter().all(|port| self.ports[port].generator.due(now).is_none())
    }

    /// Tells the forwarding database of a station, as a frame from it would.
    pub fn learn(&mut self, vlan: u16, mac: MacAddr, port: usize, now: Ticks) -> Learned {
        self.forwarder.fdb.set_time(now);
        self.forwarder.learn(Station::new(vlan, mac.to_number()), port)
    }

    /// Its number among the dataplane lcores.
    #[must_use]
    pub fn number(&self) -> usize {
        self.lcore
    }

    /// All ports of the switch.
    #[must_use]
    pub fn all_ports(&self) -> PortSet {
        PortSet::first(self.ports.len())
    }

    /// Cells held, by the ledgers of this lcore's ports: zero in an idle switch.
    #[must_use]
    pub fn held_cells(&self) -> u64 {
        let groups = self.own.iter().flat_map(|port| (0..CLASSES).map(move |group| (port, group)));
        groups.map(|(port, group)| u64::from(self.ports[port].ledger.group(group).held().0)).sum()
    }

    /// Frames that wait in queues.
    #[must_use]
    pub fn held_frames(&self) -> usize {
        self.egress.slab.held() as usize
    }
}

/// The ports that belong to lcore `lcore`, as a mask.
fn owned_by(lcore: usize, spec: &SwitchSpec) -> PortSet {
    (0..spec.ports.len()).filter(|&port| usize::from(spec.ports[port].lcore) == lcore).collect()
}

/// Indices of the bits set in `mask`, lowest first.
#[inline]
pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let bit = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(bit)
    })
}
