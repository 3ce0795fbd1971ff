//! Routes with several next hops.

use std::collections::{BTreeMap, BTreeSet};

use holdfast::route::FlowHash;

use super::bed::*;
use super::packet::Packet;

/// Ports of the next hops of 10.100.0.0/16.
const MEMBERS: [usize; 4] = [0, 1, 2, 4];

/// A packet of flow `flow` at port 5 to the route with several next hops.
fn flow(flow: u16, is_v6: bool) -> Packet {
    let packet = packet_at(5, None, 100, is_v6);
    Packet { ports: (0xc000 + flow, 4791), ..packet }
}

/// The ports by which `frames` leave, by their payload's length.
fn ports_of(bed: &mut RoutingBed, frames: &[Vec<u8>]) -> Vec<usize> {
    let mut ports = Vec::new();
    for frame in frames {
        bed.receive(5, frame);
        let sent = bed.sent();
        assert_eq!(sent.len(), 1, "one packet leaves once");
        ports.push(sent[0].0);
    }
    ports
}

#[test]
fn flow_keeps_its_next_hop_and_flows_spread() {
    for is_v6 in [false, true] {
        let mut bed = RoutingBed::new();
        let mut counts = BTreeMap::new();
        for number in 0..256 {
            let frames: Vec<_> = [(64, 10), (9, 700), (3, 0)]
                .map(|(ttl, payload)| Packet { ttl, payload, ..flow(number, is_v6) }.frame())
                .into();
            let ports = ports_of(&mut bed, &frames);
            assert!(ports.iter().all(|port| *port == ports[0]), "flow {number}: {ports:?}");
            *counts.entry(ports[0]).or_insert(0) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), MEMBERS);
        assert!(counts.values().all(|count| (32..=96).contains(count)), "64 of 256 flows each: {counts:?}");
        bed.assert_empty();
    }
}

#[test]
fn flow_label_of_ipv6_spreads_packets() {
    let mut bed = RoutingBed::new();
    let frames: Vec<_> = (0..64).map(|label| Packet { label, ..flow(0, true) }.frame()).collect();
    let ports: BTreeSet<_> = ports_of(&mut bed, &frames).into_iter().collect();
    assert_eq!(ports, MEMBERS.into());
}

#[test]
fn buckets_share_flows_by_their_number() {
    let mut tables = Tables::default();
    tables.forward(&["10.100.0.0/16"], &[0, 0, 0, 0, 0, 0, 0, 1]);
    let mut bed = RoutingBed::with(&routing_spec(), tables);
    let frames: Vec<_> = (0..512).map(|number| flow(number, false).frame()).collect();
    let second = ports_of(&mut bed, &frames).iter().filter(|port| **port == 1).count();
    assert!((32..=96).contains(&second), "64 of 512 flows: {second}");
}

/// Both directions of a flow reach the same member only with the symmetric hash.
#[test]
fn symmetric_hash_sends_both_directions_to_one_member() {
    for is_symmetric in [false, true] {
        let mut tables = Tables::default();
        tables.table.hash = FlowHash::new(7, is_symmetric);
        // The addresses of both directions have the same next hops.
        tables.forward(&["10.77.0.0/16", "fd00:77::/32"], &MEMBERS);
        tables.forward(&["10.100.0.0/16", "fd00:100::/32"], &MEMBERS);
        let mut bed = RoutingBed::with(&routing_spec(), tables);
        let mut differing = 0;
        for (number, is_v6) in (0..64).flat_map(|number| [(number, false), (number, true)]) {
            let there = flow(number, is_v6);
            let back = Packet { src: there.dst, dst: there.src, ports: (4791, there.ports.0), ..there.clone() };
            let ports = ports_of(&mut bed, &[there.frame(), back.frame()]);
            differing += usize::from(ports[0] != ports[1]);
        }
        assert_eq!(differing == 0, is_symmetric, "{differing} of 128 flows");
    }
}

/// Later fragments have no ports, so the ports of the first do not count either.
#[test]
fn all_fragments_of_a_packet_take_one_next_hop() {
    let mut bed = RoutingBed::new();
    let mut used = BTreeSet::new();
    for number in 0..64 {
        let whole = Packet { src: [10, 77, 0, number as u8].into(), is_whole: false, ..flow(number, false) };
        let fragment = |offset: u16, more: bool| Packet { fragment: (offset, more), ..whole.clone() }.frame();
        let ports = ports_of(&mut bed, &[fragment(0, true), fragment(9, true), fragment(18, false)]);
        assert!(ports.iter().all(|port| *port == ports[0]), "packet {number}: {ports:?}");
        used.insert(ports[0]);
    }
    assert_eq!(used, MEMBERS.into());
    assert_eq!(bed.sum(|lcore| lcore.routed_fragments.get()), 3 * 64);
    bed.assert_empty();
}

#[test]
fn fragments_of_ipv6_take_one_next_hop() {
    let mut bed = RoutingBed::new();
    let mut used = BTreeSet::new();
    for number in 0..64 {
        let fragment = |offset: u16, more: bool| {
            let mut frame = flow(number, true).frame();
            // A fragment header (RFC 8200 section 4.5) of UDP behind the IPv6 header.
            let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
            frame.splice(54..54, [17, 0, high, low, 0, 0, 0, 9]);
            let length = u16::from_be_bytes([frame[18], frame[19]]) + 8;
            frame[18..20].copy_from_slice(&length.to_be_bytes());
            frame[20] = 44;
            // The source differs between packets.
            frame[37] = number as u8;
            frame
        };
        let ports = ports_of(&mut bed, &[fragment(0, true), fragment(9, true), fragment(18, false)]);
        assert!(ports.iter().all(|port| *port == ports[0]), "packet {number}: {ports:?}");
        used.insert(ports[0]);
    }
    assert_eq!(used, MEMBERS.into());
    bed.assert_empty();
}

#[test]
fn counted_fragments_are_those_that_are_routed() {
    let mut bed = RoutingBed::new();
    let fragment = Packet { fragment: (9, true), is_whole: false, ..packet_at(0, None, 1, false) };
    let mut wrong = fragment.frame();
    wrong[24] ^= 1;
    bed.receive(0, &wrong);
    bed.receive(0, &Packet { ttl: 1, ..fragment.clone() }.frame());
    bed.receive(0, &Packet { dst: [10, 200, 0, 1].into(), ..fragment.clone() }.frame());
    assert_eq!(bed.sum(|lcore| lcore.routed_fragments.get()), 0);
    bed.receive(0, &Packet { fragment: (9, false), ..fragment }.frame());
    assert_eq!((bed.sum(|lcore| lcore.routed_fragments.get()), bed.sent().len()), (1, 1));
    bed.assert_empty();
}
