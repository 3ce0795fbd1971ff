//! All that the simulator has of an lcore beyond `Pipeline::poll`: its state between two polls, the halves of a poll,
//! and rests in simulated time. The fields of `Pipeline` are closed.

use crate::dataplane::egress::queue::Queue;
use crate::dataplane::ingress::scratch::Scratch;
use crate::dataplane::pipeline::Pipeline;
use crate::io::{Packet, Ports};
use crate::pfc::Answers;
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{Bytes, Cells, Ticks};

/// State of one class of a port: the egress queue and the ingress priority group of that number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ClassView {
    /// Bytes in the queue.
    pub queue_bytes: Bytes,
    /// Cells in the queue.
    pub queue_cells: Cells,
    /// Frames in the queue.
    pub queue_frames: u32,
    /// Cells of the group in the shared pool.
    pub shared: Cells,
    /// Cells of the group in the reserves and in the shared pool.
    pub used: Cells,
    /// Cells of the group in headroom, or with dynamic headroom in the port's insurance.
    pub headroom: Cells,
    /// T: limit on the group's share of its pool now.
    pub threshold: Cells,
    /// Whether the group's senders must stop, because of the ledger or the receive backlog. The port's PFC mode decides
    /// whether PFC frames are sent for it.
    pub is_xoff: bool,
}

impl<P: Packet> Pipeline<P> {
    /// Whether this lcore owns `port`.
    #[must_use]
    pub fn owns(&self, port: usize) -> bool {
        self.own.contains(port)
    }

    /// The ports that this lcore owns.
    #[must_use]
    pub fn own(&self) -> PortSet {
        self.own
    }

    /// Whether this lcore sends by `port`: it owns it, or the port is joint.
    #[must_use]
    pub fn sends_by(&self, port: usize) -> bool {
        self.sends.contains(port)
    }

    /// The state of queue `class` of `port`, by which this lcore must send, and of group `class`, if it owns the port.
    ///
    /// # Panics
    /// If there is no such port or class.
    #[must_use]
    pub fn view(&self, port: usize, class: usize) -> ClassView {
        debug_assert!(self.sends_by(port), "only other lcores send by this port");
        let state = &self.ports[port];
        let (queue, group) = (&state.queues[class], state.ledger.group(class));
        ClassView {
            queue_bytes: queue.bytes(),
            queue_cells: queue.cells(),
            queue_frames: queue.frames(),
            shared: group.shared,
            used: group.used(),
            headroom: group.headroom,
            threshold: state.ledger.threshold(class, &self.buffer.pools),
            is_xoff: state.wants_xoff().contains(class),
        }
    }

    /// The answers of the peer of `port` to XOFF of each priority; `None`: the port sends none. This lcore must own the
    /// port.
    #[must_use]
    pub fn answers(&self, port: usize) -> Option<&[Answers; CLASSES]> {
        self.ports[port].pfc.answers()
    }

    /// Bytes at `port` that the wire has yet to send at `now`, if they count as depth of queue `class`. They count at
    /// the owner of the port.
    #[must_use]
    pub fn posted_of(&self, port: usize, class: usize, now: Ticks) -> Bytes {
        if self.owns(port) { self.ports[port].posted_of(class, now) } else { Bytes(0) }
    }

    /// Bytes at `port` that the wire has yet to send at `now`. This lcore must own the port.
    #[must_use]
    pub fn posted(&self, port: usize, now: Ticks) -> Bytes {
        self.ports[port].posted(now)
    }

    /// Bytes of all queues of `port` that this lcore holds, and, if it owns the port, that the wire has yet to send at
    /// `now`.
    #[must_use]
    pub fn port_depth(&self, port: usize, now: Ticks) -> Bytes {
        let state = &self.ports[port];
        let posted = if self.owns(port) { state.posted(now) } else { Bytes(0) };
        posted + state.queues.iter().map(Queue::bytes).sum()
    }

    /// Cells in use of a whole switch's lossy and lossless shared pools, by the ledgers of all its lcores: exact.
    #[must_use]
    pub fn pool_used(fleet: &[Self]) -> [Cells; 2] {
        [0, 1].map(|kind| Cells(fleet.iter().map(|part| part.buffer.pools.shared[kind].used().0).sum()))
    }

    /// Frames on their way from one lcore of a switch to another.
    #[must_use]
    pub fn crossing_frames(fleet: &[Self]) -> usize {
        fleet.iter().map(|part| part.frames_handed(fleet)).sum()
    }

    /// Frames that this lcore has pushed and no other lcore has taken.
    pub(crate) fn frames_handed(&self, fleet: &[Self]) -> usize {
        fleet.iter().map(|other| self.frames_between(other)).sum()
    }

    /// Frames that this lcore has pushed to `other` and that `other` has not taken.
    fn frames_between(&self, other: &Self) -> usize {
        let (to, from) = (self.mesh.peers.get(other.lcore), other.mesh.peers.get(self.lcore));
        let pushed = to.and_then(Option::as_ref).map_or(0, |peer| peer.frames_out.pushed());
        let popped = from.and_then(Option::as_ref).map_or(0, |peer| peer.frames_in.popped());
        pushed.wrapping_sub(popped)
    }

    /// Queues of `port` that may not send at `now`: paused by the peer, and the watchdog does not ignore the pause.
    /// This lcore must own the port.
    #[must_use]
    pub fn stopped_queues(&self, port: usize, now: Ticks) -> ClassSet {
        self.ports[port].pfc.stopped_queues_at(now)
    }

    /// Queues of `port` whose pauses the watchdog ignores. This lcore must own the port.
    #[must_use]
    pub fn ignoring(&self, port: usize) -> ClassSet {
        self.ports[port].pfc.ignoring()
    }

    /// Priorities for which `port` holds its peer at XOFF; the PFC frame with the last change may still be due. This
    /// lcore must own the port.
    #[must_use]
    pub fn generated_xoff(&self, port: usize) -> ClassSet {
        self.ports[port].pfc.xoff()
    }

    /// The first half of a poll. Other lcores of the simulator poll between the halves, so that the data they publish
    /// is as old as it can be. Returns the frames received, and sent between rounds.
    #[inline]
    pub fn receive_half<I: Ports<Pkt = P>>(&mut self, io: &mut I, scratch: &mut Scratch<P>, now: Ticks) -> usize {
        self.poll_in(io, scratch, now)
    }

    /// The second half of the poll that has moved `before` frames. Returns the number of all frames moved.
    #[inline]
    pub fn send_half<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks, before: usize) -> usize {
        self.poll_out(io, now, before)
    }

    /// Number of buffers that are freed at the end of the present poll, for the simulator.
    pub fn discarded_frames(&self) -> usize {
        self.trash.frames.len()
    }

    /// Publishes all gauges, for an observer that needs exact values between two polls: the simulator, at its end.
    pub fn settle_gauges(&mut self, now: Ticks) {
        self.telemetry.gauges_dirty |= self.sends;
        self.publish_gauges(now);
    }

    /// Whether it may rest once it has collected the releases of its own frames ([`Pipeline::collect_for_rest`]).
    pub fn may_rest_when_settled<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> bool {
        // `running_pauses` covers a pause that has ended before the gauges were updated.
        let is_empty =
            self.egress.slab.held() == 0 && self.pauses.xoff.is_empty() && self.telemetry.running_pauses.is_empty();
        is_empty
            // It ends some milliseconds after the overload.
            && !self.shedder.is_on()
            && !self.guests_send()
            && (self.own & self.alert).iter().all(|port| self.ports[port].is_at_rest((self.links.up - self.links.stuck).contains(port), now))
            && self.mesh.peers.iter_mut().flatten().all(|peer| peer.frames_in.refresh() == 0)
            && self.congestion.as_mut().is_none_or(|congestion| congestion.is_at_rest())
            // Last, because it may query a device: it covers frames that came during the poll.
            && (self.own & io.filled()).iter().all(|port| {
                let queues = &self.ports[port].rx_queues;
                queues.keeps_frames() || io.backlog(port, queues.all()).is_none_or(|left| left == 0)
            })
    }

    /// Does the work of a poll at `now` without frames: it collects the releases of the poll before. Only for a
    /// simulated switch of one lcore, which then rests. Gauges follow later.
    pub fn collect_for_rest(&mut self, now: Ticks) {
        self.begin(now);
        self.collect_releases();
        if self.abm.is_some() {
            self.measure_drains(now);
        }
        self.egress.waiting = PortSet::EMPTY;
        self.moved = 0;
        let has_none = self.buffer.holding.is_empty() && self.egress.slab.held() == 0;
        assert!(has_none, "no frame is queued, and no other lcore holds one");
    }
}
