//! Frames that peers send, and packets that carry their time of arrival.

use holdfast::dpdk::Mbuf;
use holdfast::io::Packet;
use holdfast::sets::ClassSet;
use holdfast::units::Quanta;
use holdfast::wire::MacAddr;
use holdfast::wire::mac_control::PfcFrame;

use super::{Arrival, Flow};

/// Stations behind each port. A single one would flatter the forwarding database.
pub const STATIONS: u32 = 256;

/// A packet over a DPDK buffer that may carry its arrival.
pub trait Parcel: Packet {
    /// Makes a packet of a buffer that arrived as `arrival` describes.
    fn wrap(mbuf: Mbuf, arrival: Arrival) -> Self;
    /// Returns the buffer alone.
    fn unwrap(self) -> Mbuf;
    /// The arrival, if the packet carries it.
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

/// A buffer with its arrival beside the pointer. Stored in the buffer, the arrival would cost a cache miss on transmit
/// that no switch has.
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

/// The address of a station, in the lower six bytes.
fn address(port: usize, station: u32) -> u64 {
    let [_, a, b, c] = station.to_be_bytes();
    u64::from_be_bytes([0, 0, 2, port as u8, 0, a, b, c])
}

/// Address of station `station` behind `port`.
pub fn mac(port: usize, station: u32) -> MacAddr {
    let [_, _, bytes @ ..] = address(port, station).to_be_bytes();
    MacAddr(bytes)
}

/// Writes the headers of frames. Only the first 64 bytes are written: the switch does not read the others, and a NIC
/// would not put them into the cache of a core that does not read them.
#[derive(Debug)]
pub struct Writer {
    template: [u8; 64],
    next: u32,
}

impl Writer {
    /// Creates a writer for frames of `frame_len` bytes.
    pub fn new(frame_len: usize) -> Self {
        let mut template = [0; 64];
        template[12..34].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        template[16..18].copy_from_slice(&(frame_len as u16 - 14).to_be_bytes());
        template[34..42].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, 30, 0, 0]);
        Self { template, next: 1 }
    }

    /// Writes a UDP frame of the flow's class, ECN-capable or not, from a station behind `from` to one behind
    /// `flow.to`. The stores are as wide as the later loads: otherwise the loads would stall on store forwarding.
    #[inline]
    pub fn write(&mut self, frame: &mut [u8; 64], from: usize, flow: Flow) {
        self.next = self.next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let station = (self.next >> 8) % STATIONS;
        *frame = self.template;
        let [dst, src] = [flow.to, from].map(|port| address(port, station));
        let marks = u64::from(flow.class) << 5 | if flow.ecn { 0b10 } else { 0 };
        frame[..8].copy_from_slice(&(dst << 16 | src >> 32).to_be_bytes());
        frame[8..16].copy_from_slice(&(src << 32 | 0x0800_4500 | marks).to_be_bytes());
    }

    /// A PFC frame for `class` from the peer at `from`.
    #[cold]
    pub fn write_pfc(frame: &mut [u8; 64], from: usize, class: u8, xoff: bool) {
        let mut pfc = PfcFrame { enabled: ClassSet::only(class.into()), ..PfcFrame::default() };
        pfc.quanta[usize::from(class)] = Quanta(if xoff { u16::MAX } else { 0 });
        frame[60..].fill(0);
        frame[..60].copy_from_slice(&pfc.emit(mac(from, 0)));
    }
}
