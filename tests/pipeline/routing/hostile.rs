//! Hosts that flood the router: each port keeps what it needs of the control plane, and lossless packets arrive.

use holdfast::forward::{LagSpec, VlanMode};
use holdfast::route::PuntCause;
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;

use super::bed::*;
use super::packet::{Packet, fix_checksum, with_payload};
use super::punt::{LLDP, LLDP_MAC, arp, icmpv6, to_own};
use crate::harness::*;

/// Time between two bursts of a flood, and frames of each: 80,000 a second.
const STEP: u64 = 50_000;
const FLOOD: usize = 4;
/// A routed port, and one in VLAN 10. The innocent ports are 1 and 5, of the same kinds.
const HOSTILE: [usize; 2] = [0, 2];
/// A member of a group.
const MEMBER: usize = 3;
const REPLY: u8 = 2;

/// An ARP reply from `from` to `to`.
fn arp_reply(from: MacAddr, to: MacAddr) -> Vec<u8> {
    let mut frame = arp(from, to);
    frame[21] = REPLY;
    frame
}

/// A UDP packet with these ports to the router, from the next hop at `port`.
fn of_peer(port: usize, ports: (u16, u16)) -> Vec<u8> {
    packet_of_peer(port, ports).frame()
}

fn packet_of_peer(port: usize, ports: (u16, u16)) -> Packet {
    let (src, dst) = (format!("10.{port}.0.7").parse().unwrap(), own_addresses(interface_at(port, None))[0]);
    Packet { src, dst, ports, ttl: 255, ..packet_at(port, None, 1, false) }
}

/// A TCP segment of BGP from the next hop at `port`.
fn bgp_of_peer(port: usize) -> Vec<u8> {
    let mut frame = of_peer(port, (50_000, 179));
    (frame[23], frame[46]) = (6, 0x50);
    fix_checksum(&mut frame, 14);
    frame
}

/// The frames by which a host at `port` can flood the router, by name.
fn floods(port: usize) -> Vec<(&'static str, Vec<u8>)> {
    let own = own_mac(interface_at(port, None));
    let (from, to_group) = (mac(100 + port), MacAddr([0x33, 0x33, 0xff, 0, 0, 9]));
    vec![
        ("ARP requests", arp(from, MacAddr::BROADCAST)),
        ("ARP requests to the router alone", arp(from, own)),
        ("ARP replies", arp_reply(from, own)),
        ("ARP replies to all", arp_reply(from, MacAddr::BROADCAST)),
        ("solicitations", icmpv6((from, to_group), "ff02::1:ff00:9", 135)),
        ("advertisements", icmpv6((from, own), "fe80::9", 136)),
        ("echo requests", to_own(port, false, 1, (0x0800, 0))),
        ("packets without neighbour", packet_at(port, None, 201, false).frame()),
        ("packets that expire", Packet { ttl: 1, ..packet_at(port, None, 1, false) }.frame()),
        ("BFD", to_own(port, false, 17, (49_152, 3784))),
        ("BGP", to_own(port, false, 6, (50_000, 179))),
        ("UDP", to_own(port, false, 17, (49_152, 9))),
        ("LLDP", with_payload((from, LLDP_MAC), LLDP, &[0; 46])),
    ]
}

/// Frames that the innocent hosts send in each round: port, frame, and the cause by which the router gets it.
fn wanted() -> Vec<(usize, Vec<u8>, PuntCause)> {
    let mut wanted = Vec::new();
    for port in [1, 5] {
        let own = own_mac(interface_at(port, None));
        let (from, to_group) = (mac(100 + port), MacAddr([0x33, 0x33, 0xff, 0, 0, 9]));
        wanted.extend([
            (port, arp(from, MacAddr::BROADCAST), PuntCause::Arp),
            (port, arp_reply(from, own), PuntCause::Arp),
            (port, icmpv6((from, to_group), "ff02::1:ff00:9", 135), PuntCause::NeighbourDiscovery),
            (port, icmpv6((from, own), "fe80::9", 136), PuntCause::NeighbourDiscovery),
            (port, to_own(port, false, 1, (0x0800, 0)), PuntCause::Icmp),
            (port, of_peer(port, (49_152, 3784)), PuntCause::Bfd),
            (port, bgp_of_peer(port), PuntCause::Bgp),
            (port, packet_at(port, None, 201, false).frame(), PuntCause::Resolve),
        ]);
    }
    let mut lacp = [&MacAddr::SLOW_PROTOCOLS.0[..], &mac(MEMBER).0, &[0x88, 0x09, 1, 1]].concat();
    lacp.resize(124, 0);
    wanted.push((MEMBER, lacp, PuntCause::Lacp));
    wanted.push((5, with_payload((mac(5), LLDP_MAC), LLDP, &[0; 46]), PuntCause::Lldp));
    wanted
}

/// Lets each of `hostile` flood `kind`, while the innocent hosts send what they want in each of `rounds` rounds,
/// `every` nanoseconds apart. Asserts that the router gets all of it, and that each lossless packet from port 5 leaves
/// by port 1.
fn assert_served(hostile: &[usize], kind: usize, rounds: usize, every: u64) {
    let mut spec = routing_spec();
    let ports = PortSet::only(MEMBER);
    spec.lags.groups.push(LagSpec { name: "bond".into(), ports, min_links: 1, is_negotiated: true });
    let mut bed = RoutingBed::with(&spec, Tables::default());
    let floods: Vec<_> = hostile.iter().map(|&port| (port, floods(port).remove(kind))).collect();
    let (name, wanted) = (floods[0].1.0, wanted());
    let lossless = Packet { dscp: LOSSLESS_DSCP, ..packet_at(5, None, 1, false) };
    let (arrived, lossless) = (at_next_hop(&lossless, 1).frame(), lossless.frame());
    let (mut served, mut sent) = (vec![0; wanted.len()], 0);
    for step in 0..rounds as u64 * every / STEP {
        for (port, (_, frame)) in &floods {
            (0..FLOOD).for_each(|_| bed.io.inject(*port, frame));
        }
        if step % (every / STEP) == every / STEP / 2 {
            wanted.iter().for_each(|(port, frame, _)| bed.io.inject(*port, frame));
        }
        bed.io.inject(5, &lossless);
        bed.now += STEP;
        bed.poll();
        for copy in bed.punted() {
            let is_this = |(port, frame, cause): &(usize, Vec<u8>, PuntCause)| {
                (*port, *cause) == (copy.port.into(), copy.cause) && *frame == copy.bytes
            };
            wanted.iter().position(is_this).into_iter().for_each(|index| served[index] += 1);
        }
        sent += bed.sent().iter().filter(|(port, frame)| *port == 1 && *frame == arrived).count() as u64;
    }
    for ((port, _, cause), served) in wanted.iter().zip(served) {
        assert_eq!(served, rounds, "{name} at {hostile:?}: {cause:?} of port {port}");
    }
    assert_eq!(sent, rounds as u64 * every / STEP, "{name} at {hostile:?}: lossless packets");
}

/// Twenty a second of each kind from each of two innocent ports.
#[test]
fn port_that_floods_takes_no_service_of_the_others() {
    for port in HOSTILE {
        for kind in 0..floods(port).len() {
            assert_served(&[port], kind, 10, 50_000_000);
        }
    }
}

/// Two ports could use all that is common; the shares are enough for ten of each kind a second.
#[test]
fn two_ports_that_flood_leave_each_other_port_its_share() {
    for kind in 0..floods(0).len() {
        assert_served(&HOSTILE, kind, 10, 100_000_000);
    }
}

/// A hostile group of four members and a hostile port use up all that is common. The three other ports have the shares
/// of five, not of eight ports.
#[test]
fn group_that_floods_by_all_members_counts_as_one_port() {
    const GROUP: [usize; 4] = [4, 5, 6, 7];
    const SECONDS: u64 = 3;
    let mut spec = routing_spec_of(&[4094, 4093, 10, 0, 10, 10, 10, 10]);
    spec.ports[3].vlan = VlanMode::Trunk { tagged: vec![20], native: Some(10) };
    let ports = GROUP.into_iter().collect();
    spec.lags.groups.push(LagSpec { name: "bond".into(), ports, min_links: 1, is_negotiated: false });
    let mut bed = RoutingBed::with(&spec, Tables::default());
    let (request, mut served) = (|port: usize| arp(mac(100 + port), MacAddr::BROADCAST), [0_u64; 8]);
    let share = 1_000 / 4 / 5;
    for step in 0..SECONDS * 5_000 {
        GROUP.into_iter().chain([0]).for_each(|port| bed.io.inject(port, &request(port)));
        if step % (5_000 / share) == 0 {
            (1..4).for_each(|port| bed.io.inject(port, &request(port)));
        }
        bed.now += 200_000;
        bed.poll();
        bed.punted().iter().for_each(|copy| served[usize::from(copy.port)] += 1);
    }
    assert_eq!(served[1..4], [SECONDS * share; 3]);
    let of_group: u64 = GROUP.iter().map(|&port| served[port]).sum();
    let most = u64::from(crate::layout::Layout::current().lcores) * (SECONDS * (500 + 1_000 / 4) + 64);
    assert!(of_group <= most, "{of_group} of a group, like one port");
}

#[test]
fn port_that_floods_is_served_its_share_and_most_of_the_common_remainder() {
    let mut bed = RoutingBed::new();
    let request = arp(mac(100), MacAddr::BROADCAST);
    for _ in 0..20_000 {
        bed.io.inject(0, &request);
        bed.now += STEP;
        bed.poll();
        bed.punted();
    }
    let passed = bed.sum(|lcore| lcore.punted[PuntCause::Arp as usize].get());
    let share = 1_000 / 4 / (PORTS as u64 / u64::from(crate::layout::Layout::current().lcores));
    assert!((500 + share..=550 + share).contains(&passed), "{passed} in a second");
}

/// Strangers at the port of a peer: a session's packets arrive beside any flood that does not have the peer's address.
#[test]
fn strangers_at_the_port_of_a_peer_delay_neither_its_bfd_nor_its_bgp() {
    let stranger = |src: &str, port: u16, ttl: u8| {
        Packet { src: src.parse().unwrap(), ttl, ..packet_of_peer(0, (49_152, port)) }.frame()
    };
    let floods = [
        ("no route", stranger("10.77.0.9", 3784, 255)),
        ("unknown neighbour", stranger("10.201.0.9", 3784, 255)),
        ("another link", stranger("10.1.0.7", 3784, 255)),
        ("several hops without route", stranger("10.77.0.9", 4784, 64)),
        ("passed a router", stranger("10.0.0.7", 3784, 254)),
        ("echo passed two routers", stranger("10.0.0.7", 3785, 253)),
        ("BGP without route", to_own(0, false, 6, (50_000, 179))),
        ("BGP without route, IPv6", to_own(0, true, 6, (50_000, 179))),
    ];
    let multihop = Packet { src: "10.1.0.7".parse().unwrap(), ttl: 60, ..packet_of_peer(0, (49_152, 4784)) };
    let wanted = [
        of_peer(0, (49_152, 3784)),
        Packet { ttl: 254, ..packet_of_peer(0, (49_152, 3785)) }.frame(),
        multihop.frame(),
        bgp_of_peer(0),
    ];
    for (name, flood) in floods {
        let (mut bed, mut served) = (RoutingBed::new(), [0; 4]);
        for step in 0..10_000 {
            (0..FLOOD).for_each(|_| bed.io.inject(0, &flood));
            if step % 100 == 0 {
                wanted.iter().for_each(|frame| bed.io.inject(0, frame));
            }
            bed.now += STEP;
            bed.poll();
            for copy in bed.punted() {
                let index = wanted.iter().position(|frame| *frame == copy.bytes);
                index.into_iter().for_each(|index| served[index] += 1);
            }
        }
        assert_eq!(served, [100; 4], "{name}");
        let strangers =
            bed.sum(|lcore| lcore.punted[PuntCause::Bfd as usize].get() + lcore.punted[PuntCause::Bgp as usize].get());
        assert!((401..=400 + 260).contains(&strangers), "{name}: {strangers} frames pass, of strangers too");
    }
}
