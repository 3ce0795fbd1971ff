//! The device behind a port of a simulated switch: its receive ring, its wires, and the pauses that it has read.

use std::collections::VecDeque;

use super::EPOCH;
use super::frame::{Cargo, FrameKind, Pool, SimFrame, SimPacket};
use super::load::PS;
use super::own::Own;
use super::rng::Rng;
use super::spec::PollSpec;
use super::watch::Watch;
use super::wire::{Arrivals, Wire};
use crate::io::{self, Burst, Packet, Ports};
use crate::sets::{CLASSES, ClassSet, FrameSet, PortSet};
use crate::units::Ticks;
use crate::wire::mac_control;

/// The device behind a switch port.
#[derive(Debug)]
pub struct Device {
    /// The wire that the port sends on, and the one it receives from; `None` without a cable.
    pub wires: Option<(usize, usize)>,
    /// Frames received but not polled yet.
    pub ring: VecDeque<SimPacket>,
    /// Capacity of the receive ring, in frames.
    pub descriptors: usize,
    /// Frames that may be posted for transmission.
    pub tx_descriptors: usize,
    /// Frames dropped because the ring was full.
    pub missed: u64,
    /// Frames among `missed` other than PFC.
    pub missed_data: u64,
    /// Lossless frames among `missed`.
    pub missed_lossless: u64,
    /// First missed lossless frame that the checks have not handled yet: its flow, and how many frames in the ring were
    /// not lossless then.
    pub first_missed: Option<(u32, usize)>,
    /// Most frames in the ring at a time.
    pub highest: usize,
    /// End of the pause of each priority, by the last PFC frame that was polled.
    pub(super) silent_until: [u64; CLASSES],
    /// Priorities whose pauses the lcore that owns the port obeys.
    pub(super) obeyed: ClassSet,
    /// Whether the lcore that owns the port considers its link up.
    pub(super) is_believed_up: bool,
}

impl Device {
    pub(super) fn is_up(&self, world: &World<'_>) -> bool {
        self.wires.is_some_and(|(out, _)| world.wires[out].is_up)
    }

    /// Records the link state that the lcore has read. When the link goes down, all pauses of the peer become void,
    /// including PFC frames still in the ring.
    pub(super) fn believe(&mut self, up: bool) {
        self.is_believed_up = up;
        if !up {
            self.silent_until = [0; CLASSES];
        }
    }

    /// Applies a PFC frame that the lcore polled.
    /// Returns the latest end of a pause that it has begun; zero if there is none.
    fn receive_pfc(&mut self, packet: &SimPacket, now: u64, world: &World<'_>) -> u64 {
        if !self.is_believed_up {
            return 0;
        }
        let (Some((_, wire)), Some(frame)) = (self.wires, packet.pfc()) else {
            return 0;
        };
        for priority in frame.enabled.iter() {
            let quanta = frame.quanta[priority].0;
            // XON ends the pause for a lcore whose poll began earlier, too.
            self.silent_until[priority] = if quanta == 0 { 0 } else { now + world.watch.pause_ps(wire, quanta) };
        }
        self.silent_until.into_iter().max().unwrap_or(0)
    }

    /// Moves frames that have arrived by `now` into the ring.
    pub(super) fn receive(&mut self, now: u64, world: &mut World<'_>) {
        let Some((_, wire)) = self.wires else { return };
        while let Some((at, packet)) = world.wires[wire].arrived(now) {
            if let Some(frame) = packet.pfc() {
                world.watch.pfc_received(wire, &frame, at);
            }
            if self.ring.len() < self.descriptors {
                self.ring.push_back(packet);
                continue;
            }
            self.missed += 1;
            self.missed_data += u64::from(packet.cargo.kind != FrameKind::Pfc);
            self.missed_lossless += u64::from(packet.cargo.is_lossless);
            if packet.cargo.is_lossless && self.first_missed.is_none() {
                let lossless = self.ring.iter().filter(|packet| packet.cargo.is_lossless).count();
                self.first_missed = Some((packet.cargo.flow, self.ring.len() - lossless));
            }
            world.pool.drop_frame(packet);
        }
        self.highest = self.highest.max(self.ring.len());
        world.arrivals.update(&world.wires[wire]);
    }
}

/// The parts of the simulation outside a switch that the switch accesses.
pub struct World<'a> {
    /// All wires.
    pub wires: &'a mut Own<Wire>,
    /// Next arrivals at all switches.
    pub arrivals: &'a mut Arrivals,
    /// Pool of frame buffers.
    pub pool: &'a mut Pool,
    /// The observer of all pauses and invariants.
    pub watch: &'a mut Watch,
    /// Random numbers of faults on wires.
    pub faults: &'a mut Rng,
    /// Wires on which the switch has sent.
    pub used: &'a mut Vec<usize>,
}

/// The device interface of the pipeline during one half of a poll.
pub(super) struct End<'a, 'b> {
    pub(super) devices: &'a mut [Device],
    pub(super) filled: &'a mut PortSet,
    pub(super) now: u64,
    pub(super) copies: &'a mut u64,
    pub(super) silent_until_ps: &'a mut u64,
    pub(super) world: &'a mut World<'b>,
    pub(super) poll: PollSpec,
    /// Beginning of the poll.
    pub(super) began_ps: u64,
    /// Time that frames have taken since then, in picoseconds.
    pub(super) worked_ps: u64,
}

impl End<'_, '_> {
    /// Does the work of [`Ports::rx`] for a ring with frames.
    fn receive(&mut self, port: usize, most: usize, out: &mut Burst<SimPacket>) {
        let (device, before) = (&mut self.devices[port], out.len());
        let until = out.capacity().min(before + most);
        while out.len() < until
            && let Some(packet) = device.ring.pop_front()
        {
            if packet.cargo.kind == FrameKind::Pfc {
                let until = device.receive_pfc(&packet, self.now, self.world);
                *self.silent_until_ps = until.max(*self.silent_until_ps);
            }
            out.push(packet);
        }
        self.filled.set(port, !device.ring.is_empty());
        self.worked_ps += self.poll.frame.0 * PS * (out.len() - before) as u64;
    }
}

impl Ports for End<'_, '_> {
    type Pkt = SimPacket;
    const KNOWS_FILLED: bool = true;

    #[inline]
    fn filled(&self) -> PortSet {
        *self.filled
    }

    #[inline(always)]
    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<SimPacket>) {
        // Most rings are empty.
        if !self.devices[port].ring.is_empty() {
            self.receive(port, most, out);
        }
    }

    /// Returns the time of the poll plus the time of its frames, if frames take time. Frames that arrive meanwhile wait
    /// for the next poll.
    fn time(&mut self) -> Option<Ticks> {
        (self.poll.frame.0 > 0).then(|| Ticks(EPOCH + self.began_ps + self.worked_ps))
    }

    fn shed(&mut self, packets: &mut Burst<SimPacket>, frames: FrameSet) {
        self.worked_ps -= (self.poll.frame.0 - self.poll.shed.0) * PS * frames.len() as u64;
        io::shed(self, packets, frames);
    }

    fn backlog(&mut self, port: usize, _: ClassSet) -> Option<usize> {
        Some(self.devices[port].ring.len())
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<SimPacket>) {
        let device = &mut self.devices[port];
        let Some((wire, _)) = device.wires else {
            // No cable is connected. The frame disappears, as on a port without a cable whose device reports a link.
            packets.drain(..).for_each(|packet| self.world.pool.drop_frame(packet));
            return;
        };
        let out = &mut self.world.wires[wire];
        let room = device.tx_descriptors.saturating_sub(out.waiting(self.now));
        let count = packets.len().min(room);
        for packet in packets.drain(..count) {
            // Frames that the switch makes take no time.
            if !matches!(packet.cargo.kind, FrameKind::Pfc | FrameKind::Cnm) {
                self.worked_ps += self.poll.frame.0 * PS;
            }
            out.send(packet, self.now, self.world.pool, self.world.faults);
        }
        if count > 0 {
            self.world.arrivals.update(out);
            self.world.used.push(wire);
        }
    }

    fn free(&mut self, packets: &mut Burst<SimPacket>) {
        packets.drain(..).for_each(|packet| self.world.pool.drop_frame(packet));
    }

    fn copy(&mut self, packet: &SimPacket) -> Option<SimPacket> {
        *self.copies += 1;
        Some(self.world.pool.make(packet.bytes(), packet.len(), packet.cargo))
    }

    fn make(&mut self, frame: &[u8]) -> Option<SimPacket> {
        // A switch creates PFC frames and messages of QCN.
        let is_pfc = frame.get(12..14) == Some(&mac_control::ETHERTYPE.to_be_bytes());
        let kind = if is_pfc { FrameKind::Pfc } else { FrameKind::Cnm };
        Some(self.world.pool.make(frame, frame.len(), Cargo::of(kind)))
    }
}
