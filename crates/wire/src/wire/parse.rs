//! Parses the headers of any frame: Ethernet, up to two VLAN tags, IPv4, IPv6, UDP and TCP.
//!
//! The parser checks every length once, so that callers use its results without further checks.
//!
//! A bridge forwards a packet whatever its transport header holds (IEEE 802.1Q clause 8.6), so a defect there is a
//! field of [`Headers`] and no error.

use super::MacAddr;
use super::extensions::Walk;
use super::vlan_tag::TAG_LEN;

/// EtherType of a customer VLAN tag (IEEE 802.1Q clause 5.5).
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// EtherType of a service VLAN tag (IEEE 802.1Q clause 5.6, first in 802.1ad).
pub const ETHERTYPE_SVLAN: u16 = 0x88a8;
/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of ARP (RFC 826).
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// EtherType of LLDP (IEEE 802.1AB).
pub const ETHERTYPE_LLDP: u16 = 0x88cc;
/// EtherType of slow protocols, such as LACP (IEEE 802.3 annex 57A).
pub const ETHERTYPE_SLOW: u16 = 0x8809;

/// EtherType of the Configuration Testing Protocol, also called loopback (Ethernet 2.0, section 8).
pub const ETHERTYPE_LOOPBACK: u16 = 0x9000;

// Lengths of headers without options, and IP protocol numbers.
pub(super) const ETHERNET_LEN: usize = 14;
pub(super) const IPV4_LEN: usize = 20;
pub(super) const IPV6_LEN: usize = 40;
pub(super) const UDP_LEN: usize = 8;
pub(super) const TCP_LEN: usize = 20;
/// Protocol number of UDP in IP (IANA).
pub const UDP: u8 = 17;
/// Protocol number of TCP in IP (IANA).
pub const TCP: u8 = 6;
/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Next header of ICMPv6.
pub const ICMPV6: u8 = 58;

/// The reason why a frame is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The frame ends inside its Ethernet header or a tag.
    #[error("truncated Ethernet frame")]
    Truncated,
    /// The frame ends inside its IPv4 header or packet.
    #[error("truncated IPv4 packet")]
    Ipv4Truncated,
    /// Impossible IPv4 version or length.
    #[error("malformed IPv4 header")]
    Ipv4Malformed,
    /// The frame ends inside its IPv6 header or packet.
    #[error("truncated IPv6 packet")]
    Ipv6Truncated,
    /// Impossible IPv6 version.
    #[error("malformed IPv6 header")]
    Ipv6Malformed,
    /// The packet ends inside its UDP or TCP header, or inside an IPv6 extension header.
    #[error("truncated UDP, TCP or extension header")]
    L4Truncated,
    /// Impossible UDP length or TCP header length.
    #[error("malformed UDP or TCP header")]
    L4Malformed,
}

/// The network layer of a frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum L3 {
    /// Neither IPv4 nor IPv6.
    #[default]
    Other,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// UDP or TCP ports of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct L4 {
    /// IP protocol: 17 or 6.
    pub protocol: u8,
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
}

/// Header fields of a frame that the switch needs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// TCI of the outermost tag.
    pub tci: Option<u16>,
    /// Number of tags that were read: 0 to 2.
    pub tags: u8,
    /// EtherType behind the tags.
    pub ethertype: u16,
    /// Network layer.
    pub l3: L3,
    /// Offset of the network header.
    pub l3_offset: u8,
    /// DSCP and ECN as one byte; zero without IP.
    pub traffic_class: u8,
    /// The defect of the transport header, or of an IPv6 extension header in front of it. A fragment has a defect only
    /// if it holds the whole header.
    pub l4_error: Option<ParseError>,
    /// IP protocol of the ports; zero without ports.
    l4_protocol: u8,
    /// Source and destination port.
    l4_ports: [u16; 2],
}

impl Headers {
    /// The fields before any header is read.
    const NONE: Self = Self {
        dst: MacAddr([0; 6]),
        src: MacAddr([0; 6]),
        tci: None,
        tags: 0,
        ethertype: 0,
        l3: L3::Other,
        l3_offset: 0,
        traffic_class: 0,
        l4_error: None,
        l4_protocol: 0,
        l4_ports: [0; 2],
    };

    /// Returns the ports of UDP or TCP. A packet without a whole and valid transport header has none, unless it is a
    /// first fragment that holds them.
    #[must_use]
    pub fn l4(&self) -> Option<L4> {
        let [source, destination] = self.l4_ports;
        (self.l4_protocol != 0).then_some(L4 { protocol: self.l4_protocol, source, destination })
    }

    /// Returns the DSCP, or `None` without IP.
    #[inline]
    #[must_use]
    pub fn dscp(&self) -> Option<u8> {
        (self.l3 != L3::Other).then_some(self.traffic_class >> 2)
    }

    /// Returns the ECN codepoint. Frames without IP have Not-ECT.
    #[inline]
    #[must_use]
    pub fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }

    /// Returns the PCP of the outermost tag.
    #[inline]
    #[must_use]
    pub fn pcp(&self) -> Option<u8> {
        self.tci.map(|tci| (tci >> 13) as u8)
    }

    /// Returns the VLAN id of the outermost tag. Zero is a priority tag.
    #[inline]
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.tci.map(|tci| tci & 0xfff)
    }
}

/// Reads the headers of `frame`, which starts with the destination address and has no frame check sequence.
///
/// # Errors
/// Returns an error if the header of Ethernet or IP is cut short or contradicts itself.
pub fn parse(frame: &[u8]) -> Result<Headers, ParseError> {
    let mut headers = Headers::NONE;
    let ethernet: &[u8; ETHERNET_LEN] = frame.first_chunk().ok_or(ParseError::Truncated)?;
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *ethernet;
    headers.dst = MacAddr([d0, d1, d2, d3, d4, d5]);
    headers.src = MacAddr([s0, s1, s2, s3, s4, s5]);
    headers.ethertype = u16::from_be_bytes([t0, t1]);
    headers.l3_offset = ETHERNET_LEN as u8;
    if is_tag(headers.ethertype) {
        parse_tags(frame, &mut headers)?;
    }
    let packet = &frame[usize::from(headers.l3_offset)..];
    match headers.ethertype {
        ETHERTYPE_IPV4 => parse_ipv4(packet, &mut headers)?,
        ETHERTYPE_IPV6 => parse_ipv6(packet, &mut headers)?,
        _ => {}
    }
    Ok(headers)
}

#[inline]
pub(super) fn is_tag(ethertype: u16) -> bool {
    ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_SVLAN
}

fn parse_tags(frame: &[u8], headers: &mut Headers) -> Result<(), ParseError> {
    while is_tag(headers.ethertype) && headers.tags < 2 {
        let at = usize::from(headers.l3_offset);
        let tag: &[u8; TAG_LEN] = frame[at..].first_chunk().ok_or(ParseError::Truncated)?;
        headers.tci.get_or_insert(u16::from_be_bytes([tag[0], tag[1]]));
        headers.ethertype = u16::from_be_bytes([tag[2], tag[3]]);
        headers.l3_offset += TAG_LEN as u8;
        headers.tags += 1;
    }
    Ok(())
}

#[inline]
fn parse_ipv4(packet: &[u8], headers: &mut Headers) -> Result<(), ParseError> {
    let fixed: &[u8; IPV4_LEN] = packet.first_chunk().ok_or(ParseError::Ipv4Truncated)?;
    let header_len = usize::from(fixed[0] & 0xf) * 4;
    let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    // RFC 791 section 3.1, on the header length in words: "the minimum value for a correct header is 5".
    if fixed[0] >> 4 != 4 || header_len < IPV4_LEN || total_len < header_len {
        return Err(ParseError::Ipv4Malformed);
    }
    if packet.len() < total_len {
        return Err(ParseError::Ipv4Truncated);
    }
    headers.l3 = L3::V4;
    headers.traffic_class = fixed[1];
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    if fragment & 0x1fff == 0 {
        let whole = fragment & 0x2000 == 0;
        headers.l4_error = parse_l4(fixed[9], &packet[header_len..total_len], whole, headers).err();
    }
    Ok(())
}

#[inline]
fn parse_ipv6(packet: &[u8], headers: &mut Headers) -> Result<(), ParseError> {
    let fixed: &[u8; IPV6_LEN] = packet.first_chunk().ok_or(ParseError::Ipv6Truncated)?;
    if fixed[0] >> 4 != 6 {
        return Err(ParseError::Ipv6Malformed);
    }
    let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let payload = packet[IPV6_LEN..].get(..payload_len).ok_or(ParseError::Ipv6Truncated)?;
    headers.l3 = L3::V6;
    headers.traffic_class = fixed[0] << 4 | fixed[1] >> 4;
    let parsed = match fixed[6] {
        protocol @ (UDP | TCP) => parse_l4(protocol, payload, true, headers),
        next => parse_extensions(next, payload, headers),
    };
    headers.l4_error = parsed.err();
    Ok(())
}

/// Reads the ports behind extension headers (RFC 8200 section 4).
#[inline(never)]
fn parse_extensions(next: u8, payload: &[u8], headers: &mut Headers) -> Result<(), ParseError> {
    let mut whole = true;
    let mut walk = Walk::new(next, payload);
    for extension in &mut walk {
        let Ok(extension) = extension else { return cut(whole) };
        match extension.fragment() {
            Some(fragment) if !fragment.is_first => return Ok(()),
            Some(fragment) => whole &= fragment.is_last,
            None => {}
        }
    }
    parse_l4(walk.protocol, walk.payload, whole, headers)
}

/// The result for a packet that ends inside a header. A first fragment (not `whole`) may end anywhere.
///
/// RFC 791 section 3.2: fragments have any multiple of 8 bytes of data.
#[inline]
fn cut(whole: bool) -> Result<(), ParseError> {
    if whole { Err(ParseError::L4Truncated) } else { Ok(()) }
}

/// Reads the ports of a UDP or TCP `segment`. A first fragment (not `whole`) is judged only by a header that it holds
/// whole.
#[inline]
fn parse_l4(protocol: u8, segment: &[u8], whole: bool, headers: &mut Headers) -> Result<(), ParseError> {
    let needed = match protocol {
        UDP => UDP_LEN,
        TCP => TCP_LEN,
        _ => return Ok(()),
    };
    if let Some(header) = segment.get(..needed) {
        let len = match protocol {
            UDP => usize::from(u16::from_be_bytes([header[4], header[5]])),
            _ => usize::from(header[12] >> 4) * 4,
        };
        if len < needed || (whole && len > segment.len()) {
            return Err(ParseError::L4Malformed);
        }
    } else if whole {
        return Err(ParseError::L4Truncated);
    }
    if let Some(&[s0, s1, d0, d1]) = segment.first_chunk() {
        headers.l4_protocol = protocol;
        headers.l4_ports = [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])];
    }
    Ok(())
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
