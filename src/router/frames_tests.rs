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
    let mut group = packet.clone();
    group[16] = 224;
    assert!(!may_answer_v4(&group));
    let mut fragment = packet;
    fragment[7] = 1;
    assert!(!may_answer_v4(&fragment));
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
