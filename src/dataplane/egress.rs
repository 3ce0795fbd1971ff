//! From a queue to the wire: schedule, mark, release, transmit.

use super::drops::DropReason;
use super::pipeline::{LCORE, Pipeline, bits};
use super::queue::Tag;
use crate::packet::{Packet, Ports};
use crate::qos::wred::WredVerdict;
use crate::units::{Bytes, Cells, Ticks};
use crate::wire::ecn;

impl<P: Packet> Pipeline<P> {
    /// Sends what `port` may send now. Returns the frames that the driver took.
    #[inline]
    pub(super) fn transmit<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) -> usize {
        let state = &mut self.ports[port];
        if state.posted.is_empty() {
            if state.waiting == 0 {
                return 0;
            }
            self.schedule(port, now);
        }
        let posted = &mut self.ports[port].posted;
        let before = posted.len();
        if before == 0 {
            return 0;
        }
        io.tx(port, posted);
        let taken = before - posted.len();
        self.release(port, taken);
        self.touched |= 1 << port;
        taken
    }

    /// Moves frames out of the queues until the wire is busy, the burst is full or nobody may send.
    #[inline]
    fn schedule(&mut self, port: usize, now: Ticks) {
        let state = &mut self.ports[port];
        let mut ready = state.waiting & !state.timers.paused(now);
        while ready != 0 && !state.posted.is_full() && state.shaper.is_free(now) {
            let queues = &state.queues;
            let Some(queue) = state.scheduler.choose(ready, |queue| queues[queue].head_len()) else { break };
            let depth = Bytes(state.queues[queue].bytes());
            let Some((mut packet, tag)) = state.queues[queue].pop(&mut self.slab) else { break };
            if state.queues[queue].is_empty() {
                ready &= !(1 << queue);
                state.waiting &= !(1 << queue);
                state.scheduler.emptied(queue);
            }
            state.shaper.charge(u32::from(tag.len), now);
            // Instantaneous depth at dequeue, the leaving frame included.
            if let Some((l3, offset)) = tag.markable()
                && let Some(wred) = &self.queue_specs[queue].wred
                && wred.judge(depth, self.dice.roll()) == WredVerdict::Congested
            {
                ecn::mark_ce(packet.bytes_mut(), l3, offset);
                self.counters.ports[port].ecn_marked[queue].add(1);
            }
            state.posted.push(packet);
            state.charges.push(tag);
        }
    }

    /// The first `frames` of what `port` had posted are the driver's now: their cells are free.
    #[inline]
    fn release(&mut self, port: usize, frames: usize) {
        let counters = &self.counters.ports[port];
        for tag in self.ports[port].charges.drain(..frames) {
            let (ingress, group) = (usize::from(tag.ingress), usize::from(tag.group & 7));
            self.tallies.release(LCORE, ingress, group, Cells(u32::from(tag.cells)));
            let queue = usize::from(tag.queue & 7);
            counters.tx_frames[queue].add(1);
            counters.tx_bytes[queue].add(u64::from(tag.len));
        }
    }

    /// The cells of a frame that will not leave are free.
    fn uncharge(&self, tag: Tag) {
        let (ingress, group) = (usize::from(tag.ingress), usize::from(tag.group & 7));
        self.tallies.release(LCORE, ingress, group, Cells(u32::from(tag.cells)));
    }

    /// Drops all that waits for `port`.
    #[cold]
    pub(super) fn drop_queues<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, reason: DropReason) {
        for charge in std::mem::take(&mut self.ports[port].charges) {
            self.uncharge(charge);
            self.counters.ports[port].drops[usize::from(charge.queue & 7)][reason as usize].add(1);
        }
        io.free(&mut self.ports[port].posted);
        for queue in bits(u64::from(std::mem::take(&mut self.ports[port].waiting))) {
            while let Some((packet, tag)) = self.ports[port].queues[queue].pop(&mut self.slab) {
                self.uncharge(tag);
                self.drop_frame(io, packet, port, Some(queue as u8), reason);
            }
            self.ports[port].scheduler.emptied(queue);
        }
    }

    /// Priorities of `port` that its peer has paused, as of the last look at its timers.
    pub(super) fn pause_seen(&self, port: usize) -> u8 {
        self.ports[port].timers.running()
    }
}
