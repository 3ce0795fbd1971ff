//! Dispatch: carries out the forwarding of each frame of a burst. Frames that leave are admitted to the buffer, then
//! enqueued here or handed to the lcore that owns their egress port.

use super::forwarder::IngressContext;
use super::punt::{Punter, RouteContext};
use super::rewrite::BurstDemand;
use crate::dataplane::buffer::Before;
use crate::dataplane::egress::enqueue::{Appended, QueueContext};
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::frame::notes::IngressBurst;
use crate::dataplane::handoff::mesh::HandoffFrame;
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::telemetry::log::{RefusedFrame, RefusingQueue};
use crate::io::{Packet, Ports};
use crate::mmu::Admission;
use crate::plan::drops::DropReason;
use crate::route::ROUTER_PORT;
use crate::sets::PortSet;
use crate::wire::MacAddr;
use crate::wire::loop_probe::LoopProbe;

impl<P: Packet> Pipeline<P> {
    /// Dispatches a burst. `demand` covers the frames that leave by exactly one port.
    ///
    /// Always inline: bridged and routed bursts each have their call.
    #[inline(always)]
    pub(crate) fn dispatch<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        burst: &mut IngressBurst<'_, P>,
        demand: &BurstDemand,
    ) {
        let (port, metas) = (burst.port, &burst.notes.metas);
        // The watchdog drops a priority in both directions: frames that leave by a port, and those that came by it.
        let is_special = demand.floods || !((demand.egresses | PortSet::only(port)) & self.links.refusing).is_empty();
        let is_admitted = !is_special
            && self.buffer.admit_burst::<P>(&mut self.ports, port, self.sends, &self.queue_rule, metas, demand);
        // At once, unless some frame is dropped or consumed, or the use of a queue's reserve must be published.
        if demand.sent.len() == burst.frames.len() && self.buffer.reserves.is_empty() {
            if is_admitted {
                return self.enqueue_burst(io, burst, demand);
            }
            if !is_special && demand.lossy_queues.is_empty() && (demand.egresses - self.sends).is_empty() {
                return self.send_lossless(io, burst, demand);
            }
        }
        for (packet, meta) in burst.frames.drain(..).zip(&burst.notes.metas) {
            match meta.forwarding() {
                Forwarding::Send(egress) if is_admitted => {
                    let handed = HandoffFrame::new(packet, meta, egress, meta.is_lossless());
                    self.place_accepted(io, handed);
                }
                Forwarding::Send(egress) => self.send(io, port, usize::from(egress), packet, meta),
                Forwarding::Flood => self.send_copies(io, port, packet, meta),
                Forwarding::Link => self.take_link_frame(io, port, packet, meta),
                Forwarding::Drop(reason) => self.drop_received(io, packet, port, meta, reason),
                Forwarding::Consumed => self.trash.add(io, packet),
            }
        }
    }

    /// Enqueues or hands over a burst that is admitted as a whole. Always inline, like its caller.
    #[inline(always)]
    pub(crate) fn enqueue_burst<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        burst: &mut IngressBurst<'_, P>,
        demand: &BurstDemand,
    ) {
        if !(demand.egresses - self.sends).is_empty() {
            return self.hand_over_burst(io, burst, demand);
        }
        self.egress.push_all(&mut self.ports, &mut self.buffer, burst.frames, burst.notes, demand);
        self.telemetry.gauges_dirty |= demand.egresses;
    }

    /// Hands over the frames of an admitted burst that leave by ports of other lcores, and enqueues the rest. Not
    /// inlined: bursts that stay on their lcore need the registers.
    #[inline(never)]
    fn hand_over_burst<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        burst: &mut IngressBurst<'_, P>,
        demand: &BurstDemand,
    ) {
        self.egress.expect_room(burst.frames.len());
        let sends = self.sends;
        let mut appended = Appended { frames: 0, egresses: demand.egresses & sends, queues: demand.queues };
        for (packet, meta) in burst.frames.drain(..).zip(&burst.notes.metas) {
            let Forwarding::Send(egress) = meta.forwarding() else { unreachable!("every frame of the burst is sent") };
            if sends.contains(egress.into()) {
                appended.frames += 1;
                let state = &mut self.ports[usize::from(egress)];
                self.egress.append(state, &mut self.buffer, packet, meta.desc);
            } else {
                self.push_to_lcore(io, HandoffFrame::new(packet, meta, egress, meta.is_lossless()));
            }
        }
        self.egress.finish(&mut self.ports, &appended);
        self.telemetry.gauges_dirty |= appended.egresses;
    }

    /// Splits off the egress stage, and the owners that a frame passes on its way into a queue.
    #[inline(always)]
    pub(crate) fn queue_context(&mut self) -> (&mut crate::dataplane::egress::Egress<P>, QueueContext<'_>) {
        let Self { ports, buffer, queue_rule, links, egress, .. } = self;
        (egress, QueueContext { ports, buffer, rule: queue_rule, links })
    }

    /// Floods a frame: a copy for each port of the VLAN but the last, which gets the frame itself. Each copy is
    /// admitted and charged on its own.
    #[cold]
    fn send_copies<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, packet: P, meta: &Meta) {
        let mut egresses = self.forwarder.flooded_to(self.lags.bridge_port(port), meta, self.lags.up);
        if self.router.is_some() && egresses.contains(ROUTER_PORT) {
            let (punter, from) = self.punting(port);
            let punted = punter.flooded(from, packet.bytes(), meta);
            egresses.remove(ROUTER_PORT);
            if egresses.is_empty() {
                return match punted {
                    Ok(()) => self.trash.add(io, packet),
                    Err(reason) => self.drop_received(io, packet, port, meta, reason),
                };
            }
        }
        if !(egresses & self.lags.heads).is_empty() {
            egresses = egresses.iter().filter_map(|egress| self.lags.member(egress, &packet, meta)).collect();
        }
        let Some(last) = egresses.highest() else { unreachable!("a flood leaves by some port") };
        for egress in (egresses - PortSet::only(last)).iter() {
            match io.copy(&packet) {
                Some(copy) => self.send_copy(io, port, egress, copy, *meta),
                None => self.lose_flooded(&packet, port, meta),
            }
        }
        self.send_copy(io, port, last, packet, *meta);
    }

    /// Counts a flooded copy for which there is no buffer.
    #[cold]
    fn lose_flooded(&mut self, packet: &P, port: usize, meta: &Meta) {
        if self.mirror.wants_dropped(DropReason::NoBuffer) {
            self.copy_dropped(packet.bytes(), port, meta, DropReason::NoBuffer);
        }
        self.telemetry.count_drop(port, meta.class(), DropReason::NoBuffer);
    }

    /// Gives the control plane a copy of a frame that belongs to the link of `port`.
    #[cold]
    fn take_link_frame<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, packet: P, meta: &Meta) {
        if meta.stations.dst().mac() == MacAddr::LOOPBACK_ASSISTANCE {
            return self.take_probe(io, port, packet, meta);
        }
        let (punter, from) = self.punting(port);
        match punter.of_link(from, packet.bytes(), meta) {
            Ok(()) => self.trash.add(io, packet),
            Err(reason) => self.drop_received(io, packet, port, meta, reason),
        }
    }

    /// Takes a frame to the address of probes: an own one ends here, any other is bridged.
    #[cold]
    fn take_probe<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, packet: P, meta: &Meta) {
        let (punter, from) = self.punting(port);
        let probe = LoopProbe::read_at(packet.bytes(), meta.desc.l3_offset().into());
        if let Some(own) = probe.filter(|probe| punter.is_own_probe(probe)) {
            return match punter.own_probe(from, packet.bytes(), &own, meta) {
                Ok(()) => self.trash.add(io, packet),
                Err(reason) => self.drop_received(io, packet, port, meta, reason),
            };
        }
        let Self { forwarder, lags, telemetry, lcore, now, .. } = self;
        let bridge_port = lags.bridge_port(port);
        let refusal = lags.idle.contains(port).then(|| lags.refusal(port));
        let counters = &telemetry.counters.lcores[*lcore];
        // A port for each VLAN would fill the forwarding database: sources of probes are not learned.
        let up = if probe.is_some() { lags.up - PortSet::only(bridge_port) } else { lags.up };
        let from = IngressContext { port, bridge_port, refusal, up, counters, now: *now };
        match forwarder.bridge(from, meta) {
            Forwarding::Flood => self.send_copies(io, port, packet, meta),
            Forwarding::Drop(reason) => self.drop_received(io, packet, port, meta, reason),
            other => unreachable!("a frame to a group is flooded or dropped: {other:?}"),
        }
    }

    /// The path of frames of ingress `port` to the control plane.
    fn punting(&mut self, port: usize) -> (&mut Punter, RouteContext<'_>) {
        let Self { punter, forwarder, lags, telemetry, lcore, now, .. } = self;
        let counters = &telemetry.counters.lcores[*lcore];
        (punter, RouteContext { port, up: lags.up, forwarder, counters, now: *now })
    }

    /// Rewrites and sends a frame of ingress `port` by `egress`.
    pub(crate) fn send_copy<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        port: usize,
        egress: usize,
        mut packet: P,
        mut meta: Meta,
    ) {
        match self.rewriter.rewrite_frame(&mut packet, &mut meta, egress) {
            Ok(()) => self.send(io, port, egress, packet, &meta),
            Err(reason) => self.drop_received(io, packet, port, &meta, reason),
        }
    }

    /// Admits a rewritten frame for `egress` to the buffer, and enqueues it.
    pub(crate) fn send<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, egress: usize, packet: P, meta: &Meta) {
        let state = &self.ports[port];
        // The queue of a lossy frame may refuse it; its admission is then undone.
        let before = (!meta.is_lossless()).then(|| self.buffer.before(state, meta.desc.group().into()));
        match self.admit(port, egress, meta) {
            Ok(admission) => {
                let must_accept = meta.is_lossless() || admission.is_guaranteed();
                self.place_judged(io, HandoffFrame::new(packet, meta, egress as u8, must_accept), before);
            }
            Err(reason) => {
                self.note_refused(port, packet.bytes(), RefusedFrame::by_group(&meta.desc, egress), reason);
                self.drop_frame(io, packet, port, meta.class(), reason);
            }
        }
    }

    /// Admits one frame to the buffer, and updates PFC of its ingress port.
    #[inline]
    pub(crate) fn admit(&mut self, port: usize, egress: usize, meta: &Meta) -> Result<Admission, DropReason> {
        // The watchdog drops a queue's priority in both directions. Frames that came by the port would only wait behind
        // others of that priority.
        if self.ports[port].pfc.dropping().contains(meta.desc.queue()) {
            return Err(DropReason::Watchdog);
        }
        let admission = self.buffer.admit::<P>(port, &mut self.ports[port], egress, meta);
        // A refused frame can make a group XOFF too.
        if meta.is_lossless() && !self.ports[port].ledger.xoff().is_empty() {
            self.update_pfc(port);
        }
        match admission {
            Admission::Refused(refusal) => Err(refusal.into()),
            admission => Ok(admission),
        }
    }

    /// Places an admitted frame that its queue may refuse: in the queue, or in the ring to the lcore that owns its
    /// egress port.
    #[inline]
    fn place_judged<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>, before: Option<Before>) {
        let egress = usize::from(handed.egress);
        if self.sends.contains(egress) {
            let (queues, mut context) = self.queue_context();
            match queues.enqueue(&mut context, handed) {
                Ok(()) => self.telemetry.gauges_dirty.insert(egress),
                Err((handed, reason)) => self.refuse(io, handed, reason, egress, before),
            }
            return;
        }
        let (queue, cells) = (handed.desc.queue(), handed.desc.charge().2);
        // The lossy pool: a lossless frame must be accepted.
        let free = self.buffer.pools.shared[0].free();
        if handed.must_accept || self.buffer.reserves.may_cross(egress, queue, cells, free) {
            return self.push_to_lcore(io, handed);
        }
        // Counted at the ingress port, because another lcore writes the counters of the egress port.
        let ingress = usize::from(handed.desc.ingress());
        self.refuse(io, handed, DropReason::QueueThreshold, ingress, before);
    }

    /// Places a frame that its queue has accepted: in the queue, or in the ring to the lcore that owns its egress port.
    #[inline]
    pub(crate) fn place_accepted<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>) {
        let egress = usize::from(handed.egress);
        if !self.sends.contains(egress) {
            return self.push_to_lcore(io, handed);
        }
        let (queues, mut context) = self.queue_context();
        match queues.push(&mut context, handed) {
            Ok(()) => self.telemetry.gauges_dirty.insert(egress),
            Err(handed) => self.refuse(io, handed, DropReason::NoBuffer, egress, None),
        }
    }

    /// Hands a frame to the lcore that owns its egress port.
    #[inline]
    fn push_to_lcore<I: Ports<Pkt = P>>(&mut self, io: &mut I, handed: HandoffFrame<P>) {
        if let Err(handed) = self.mesh.push(handed) {
            let ingress = usize::from(handed.desc.ingress());
            self.refuse(io, handed, DropReason::NoBuffer, ingress, None);
        }
    }

    /// Drops an admitted frame that its queue refused, and frees its cells. If `before` is given they are free at once,
    /// so that the next frame of the burst can use them. The drop counts at port `at`.
    #[cold]
    pub(crate) fn refuse<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        handed: HandoffFrame<P>,
        reason: DropReason,
        at: usize,
        before: Option<Before>,
    ) {
        let egress = usize::from(handed.egress);
        let owned = self.sends.contains(egress).then(|| &self.ports[egress]);
        let queue = RefusingQueue::of(owned, handed.desc, self.buffer.lossy_pool());
        self.log_refused(&handed, reason, queue, at);
        match before {
            Some(before) => {
                let ingress = usize::from(handed.desc.ingress());
                self.buffer.undo(&mut self.ports[ingress], handed.desc, before);
            }
            None => self.buffer.uncharge(handed.desc),
        }
        self.drop_frame(io, handed.packet, at, Some(handed.desc.class()), reason);
    }

    /// Logs that `queue` refused a frame, and copies it. A frame lost by a fault (`no_buffer`) is not a decision.
    #[cold]
    pub(crate) fn log_refused(
        &mut self,
        handed: &HandoffFrame<P>,
        reason: DropReason,
        queue: RefusingQueue,
        at: usize,
    ) {
        let (bytes, frame) = (handed.packet.bytes(), RefusedFrame::by_queue(handed, queue));
        if reason != DropReason::NoBuffer {
            self.note_refused(at, bytes, frame, reason);
        } else if self.mirror.wants_dropped(reason) {
            self.copy_refused(bytes, frame, reason);
        }
    }

    /// Drops a frame of ingress `port` that is not admitted to the buffer, and copies it.
    #[inline]
    fn drop_received<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        packet: P,
        port: usize,
        meta: &Meta,
        reason: DropReason,
    ) {
        if self.mirror.wants_dropped(reason) {
            self.copy_dropped(packet.bytes(), port, meta, reason);
        }
        self.drop_frame(io, packet, port, meta.class(), reason);
    }

    /// Counts a drop at `port`, and collects the buffer to be freed with others.
    #[inline]
    pub(crate) fn drop_frame<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        packet: P,
        port: usize,
        class: Option<u8>,
        reason: DropReason,
    ) {
        self.telemetry.count_drop(port, class, reason);
        self.trash.add(io, packet);
    }
}
