//! RoCEv2 packets that carry no data of applications: acknowledgements and congestion notifications.
//!
//! RoCEv2 (InfiniBand volume 1, annex A17) puts a base transport header behind UDP with destination port 4791. Its
//! first byte is the opcode (section 9.2): the upper three bits name the transport service, the lower five the
//! operation.

use super::parse::{IPV6_LEN, L3, UDP, UDP_LEN};

/// UDP destination port of RoCEv2 (IANA: `roce`).
pub const PORT: u16 = 4791;
/// Bytes of a base transport header.
pub const TRANSPORT_LEN: usize = 12;
/// Operation of an ACK or NAK; with the service of a reliable connection it is the opcode.
pub const ACKNOWLEDGE: u8 = 0x11;
/// Operation of the ACK of an atomic operation, which carries its result.
const ATOMIC_ACKNOWLEDGE: u8 = 0x12;
/// Services that acknowledge, in the upper three bits: reliable connection, reliable datagram, extended reliable
/// connection.
const RELIABLE: [u8; 3] = [0x00, 0x40, 0xa0];
/// Opcode of a congestion notification packet (annex A17.9.3).
pub const NOTIFICATION: u8 = 0x81;

/// The kind of a RoCEv2 packet without data of applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RoceControl {
    /// ACK or NAK, of an atomic operation too.
    Ack = 0,
    /// Congestion notification packet (CNP).
    Cnp = 1,
}

impl RoceControl {
    /// Number of kinds.
    pub const COUNT: usize = 2;
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [Self::Ack, Self::Cnp];

    /// The word for it in the configuration and in labels.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Cnp => "cnp",
        }
    }

    /// The kind of packets with this opcode, if they are of a kind.
    #[inline]
    #[must_use]
    pub fn of_opcode(opcode: u8) -> Option<Self> {
        let (service, operation) = (opcode & 0xe0, opcode & 0x1f);
        match operation {
            ACKNOWLEDGE | ATOMIC_ACKNOWLEDGE if RELIABLE.contains(&service) => Some(Self::Ack),
            _ if opcode == NOTIFICATION => Some(Self::Cnp),
            _ => None,
        }
    }

    /// The kind of `frame`, whose network header is `l3` at `l3_offset`. `None` for data, for other packets, for
    /// fragments, behind IPv6 extension headers, and if the base transport header is cut short.
    #[inline]
    #[must_use]
    pub fn of(frame: &[u8], l3: L3, l3_offset: usize) -> Option<Self> {
        let network = frame.get(l3_offset..)?;
        let udp = match l3 {
            L3::V4 => {
                let header: &[u8; 10] = network.first_chunk()?;
                // The offset and the flag of more fragments: bits 0 to 12 and 13 of their word.
                let is_fragment = (header[6] & 0x3f) | header[7] != 0;
                (header[9] == UDP && !is_fragment).then_some(usize::from(header[0] & 0xf) * 4)?
            }
            L3::V6 => (*network.get(6)? == UDP).then_some(IPV6_LEN)?,
            L3::Other => return None,
        };
        let headers: &[u8; UDP_LEN + TRANSPORT_LEN] = network.get(udp..)?.first_chunk()?;
        let length = u16::from_be_bytes([headers[4], headers[5]]);
        let is_roce = headers[2..4] == PORT.to_be_bytes() && usize::from(length) >= headers.len();
        if is_roce { Self::of_opcode(headers[UDP_LEN]) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;
    use proptest::prelude::*;

    /// A RoCEv2 packet with `opcode` behind `tags` tags. The UDP header has no checksum.
    fn packet(tags: usize, is_v4: bool, opcode: u8) -> Vec<u8> {
        let mut frame = vec![2; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0x60, 7]));
        let payload = (UDP_LEN + TRANSPORT_LEN + 8) as u8;
        if is_v4 {
            frame.extend([8, 0, 0x45, 0x68, 0, 20 + payload, 0, 0, 0x40, 0, 64, UDP, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend([0x86, 0xdd, 0x66, 0x80, 0, 0, 0, payload, UDP, 64]);
            frame.extend([0xfd; 32]);
        }
        frame.extend([0xc0, 1, 0x12, 0xb7, 0, payload, 0, 0]);
        frame.extend([opcode, 0x40, 0xff, 0xff, 0, 0, 1, 2, 0, 0, 0, 3]);
        frame.extend([0; 8]);
        frame
    }

    fn of(frame: &[u8]) -> Option<RoceControl> {
        let headers = parse(frame).ok()?;
        RoceControl::of(frame, headers.l3, headers.l3_offset.into())
    }

    #[test]
    fn acknowledgements_and_notifications_are_found_behind_every_header() {
        for (tags, is_v4) in [(0, true), (1, true), (2, true), (0, false), (1, false), (2, false)] {
            for opcode in 0..=255 {
                let wanted = match opcode {
                    0x11 | 0x12 | 0x51 | 0x52 | 0xb1 | 0xb2 => Some(RoceControl::Ack),
                    0x81 => Some(RoceControl::Cnp),
                    _ => None,
                };
                assert_eq!(of(&packet(tags, is_v4, opcode)), wanted, "opcode {opcode:#x}, {tags} tags, {is_v4}");
            }
        }
    }

    #[test]
    fn read_responses_and_other_packets_are_none() {
        // RDMA READ responses: first, middle, last, only.
        for opcode in [0x0d, 0x0e, 0x0f, 0x10] {
            assert_eq!(of(&packet(0, true, opcode)), None);
        }
        let changed = |is_v4: bool, at: usize, value: u8| {
            let mut frame = packet(0, is_v4, 0x11);
            frame[at] = value;
            let headers = parse(&frame).unwrap_or_default();
            RoceControl::of(&frame, headers.l3, 14)
        };
        assert_eq!(changed(true, 15, 0), Some(RoceControl::Ack), "at any DSCP");
        // Another protocol, port or ethertype, a first and a later fragment, a UDP length without the header.
        for (at, value) in [(23, 6), (36, 0), (12, 9), (20, 0x20), (21, 1), (39, 19)] {
            assert_eq!(changed(true, at, value), None, "byte {at} is {value}");
        }
        // A hop-by-hop header.
        assert_eq!(changed(false, 20, 0), None);
        // The source port is that of no service.
        assert_eq!(changed(true, 35, 0xb7), Some(RoceControl::Ack));
    }

    #[test]
    fn roce_behind_ipv4_options_is_found() {
        let mut frame = packet(0, true, 0x81);
        (frame[14], frame[17]) = (0x46, frame[17] + 4);
        frame.splice(34..34, [1, 1, 1, 0]);
        assert_eq!(of(&frame), Some(RoceControl::Cnp));
    }

    #[test]
    fn truncated_roce_packet_is_no_control_packet() {
        for is_v4 in [true, false] {
            let frame = packet(1, is_v4, 0x11);
            let end = frame.len() - 8;
            for len in 0..end {
                let l3 = if is_v4 { L3::V4 } else { L3::V6 };
                assert_eq!(RoceControl::of(&frame[..len], l3, 18), None, "{len} bytes");
            }
        }
    }

    proptest! {
        #[test]
        fn random_bytes_are_never_out_of_bounds_of_the_roce_reader(bytes in prop::collection::vec(any::<u8>(), 0..120), l3_offset in 0_usize..64) {
            for l3 in [L3::V4, L3::V6, L3::Other] {
                let _ = RoceControl::of(&bytes, l3, l3_offset);
            }
        }
    }
}
