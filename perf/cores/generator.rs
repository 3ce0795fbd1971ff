//! The wires of one lcore: frames that are made when they are received, and freed when they are sent.

use holdfast::dpdk::{Mbuf, Mempool};
use holdfast::packet::{BURST, Burst, Packet, Ports};
use holdfast::wire::MacAddr;

pub const PORTS: usize = 4;
/// Stations behind each port.
pub const FLOWS: u32 = 1024;
/// A lossy and a lossless class of the embedded configuration, ECN-capable.
const MARKS: [u64; 2] = [0x02, 0x6a];

/// Which frames leave by a port of another lcore, if the first half of the ports is one's and the second the other's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    None,
    Half,
    All,
}

impl Crossing {
    /// The port to which `station` of `port` sends: the other one of its lcore, or either of the other lcore. If it were one
    /// of them only, then with few buffers left one port would get them all, and the other core send half a burst a poll.
    fn egress(self, port: usize, station: u32) -> usize {
        let crosses = match self {
            Self::None => false,
            // Not the bit that says the class.
            Self::Half => station & 2 != 0,
            Self::All => true,
        };
        let either = (station >> 2 & 1) as usize;
        if crosses { ((port + PORTS / 2) % PORTS) ^ either } else { port ^ 1 }
    }
}

/// As a driver does it, buffers come out of the pool's cache of this lcore and go back to that of the lcore that sends.
pub struct Generator {
    pool: Mempool,
    crossing: Crossing,
    next: u32,
    frame: [u8; 64],
    pub sent: u64,
}

impl Generator {
    pub fn new(pool: Mempool, crossing: Crossing, seed: u32) -> Self {
        let mut frame = [0; 64];
        frame[12..34].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..42].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, 30, 0, 0]);
        Self { pool, crossing, next: seed, frame, sent: 0 }
    }

    /// Written in words as wide as they are read again, or loads would wait for stores.
    #[inline]
    fn write(&mut self, port: usize, frame: &mut [u8; 64]) {
        self.next = self.next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let station = (self.next >> 8) % FLOWS;
        let egress = self.crossing.egress(port, station);
        *frame = self.frame;
        let [dst, src] = [egress, port].map(|port| word(port, station));
        frame[..8].copy_from_slice(&(dst << 16 | src >> 32).to_be_bytes());
        let mark = MARKS[usize::from(station & 1 == 0)];
        frame[8..16].copy_from_slice(&(src << 32 | 0x0800_4500 | mark).to_be_bytes());
    }
}

/// The address of a station in the lower six bytes.
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

    /// Nothing while the pool is empty: an lcore that is behind holds the other up, and no frame is lost.
    #[inline]
    fn rx(&mut self, port: usize, out: &mut Burst<Mbuf>) {
        let frame = self.frame;
        for _ in 0..BURST {
            let Some(mut packet) = self.pool.alloc_with(&frame) else { return };
            if let Some(frame) = packet.bytes_mut().first_chunk_mut() {
                self.write(port, frame);
            }
            out.push(packet);
        }
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
