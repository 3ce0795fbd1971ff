//! Hand-off between lcores: accepts the frames of other lcores, and publishes those for them.

use crate::dataplane::egress::enqueue::{QueueContext, Refused};
use crate::dataplane::pipeline::Pipeline;
use crate::io::{Packet, Ports};
use crate::sets::{BURST, LEAST_BURST};

/// The most frames that a poll takes from one lcore: as many as it may receive from the fastest port.
const MOST_HANDOFFS: usize = 16 * LEAST_BURST;

impl<P: Packet> Pipeline<P> {
    /// Makes the handed-over frames visible to their lcores, and counts them.
    #[inline]
    pub(crate) fn publish_handoffs(&mut self) {
        let frames = self.mesh.publish();
        if frames > 0 {
            self.telemetry.counters.lcores[self.lcore].handed_off_frames.add(frames as u64);
        }
    }

    /// Enqueues the frames that other lcores have handed over. Returns their number.
    #[inline]
    pub(crate) fn accept_handoffs<I: Ports<Pkt = P>>(&mut self, io: &mut I) -> usize {
        let mut taken = 0;
        for lcore in 0..self.mesh.peers.len() {
            taken += self.accept_from(io, lcore);
        }
        taken
    }

    /// Enqueues the frames that one other `lcore` has handed over, or drops those that their queues refuse.
    #[inline]
    fn accept_from<I: Ports<Pkt = P>>(&mut self, io: &mut I, lcore: usize) -> usize {
        let Some(peer) = &mut self.mesh.peers[lcore] else { return 0 };
        let ready = peer.frames_in.refresh();
        if ready > 0 {
            self.telemetry.counters.lcores[self.lcore].handoff_highest_frames.raise(ready as u64);
        }
        let taken = ready.min(MOST_HANDOFFS);
        let (mut left, mut refused) = (taken, Refused::new());
        while left > 0 {
            let frames = left.min(BURST);
            let Self { ports, buffer, queue_rule, links, egress, mesh, .. } = self;
            let Some(peer) = &mut mesh.peers[lcore] else { break };
            let context = QueueContext { ports, buffer, rule: queue_rule, links };
            let grown = egress.accept(context, &mut peer.frames_in, frames, &mut refused);
            // Released after each burst, because the ring has room for only one burst more than the buffer has cells.
            peer.frames_in.release();
            self.telemetry.gauges_dirty |= grown;
            for (handed, reason, queue) in refused.drain(..) {
                let egress = usize::from(handed.egress);
                self.log_refused(&handed, reason, queue, egress);
                self.buffer.uncharge(handed.desc);
                self.drop_frame(io, handed.packet, egress, Some(handed.desc.class()), reason);
            }
            left -= frames;
        }
        taken
    }
}
