//! Packets for the router, made with etherparse, which is independent of the switch.

use std::net::IpAddr;

use etherparse::{IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder};
use holdfast::wire::MacAddr;

/// A UDP packet in an Ethernet frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// Source and destination address of the frame.
    pub macs: (MacAddr, MacAddr),
    /// TPID and TCI of the tag.
    pub tag: Option<(u16, u16)>,
    pub src: IpAddr,
    pub dst: IpAddr,
    /// Time to live or hop limit.
    pub ttl: u8,
    pub dscp: u8,
    pub ecn: u8,
    /// UDP ports, source and destination.
    pub ports: (u16, u16),
    /// Flow label of IPv6.
    pub label: u32,
    /// Whether routers must not fragment an IPv4 packet.
    pub is_whole: bool,
    /// Offset of an IPv4 fragment in units of 8 bytes, and whether more fragments follow.
    pub fragment: (u16, bool),
    /// Bytes behind the UDP header.
    pub payload: usize,
}

/// TPIDs of customer and service tags.
pub const CUSTOMER: u16 = 0x8100;
pub const SERVICE: u16 = 0x88a8;

impl Packet {
    /// Creates a RoCEv2 packet between two addresses of one family, without tag.
    pub fn new(macs: (MacAddr, MacAddr), src: &str, dst: &str) -> Self {
        let address = |text: &str| text.parse().unwrap_or_else(|_| panic!("{text} is an address"));
        Self {
            macs,
            tag: None,
            src: address(src),
            dst: address(dst),
            ttl: 64,
            dscp: 0,
            ecn: 2,
            ports: (49_152, 4791),
            label: 0,
            is_whole: true,
            fragment: (0, false),
            payload: 60,
        }
    }

    /// Makes the frame, with right checksums. The payload counts up, so that a moved byte shows.
    pub fn frame(&self) -> Vec<u8> {
        let payload: Vec<u8> = (0..self.payload).map(|n| n as u8).collect();
        let mut bytes = Vec::new();
        PacketBuilder::ethernet2(self.macs.0.0, self.macs.1.0)
            .ip(self.ip())
            .udp(self.ports.0, self.ports.1)
            .write(&mut bytes, &payload)
            .unwrap();
        if let Some((tpid, tci)) = self.tag {
            bytes.splice(12..12, [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
        }
        bytes
    }

    fn ip(&self) -> IpHeaders {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let length = (8 + self.payload) as u16;
                let mut ip = Ipv4Header::new(length, self.ttl, IpNumber::UDP, src.octets(), dst.octets()).unwrap();
                ip.dscp = self.dscp.try_into().unwrap();
                ip.ecn = self.ecn.try_into().unwrap();
                ip.identification = 0x1234;
                ip.dont_fragment = self.is_whole;
                ip.fragment_offset = IpFragOffset::try_new(self.fragment.0).unwrap();
                ip.more_fragments = self.fragment.1;
                IpHeaders::Ipv4(ip, Default::default())
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let ip = Ipv6Header {
                    traffic_class: self.dscp << 2 | self.ecn,
                    flow_label: Ipv6FlowLabel::try_new(self.label).unwrap(),
                    payload_length: (8 + self.payload) as u16,
                    next_header: IpNumber::UDP,
                    hop_limit: self.ttl,
                    source: src.octets(),
                    destination: dst.octets(),
                };
                IpHeaders::Ipv6(ip, Default::default())
            }
            _ => panic!("{} and {} are of two families", self.src, self.dst),
        }
    }

    /// The packet one hop later, untagged, between two other addresses.
    pub fn routed(&self, from: MacAddr, to: MacAddr) -> Self {
        Self { macs: (from, to), tag: None, ttl: self.ttl - 1, ..self.clone() }
    }
}

/// Makes a frame of at least 60 bytes with any payload.
pub fn with_payload(macs: (MacAddr, MacAddr), ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [macs.1.0, macs.0.0].concat();
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Writes the checksum of the IPv4 header at `offset` anew.
pub fn fix_checksum(frame: &mut [u8], offset: usize) {
    let (header, _) = Ipv4Header::from_slice(&frame[offset..]).unwrap();
    frame[offset + 10..offset + 12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
}
