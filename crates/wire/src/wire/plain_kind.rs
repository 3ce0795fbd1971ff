//! Kinds of plain frames, by tag and version of IP.

use super::parse::{ETHERNET_LEN, ETHERTYPE_IPV6, ETHERTYPE_SVLAN, ETHERTYPE_VLAN, L3};
use super::usual::Usual;
use super::vlan_tag::TAG_LEN;

/// A kind of plain frames that are not usual. Most bursts have frames of one kind only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainKind {
    /// IPv4 behind one tag.
    TaggedIpv4,
    /// IPv6 without a tag.
    Ipv6,
    /// IPv6 behind one tag.
    TaggedIpv6,
}

impl PlainKind {
    /// Number of kinds.
    pub const COUNT: usize = 3;
    /// All kinds in their order.
    pub const ALL: [Self; Self::COUNT] = [Self::TaggedIpv4, Self::Ipv6, Self::TaggedIpv6];

    /// The kind that a frame seems to have, by its EtherTypes; `None` if it has neither a tag nor IPv6.
    #[inline]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let ethertype = |at: usize| {
            let word = frame.get(at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |&word| u16::from_be_bytes(word))
        };
        match ethertype(ETHERNET_LEN - 2) {
            ETHERTYPE_IPV6 => Some(Self::Ipv6),
            ETHERTYPE_VLAN | ETHERTYPE_SVLAN if ethertype(ETHERNET_LEN + TAG_LEN - 2) == ETHERTYPE_IPV6 => {
                Some(Self::TaggedIpv6)
            }
            ETHERTYPE_VLAN | ETHERTYPE_SVLAN => Some(Self::TaggedIpv4),
            _ => None,
        }
    }

    /// Whether the frames have a tag.
    #[inline]
    pub const fn is_tagged(self) -> bool {
        !matches!(self, Self::Ipv6)
    }

    /// IPv4 or IPv6.
    #[inline]
    pub const fn l3(self) -> L3 {
        if matches!(self, Self::TaggedIpv4) { L3::V4 } else { L3::V6 }
    }

    /// Offset of the network header.
    #[inline]
    pub const fn l3_offset(self) -> u8 {
        (ETHERNET_LEN + if self.is_tagged() { TAG_LEN } else { 0 }) as u8
    }
}

/// Addresses, traffic class and tag of a plain frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindFields {
    /// The fields that a usual frame has too.
    pub usual: Usual,
    /// Tag control information, without the bit DEI; zero without a tag.
    pub tci: u16,
}

/// Reads a frame by words. The form with vectors is compared with it.
#[cfg(test)]
pub(super) fn parse_kind(kind: PlainKind, frame: &[u8]) -> Option<KindFields> {
    let plain = super::parse_plain(frame)?;
    let is_of_kind = (plain.l3, plain.is_tagged) == (kind.l3(), kind.is_tagged());
    let tci = plain.vlan | u16::from(plain.pcp) << 13;
    (is_of_kind && plain.is_tagged == (plain.vlan != 0)).then_some(KindFields { usual: plain.usual, tci })
}
