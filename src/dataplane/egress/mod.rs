//! Egress: schedules frames of the queues, marks them, transmits them and releases their cells.

pub(crate) mod enqueue;
pub(crate) mod links;
#[cfg(test)]
mod pacing_tests;
pub mod queue;
pub(crate) mod stuck;
mod transmit;

use arrayvec::ArrayVec;

use super::buffer::Buffer;
use super::port::Port;
use super::spec::SwitchSpec;
use crate::dataplane::egress::queue::Slab;
use crate::dataplane::frame::desc::{BurstSum, FrameDesc, Run};
use crate::dataplane::telemetry::counters::PortCounters;
use crate::dataplane::telemetry::drops::DropReason;
use crate::io::{Burst, Packet, Ports};
use crate::mmu::{QueueAdmission, QueueReserves};
use crate::mutant::{self, Mutant};
use crate::qos::shaper::Pace;
use crate::qos::wred::{WredProfile, WredVerdict, XorShift};
use crate::sets::{BURST, CLASSES, ClassSet, FrameSet};
use crate::units::Ticks;
use crate::wire::ecn;

/// The egress state of one lcore: the memory of its queues, and the burst that is being sent.
#[derive(Debug)]
pub(crate) struct Egress<P> {
    pub slab: Slab<P>,
    /// Random numbers for WRED and ECN marks.
    pub rng: XorShift,
    /// The burst that is being sent, and the descriptor of each of its frames: empty except during a transmission.
    pub posted: Burst<P>,
    pub charges: ArrayVec<FrameDesc, BURST>,
}

impl<P> Egress<P> {
    pub fn new(spec: &SwitchSpec, seed: u32) -> Self {
        Self {
            slab: Slab::new(spec.buffer.total.0 as usize, spec.ports.len() * CLASSES),
            rng: XorShift::new(seed),
            posted: Burst::new(),
            charges: ArrayVec::new(),
        }
    }
}

/// The frames chosen for one burst.
#[derive(Debug, Default)]
struct Chosen {
    /// The frames that met congestion, by their index in the burst.
    congested: FrameSet,
    /// Queues of the chosen frames.
    queues: ClassSet,
    /// Sums of the chosen frames by queue.
    sums: [BurstSum; CLASSES],
}

impl Chosen {
    /// Adds `run` of `queue`.
    #[inline]
    fn add(&mut self, queue: usize, run: Run) {
        self.sums[queue].add_run(run);
        self.queues.insert(queue);
    }

    #[inline]
    fn count(&self, counters: &PortCounters) {
        for queue in self.queues.iter() {
            counters.tx_frames[queue].add(self.sums[queue].frames());
            counters.tx_bytes[queue].add(self.sums[queue].bytes().0);
        }
    }
}

/// A burst that was offered to the device.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offered {
    /// Frames that the device took.
    pub taken: usize,
    /// Whether the device was offered frames and took none.
    pub is_refused: bool,
}

/// An own port that sends.
pub(crate) struct Sender<'a> {
    pub number: usize,
    pub port: &'a mut Port,
    pub counters: &'a PortCounters,
}

impl<P: Packet> Egress<P> {
    /// Sends one burst of the frames that the port may send now: schedule, mark, transmit, release. Frames that the
    /// device does not take go back to the heads of their queues, so that a pause still stops them.
    #[inline(never)]
    pub fn transmit<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        from: Sender<'_>,
        buffer: &mut Buffer,
        rule: &QueueAdmission,
        now: Ticks,
    ) -> Offered {
        let Sender { number, port, counters } = from;
        let chosen = self.schedule((number, port), &buffer.reserves, rule, now);
        let posted = self.posted.len();
        if posted == 0 {
            return Offered::default();
        }
        self.mark(counters, chosen.congested);
        io.tx(number, &mut self.posted);
        let taken = posted - self.posted.len();
        self.release(taken, &chosen, buffer, counters);
        if !self.posted.is_empty() {
            self.put_back((number, port), &buffer.reserves);
        }
        Offered { taken, is_refused: taken == 0 }
    }

    /// Puts the frames that the device did not take back to the heads of their queues, the last frame first.
    #[cold]
    fn put_back(&mut self, (number, port): (usize, &mut Port), reserves: &QueueReserves) {
        for (packet, desc) in self.posted.drain(..).zip(self.charges.drain(..)).rev() {
            let queue = desc.queue();
            let before = port.queues[queue].cells();
            // The frame has just left its slot, so there is room for it.
            if port.queues[queue].push_front(&mut self.slab, packet, desc).is_ok() {
                port.waiting.insert(queue);
                reserves.update(number, queue, before, before + desc.cells());
            }
        }
    }

    /// Moves frames out of the queues until the wire is busy, the burst is full or no queue may send.
    #[inline]
    fn schedule(
        &mut self,
        (number, port): (usize, &mut Port),
        reserves: &QueueReserves,
        rule: &QueueAdmission,
        now: Ticks,
    ) -> Chosen {
        let mut chosen = Chosen::default();
        // IEEE 802.1Q clause 8.6.8: "a frame of priority n is not available for transmission if that priority is
        // paused".
        let mut ready = port.waiting - port.discarding - port.pfc.stopped_queues(now);
        let Some(mut pace) = port.shaper.pace(now) else { return chosen };
        while !ready.is_empty() && !self.posted.is_full() && pace.is_free() {
            let Port { queues, scheduler, .. } = port;
            let Some(queue) = scheduler.choose(ready, |queue| queues[queue].head_len(&self.slab).0 as u32) else {
                break;
            };
            let (before, posted) = (port.queues[queue].cells(), self.posted.len());
            self.serve(port, (queue, ready), rule.wred(queue), &mut pace, &mut chosen);
            if self.posted.len() == posted {
                break;
            }
            reserves.update(number, queue, before, port.queues[queue].cells());
            if port.queues[queue].is_empty() {
                ready.remove(queue);
                port.waiting.remove(queue);
                port.scheduler.emptied(queue);
            }
        }
        if !self.posted.is_empty() {
            port.shaper.keep(pace, now);
        }
        chosen
    }

    /// Moves frames out of `queue`, which the scheduler chose among the queues `ready`, as long as its turn lasts.
    #[inline]
    fn serve(
        &mut self,
        port: &mut Port,
        (queue, ready): (usize, ClassSet),
        wred: Option<&WredProfile>,
        pace: &mut Pace,
        chosen: &mut Chosen,
    ) {
        let Port { queues, scheduler, .. } = port;
        let frames = &mut queues[queue];
        let mut credit = scheduler.credit(queue, frames.head_len(&self.slab).0 as u32, ready);
        loop {
            let descs = frames.first(&self.slab);
            let (here, posted, depth) = (descs.len(), self.posted.len(), frames.bytes());
            // Depths only decrease from here on.
            let is_short = wred.is_none_or(|wred| wred.probability(depth) == 0);
            // The packets of a long queue have left the cache, and so have their headers, to which a mark is written.
            frames.look_ahead(&self.slab, |packet| if is_short { packet.prefetch() } else { packet.prefetch_ahead() });
            let mut run = Run::default();
            for &desc in &descs[..here.min(self.posted.remaining_capacity())] {
                let len = u32::from(desc.frame_len());
                if !pace.is_free() || !credit.spend(len) {
                    break;
                }
                pace.charge(len);
                // RFC 3168 section 5: "the router should first check to see if the ECT codepoint is set". The depth is
                // the instantaneous one at dequeue, including the leaving frame.
                if let Some(wred) = wred
                    && desc.is_markable()
                {
                    // One draw for each frame, so that marks do not depend on the size of bursts.
                    let draw = self.rng.roll();
                    if !is_short && wred.judge(depth - run.bytes(), draw) == WredVerdict::Congested {
                        chosen.congested.insert(posted + run.frames as usize);
                    }
                }
                run = run.and(desc);
            }
            frames.take(&mut self.slab, run, &mut self.posted, &mut self.charges);
            chosen.add(queue, run);
            if (run.frames as usize) < here || frames.is_empty() || self.posted.is_full() {
                break;
            }
        }
        scheduler.keep_credit(queue, credit);
    }

    /// Marks the `congested` frames of the posted ones. It runs after all are chosen, so that their headers can be
    /// prefetched.
    #[inline]
    fn mark(&mut self, counters: &PortCounters, congested: FrameSet) {
        congested.iter().for_each(|index| self.posted[index].prefetch_bytes());
        for index in congested.iter() {
            let (packet, desc) = (&mut self.posted[index], &mut self.charges[index]);
            if let Some((l3, offset)) = desc.markable() {
                ecn::mark_ce(packet.bytes_mut(), l3, offset);
                *desc = desc.marked();
                counters.ecn_marked[desc.queue()].add(1);
            }
        }
    }

    /// Releases the cells of the first `frames` of the posted ones, which the device took, and counts them.
    #[inline]
    fn release(&mut self, frames: usize, chosen: &Chosen, buffer: &mut Buffer, counters: &PortCounters) {
        if !mutant::is(Mutant::ReleasedWhenQueued) {
            // In runs of one group: consecutive stores to one address would each wait for the one before.
            for charged in self.charges[..frames].chunk_by(|one, next| one.is_charged_like(*next)) {
                let (ingress, group, _) = charged[0].charge();
                let cells = charged.iter().map(|desc| desc.cells()).sum();
                buffer.releases.release(ingress, group, cells);
            }
        }
        if self.posted.is_empty() {
            chosen.count(counters);
            self.charges.clear();
        } else {
            let mut taken = Chosen::default();
            self.charges.drain(..frames).for_each(|desc| taken.add(desc.queue(), Run::default().and(desc)));
            taken.count(counters);
        }
    }

    /// Takes up to `most` frames that must be discarded out of the port's queues, and releases their cells. Passes each
    /// to `drop` with its class and reason.
    #[cold]
    pub fn run_discards(
        &mut self,
        (number, port): (usize, &mut Port),
        buffer: &mut Buffer,
        most: usize,
        mut drop: impl FnMut(P, u8, DropReason),
    ) {
        let mut left = most;
        for queue in port.discarding.iter() {
            let before = port.queues[queue].cells();
            let (wanted, reason) = port.discard[queue];
            let mut discarded = 0;
            while discarded < wanted && left > 0 {
                let Some((packet, desc)) = port.queues[queue].pop(&mut self.slab) else { break };
                buffer.uncharge(desc);
                drop(packet, desc.class(), reason);
                (discarded, left) = (discarded + 1, left - 1);
            }
            buffer.reserves.update(number, queue, before, port.queues[queue].cells());
            port.finish_discard(queue, discarded);
        }
    }
}
