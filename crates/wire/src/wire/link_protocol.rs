//! Protocols of one link, whose frames no bridge relays: told by destination and by EtherType or LLC header.
//!
//! One address serves several protocols. IEEE 802.1Q table 8-1 reserves 01-80-C2-00-00-00 to 0F; spanning tree shares
//! the first with LLDP of the nearest customer bridge (802.1AB table 7-1), for example.

use super::MacAddr;
use super::parse::{ETHERTYPE_LLDP, ETHERTYPE_SLOW};

/// LLC header of a BPDU (IEEE 802.1Q clause 14.4, 802.2): both service access points of spanning tree, and unnumbered
/// information.
const LLC_BPDU: [u8; 3] = [0x42, 0x42, 0x03];
/// The highest number in the place of the EtherType that is a length (IEEE 802.3 clause 3.2.6).
const MOST_LENGTH: u16 = 1500;

/// The protocol of a frame to a reserved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkProtocol {
    /// Spanning tree: LLC 42-42-03 to the address of customer or provider bridges.
    SpanningTree,
    /// LLDP to the nearest bridge. The two other scopes of LLDP have agents of their own, which this switch lacks.
    Lldp,
    /// A slow protocol, such as LACP.
    Slow,
    /// Any other, or a tagged frame: protocols of a link have no tags.
    Other,
}

impl LinkProtocol {
    /// The protocol of `frame`, which starts with a reserved destination.
    #[must_use]
    pub fn of(frame: &[u8]) -> Self {
        let Some(&[a, b, c, d, e, f, .., high, low]) = frame.first_chunk::<14>() else { return Self::Other };
        let is_bpdu = || frame.get(14..17) == Some(&LLC_BPDU);
        match (MacAddr([a, b, c, d, e, f]), u16::from_be_bytes([high, low])) {
            (MacAddr::LLDP, ETHERTYPE_LLDP) => Self::Lldp,
            (MacAddr::SLOW_PROTOCOLS, ETHERTYPE_SLOW) => Self::Slow,
            (MacAddr::BRIDGES | MacAddr::PROVIDER_BRIDGES, ..=MOST_LENGTH) if is_bpdu() => Self::SpanningTree,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame to 01-80-C2-00-00-`last` with `behind` its addresses.
    fn frame(last: u8, behind: &[u8]) -> Vec<u8> {
        let mut frame = vec![1, 0x80, 0xc2, 0, 0, last, 2, 0, 0, 0, 0, 1];
        frame.extend(behind);
        frame.resize(60, 0);
        frame
    }

    #[test]
    fn each_protocol_has_its_address_and_type() {
        const BPDU: &[u8] = &[0, 38, 0x42, 0x42, 3];
        type Case = (&'static str, &'static [u8], &'static [(u8, LinkProtocol)]);
        let bytes: [Case; 12] = [
            ("BPDU", BPDU, &[(0x00, LinkProtocol::SpanningTree), (0x08, LinkProtocol::SpanningTree)]),
            ("IS-IS of shortest path bridging", &[0, 38, 0xfe, 0xfe, 3], &[]),
            ("a type that is no length", &[6, 0, 0x42, 0x42, 3], &[]),
            ("tagged BPDU", &[0x81, 0, 0, 0, 0, 38, 0x42, 0x42, 3], &[]),
            ("LLDP", &[0x88, 0xcc, 2, 7], &[(0x0e, LinkProtocol::Lldp)]),
            ("LLDP with a priority tag", &[0x81, 0, 0, 0, 0x88, 0xcc, 2, 7], &[]),
            ("LACP", &[0x88, 0x09, 1, 1], &[(0x02, LinkProtocol::Slow)]),
            ("EAPOL", &[0x88, 0x8e, 3, 1], &[]),
            ("MVRP", &[0x88, 0xf5, 0], &[]),
            ("MMRP", &[0x88, 0xf6, 0], &[]),
            ("PTP", &[0x88, 0xf7, 2, 2], &[]),
            ("PAUSE", &[0x88, 0x08, 0, 1], &[]),
        ];
        for ((name, behind, told), last) in bytes.iter().flat_map(|row| (0..16).map(move |last| (row, last))) {
            let expected =
                told.iter().find(|(to, _)| *to == last).map_or(LinkProtocol::Other, |(_, protocol)| *protocol);
            assert_eq!(LinkProtocol::of(&frame(last, behind)), expected, "{name} to {last:02x}");
        }
        assert_eq!(LinkProtocol::of(&frame(0, BPDU)[..16]), LinkProtocol::Other, "it ends inside LLC");
        assert_eq!(LinkProtocol::of(&[]), LinkProtocol::Other);
    }
}
