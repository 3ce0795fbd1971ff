//! Packets that are routed: their headers, their tags, and the frames beside them.

use holdfast::dataplane::LiveConfig;
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::sets::{CLASSES, PortSet};
use holdfast::units::BitRate;
use holdfast::wire::MacAddr;

use super::bed::*;
use super::packet::{CUSTOMER, Packet, SERVICE};
use crate::harness::*;

/// Tag of a packet of `class` in `vlan`, with the PCP that the switch writes.
fn tag(class: u8, vlan: u16) -> Option<(u16, u16)> {
    Some((CUSTOMER, u16::from(class) << 13 | vlan))
}

#[test]
fn packet_leaves_with_new_addresses_and_one_hop_less() {
    let mut bed = RoutingBed::new();
    for is_v6 in [false, true] {
        for (dscp, ecn, ttl, payload) in
            [(0, 0, 64, 0), (LOSSLESS_DSCP, 2, 2, 60), (46, 1, 255, 1), (63, 3, 17, 1400), (8, 2, 1 + 1, 333)]
        {
            let packet = Packet { dscp, ecn, ttl, payload, label: 0xabcde, ..packet_at(0, None, 1, is_v6) };
            bed.receive(0, &packet.frame());
            // All other bytes stay: the checksum is that of etherparse.
            assert_eq!(bed.sent(), [(1, at_next_hop(&packet, 1).frame())], "{packet:?}");
        }
    }
    assert_eq!((bed.all_drops(), bed.punted()), (vec![], vec![]));
    bed.assert_empty();
}

#[test]
fn checksum_is_right_for_every_time_to_live() {
    let mut bed = RoutingBed::new();
    for ttl in 2..=255 {
        // Destinations differ, so that carries differ too.
        let packet = Packet { ttl, dst: [10, 1, ttl, ttl ^ 0x55].into(), ..packet_at(0, None, 1, false) };
        bed.receive(0, &packet.frame());
        assert_eq!(bed.sent(), [(1, at_next_hop(&packet, 1).frame())], "TTL {ttl}");
    }
    bed.assert_empty();
}

#[test]
fn packet_is_routed_between_ports_and_vlans_with_and_without_tags() {
    // Ingress port, VLAN of the tag there, next hop, and the VLAN of the tag at its port.
    let ways = [
        (0, None, 1, None),
        (0, None, 0, None),
        (1, None, 2, None),
        (1, None, 3, Some(20)),
        (2, None, 0, None),
        (2, None, 4, None),
        (2, None, 3, Some(20)),
        (2, None, 5, None),
        (3, Some(10), 1, None),
        (3, Some(20), 2, None),
        (3, Some(10), 4, None),
        (3, Some(10), 3, Some(20)),
        (3, Some(20), 3, Some(20)),
        (5, None, 5, None),
    ];
    let mut bed = RoutingBed::new();
    for is_v6 in [false, true] {
        for (port, vlan, hop, vlan_out) in ways {
            for class in [0, 3, 5] {
                // The PCP and DEI of the network before say nothing here.
                let arrived = vlan.map(|vlan| (CUSTOMER, 0x3000 | vlan));
                let packet = Packet { dscp: class * 8, tag: arrived, ..packet_at(port, vlan, hop, is_v6) };
                bed.receive(port, &packet.frame());
                let tag = vlan_out.and_then(|vlan| tag(class, vlan));
                let expected = Packet { tag, ..at_next_hop(&packet, hop) };
                assert_eq!(bed.sent(), [(HOPS[hop].port.unwrap(), expected.frame())], "{packet:?}");
            }
        }
    }
    assert_eq!((bed.all_drops(), bed.punted()), (vec![], vec![]));
    bed.assert_empty();
}

#[test]
fn priority_tag_is_removed_or_replaced_by_the_tag_of_the_next_hop() {
    let mut bed = RoutingBed::new();
    for port in [0, 2] {
        for (hop, vlan) in [(1, None), (4, None), (3, Some(20))] {
            let packet = Packet { tag: Some((CUSTOMER, 7 << 13)), ..packet_at(port, None, hop, false) };
            bed.receive(port, &packet.frame());
            let expected = Packet { tag: vlan.and_then(|vlan| tag(0, vlan)), ..at_next_hop(&packet, hop) };
            assert_eq!(bed.sent(), [(HOPS[hop].port.unwrap(), expected.frame())], "port {port}, next hop {hop}");
        }
    }
    bed.assert_empty();
}

#[test]
fn egress_port_writes_its_marks_into_routed_packets() {
    let mut spec = routing_spec();
    spec.ports[1].live.rewrite.dscp = [1, 9, 17, 25, 33, 41, 49, 57].map(Some);
    spec.ports[3].live.rewrite.pcp = [7, 6, 5, 4, 3, 2, 1, 0].map(Some);
    let mut bed = RoutingBed::with(&spec, Tables::default());
    for is_v6 in [false, true] {
        for class in 0..CLASSES as u8 {
            let packet = Packet { dscp: class * 8, ..packet_at(0, None, 1, is_v6) };
            bed.receive(0, &packet.frame());
            let expected = Packet { dscp: class * 8 + 1, ..at_next_hop(&packet, 1) };
            assert_eq!(bed.sent(), [(1, expected.frame())]);
            let packet = Packet { dscp: class * 8, ..packet_at(0, None, 3, is_v6) };
            bed.receive(0, &packet.frame());
            let expected = Packet { tag: tag(7 - class, 20), ..at_next_hop(&packet, 3) };
            assert_eq!(bed.sent(), [(3, expected.frame())]);
        }
    }
    bed.assert_empty();
}

/// A burst has bridged and routed frames of both families. Each takes its own way, in order.
#[test]
fn bridged_frames_beside_routed_ones_stay_as_they_are() {
    let mut bed = RoutingBed::new();
    let bridged =
        |n: usize| Packet { payload: n, macs: (mac(2), mac(5)), ..packet_at(2, None, 1, n.is_multiple_of(2)) };
    let routed = |n: usize| Packet { payload: n, ..packet_at(2, None, [1, 5, 3][n % 3], n.is_multiple_of(4)) };
    for n in 0..32 {
        let packet = if n % 5 < 2 { bridged(n) } else { routed(n) };
        bed.io.inject(2, &packet.frame());
    }
    bed.run(20_000);
    let expected = |port: usize| {
        let frames = (0..32).filter_map(|n| {
            let hop = [1, 5, 3][n % 3];
            match n % 5 < 2 {
                true => (port == 5).then(|| bridged(n).frame()),
                false if HOPS[hop].port != Some(port) => None,
                false => {
                    let tag = (port == 3).then_some((CUSTOMER, 20));
                    Some(Packet { tag, ..at_next_hop(&routed(n), hop) }.frame())
                }
            }
        });
        frames.collect::<Vec<_>>()
    };
    for port in 0..PORTS {
        assert_eq!(bed.data(port), expected(port), "port {port}");
    }
    assert_eq!(bed.all_drops(), []);
    bed.assert_empty();
}

/// A frame to another station of a routed port is not for the router: no other port is in its VLAN.
#[test]
fn routed_port_bridges_no_frame() {
    let mut bed = RoutingBed::new();
    let macs = (mac(100), mac(2));
    bed.receive(0, &Packet { macs, ..packet_at(0, None, 1, false) }.frame());
    bed.receive(0, &Packet { macs: (mac(100), own_mac(1)), ..packet_at(0, None, 1, false) }.frame());
    let tag = Some((CUSTOMER, 10));
    bed.receive(0, &Packet { macs: (mac(100), own_mac(2)), tag, ..packet_at(0, None, 1, false) }.frame());
    assert_eq!(bed.sent(), []);
    assert_eq!(bed.all_drops(), [(0, DropReason::VlanNotAllowed, 1), (0, DropReason::NoMember, 2)]);
    assert_eq!(bed.punted(), []);
    bed.assert_empty();
}

#[test]
fn routed_packets_are_counted_by_adjacency_and_class() {
    let mut bed = RoutingBed::new();
    for (hop, dscp, count) in [(1, 0, 3), (3, 40, 5), (2, LOSSLESS_DSCP, 40)] {
        for n in 0..count {
            bed.io.inject(0, &Packet { dscp, ..packet_at(0, None, hop, n % 2 == 1) }.frame());
        }
    }
    bed.run(20_000);
    let counted = |hop: usize| bed.sum(|lcore| lcore.adjacency_frames[hop].get());
    assert_eq!([0, 1, 2, 3, 4].map(counted), [0, 3, 40, 5, 0]);
    assert_eq!(bed.sum(|lcore| lcore.routed_frames.get()), 48);
    let port = &bed.counters.ports[0];
    assert_eq!([0, 3, 5].map(|class: usize| port.rx_frames[class].get()), [3, 40, 5]);
    assert_eq!([1, 2, 3].map(|port| bed.tx_frames(port)), [3, 40, 5]);
    bed.assert_empty();
}

/// Tables are replaced between two polls: all packets of a burst use one of them.
#[test]
fn new_tables_apply_from_the_next_poll() {
    let mut bed = RoutingBed::new();
    let packet = packet_at(0, None, 1, false);
    bed.receive(0, &packet.frame());
    assert_eq!(bed.sent(), [(1, at_next_hop(&packet, 1).frame())]);
    let mut tables = Tables::default();
    tables.forward(&["10.1.0.0/24"], &[4]);
    bed.switch.set_routes(&tables.share());
    bed.receive(0, &packet.frame());
    assert_eq!(bed.sent(), [(4, at_next_hop(&packet, 4).frame())]);
    bed.assert_empty();
}

/// The router remembers the port of a next hop in a VLAN while the forwarding database does not change.
#[test]
fn packets_follow_a_next_hop_that_moves_to_another_port() {
    let mut bed = RoutingBed::new();
    let packet = packet_at(0, None, 2, false);
    for port in [2, 5, 2] {
        let hello = Packet { macs: (mac(2), mac(5)), ..packet_at(port, None, 1, false) };
        bed.receive(port, &hello.frame());
        bed.sent();
        bed.receive(0, &packet.frame());
        assert_eq!(bed.sent(), [(port, at_next_hop(&packet, 2).frame())]);
    }
    bed.assert_empty();
}

/// Between bridged ports a service tag stays. A router starts a new link layer, whose VLANs have customer tags.
#[test]
fn service_tag_is_replaced_by_a_customer_tag() {
    let mut bed = RoutingBed::new();
    let packet = Packet { tag: Some((SERVICE, 10)), ..packet_at(3, Some(10), 3, false) };
    bed.receive(3, &packet.frame());
    let expected = Packet { tag: tag(0, 20), ..at_next_hop(&packet, 3) };
    assert_eq!(bed.sent(), [(3, expected.frame())]);
    bed.assert_empty();
}

/// Packets between other ports are routed meanwhile, and by the port again when it is in.
#[test]
fn routed_port_takes_other_settings_while_others_route() {
    let shut = |spec: &SwitchSpec| {
        let mut spec = spec.clone();
        spec.ports[1].live.is_enabled = false;
        spec
    };
    let mut before = routing_spec();
    before.ports.iter_mut().for_each(|port| port.tx_queues = 1);
    let mut after = before.clone();
    (after.ports[1].rate, after.ports[1].mac) = (BitRate(1_000_000_000), MacAddr::local(7, 7));
    let between =
        |from: &SwitchSpec, to: &SwitchSpec| LiveConfig::between(from, to, HZ).expect("a routed port can leave");
    let mut bed = RoutingBed::with(&before, Tables::default());
    let route = |bed: &mut RoutingBed, from: usize, hop: usize| {
        let packet = packet_at(from, None, hop, false);
        bed.receive(from, &packet.frame());
        (bed.sent(), vec![(hop, at_next_hop(&packet, hop).frame())])
    };
    let steps = [
        between(&before, &shut(&before)).leaving(PortSet::only(1)),
        between(&shut(&before), &shut(&after)),
        between(&shut(&after), &after),
    ];
    for (number, step) in steps.iter().enumerate() {
        bed.apply(step);
        bed.run(10_000);
        let (sent, expected) = route(&mut bed, 0, 2);
        assert_eq!(sent, expected, "step {number}");
        if number < 2 {
            assert_eq!(route(&mut bed, 0, 1).0, [], "step {number}");
        }
    }
    for (from, hop) in [(0, 1), (1, 2)] {
        let (sent, expected) = route(&mut bed, from, hop);
        assert_eq!(sent, expected, "from {from} to {hop}");
    }
    bed.assert_empty();
}
