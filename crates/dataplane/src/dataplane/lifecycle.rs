//! Link changes, and the start and the end of the switch's operation.

use super::pipeline::Pipeline;
use crate::forward::LagState;
use crate::io::{Packet, Ports};
use crate::plan::drops::DropReason;
use crate::sets::{ClassSet, PortSet};
use crate::units::Ticks;

impl<P: Packet> Pipeline<P> {
    /// Sets whether `port` has a link. When it goes down, the frames that wait for it are dropped, the stations behind
    /// it are forgotten, and its peer's pauses end. When it comes up, PFC frames announce the state of each priority to
    /// the peer.
    pub fn set_link(&mut self, port: usize, up: bool, now: Ticks) {
        if self.links.linked.contains(port) == up {
            return;
        }
        self.links.linked.set(port, up);
        if !up && self.sends.contains(port) {
            self.ports[port].pfc.link_down(now);
            self.telemetry.gauges_dirty.insert(port);
            if self.own.contains(port) {
                self.tell_pauses(port);
            }
        }
        self.follow_link(port, now);
    }

    /// Sets the ports that the operator has shut. To forwarding and to waiting frames a shut port has no link, and it
    /// drops all data frames that it receives. It obeys pauses: its peer may not notice, and remembers them.
    pub(crate) fn set_shut(&mut self, shut: PortSet, now: Ticks) {
        let changed = shut ^ self.links.shut;
        (self.links.shut, self.forwarder.shut) = (shut, shut);
        for port in changed.iter() {
            self.follow_link(port, now);
        }
        if !changed.is_empty() {
            self.follow_special();
        }
    }

    /// Applies the link of `port`, and whether it is shut.
    fn follow_link(&mut self, port: usize, now: Ticks) {
        let up = self.links.linked.contains(port) && !self.links.shut.contains(port);
        if self.links.up.contains(port) == up {
            return;
        }
        self.links.up.set(port, up);
        let reason = self.links.drops_for(port);
        self.alert.insert(port);
        self.release_stuck(port);
        self.forwarder.fdb.change();
        self.follow_lags();
        if !self.sends.contains(port) {
            return;
        }
        if let Some(reason) = reason {
            let state = &mut self.ports[port];
            state.pfc.shut(now);
            state.schedule_discard(ClassSet::ALL, reason);
        }
        if self.own.contains(port) {
            // Its peer gets XON before it is shut, whatever its groups hold.
            self.update_pfc(port);
            if up {
                self.announce_pfc(port);
            }
            self.tell_pauses(port);
        }
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Sets the ports that forward nothing because of a loop, and the ports `looped` of these loops. Blocked ports
    /// still send and take LLDP and PFC. With a member that takes frames its whole group is blocked. An idle one
    /// forwards nothing, so it is in no loop, and its group goes on. The stations behind the ports of a loop are
    /// forgotten when its block begins or ends.
    pub fn set_blocked(&mut self, blocked: PortSet, looped: PortSet) {
        let blocked = self.lags.whole(blocked - self.lags.idle);
        // Stations behind a group are learned at its head.
        let looped = (looped - self.lags.idle).iter().map(|port| self.lags.bridge_port(port)).collect();
        self.forwarder.set_blocked(blocked, looped);
    }

    /// Sets the state of the members of link aggregation groups.
    pub fn set_lags(&mut self, state: LagState) {
        self.lags.set_state(state);
        self.follow_lags();
    }

    /// Finds the special ports: shut, idle ([`Lags::idle`](crate::dataplane::ingress::lags::Lags)), routed and sampled
    /// ones, those with classes for RoCE's answers, and those with receive queues of which XOFF stops some. Call it
    /// when one of these changes.
    pub(crate) fn follow_special(&mut self) {
        self.special = self.own.iter().filter(|&port| self.has_stages(port)).collect();
    }

    /// Whether bursts of `port` have stages that others do not have.
    pub(crate) fn has_stages(&self, port: usize) -> bool {
        let state = &self.ports[port];
        self.links.shut.contains(port)
            || self.lags.idle.contains(port)
            || self.sampled.contains(port)
            || self.router.as_ref().is_some_and(|router| router.routed().contains(port))
            || state.classifier.has_roce()
            || state.rx_queues.is_managed()
    }

    /// Applies links and states of members to forwarding. The stations behind a port that is gone are forgotten.
    fn follow_lags(&mut self) {
        for port in self.lags.update(self.links.up).iter() {
            self.forwarder.fdb.forget_port(port);
        }
        self.follow_special();
        // Frames of a link that is down are discarded, which a closed port would not do.
        self.egress.closed = self.lags.closed() & self.links.up;
    }

    /// Notes the frames that `members` hold for [`Pipeline::undrained_members`]. Returns false, and notes nothing,
    /// while frames of other lcores are on their way here.
    pub fn note_members(&mut self, members: PortSet) -> bool {
        let is_quiet = self.mesh.peers.iter_mut().flatten().all(|peer| peer.frames_in.refresh() == 0);
        if is_quiet {
            for port in (self.sends & members).iter() {
                self.lag_drain.note(port, &self.ports[port], self.telemetry.written(port));
            }
        }
        is_quiet
    }

    /// Members at which frames wait that [`Pipeline::note_members`] has noted.
    pub fn undrained_members(&mut self) -> PortSet {
        let Self { lag_drain, ports, telemetry, .. } = self;
        lag_drain.pending(ports, |port| telemetry.written(port))
    }

    /// Lets closed members send.
    pub fn open_members(&mut self) {
        self.egress.closed = PortSet::EMPTY;
    }

    /// Announces PFC on all links that are up at the start: a switch that crashed may have left the peers paused.
    pub fn announce_all(&mut self) {
        for port in (self.own & self.links.up).iter() {
            self.announce_pfc(port);
        }
    }

    /// Makes a PFC frame of `port` due that announces the state of each priority for which PFC is generated.
    fn announce_pfc(&mut self, port: usize) {
        self.telemetry.counters.ports[port].link_ups.add(1);
        self.ports[port].pfc.announce();
        self.alert.insert(port);
    }

    /// Ends the switch's operation: sends XON for every XOFF, and frees every buffer. Frames in queues and in the rings
    /// from other lcores are dropped as `shutdown`. Returns false if a port did not take its XON. Another call tries
    /// again, and accepts the frames that other lcores have handed over meanwhile.
    pub fn shutdown<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> bool {
        self.leave_joint();
        self.publish_handoffs();
        self.accept_handoffs(io);
        for port in self.sends.iter() {
            self.ports[port].schedule_discard(ClassSet::ALL, DropReason::Shutdown);
            self.run_discards(io, port, usize::MAX);
            // A stuck port gets its XON too.
            self.release_stuck(port);
        }
        for port in self.own.iter() {
            self.ports[port].pfc.set_xoff(ClassSet::EMPTY);
            self.send_pfc(io, port, now);
        }
        self.buffer.releases.publish();
        self.collect_releases();
        io.free(&mut self.trash.frames);
        self.telemetry.gauges_dirty |= self.telemetry.running_pauses;
        self.publish_gauges(now);
        (self.own & self.links.up).iter().all(|port| self.ports[port].pfc.due(now).is_none())
    }

    /// Lets `port` send again if it was stuck.
    pub(crate) fn release_stuck(&mut self, port: usize) {
        if !self.sends.contains(port) {
            return;
        }
        let counters = self.telemetry.written(port);
        let moves = self.links.release_stuck(port, &mut self.ports[port], counters);
        self.telemetry.gauges_dirty |= PortSet::only_if(moves, port);
    }
}
