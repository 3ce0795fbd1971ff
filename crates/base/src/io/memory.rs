//! Ports in memory: the switch without devices, for tests, benchmarks and the simulator.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::io::{Burst, Packet, Ports};
use crate::sets::{CLASSES, ClassSet};
use crate::sync::{AtomicUsize, Ordering};

/// Free bytes in front of a frame, as in DPDK's mbufs.
const FRONT: usize = 128;

/// A frame in its own buffer, with additional data of its creator.
#[derive(Debug)]
pub struct MemPacket<C = ()> {
    buffer: Box<[u8]>,
    start: u32,
    end: u32,
    /// Data of the frame's creator; the switch does not read it.
    pub cargo: C,
}

impl MemPacket {
    /// Creates a buffer that holds `frame`.
    #[must_use]
    pub fn new(frame: &[u8]) -> Self {
        let mut buffer = vec![0; FRONT + frame.len()].into_boxed_slice();
        buffer[FRONT..].copy_from_slice(frame);
        let len = frame.len();
        Self::in_buffer(buffer, FRONT, len, ())
    }
}

impl<C> MemPacket<C> {
    /// Creates a packet of the `len` bytes from `start` on in an existing buffer.
    ///
    /// # Panics
    /// If the buffer is too short.
    #[inline]
    #[must_use]
    pub fn in_buffer(buffer: Box<[u8]>, start: usize, len: usize, cargo: C) -> Self {
        assert!(start + len <= buffer.len(), "a frame within its buffer");
        Self { start: start as u32, end: (start + len) as u32, buffer, cargo }
    }

    /// Returns the buffer, for another frame.
    #[inline]
    #[must_use]
    pub fn into_buffer(self) -> Box<[u8]> {
        self.buffer
    }
}

impl<C: Send> Packet for MemPacket<C> {
    const EMULATES: bool = true;

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start as usize..self.end as usize]
    }

    #[inline]
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn push_front(&mut self, n: usize) -> bool {
        let room = self.start as usize >= n;
        if room {
            self.start -= n as u32;
        }
        room
    }

    fn pull_front(&mut self, n: usize) -> bool {
        let enough = self.len() >= n;
        if enough {
            self.start += n as u32;
        }
        enough
    }
}

/// Ports whose wires are queues. They count their buffers, so that a test detects a leak.
#[derive(Debug)]
pub struct MemPorts {
    wires: Vec<Wire>,
    /// Buffers inside the switch: received or made, and neither sent nor freed. Shared by the ports of a switch whose
    /// lcores each have their own `MemPorts`.
    held: Arc<AtomicUsize>,
    /// Number of buffers available for copies and control frames; tests lower it.
    pub spare_buffers: usize,
    /// Copies made for flooding.
    pub copies: u64,
    /// Each receive call rounds the number of frames asked for down to a multiple of this, like a vector driver.
    pub receive_multiple: usize,
}

#[derive(Debug, Default)]
struct Wire {
    /// Frames on their way to the switch, by receive queue.
    to_switch: [VecDeque<MemPacket>; CLASSES],
    from_switch: VecDeque<Vec<u8>>,
    /// Capacity of the receive ring in frames; further frames are lost.
    ring: Option<usize>,
    missed: u64,
    /// Frames that the port still takes before it reports a full ring.
    room: Option<usize>,
    /// Frames that each transmit queue still takes from [`Ports::tx_queue`].
    room_of: [Option<usize>; CLASSES],
}

impl MemPorts {
    /// Creates `ports` ports without traffic.
    #[must_use]
    pub fn new(ports: usize) -> Self {
        Self {
            wires: (0..ports).map(|_| Wire::default()).collect(),
            held: Arc::default(),
            spare_buffers: usize::MAX,
            copies: 0,
            receive_multiple: 1,
        }
    }

    /// Delivers `frame` to `port`.
    pub fn inject(&mut self, port: usize, frame: &[u8]) {
        self.inject_queue(port, 0, frame);
    }

    /// Delivers `frame` to receive queue `queue` of `port`.
    pub fn inject_queue(&mut self, port: usize, queue: usize, frame: &[u8]) {
        let wire = &mut self.wires[port];
        if wire.ring.is_some_and(|ring| wire.to_switch[queue].len() >= ring) {
            wire.missed += 1;
        } else {
            wire.to_switch[queue].push_back(MemPacket::new(frame));
        }
    }

    /// Limits the receive ring of `port` to `frames`. A full ring loses further frames, like a NIC's.
    pub fn set_ring(&mut self, port: usize, frames: usize) {
        self.wires[port].ring = Some(frames);
    }

    /// Frames that the receive ring of `port` had no room for.
    #[must_use]
    pub fn missed(&self, port: usize) -> u64 {
        self.wires[port].missed
    }

    /// The next frame that `port` sent.
    pub fn sent(&mut self, port: usize) -> Option<Vec<u8>> {
        self.wires[port].from_switch.pop_front()
    }

    /// All frames that `port` sent.
    pub fn sent_all(&mut self, port: usize) -> Vec<Vec<u8>> {
        self.wires[port].from_switch.drain(..).collect()
    }

    /// Makes `port` take `room` further frames and then none; `None`: any number.
    pub fn set_room(&mut self, port: usize, room: Option<usize>) {
        self.wires[port].room = room;
    }

    /// Makes transmit queue `queue` of `port` take `room` further frames and then none; `None`: any number.
    pub fn set_room_of(&mut self, port: usize, queue: usize, room: Option<usize>) {
        self.wires[port].room_of[queue] = room;
    }

    /// Buffers inside the switch.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Creates as many idle ports for another lcore of the same switch; both count their buffers together.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self { held: self.held.clone(), ..Self::new(self.wires.len()) }
    }

    fn give_back(&self, buffers: usize) {
        let before = self.held.fetch_sub(buffers, Ordering::Relaxed);
        assert!(before >= buffers, "more buffers left than came");
    }
}

impl Ports for MemPorts {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        self.rx_queue(port, 0, most, out);
    }

    fn rx_queue(&mut self, port: usize, queue: usize, most: usize, out: &mut Burst<MemPacket>) {
        let most = most - most % self.receive_multiple;
        let wire = &mut self.wires[port].to_switch[queue];
        let count = wire.len().min(most).min(out.remaining_capacity());
        self.held.fetch_add(count, Ordering::Relaxed);
        out.extend(wire.drain(..count));
    }

    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        Some(queues.iter().map(|queue| self.wires[port].to_switch[queue].len()).sum())
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        let wire = &mut self.wires[port];
        let taken = packets.len().min(wire.room.unwrap_or(usize::MAX));
        wire.room = wire.room.map(|room| room - taken);
        wire.from_switch.extend(packets.drain(..taken).map(|packet| packet.bytes().to_vec()));
        self.give_back(taken);
    }

    fn tx_queue(&mut self, port: usize, queue: usize, packets: &mut Burst<MemPacket>) {
        let wire = &mut self.wires[port];
        let room = wire.room_of[queue].map_or(packets.len(), |room| room.min(packets.len()));
        wire.room_of[queue] = wire.room_of[queue].map(|left| left - room);
        let mut first: Burst<MemPacket> = packets.drain(..room).collect();
        self.tx(port, &mut first);
        let rest = std::mem::take(packets);
        packets.extend(first.into_iter().chain(rest));
    }

    fn free(&mut self, packets: &mut Burst<MemPacket>) {
        self.give_back(packets.len());
        packets.clear();
    }

    fn copy(&mut self, packet: &MemPacket) -> Option<MemPacket> {
        let copy = self.make(packet.bytes())?;
        self.copies += 1;
        Some(copy)
    }

    fn make(&mut self, frame: &[u8]) -> Option<MemPacket> {
        self.spare_buffers = self.spare_buffers.checked_sub(1)?;
        self.held.fetch_add(1, Ordering::Relaxed);
        Some(MemPacket::new(frame))
    }
}
