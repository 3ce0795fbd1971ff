//! From a queue to the wire: schedule, mark, release, transmit.

use super::counters::Counter;
use super::drops::DropReason;
use super::ingress::Frames;
use super::pipeline::{Pipeline, bits};
use super::port::Port;
use super::queue::Tag;
use crate::mutant::{self, Mutant};
use crate::packet::{Packet, Ports};
use crate::qos::CLASSES;
use crate::qos::wred::WredVerdict;
use crate::units::{Bytes, Ticks};
use crate::wire::ecn;

impl<P: Packet> Pipeline<P> {
    /// Sends what `port` may send now. Returns the frames that the driver took; the others are first in their queues
    /// again, where a pause stops them.
    #[inline(never)]
    pub(super) fn transmit<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) -> usize {
        if self.ports[port].waiting == 0 {
            return 0;
        }
        let congested = self.schedule(port, now);
        let posted = self.posted.len();
        if posted == 0 {
            return 0;
        }
        self.mark(port, congested);
        io.tx(port, &mut self.posted);
        let taken = posted - self.posted.len();
        self.release(port, taken);
        if !self.posted.is_empty() {
            self.put_back(port);
        }
        self.touched |= 1 << port;
        taken
    }

    /// What the driver did not take goes back to the head of its queues, the last frame first.
    #[cold]
    fn put_back(&mut self, port: usize) {
        let state = &mut self.ports[port];
        for (packet, tag) in self.posted.drain(..).zip(self.charges.drain(..)).rev() {
            let queue = tag.queue();
            let before = state.queues[queue].cells();
            // It has just left its slot, so there is one.
            if state.queues[queue].push_front(&mut self.slab, packet, tag).is_ok() {
                state.waiting |= 1 << queue;
                self.guarantees.changed(port, queue, before, before + u32::from(tag.cells));
            }
        }
    }

    /// Moves frames out of the queues until the wire is busy, the burst is full or nobody may send. Which of them met
    /// congestion.
    #[inline]
    fn schedule(&mut self, port: usize, now: Ticks) -> Frames {
        let mut congested = 0;
        let state = &mut self.ports[port];
        let mut ready = state.waiting & !state.discarding & !state.stopped_queues(now);
        while ready != 0 && !self.posted.is_full() && self.ports[port].shaper.is_free(now) {
            let (queues, scheduler) = {
                let state = &mut self.ports[port];
                (&state.queues, &mut state.scheduler)
            };
            let Some(queue) = scheduler.choose(ready, |queue| queues[queue].head_len()) else { break };
            let before = self.ports[port].queues[queue].cells();
            let before_these = self.posted.len();
            congested |= self.serve(port, queue, now);
            if self.posted.len() == before_these {
                break;
            }
            let state = &mut self.ports[port];
            self.guarantees.changed(port, queue, before, state.queues[queue].cells());
            if state.queues[queue].is_empty() {
                ready &= !(1 << queue);
                state.waiting &= !(1 << queue);
                state.scheduler.emptied(queue);
            }
        }
        congested
    }

    /// Moves frames out of `queue`, which has the turn, as long as it keeps it. Which of them, by their place in the burst,
    /// met congestion.
    #[inline]
    fn serve(&mut self, port: usize, queue: usize, now: Ticks) -> Frames {
        let Port { queues, scheduler, shaper, .. } = &mut self.ports[port];
        let frames = &mut queues[queue];
        let wred = self.queue_specs[queue].wred.as_ref();
        let mut congested = 0;
        loop {
            let (packets, tags) = frames.first(&self.slab);
            // Of a queue that stands the packets have left the cache, and are needed when all are chosen.
            if frames.frames() as usize > tags.len() {
                packets.iter().flatten().for_each(P::prefetch);
            }
            let (posted, mut depth, mut chosen) = (self.posted.len(), frames.bytes(), 0);
            for tag in tags.iter().take(self.posted.remaining_capacity()) {
                let len = u32::from(tag.len);
                if chosen > 0 && !(shaper.is_free(now) && scheduler.goes_on(queue, len)) {
                    break;
                }
                shaper.charge(len, now);
                // Instantaneous depth at dequeue, the leaving frame included.
                if let Some(wred) = wred
                    && tag.markable().is_some()
                    && wred.judge(Bytes(depth), self.dice.roll()) == WredVerdict::Congested
                {
                    congested |= 1 << (posted + chosen);
                }
                depth -= u64::from(len);
                chosen += 1;
            }
            let has_more = chosen < tags.len();
            frames.take(&mut self.slab, chosen, &mut self.posted, &mut self.charges);
            // The first packet of the next chunk has not been asked whether its turn is now.
            let goes_on = !has_more && !frames.is_empty() && !self.posted.is_full() && shaper.is_free(now);
            if !goes_on || !scheduler.goes_on(queue, frames.head_len()) {
                return congested;
            }
        }
    }

    /// Marks those of the posted frames that are `congested`: when all are chosen, since those that have waited for long
    /// must come from memory first.
    #[inline]
    fn mark(&mut self, port: usize, congested: Frames) {
        bits(congested.into()).for_each(|index| self.posted[index].prefetch_bytes());
        for index in bits(congested.into()) {
            let (packet, tag) = (&mut self.posted[index], &mut self.charges[index]);
            if let Some((l3, offset)) = tag.markable() {
                ecn::mark_ce(packet.bytes_mut(), l3, offset);
                *tag = tag.marked();
                self.counters.ports[port].ecn_marked[tag.queue()].add(1);
            }
        }
    }

    /// The first `frames` of what `port` had posted are the driver's now: their cells are free.
    #[inline]
    fn release(&mut self, port: usize, frames: usize) {
        // Frames above, bytes below: a burst has fewer than 2^32 of them.
        let (mut sums, mut queues) = ([0_u64; CLASSES], 0_u8);
        for tag in self.charges.drain(..frames) {
            let (ingress, group, cells) = tag.charge();
            if !mutant::is(Mutant::TallyOrder) {
                self.releases.release(ingress, group, cells);
            }
            let queue = tag.queue();
            sums[queue] += 1 << 32 | u64::from(tag.len);
            queues |= 1 << queue;
        }
        let counters = &self.counters.ports[port];
        for queue in bits(queues.into()) {
            counters.tx_frames[queue].add(sums[queue] >> 32);
            counters.tx_bytes[queue].add(sums[queue] & 0xffff_ffff);
        }
    }

    /// The cells of a frame that will not leave are free.
    pub(super) fn uncharge(&mut self, tag: Tag) {
        let (ingress, group, cells) = tag.charge();
        self.releases.release(ingress, group, cells);
    }

    /// Discards at most `most` of the frames of `port` that are condemned.
    #[cold]
    pub(super) fn discard_condemned<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, most: usize) {
        let mut left = most;
        for queue in bits(u64::from(self.ports[port].discarding)) {
            let before = self.ports[port].queues[queue].cells();
            let (condemned, reason) = self.ports[port].discard[queue];
            let mut discarded = 0;
            while discarded < condemned && left > 0 {
                let Some((packet, tag)) = self.ports[port].queues[queue].pop(&mut self.slab) else { break };
                self.uncharge(tag);
                self.drop_frame(io, packet, port, Some(tag.class()), reason);
                (discarded, left) = (discarded + 1, left - 1);
            }
            let state = &mut self.ports[port];
            self.guarantees.changed(port, queue, before, state.queues[queue].cells());
            state.discard[queue].0 -= discarded;
            if state.queues[queue].is_empty() {
                state.discard[queue].0 = 0;
                state.waiting &= !(1 << queue);
                state.scheduler.emptied(queue);
            }
            if state.discard[queue].0 == 0 {
                state.discarding &= !(1 << queue);
            }
        }
        self.touched |= 1 << port;
    }

    /// Lets the watchdog of `port` look at its queues when it is time.
    #[inline]
    pub(super) fn watch(&mut self, port: usize, now: Ticks) {
        if self.ports[port].watchdog.as_ref().is_some_and(|watchdog| watchdog.is_due(now)) {
            self.look(port, now);
        }
    }

    #[cold]
    fn look(&mut self, port: usize, now: Ticks) {
        let (state, counters) = (&mut self.ports[port], &self.counters.ports[port]);
        let Some(watchdog) = &mut state.watchdog else { return };
        let sent = counters.tx_frames.each_ref().map(Counter::get);
        let paused = state.timers.paused_queue_ticks(now);
        let events = watchdog.tick(now, state.waiting, &sent, &paused);
        let (storm, dropping) = (watchdog.storm(), watchdog.dropping());
        for queue in bits(u64::from(events.detected)) {
            counters.watchdog_storms[queue].add(1);
        }
        for queue in bits(u64::from(events.restored)) {
            counters.watchdog_restores[queue].add(1);
        }
        counters.watchdog_mask.set(u64::from(storm));
        self.storms = self.storms & !(1 << port) | u64::from(dropping != 0) << port;
        state.condemn(events.detected & dropping, DropReason::Watchdog);
    }
}
