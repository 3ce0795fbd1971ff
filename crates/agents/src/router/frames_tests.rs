use super::*;
use proptest::prelude::*;

const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

#[test]
fn arp_is_read_as_it_was_made() {
    let (own, other) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let request = arp_request((OWN, own), other, None);
    assert_eq!((request.len(), &request[..6]), (60, &[0xff; 6][..]));
    let read = read_arp(&request[14..]).unwrap();
    let expected =
        Discovery { sender: own.into(), mac: Some(OWN), target: other.into(), is_request: true, flags: None };
    assert_eq!(read, expected);
    let reply = arp_reply((PEER, other), (OWN, own));
    assert_eq!(&reply[..6], &OWN.0);
    let read = read_arp(&reply[14..]).unwrap();
    assert_eq!((read.sender, read.mac, read.target, read.is_request), (other.into(), Some(PEER), other.into(), false));
    let mut group = request[14..].to_vec();
    group[8] = 1;
    assert_eq!(read_arp(&group), None, "a group address is no sender");
}

#[test]
fn discovery_is_read_as_it_was_made_and_any_damage_is_refused() {
    let own = link_local(OWN);
    assert_eq!(own, v6("fe80::ff:fe00:1"));
    let frame = solicitation((OWN, own), v6("2001:db8::12:3456"), None);
    assert_eq!(
        (&frame[..6], &frame[38..54]),
        (&[0x33, 0x33, 0xff, 0x12, 0x34, 0x56][..], &v6("ff02::1:ff12:3456").octets()[..])
    );
    let read = read_discovery(&frame[14..]).unwrap();
    let target = IpAddr::from(v6("2001:db8::12:3456"));
    assert_eq!(read, Discovery { sender: own.into(), mac: Some(OWN), target, is_request: true, flags: None });
    for at in 14..frame.len() {
        let mut damaged = frame.clone();
        damaged[at] ^= 0x10;
        // Traffic class and flow label are free. They are in the first four bytes.
        assert!((14..18).contains(&at) || read_discovery(&damaged[14..]).is_none(), "byte {at}");
    }
    let answer = advertisement((PEER, v6("2001:db8::2")), Some((OWN, own)), v6("2001:db8::2"));
    let read = read_discovery(&answer[14..]).unwrap();
    assert_eq!((read.sender, read.mac, read.is_request), (v6("2001:db8::2").into(), Some(PEER), false));
}

#[test]
fn option_without_length_makes_the_message_invalid() {
    assert_eq!(link_address(&[1, 0, 0, 0, 0, 0, 0, 0], 1), None);
    assert_eq!(link_address(&[1, 2, 0, 0, 0, 0, 0, 0], 1), None);
    assert_eq!(link_address(&[14, 1, 9, 9, 9, 9, 9, 9, 1, 1, 2, 0, 0, 0, 0, 1], 1), Some(Some(OWN)));
    assert_eq!(link_address(&[], 1), Some(None));
}

fn udp_v4(ttl: u8, len: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = etherparse::PacketBuilder::ipv4([10, 1, 0, 9], [10, 2, 0, 9], ttl).udp(40_000, 33_434);
    builder.write(&mut packet, &vec![7; len]).unwrap();
    packet
}

#[test]
fn error_quotes_the_packet_and_names_the_mtu() {
    let packet = udp_v4(1, 1400);
    assert!(may_answer_v4(&packet));
    let own = Ipv4Addr::new(10, 1, 0, 1);
    for error in [IcmpError::TimeExceeded, IcmpError::NoRoute, IcmpError::HostUnreachable, IcmpError::TooBig(1400)] {
        let answer = icmp_error_v4(own, &packet, error);
        assert_eq!(answer.len(), 576);
        let sliced = etherparse::SlicedPacket::from_ip(&answer).unwrap();
        let Some(etherparse::TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("ICMP") };
        assert_eq!(icmp.icmp_type().calc_checksum(icmp.payload()), icmp.checksum());
        assert_eq!(icmp.payload(), &packet[..548]);
        if let IcmpError::TooBig(mtu) = error {
            assert_eq!(u16::from_be_bytes([answer[26], answer[27]]), mtu);
        }
        assert!(!may_answer_v4(&answer), "no error about an error");
    }
}

#[test]
fn ipv6_error_fits_the_minimum_mtu() {
    let mut packet = Vec::new();
    let builder = etherparse::PacketBuilder::ipv6(v6("2001:db8::9").octets(), v6("2001:db9::9").octets(), 1);
    builder.udp(40_000, 33_434).write(&mut packet, &[7; 1400]).unwrap();
    let own = v6("2001:db8::1");
    for error in [IcmpError::TimeExceeded, IcmpError::NoRoute, IcmpError::HostUnreachable, IcmpError::TooBig(1400)] {
        assert!(may_answer_v6(&packet, error));
        let answer = icmp_error_v6(own, &packet, error);
        assert_eq!(answer.len(), 1280);
        let sliced = etherparse::SlicedPacket::from_ip(&answer).unwrap();
        let Some(etherparse::TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("ICMPv6") };
        assert!(icmp.is_checksum_valid(own.octets(), v6("2001:db8::9").octets()));
        assert!(!may_answer_v6(&answer, error), "no error about an error");
    }
}

/// An IPv6 packet whose first header behind the fixed one has the type `next`.
fn packet_v6(source: &str, destination: &str, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
    packet.extend([source, destination].map(|address| v6(address).octets()).concat());
    packet.extend(payload);
    packet
}

/// RFC 4443 section 2.4 e.
#[test]
fn ipv6_error_is_never_about_an_error_wherever_it_stands() {
    let pad = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let unknown = |next: u8| [next, 0, 0xc2, 4, 0, 0, 0, 0];
    let routing = |next: u8| [next, 0, 0, 1, 0, 0, 0, 0];
    let authentication = |next: u8| [[next, 1, 0, 0], [0; 4], [0; 4]].concat();
    let fragment = |next: u8, third: u8, fourth: u8| [next, 0, third, fourth, 0, 0, 0, 9];
    // Each way of a transport header in a packet: the first type, the headers, and whether the header is shown.
    type Way = (&'static str, u8, Box<dyn Fn(u8) -> Vec<u8>>, bool);
    let ways: [Way; 11] = [
        ("hop-by-hop", 0, Box::new(move |next| pad(next).into()), true),
        ("unknown option", 60, Box::new(move |next| unknown(next).into()), true),
        ("routing header", 43, Box::new(move |next| routing(next).into()), true),
        ("authentication", 51, Box::new(move |next| [&authentication(60), &pad(next)[..]].concat()), true),
        ("hop-by-hop behind another", 60, Box::new(move |next| [pad(0), pad(next)].concat()), true),
        ("whole packet with a fragment header", 44, Box::new(move |next| fragment(next, 0, 0).into()), true),
        ("first fragment", 44, Box::new(move |next| fragment(next, 0, 1).into()), true),
        ("first fragment with options", 44, Box::new(move |next| [fragment(60, 0, 1), pad(next)].concat()), true),
        ("eight headers", 60, Box::new(move |next| [pad(60).repeat(7), pad(next).into()].concat()), true),
        ("nine headers", 60, Box::new(move |next| [pad(60).repeat(8), pad(next).into()].concat()), false),
        ("later fragment with options", 44, Box::new(move |next| [fragment(60, 0, 9), pad(next)].concat()), false),
    ];
    // Transport protocols, the byte where ICMPv6 has its type, and whether there may be an error about them.
    let transports = [
        (58, 1, false),
        (58, 2, false),
        (58, 3, false),
        (58, 4, false),
        (58, 127, false),
        (58, 137, false),
        (58, 128, true),
        (58, 129, true),
        (58, 135, true),
        (6, 1, true),
        (17, 3, true),
        (50, 3, true),
        (59, 3, true),
    ];
    let may_answer = |next: u8, payload: &[u8]| {
        let packet = packet_v6("2001:db8::9", "2001:db9::9", next, payload);
        let answers =
            [IcmpError::TimeExceeded, IcmpError::NoRoute, IcmpError::HostUnreachable, IcmpError::TooBig(1400)]
                .map(|error| may_answer_v6(&packet, error));
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        answers[0]
    };
    for (protocol, kind, is_allowed) in transports {
        let header = [kind; 8];
        assert_eq!(may_answer(protocol, &header), is_allowed, "{protocol} {kind}");
        for (name, first, headers, is_shown) in &ways {
            let payload = [headers(protocol), header.into()].concat();
            assert_eq!(may_answer(*first, &payload), is_allowed && *is_shown, "{name}, {protocol} {kind}");
        }
        // A later fragment names its protocol and no type.
        let later = [fragment(protocol, 0, 9), header].concat();
        assert_eq!(may_answer(44, &later), protocol != 58, "later fragment of {protocol}");
    }
    assert!(!may_answer(58, &[]), "the type is missing");
    assert!(!may_answer(44, &fragment(58, 0, 1)), "a first fragment without the type");
    assert!(!may_answer(60, &[17, 1, 0, 0, 0, 0, 0, 0]), "a header that is cut short");
    assert!(may_answer(44, &fragment(17, 0, 1)), "a first fragment without ports");
}

#[test]
fn ipv6_error_is_about_packets_from_one_host_to_one_host() {
    let udp = [0, 9, 0, 9, 0, 8, 0, 0];
    let may_answer =
        |source: &str, destination: &str, error| may_answer_v6(&packet_v6(source, destination, 17, &udp), error);
    for (source, destination, others, too_big) in [
        ("2001:db8::9", "2001:db9::9", true, true),
        ("2001:db8::9", "ff0e::9", false, true),
        ("::", "2001:db9::9", false, false),
        ("::1", "2001:db9::9", false, false),
        ("ff02::1", "2001:db9::9", false, false),
    ] {
        for error in [IcmpError::TimeExceeded, IcmpError::NoRoute, IcmpError::HostUnreachable] {
            assert_eq!(may_answer(source, destination, error), others, "{source} {destination} {error:?}");
        }
        assert_eq!(may_answer(source, destination, IcmpError::TooBig(1280)), too_big, "{source} {destination}");
    }
}

/// RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7.
#[test]
fn ipv4_error_is_about_whole_packets_and_first_fragments_that_are_no_errors() {
    let may_answer = |protocol: u8, fragment: u16, payload: &[u8], ends: [[u8; 4]; 2]| {
        let number = etherparse::IpNumber(protocol);
        let mut header = etherparse::Ipv4Header::new(payload.len() as u16, 1, number, ends[0], ends[1]).unwrap();
        (header.dont_fragment, header.more_fragments) = (fragment & 0x4000 > 0, fragment & 0x2000 > 0);
        header.fragment_offset = etherparse::IpFragOffset::try_new(fragment & 0x1fff).unwrap();
        header.header_checksum = header.calc_header_checksum();
        // Padding follows.
        may_answer_v4(&[&header.to_bytes()[..], payload, &[8; 18]].concat())
    };
    let (host, other) = ([10, 1, 0, 9], [10, 2, 0, 9]);
    for kind in 0..=255 {
        let is_allowed = !matches!(kind, 3 | 4 | 5 | 11 | 12);
        for (fragment, is_first) in [(0, true), (0x4000, true), (0x2000, true), (0x2001, false), (7, false)] {
            let found = may_answer(1, fragment, &[kind; 8], [host, other]);
            assert_eq!(found, is_allowed && is_first, "ICMP {kind}, {fragment:04x}");
            assert_eq!(may_answer(17, fragment, &[kind; 8], [host, other]), is_first, "UDP, {fragment:04x}");
        }
    }
    assert!(!may_answer(1, 0, &[], [host, other]), "the type is missing");
    let none = [[224, 0, 0, 5], [255; 4], [127, 0, 0, 1], [0, 1, 2, 3], [240, 0, 0, 1]];
    for address in none {
        assert!(!may_answer(17, 0, &[0; 8], [host, address]) && !may_answer(17, 0, &[0; 8], [address, other]));
    }
}

#[test]
fn echo_requests_are_answered_with_their_data() {
    let mut packet = Vec::new();
    etherparse::PacketBuilder::ipv4([10, 0, 0, 9], [10, 0, 0, 1], 5)
        .icmpv4_echo_request(7, 9)
        .write(&mut packet, b"hello")
        .unwrap();
    let reply = echo_reply_v4(&packet).unwrap();
    assert_eq!((&reply[12..16], &reply[16..20], &reply[28..]), (&[10, 0, 0, 1][..], &[10, 0, 0, 9][..], &b"hello"[..]));
    packet[30] ^= 1;
    assert_eq!(echo_reply_v4(&packet), Err(Unanswered::Malformed), "a wrong checksum");
    let mut packet = Vec::new();
    etherparse::PacketBuilder::ipv6(v6("fd00::9").octets(), v6("fd00::1").octets(), 5)
        .icmpv6_echo_request(7, 9)
        .write(&mut packet, b"hello")
        .unwrap();
    let reply = echo_reply_v6(&packet, &packet[40..], v6("fd00::1")).unwrap();
    assert_eq!((&reply[8..24], &reply[48..]), (&v6("fd00::1").octets()[..], &b"hello"[..]));
    let own = v6("fd00::9");
    assert_eq!(echo_reply_v6(&reply, &reply[40..], own), Err(Unanswered::Protocol), "a reply is not answered");
}

proptest! {
    #[test]
    fn random_packets_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 0_u8..3) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = [0x45, 0x60, *first][usize::from(version)];
        }
        read_arp(&bytes);
        read_discovery(&bytes);
        let _ = echo_reply_v4(&bytes);
        let _ = echo_reply_v6(&bytes, &bytes[bytes.len() / 2..], Ipv6Addr::LOCALHOST);
        if may_answer_v4(&bytes) {
            icmp_error_v4(Ipv4Addr::LOCALHOST, &bytes, IcmpError::TimeExceeded);
        }
        if may_answer_v6(&bytes, IcmpError::NoRoute) {
            icmp_error_v6(Ipv6Addr::LOCALHOST, &bytes, IcmpError::NoRoute);
        }
    }
}
