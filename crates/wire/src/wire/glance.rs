//! Reads the few bytes of a frame that determine its traffic class.
//!
//! An overloaded lcore drops lossy frames by these bytes alone. [`parse()`](super::parse()) reads the same DSCP and PCP
//! from every frame that it accepts.

use super::mac_control;
use super::parse::{ETHERNET_LEN, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPV6_LEN, L3, is_tag};
use super::roce::RoceControl;
use super::vlan_tag::TAG_LEN;

const ETHERTYPE_ARP: u16 = 0x0806;
/// Next header value of ICMPv6.
const ICMPV6: u8 = 58;
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
/// Destinations that bridges must not relay: 01-80-C2-00-00-00 to 0F (IEEE 802.1Q clause 8.6.3, table 8-1).
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

/// The use of a frame, as far as its first bytes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// MAC control from the link peer, PFC and PAUSE: untagged and to 01-80-C2-00-00-01.
    MacControl,
    /// Frames that find stations: ARP and IPv6 neighbour discovery (RFC 4861).
    Network,
    /// Bridge protocols (LLDP, LACP, STP), recognized by their destination address.
    Bridge,
    /// All others.
    Data,
}

/// The marks (DSCP and PCP) and the purpose of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// DSCP; `None` without an IP header.
    pub dscp: Option<u8>,
    /// PCP of the outermost tag; `None` without a tag.
    pub pcp: Option<u8>,
    /// Purpose of the frame.
    pub purpose: Purpose,
}

/// Returns the byte of DSCP and ECN of the most common frames: untagged IPv4 to a unicast address. For all others it
/// returns `None`, and [`glance`] must read the frame.
#[inline]
#[must_use]
pub fn glance_usual(frame: &[u8]) -> Option<u8> {
    let first: &[u8; ETHERNET_LEN + 2] = frame.first_chunk()?;
    let is_usual = first[12..14] == ETHERTYPE_IPV4.to_be_bytes() && first[0] & 1 == 0;
    is_usual.then_some(first[15])
}

/// Reads the marks and the purpose of `frame`, which starts with the destination address. Missing bytes read as zero.
#[inline(never)]
#[must_use]
pub fn glance(frame: &[u8]) -> Glance {
    let byte = |at: usize| byte(frame, at);
    let word = |at: usize| word(frame, at);
    let (ethertype, l3, pcp) = network(frame);
    let dscp = match ethertype {
        ETHERTYPE_IPV4 => Some(byte(l3 + 1) >> 2),
        ETHERTYPE_IPV6 => Some((word(l3) >> 4) as u8 >> 2),
        _ => None,
    };
    let is_discovery =
        || ethertype == ETHERTYPE_IPV6 && byte(l3 + 6) == ICMPV6 && NEIGHBOUR_DISCOVERY.contains(&byte(l3 + IPV6_LEN));
    let purpose = if ethertype == mac_control::ETHERTYPE && l3 == ETHERNET_LEN && mac_control::is_to_link_peer(frame) {
        Purpose::MacControl
    } else if ethertype == ETHERTYPE_ARP || is_discovery() {
        Purpose::Network
    } else if is_link_local(frame) {
        Purpose::Bridge
    } else {
        Purpose::Data
    };
    Glance { dscp, pcp, purpose }
}

/// Returns the kind of `frame`, if it is a RoCEv2 packet without data of applications.
#[must_use]
pub fn glance_roce(frame: &[u8]) -> Option<RoceControl> {
    let (ethertype, l3, _) = network(frame);
    let kind = match ethertype {
        ETHERTYPE_IPV4 => L3::V4,
        ETHERTYPE_IPV6 => L3::V6,
        _ => L3::Other,
    };
    RoceControl::of(frame, kind, l3)
}

/// Returns the EtherType behind the tags of `frame`, the offset of what follows, and the PCP of the first tag.
fn network(frame: &[u8]) -> (u16, usize, Option<u8>) {
    let (mut ethertype, mut l3, mut pcp) = (word(frame, 12), ETHERNET_LEN, None);
    // Skips at most two tags, like the parser.
    while is_tag(ethertype) && l3 < ETHERNET_LEN + 2 * TAG_LEN {
        pcp = pcp.or(Some(byte(frame, l3) >> 5));
        ethertype = word(frame, l3 + 2);
        l3 += TAG_LEN;
    }
    (ethertype, l3, pcp)
}

fn byte(frame: &[u8], at: usize) -> u8 {
    frame.get(at).copied().unwrap_or(0)
}

fn word(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([byte(frame, at), byte(frame, at + 1)])
}

fn is_link_local(frame: &[u8]) -> bool {
    frame.first_chunk::<6>().is_some_and(|dst| dst[..5] == LINK_LOCAL && dst[5] < 0x10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;
    use proptest::prelude::*;

    fn frame(dst: [u8; 6], behind: &[u8]) -> Vec<u8> {
        let mut frame = dst.to_vec();
        frame.extend([2, 0, 0, 0, 0, 1]);
        frame.extend(behind);
        frame.resize(80, 0);
        frame
    }

    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 2];

    #[test]
    fn glance_reads_marks_and_purpose_of_each_kind_of_frame() {
        let ipv6 = |next: u8, message: u8| {
            let mut packet = vec![0x86, 0xdd, 0x66, 0x80, 0, 0, 0, 24, next, 255];
            packet.extend([0; 32]);
            packet.push(message);
            packet
        };
        let tagged = |behind: &[u8]| [&[0x81, 0, 0x60, 10], behind].concat();
        let (dscp, none) = (Some(26), None);
        let cases = [
            ("IPv4", frame(HOST, &[8, 0, 0x45, 0x68]), dscp, none, Purpose::Data),
            ("tagged IPv4", frame(HOST, &tagged(&[8, 0, 0x45, 0x68])), dscp, Some(3), Purpose::Data),
            ("IPv6", frame(HOST, &ipv6(17, 0)), dscp, none, Purpose::Data),
            ("two tags", frame(HOST, &tagged(&[0x88, 0xa8, 0xe0, 1, 8, 0, 0x45, 0x68])), dscp, Some(3), Purpose::Data),
            ("ARP", frame([0xff; 6], &[8, 6]), none, none, Purpose::Network),
            ("LLDP", frame([1, 0x80, 0xc2, 0, 0, 0x0e], &[0x88, 0xcc]), none, none, Purpose::Bridge),
            ("neighbour solicitation", frame([0x33; 6], &ipv6(58, 135)), dscp, none, Purpose::Network),
            ("ping", frame(HOST, &ipv6(58, 128)), dscp, none, Purpose::Data),
            ("PFC", frame([1, 0x80, 0xc2, 0, 0, 1], &[0x88, 8, 1, 1]), none, none, Purpose::MacControl),
            ("PFC to a station", frame(HOST, &[0x88, 8, 1, 1]), none, none, Purpose::Data),
            ("tagged PFC", frame([1, 0x80, 0xc2, 0, 0, 1], &tagged(&[0x88, 8])), none, Some(3), Purpose::Bridge),
        ];
        for (name, frame, dscp, pcp, purpose) in cases {
            assert_eq!(glance(&frame), Glance { dscp, pcp, purpose }, "{name}");
            assert_eq!(glance_usual(&frame).map(|byte| byte >> 2), dscp.filter(|_| name == "IPv4"), "{name}");
        }
    }

    #[test]
    fn glance_of_an_empty_frame_has_no_marks() {
        for len in 0..16 {
            let _ = glance(&[0x81; 16][..len]);
        }
        assert_eq!(glance(&[]), Glance { dscp: None, pcp: None, purpose: Purpose::Data });
    }

    proptest! {
        /// For every frame that the parser accepts, a glance reads the same marks.
        #[test]
        fn a_glance_reads_the_marks_that_the_parser_reads(
            kind in prop::sample::select(vec![
                vec![8_u8, 0, 0x45], vec![0x86, 0xdd, 0x6a, 0xbc], vec![0x81, 0, 0x6f, 1, 8, 0, 0x45],
                vec![0x88, 0xa8, 0xe0, 1, 0x81, 0, 0x20, 1, 0x86, 0xdd, 0x61], vec![0x81, 0, 1, 1, 0x81, 0, 2, 2, 0x81, 0],
                vec![8, 6], vec![0x88, 8, 1, 1],
            ]),
            noise in prop::collection::vec(any::<u8>(), 60..90),
            // A total length or payload length that fits into the frame.
            len in 20_u8..50,
            to_peer in any::<bool>(),
        ) {
            let mut frame = frame(if to_peer { [1, 0x80, 0xc2, 0, 0, 1] } else { HOST }, &kind);
            let at = 12 + kind.len();
            for (index, byte) in noise.iter().enumerate() {
                if at + index < frame.len() {
                    frame[at + index] = *byte;
                }
            }
            let l3 = 12 + kind.iter().rposition(|byte| byte >> 4 == 4 || byte >> 4 == 6).unwrap_or(2);
            frame[l3 + 2..l3 + 4].copy_from_slice(&[0, len]);
            frame[l3 + 6..l3 + 10].copy_from_slice(&[0, 0, 64, 99]);
            if let Ok(headers) = parse(&frame) {
                let seen = glance(&frame);
                if let Some(byte) = glance_usual(&frame) {
                    prop_assert_eq!(seen, Glance { dscp: Some(byte >> 2), pcp: None, purpose: Purpose::Data });
                }
                prop_assert_eq!((seen.dscp, seen.pcp), (headers.dscp(), headers.pcp()));
                let is_control = headers.ethertype == mac_control::ETHERTYPE && headers.tags == 0 && to_peer;
                prop_assert_eq!(seen.purpose == Purpose::MacControl, is_control);
            }
        }
    }
}
