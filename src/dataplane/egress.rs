//! From a queue to the wire: schedule, mark, release, transmit.

use arrayvec::ArrayVec;

use super::counters::{Counter, PortCounters};
use super::drops::DropReason;
use super::frame_desc::{BurstSum, FrameDesc, Run};
use super::pipeline::{Pipeline, bits};
use super::port::Port;
use super::queue::Slab;
use super::spec::SwitchSpec;
use crate::mutant::{self, Mutant};
use crate::packet::{Burst, Packet, Ports};
use crate::qos::shaper::Pace;
use crate::qos::wred::{Dice, WredVerdict};
use crate::sets::{BURST, CLASSES, ClassSet, FrameSet, PortSet};
use crate::units::{Bytes, Cells, Ticks};
use crate::wire::ecn;

/// The egress state of one lcore: the memory of its queues, and the burst that it sends.
#[derive(Debug)]
pub(super) struct Egress<P> {
    pub slab: Slab<P>,
    pub rng: Dice,
    /// The burst being sent, and the descriptor of each of its frames: empty except during a transmission.
    pub posted: Burst<P>,
    pub charges: ArrayVec<FrameDesc, BURST>,
}

impl<P> Egress<P> {
    pub fn new(spec: &SwitchSpec, seed: u32) -> Self {
        Self {
            slab: Slab::new(spec.buffer.total.0 as usize, spec.ports.len() * CLASSES),
            rng: Dice::new(seed),
            posted: Burst::new(),
            charges: ArrayVec::new(),
        }
    }
}

/// What was chosen to be sent in one burst.
#[derive(Debug, Default)]
struct Chosen {
    /// The frames that met congestion, by their place in the burst.
    congested: FrameSet,
    /// Queues that any came from.
    queues: ClassSet,
    /// What is sent, by queue.
    sums: [BurstSum; CLASSES],
}

impl Chosen {
    /// And `run` of `queue`.
    #[inline]
    fn add(&mut self, queue: usize, run: Run) {
        self.sums[queue].add_run(run);
        self.queues.insert(queue);
    }

    #[inline]
    fn count(&self, counters: &PortCounters) {
        for queue in self.queues.iter() {
            counters.tx_frames[queue].add(self.sums[queue].frames());
            counters.tx_bytes[queue].add(self.sums[queue].bytes());
        }
    }
}

/// What a port has sent in a poll.
pub(super) struct Sent {
    pub frames: usize,
    /// Its bursts are used up, and something waits.
    pub has_more: bool,
}

impl<P: Packet> Pipeline<P> {
    /// Sends what `port` may now, in as many bursts as it may receive.
    #[inline]
    pub(super) fn transmit_bursts<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) -> Sent {
        let (mut frames, most) = (0, self.ports[port].bursts);
        for _ in 0..most {
            let sent = self.transmit(io, port, now);
            frames += sent;
            if sent < BURST {
                return Sent { frames, has_more: false };
            }
        }
        Sent { frames, has_more: self.ports[port].waiting != 0 }
    }

    /// A burst more of each of the ports that have `more`, and so on: of small frames a port has far more to send in a poll gap
    /// than bursts that are counted in large ones, and what a poll costs by itself is shared by what it moves. A round begins if
    /// the poll is younger than three quarters of the gap, and would be at its end if it takes as long as those before it:
    /// receiving may have taken half, and what has come should not have to stand for that. Without a clock there are none: a
    /// simulated core whose frames take no time counts on the least that a poll sends.
    #[inline(never)]
    pub(super) fn transmit_more<I: Ports<Pkt = P>>(&mut self, io: &mut I, mut more: PortSet, now: Ticks) -> usize {
        let Some(start) = io.time() else { return 0 };
        let (mut moved, mut rounds, mut time, latest) = (0, 0, start, self.telemetry.clock.half_gap() * 3 / 2);
        while !more.is_empty() && time.since(now) * rounds.max(1) + time.since(start) <= latest * rounds.max(1) {
            for port in more.iter() {
                let sent = self.transmit(io, port, now);
                moved += sent;
                more -= PortSet::only_if(sent < BURST, port);
            }
            rounds += 1;
            time = io.time().unwrap_or(time);
        }
        moved
    }

    /// Sends what `port` may send now. Returns the frames that the driver took; the others are first in their queues
    /// again, where a pause stops them.
    #[inline(never)]
    pub(super) fn transmit<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) -> usize {
        if self.ports[port].waiting == 0 {
            return 0;
        }
        let chosen = self.schedule(port, now);
        let posted = self.egress.posted.len();
        if posted == 0 {
            return 0;
        }
        self.mark(port, chosen.congested);
        io.tx(port, &mut self.egress.posted);
        let taken = posted - self.egress.posted.len();
        self.release(port, taken, &chosen);
        if !self.egress.posted.is_empty() {
            self.put_back(port);
            if taken == 0 {
                self.note_refusal(port, now);
            }
        }
        self.telemetry.gauges_dirty.insert(port);
        taken
    }

    /// What the driver did not take goes back to the head of its queues, the last frame first.
    #[cold]
    fn put_back(&mut self, port: usize) {
        let state = &mut self.ports[port];
        for (packet, desc) in self.egress.posted.drain(..).zip(self.egress.charges.drain(..)).rev() {
            let queue = desc.queue();
            let before = state.queues[queue].cells();
            // It has just left its slot, so there is one.
            if state.queues[queue].push_front(&mut self.egress.slab, packet, desc).is_ok() {
                state.waiting |= 1 << queue;
                self.buffer.reserves.update(port, queue, before, before + u32::from(desc.cells()));
            }
        }
    }

    /// Moves frames out of the queues until the wire is busy, the burst is full or nobody may send.
    #[inline]
    fn schedule(&mut self, port: usize, now: Ticks) -> Chosen {
        let mut chosen = Chosen::default();
        let state = &mut self.ports[port];
        let mut ready = state.waiting & !state.discarding & !state.stopped_queues(now);
        let Some(mut pace) = state.shaper.pace(now) else { return chosen };
        while ready != 0 && !self.egress.posted.is_full() && pace.is_free() {
            let (queues, scheduler) = {
                let state = &mut self.ports[port];
                (&state.queues, &mut state.scheduler)
            };
            let Some(queue) = scheduler.choose(ready, |queue| queues[queue].head_len(&self.egress.slab)) else { break };
            let before = self.ports[port].queues[queue].cells();
            let before_these = self.egress.posted.len();
            self.serve(port, queue, ready, &mut pace, &mut chosen);
            if self.egress.posted.len() == before_these {
                break;
            }
            let state = &mut self.ports[port];
            self.buffer.reserves.update(port, queue, before, state.queues[queue].cells());
            if state.queues[queue].is_empty() {
                ready &= !(1 << queue);
                state.waiting &= !(1 << queue);
                state.scheduler.emptied(queue);
            }
        }
        if !self.egress.posted.is_empty() {
            self.ports[port].shaper.keep(pace, now);
        }
        chosen
    }

    /// Moves frames out of `queue`, which of those that are `ready` has the turn, as long as it keeps it.
    #[inline]
    fn serve(&mut self, port: usize, queue: usize, ready: u8, pace: &mut Pace, chosen: &mut Chosen) {
        let Port { queues, scheduler, .. } = &mut self.ports[port];
        let frames = &mut queues[queue];
        let wred = self.queue_rule.wred(queue);
        let mut credit = scheduler.credit(queue, frames.head_len(&self.egress.slab), ready);
        loop {
            let descs = frames.first(&self.egress.slab);
            let (here, posted, depth) = (descs.len(), self.egress.posted.len(), frames.bytes());
            // Depths become less from here on.
            let is_short = wred.is_none_or(|wred| wred.probability(Bytes(depth)) == 0);
            // Of a queue that stands the packets have left the cache, and their headers too, which a mark is written to.
            frames.look_ahead(
                &self.egress.slab,
                |packet| if is_short { packet.prefetch() } else { packet.prefetch_ahead() },
            );
            let mut run = Run::default();
            for &desc in &descs[..here.min(self.egress.posted.remaining_capacity())] {
                let len = u32::from(desc.frame_len());
                if !pace.is_free() || !credit.spend(len) {
                    break;
                }
                pace.charge(len);
                // Instantaneous depth at dequeue, the leaving frame included.
                if let Some(wred) = wred
                    && desc.is_markable()
                {
                    // Thrown for each, so that who is marked does not depend on how frames come together.
                    let dice = self.egress.rng.roll();
                    if !is_short && wred.judge(Bytes(depth - run.bytes()), dice) == WredVerdict::Congested {
                        chosen.congested.insert(posted + run.frames as usize);
                    }
                }
                run = run.and(desc);
            }
            frames.take(&mut self.egress.slab, run, &mut self.egress.posted, &mut self.egress.charges);
            chosen.add(queue, run);
            if (run.frames as usize) < here || frames.is_empty() || self.egress.posted.is_full() {
                break;
            }
        }
        scheduler.keep_credit(queue, credit);
    }

    /// Marks those of the posted frames that are `congested`: when all are chosen, since what was not asked for a chunk ahead,
    /// or in vain, must come from memory first.
    #[inline]
    fn mark(&mut self, port: usize, congested: FrameSet) {
        congested.iter().for_each(|index| self.egress.posted[index].prefetch_bytes());
        for index in congested.iter() {
            let (packet, desc) = (&mut self.egress.posted[index], &mut self.egress.charges[index]);
            if let Some((l3, offset)) = desc.markable() {
                ecn::mark_ce(packet.bytes_mut(), l3, offset);
                *desc = desc.marked();
                self.telemetry.counters.ports[port].ecn_marked[desc.queue()].add(1);
            }
        }
    }

    /// The first `frames` of what `port` had posted, which were `chosen`, are the driver's now: their cells are free.
    #[inline]
    fn release(&mut self, port: usize, frames: usize, chosen: &Chosen) {
        if !mutant::is(Mutant::ReleasedWhenQueued) {
            // By runs of the same group: to add to one place in memory again and again waits for the store before each time.
            for charged in self.egress.charges[..frames].chunk_by(|one, next| one.is_charged_like(*next)) {
                let (ingress, group, _) = charged[0].charge();
                let cells = charged.iter().map(|desc| u32::from(desc.cells())).sum();
                self.buffer.releases.release(ingress, group, Cells(cells));
            }
        }
        let counters = &self.telemetry.counters.ports[port];
        if self.egress.posted.is_empty() {
            chosen.count(counters);
            self.egress.charges.clear();
        } else {
            let mut taken = Chosen::default();
            self.egress.charges.drain(..frames).for_each(|desc| taken.add(desc.queue(), Run::default().and(desc)));
            taken.count(counters);
        }
    }

    /// Discards at most `most` of the frames of `port` that are condemned.
    #[cold]
    pub(super) fn run_discards<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, most: usize) {
        let mut left = most;
        for queue in bits(u64::from(self.ports[port].discarding)) {
            let before = self.ports[port].queues[queue].cells();
            let (condemned, reason) = self.ports[port].discard[queue];
            let mut discarded = 0;
            while discarded < condemned && left > 0 {
                let Some((packet, desc)) = self.ports[port].queues[queue].pop(&mut self.egress.slab) else { break };
                self.buffer.uncharge(desc);
                self.drop_frame(io, packet, port, Some(desc.class()), reason);
                (discarded, left) = (discarded + 1, left - 1);
            }
            let state = &mut self.ports[port];
            self.buffer.reserves.update(port, queue, before, state.queues[queue].cells());
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
        self.telemetry.gauges_dirty.insert(port);
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
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
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
        self.links.refusing.set(port, state.is_refusing());
        state.schedule_discard(events.detected & dropping, DropReason::Watchdog);
    }
}
