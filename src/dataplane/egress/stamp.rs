//! In-band telemetry: notes queue, time and sent bytes in each packet of a class that wants it, when it has left its
//! queue and before the device gets it.

use super::slots::Descs;
use crate::dataplane::port::Port;
use crate::dataplane::spec::SwitchSpec;
use crate::io::{Burst, Packet};
use crate::qos::shaper::Shaper;
use crate::sets::{CLASSES, ClassSet};
use crate::units::Ticks;
use crate::wire::inband::{self, Hop};

/// Fraction bits of the time of a byte, and of the nanoseconds of a tick.
const PART: u32 = 16;

/// The notes of one port.
#[derive(Debug, Clone, Copy, Default)]
struct Notes {
    rate_code: u8,
    /// Time of a byte on the wire, in parts of a nanosecond.
    byte: u64,
    /// Bytes sent so far, with preamble and gap, and the time in nanoseconds at which the wire is free.
    sent_bytes: u64,
    free_ns: u64,
}

/// Writes notes into packets of the queues that want them. Without such queues it has no ports.
#[derive(Debug)]
pub(super) struct Stamper {
    queues: ClassSet,
    ports: Box<[Notes]>,
    /// Nanoseconds of a tick, in parts.
    tick: u64,
}

impl Stamper {
    /// Creates the stamper of `spec` on a clock of `hz` ticks a second.
    pub fn new(spec: &SwitchSpec, hz: u64) -> Self {
        let parts = |units: u64, per: u64| ((u128::from(units) << PART) / u128::from(per.max(1))) as u64;
        let notes = |rate: crate::units::BitRate| Notes {
            rate_code: inband::rate_code(rate),
            byte: parts(8_000_000_000, rate.0),
            ..Notes::default()
        };
        Self {
            queues: spec.telemetry_queues,
            ports: spec.ports.iter().map(|port| notes(port.rate)).collect(),
            tick: parts(1_000_000_000, hz),
        }
    }

    /// Whether any queue wants notes.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Notes the frames `posted` of port `number`, which have left their queues at `now`. A frame begins to leave when
    /// those before it have left, so each has a time of its own; those behind it still count as waiting.
    #[inline(never)]
    pub fn stamp<P: Packet>(
        &mut self,
        (number, port): (usize, &Port),
        posted: &mut Burst<P>,
        descs: &Descs,
        now: Ticks,
    ) {
        let notes = &mut self.ports[number];
        let wire = |desc: &crate::dataplane::frame::desc::FrameDesc| Shaper::wire_bytes(desc.frame_len().into());
        let total: u64 = descs.iter().map(wire).sum();
        let now_ns = ((u128::from(now.0) * u128::from(self.tick)) >> PART) as u64;
        let start_ns = now_ns.max(notes.free_ns);
        let mut behind: [u64; CLASSES] =
            std::array::from_fn(|queue| port.queues[queue].bytes().0 + port.elsewhere(queue).bytes.0);
        let mut before = total;
        for (packet, desc) in posted.iter_mut().zip(descs).rev() {
            before -= wire(desc);
            let queue = desc.queue();
            if self.queues.contains(queue)
                && let Some(field) = inband::find(packet.bytes_mut(), desc.l3_offset().into())
            {
                let time_ns = start_ns + ((before * notes.byte) >> PART);
                inband::push(field, Hop::new(notes.rate_code, time_ns, notes.sent_bytes + before, behind[queue]));
            }
            behind[queue] += u64::from(desc.frame_len());
        }
        notes.sent_bytes += total;
        notes.free_ns = start_ns + ((total * notes.byte) >> PART);
    }

    /// Takes the notes of the frames `left` back, which the device did not take.
    #[cold]
    pub fn take_back<P: Packet>(&mut self, number: usize, left: &mut Burst<P>, descs: &Descs) {
        let notes = &mut self.ports[number];
        for (packet, desc) in left.iter_mut().zip(descs) {
            let bytes = Shaper::wire_bytes(desc.frame_len().into());
            notes.sent_bytes -= bytes;
            notes.free_ns = notes.free_ns.saturating_sub((bytes * notes.byte) >> PART);
            if self.queues.contains(desc.queue())
                && let Some(field) = inband::find(packet.bytes_mut(), desc.l3_offset().into())
            {
                inband::pop(field);
            }
        }
    }
}
