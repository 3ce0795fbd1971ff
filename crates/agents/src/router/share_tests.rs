//! One hostile port at full rate beside hosts of other ports.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::route::{PuntCause, PuntFrame, SoftFib};

/// Hosts of port 1 that were there before the flood, and as many that come after it.
const HOSTS: u16 = 20;
/// New senders of port 0 in a tenth of a second.
const SENDERS: u32 = 150;
const SECONDS: u64 = 60;

/// A switch with a hostile host at port 0.
struct Trial {
    router: Router,
    is_v6: bool,
}

impl Trial {
    fn new(is_v6: bool) -> Self {
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
        let mut spec = fixture::two_ports();
        spec.interfaces[0].addresses =
            ["10.128.0.1/9", "2001:db8::1/64"].iter().map(|text| text.parse().unwrap()).collect();
        Self { router: Router::new(&spec, fibs, Nanos(1)), is_v6 }
    }

    /// Lets a host ask for the router's address.
    fn ask(&mut self, port: u8, number: u32, now: Nanos) {
        let (mac, vlan) = (mac(port, number), 4094 - u16::from(port));
        let (cause, bytes) = match (host(self.is_v6, port, number), own(self.is_v6, port)) {
            (IpAddr::V4(host), IpAddr::V4(own)) => (PuntCause::Arp, frames::arp_request((mac, host), own, None)),
            (IpAddr::V6(host), IpAddr::V6(own)) => {
                (PuntCause::NeighbourDiscovery, frames::solicitation((mac, host), own, None))
            }
            _ => unreachable!("both have one family"),
        };
        self.router.receive(&PuntFrame { bytes, port, vlan, l3_offset: 14, cause, may_wait: true }, now);
    }

    /// Lets a host answer a question of the router.
    fn reply(&mut self, port: u8, number: u32, now: Nanos) {
        let (mac, router, vlan) = (mac(port, number), MacAddr::local(0, port.into()), 4094 - u16::from(port));
        let (cause, bytes) = match (host(self.is_v6, port, number), own(self.is_v6, port)) {
            (IpAddr::V4(host), IpAddr::V4(own)) => (PuntCause::Arp, frames::arp_reply((mac, host), (router, own))),
            (IpAddr::V6(host), IpAddr::V6(own)) => {
                (PuntCause::NeighbourDiscovery, frames::advertisement((mac, host), Some((router, own)), host))
            }
            _ => unreachable!("both have one family"),
        };
        self.router.receive(&PuntFrame { bytes, port, vlan, l3_offset: 14, cause, may_wait: true }, now);
    }

    /// Lets the hosts of port 1 answer the router's questions. The hostile one answers none. Returns the other frames.
    fn answer(&mut self, now: Nanos) -> Vec<Outgoing> {
        let (mut others, mut asked) = (Vec::new(), Vec::new());
        for frame in self.router.take_output() {
            let question = frames::read_arp(&frame.bytes[14..]).or(frames::read_discovery(&frame.bytes[14..]));
            match question.filter(|question| question.is_request) {
                Some(question) if frame.to == InjectTo::Port(1) => asked.push(question.target),
                Some(_) => {}
                None => others.push(frame),
            }
        }
        for number in 0..2 * u32::from(HOSTS) {
            if asked.contains(&host(self.is_v6, 1, number)) {
                self.reply(1, number, now);
            }
        }
        others
    }

    /// Whether an echo request of a host of port 1 is answered to its address.
    fn pings(&mut self, number: u32, now: Nanos) -> bool {
        let (packet, offset) = match (host(self.is_v6, 1, number), own(self.is_v6, 1)) {
            (IpAddr::V4(host), IpAddr::V4(own)) => {
                let echo = etherparse::Icmpv4Type::EchoRequest(etherparse::IcmpEchoHeader { id: 1, seq: 1 });
                (frames::icmpv4_packet(host, own, 0, echo, &[0; 8]), 34)
            }
            (IpAddr::V6(host), IpAddr::V6(own)) => {
                let echo = etherparse::Icmpv6Type::EchoRequest(etherparse::IcmpEchoHeader { id: 1, seq: 1 });
                (frames::icmpv6_packet(host, own, 64, echo, &[0; 8]), 54)
            }
            _ => unreachable!("both have one family"),
        };
        let bytes = frames::ip_frame(MacAddr::local(0, 1), mac(1, number), &packet);
        let frame = PuntFrame { bytes, port: 1, vlan: 4093, l3_offset: 14, cause: PuntCause::Icmp, may_wait: true };
        self.router.receive(&frame, now);
        let reply = if self.is_v6 { 129 } else { 0 };
        let is_reply = |frame: &Outgoing| frame.bytes.starts_with(&mac(1, number).0) && frame.bytes[offset] == reply;
        self.answer(now).iter().any(is_reply)
    }
}

fn mac(port: u8, number: u32) -> MacAddr {
    let [_, a, b, c] = number.to_be_bytes();
    MacAddr([2, 1, port, a, b, c])
}

/// Host `number` of a port. Those of port 0 have random addresses.
fn host(is_v6: bool, port: u8, number: u32) -> IpAddr {
    let random = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match (is_v6, port) {
        (false, 0) => Ipv4Addr::from_bits(0x0a80_0002 + number * 83).into(),
        (false, _) => Ipv4Addr::new(10, 0, 1, 2 + number as u8).into(),
        (true, 0) => Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(random)).into(),
        (true, _) => Ipv6Addr::from_bits(0x2001_0db8_0001 << 80 | u128::from(random)).into(),
    }
}

fn own(is_v6: bool, port: u8) -> IpAddr {
    match (is_v6, port) {
        (false, 0) => [10, 128, 0, 1].into(),
        (false, _) => [10, 0, 1, 1].into(),
        (true, port) => [0x2001, 0xdb8, port.into(), 0, 0, 0, 0, 1].into(),
    }
}

/// The flood of one port leaves hosts of the other port alone.
#[track_caller]
fn trial(is_v6: bool) {
    let (mut trial, mut now, mut sent) = (Trial::new(is_v6), Nanos(1_000_000_000), 0);
    (0..HOSTS.into()).for_each(|number| trial.ask(1, number, now));
    for tenth in 0..SECONDS * 10 {
        (0..SENDERS).for_each(|_| {
            trial.ask(0, sent, now);
            sent += 1;
        });
        now.0 += 100_000_000;
        trial.router.tick(now);
        // Packets to the hosts of port 1.
        trial.router.note_traffic(now, |_| tenth);
        trial.answer(now);
        if tenth % 10 == 0 {
            trial.router.update();
            trial.router.settle();
        }
    }
    let known = |router: &Router| router.neighbours_view(now).iter().filter(|one| one.interface == 1).count();
    assert_eq!(known(&trial.router), usize::from(HOSTS), "hosts that were there stay");
    let numbers = u32::from(HOSTS)..2 * u32::from(HOSTS);
    numbers.clone().for_each(|number| trial.ask(1, number, now));
    trial.router.take_output();
    assert_eq!(numbers.filter(|&number| trial.pings(number, now)).count(), usize::from(HOSTS), "new hosts get answers");
    assert!((0..HOSTS.into()).all(|number| trial.pings(number, now)), "old hosts get answers");
    let flood = trial.router.neighbours_view(now).len() - 2 * usize::from(HOSTS);
    assert!(flood <= crate::route::MAX_ADJACENCIES / 2, "{flood} entries of the hostile port");
}

#[test]
fn new_arp_senders_of_one_port_take_no_neighbour_from_another() {
    trial(false);
}

#[test]
fn new_solicitors_of_one_port_take_no_neighbour_from_another() {
    trial(true);
}

/// A forwarding table with room for so many prefixes of each family.
#[derive(Debug)]
struct Bounded(SoftFib, usize);

impl crate::route::Fib for Bounded {
    fn lookup_v4(&self, addresses: &[u32], groups: &mut [crate::route::FoundGroup]) {
        self.0.lookup_v4(addresses, groups);
    }

    fn lookup_v6(&self, addresses: &[[u8; 16]], groups: &mut [crate::route::FoundGroup]) {
        self.0.lookup_v6(addresses, groups);
    }
}

impl FibWriter for Bounded {
    fn set(&self, prefix: IpNet, group: GroupId) -> Result<(), crate::route::FibFull> {
        let memory = self.0.memory();
        let used = if prefix.addr().is_ipv4() { memory.ipv4_routes } else { memory.ipv6_routes };
        if used >= self.1 { Err(crate::route::FibFull(prefix)) } else { self.0.set(prefix, group) }
    }

    fn remove(&self, prefix: IpNet) {
        self.0.remove(prefix);
    }

    fn memory(&self) -> crate::route::FibMemory {
        self.0.memory()
    }
}

#[test]
fn routes_find_room_in_a_forwarding_table_that_hosts_would_fill() {
    let size = 1024;
    let mut spec = fixture::two_ports();
    spec.fib = crate::route::FibSize { ipv4: size, ipv6: size };
    let fib = || -> Arc<dyn FibWriter> { Arc::new(Bounded(SoftFib::default(), size as usize)) };
    let mut trial = Trial { router: Router::new(&spec, [fib(), fib()], Nanos(1)), is_v6: true };
    for number in 0..3 * size {
        (0..2).for_each(|port| trial.ask(port, number, Nanos(1)));
    }
    trial.router.update();
    trial.router.settle();
    let hop = NextHopSpec { address: host(true, 1, 3 * size - 1), interface: 1, weight: 1 };
    for number in 0..size / 2 - 20 {
        let prefix = Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(number) << 80);
        trial.router.set_route(Source::Kernel, IpNet::new(prefix.into(), 48).unwrap(), &[hop], Nanos(2));
    }
    trial.router.update();
    trial.router.settle();
    let view = trial.router.view();
    assert_eq!(view.counts.fib_refused, 0, "{view:?}");
    assert_eq!(view.fib.ipv6_routes, 512 + 512 - 20 + view.routes[Source::Local as usize][1] + 2);
}

/// Prefix `number` of those that Linux may state to be on link.
fn on_link(number: u8, len: u8) -> IpNet {
    IpNet::new(Ipv4Addr::new(20 + number, 0, 0, 0).into(), len).unwrap()
}

#[derive(Debug, Clone, Copy)]
enum Step {
    OnLink {
        number: u8,
        len: u8,
    },
    Removed {
        number: u8,
        len: u8,
    },
    /// So many hosts of a port announce themselves, each in a /24 of its own.
    Hosts {
        number: u8,
        port: u8,
        count: u32,
    },
    Down,
}

fn step() -> impl Strategy<Value = Step> {
    let route = || (0_u8..3, prop_oneof![Just(8_u8), Just(11), Just(12), Just(13)]);
    prop_oneof![
        3 => route().prop_map(|(number, len)| Step::OnLink { number, len }),
        1 => route().prop_map(|(number, len)| Step::Removed { number, len }),
        4 => (0_u8..3, 0_u8..4, 1_000_u32..6_000).prop_map(|(number, port, count)| Step::Hosts { number, port, count }),
        1 => Just(Step::Down),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Learned hosts leave half of the prefixes and of the tbl8s to routes, whatever Linux states to be on link.
    #[test]
    fn hosts_on_link_leave_half_of_the_ipv4_table_to_routes(steps in prop::collection::vec(step(), 4..16)) {
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
        let mut spec = fixture::two_ports();
        spec.fib = crate::route::FibSize { ipv4: 16_384, ipv6: 1_024 };
        let mut router = Router::new(&spec, fibs, Nanos(1));
        let half = [spec.fib.ipv4 / 2, spec.fib.tbl8s()[0] / 2].map(|half| half as usize);
        for step in steps {
            match step {
                Step::OnLink { number, len } => router.set_on_link(Source::Kernel, on_link(number, len), 1, Nanos(2)),
                Step::Removed { number, len } => router.remove_route(Source::Kernel, on_link(number, len)),
                Step::Hosts { number, port, count } => {
                    for host in 0..count {
                        let [_, _, high, low] = host.to_be_bytes();
                        let address = Ipv4Addr::new(20 + number, high, low, 7 + port);
                        let bytes = frames::arp_request((mac(port, host), address), [10, 0, 1, 1].into(), None);
                        let cause = PuntCause::Arp;
                        let frame = PuntFrame { bytes, port, vlan: 4093, l3_offset: 14, cause, may_wait: true };
                        router.receive(&frame, Nanos(3));
                    }
                }
                Step::Down => {
                    router.set_links(PortSet::EMPTY, Nanos(3));
                    router.set_links(PortSet::first(4), Nanos(3));
                }
            }
            router.take_output();
            let hosts: Vec<u32> = router.prefixes(Source::Neighbour).into_iter().filter_map(|prefix| match prefix {
                IpNet::V4(prefix) => Some(prefix.addr().to_bits()),
                IpNet::V6(_) => None,
            }).collect();
            let tbl8s: BTreeSet<u32> = hosts.iter().map(|host| host >> 8).collect();
            prop_assert!(hosts.len() <= half[0] && tbl8s.len() <= half[1], "{} hosts, {} tbl8s", hosts.len(), tbl8s.len());
        }
        for number in 0..3 {
            [8, 11, 12, 13].iter().for_each(|len| router.remove_route(Source::Kernel, on_link(number, *len)));
        }
        prop_assert_eq!((router.on_link_blocks, router.prefixes(Source::Neighbour).len()), (0, 0));
    }
}
