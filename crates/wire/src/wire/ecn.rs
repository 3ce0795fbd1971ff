//! Changes the byte of DSCP and ECN (RFC 2474, RFC 3168) in place.

use super::parse::{ETHERNET_LEN, IPV4_LEN, L3};

/// Congestion Experienced. RFC 3168 section 5: "The CE codepoint '11' is set by a router to indicate congestion to the
/// end nodes."
pub const CE: u8 = 3;
/// Not ECN-capable. RFC 3168 section 5: "The not-ECT codepoint '00' indicates a packet that is not using ECN."
pub const NOT_ECT: u8 = 0;

/// Whether the codepoint is ECT(0) or ECT(1): neither Not-ECT nor CE. RFC 3168 section 5: "Routers treat the ECT(0) and
/// ECT(1) codepoints as equivalent."
#[inline]
#[must_use]
pub fn is_ect(traffic_class: u8) -> bool {
    // The codepoints are 00, 01, 10 and 11. After adding one, only the two in the middle have the higher bit set.
    ((traffic_class & 3) + 1) & 2 != 0
}

/// Sets the ECN codepoint of the IP packet at `offset` to CE and, in IPv4, updates the header checksum.
/// Packets that are too short or not IP stay unchanged; [`super::parse()`] rejects the short ones.
///
/// RFC 3168 section 12: "The CE codepoint in a packet header MUST NOT be reset by a router." Bits are only set here.
#[inline]
pub fn mark_ce(frame: &mut [u8], l3: L3, offset: usize) {
    let ipv4 = if l3 == L3::V4 {
        frame.get_mut(offset..).and_then(|packet| packet.first_chunk_mut::<IPV4_LEN>())
    } else {
        None
    };
    let Some(header) = ipv4 else { return change(frame, l3, offset, |byte| byte | CE) };
    mark_ipv4(header);
}

/// Does the work of [`mark_ce`] for the frame of an untagged IPv4 packet. Returns whether `frame` is long enough.
#[inline(always)]
pub fn mark_untagged_ipv4(frame: &mut [u8]) -> bool {
    let header = frame.first_chunk_mut::<{ ETHERNET_LEN + IPV4_LEN }>().and_then(|headers| headers.last_chunk_mut());
    header.map(mark_ipv4).is_some()
}

#[inline(always)]
fn mark_ipv4(header: &mut [u8; IPV4_LEN]) {
    // In equation 3 of `update_checksum`, ~m + m' is the difference of the words: the bits that are added here. The
    // complement of such a sum is a difference, whose borrow goes where the carry of the sum would go.
    // RFC 1071 section 2: such sums do not depend on the order of bytes.
    let added = u16::from_ne_bytes([0, header[1] & CE ^ CE]);
    let (checksum, borrow) = u16::from_ne_bytes([header[10], header[11]]).overflowing_sub(added);
    header[1] |= CE;
    [header[10], header[11]] = checksum.wrapping_sub(borrow.into()).to_ne_bytes();
}

/// Sets the DSCP of the IP packet at `offset` and keeps its ECN codepoint. Updates the IPv4 checksum like [`mark_ce`].
///
/// RFC 2474 section 3: "Six bits of the DS field are used as a codepoint (DSCP)". The other two bits are the ECN field,
/// whose CE codepoint must survive.
#[inline]
pub fn set_dscp(frame: &mut [u8], l3: L3, offset: usize, dscp: u8) {
    change(frame, l3, offset, |byte| byte & 3 | dscp << 2);
}

/// Changes the byte of DSCP and ECN: the type of service of IPv4, the traffic class of IPv6.
///
/// RFC 3168 section 5: "The IPv4 TOS octet corresponds to the Traffic Class octet in IPv6, and the ECN field is defined
/// identically in both cases."
#[inline]
fn change(frame: &mut [u8], l3: L3, offset: usize, to: impl Fn(u8) -> u8) {
    let Some(packet) = frame.get_mut(offset..) else { return };
    match l3 {
        L3::V4 => {
            let Some(header) = packet.first_chunk_mut::<20>() else { return };
            let before = header[1];
            header[1] = to(before);
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            // The other byte of the word is the same before and after.
            let checksum = update_checksum(checksum, before.into(), header[1].into());
            [header[10], header[11]] = checksum.to_be_bytes();
        }
        L3::V6 if packet.len() >= 2 => {
            // The traffic class spans two bytes: version and upper half, then lower half and flow label.
            let class = to(packet[0] << 4 | packet[1] >> 4);
            packet[0] = packet[0] & 0xf0 | class >> 4;
            packet[1] = packet[1] & 0x0f | class << 4;
        }
        _ => {}
    }
}

/// Updates a checksum by RFC 1624 section 3, equation 3: HC' = ~(~HC + ~m + m').
#[inline]
fn update_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checksum_of_a_marked_packet_is_that_of_a_sender() {
        for (id, ecn) in (0..=u16::MAX).flat_map(|id| (0..=CE).map(move |ecn| (id, ecn))) {
            let header = |ecn: u8| {
                let mut header =
                    etherparse::Ipv4Header::new(8, 64, etherparse::IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2])
                        .unwrap();
                header.ecn = etherparse::IpEcn::try_new(ecn).unwrap();
                header.identification = id;
                header.header_checksum = header.calc_header_checksum();
                header.to_bytes()
            };
            let mut marked = header(ecn);
            mark_ce(&mut marked, L3::V4, 0);
            let mut frame = [&[0; ETHERNET_LEN][..], &header(ecn), &[0; 8]].concat();
            assert!(mark_untagged_ipv4(&mut frame));
            assert_eq!(frame[ETHERNET_LEN..][..IPV4_LEN], marked[..]);
            // 0xffff and 0 are one sum.
            let same = |header: &[u8]| (header[..10].to_vec(), u16::from_be_bytes([header[10], header[11]]) % 0xffff);
            assert_eq!(same(&marked), same(&header(CE)), "identification {id}, codepoint {ecn}");
        }
    }

    proptest! {
        #[test]
        fn ipv4_checksum_stays_right(traffic_class: u8, id: u16, ttl: u8, src: [u8; 4], dst: [u8; 4]) {
            let mut header = etherparse::Ipv4Header::new(0, ttl, etherparse::IpNumber::UDP, src, dst).unwrap();
            header.dscp = etherparse::IpDscp::try_new(traffic_class >> 2).unwrap();
            header.ecn = etherparse::IpEcn::try_new(traffic_class & 3).unwrap();
            header.identification = id;
            header.header_checksum = header.calc_header_checksum();
            let mut bytes = header.to_bytes().to_vec();
            mark_ce(&mut bytes, L3::V4, 0);
            let (marked, _) = etherparse::Ipv4Header::from_slice(&bytes).unwrap();
            prop_assert_eq!(marked.ecn.value(), CE);
            prop_assert_eq!(marked.dscp, header.dscp);
            prop_assert_eq!(marked.header_checksum, marked.calc_header_checksum());
            set_dscp(&mut bytes, L3::V4, 0, ttl >> 2);
            let (rewritten, _) = etherparse::Ipv4Header::from_slice(&bytes).unwrap();
            prop_assert_eq!((rewritten.dscp.value(), rewritten.ecn.value()), (ttl >> 2, CE));
            prop_assert_eq!(rewritten.header_checksum, rewritten.calc_header_checksum());
        }
    }

    #[test]
    fn ipv6_has_its_dscp_across_two_bytes() {
        let mut bytes = [0x6f, 0xfb, 0xab, 0xcd];
        set_dscp(&mut bytes, L3::V6, 0, 26);
        assert_eq!(bytes, [0x66, 0xbb, 0xab, 0xcd], "26 is 011010, ECN 11 stays, and so does the flow label");
    }

    #[test]
    fn ipv6_marks_the_traffic_class_and_nothing_else() {
        let mut bytes = [0x60, 0x20, 0xab, 0xcd];
        mark_ce(&mut bytes, L3::V6, 0);
        assert_eq!(bytes, [0x60, 0x30, 0xab, 0xcd]);
    }

    #[test]
    fn mark_ce_leaves_other_and_truncated_packets_unchanged() {
        let mut bytes = [0; 10];
        mark_ce(&mut bytes, L3::V4, 0);
        mark_ce(&mut bytes, L3::Other, 0);
        mark_ce(&mut bytes, L3::V6, 100);
        assert_eq!(bytes, [0; 10]);
        assert!(!mark_untagged_ipv4(&mut [0; ETHERNET_LEN + IPV4_LEN - 1]));
    }

    #[test]
    fn is_ect_accepts_only_ect0_and_ect1() {
        for (codepoint, expected) in [(NOT_ECT, false), (1, true), (2, true), (CE, false)] {
            assert_eq!((is_ect(codepoint), is_ect(codepoint | 26 << 2)), (expected, expected), "{codepoint}");
        }
    }
}
