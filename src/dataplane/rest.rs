//! Whether anything waits for the next poll of an lcore: as long as it does, the lcore does not rest.
//!
//! Looked at only before a rest, so that it costs the packet path nothing.

use super::pipeline::Pipeline;
use super::port::Port;
use crate::packet::{Packet, Ports};
use crate::pfc::Watchdog;
use crate::units::Ticks;

impl<P: Packet> Pipeline<P> {
    /// Whether nothing is held, paused or on its way here, so that a late poll makes nothing late but what has yet to come.
    pub(super) fn may_rest<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> bool {
        // `holding`: frames that another lcore has yet to send are charged here, and their release may be an XON. `timed`:
        // a pause has ended, and no gauge says so yet.
        let is_empty = self.egress.slab.held() == 0
            && self.buffer.holding.is_empty()
            && self.pauses.xoff.is_empty()
            && self.telemetry.running_pauses.is_empty();
        is_empty
            && self.own.iter().all(|port| self.ports[port].is_at_rest((self.links.up - self.links.stuck).contains(port), now))
            && self.mesh.peers.iter_mut().flatten().all(|peer| peer.frames_in.refresh() == 0)
            // Last, since it may ask a device: what came while the poll went on.
            && self.own.iter().all(|port| io.backlog(port).is_none_or(|left| left == 0))
    }
}

impl Port {
    /// Whether no time runs here: no XOFF that must be refreshed or has yet to leave by a link that is up and not stuck, no
    /// pause that must end, no storm of which the watchdog awaits the end.
    fn is_at_rest(&self, is_up: bool, now: Ticks) -> bool {
        let is_told = self.generator.xoff() == 0 && (!is_up || self.generator.due(now).is_none());
        let is_free = self.arrived.enabled == 0 && self.timers.paused_at(now) == 0;
        let is_calm = self.watchdog.as_ref().map_or(0, Watchdog::storm) == 0;
        is_told && is_free && is_calm && self.discarding == 0 && !self.backlog.is_watching()
    }
}
