//! Frames in the simulator: real headers in reused buffers, with simulation metadata beside the bytes. A payload is
//! leftover buffer content, which no code reads.

use std::net::Ipv4Addr;
use std::ops::Range;

use super::transport::Reply;
use crate::hosts::FlowKind;
use crate::hosts::frame::{QUEUE_PAIR_BASE, ROCE_PORT, SOURCE_PORT_BASE, UDP_PORT};
use crate::io::Packet;
use crate::io::memory::MemPacket;
use crate::wire::MacAddr;
use crate::wire::inband::{self, Hops};
use crate::wire::mac_control::{self, MacControl, PfcFrame};
use crate::wire::parse::{ETHERTYPE_IPV4, ETHERTYPE_VLAN};
use crate::wire::roce::{ACKNOWLEDGE, NOTIFICATION, TRANSPORT_LEN};

/// Room in front of a frame for tags, in bytes.
const FRONT: usize = 16;
/// Log2 of the smallest buffer size. Buffer sizes are powers of two.
const SMALLEST: u32 = 8;
const SIZES: usize = 7;
/// Bytes of the extended header of an ACK, and the syndrome of a NAK for a gap (InfiniBand volume 1, section 9.7.5.2).
const ACK_HEADER: usize = 4;
/// Offset of the reserved bits of a base transport header (InfiniBand volume 1, section 9.2).
const RESERVED: usize = 4;
const NAK_SEQUENCE_ERROR: u8 = 0x60;
/// Bytes behind the tags of a frame, from the EtherType on: IPv4 addresses and UDP ports, and the queue pair.
const ADDRESSES: Range<usize> = 14..26;
const PAIR: Range<usize> = 34..38;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Data of a flow.
    Data,
    /// A congestion notification packet for the sender of a flow.
    Cnp,
    /// An ACK or NAK for the sender of a flow.
    Ack,
    /// A PFC frame.
    Pfc,
    /// A message of QCN from a switch.
    Cnm,
    /// A host's announcement of its address.
    Announcement,
    /// A malformed or strange frame that a fault sends.
    Garbage,
}

/// Simulation metadata of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cargo {
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Whether it is data of a lossless flow.
    pub is_lossless: bool,
    /// Index of the flow that the frame belongs to, or that a CNP is for.
    pub flow: u32,
    /// Number of the frame in its flow.
    pub sequence: u64,
    /// Time at which the frame's first bit left the host.
    pub born_ps: u64,
    /// Facts that only some frames have.
    pub note: Note,
}

/// Facts about a frame that only some have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Place of a data frame in a message of its flow.
    Part(Part),
    /// Content of an ACK.
    Reply(Reply),
}

/// The place of a frame in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// Number of the message in its flow.
    pub number: u64,
    /// Whether the sender asks for an ACK at once.
    pub asks: bool,
    /// In the last frame of a message: the number of frames in the message, and the time at which it was first ready to
    /// send.
    pub end: Option<(u32, u64)>,
}

impl Cargo {
    /// Returns the metadata of a frame that belongs to no flow.
    #[must_use]
    pub fn of(kind: FrameKind) -> Self {
        Self { kind, is_lossless: false, flow: u32::MAX, sequence: 0, born_ps: 0, note: Note::Part(Part::default()) }
    }
}

/// A simulated frame.
pub type SimPacket = MemPacket<Cargo>;

/// Readings of a simulated frame.
pub trait SimFrame {
    /// Whether the frame is an IPv4 frame, tagged or not, that is marked CE.
    #[must_use]
    fn is_ce(&self) -> bool;

    /// The field for in-band telemetry of a data frame.
    #[must_use]
    fn notes(&mut self) -> Option<[u8; inband::LEN]>;

    /// The notes that an ACK carries back; none if it has no field.
    #[must_use]
    fn returned_notes(&self) -> Hops;

    /// Parses the frame, if it is a PFC frame.
    #[must_use]
    fn pfc(&self) -> Option<PfcFrame>;
}

impl SimFrame for SimPacket {
    fn is_ce(&self) -> bool {
        let (bytes, at) = (self.bytes(), l3(self.bytes()));
        bytes[at - 2..at] == ETHERTYPE_IPV4.to_be_bytes() && bytes[at + 1] & 3 == 3
    }

    fn notes(&mut self) -> Option<[u8; inband::LEN]> {
        let l3 = l3(self.bytes());
        inband::find(self.bytes_mut(), l3).map(|field| *field)
    }

    fn returned_notes(&self) -> Hops {
        let field = self
            .bytes()
            .get(l3(self.bytes()) + 20 + 8 + TRANSPORT_LEN + ACK_HEADER..)
            .and_then(|remaining| remaining.first_chunk());
        field.map(Hops::read).unwrap_or_default()
    }

    fn pfc(&self) -> Option<PfcFrame> {
        if self.cargo.kind != FrameKind::Pfc {
            return None;
        }
        match mac_control::parse(self.bytes()) {
            Some(MacControl::Pfc(frame)) => Some(frame),
            _ => None,
        }
    }
}

/// Offset of the network header: frames of hosts have one tag or none.
#[inline]
fn l3(frame: &[u8]) -> usize {
    if frame[12..14] == ETHERTYPE_VLAN.to_be_bytes() { 18 } else { 14 }
}

/// All frame buffers, in free lists by size.
#[derive(Debug, Default)]
pub struct Pool {
    free: [Vec<Box<[u8]>>; SIZES],
    taken: u64,
    /// By flow, the frames that have not been returned.
    under_way: Vec<u32>,
    /// Flows of frames that ended in the network, still counted in `under_way`.
    dropped: Vec<u32>,
    /// Flows without frames under way since the last [`Pool::settle`]; they may have sent again.
    quiet: Vec<u32>,
}

impl Pool {
    /// Returns a frame of `len` bytes that begins with `head`.
    #[inline]
    pub fn make(&mut self, head: &[u8], len: usize, cargo: Cargo) -> SimPacket {
        if let Some(count) = self.under_way.get_mut(cargo.flow as usize) {
            *count += 1;
        }
        self.taken = self.taken.wrapping_add(1);
        let class = class_of(FRONT + len);
        let mut buffer =
            self.free[class].pop().unwrap_or_else(|| vec![0; 1 << (class as u32 + SMALLEST)].into_boxed_slice());
        buffer[FRONT..FRONT + head.len()].copy_from_slice(head);
        SimPacket::in_buffer(buffer, FRONT, len, cargo)
    }

    /// Returns the buffer of `packet` to the pool.
    #[inline]
    pub fn free(&mut self, packet: SimPacket) {
        if let Some(count) = self.under_way.get_mut(packet.cargo.flow as usize) {
            *count -= 1;
            if *count == 0 {
                self.quiet.push(packet.cargo.flow);
            }
        }
        self.put_back(packet);
    }

    /// Returns the buffer of a frame that ends in the network: the flow's count changes with [`Pool::settle`].
    pub fn drop_frame(&mut self, packet: SimPacket) {
        if packet.cargo.flow != u32::MAX {
            self.dropped.push(packet.cargo.flow);
        }
        self.put_back(packet);
    }

    /// Takes the buffers and the counts of `other`, a pool of switches.
    pub fn absorb(&mut self, other: &mut Pool) {
        self.taken = self.taken.wrapping_add(std::mem::take(&mut other.taken));
        self.dropped.append(&mut other.dropped);
        self.free.iter_mut().zip(&mut other.free).for_each(|(free, others)| free.append(others));
    }

    /// Gives `other`, a pool of switches, some of the buffers for PFC frames.
    pub fn share(&mut self, other: &mut Pool) {
        let free = &mut self.free[0];
        other.free[0].append(&mut free.split_off(free.len() / 2));
    }

    /// Counts the frames that have ended in the network. Returns the flows that may have ended, in ascending order.
    pub fn settle(&mut self) -> Vec<u32> {
        let mut flows = std::mem::take(&mut self.dropped);
        for flow in &flows {
            if let Some(count) = self.under_way.get_mut(*flow as usize) {
                *count -= 1;
            }
        }
        flows.append(&mut self.quiet);
        flows.sort_unstable();
        flows.dedup();
        flows
    }

    #[inline]
    fn put_back(&mut self, packet: SimPacket) {
        self.taken = self.taken.wrapping_sub(1);
        let buffer = packet.into_buffer();
        self.free[class_of(buffer.len())].push(buffer);
    }

    /// Counts the frames of flows below `flows` from now on.
    pub fn count_flows(&mut self, flows: usize) {
        if self.under_way.len() < flows {
            self.under_way.resize(flows.next_power_of_two(), 0);
        }
    }

    /// Returns the number of frames of `flow` that are under way.
    #[inline]
    #[must_use]
    pub fn under_way(&self, flow: usize) -> u32 {
        self.under_way.get(flow).copied().unwrap_or(0)
    }

    /// Counts the buffers that have not been returned.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

/// Returns the index of the free list whose buffers hold at least `bytes`.
#[inline]
fn class_of(bytes: usize) -> usize {
    let class = bytes.next_power_of_two().trailing_zeros().saturating_sub(SMALLEST) as usize;
    assert!(class < SIZES, "a frame of {bytes} B");
    class
}

/// Addresses of one end of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Station {
    /// MAC address.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
}

/// The headers of a flow's frames.
#[derive(Debug, Clone)]
pub struct Header {
    bytes: Vec<u8>,
    /// Offset of the IPv4 header.
    ip: usize,
    /// Sum of the IPv4 header's words, with length and checksum zero.
    sum: u32,
    /// Whether a base transport header follows UDP.
    has_transport: bool,
}

impl Header {
    /// Returns the headers of frames of `kind` between two stations. `tag` is VLAN and PCP, `ecn` the ECN codepoint.
    #[must_use]
    pub fn new(
        number: u16,
        kind: FlowKind,
        from: Station,
        to: Station,
        tag: Option<(u16, u8)>,
        dscp: u8,
        ecn: u8,
    ) -> Self {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend(to.mac.0);
        bytes.extend(from.mac.0);
        if let Some((vlan, pcp)) = tag {
            bytes.extend(ETHERTYPE_VLAN.to_be_bytes());
            bytes.extend((u16::from(pcp & 7) << 13 | vlan & 0xfff).to_be_bytes());
        }
        bytes.extend(ETHERTYPE_IPV4.to_be_bytes());
        let ip = bytes.len();
        // No options; length and checksum set later; don't fragment; TTL 64; UDP.
        bytes.extend([0x45, dscp << 2 | ecn, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        bytes.extend(from.ip.octets());
        bytes.extend(to.ip.octets());
        let words = bytes[ip..].chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum = words.sum();
        let port = if kind == FlowKind::Roce { ROCE_PORT } else { UDP_PORT };
        // The UDP checksum is zero: the packet has none.
        for field in [SOURCE_PORT_BASE | number & 0x3fff, port, 0, 0] {
            bytes.extend(field.to_be_bytes());
        }
        if kind == FlowKind::Roce {
            // RC SEND Only, which the virtual hosts of `holdfast run` also send.
            bytes.extend([0x04, 0x40, 0xff, 0xff]);
            bytes.extend((QUEUE_PAIR_BASE + u32::from(number)).to_be_bytes());
            bytes.extend([0; 4]);
        }
        Self { bytes, ip, sum, has_transport: kind == FlowKind::Roce }
    }

    /// Returns the headers of data with a field for in-band telemetry.
    #[must_use]
    pub fn with_telemetry(mut self) -> Self {
        if self.has_transport {
            let base = self.base();
            self.bytes.truncate(base + TRANSPORT_LEN);
            self.bytes[base + RESERVED] = inband::MARK;
            self.bytes.extend([0; inband::LEN]);
        }
        self
    }

    /// Adds the notes of a data frame to the headers of an ACK, in place of earlier ones.
    pub fn copy_notes(&mut self, notes: &[u8; inband::LEN]) {
        let field = self.base() + TRANSPORT_LEN + ACK_HEADER;
        self.bytes.truncate(field);
        self.bytes.extend(notes);
    }

    /// Returns the headers of ACKs, with an ACK extended transport header (InfiniBand volume 1, section 9.2.5).
    #[must_use]
    pub fn for_acks(mut self) -> Self {
        if self.has_transport {
            let base = self.base();
            self.bytes[base] = ACKNOWLEDGE;
            self.bytes.extend([0; ACK_HEADER]);
        }
        self
    }

    /// Returns the headers of CNPs.
    #[must_use]
    pub fn for_cnps(mut self) -> Self {
        if self.has_transport {
            let base = self.base();
            self.bytes[base] = NOTIFICATION;
        }
        self
    }

    /// Offset of the base transport header.
    fn base(&self) -> usize {
        self.ip + 20 + 8
    }

    /// Whether `msdu`, a frame behind its tags, begins with the headers of this flow. Switches may have changed DSCP
    /// and ECN.
    #[must_use]
    pub fn is_of(&self, msdu: &[u8]) -> bool {
        // Addresses and ports, and the queue pair.
        let own = &self.bytes[self.ip - 2..];
        let pair = if self.has_transport { PAIR } else { ADDRESSES.end..ADDRESSES.end };
        [ADDRESSES, pair].into_iter().all(|part| own.get(part.clone()) == msdu.get(part))
    }

    /// Sets the packet sequence number.
    #[inline]
    pub fn set_number(&mut self, number: u64) {
        if self.has_transport {
            let base = self.base();
            self.bytes[base + 9..base + 12].copy_from_slice(&(number as u32).to_be_bytes()[1..]);
        }
    }

    /// Sets whether the frame asks for an ACK: the AckReq bit.
    #[inline]
    pub fn set_asks(&mut self, asks: bool) {
        if self.has_transport {
            let base = self.base();
            self.bytes[base + 8] = if asks { 0x80 } else { 0 };
        }
    }

    /// Sets number and syndrome of an ACK: of the last frame that arrived in order, or of the missing one.
    #[inline]
    pub fn set_reply(&mut self, reply: &Reply) {
        self.set_number(if reply.is_nak { reply.cumulative } else { reply.cumulative.wrapping_sub(1) });
        if self.has_transport {
            let base = self.base();
            self.bytes[base + 12] = if reply.is_nak { NAK_SEQUENCE_ERROR } else { 0 };
        }
    }

    /// Fills in the lengths and the checksum for a frame of `len` bytes.
    #[inline]
    pub fn for_len(&mut self, len: u16) -> &[u8] {
        let ip_len = len - self.ip as u16;
        let udp_len = ip_len - 20;
        let sum = self.sum + u32::from(ip_len);
        let sum = (sum & 0xffff) + (sum >> 16);
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        let ip = self.ip;
        self.bytes[ip + 2..ip + 4].copy_from_slice(&ip_len.to_be_bytes());
        self.bytes[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
        self.bytes[ip + 24..ip + 26].copy_from_slice(&udp_len.to_be_bytes());
        &self.bytes
    }

    /// Returns the length of the shortest frame that holds the headers, at least 60 bytes.
    #[must_use]
    pub fn least_frame(&self) -> u16 {
        self.bytes.len().max(60) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    fn station(n: u8) -> Station {
        Station { mac: MacAddr::local(1, n.into()), ip: Ipv4Addr::new(10, 0, 0, n) }
    }

    #[test]
    fn an_independent_parser_agrees_with_headers_of_any_length() {
        let mut pool = Pool::default();
        for (kind, tag) in [(FlowKind::Roce, None), (FlowKind::Udp, Some((20, 3)))] {
            let mut header = Header::new(7, kind, station(1), station(2), tag, 26, 2);
            for len in [60, 64, 65, 577, 1518, 9018] {
                let packet = pool.make(header.for_len(len), usize::from(len), Cargo::of(FrameKind::Data));
                assert_eq!(packet.len(), usize::from(len));
                assert!(!packet.is_ce());
                let sliced = SlicedPacket::from_ethernet(packet.bytes()).unwrap();
                let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4 header") };
                let ip = ip.header().to_header();
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                assert_eq!((ip.dscp.value(), ip.ecn.value()), (26, 2));
                let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("no UDP header") };
                assert_eq!(usize::from(udp.length()), 8 + udp.payload().len());
                drop(sliced);
                pool.free(packet);
            }
        }
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn ce_mark_is_read_with_and_without_a_tag() {
        let mut pool = Pool::default();
        for tag in [None, Some((5, 0))] {
            let mut header = Header::new(0, FlowKind::Udp, station(1), station(2), tag, 0, 3);
            assert!(pool.make(header.for_len(100), 100, Cargo::of(FrameKind::Data)).is_ce());
        }
    }
}
