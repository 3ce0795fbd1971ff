//! Extension headers of IPv6 (RFC 8200 section 4), in three views: of a switch that looks for ports
//! ([`super::parse()`]), of the destination ([`upper`]), and of a router that answers with an error ([`shown`]).

use super::ip::Ipv6;
use super::parse::IPV6_LEN;

/// Protocol numbers of the extension headers.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
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

/// A whole extension header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extension<'a> {
    kind: u8,
    bytes: &'a [u8],
}

/// The place of a fragment in its packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment {
    pub is_first: bool,
    pub is_last: bool,
}

impl Extension<'_> {
    /// The fields of a fragment header (RFC 8200 section 4.5); `None` for others. Two reserved bits are between offset
    /// and flag.
    pub(super) fn fragment(self) -> Option<Fragment> {
        let (&[_, _, third, fourth, ..], FRAGMENT) = (self.bytes, self.kind) else { return None };
        Some(Fragment { is_first: third == 0 && fourth & 0xf8 == 0, is_last: fourth & 1 == 0 })
    }
}

/// A header or the packet is cut short.
#[derive(Debug)]
pub(super) struct Cut;

/// Walks up to [`MOST`] extension headers of a packet. Behind the last one it holds the next protocol and its bytes.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub protocol: u8,
    pub payload: &'a [u8],
    walked: usize,
    /// Whether authentication headers are walked too.
    is_thorough: bool,
}

impl<'a> Walk<'a> {
    /// Starts at `payload`, which begins with a header of type `protocol`.
    pub(super) fn new(protocol: u8, payload: &'a [u8]) -> Self {
        Self { protocol, payload, walked: 0, is_thorough: false }
    }

    /// Starts behind the header of an IPv6 `packet`; `None` if the packet is cut short.
    fn of(packet: &'a [u8]) -> Option<Self> {
        let ipv6 = Ipv6::read(packet)?;
        let len = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        Some(Self::new(ipv6.next_header, packet[IPV6_LEN..].get(..len)?))
    }

    /// Whether the next header is one to walk. ESP (RFC 4303) is none: all behind it is encrypted.
    fn is_at_extension(&self) -> bool {
        match self.protocol {
            HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION => true,
            AUTHENTICATION => self.is_thorough,
            _ => false,
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Extension<'a>, Cut>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_at_extension() || self.walked == MOST {
            return None;
        }
        let Some(&[following, units, ..]) = self.payload.first_chunk::<8>() else { return Some(Err(Cut)) };
        let len = match self.protocol {
            FRAGMENT => 8,
            // RFC 4302 section 2.2: in words of four bytes, minus 2.
            AUTHENTICATION => 8 + usize::from(units) * 4,
            _ => 8 + usize::from(units) * 8,
        };
        let Some((bytes, behind)) = self.payload.split_at_checked(len) else { return Some(Err(Cut)) };
        let kind = std::mem::replace(&mut self.protocol, following);
        self.payload = behind;
        self.walked += 1;
        Some(Ok(Extension { kind, bytes }))
    }
}

/// Returns the protocol and the payload of an IPv6 `packet` behind its extension headers, as its destination reads
/// them.
///
/// # Errors
/// The reason why there is none.
pub fn upper(packet: &[u8]) -> Result<(u8, &[u8]), Stop> {
    let mut walk = Walk::of(packet).ok_or(Stop::Cut)?;
    let mut is_behind = false;
    for extension in &mut walk {
        let extension = extension.map_err(|Cut| Stop::Cut)?;
        match extension.kind {
            FRAGMENT if extension.fragment().is_some_and(|one| !(one.is_first && one.is_last)) => {
                return Err(Stop::Fragment);
            }
            ROUTING if extension.bytes[3] != 0 => return Err(Stop::Header),
            HOP_BY_HOP if is_behind => return Err(Stop::Header),
            HOP_BY_HOP | DESTINATION if !may_skip_options(&extension.bytes[2..]) => return Err(Stop::Header),
            _ => is_behind = true,
        }
    }
    if walk.is_at_extension() { Err(Stop::Header) } else { Ok((walk.protocol, walk.payload)) }
}

/// Returns the protocol of an IPv6 `packet` and the bytes of it that the packet shows, whatever its extension headers
/// ask. A fragment other than the first shows none. `None` if the protocol is not seen: a header is cut short, there
/// are too many, or the first fragment has more of them.
pub fn shown(packet: &[u8]) -> Option<(u8, &[u8])> {
    let mut walk = Walk { is_thorough: true, ..Walk::of(packet)? };
    while let Some(extension) = walk.next() {
        if extension.ok()?.fragment().is_some_and(|fragment| !fragment.is_first) {
            walk.payload = &[];
            break;
        }
    }
    (!walk.is_at_extension()).then_some((walk.protocol, walk.payload))
}

/// Whether all options may be skipped: the highest two bits of their types are zero (RFC 8200 section 4.2).
fn may_skip_options(mut options: &[u8]) -> bool {
    while let Some((&kind, behind)) = options.split_first() {
        if kind >> 6 != 0 {
            return false;
        }
        // A single byte of padding has no length.
        let len = if kind == 0 { 0 } else { behind.first().map_or(0, |&len| 1 + usize::from(len)) };
        let Some(remaining) = behind.get(len..) else { return false };
        options = remaining;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::parse::{ParseError, TCP, UDP, parse};

    /// A packet with `payload`, whose first byte has the protocol `next`.
    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let [high, low] = (payload.len() as u16).to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, high, low, next, 64];
        packet.extend([0x20; 32]);
        packet.extend(payload);
        packet
    }

    #[test]
    fn extension_headers_are_skipped_or_stop_the_reader() {
        let pad = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
        let routing = |left: u8| [17, 0, 0, left, 0, 0, 0, 0];
        let fragment = |third: u8, fourth: u8| [17, 0, third, fourth, 0, 0, 0, 9];
        type Case = (&'static str, u8, Vec<u8>, Result<u8, Stop>);
        let cases: [Case; 15] = [
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
            ("authentication", 51, vec![17, 0, 0, 0, 0, 0, 0, 0], Ok(51)),
            ("cut", 0, vec![17, 1, 1, 4, 0, 0, 0, 0], Err(Stop::Cut)),
            ("nine headers", 60, pad(60).repeat(9), Err(Stop::Header)),
        ];
        for (name, next, payload, expected) in cases {
            assert_eq!(upper(&packet(next, &payload)).map(|(protocol, _)| protocol), expected, "{name}");
        }
        assert_eq!(upper(&packet(0, &[&pad(17)[..], &[7; 9]].concat())), Ok((17, &[7; 9][..])));
    }

    /// A payload that begins with an extension header or transport header of type `next`.
    #[derive(Debug)]
    struct Extended {
        next: u8,
        payload: Vec<u8>,
        is_authenticated: bool,
    }

    /// A transport header behind up to nine extension headers, most of which may be skipped.
    fn extended() -> impl Strategy<Value = Extended> {
        let kind = prop::sample::select(vec![0_u8, 43, 44, 44, 51, 60, 60, 60]);
        let fields = prop_oneof![6 => Just([0; 2]), 1 => any::<[u8; 2]>()];
        let headers = prop::collection::vec((kind, 0_u8..3, fields), 0..10);
        let protocol = prop::sample::select(vec![UDP, TCP, 58, 59, 50]);
        (headers, protocol, prop::collection::vec(0_u8..128, 0..40)).prop_map(|(headers, protocol, segment)| {
            let kinds: Vec<u8> = headers.iter().map(|header| header.0).chain([protocol]).collect();
            let mut payload = Vec::new();
            for (at, &(kind, units, [third, fourth])) in headers.iter().enumerate() {
                let unit = [8, 4][usize::from(kind == AUTHENTICATION)];
                let len = 8 + if kind == FRAGMENT { 0 } else { usize::from(units) * unit };
                payload.extend([kinds[at + 1], units, third, fourth]);
                payload.resize(payload.len() + len - 4, 0);
            }
            payload.extend(segment);
            Extended { next: kinds[0], payload, is_authenticated: kinds.contains(&AUTHENTICATION) }
        })
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            next in prop::sample::select(vec![0_u8, 43, 44, 60]),
            payload in prop::collection::vec(0_u8..64, 0..99),
        ) {
            let _ = upper(&packet(next, &payload));
            let _ = upper(&payload);
            let _ = shown(&payload);
        }

        /// Without their extension headers, packets that the destination reads have the same ports and defects.
        #[test]
        fn switch_destination_and_router_see_the_same_behind_extension_headers(made in extended(), at in 0_usize..400) {
            let Extended { next, mut payload, is_authenticated } = made;
            // Half of the packets are cut.
            payload.truncate(at);
            let view = |next, payload: &[u8]| {
                let frame = [&[2; 12][..], &[0x86, 0xdd], &packet(next, payload)].concat();
                let headers = parse(&frame).unwrap();
                (headers.l4(), headers.l4_error)
            };
            let (seen, packet) = (view(next, &payload), packet(next, &payload));
            let shown = shown(&packet);
            let ports = |segment: &[u8]| segment.first_chunk::<4>().map(|&ports| u32::from_be_bytes(ports));
            if let Some(l4) = seen.0 {
                let (protocol, segment) = shown.expect("the router sees what the switch sees");
                let seen = u32::from(l4.source) << 16 | u32::from(l4.destination);
                prop_assert_eq!((protocol, ports(segment)), (l4.protocol, Some(seen)));
            }
            match upper(&packet) {
                Ok((protocol, segment)) => {
                    prop_assert_eq!(seen, view(protocol, segment));
                    prop_assert!(protocol == AUTHENTICATION || shown == Some((protocol, segment)));
                }
                Err(Stop::Cut) => prop_assert_eq!((seen, shown), ((None, Some(ParseError::L4Truncated)), None)),
                Err(Stop::Fragment) => {
                    let has_ports = shown.is_some_and(|(protocol, segment)| {
                        matches!(protocol, UDP | TCP) && ports(segment).is_some() && !is_authenticated
                    });
                    prop_assert!(seen.0.is_some() == has_ports || seen.1 == Some(ParseError::L4Malformed));
                }
                // Only the destination obeys such a header.
                Err(Stop::Header) => {}
            }
        }
    }
}
