//! The wires of one lcore: frames are made when they are received, and freed when they are sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use holdfast::dpdk::{Mbuf, Mempool};
use holdfast::io::{Burst, Packet, Ports};
use holdfast::wire::MacAddr;

use crate::Pattern;

pub const PORTS: usize = 4;
/// Stations behind each port.
pub const FLOWS: u32 = 1024;
/// The DSCP and ECN bytes of a lossy and a lossless class of the embedded configuration, ECN-capable.
const MARKS: [u64; 2] = [0x02, 0x6a];

/// The frames that leave by a port of the other lcore. One lcore has the first half of the ports, the other the second.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    None,
    Half,
    All,
}

impl Crossing {
    /// The port to which `station` of `port` sends: the other port of its lcore, or either port of the other lcore.
    /// With only one of those, few buffers would all wait for one port, and the other core would send half a burst per
    /// poll.
    fn egress(self, port: usize, station: u32) -> usize {
        let crosses = match self {
            Self::None => false,
            // A bit that does not select the class.
            Self::Half => station & 2 != 0,
            Self::All => true,
        };
        let either = (station >> 2 & 1) as usize;
        if crosses { ((port + PORTS / 2) % PORTS) ^ either } else { port ^ 1 }
    }
}

/// Frames that one lcore may receive ahead of any other, as wires of equal rate would allow. Without a bound, the lcore
/// ahead takes every buffer for the queues of the other, and the bench measures an lcore that waits for buffers.
pub const AHEAD: u64 = 512;

/// Number of frames that each lcore has received.
pub type Received = Arc<[CachePadded<AtomicU64>]>;

/// Zero counts for `lcores` lcores.
pub fn received(lcores: usize) -> Received {
    (0..lcores).map(|_| CachePadded::new(AtomicU64::new(0))).collect()
}

/// The ports of one lcore. As with a driver, buffers come from the pool's cache of this lcore, and return to the cache
/// of the lcore that sends.
pub struct Generator {
    pool: Mempool,
    crossing: Crossing,
    is_bounded: bool,
    next: u32,
    turn: u32,
    frame: [u8; 64],
    lcore: usize,
    all_received: Received,
    received: u64,
    /// Frames that may be received until the counts of the others are read again.
    allowed: u64,
    pub sent: u64,
}

impl Generator {
    pub fn new(pool: Mempool, pattern: &Pattern, lcore: usize, all_received: Received) -> Self {
        let mut frame = [0; 64];
        frame[12..34].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..42].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, 30, 0, 0]);
        Self {
            pool,
            crossing: pattern.crossing,
            is_bounded: pattern.is_bounded,
            next: lcore as u32,
            turn: 0,
            frame,
            lcore,
            all_received,
            received: 0,
            allowed: 0,
            sent: 0,
        }
    }

    /// Whether this lcore is too far ahead of another. The others' counts are read once in many bursts.
    #[inline]
    fn must_wait(&mut self) -> bool {
        if self.received < self.allowed {
            return false;
        }
        if self.crossing == Crossing::None || !self.is_bounded {
            self.allowed = u64::MAX;
            return false;
        }
        let others = self.all_received.iter().enumerate().filter(|&(lcore, _)| lcore != self.lcore);
        let least = others.map(|(_, received)| received.load(Ordering::Relaxed)).min();
        self.allowed = least.map_or(u64::MAX, |least| least + AHEAD);
        self.received >= self.allowed
    }

    /// Writes the headers of a frame. The stores are as wide as the later loads: otherwise the loads would stall.
    #[inline]
    fn write(&mut self, port: usize, frame: &mut [u8; 64]) {
        self.next = self.next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // A rotating counter selects class and egress port. A random choice would sometimes give a port more frames
        // than it sends in a poll. Since all ports send at their limit, such a queue would never become shorter again.
        self.turn = self.turn.wrapping_add(1);
        let station = (self.next >> 8 << 3 | self.turn & 7) % FLOWS;
        let egress = self.crossing.egress(port, station);
        *frame = self.frame;
        let [dst, src] = [egress, port].map(|port| word(port, station));
        frame[..8].copy_from_slice(&(dst << 16 | src >> 32).to_be_bytes());
        let mark = MARKS[usize::from(station & 1 == 0)];
        frame[8..16].copy_from_slice(&(src << 32 | 0x0800_4500 | mark).to_be_bytes());
    }
}

/// The address of a station, in the lower six bytes.
fn word(port: usize, station: u32) -> u64 {
    let [_, _, a, b] = station.to_be_bytes();
    u64::from_be_bytes([0, 0, 2, port as u8, 0, 0, a, b])
}

/// The address of a station.
pub fn mac(port: usize, station: u32) -> MacAddr {
    let [_, _, a, b, c, d, e, f] = word(port, station).to_be_bytes();
    MacAddr([a, b, c, d, e, f])
}

impl Ports for Generator {
    type Pkt = Mbuf;

    /// Receives no frame while another lcore is behind or the pool is empty; no frame is lost.
    #[inline]
    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<Mbuf>) {
        if self.must_wait() {
            return;
        }
        let frame = self.frame;
        for _ in 0..most {
            let Some(mut packet) = self.pool.alloc_with(&frame) else { return };
            if let Some(frame) = packet.bytes_mut().first_chunk_mut() {
                self.write(port, frame);
            }
            out.push(packet);
        }
        self.received += most as u64;
        self.all_received[self.lcore].store(self.received, Ordering::Relaxed);
    }

    #[inline]
    fn tx(&mut self, _: usize, packets: &mut Burst<Mbuf>) {
        self.sent += packets.len() as u64;
        Mbuf::free_all(packets);
    }

    fn free(&mut self, packets: &mut Burst<Mbuf>) {
        Mbuf::free_all(packets);
    }

    fn copy(&mut self, packet: &Mbuf) -> Option<Mbuf> {
        self.pool.alloc_with(packet.bytes())
    }

    fn make(&mut self, frame: &[u8]) -> Option<Mbuf> {
        self.pool.alloc_with(frame)
    }
}
