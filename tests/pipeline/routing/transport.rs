//! Fragments and defects of transport headers: a bridge does not judge them, and a router judges none that a fragment
//! lacks.

use holdfast::plan::DropReason;

use super::bed::*;
use super::packet::fix_checksum;
use crate::harness::*;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// ICMP or ICMPv6, IGMP, TCP, UDP, GRE, ESP, AH of IPv4, "no next header", SCTP, and an unassigned number.
const TRANSPORTS: [u8; 10] = [1, 2, TCP, UDP, 47, 50, 58, 59, 132, 200];
/// Extension headers of IPv6, protocols of the control plane, and unassigned numbers.
const PROTOCOLS: [u8; 20] = [0, 1, 2, TCP, UDP, 41, 43, 44, 50, 51, 58, 59, 60, 89, 132, 135, 139, 140, 200, 255];
/// Stations of VLAN 10 behind ports 2 and 5.
const BRIDGED: [usize; 2] = [2, 5];

/// A transport header of 40 bytes whose UDP length is 1000 and whose TCP header length is 40.
fn header(protocol: u8) -> [u8; 40] {
    let mut header: [u8; 40] = std::array::from_fn(|at| at as u8 | 0x40);
    match protocol {
        TCP => header[12] = 0xa0,
        UDP => header[4..6].copy_from_slice(&1000_u16.to_be_bytes()),
        _ => {}
    }
    header
}

/// A packet with `segment`, at port 0 to next hop 1, or from one station of VLAN 10 to another.
fn frame(is_v6: bool, is_routed: bool, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let mut frame = packet_at(0, None, 1, is_v6).frame();
    frame.truncate(if is_v6 { 54 } else { 34 });
    let len = (segment.len() + if is_v6 { 0 } else { 20 }) as u16;
    let (len_at, protocol_at) = if is_v6 { (18, 20) } else { (16, 23) };
    frame[len_at..len_at + 2].copy_from_slice(&len.to_be_bytes());
    frame[protocol_at] = protocol;
    frame.extend(segment);
    if !is_v6 {
        fix_checksum(&mut frame, 14);
    }
    if !is_routed {
        frame[..6].copy_from_slice(&mac(BRIDGED[1]).0);
        frame[6..12].copy_from_slice(&mac(BRIDGED[0]).0);
    }
    // The shortest frame of a wire: zeros follow the packet.
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The first fragment of a packet, with `segment`.
fn first_fragment(is_v6: bool, is_routed: bool, protocol: u8, segment: &[u8]) -> Vec<u8> {
    if is_v6 {
        return frame(true, is_routed, 44, &[&[protocol, 0, 0, 1, 0, 0, 0, 7], segment].concat());
    }
    let mut frame = frame(false, is_routed, protocol, segment);
    frame[20] = 0x20;
    fix_checksum(&mut frame, 14);
    frame
}

/// Receives `frame`; returns the reason of its drop, or `None` if it left by the one right port.
fn fate(bed: &mut RoutingBed, is_routed: bool, frame: &[u8]) -> Option<DropReason> {
    let (from, to) = if is_routed { (0, 1) } else { (BRIDGED[0], BRIDGED[1]) };
    let before = bed.all_drops();
    bed.receive(from, frame);
    let dropped: Vec<_> = bed.all_drops().into_iter().filter(|drop| !before.contains(drop)).collect();
    let sent = bed.sent();
    match (&sent[..], &dropped[..]) {
        ([(port, bytes)], []) => {
            assert_eq!((*port, bytes.len()), (to, frame.len()));
            assert!(is_routed || bytes == frame, "a bridge changes nothing");
            None
        }
        ([], [(port, reason, _)]) => {
            assert_eq!(*port, from);
            Some(*reason)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn first_fragment_passes_with_any_part_of_its_transport_header() {
    let mut bed = RoutingBed::new();
    for (is_v6, is_routed) in [(false, false), (false, true), (true, false), (true, true)] {
        for (protocol, len) in
            TRANSPORTS.into_iter().flat_map(|protocol| (0..=40).step_by(8).map(move |len| (protocol, len)))
        {
            let frame = first_fragment(is_v6, is_routed, protocol, &header(protocol)[..len]);
            let name = format!("IPv6 {is_v6}, routed {is_routed}, protocol {protocol}, {len} bytes");
            assert_eq!(fate(&mut bed, is_routed, &frame), None, "{name}");
        }
    }
    bed.assert_empty();
}

#[test]
fn first_fragment_passes_with_any_part_of_an_extension_header() {
    let mut bed = RoutingBed::new();
    for (is_routed, extension) in
        [false, true].into_iter().flat_map(|is_routed| [0, 43, 60].map(|next| (is_routed, next)))
    {
        // It states 32 bytes.
        let options = [TCP, 3, 1, 28, 0, 0, 0, 0].into_iter().chain([0; 24]).collect::<Vec<u8>>();
        for len in (0..=32).step_by(8) {
            let frame = first_fragment(true, is_routed, extension, &options[..len]);
            assert_eq!(fate(&mut bed, is_routed, &frame), None, "routed {is_routed}, {extension}, {len} bytes");
        }
    }
}

#[test]
fn first_fragment_with_an_impossible_whole_header_is_dropped_only_if_routed() {
    let mut bed = RoutingBed::new();
    for is_v6 in [false, true] {
        let (mut tcp, mut udp) = (header(TCP), header(UDP));
        (tcp[12], udp[5], udp[4]) = (0x40, 7, 0);
        for (protocol, segment) in [(TCP, &tcp[..24]), (UDP, &udp[..8])] {
            let fragment = |is_routed| first_fragment(is_v6, is_routed, protocol, segment);
            assert_eq!(fate(&mut bed, false, &fragment(false)), None);
            assert_eq!(fate(&mut bed, true, &fragment(true)), Some(DropReason::L4Malformed));
        }
    }
}

#[test]
fn wrong_transport_length_is_dropped_by_the_router_and_by_the_key_alone() {
    use DropReason::{L4Malformed, L4Truncated};
    let (mut long, mut short, mut words) = (header(UDP), header(UDP), header(TCP));
    (long[4], long[5]) = (0, 41);
    (short[4], short[5]) = (0, 7);
    words[12] = 0xb0;
    let mut few = header(TCP);
    few[12] = 0x40;
    let cases: [(u8, &[u8], DropReason); 8] = [
        (UDP, &[], L4Truncated),
        (UDP, &long[..7], L4Truncated),
        (UDP, &long, L4Malformed),
        (UDP, &short, L4Malformed),
        (TCP, &[], L4Truncated),
        (TCP, &words[..19], L4Truncated),
        (TCP, &words, L4Malformed),
        (TCP, &few, L4Malformed),
    ];
    let mut strict = routing_spec();
    strict.ports.iter_mut().for_each(|port| port.checks_l4 = true);
    let (mut usual, mut strict) = (RoutingBed::new(), RoutingBed::with(&strict, Tables::default()));
    for ((protocol, segment, reason), is_v6) in cases.iter().flat_map(|case| [false, true].map(|is_v6| (case, is_v6))) {
        let packet = |is_routed| frame(is_v6, is_routed, *protocol, segment);
        let name = format!("IPv6 {is_v6}, protocol {protocol}, {} bytes", segment.len());
        assert_eq!(fate(&mut usual, false, &packet(false)), None, "{name}");
        assert_eq!(fate(&mut strict, false, &packet(false)), Some(*reason), "{name}");
        for bed in [&mut usual, &mut strict] {
            assert_eq!(fate(bed, true, &packet(true)), Some(*reason), "{name}");
        }
    }
    usual.assert_empty();
}

/// Frames of the switch itself: the control plane gets each, or a counter has its reason.
#[test]
fn packet_to_an_own_address_behind_any_headers_is_punted_or_dropped() {
    let mut bed = RoutingBed::new();
    let own = own_addresses(0).map(|own| match own {
        std::net::IpAddr::V4(own) => own.octets().to_vec(),
        std::net::IpAddr::V6(own) => own.octets().to_vec(),
    });
    for (protocol, len) in PROTOCOLS.into_iter().flat_map(|protocol| [0, 8, 16, 40].map(|len| (protocol, len))) {
        // An extension header of 16 bytes with an unknown option, then UDP.
        let mut segment = header(protocol);
        segment[..4].copy_from_slice(&[UDP, 1, 0x80, 12]);
        let frames =
            [frame(false, true, protocol, &segment[..len]), first_fragment(false, true, protocol, &segment[..len])]
                .into_iter()
                .chain([
                    frame(true, true, protocol, &segment[..len]),
                    first_fragment(true, true, protocol, &segment[..len]),
                ]);
        for (index, mut frame) in frames.enumerate() {
            if index < 2 {
                frame[30..34].copy_from_slice(&own[0]);
                fix_checksum(&mut frame, 14);
            } else {
                frame[38..54].copy_from_slice(&own[1]);
            }
            let count = |bed: &RoutingBed| bed.all_drops().iter().map(|drop| drop.2).sum::<u64>();
            let before = count(&bed);
            bed.receive(0, &frame);
            let dropped = count(&bed) - before;
            assert_eq!(bed.punted().len() as u64 + dropped, 1, "protocol {protocol}, {len} bytes, {index}");
            // The policers let the next one pass.
            bed.now += 20_000_000;
        }
    }
    bed.assert_empty();
}
