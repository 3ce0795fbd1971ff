//! The fields of a frame by which faults select it.

use ipnet::IpNet;

use super::spec::{Fault, Flow, What};
use super::table::ClassReader;
use crate::wire::ip::{Ipv4, Ipv6};
use crate::wire::parse::{L3, parse};
use crate::wire::roce::{PORT, RoceControl};
use crate::wire::{ecn, mac_control};

/// Bytes of a UDP header, and the place of the destination queue pair in a base transport header.
const UDP_LEN: usize = 8;
const QUEUE_PAIR_AT: usize = 5;
const UDP: u8 = 17;
const TCP: u8 = 6;
const ETHERNET_LEN: usize = 14;
const IPV6_LEN: usize = 40;
/// Places of the total length of IPv4 and of the payload length of IPv6.
const IPV4_LENGTH_AT: usize = 2;
const IPV6_LENGTH_AT: usize = 4;

/// The 16-bit length at byte `at` of `packet`.
fn length_at(packet: &[u8], at: usize) -> usize {
    let bytes = packet.get(at..).and_then(|bytes| bytes.first_chunk::<2>());
    bytes.map_or(0, |&bytes| usize::from(u16::from_be_bytes(bytes)))
}

/// An IP address of either family as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Address {
    V4(u32),
    V6(u128),
}

impl Address {
    fn is_in(self, net: IpNet) -> bool {
        match (self, net) {
            (Self::V4(address), IpNet::V4(net)) => (address ^ net.addr().to_bits()) & net.netmask().to_bits() == 0,
            (Self::V6(address), IpNet::V6(net)) => (address ^ net.addr().to_bits()) & net.netmask().to_bits() == 0,
            _ => false,
        }
    }
}

/// A frame as faults see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameView {
    /// Whether it is a MAC control frame.
    pub is_pfc: bool,
    /// Traffic class; that of the port for frames that do not parse.
    pub class: u8,
    l3: L3,
    l3_offset: usize,
    traffic_class: u8,
    addresses: Option<(Address, Address)>,
    protocol: u8,
    ports: Option<(u16, u16)>,
    queue_pair: Option<u32>,
    /// First byte behind the headers that were read.
    payload_at: usize,
    /// End of the IP packet, or of the frame if it has none. Padding follows.
    end: usize,
}

impl FrameView {
    /// Reads `frame` of a port that classifies by `classes`.
    pub fn read(frame: &[u8], classes: &ClassReader) -> Self {
        let ethertype = frame.get(12..14).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let is_pfc = ethertype == Some(mac_control::ETHERTYPE);
        let mut view = Self {
            is_pfc,
            class: classes.class(None, None),
            l3: L3::Other,
            l3_offset: 0,
            traffic_class: 0,
            addresses: None,
            protocol: 0,
            ports: None,
            queue_pair: None,
            payload_at: ETHERNET_LEN,
            end: frame.len(),
        };
        let Ok(headers) = parse(frame) else { return view };
        view.class = classes.class(headers.dscp(), headers.pcp());
        (view.l3, view.l3_offset) = (headers.l3, headers.l3_offset.into());
        view.traffic_class = headers.traffic_class;
        view.payload_at = view.l3_offset.max(ETHERNET_LEN);
        view.ports = headers.l4().map(|l4| (l4.source, l4.destination));
        view.read_packet(frame);
        if let Some(kind) = RoceControl::of(frame, view.l3, view.l3_offset) {
            view.class = classes.of_roce(kind).unwrap_or(view.class);
        }
        view
    }

    fn read_packet(&mut self, frame: &[u8]) {
        let Some(packet) = frame.get(self.l3_offset..) else { return };
        let header_len = match self.l3 {
            L3::V4 => {
                let Some(ip) = Ipv4::read(packet) else { return };
                self.addresses = Some((Address::V4(ip.src), Address::V4(ip.dst)));
                self.protocol = ip.protocol;
                self.end_at(frame.len(), length_at(packet, IPV4_LENGTH_AT));
                usize::from(ip.header_len)
            }
            L3::V6 => {
                let Some(ip) = Ipv6::read(packet) else { return };
                let number = u128::from_be_bytes;
                self.addresses = Some((Address::V6(number(ip.src)), Address::V6(number(ip.dst))));
                self.protocol = ip.next_header;
                self.end_at(frame.len(), IPV6_LEN + length_at(packet, IPV6_LENGTH_AT));
                IPV6_LEN
            }
            L3::Other => return,
        };
        let at = self.l3_offset + header_len;
        self.payload_at = at;
        let Some((_, destination)) = self.ports else { return };
        self.payload_at = match self.protocol {
            UDP => at + UDP_LEN,
            TCP => at + frame.get(at + 12).map_or(0, |byte| usize::from(byte >> 4) * 4),
            _ => at,
        };
        if self.protocol == UDP && destination == PORT {
            let number = frame.get(at + UDP_LEN + QUEUE_PAIR_AT..).and_then(|bytes| bytes.first_chunk::<3>());
            self.queue_pair = number.map(|&[high, middle, low]| u32::from_be_bytes([0, high, middle, low]));
        }
    }

    /// Sets the end of an IP packet of `len` bytes in a frame of `frame_len` bytes.
    fn end_at(&mut self, frame_len: usize, len: usize) {
        self.end = (self.l3_offset + len).min(frame_len);
    }

    /// Whether `fault` selects the frame.
    pub fn is_of(&self, fault: &Fault) -> bool {
        let is_kind = match fault.what {
            What::Any => true,
            What::Data => !self.is_pfc,
            What::Pfc => self.is_pfc,
        };
        let is_class = fault.classes.is_none_or(|classes| !self.is_pfc && classes.contains(self.class.into()));
        is_kind && is_class && (fault.flow.is_any() || self.is_of_flow(&fault.flow))
    }

    fn is_of_flow(&self, flow: &Flow) -> bool {
        let Some((source, destination)) = self.addresses else { return false };
        flow.source.is_none_or(|net| source.is_in(net))
            && flow.destination.is_none_or(|net| destination.is_in(net))
            && flow.protocol.is_none_or(|protocol| protocol == self.protocol)
            && flow.source_port.is_none_or(|port| self.ports.is_some_and(|(source, _)| source == port))
            && flow.destination_port.is_none_or(|port| self.ports.is_some_and(|(_, destination)| destination == port))
            && flow.queue_pair.is_none_or(|number| self.queue_pair == Some(number))
            && flow.dscp.is_none_or(|dscp| self.traffic_class >> 2 == dscp)
    }

    /// Whether the packet has ECT(0) or ECT(1).
    pub fn is_ect(&self) -> bool {
        self.l3 != L3::Other && ecn::is_ect(self.traffic_class)
    }

    /// Marks the packet CE.
    pub fn mark(&self, frame: &mut [u8]) {
        ecn::mark_ce(frame, self.l3, self.l3_offset);
    }

    /// Inverts one bit, which `random` chooses, behind the headers and before the padding. Without a payload it is one
    /// of the last byte.
    pub fn corrupt(&self, frame: &mut [u8], random: u64) {
        let Some(last) = self.end.min(frame.len()).checked_sub(1) else { return };
        let first = self.payload_at.min(last);
        let at = first + ((u128::from(random) * (last - first + 1) as u128) >> u64::BITS) as usize;
        frame[at] ^= 1 << (random & 7);
    }
}
