//! The frames of virtual hosts: one template per flow, stamped for each frame, and verified at the receiver.
//!
//! The layout of a flow's frame, from the IPv4 header on:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 20 | IPv4: no options, DF, identification 0, so that its checksum is the same for every frame |
//! | 20 | 8 | UDP: source port [`SOURCE_PORT_BASE`] + flow; checksum 0, that is none (RFC 768, and usual for RoCEv2) |
//! | 28 | 12 | RoCE only: base transport header, RC SEND Only, queue pair [`QUEUE_PAIR_BASE`] + flow, 24-bit PSN |
//! | +0 | 18 | the mark: flow (16 bits), sequence number (64), send time in ticks (64), big-endian |
//! | | n | filler that differs from flow to flow |
//! | | 4 | check word over the mark |
//!
//! In a RoCE frame the check word takes the place of the ICRC, but is none. The frame has the shape of RoCEv2 without
//! its transport, and a CRC over every byte would cost more than all other work here. The receiver compares the filler
//! byte by byte.

use std::net::Ipv4Addr;

use super::spec::{FlowKind, FlowSpec};
use crate::units::Ticks;
use crate::wire::parse::{ETHERTYPE_IPV4, ETHERTYPE_SVLAN, ETHERTYPE_VLAN};
pub use crate::wire::roce::PORT as ROCE_PORT;
use crate::wire::{MacAddr, mac_control};

/// UDP destination port of plain UDP flows.
pub const UDP_PORT: u16 = 18_502;
/// Source port of flow 0. RoCEv2 uses the range up to 65535 for the entropy of a queue pair.
pub const SOURCE_PORT_BASE: u16 = 0xc000;
/// Queue pair of flow 0; 0 and 1 have special meanings.
pub const QUEUE_PAIR_BASE: u32 = 0x100;
/// Maximum number of flows: one per source port.
pub const MAX_FLOWS: usize = 1 << 14;

const ETHERNET: usize = 14;
const TAG: usize = 4;
const IPV4: usize = 20;
const UDP: usize = 8;
const BTH: usize = 12;
const MARK: usize = 18;
const CHECK: usize = 4;
/// Offset of the PSN in the base transport header.
const BTH_PSN: usize = 9;

const ETHERTYPE_ARP: u16 = 0x0806;
const PROTOCOL_UDP: u8 = 17;
/// BTH opcode: reliable connection, SEND Only.
const RC_SEND_ONLY: u8 = 0x04;
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

/// Length of an announcement: a minimum frame, including the tag.
const ANNOUNCEMENT: usize = 60;

/// Returns the length of the shortest frame of a flow that holds its headers, mark and check word.
#[must_use]
pub const fn min_frame_len(kind: FlowKind, tagged: bool) -> u16 {
    let transport = match kind {
        FlowKind::Roce => BTH,
        FlowKind::Udp => 0,
    };
    let tag = if tagged { TAG } else { 0 };
    (ETHERNET + tag + IPV4 + UDP + transport + MARK + CHECK) as u16
}

/// One end of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Station {
    /// MAC address.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
}

/// The mark that a received frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Sequence number in its flow, from zero.
    pub sequence: u64,
    /// Time of sending.
    pub sent: Ticks,
    /// Whether a switch marked it Congestion Experienced.
    pub ce: bool,
}

/// A frame of a flow without its sequence number, time and check word.
#[derive(Debug)]
pub struct Template {
    bytes: Box<[u8]>,
    flow: u16,
    /// Offset of the IPv4 header.
    packet: usize,
    /// Offset of the mark from the IPv4 header.
    mark: usize,
}

impl Template {
    /// Creates the template of flow number `flow`. A `frame_len` that cannot hold the headers is raised to
    /// [`min_frame_len`].
    #[must_use]
    pub fn new(flow: u16, spec: &FlowSpec, from: Station, to: Station) -> Self {
        let len = spec.frame_len.max(min_frame_len(spec.kind, spec.vlan.is_some()));
        let mut bytes = Vec::with_capacity(usize::from(len));
        let packet = put_ethernet(&mut bytes, to.mac, from.mac, spec.vlan.map(|vlan| (vlan, spec.pcp)), ETHERTYPE_IPV4);
        let packet_len = len - packet as u16;
        put_ipv4(&mut bytes, spec, packet_len, from.ip, to.ip);
        let destination = match spec.kind {
            FlowKind::Roce => ROCE_PORT,
            FlowKind::Udp => UDP_PORT,
        };
        for field in [SOURCE_PORT_BASE | flow, destination, packet_len - IPV4 as u16, 0] {
            bytes.extend(field.to_be_bytes());
        }
        if spec.kind == FlowKind::Roce {
            put_bth(&mut bytes, flow);
        }
        let mark = bytes.len() - packet;
        bytes.extend(flow.to_be_bytes());
        bytes.extend([0; MARK - 2]);
        bytes.extend((bytes.len()..usize::from(len)).map(|at| (at as u8) ^ (flow as u8).wrapping_mul(0x9d)));
        Self { bytes: bytes.into(), flow, packet, mark }
    }

    /// Returns the bytes to copy into a buffer before [`Template::stamp`].
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the length of each frame in bytes.
    #[inline]
    #[must_use]
    pub fn frame_len(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Writes this sequence number, this time and the check word into `frame`, a copy of the template.
    #[inline]
    pub fn stamp(&self, frame: &mut [u8], sequence: u64, now: Ticks) {
        let mark = self.packet + self.mark;
        if self.is_roce() {
            let psn = self.psn() + self.packet;
            frame[psn..psn + 3].copy_from_slice(&(sequence as u32).to_be_bytes()[1..]);
        }
        frame[mark + 2..mark + 10].copy_from_slice(&sequence.to_be_bytes());
        frame[mark + 10..mark + 18].copy_from_slice(&now.0.to_be_bytes());
        let end = frame.len();
        frame[end - CHECK..].copy_from_slice(&check_word(self.flow, sequence, now.0).to_be_bytes());
    }

    /// Whether `packet`, an IPv4 packet with this flow's source port, has the addresses and ports of this flow.
    #[inline]
    #[must_use]
    pub fn is_between(&self, packet: &Ipv4Udp<'_>) -> bool {
        let own = &self.bytes[self.packet..];
        // Both addresses and both ports are contiguous.
        packet.0[12..24] == own[12..24]
    }

    /// Returns the mark of a packet for which [`Template::is_between`] holds, or `None` if the packet was corrupted.
    /// TTL and ECN, and with them the header checksum, may change on the way.
    #[inline]
    #[must_use]
    pub fn verify(&self, packet: &Ipv4Udp<'_>) -> Option<Mark> {
        let own = &self.bytes[self.packet..];
        let packet = packet.0.get(..own.len())?;
        let tail = own.len() - CHECK;
        let before_psn = if self.is_roce() { self.psn() } else { self.mark };
        let intact = packet[1] & !3 == own[1] & !3
            && packet[2..8] == own[2..8]
            && packet[24..before_psn] == own[24..before_psn]
            && packet[self.mark..self.mark + 2] == own[self.mark..self.mark + 2]
            && packet[self.mark + MARK..tail] == own[self.mark + MARK..tail]
            && ipv4_sum(packet) == 0xffff;
        let sequence = be64(packet, self.mark + 2);
        let sent = be64(packet, self.mark + 10);
        let psn_fits = !self.is_roce() || packet[before_psn..self.mark] == (sequence as u32).to_be_bytes()[1..];
        let check = check_word(self.flow, sequence, sent).to_be_bytes();
        (intact && psn_fits && packet[tail..] == check).then_some(Mark {
            sequence,
            sent: Ticks(sent),
            ce: packet[1] & 3 == CE,
        })
    }

    fn is_roce(&self) -> bool {
        self.mark > IPV4 + UDP
    }

    /// Returns the offset of the PSN from the IPv4 header.
    fn psn(&self) -> usize {
        IPV4 + UDP + BTH_PSN
    }
}

/// A UDP packet over IPv4 without options: the bytes from the IPv4 header to the end of the frame. Both headers are
/// complete.
#[derive(Debug, Clone, Copy)]
pub struct Ipv4Udp<'a>(&'a [u8]);

impl Ipv4Udp<'_> {
    /// Returns the number of the flow that uses this source port.
    #[inline]
    #[must_use]
    pub fn flow(&self) -> Option<usize> {
        let source = be16(self.0, IPV4);
        source.checked_sub(SOURCE_PORT_BASE).map(usize::from)
    }
}

/// Classification of a received frame by its headers. Any bytes belong to one of these variants.
#[derive(Debug, Clone, Copy)]
pub enum Arrival<'a> {
    /// MAC control: PFC, PAUSE or neither.
    MacControl,
    /// An ARP packet, such as another host's announcement.
    Arp,
    /// A UDP packet that may belong to a flow.
    Udp(Ipv4Udp<'a>),
    /// Any other frame.
    Other,
}

impl<'a> Arrival<'a> {
    /// Classifies `frame` by its headers, behind up to two VLAN tags.
    #[inline]
    #[must_use]
    pub fn of(frame: &'a [u8]) -> Self {
        let mut at = 12;
        for _ in 0..3 {
            let Some(remaining) = frame.get(at + 2..) else { return Self::Other };
            match be16(frame, at) {
                // MAC control frames are always untagged.
                mac_control::ETHERTYPE if at == 12 => return Self::MacControl,
                ETHERTYPE_ARP => return Self::Arp,
                ETHERTYPE_IPV4 if is_plain_udp(remaining) => return Self::Udp(Ipv4Udp(remaining)),
                ETHERTYPE_VLAN | ETHERTYPE_SVLAN => at += TAG,
                _ => return Self::Other,
            }
        }
        Self::Other
    }
}

#[inline]
fn is_plain_udp(packet: &[u8]) -> bool {
    packet.len() >= IPV4 + UDP && packet[0] == 0x45 && packet[9] == PROTOCOL_UDP
}

/// Builds a gratuitous ARP (RFC 5227 announcement), from which a switch learns the port of `who`.
#[must_use]
pub fn announcement(who: Station, vlan: Option<u16>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(ANNOUNCEMENT);
    put_ethernet(&mut bytes, MacAddr::BROADCAST, who.mac, vlan.map(|vlan| (vlan, 0)), ETHERTYPE_ARP);
    // Ethernet, IPv4, their address lengths, request.
    bytes.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    bytes.extend(who.mac.0);
    bytes.extend(who.ip.octets());
    bytes.extend([0; 6]);
    bytes.extend(who.ip.octets());
    bytes.resize(ANNOUNCEMENT, 0);
    bytes.into()
}

/// Appends the Ethernet header and returns the offset of the payload.
fn put_ethernet(bytes: &mut Vec<u8>, to: MacAddr, from: MacAddr, tag: Option<(u16, u8)>, ethertype: u16) -> usize {
    bytes.extend(to.0);
    bytes.extend(from.0);
    if let Some((vlan, pcp)) = tag {
        bytes.extend(ETHERTYPE_VLAN.to_be_bytes());
        bytes.extend((u16::from(pcp & 7) << 13 | vlan & 0xfff).to_be_bytes());
    }
    bytes.extend(ethertype.to_be_bytes());
    bytes.len()
}

fn put_ipv4(bytes: &mut Vec<u8>, spec: &FlowSpec, len: u16, from: Ipv4Addr, to: Ipv4Addr) {
    let start = bytes.len();
    let ecn = if spec.ecn { ECT_0 } else { 0 };
    bytes.extend([0x45, spec.dscp << 2 | ecn]);
    bytes.extend(len.to_be_bytes());
    // Identification 0, don't fragment, TTL, protocol, checksum set below.
    bytes.extend([0, 0, 0x40, 0, 64, PROTOCOL_UDP, 0, 0]);
    bytes.extend(from.octets());
    bytes.extend(to.octets());
    let checksum = !ipv4_sum(&bytes[start..]);
    bytes[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}

fn put_bth(bytes: &mut Vec<u8>, flow: u16) {
    // Opcode; no solicited event, migrated, no padding, version 0; default partition.
    bytes.extend([RC_SEND_ONLY, 0x40, 0xff, 0xff]);
    bytes.extend((QUEUE_PAIR_BASE + u32::from(flow)).to_be_bytes());
    // No acknowledgement requested; `stamp` writes the PSN.
    bytes.extend([0; 4]);
}

/// Returns the one's complement sum of an IPv4 header without options (RFC 1071); 0xffff if its checksum is right.
#[inline]
fn ipv4_sum(packet: &[u8]) -> u16 {
    let sum: u32 = packet[..IPV4].chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum + (sum >> 16)) as u16
}

/// Computes a word that changes with a wrong bit in the mark. Multiplications by odd constants spread every bit to the
/// upper half.
#[inline]
fn check_word(flow: u16, sequence: u64, time: u64) -> u32 {
    let mixed = (sequence ^ u64::from(flow) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ time;
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32
}

#[inline]
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn be64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::tests::{flow, host};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    fn template(kind: FlowKind, vlan: Option<u16>, frame_len: u16) -> Template {
        let spec = FlowSpec { kind, vlan, frame_len, pcp: 3, ..flow(1, 3, "1G") };
        let station = |index| Station { mac: host(index).mac, ip: host(index).ip };
        Template::new(7, &spec, station(0), station(1))
    }

    fn frame(template: &Template, sequence: u64, time: u64) -> Vec<u8> {
        let mut bytes = template.bytes().to_vec();
        template.stamp(&mut bytes, sequence, Ticks(time));
        bytes
    }

    fn mark(template: &Template, bytes: &[u8]) -> Option<Mark> {
        match Arrival::of(bytes) {
            Arrival::Udp(packet) if template.is_between(&packet) => template.verify(&packet),
            _ => None,
        }
    }

    #[test]
    fn an_independent_parser_agrees_with_the_headers() {
        for (kind, vlan, port) in [(FlowKind::Roce, None, ROCE_PORT), (FlowKind::Udp, Some(20), UDP_PORT)] {
            let bytes = frame(&template(kind, vlan, 1500), 0x0102_0304, 99);
            assert_eq!(bytes.len(), 1500);
            let sliced = SlicedPacket::from_ethernet(&bytes).unwrap();
            assert_eq!(sliced.vlan_ids().first().map(|id| id.value()), vlan);
            let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4 header") };
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!((header.dscp.value(), header.ecn.value()), (26, 2));
            assert_eq!(usize::from(header.total_len), bytes.len() - if vlan.is_some() { 18 } else { 14 });
            let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("no UDP header") };
            assert_eq!((udp.source_port(), udp.destination_port(), udp.checksum()), (SOURCE_PORT_BASE + 7, port, 0));
            assert_eq!(usize::from(udp.length()), 8 + udp.payload().len());
            if kind == FlowKind::Roce {
                assert_eq!(udp.payload()[..12], [0x04, 0x40, 0xff, 0xff, 0, 0, 1, 7, 0, 2, 3, 4]);
            }
        }
    }

    #[test]
    fn the_shortest_frames_hold_their_marks() {
        assert_eq!(min_frame_len(FlowKind::Udp, false), 64);
        assert_eq!(min_frame_len(FlowKind::Roce, true), 80);
        for kind in [FlowKind::Udp, FlowKind::Roce] {
            for vlan in [None, Some(5)] {
                let template = template(kind, vlan, 0);
                assert_eq!(template.frame_len(), u32::from(min_frame_len(kind, vlan.is_some())));
                let found = mark(&template, &frame(&template, u64::MAX - 1, 12)).unwrap();
                assert_eq!(found, Mark { sequence: u64::MAX - 1, sent: Ticks(12), ce: false });
            }
        }
    }

    #[test]
    fn mark_is_read_after_tag_removal_and_ce_is_detected() {
        let template = template(FlowKind::Roce, Some(20), 200);
        let mut bytes = frame(&template, 5, 6);
        bytes.drain(12..16);
        assert_eq!(mark(&template, &bytes).unwrap().sequence, 5);
        // ECT(0) to CE adds one to a word of the header, so its checksum decreases by one.
        bytes[15] |= 3;
        bytes[25] -= 1;
        assert!(mark(&template, &bytes).unwrap().ce);
    }

    #[test]
    fn an_announcement_is_an_arp_packet() {
        let who = Station { mac: host(0).mac, ip: host(0).ip };
        for vlan in [None, Some(9)] {
            let bytes = announcement(who, vlan);
            assert_eq!(bytes.len(), 60);
            assert!(matches!(Arrival::of(&bytes), Arrival::Arp));
            let sliced = SlicedPacket::from_ethernet(&bytes).unwrap();
            let Some(NetSlice::Arp(arp)) = &sliced.net else { panic!("no ARP packet") };
            assert_eq!(arp.sender_hw_addr(), who.mac.0);
            assert_eq!(
                (arp.sender_protocol_addr(), arp.target_protocol_addr()),
                (&who.ip.octets()[..], &who.ip.octets()[..])
            );
        }
    }

    proptest! {
        #[test]
        fn a_wrong_bit_anywhere_in_the_packet_is_found(bit in 14 * 8_usize..120 * 8, roce: bool) {
            let template = template(if roce { FlowKind::Roce } else { FlowKind::Udp }, None, 120);
            let mut bytes = frame(&template, 77, 1234);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(mark(&template, &bytes), None);
        }

        #[test]
        fn mark_of_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..120), ipv4: bool) {
            let template = template(FlowKind::Roce, None, 100);
            let mut frame = frame(&template, 1, 1);
            let keep = if ipv4 { 34.min(frame.len()) } else { 14 };
            frame.truncate(keep);
            frame.extend(&bytes);
            let _ = mark(&template, &frame);
            let _ = mark(&template, &bytes);
        }
    }
}
