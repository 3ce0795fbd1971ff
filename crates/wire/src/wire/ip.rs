//! IPv4 and IPv6 headers, as a router reads and changes them.
//!
//! The functions take the packet from its network header on. [`super::parse()`] has checked version and lengths.

use super::parse::{IPV4_LEN, IPV6_LEN, TCP, UDP};

/// The fixed part of an IPv4 header.
pub type Ipv4Header = [u8; IPV4_LEN];
/// An IPv6 header.
pub type Ipv6Header = [u8; IPV6_LEN];

/// Mask of the more-fragments flag and the fragment offset in the word at byte 6.
const FRAGMENT: u16 = 0x3fff;
/// The don't-fragment flag in the word at byte 6.
const DONT_FRAGMENT: u16 = 0x4000;
/// The don't-fragment flag in the byte at 6.
pub const DONT_FRAGMENT_BIT: u8 = (DONT_FRAGMENT >> 8) as u8;

/// Upper half of the link-local IPv4 addresses, 169.254.0.0/16 (RFC 3927).
const LINK_LOCAL_V4: u32 = 0xa9fe;

/// Whether an IPv4 address is valid on its link only.
#[inline]
#[must_use]
pub fn is_link_local_v4(address: u32) -> bool {
    address >> 16 == LINK_LOCAL_V4
}

/// Whether an IPv6 address is valid on its link only: in fe80::/10 (RFC 4291).
#[inline]
#[must_use]
pub fn is_link_local_v6(address: [u8; 16]) -> bool {
    (address[0] == 0xfe) & (address[1] & 0xc0 == 0x80)
}

/// The fields of an IPv4 header that a router needs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source address.
    pub src: u32,
    /// Destination address.
    pub dst: u32,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Flags and fragment offset.
    fragment: u16,
    /// Length of the header in bytes.
    pub header_len: u8,
}

impl Ipv4 {
    /// Reads the fixed part of a header; `None` if `packet` is shorter.
    #[inline]
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let header: &Ipv4Header = packet.first_chunk()?;
        let double = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| header[at + byte]));
        Some(Self {
            src: double(12),
            dst: double(16),
            ttl: header[8],
            protocol: header[9],
            fragment: u16::from_be_bytes([header[6], header[7]]),
            header_len: (header[0] & 0xf) * 4,
        })
    }

    /// Whether the header has options.
    #[inline]
    #[must_use]
    pub fn has_options(self) -> bool {
        usize::from(self.header_len) != IPV4_LEN
    }

    /// Whether the packet is a fragment: the first, one in the middle or the last.
    #[inline]
    #[must_use]
    pub fn is_fragment(self) -> bool {
        self.fragment & FRAGMENT != 0
    }

    /// Whether routers must not fragment the packet.
    #[must_use]
    pub fn dont_fragment(self) -> bool {
        self.fragment & DONT_FRAGMENT != 0
    }

    /// Source port above destination port of the UDP or TCP segment of `packet`; zero for fragments and for other
    /// protocols.
    #[inline]
    #[must_use]
    pub fn ports(self, packet: &[u8]) -> u32 {
        if self.is_fragment() { 0 } else { ports(self.protocol, packet, self.header_len.into(), total_len(packet)) }
    }
}

/// The fields of an IPv6 header that a router needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source address.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
    /// Hop limit.
    pub hop_limit: u8,
    /// Protocol of the payload, or the type of the first extension header.
    pub next_header: u8,
    /// Flow label.
    pub label: u32,
}

impl Ipv6 {
    /// Reads a header; `None` if `packet` is shorter.
    #[inline]
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let header: &Ipv6Header = packet.first_chunk()?;
        let address = |at: usize| std::array::from_fn(|byte| header[at + byte]);
        Some(Self {
            src: address(8),
            dst: address(24),
            hop_limit: header[7],
            next_header: header[6],
            label: u32::from_be_bytes([0, header[1] & 0xf, header[2], header[3]]),
        })
    }

    /// Source port above destination port of the UDP or TCP segment of `packet`; zero behind extension headers and for
    /// other protocols.
    #[inline]
    #[must_use]
    pub fn ports(self, packet: &[u8]) -> u32 {
        ports(self.next_header, packet, IPV6_LEN, IPV6_LEN + payload_len(packet))
    }
}

/// Total length that the header of an IPv4 packet states.
#[inline]
fn total_len(packet: &[u8]) -> usize {
    packet.get(2..4).map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])))
}

/// Payload length that the header of an IPv6 packet states.
#[inline]
fn payload_len(packet: &[u8]) -> usize {
    packet.get(4..6).map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])))
}

/// The ports at `offset` of `packet`, which ends at `end`: padding follows.
#[inline]
fn ports(protocol: u8, packet: &[u8], offset: usize, end: usize) -> u32 {
    let has_ports = (protocol == UDP || protocol == TCP) & (offset + 4 <= end);
    match packet.get(offset..).and_then(|segment| segment.first_chunk()) {
        Some(&ports) if has_ports => u32::from_be_bytes(ports),
        _ => 0,
    }
}

/// Whether the checksum of an IPv4 header without options is right.
///
/// RFC 1071 section 1: "To check a checksum, the 1's complement sum is computed over the same set of octets, including
/// the checksum field. If the result is all 1 bits [...], the check succeeds."
#[inline]
#[must_use]
pub fn has_right_checksum(header: &Ipv4Header) -> bool {
    // A right sum has only 1 bits, so the plain sum is a multiple of 0xffff. It is not zero, since the header has a
    // version. 0xffff times this constant is 1, so the product of a multiple is its factor, and that of any other
    // number is larger (Hacker's Delight, section 10-17). In the loop over a burst, `is_multiple_of` was a wide product
    // and three more instructions.
    const INVERSE: u64 = 0xfffe_fffe_fffe_ffff;
    header_sum(header).wrapping_mul(INVERSE) <= u64::MAX / 0xffff
}

/// Source and destination address of an IPv4 header.
#[inline(always)]
pub fn addresses(header: &Ipv4Header) -> (u32, u32) {
    let double = |at: usize| u32::from_be_bytes(*header[at..].first_chunk().expect("the header is longer"));
    (double(12), double(16))
}

/// The ones' complement sum of the 64-bit words of an IPv4 header without options, not yet folded to 16 bits.
#[inline(always)]
fn header_sum(header: &Ipv4Header) -> u64 {
    // RFC 1071 section 2: the sum is the same in either byte order, and over words of any size. Carries are added at
    // the end.
    let (quads, remaining) = header.as_chunks();
    let quad = |at: usize| u64::from_ne_bytes(quads[at]);
    let last = u32::from_ne_bytes(*remaining.first_chunk().expect("the header is longer"));
    // In this order the compiler makes one chain of additions with carry. A sum that has carried is at most 2^64 - 2.
    // So of the last two carries at most one occurs, and its addition does not carry.
    let (sum, first) = quad(0).overflowing_add(last.into());
    let (sum, second) = sum.overflowing_add(quad(1));
    let (sum, third) = sum.overflowing_add(first.into());
    sum + u64::from(second | third)
}

/// Decrements the time to live of an IPv4 header, which must be at least 1, and updates the checksum.
///
/// RFC 1812 section 5.3.1: "a router MUST check for the TTL to be [...] decremented." RFC 1141 has the update of the
/// checksum: it grows by 0x0100, with the carry added at its end.
#[inline]
pub fn decrement_ttl(header: &mut Ipv4Header) {
    debug_assert!(header[8] > 0, "a packet without hops left is not forwarded");
    // Time to live and protocol are the lower half of this word, and the checksum is the upper half. The checksum is
    // the same in either byte order (RFC 1071 section 2); in this one it grows by 1.
    let word = u32::from_le_bytes(std::array::from_fn(|byte| header[8 + byte]));
    // RFC 1624 section 3: 0xffff and 0 are the same sum. It is written as 0, as a sender computes it.
    let mut next = word.wrapping_add((1 << 16) - 1);
    if word >= 0xfffe << 16 {
        next = carried(next);
    }
    header[8..12].copy_from_slice(&next.to_le_bytes());
}

/// `word` with the carry of its upper half. Two of 65,536 checksums need it, so a branch costs less than adding it to
/// all.
#[cold]
#[inline(never)]
fn carried(word: u32) -> u32 {
    word.wrapping_add(1 << 16)
}

/// Decrements the hop limit of an IPv6 header, which must be at least 1.
#[inline]
pub fn decrement_hop_limit(header: &mut Ipv6Header) {
    header[7] -= 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(ttl: u8, id: u16, src: [u8; 4], dst: [u8; 4]) -> Ipv4Header {
        let mut header = etherparse::Ipv4Header::new(8, ttl, etherparse::IpNumber::UDP, src, dst).unwrap();
        header.identification = id;
        header.header_checksum = header.calc_header_checksum();
        header.to_bytes().as_slice().try_into().unwrap()
    }

    proptest! {
        #[test]
        fn checksum_stays_right_when_ttl_falls(ttl in 1_u8.., id: u16, src: [u8; 4], dst: [u8; 4]) {
            let mut bytes = header(ttl, id, src, dst);
            prop_assert!(has_right_checksum(&bytes));
            decrement_ttl(&mut bytes);
            prop_assert!(has_right_checksum(&bytes));
            let (read, _) = etherparse::Ipv4Header::from_slice(&bytes).unwrap();
            prop_assert_eq!((read.time_to_live, read.header_checksum), (ttl - 1, read.calc_header_checksum()));
        }

        /// Sums of each carry: bytes 4 to 7 and 12 to 15 are the upper halves of the words that are added.
        #[test]
        fn checksum_is_right_for_any_carry(
            upper in prop::array::uniform8(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()]),
        ) {
            let mut bytes = header(64, 0, [0; 4], [10, 0, 0, 1]);
            bytes[4..8].copy_from_slice(&upper[..4]);
            bytes[12..16].copy_from_slice(&upper[4..]);
            bytes[10..12].fill(0);
            let sum: u32 = bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
            let sum = (sum & 0xffff) + (sum >> 16);
            let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(has_right_checksum(&bytes));
            bytes[11] ^= 1;
            prop_assert!(!has_right_checksum(&bytes));
        }

        #[test]
        fn ipv4_checksum_detects_any_changed_bit(id: u16, src: [u8; 4], bit in 0_usize..160) {
            let mut bytes = header(64, id, src, [10, 0, 0, 1]);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!has_right_checksum(&bytes));
        }
    }

    /// Among all identifications, each checksum occurs.
    #[test]
    fn checksum_of_a_lower_ttl_is_that_of_a_sender() {
        for id in 0..=u16::MAX {
            let mut bytes = header(64, id, [10, 0, 0, 1], [10, 0, 0, 2]);
            decrement_ttl(&mut bytes);
            assert_eq!(bytes, header(63, id, [10, 0, 0, 1], [10, 0, 0, 2]), "identification {id}");
            assert!(has_right_checksum(&bytes));
        }
    }

    #[test]
    fn fragments_and_other_protocols_have_no_ports() {
        let mut packet = header(64, 1, [10, 0, 0, 1], [10, 0, 0, 2]).to_vec();
        packet.extend([0xc0, 0, 0x12, 0xb7, 0, 8, 0, 0]);
        let read = |packet: &[u8]| Ipv4::read(packet).unwrap().ports(packet);
        assert_eq!(read(&packet), 0xc000_12b7);
        packet[6] = 0x20;
        assert_eq!(read(&packet), 0, "the first fragment has ports, the others do not");
        packet[6] = 0x40;
        assert!(Ipv4::read(&packet).unwrap().dont_fragment());
        packet[9] = 1;
        assert_eq!(read(&packet), 0);
        assert_eq!(Ipv4::read(&packet[..19]), None);
        (packet[3], packet[9]) = (23, UDP);
        assert_eq!(read(&packet), 0, "padding behind a packet of three bytes");
    }

    #[test]
    fn ipv6_label_and_ports_are_read() {
        let mut packet = vec![0x6f, 0xfa, 0xbc, 0xde, 0, 8, UDP, 3];
        packet.extend([0x20; 32]);
        packet.extend([0xc0, 1, 0x12, 0xb7, 0, 8, 0, 0]);
        let read = Ipv6::read(&packet).unwrap();
        assert_eq!((read.label, read.hop_limit, read.ports(&packet)), (0xa_bcde, 3, 0xc001_12b7));
        let mut header = *packet.first_chunk().unwrap();
        decrement_hop_limit(&mut header);
        assert_eq!(header[7], 2);
    }
}
