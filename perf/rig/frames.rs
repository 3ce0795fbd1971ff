//! Frames as peers send them, and packets that remember when they came.

use holdfast::dpdk::Mbuf;
use holdfast::packet::Packet;
use holdfast::units::Quanta;
use holdfast::wire::MacAddr;
use holdfast::wire::mac_control::PfcFrame;

use super::Flow;

/// Stations behind each port. One alone would flatter the forwarding database.
pub const STATIONS: u32 = 256;

/// Numbers of flows that stand for a PFC frame of the peer: XON, XOFF.
const XON: u8 = 0xe;
const XOFF: u8 = 0xf;

/// When a frame was complete at a port, in ticks, the port, and what it is: one word, to go with the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival(u64);

impl Arrival {
    /// A frame of flow number `flow` of the link at `port`, both below 14. Ticks of 56 bits last for some ten months.
    #[inline]
    pub fn new(at: u64, port: usize, flow: u8) -> Self {
        Self(at << 8 | (port as u64) << 4 | u64::from(flow))
    }

    /// A PFC frame.
    #[inline]
    pub fn pfc(at: u64, port: usize, xoff: bool) -> Self {
        Self::new(at, port, if xoff { XOFF } else { XON })
    }

    /// When it could be received.
    #[inline]
    pub fn at(self) -> u64 {
        self.0 >> 8
    }

    /// The port it came by.
    #[inline]
    pub fn port(self) -> usize {
        (self.0 >> 4 & 0xf) as usize
    }

    /// The flow, by its number in the link.
    #[inline]
    pub fn flow(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// Whether it is a PFC frame, and if so whether with XOFF.
    #[inline]
    pub fn as_pfc(self) -> Option<bool> {
        match (self.0 & 0xf) as u8 {
            XON => Some(false),
            XOFF => Some(true),
            _ => None,
        }
    }
}

/// A packet over a DPDK buffer that may carry more than that.
pub trait Parcel: Packet {
    /// A packet of this buffer, which came as `arrival` says.
    fn wrap(mbuf: Mbuf, arrival: Arrival) -> Self;
    /// The buffer alone.
    fn unwrap(self) -> Mbuf;
    /// Its arrival, if it remembers it.
    fn arrival(&self) -> Option<Arrival>;
}

impl Parcel for Mbuf {
    #[inline]
    fn wrap(mbuf: Mbuf, _: Arrival) -> Self {
        mbuf
    }

    #[inline]
    fn unwrap(self) -> Mbuf {
        self
    }

    #[inline]
    fn arrival(&self) -> Option<Arrival> {
        None
    }
}

/// A buffer with its arrival beside the pointer, and not in the buffer: to read it there when it leaves would cost a
/// cache miss that no switch has.
#[derive(Debug)]
pub struct Stamped {
    mbuf: Mbuf,
    arrival: Arrival,
}

impl Packet for Stamped {
    #[inline]
    fn prefetch(&self) {
        self.mbuf.prefetch();
    }

    #[inline]
    fn prefetch_bytes(&self) {
        self.mbuf.prefetch_bytes();
    }

    #[inline]
    fn prefetch_ahead(&self) {
        self.mbuf.prefetch_ahead();
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.mbuf.bytes()
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.mbuf.bytes_mut()
    }

    #[inline]
    fn len(&self) -> usize {
        self.mbuf.len()
    }

    #[inline]
    fn push_front(&mut self, n: usize) -> bool {
        self.mbuf.push_front(n)
    }

    #[inline]
    fn pull_front(&mut self, n: usize) -> bool {
        self.mbuf.pull_front(n)
    }
}

impl Parcel for Stamped {
    #[inline]
    fn wrap(mbuf: Mbuf, arrival: Arrival) -> Self {
        Self { mbuf, arrival }
    }

    #[inline]
    fn unwrap(self) -> Mbuf {
        self.mbuf
    }

    #[inline]
    fn arrival(&self) -> Option<Arrival> {
        Some(self.arrival)
    }
}

/// Address of a station in the lower six bytes.
fn address(port: usize, station: u32) -> u64 {
    let [_, a, b, c] = station.to_be_bytes();
    u64::from_be_bytes([0, 0, 2, port as u8, 0, a, b, c])
}

/// Address of station `station` behind `port`.
pub fn mac(port: usize, station: u32) -> MacAddr {
    let [_, _, bytes @ ..] = address(port, station).to_be_bytes();
    MacAddr(bytes)
}

/// Writes the headers of frames. What is behind the first 64 bytes nobody reads, and a NIC would not have put into the
/// cache of a core that does not.
#[derive(Debug)]
pub struct Writer {
    rest: [u8; 64],
    next: u32,
}

impl Writer {
    /// For frames of `frame_len` bytes.
    pub fn new(frame_len: usize) -> Self {
        let mut rest = [0; 64];
        rest[12..34].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        rest[16..18].copy_from_slice(&(frame_len as u16 - 14).to_be_bytes());
        rest[34..42].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, 30, 0, 0]);
        Self { rest, next: 1 }
    }

    /// A UDP frame of class `class`, ECN-capable or not, between one of the stations behind each port. Written in words as wide
    /// as they are read again, or the loads would wait for the stores.
    #[inline]
    pub fn write(&mut self, frame: &mut [u8; 64], from: usize, flow: Flow) {
        self.next = self.next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let station = (self.next >> 8) % STATIONS;
        *frame = self.rest;
        let [dst, src] = [flow.to, from].map(|port| address(port, station));
        let marks = u64::from(flow.class) << 5 | if flow.ecn { 0b10 } else { 0 };
        frame[..8].copy_from_slice(&(dst << 16 | src >> 32).to_be_bytes());
        frame[8..16].copy_from_slice(&(src << 32 | 0x0800_4500 | marks).to_be_bytes());
    }

    /// A PFC frame for `class` from the peer at `from`.
    #[cold]
    pub fn write_pfc(frame: &mut [u8; 64], from: usize, class: u8, xoff: bool) {
        let mut pfc = PfcFrame { enabled: 1 << class, ..PfcFrame::default() };
        pfc.quanta[usize::from(class)] = Quanta(if xoff { u16::MAX } else { 0 });
        frame[60..].fill(0);
        frame[..60].copy_from_slice(&pfc.emit(mac(from, 0)));
    }
}
