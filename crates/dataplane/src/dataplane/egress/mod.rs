//! Egress: schedules frames of the queues, marks them, transmits them and releases their cells.

pub(crate) mod abm;
#[cfg(test)]
mod abm_tests;
mod choose;
mod chosen;
pub(crate) mod congestion;
pub(crate) mod enqueue;
pub(crate) mod joint;
pub(crate) mod lag_drain;
pub(crate) mod links;
#[cfg(test)]
mod max_rate_tests;
#[cfg(test)]
mod pacing_tests;
pub mod queue;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod reverie_tests;
mod rings;
mod sample;
pub(crate) mod slack;
#[allow(unsafe_code)]
mod slots;
mod stamp;
pub(crate) mod stuck;
mod transmit;

use self::chosen::Chosen;
use self::slots::Descs;
use self::stamp::{Posting, Stamper};
use super::buffer::Buffer;
use super::port::Port;
use crate::dataplane::egress::queue::{Queue, Slab};
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::run::Run;
use crate::dataplane::mirror::lcore::{Mirror, MirrorEvent};
use crate::io::{Burst, Packet, Ports};
use crate::mmu::{HpccRule, QueueAdmission, QueueReserves};
use crate::mutant::{self, Mutant};
use crate::plan::counters::PortCounters;
use crate::plan::drops::DropReason;
use crate::plan::mirror::{CopyCause, QueueState};
use crate::plan::spec::SwitchSpec;
use crate::qos::Shaper;
use crate::qos::wred::XorShift;
use crate::sets::{CLASSES, FrameSet, LEAST_BURST, PortSet};
use crate::units::{Bytes, Cells, Ticks};
use crate::wire::ecn;

/// The egress state of one lcore: the memory of its queues, and the burst that is being sent.
#[derive(Debug)]
pub(crate) struct Egress<P> {
    pub slab: Slab<P>,
    /// All ports whose queues hold frames, and perhaps some whose queues have just become empty.
    pub waiting: PortSet,
    /// Ports that keep their frames: members of link aggregation groups that take flows over.
    pub closed: PortSet,
    /// Random numbers for WRED and ECN marks.
    pub rng: XorShift,
    /// The burst that is being sent, and the descriptor of each of its frames: empty except during a transmission.
    pub posted: Burst<P>,
    pub charges: Descs,
    /// Frames of a full burst.
    pub burst: usize,
    /// In-band telemetry of the packets that leave.
    stamper: Stamper,
    cell: Bytes,
    /// Beginning of the present poll.
    pub now: Ticks,
    /// Whether marks depend on the depth without the departing frame, by [`HpccRule::EcnAfterDeparture`].
    marks_after: bool,
}

impl<P> Egress<P> {
    /// Creates the egress state of an lcore of `spec`, on a clock of `hz` ticks a second.
    pub fn new(spec: &SwitchSpec, seed: u32, hz: u64) -> Self {
        Self {
            slab: Slab::new(spec.buffer.total.0 as usize, spec.ports.len() * CLASSES),
            waiting: PortSet::EMPTY,
            closed: PortSet::EMPTY,
            rng: XorShift::new(seed),
            posted: Burst::new(),
            charges: Descs::new(),
            burst: LEAST_BURST,
            stamper: Stamper::new(spec, hz),
            cell: spec.buffer.cell,
            now: Ticks(0),
            marks_after: spec.hpcc.contains(HpccRule::EcnAfterDeparture),
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

/// A port by which the lcore sends.
pub(crate) struct Sender<'a> {
    pub number: usize,
    pub port: &'a mut Port,
    pub counters: &'a PortCounters,
    pub mirror: &'a mut Mirror,
}

/// Marks a frame that is ECN-capable, as all frames are that meet congestion.
#[inline(always)]
fn mark_frame(packet: &mut impl Packet, desc: &mut FrameDesc) {
    // Most frames, at fixed places.
    if !desc.is_markable_untagged_ipv4() || !ecn::mark_untagged_ipv4(packet.bytes_mut()) {
        mark_other(packet.bytes_mut(), *desc);
    }
    *desc = desc.marked();
}

/// Marks any frame that is ECN-capable.
#[inline(never)]
fn mark_other(bytes: &mut [u8], desc: FrameDesc) {
    let Some((l3, offset)) = desc.markable() else { unreachable!("only ECN-capable frames meet congestion") };
    ecn::mark_ce(bytes, l3, offset);
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
        let Sender { number, port, counters, mirror } = from;
        // Filled in place: it is too large to be returned at no cost.
        let mut chosen = Chosen::default();
        if port.limited.is_empty() {
            self.schedule(number, port, &buffer.reserves, rule, now, &mut chosen);
        } else {
            port.count_held(counters, now);
            self.schedule_limited(number, port, &buffer.reserves, rule, now, &mut chosen);
        }
        let posted = self.posted.len();
        if posted == 0 {
            return Offered::default();
        }
        port.note_posted(&chosen);
        if !chosen.congested.is_empty() {
            self.mark(counters, &chosen);
            if mirror.wants_marked() {
                self.copy_marked(number, port, mirror, &chosen, now);
            }
        }
        if self.stamper.is_on() {
            let (frames, descs) = (&mut self.posted, &self.charges);
            self.stamper.stamp(Posting { number, port, frames, descs, ahead: chosen.posted }, now);
        }
        let is_paused = if port.pfc.is_obeyed_by_device() {
            self.offer_by_queue(io, number, port, now)
        } else {
            io.tx(number, &mut self.posted);
            false
        };
        let taken = posted - self.posted.len();
        if P::EMULATES && port.filters.is_some() {
            self.filter_depths(port, buffer, taken);
        }
        self.release(taken, &chosen, buffer, counters);
        port.takes_all = self.posted.is_empty() || is_paused;
        if !self.posted.is_empty() {
            self.put_back(number, port, &buffer.reserves);
        }
        Offered { taken, is_refused: taken == 0 && !is_paused }
    }

    /// Puts the frames that the device did not take back to the heads of their queues, the last frame first, without
    /// their notes of telemetry.
    #[cold]
    fn put_back(&mut self, number: usize, port: &mut Port, reserves: &QueueReserves) {
        if self.stamper.is_on() {
            self.stamper.take_back(number, &mut self.posted, &self.charges);
        }
        port.give_back(self.charges.iter().map(|desc| Shaper::wire_bytes(desc.frame_len().into())).sum());
        for (packet, desc) in self.posted.drain(..).zip(self.charges.drain(..)).rev() {
            let queue = desc.queue();
            port.max_rates.give_back(queue, Shaper::wire_bytes(desc.frame_len().into()));
            let before = port.queues[queue].cells();
            // The frame has just left its slot, so there is room for it.
            if port.queues[queue].push_front(&mut self.slab, packet, desc).is_ok() {
                port.waiting.insert(queue);
                reserves.update(number, queue, before, before + desc.cells());
            }
        }
    }

    /// Moves the filtered depths of Reverie for each of the first `taken` frames of the posted ones. Counts them for
    /// the filters of their groups too.
    #[cold]
    fn filter_depths(&self, port: &mut Port, buffer: &mut Buffer, taken: usize) {
        let Port { queues, filters: Some(filters), .. } = port else { return };
        let mut depths = queues.each_ref().map(Queue::cells);
        for desc in &self.charges {
            depths[desc.queue()] += desc.cells();
        }
        for desc in self.charges.iter().take(taken) {
            let queue = desc.queue();
            depths[queue] -= desc.cells();
            filters[queue].depart(depths[queue]);
            buffer.note_departure(*desc);
        }
    }

    /// Marks the congested frames of the posted ones. Not inlined: most bursts have none.
    #[inline(never)]
    fn mark(&mut self, counters: &PortCounters, chosen: &Chosen) {
        let frames = self.posted.iter_mut().zip(&mut self.charges);
        if chosen.congested == FrameSet::first(frames.len()) {
            frames.for_each(|(packet, desc)| mark_frame(packet, desc));
        } else {
            for index in chosen.congested.iter() {
                mark_frame(&mut self.posted[index], &mut self.charges[index]);
            }
        }
        chosen.count_marked(counters);
    }

    /// Copies the frames that were marked. The depth has all before the frame, and those of its queue behind it.
    #[cold]
    fn copy_marked(&self, number: usize, port: &Port, mirror: &mut Mirror, chosen: &Chosen, now: Ticks) {
        let mut ahead = chosen.posted.to_cells_ceil(self.cell) + self.charges.iter().map(|desc| desc.cells()).sum();
        let mut depths: [Cells; CLASSES] =
            std::array::from_fn(|queue| port.queues[queue].cells() + port.elsewhere(queue).cells);
        for (index, (packet, desc)) in self.posted.iter().zip(&self.charges).enumerate().rev() {
            let queue = desc.queue();
            depths[queue] += desc.cells();
            ahead -= desc.cells();
            if chosen.congested.contains(index) {
                let (cause, ingress, class) = (CopyCause::Marked, desc.ingress(), Some(desc.class()));
                let sessions = mirror.admit(cause, ingress, class, now);
                let (depth, egress) = (Some(depths[queue] + ahead), Some(number as u8));
                let queue = Some(QueueState { queue: queue as u8, depth, limit: None });
                let event = MirrorEvent { bytes: packet.bytes(), cause, ingress, egress, vlan: None, class, queue };
                mirror.copy(sessions, event, None, now);
            }
        }
    }

    /// Releases the cells of the first `frames` of the posted ones, which the device took, and counts them.
    #[inline]
    fn release(&mut self, frames: usize, chosen: &Chosen, buffer: &mut Buffer, counters: &PortCounters) {
        if !self.posted.is_empty() {
            return self.release_some(frames, buffer, counters);
        }
        if !mutant::is(Mutant::ReleasedWhenQueued) {
            chosen.release(buffer);
        }
        chosen.count(counters);
        self.charges.clear();
    }

    /// Does the work of [`Egress::release`] if the device did not take all frames.
    #[cold]
    fn release_some(&mut self, frames: usize, buffer: &mut Buffer, counters: &PortCounters) {
        let mut taken = Chosen::default();
        for desc in self.charges.drain(..frames) {
            taken.add(desc.queue(), Run::default().and(desc));
            if !mutant::is(Mutant::ReleasedWhenQueued) {
                buffer.uncharge(desc);
            }
        }
        taken.count(counters);
    }

    /// Takes up to `most` frames that must be discarded out of the port's queues, and releases their cells. Passes each
    /// to `drop` with its descriptor and reason.
    #[cold]
    pub fn run_discards(
        &mut self,
        number: usize,
        port: &mut Port,
        buffer: &mut Buffer,
        most: usize,
        mut drop: impl FnMut(P, FrameDesc, DropReason),
    ) {
        let mut left = most;
        for queue in port.discarding.iter() {
            let before = port.queues[queue].cells();
            let (wanted, reason) = port.discard[queue];
            let mut discarded = 0;
            while discarded < wanted && left > 0 {
                let Some((packet, desc)) = port.queues[queue].pop(&mut self.slab) else { break };
                buffer.uncharge(desc);
                if P::EMULATES {
                    buffer.note_departure(desc);
                }
                drop(packet, desc, reason);
                (discarded, left) = (discarded + 1, left - 1);
            }
            if P::EMULATES
                && let Some(filters) = &mut port.filters
            {
                filters[queue].depart(port.queues[queue].cells());
            }
            buffer.reserves.update(number, queue, before, port.queues[queue].cells());
            port.finish_discard(queue, discarded);
        }
    }
}
