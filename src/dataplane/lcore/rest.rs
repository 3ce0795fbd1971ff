//! Checks whether any work is pending for the next poll of an lcore: if so, the lcore does not rest.
//!
//! The check runs only before a rest, so it costs the packet path nothing.

use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::io::{Packet, Ports};
use crate::units::Ticks;

impl<P: Packet> Pipeline<P> {
    /// Whether nothing is held, paused or on its way here, so that a late poll delays only frames that have yet to
    /// come.
    pub(crate) fn may_rest<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> bool {
        // `holding` covers frames that another lcore has yet to send: they are charged here, and their release may
        // cause XON. `running_pauses` covers a pause that has ended before the gauges were updated.
        let is_empty = self.egress.slab.held() == 0
            && self.buffer.holding.is_empty()
            && self.pauses.xoff.is_empty()
            && self.telemetry.running_pauses.is_empty();
        is_empty
            && self.own.iter().all(|port| self.ports[port].is_at_rest((self.links.up - self.links.stuck).contains(port), now))
            && self.mesh.peers.iter_mut().flatten().all(|peer| peer.frames_in.refresh() == 0)
            // Last, because it may query a device: it covers frames that came during the poll.
            && self.own.iter().all(|port| {
                let queues = &self.ports[port].rx_queues;
                queues.keeps_frames() || io.backlog(port, queues.all()).is_none_or(|left| left == 0)
            })
    }
}

impl Port {
    /// Whether no timer runs here, for PFC or for the receive backlog, and no frame must be discarded. A PFC frame that
    /// is due counts on a link that is up and not stuck.
    fn is_at_rest(&self, is_up: bool, now: Ticks) -> bool {
        self.pfc.is_at_rest(is_up, now) && self.discarding.is_empty() && !self.backlog.is_watching()
    }
}
