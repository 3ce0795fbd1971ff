//! Tests of the parser against an independent parser and against arbitrary bytes.

use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::*;

const SRC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const DST: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn ipv4_udp(dscp_ecn: u8, payload: usize) -> Vec<u8> {
    let mut ip =
        etherparse::Ipv4Header::new(8 + payload as u16, 64, etherparse::IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2])
            .unwrap();
    ip.dscp = etherparse::IpDscp::try_new(dscp_ecn >> 2).unwrap();
    ip.ecn = etherparse::IpEcn::try_new(dscp_ecn & 3).unwrap();
    let builder =
        PacketBuilder::ethernet2(SRC, DST).ip(etherparse::IpHeaders::Ipv4(ip, Default::default())).udp(5000, 4791);
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![0; payload]).unwrap();
    frame
}

fn ipv6_tcp(tags: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(SRC, DST);
    let mut frame = Vec::new();
    let vlan = |id| etherparse::VlanId::try_new(id).unwrap();
    match tags {
        0 => builder.ipv6([1; 16], [2; 16], 9).tcp(80, 443, 1, 2).write(&mut frame, b"hello"),
        1 => builder.single_vlan(vlan(7)).ipv6([1; 16], [2; 16], 9).tcp(80, 443, 1, 2).write(&mut frame, b"hello"),
        _ => builder
            .double_vlan(vlan(7), vlan(9))
            .ipv6([1; 16], [2; 16], 9)
            .tcp(80, 443, 1, 2)
            .write(&mut frame, b"hello"),
    }
    .unwrap();
    frame
}

#[test]
fn roce_frame_is_parsed_to_addresses_marks_and_ports() {
    let headers = parse(&ipv4_udp(26 << 2 | 2, 64)).unwrap();
    assert_eq!((headers.dst.0, headers.src.0), (DST, SRC));
    assert_eq!((headers.dscp(), headers.ecn()), (Some(26), 2));
    assert_eq!(headers.l4(), Some(L4 { protocol: 17, source: 5000, destination: 4791 }));
    assert_eq!((headers.tags, headers.l3_offset, headers.vlan()), (0, 14, None));
}

#[test]
fn ipv6_packet_behind_up_to_two_tags_is_parsed() {
    for tags in 0..=2 {
        let headers = parse(&ipv6_tcp(tags)).unwrap();
        assert_eq!(usize::from(headers.tags), tags);
        assert_eq!(usize::from(headers.l3_offset), 14 + 4 * tags);
        assert_eq!(headers.vlan(), (tags > 0).then_some(7), "the outermost tag is the frame's VLAN");
        assert_eq!(headers.l4(), Some(L4 { protocol: 6, source: 80, destination: 443 }));
    }
}

#[test]
fn ipv4_options_are_skipped() {
    let mut frame = ipv4_udp(0, 8);
    frame.splice(34..34, [1, 1, 1, 0]);
    frame[14] = 0x46;
    frame[17] += 4;
    assert_eq!(parse(&frame).unwrap().l4().unwrap().destination, 4791);
}

#[test]
fn later_fragments_have_no_ports() {
    let mut frame = ipv4_udp(0, 8);
    frame[21] = 1;
    assert_eq!(parse(&frame).unwrap().l4(), None);
    frame[21] = 0;
    frame[20] = 0x20;
    frame[38..40].copy_from_slice(&5000_u16.to_be_bytes());
    assert!(parse(&frame).unwrap().l4().is_some(), "a first fragment's UDP length is that of the whole");
}

#[test]
fn ipv6_extension_headers_lead_to_the_ports() {
    let mut frame = ipv6_tcp(0);
    frame.splice(54..54, [6, 0, 0, 0, 0, 0, 0, 0]);
    frame[20] = 0;
    let payload = u16::from_be_bytes([frame[18], frame[19]]) + 8;
    frame[18..20].copy_from_slice(&payload.to_be_bytes());
    assert_eq!(parse(&frame).unwrap().l4().unwrap().source, 80);
}

#[test]
fn truncation_behind_extension_headers_is_detected() {
    let mut frame = ipv6_tcp(0);
    frame.splice(54..54, [17, 0, 0, 0, 0, 0, 0, 0]);
    frame[20] = 0;
    let mut cut = |payload: u16| {
        frame[18..20].copy_from_slice(&payload.to_be_bytes());
        parse(&frame).unwrap().l4_error
    };
    assert_eq!(cut(8 + 4), Some(ParseError::L4Truncated), "four bytes of UDP");
    assert_eq!(cut(7), Some(ParseError::L4Truncated), "seven of the extension header");
}

#[test]
fn padding_behind_an_ip_packet_is_accepted() {
    let mut frame = ipv4_udp(0, 0);
    frame.resize(60, 0);
    assert!(parse(&frame).unwrap().l4().is_some());
}

#[test]
fn each_defect_has_its_reason() {
    let good = ipv4_udp(0, 8);
    let broken = |change: fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        parse(&frame).map_or_else(|error| error, |headers| headers.l4_error.unwrap())
    };
    assert_eq!(broken(|f| f.truncate(13)), ParseError::Truncated);
    assert_eq!(
        broken(|f| {
            f.truncate(16);
            f[12..14].copy_from_slice(&[0x81, 0]);
        }),
        ParseError::Truncated
    );
    assert_eq!(broken(|f| f.truncate(33)), ParseError::Ipv4Truncated);
    assert_eq!(broken(|f| f.truncate(f.len() - 1)), ParseError::Ipv4Truncated);
    assert_eq!(broken(|f| f[14] = 0x55), ParseError::Ipv4Malformed);
    assert_eq!(broken(|f| f[14] = 0x44), ParseError::Ipv4Malformed);
    assert_eq!(broken(|f| f[17] = 10), ParseError::Ipv4Malformed);
    assert_eq!(broken(|f| f[17] = 24), ParseError::L4Truncated);
    assert_eq!(broken(|f| f[39] = 7), ParseError::L4Malformed);
    assert_eq!(broken(|f| f[39] = 200), ParseError::L4Malformed);
    let mut v6 = ipv6_tcp(0);
    v6[14] = 0x40;
    assert_eq!(parse(&v6), Err(ParseError::Ipv6Malformed));
    assert_eq!(parse(&ipv6_tcp(0)[..50]), Err(ParseError::Ipv6Truncated));
}

/// First fragments with each part of a TCP header of 40 bytes and a UDP header: none is judged, and the ports are read
/// once they are there.
#[test]
fn first_fragment_is_judged_by_no_header_that_it_lacks() {
    for (protocol, len) in [TCP, UDP].into_iter().flat_map(|protocol| (0..=40).map(move |len| (protocol, len))) {
        let mut segment = [0_u8; 40];
        segment[..4].copy_from_slice(&[0x13, 0x88, 0x12, 0xb7]);
        (segment[4], segment[12]) = (200, 0xa0);
        let mut v4 = ipv4_udp(0, len + 8);
        (v4[17], v4[20], v4[23]) = ((20 + len) as u8, 0x20, protocol);
        v4.splice(34.., segment[..len].iter().copied());
        let mut v6 = ipv6_tcp(0);
        (v6[19], v6[20]) = ((8 + len) as u8, 44);
        v6.splice(54.., [protocol, 0, 0, 1, 0, 0, 0, 7].into_iter().chain(segment[..len].iter().copied()));
        for frame in [v4, v6] {
            let headers = parse(&frame).unwrap();
            let ports = (len >= 4).then_some(L4 { protocol, source: 5000, destination: 4791 });
            assert_eq!((headers.l4_error, headers.l4()), (None, ports), "protocol {protocol}, {len} bytes");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_parse_or_fail_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn accepted_udp_ports_agree_with_an_independent_parser(
        traffic_class: u8, payload in 0_usize..100, at in 0_usize..60, value: u8
    ) {
        let mut frame = ipv4_udp(traffic_class, payload);
        let at = at % frame.len();
        frame[at] = value;
        if let Ok(ours) = parse(&frame) {
            let theirs = etherparse::SlicedPacket::from_ethernet(&frame);
            if let (Some(l4), Ok(theirs)) = (ours.l4(), theirs)
                && let Some(etherparse::TransportSlice::Udp(udp)) = theirs.transport
            {
                prop_assert_eq!((l4.source, l4.destination), (udp.source_port(), udp.destination_port()));
            }
        }
    }
}
