//! In-band telemetry: notes queue, time and sent bytes in the packets of classes that want it.
//!
//! A packet is noted when it has left its queue, before the device gets it.

use super::slots::Descs;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::port::Port;
use crate::io::{Burst, Packet};
use crate::plan::spec::SwitchSpec;
use crate::qos::shaper::Shaper;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Bytes, Ticks};
use crate::wire::inband::{self, Hop};

/// Times are in units of a 64th of a nanosecond: a clock of 64 bits lasts nine years.
const UNITS_PER_NS: u64 = 64;
const UNITS_PER_SECOND: u64 = UNITS_PER_NS * 1_000_000_000;
/// Fraction bits of the units of a byte on the wire, and of a tick.
const BYTE_PART: u32 = 16;
const TICK_PART: u32 = 32;

/// The notes of one port.
#[derive(Debug, Clone, Copy, Default)]
struct Notes {
    rate_code: u8,
    /// Time of a byte on the wire, in parts of a unit.
    byte_parts: u64,
    /// Bytes sent so far, with preamble and gap, and the time at which the wire is free.
    sent_bytes: u64,
    free_units: u64,
}

impl Notes {
    /// Time of `bytes` on the wire.
    #[inline]
    fn units(&self, bytes: u64) -> u64 {
        (bytes * self.byte_parts) >> BYTE_PART
    }
}

/// Writes notes into packets of the queues that want them.
#[derive(Debug)]
pub(super) struct Stamper {
    queues: ClassSet,
    ports: Box<[Notes]>,
    /// Units of a tick, in parts.
    tick_parts: u64,
}

/// A burst that a port posts.
pub(super) struct Posting<'a, P> {
    pub number: usize,
    pub port: &'a Port,
    pub frames: &'a mut Burst<P>,
    pub descs: &'a Descs,
    /// Bytes that the wire has to send before the first frame.
    pub ahead: Bytes,
}

impl Stamper {
    /// Creates the stamper of `spec` on a clock of `hz` ticks a second.
    pub fn new(spec: &SwitchSpec, hz: u64) -> Self {
        let parts = |units: u64, part: u32, per: u64| ((u128::from(units) << part) / u128::from(per.max(1))) as u64;
        let notes = |rate: BitRate| Notes {
            rate_code: inband::rate_code(rate),
            byte_parts: parts(8 * UNITS_PER_SECOND, BYTE_PART, rate.0),
            ..Notes::default()
        };
        Self {
            queues: spec.telemetry_queues,
            ports: spec.ports.iter().map(|port| notes(port.rate)).collect(),
            tick_parts: parts(UNITS_PER_SECOND, TICK_PART, hz),
        }
    }

    /// Whether any queue wants notes.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Notes the frames of `burst`, which have left their queues at `now`. A frame begins to leave when those before it
    /// have left, so each has its own time. The depth is that of a queue from which frames leave one by one: all before
    /// the frame, and those of its queue behind it.
    #[inline(never)]
    pub fn stamp<P: Packet>(&mut self, burst: Posting<'_, P>, now: Ticks) {
        let Posting { number, port, frames, descs, ahead } = burst;
        let notes = &mut self.ports[number];
        let wire = |desc: &FrameDesc| Shaper::wire_bytes(desc.frame_len().into());
        let total: u64 = descs.iter().map(wire).sum();
        let now = ((u128::from(now.0) * u128::from(self.tick_parts)) >> TICK_PART) as u64;
        let start = now.max(notes.free_units);
        let mut behind: [u64; CLASSES] =
            std::array::from_fn(|queue| port.queues[queue].bytes().0 + port.elsewhere(queue).bytes.0);
        let mut before = total;
        for (packet, desc) in frames.iter_mut().zip(descs).rev() {
            before -= wire(desc);
            let queue = desc.queue();
            if self.queues.contains(queue)
                && let Some(field) = inband::find(packet.bytes_mut(), desc.l3_offset().into())
            {
                let time_ns = (start + notes.units(before)) / UNITS_PER_NS;
                let depth = ahead.0 + before + behind[queue];
                inband::push(field, Hop::new(notes.rate_code, time_ns, notes.sent_bytes + before, depth));
            }
            behind[queue] += u64::from(desc.frame_len());
        }
        notes.sent_bytes += total;
        notes.free_units = start + notes.units(total);
    }

    /// Takes the notes of the frames `left` back, which the device did not take.
    #[cold]
    pub fn take_back<P: Packet>(&mut self, number: usize, left: &mut Burst<P>, descs: &Descs) {
        let notes = &mut self.ports[number];
        for (packet, desc) in left.iter_mut().zip(descs) {
            let bytes = Shaper::wire_bytes(desc.frame_len().into());
            notes.sent_bytes -= bytes;
            notes.free_units = notes.free_units.saturating_sub(notes.units(bytes));
            if self.queues.contains(desc.queue())
                && let Some(field) = inband::find(packet.bytes_mut(), desc.l3_offset().into())
            {
                inband::pop(field);
            }
        }
    }
}
