//! Extension headers of IPv6, as the destination of a packet reads them (RFC 8200 section 4).

use super::ip::Ipv6;
use super::parse::IPV6_LEN;

/// Protocol numbers of the extension headers.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// Headers that are walked, more than RFC 8200 section 4.1 recommends.
const MOST: usize = 8;

/// The reason why the payload behind extension headers is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A header or the packet is cut short.
    Cut,
    /// The packet is a fragment. A fragment header of a whole packet is skipped (RFC 6946).
    Fragment,
    /// A header asks for something else than to be skipped: a routing header with segments left, such as type 0 (RFC
    /// 5095), an unknown option that must not be skipped, or a hop-by-hop header behind another.
    Header,
}

/// Whether `protocol` is an extension header that may be walked.
#[inline]
pub(super) fn is_extension(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION)
}

/// Returns the protocol and the payload of an IPv6 `packet` behind its extension headers.
///
/// # Errors
/// The reason why there is none.
pub fn upper(packet: &[u8]) -> Result<(u8, &[u8]), Stop> {
    let ipv6 = Ipv6::read(packet).ok_or(Stop::Cut)?;
    let len = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
    let mut rest = packet[IPV6_LEN..].get(..len).ok_or(Stop::Cut)?;
    let mut next = ipv6.next_header;
    for position in 0..MOST {
        if !is_extension(next) {
            return Ok((next, rest));
        }
        let &[following, units, third, fourth, ..] = rest.first_chunk::<8>().ok_or(Stop::Cut)?;
        let len = if next == FRAGMENT { 8 } else { 8 + usize::from(units) * 8 };
        let (header, behind) = rest.split_at_checked(len).ok_or(Stop::Cut)?;
        match next {
            // The offset and the flag of more fragments; two reserved bits are between them.
            FRAGMENT if (third, fourth & 0xf9) != (0, 0) => return Err(Stop::Fragment),
            ROUTING if fourth != 0 => return Err(Stop::Header),
            HOP_BY_HOP if position > 0 => return Err(Stop::Header),
            HOP_BY_HOP | DESTINATION if !may_skip_options(&header[2..]) => return Err(Stop::Header),
            _ => {}
        }
        (next, rest) = (following, behind);
    }
    Err(Stop::Header)
}

/// Whether all options may be skipped: the highest two bits of their types are zero (RFC 8200 section 4.2).
fn may_skip_options(mut options: &[u8]) -> bool {
    while let Some((&kind, behind)) = options.split_first() {
        if kind >> 6 != 0 {
            return false;
        }
        // A single byte of padding has no length.
        let len = if kind == 0 { 0 } else { behind.first().map_or(0, |&len| 1 + usize::from(len)) };
        let Some(rest) = behind.get(len..) else { return false };
        options = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet with `payload`, whose first byte has the protocol `next`.
    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        packet.extend([0x20; 32]);
        packet.extend(payload);
        packet
    }

    #[test]
    fn headers_are_skipped_or_stop_the_reader() {
        let pad = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
        let routing = |left: u8| [17, 0, 0, left, 0, 0, 0, 0];
        let fragment = |third: u8, fourth: u8| [17, 0, third, fourth, 0, 0, 0, 9];
        type Case = (&'static str, u8, Vec<u8>, Result<u8, Stop>);
        let cases: [Case; 14] = [
            ("none", 17, vec![1; 8], Ok(17)),
            ("hop-by-hop", 0, pad(17).into(), Ok(17)),
            ("destination, hop-by-hop", 60, [pad(0), pad(17)].concat(), Err(Stop::Header)),
            ("hop-by-hop, destination", 0, [pad(60), pad(58)].concat(), Ok(58)),
            ("eight single bytes of padding", 60, vec![17, 0, 0, 0, 0, 0, 0, 0], Ok(17)),
            ("an option that must be known", 60, vec![17, 0, 0xc2, 4, 0, 0, 0, 0], Err(Stop::Header)),
            ("an option that is cut", 60, vec![17, 0, 1, 5, 0, 0, 0, 0], Err(Stop::Header)),
            ("routing, no segments left", 43, routing(0).into(), Ok(17)),
            ("routing header of type 0", 43, routing(1).into(), Err(Stop::Header)),
            ("whole packet with a fragment header", 44, fragment(0, 6).into(), Ok(17)),
            ("first fragment", 44, fragment(0, 1).into(), Err(Stop::Fragment)),
            ("later fragment", 44, fragment(1, 0).into(), Err(Stop::Fragment)),
            ("cut", 0, vec![17, 1, 1, 4, 0, 0, 0, 0], Err(Stop::Cut)),
            ("nine headers", 60, pad(60).repeat(9), Err(Stop::Header)),
        ];
        for (name, next, payload, expected) in cases {
            assert_eq!(upper(&packet(next, &payload)).map(|(protocol, _)| protocol), expected, "{name}");
        }
        assert_eq!(upper(&packet(0, &[&pad(17)[..], &[7; 9]].concat())), Ok((17, &[7; 9][..])));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            next in prop::sample::select(vec![0_u8, 43, 44, 60]),
            payload in prop::collection::vec(0_u8..64, 0..99),
        ) {
            let _ = upper(&packet(next, &payload));
            let _ = upper(&payload);
        }
    }
}
