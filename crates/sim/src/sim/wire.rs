//! One direction of a cable: frames leave one after the other, and arrive after the delay of the cable.

use std::collections::VecDeque;

use super::frame::{FrameKind, Pool, SimPacket};
use super::rng::Rng;
use super::spec::End;
use crate::headroom::PICOSECONDS_PER_MM;
use crate::io::Packet;
use crate::qos::shaper::MIN_FRAME;
use crate::sets::PortSet;
use crate::units::{BitRate, Length};

/// Frame check sequence, preamble and delimiter: bytes around a frame that precede its complete arrival.
const AROUND: u64 = 4 + 8;
/// The interframe gap after a frame (IEEE 802.3 4.4.2).
const GAP: u64 = 12;
/// Picoseconds of a byte at one bit a second.
const PS_OF_BYTE_AT_1_BPS: u64 = 8_000_000_000_000;

/// One direction of a cable.
#[derive(Debug)]
pub struct Wire {
    /// The receiving end.
    pub to: End,
    /// Rate in bit/s.
    rate: u64,
    delay_ps: u64,
    /// Earliest time at which the next frame begins, rounded down, and what was cut off in parts of a picosecond by
    /// `rate`. A long run of frames would otherwise lag behind the wire of a rate that does not divide its times.
    free_at: u64,
    remainder: u64,
    /// Frames on their way, each with the arrival time of its last bit.
    flying: VecDeque<(u64, SimPacket)>,
    /// Start times of posted frames that have not begun yet.
    waiting: VecDeque<u64>,
    /// Whether its receiving end is with another thread. The frames on their way go there after the window.
    pub is_crossing: bool,
    /// Whether the link is up.
    pub is_up: bool,
    /// Number of frames lost in a million: data, PFC.
    pub loses: [u32; 2],
    /// Frames lost by these rates or by a link that is down: data, PFC.
    pub lost: [u64; 2],
}

impl Wire {
    /// Returns an idle wire.
    #[must_use]
    pub fn new(to: End, rate: BitRate, length: Length) -> Self {
        Self {
            to,
            rate: rate.0.max(1),
            delay_ps: length.mm.saturating_mul(PICOSECONDS_PER_MM),
            free_at: 0,
            remainder: 0,
            flying: VecDeque::new(),
            waiting: VecDeque::new(),
            is_crossing: false,
            is_up: true,
            loses: [0; 2],
            lost: [0; 2],
        }
    }

    /// Returns the time that `bytes` take, in picoseconds.
    #[inline]
    fn time_of(&self, bytes: u64) -> u64 {
        // A frame has fewer than 2^14 bytes: no product overflows.
        (bytes * PS_OF_BYTE_AT_1_BPS).div_ceil(self.rate)
    }

    /// Bytes that a frame of `len` takes on the wire, with the gap behind it.
    #[inline]
    fn on_wire(len: usize) -> u64 {
        len.max(MIN_FRAME as usize) as u64 + AROUND + GAP
    }

    /// Returns the time from the first bit of a frame of `len` bytes at one end to its last bit at the other.
    #[inline]
    #[must_use]
    pub fn crossing_ps(&self, len: usize) -> u64 {
        self.time_of(len.max(MIN_FRAME as usize) as u64 + AROUND) + self.delay_ps
    }

    /// Returns the earliest time at which the next frame begins.
    #[inline]
    #[must_use]
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// Counts the posted frames that have not begun by `now`.
    pub fn waiting(&mut self, now: u64) -> usize {
        while self.waiting.front().is_some_and(|start| *start <= now) {
            self.waiting.pop_front();
        }
        self.waiting.len()
    }

    /// Posts a frame, which leaves after the frames before it. Returns the time at which it begins.
    #[inline]
    pub fn send(&mut self, packet: SimPacket, now: u64, pool: &mut Pool, faults: &mut Rng) -> u64 {
        let len = packet.len();
        let start = self.free_at.max(now);
        let before = if self.free_at == start { self.remainder } else { 0 };
        let parts = Self::on_wire(len) * PS_OF_BYTE_AT_1_BPS + before;
        (self.free_at, self.remainder) = (start + parts / self.rate, parts % self.rate);
        if start > now {
            self.waiting.push_back(start);
        }
        let is_pfc = packet.cargo.kind == FrameKind::Pfc;
        let chance = self.loses[usize::from(is_pfc)];
        if !self.is_up || chance > 0 && faults.chance(chance) {
            self.lost[usize::from(is_pfc)] += 1;
            pool.drop_frame(packet);
            return start;
        }
        let arrival = start + self.crossing_ps(len);
        self.flying.push_back((arrival, packet));
        start
    }

    /// Returns the sending end of the wire for another thread; this one keeps the receiving end.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let waiting = std::mem::take(&mut self.waiting);
        Self { flying: VecDeque::new(), waiting, is_crossing: true, ..*self }
    }

    /// Takes back the sending end of the wire, all of whose frames were passed on.
    pub fn unite(&mut self, sending: Self) {
        debug_assert!(sending.flying.is_empty(), "frames were passed on");
        let flying = std::mem::take(&mut self.flying);
        *self = Self { flying, is_crossing: false, ..sending };
    }

    /// Takes the frames on their way.
    pub fn take_flying(&mut self) -> VecDeque<(u64, SimPacket)> {
        std::mem::take(&mut self.flying)
    }

    /// Adds frames that were sent at the other end.
    pub fn deliver(&mut self, frames: &mut VecDeque<(u64, SimPacket)>) {
        if self.flying.is_empty() {
            std::mem::swap(&mut self.flying, frames);
        } else {
            self.flying.append(frames);
        }
    }

    /// Returns when the next frame arrives.
    #[inline]
    #[must_use]
    pub fn next_arrival(&self) -> Option<u64> {
        self.flying.front().map(|(at, _)| *at)
    }

    /// Returns the next frame that has arrived by `now`, with its arrival time.
    #[inline]
    pub fn arrived(&mut self, now: u64) -> Option<(u64, SimPacket)> {
        if self.next_arrival()? > now {
            return None;
        }
        self.flying.pop_front()
    }

    /// Counts the frames on their way.
    #[must_use]
    pub fn flying(&self) -> usize {
        self.flying.len()
    }

    /// Counts the PFC frames on their way.
    #[must_use]
    pub fn flying_pfc(&self) -> usize {
        self.flying.iter().filter(|(_, packet)| packet.cargo.kind == FrameKind::Pfc).count()
    }

    /// Takes the link down: frames on their way are lost.
    pub fn cut(&mut self, now: u64, pool: &mut Pool) {
        self.is_up = false;
        self.free_at = self.free_at.min(now);
        self.waiting.clear();
        for (_, packet) in self.flying.drain(..) {
            self.lost[usize::from(packet.cargo.kind == FrameKind::Pfc)] += 1;
            pool.drop_frame(packet);
        }
    }
}

/// Times of the next arrivals at switches, side by side, so that a poll need not look at each wire.
#[derive(Debug)]
pub struct Arrivals {
    /// By switch and port; `u64::MAX`: no frame is on its way.
    ports: Vec<Box<[u64]>>,
}

impl Arrivals {
    /// Returns the arrivals of switches with these numbers of ports, before any frame was sent.
    pub fn new(ports: impl Iterator<Item = usize>) -> Self {
        Self { ports: ports.map(|count| vec![u64::MAX; count].into_boxed_slice()).collect() }
    }

    /// Returns the ports of `switch` at which frames have arrived by `now`.
    #[inline]
    #[must_use]
    pub fn arrived(&self, switch: usize, now: u64) -> PortSet {
        let times = self.ports[switch].iter().enumerate();
        times.fold(PortSet::EMPTY, |ports, (port, at)| ports | PortSet::only_if(*at <= now, port))
    }

    /// Returns the time at which the next frame arrives at any port of `switch`; `u64::MAX` if none is on its way.
    #[must_use]
    pub fn earliest_ps(&self, switch: usize) -> u64 {
        self.ports[switch].iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Moves the arrivals of `switch` to `to`.
    pub fn give(&mut self, switch: usize, to: &mut Self) {
        to.ports[switch] = std::mem::take(&mut self.ports[switch]);
    }

    /// Takes over the next arrival of `wire`, which has changed.
    #[inline]
    pub fn update(&mut self, wire: &Wire) {
        if let End::Port(port) = wire.to
            && !wire.is_crossing
        {
            self.ports[port.switch][port.port] = wire.next_arrival().unwrap_or(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::frame::Cargo;

    fn wire(rate: u64, metres: u64) -> Wire {
        Wire::new(End::Host(1), BitRate(rate), Length::metres(metres))
    }

    fn packet(pool: &mut Pool, len: usize) -> SimPacket {
        pool.make(&[], len, Cargo::of(FrameKind::Data))
    }

    #[test]
    fn frame_arrives_after_its_wire_time_and_the_cable_delay() {
        let (mut pool, mut rng, mut wire) = (Pool::default(), Rng::new(1, 1), wire(100_000_000_000, 300));
        // 1500 B and 12 B around them at 80 ps per byte; the cable delays by 1.5 us.
        let frames = [packet(&mut pool, 1500), packet(&mut pool, 20)];
        let starts: Vec<u64> = frames.into_iter().map(|frame| wire.send(frame, 1000, &mut pool, &mut rng)).collect();
        assert_eq!(starts, [1000, 1000 + 1524 * 80]);
        assert_eq!(wire.next_arrival(), Some(1000 + 1512 * 80 + 1_500_000));
        assert_eq!(wire.free_at(), 1000 + 1524 * 80 + 84 * 80, "a short frame is padded");
        assert_eq!((wire.waiting(1000), wire.waiting(starts[1])), (1, 0));
        assert!(wire.arrived(1_621_959).is_none());
        assert_eq!(wire.arrived(1_621_960).map(|(at, _)| at), Some(1_621_960));
    }

    /// Each frame takes 87,099.35 ps.
    #[test]
    fn frames_in_a_row_take_the_time_of_their_sum() {
        let rate = 103_244_274_000;
        let (mut pool, mut rng, mut wire) = (Pool::default(), Rng::new(1, 1), wire(rate, 1));
        for _ in 0..10_000 {
            let frame = packet(&mut pool, 1100);
            wire.send(frame, 0, &mut pool, &mut rng);
        }
        let sum = u128::from(10_000 * 1124_u64) * u128::from(PS_OF_BYTE_AT_1_BPS) / u128::from(rate);
        assert_eq!(u128::from(wire.free_at()), sum);
    }

    #[test]
    fn cut_cable_loses_the_frames_in_flight() {
        let (mut pool, mut rng, mut wire) = (Pool::default(), Rng::new(1, 1), wire(10_000_000_000, 1));
        for _ in 0..3 {
            let frame = packet(&mut pool, 100);
            wire.send(frame, 0, &mut pool, &mut rng);
        }
        wire.cut(50, &mut pool);
        assert_eq!((wire.lost, wire.flying(), pool.taken()), ([3, 0], 0, 0));
        let frame = packet(&mut pool, 100);
        wire.send(frame, 60, &mut pool, &mut rng);
        assert_eq!((wire.lost[0], pool.taken()), (4, 0));
    }
}
