//! Packets to the router's own addresses: each is answered or counted.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::*;
use crate::route::{FibWriter, PuntCause, PuntFrame, SoftFib};
use crate::router::fixture;
use crate::wire::MacAddr;

const HOST: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);
const NOW: Nanos = Nanos(1_000_000_000);
/// The anycast address of the network of port 0.
const ANYCAST: &str = "2001:db8::";

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn punt(cause: PuntCause, bytes: Vec<u8>) -> PuntFrame {
    PuntFrame { bytes, port: 0, vlan: 4094, l3_offset: 14, cause, may_wait: true }
}

/// A router that knows 10.0.0.9 and 2001:db8::9 at port 0.
fn router() -> Router {
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut router = Router::new(&fixture::two_ports(), fibs, NOW);
    let arp = frames::arp_request((HOST, Ipv4Addr::new(10, 0, 0, 9)), Ipv4Addr::new(10, 0, 0, 1), None);
    router.receive(&punt(PuntCause::Arp, arp), NOW);
    let solicitation = frames::solicitation((HOST, v6("2001:db8::9")), v6("2001:db8::1"), None);
    router.receive(&punt(PuntCause::NeighbourDiscovery, solicitation), NOW);
    router.take_output();
    router
}

/// A frame with an echo request from 2001:db8::9 to `dst` behind `extensions`, the first of which has the type `next`.
fn echo_v6(dst: &str, next: u8, extensions: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = etherparse::PacketBuilder::ipv6(v6("2001:db8::9").octets(), v6(dst).octets(), 64);
    builder.icmpv6_echo_request(7, 9).write(&mut packet, b"hello").unwrap();
    packet.splice(40..40, extensions.iter().copied());
    packet[5] += extensions.len() as u8;
    packet[6] = next;
    frames::ip_frame(MacAddr::local(0, 0), HOST, &packet)
}

fn echo_v4(dst: [u8; 4], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = etherparse::PacketBuilder::ipv4([10, 0, 0, 9], dst, 64);
    builder.icmpv4_echo_request(7, 9).write(&mut packet, b"hello").unwrap();
    change(&mut packet);
    frames::ip_frame(MacAddr::local(0, 0), HOST, &packet)
}

/// Receives `frame`; returns the answer or the reason for which there is none.
fn fate(router: &mut Router, cause: PuntCause, frame: Vec<u8>) -> Result<Vec<u8>, Unanswered> {
    let before = router.view().counts.unanswered;
    router.receive(&punt(cause, frame), NOW);
    let after = router.view().counts.unanswered;
    let mut reasons = Unanswered::TABLE.iter().filter(|(reason, _)| after[*reason as usize] > before[*reason as usize]);
    let counted: u64 = after.iter().sum::<u64>() - before.iter().sum::<u64>();
    match (&router.take_output()[..], counted) {
        ([answer], 0) => Ok(answer.bytes.clone()),
        ([], 1) => Err(reasons.next().unwrap().0),
        (sent, _) => panic!("{} answers, {counted} counted", sent.len()),
    }
}

#[test]
fn packet_behind_any_extension_headers_is_answered_or_counted() {
    const ICMPV6: u8 = 58;
    let pad = |next: u8| vec![next, 0, 1, 4, 0, 0, 0, 0];
    let routing = |kind: u8, left: u8| vec![ICMPV6, 0, kind, left, 0, 0, 0, 0];
    let fragment = |third: u8, fourth: u8| vec![ICMPV6, 0, third, fourth, 0, 0, 0, 9];
    use Unanswered::{ExtensionHeader, Fragment, Malformed, Protocol};
    let cases = [
        ("none", ICMPV6, vec![], Ok(())),
        ("hop-by-hop", 0, pad(ICMPV6), Ok(())),
        ("destination options", 60, pad(ICMPV6), Ok(())),
        ("both", 0, [pad(60), pad(ICMPV6)].concat(), Ok(())),
        ("hop-by-hop behind another", 60, [pad(0), pad(ICMPV6)].concat(), Err(ExtensionHeader)),
        ("routing header of type 0", 43, routing(0, 1), Err(ExtensionHeader)),
        ("routing header of type 2", 43, routing(2, 1), Err(ExtensionHeader)),
        ("routing header at its end", 43, routing(0, 0), Ok(())),
        ("unknown option", 60, vec![ICMPV6, 0, 0x80, 4, 0, 0, 0, 0], Err(ExtensionHeader)),
        ("whole packet with a fragment header", 44, fragment(0, 0), Ok(())),
        ("first fragment", 44, fragment(0, 1), Err(Fragment)),
        ("middle fragment", 44, fragment(1, 1), Err(Fragment)),
        ("last fragment", 44, fragment(1, 0), Err(Fragment)),
        ("cut", 60, vec![ICMPV6, 9, 1, 4, 0, 0, 0, 0], Err(Malformed)),
        ("mobility header", 135, pad(ICMPV6), Err(Protocol)),
        ("no next header", 59, vec![], Err(Protocol)),
    ];
    let mut router = router();
    for own in ["2001:db8::1", "2001:db8:1::1", ANYCAST] {
        for (name, next, extensions, expected) in &cases {
            let found = fate(&mut router, PuntCause::Local, echo_v6(own, *next, extensions));
            assert_eq!(found.map(|_| ()), *expected, "{name} to {own}");
        }
    }
}

#[test]
fn ipv4_packet_to_an_own_address_is_answered_or_counted() {
    let mut router = router();
    let own = [10, 0, 0, 1];
    assert!(fate(&mut router, PuntCause::Icmp, echo_v4(own, |_| {})).is_ok());
    let mut refused = |change: fn(&mut Vec<u8>)| fate(&mut router, PuntCause::Local, echo_v4(own, change)).unwrap_err();
    assert_eq!(refused(|packet| packet[6] = 0x20), Unanswered::Fragment);
    assert_eq!(refused(|packet| packet[7] = 1), Unanswered::Fragment);
    assert_eq!(refused(|packet| packet[9] = 17), Unanswered::Protocol);
    assert_eq!(refused(|packet| packet[20] = 0), Unanswered::Protocol);
    assert_eq!(refused(|packet| packet[30] ^= 1), Unanswered::Malformed);
}

#[test]
fn echo_to_the_anycast_address_is_answered_from_a_unicast_address() {
    let mut router = router();
    let reply = fate(&mut router, PuntCause::Icmp, echo_v6(ANYCAST, 58, &[])).unwrap();
    assert_eq!((&reply[22..38], &reply[38..54]), (&v6("2001:db8::1").octets()[..], &v6("2001:db8::9").octets()[..]));
    let sliced = etherparse::SlicedPacket::from_ethernet(&reply).unwrap();
    let Some(etherparse::TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("ICMPv6") };
    assert!(icmp.is_checksum_valid(v6("2001:db8::1").octets(), v6("2001:db8::9").octets()));
}

/// RFC 4861 section 7.2.7.
#[test]
fn solicitation_for_the_anycast_address_is_answered_without_override() {
    let mut router = router();
    for (target, is_override) in [(ANYCAST, false), ("2001:db8::1", true)] {
        let solicitation = frames::solicitation((HOST, v6("2001:db8::9")), v6(target), None);
        router.receive(&punt(PuntCause::NeighbourDiscovery, solicitation), NOW);
        let sent = router.take_output();
        let answer = frames::read_discovery(&sent[0].bytes[14..]).unwrap();
        assert_eq!((answer.target, answer.mac), (v6(target).into(), Some(MacAddr::local(0, 0))));
        // Flags: router, solicited, override.
        assert_eq!(sent[0].bytes[58] & 0x20 != 0, is_override, "{target}");
        assert_eq!(sent[0].bytes[22..38], v6("2001:db8::1").octets());
    }
}

#[test]
fn addresses_of_all_hosts_or_routers_are_no_route_to_a_neighbour() {
    let mut router = router();
    let group = |router: &Router, text: &str| router.route_to(text.parse().unwrap()).unwrap().1;
    for text in ["10.0.0.0", "10.0.0.255"] {
        // A host claims the address.
        let address: Ipv4Addr = text.parse().unwrap();
        let claim = frames::arp_request((HOST, address), Ipv4Addr::new(10, 0, 0, 1), None);
        router.receive(&punt(PuntCause::Arp, claim), NOW);
        router.confirm_neighbour(0, address.into(), HOST, NOW);
        assert_eq!(group(&router, text), GroupId::MARTIAN);
    }
    assert_eq!(group(&router, ANYCAST), GroupId::LOCAL);
    router.take_output();
    let table = router.update().unwrap();
    let of = |text: &str| (table.is_broadcast(text.parse().unwrap()), table.is_own(text.parse().unwrap()));
    assert_eq!([of("10.0.0.255"), of("10.0.1.0"), of(ANYCAST)], [(true, false), (true, false), (false, true)]);
}

/// RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 e.
#[test]
fn no_error_goes_to_a_source_that_is_no_single_host() {
    let mut router = router();
    let sent = |router: &mut Router, source: &str, destination: &str| {
        let mut packet = Vec::new();
        match (source.parse().unwrap(), destination.parse().unwrap()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                etherparse::PacketBuilder::ipv4(source.octets(), destination.octets(), 1)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                etherparse::PacketBuilder::ipv6(source.octets(), destination.octets(), 1)
            }
            _ => unreachable!("one family"),
        }
        .udp(4000, 5000)
        .write(&mut packet, &[7; 20])
        .unwrap();
        let frame = frames::ip_frame(MacAddr::local(0, 0), HOST, &packet);
        router.receive(&punt(PuntCause::TimeExceeded, frame), NOW);
        router.take_output().len()
    };
    for source in ["10.0.0.255", "10.0.0.0", "10.0.1.255", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "10.0.1.1"]
    {
        assert_eq!(sent(&mut router, source, "10.9.0.9"), 0, "{source}");
    }
    for source in [ANYCAST, "2001:db8:1::", "::", "::1", "ff02::1", "2001:db8::1"] {
        assert_eq!(sent(&mut router, source, "2001:db8:9::9"), 0, "{source}");
    }
    for destination in ["10.0.1.255", "10.0.1.0", "224.0.0.5", "255.255.255.255"] {
        assert_eq!(sent(&mut router, "10.0.0.9", destination), 0, "{destination}");
    }
    assert_eq!(sent(&mut router, "10.0.0.9", "10.9.0.9") + sent(&mut router, "2001:db8::9", "2001:db8:9::9"), 2);
}
