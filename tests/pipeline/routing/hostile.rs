//! Hosts that flood the router: each port keeps what it needs of the control plane, and lossless packets arrive.

use holdfast::forward::LagSpec;
use holdfast::route::PuntCause;
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;

use super::bed::*;
use super::packet::{Packet, with_payload};
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

/// What the innocent hosts send in each round: port, frame, and the cause by which the router gets it.
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
            (port, to_own(port, false, 17, (49_152, 3784)), PuntCause::Bfd),
            (port, to_own(port, false, 6, (50_000, 179)), PuntCause::Bgp),
            (port, packet_at(port, None, 201, false).frame(), PuntCause::Resolve),
        ]);
    }
    let mut lacp = [&MacAddr::SLOW_PROTOCOLS.0[..], &mac(MEMBER).0, &[0x88, 0x09, 1, 1]].concat();
    lacp.resize(124, 0);
    wanted.push((MEMBER, lacp, PuntCause::Lacp));
    wanted.push((5, with_payload((mac(5), LLDP_MAC), LLDP, &[0; 46]), PuntCause::Lldp));
    wanted
}

/// Lets each of `hostile` flood `kind`, while the innocent hosts send what they want in each of `rounds` rounds, `every`
/// nanoseconds apart. Asserts that the router gets all of it, and that each lossless packet from port 5 leaves by port 1.
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

#[test]
fn port_that_floods_is_served_its_share_and_the_common_rest() {
    let mut bed = RoutingBed::new();
    let request = arp(mac(100), MacAddr::BROADCAST);
    for _ in 0..20_000 {
        bed.io.inject(0, &request);
        bed.now += STEP;
        bed.poll();
        bed.punted();
    }
    let passed = bed.sum(|lcore| lcore.punted[PuntCause::Arp as usize].get());
    let share = 1_000 / 4 / (PORTS as u64 / u64::from(crate::LCORES));
    assert!((500 + share..=550 + share).contains(&passed), "{passed} in a second");
}
