//! The route stage against a naive reference: it parses with etherparse, looks up by a linear search over the prefixes,
//! and decides.

use std::net::IpAddr;

use etherparse::{NetSlice, SlicedPacket};
use holdfast::plan::DropReason;
use holdfast::route::{Action, Group, GroupId, PuntCause};
use holdfast::units::Cells;
use ipnet::IpNet;
use proptest::prelude::*;

use super::bed::*;
use super::packet::{CUSTOMER, Packet};
use crate::harness::*;

/// The target of a prefix.
#[derive(Debug, Clone)]
enum Target {
    /// Next hops, as many as a power of two.
    Hops(Vec<usize>),
    Local,
    Blackhole,
    Martian,
    /// The next hop is not known.
    Unknown,
}

/// Routes in the order in which they are set.
type Routes = Vec<(IpNet, Target)>;

/// The fate of a frame.
#[derive(Debug, PartialEq)]
enum Fate {
    /// It leaves by this next hop.
    Sent(usize),
    /// It is dropped. Its copy may be punted, and may wait there.
    Dropped(DropReason, Option<PuntCause>),
    /// The control plane has it.
    Consumed(PuntCause),
}

fn target() -> impl Strategy<Value = Target> {
    let hop = 0..HOPS.len();
    prop_oneof![
        6 => hop.clone().prop_map(|hop| Target::Hops(vec![hop])),
        2 => prop::collection::vec(hop, 4).prop_map(Target::Hops),
        1 => Just(Target::Local),
        1 => Just(Target::Blackhole),
        1 => Just(Target::Martian),
        1 => Just(Target::Unknown),
    ]
}

/// Few addresses of a family, close to each other, so that prefixes contain each other and packets find them.
fn address_of(is_ipv4: bool) -> BoxedStrategy<IpAddr> {
    let octet = || prop::sample::select(vec![0_u8, 1, 2, 127, 128, 255]);
    match is_ipv4 {
        true => (octet(), octet(), octet()).prop_map(|(b, c, d)| IpAddr::from([10, b, c, d])).boxed(),
        false => (octet(), octet(), octet(), octet())
            .prop_map(|(a, b, c, d)| IpAddr::from([0xfd, a, 0, b, 0, 0, 0, c, 0, 0, 0, 0, 0, 0, 0, d]))
            .boxed(),
    }
}

fn routes() -> impl Strategy<Value = Routes> {
    let address = prop_oneof![address_of(true), address_of(false)];
    let prefix = (address, 0_u8..=128).prop_map(|(address, len)| {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        IpNet::new(address, len % (longest + 1)).unwrap().trunc()
    });
    prop::collection::vec((prefix, target()), 0..24)
}

/// A source address of a family: of a host, of the switch, or of no host.
fn source_of(is_ipv4: bool) -> impl Strategy<Value = IpAddr> {
    let v4: &[&str] = &[
        "10.77.0.9",
        "10.77.0.9",
        "192.0.2.1",
        "223.255.255.255",
        "169.254.9.9",
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "10.250.2.1",
    ];
    let v6: &[&str] = &[
        "fd00:77::9",
        "fd00:77::9",
        "2001:db8::1",
        "::9",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "::",
        "::1",
        "fd00:250:1::1",
        "fe80::9",
    ];
    prop::sample::select(if is_ipv4 { v4 } else { v6 }).prop_map(|text| text.parse().unwrap())
}

/// A packet at a port, with the VLAN of its tag.
#[derive(Debug, Clone)]
struct Arrival {
    port: usize,
    vlan: Option<u16>,
    packet: Packet,
    /// Bit of the IPv4 header that is wrong.
    flipped: Option<usize>,
}

/// A place of arrival: a port, and the VLAN of the tag.
type Place = (usize, Option<u16>);

const PLACES: &[Place] = &[(0, None), (0, Some(0)), (2, None), (2, Some(10)), (3, Some(10)), (3, Some(20))];

fn arrival() -> impl Strategy<Value = Arrival> {
    prop_oneof![arrival_of(true, PLACES), arrival_of(false, PLACES)]
}

/// A packet of a family at one of `places`.
fn arrival_of(is_ipv4: bool, places: &'static [Place]) -> impl Strategy<Value = Arrival> {
    let place = prop::sample::select(places);
    let ttl = prop_oneof![4 => Just(64_u8), 1 => 0..3_u8];
    let payload = prop_oneof![4 => Just(60_usize), 1 => 1400..1480_usize];
    let dscp = prop::sample::select(vec![0, 8, LOSSLESS_DSCP, 46]);
    let remaining = (ttl, payload, dscp, 0_u16..4, any::<bool>(), prop::option::weighted(0.05, 80..96_usize));
    (place, address_of(is_ipv4), source_of(is_ipv4), remaining).prop_map(move |((port, vlan), dst, src, remaining)| {
        let (ttl, payload, dscp, flow, is_whole, flipped) = remaining;
        let packet = packet_at(port, vlan, 1, !is_ipv4);
        let tag = vlan.map(|vlan| (CUSTOMER, vlan));
        let packet = Packet { tag, src, dst, ttl, payload, dscp, ports: (flow, 4791), is_whole, ..packet };
        Arrival { port, vlan, packet, flipped: flipped.filter(|_| is_ipv4) }
    })
}

/// An untagged packet of UDP over IPv4 from a host, to any destination and of any length. Few have a wrong checksum.
fn usual_arrival() -> impl Strategy<Value = Arrival> {
    arrival_of(true, &[(0, None), (2, None)]).prop_map(|arrival| {
        let packet = Packet { src: [10, 77, 0, 9].into(), ..arrival.packet };
        Arrival { packet, flipped: arrival.flipped.filter(|bit| bit % 4 == 0), ..arrival }
    })
}

/// Packets that arrive at one port together.
fn burst_of(arrivals: impl Strategy<Value = Arrival>) -> impl Strategy<Value = Vec<Arrival>> {
    prop::collection::vec(arrivals, 2..=64).prop_map(|mut arrivals| {
        let port = arrivals[0].port;
        arrivals.retain(|arrival| arrival.port == port);
        arrivals
    })
}

/// The frames that `bed` has sent, by port and DSCP, each in their order: a frame may overtake one of another class.
fn sent_by_class(bed: &mut RoutingBed) -> Vec<(usize, Vec<u8>)> {
    let class = |bytes: &[u8]| {
        let packet = if bytes[12..14] == [0x81, 0] { &bytes[18..] } else { &bytes[14..] };
        if packet[0] >> 4 == 4 { packet[1] } else { packet[0] << 4 | packet[1] >> 4 }
    };
    let mut sent = bed.sent();
    sent.sort_by_key(|(port, bytes)| (*port, class(bytes)));
    sent
}

impl Arrival {
    fn frame(&self) -> Vec<u8> {
        let mut frame = self.packet.frame();
        if let Some(bit) = self.flipped {
            let offset = if self.vlan.is_some() { 18 } else { 14 };
            frame[offset + bit / 8] ^= 1 << (bit % 8);
        }
        frame
    }
}

/// The longest prefix that contains `address`; of equal ones the last.
fn look_up(routes: &Routes, address: IpAddr) -> Option<&Target> {
    let matching = routes.iter().filter(|(prefix, _)| prefix.contains(&address));
    matching.max_by_key(|(prefix, _)| prefix.prefix_len()).map(|(_, target)| target)
}

/// The fate of `frame` if its flow has the next hop `choice` of its group. Port 1 has a link only if `is_up`.
fn decide(frame: &[u8], routes: &Routes, is_up: bool, choice: usize) -> Fate {
    let drop = |reason| Fate::Dropped(reason, None);
    let parsed = SlicedPacket::from_ethernet(frame).expect("a packet");
    let (src, dst, hops, length, is_whole, dscp): (IpAddr, IpAddr, u8, usize, bool, u8) = match parsed.net.unwrap() {
        NetSlice::Ipv4(packet) => {
            let header = packet.header();
            if header.header_checksum() != header.to_header().calc_header_checksum() {
                return drop(DropReason::Ipv4Checksum);
            }
            let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
            (src, dst, header.ttl(), header.total_len().into(), header.dont_fragment(), header.dcp().value())
        }
        NetSlice::Ipv6(packet) => {
            let header = packet.header();
            let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
            let length = usize::from(header.payload_length()) + 40;
            (src, dst, header.hop_limit(), length, true, header.traffic_class() >> 2)
        }
        _ => panic!("only IP is sent"),
    };
    if is_odd_source(src) {
        return drop(DropReason::Martian);
    }
    if (0..VLANS.len()).flat_map(own_addresses).chain(["fe80::9".parse().unwrap()]).any(|own| own == src) {
        return drop(DropReason::OwnSource);
    }
    let hop = match look_up(routes, dst) {
        None => return Fate::Dropped(DropReason::NoRoute, Some(PuntCause::Unreachable)),
        Some(Target::Local) => return Fate::Consumed(PuntCause::Local),
        Some(Target::Blackhole) => return drop(DropReason::Blackhole),
        Some(Target::Martian) => return drop(DropReason::Martian),
        Some(Target::Unknown) => None,
        Some(Target::Hops(hops)) => Some(hops[choice % hops.len()]).filter(|hop| HOPS[*hop].port.is_some()),
    };
    if hop == Some(1) && !is_up {
        return drop(DropReason::EgressDown);
    }
    if hops <= 1 {
        return Fate::Dropped(DropReason::TtlExpired, Some(PuntCause::TimeExceeded));
    }
    let Some(hop) = hop else {
        return match is_link_local(src) {
            true => drop(DropReason::Martian),
            false if usize::from(dscp >> 3) == LOSSLESS => {
                Fate::Dropped(DropReason::NeighbourIncomplete, Some(PuntCause::Resolve))
            }
            false => Fate::Consumed(PuntCause::Resolve),
        };
    };
    if length > 1500 {
        return match is_whole {
            true => Fate::Dropped(DropReason::FragmentationNeeded, Some(PuntCause::TooBig)),
            false => drop(DropReason::FragmentationUnsupported),
        };
    }
    if is_link_local(src) { drop(DropReason::Martian) } else { Fate::Sent(hop) }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_odd_source(address: IpAddr) -> bool {
    let is_odd = address.is_loopback() || address.is_multicast() || address.is_unspecified();
    is_odd || matches!(address, IpAddr::V4(v4) if matches!(v4.octets()[0], 0 | 240..))
}

fn bed_of(routes: &Routes, is_up: bool) -> RoutingBed {
    let mut tables = Tables::empty();
    for (prefix, target) in routes {
        let group = match target {
            Target::Hops(hops) => tables.hops(hops),
            Target::Local => GroupId::LOCAL,
            Target::Blackhole => GroupId::BLACKHOLE,
            Target::Martian => GroupId::MARTIAN,
            Target::Unknown => tables.group(Group::without_buckets(Action::Incomplete(0))),
        };
        tables.set(&prefix.to_string(), group);
    }
    let mut spec = routing_spec();
    // Frames that are too long for the next hops arrive.
    for port in [0, 2, 3] {
        spec.ports[port].mtu = 9000;
    }
    // The headroom holds a burst of the longest frames, which PFC would stop early.
    for port in &mut spec.ports {
        port.buffer.groups[LOSSLESS].headroom = Cells(64 * 8);
    }
    spec.buffer.headroom = Cells(64 * 8 * PORTS as u32);
    let mut bed = RoutingBed::with(&spec, tables);
    bed.switch.set_link(1, is_up);
    bed
}

/// The fate of `arrival` in the switch.
fn send(bed: &mut RoutingBed, arrival: &Arrival) -> Fate {
    let (before, frame) = (bed.all_drops(), arrival.frame());
    bed.receive(arrival.port, &frame);
    let dropped: Vec<_> = bed.all_drops().into_iter().filter(|drop| !before.contains(drop)).collect();
    let (sent, punted) = (bed.sent(), bed.punted());
    for copy in &punted {
        assert_eq!((&copy.bytes, usize::from(copy.port)), (&frame, arrival.port));
    }
    let cause = punted.first().map(|copy| copy.cause);
    assert!(sent.len() + dropped.len() <= 1 && punted.len() <= 1, "{sent:?}, {dropped:?}, {punted:?}");
    match (&sent[..], &dropped[..], cause) {
        ([(port, bytes)], [], None) => {
            let is_hop = |hop: &usize| {
                let class = u16::from(arrival.packet.dscp >> 3);
                let tag = (HOPS[*hop].port == Some(3)).then_some((CUSTOMER, class << 13 | 20));
                let expected = Packet { tag, ..at_next_hop(&arrival.packet, *hop) };
                HOPS[*hop].port == Some(*port) && expected.frame() == *bytes
            };
            Fate::Sent((0..HOPS.len()).find(is_hop).unwrap_or_else(|| panic!("{bytes:02x?} of {arrival:?}")))
        }
        ([], [(_, reason, _)], cause) => Fate::Dropped(*reason, cause),
        ([], [], Some(cause)) => Fate::Consumed(cause),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn each_packet_has_the_fate_that_a_naive_reference_decides(
        routes in routes(),
        arrivals in prop::collection::vec(arrival(), 1..24),
        is_up in prop::bool::weighted(0.8),
    ) {
        let mut bed = bed_of(&routes, is_up);
        for arrival in &arrivals {
            let found = send(&mut bed, arrival);
            // The reference does not know the hash: the fate is that by some next hop of the group.
            let fates: Vec<_> = (0..4).map(|choice| decide(&arrival.frame(), &routes, is_up, choice)).collect();
            prop_assert!(fates.contains(&found), "{found:?} and none of {fates:?}: {arrival:?}");
        }
        bed.assert_empty();
    }

    /// Usual packets take the short way, all others the long one.
    #[test]
    fn burst_has_the_fates_of_its_packets_alone(
        routes in routes(),
        arrivals in prop_oneof![burst_of(arrival()), burst_of(usual_arrival())],
        is_up in prop::bool::weighted(0.8),
    ) {
        let (mut together, mut alone) = (bed_of(&routes, is_up), bed_of(&routes, is_up));
        for arrival in &arrivals {
            together.io.inject(arrival.port, &arrival.frame());
            alone.receive(arrival.port, &arrival.frame());
        }
        // A burst of long frames takes 100 us of a wire.
        together.run(100_000);
        prop_assert_eq!(sent_by_class(&mut together), sent_by_class(&mut alone));
        prop_assert_eq!(together.all_drops(), alone.all_drops());
        // Each family is looked up by itself, so copies of one burst are ordered by family.
        let causes = |bed: &mut RoutingBed| {
            let mut causes: Vec<_> =
                bed.punted().into_iter().map(|copy| (copy.bytes, copy.port, copy.cause as usize)).collect();
            causes.sort_unstable();
            causes
        };
        prop_assert_eq!(causes(&mut together), causes(&mut alone));
        together.assert_empty();
    }
}

/// A burst with one packet that takes the long way.
#[test]
fn one_unusual_packet_of_a_burst_is_found_at_each_place() {
    let routes = vec![("10.0.0.0/8".parse().unwrap(), Target::Hops(vec![1]))];
    let usual = |port: usize, ports: u16| {
        let packet = packet_at(port, None, 1, false);
        Packet { src: [10, 77, 0, 9].into(), dst: [10, 1, 2, 3].into(), ports: (ports, 4791), ..packet }
    };
    let from = |packet: Packet, src: [u8; 4]| Packet { src: src.into(), ..packet }.frame();
    type Make<'a> = &'a dyn Fn(Packet) -> Vec<u8>;
    let fragment = |packet: Packet| {
        let mut frame = packet.frame();
        // More fragments follow; the checksum falls by as much.
        frame[20] |= 0x20;
        let sum = u16::from_be_bytes([frame[24], frame[25]]);
        let (less, borrows) = sum.overflowing_sub(0x2000);
        frame[24..26].copy_from_slice(&(less - u16::from(borrows)).to_be_bytes());
        frame
    };
    let unusual: [(&str, Make<'_>); 6] = [
        ("fragment", &fragment),
        ("checksum", &|packet| Arrival { port: 0, vlan: None, packet, flipped: Some(80) }.frame()),
        ("martian source", &|packet| from(packet, [127, 0, 0, 1])),
        ("own source", &|packet| from(packet, [10, 250, 2, 1])),
        ("another station", &|packet| Packet { macs: (packet.macs.0, packet.macs.0), ..packet }.frame()),
        ("truncated", &|packet| packet.frame().split_last().unwrap().1.to_vec()),
    ];
    for ((name, make), place) in unusual.iter().flat_map(|one| (0..64).map(move |place| (one, place))) {
        let port = [0, 2][place % 2];
        let (mut together, mut alone) = (bed_of(&routes, true), bed_of(&routes, true));
        for index in 0..64 {
            let packet = usual(port, index as u16);
            let frame = if index == place { make(packet) } else { packet.frame() };
            together.io.inject(port, &frame);
            alone.receive(port, &frame);
        }
        // A burst of long frames takes 100 us of a wire.
        together.run(100_000);
        let drops = together.all_drops();
        let due = u64::from(*name != "fragment");
        assert_eq!(drops.iter().map(|drop| drop.2).sum::<u64>(), due, "{name} at {place}: {drops:?}");
        assert_eq!(drops, alone.all_drops(), "{name} at {place}");
        assert_eq!(sent_by_class(&mut together), sent_by_class(&mut alone), "{name} at {place}");
    }
}
