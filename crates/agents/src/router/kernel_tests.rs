use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etherparse::{IcmpEchoHeader, Icmpv4Type, Icmpv6Type};

use super::*;
use crate::route::{FibWriter, NextHopSpec, PuntFrame, SoftFib};
use crate::router::{Source, fixture};
use crate::wire::MacAddr;

/// Most hosts of one of the fixture's two ports: half of a half of 896 places, and half of the other half.
const MOST: usize = 224 + 224;
/// Senders of the hostile port, and those in a second: as many as policers let through.
const SENDERS: u32 = 20_000;
const PER_SECOND: u32 = 500;

/// A router with Linux beside it.
fn router() -> Router {
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut spec = fixture::two_ports();
    spec.interfaces[0].addresses =
        ["10.128.0.1/9", "2001:db8::1/64"].iter().map(|text| text.parse().unwrap()).collect();
    let mut router = Router::new(&spec, fibs, Nanos(1));
    router.leave_answers_to_kernel(KernelLimits::default());
    router.take_output();
    router
}

fn at(seconds: u32) -> Nanos {
    Nanos(u64::from(seconds) * 1_000_000_000)
}

/// The kinds of frames by which Linux makes an entry of their sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Arp,
    Solicitation,
    RouterSolicitation,
    Echo,
    EchoV6,
}

const KINDS: [Kind; 5] = [Kind::Arp, Kind::Solicitation, Kind::RouterSolicitation, Kind::Echo, Kind::EchoV6];

/// A host with its MAC address.
struct Host {
    port: u8,
    mac: MacAddr,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

impl Host {
    fn new(port: u8, number: u32) -> Self {
        let [_, a, b, c] = number.to_be_bytes();
        let network = if port == 0 { 0x0a80_0000 } else { 0x0a00_0100 };
        Self {
            port,
            mac: MacAddr([2, 1, port, a, b, c]),
            v4: Ipv4Addr::from_bits(network + number + 2),
            v6: Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(port) << 80 | u128::from(number + 2)),
        }
    }

    /// The addresses of the router at its port.
    fn gateways(&self) -> (Ipv4Addr, Ipv6Addr) {
        let v4 = if self.port == 0 { Ipv4Addr::new(10, 128, 0, 1) } else { Ipv4Addr::new(10, 0, 1, 1) };
        (v4, Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(self.port) << 80 | 1))
    }

    fn punt(&self, cause: PuntCause, bytes: Vec<u8>) -> PuntFrame {
        let (port, vlan) = (self.port, 4094 - u16::from(self.port));
        PuntFrame { bytes, port, vlan, l3_offset: 14, cause, may_wait: true }
    }

    fn frame(&self, kind: Kind) -> PuntFrame {
        let ((v4, v6), echo) = (self.gateways(), IcmpEchoHeader { id: 1, seq: 1 });
        let to = MacAddr::local(0, self.port.into());
        let packet = |bytes: Vec<u8>| frames::ip_frame(to, self.mac, &bytes);
        let icmpv6 = |kind| packet(frames::icmpv6_packet(self.v6, v6, 255, kind, &[0; 8]));
        match kind {
            Kind::Arp => self.punt(PuntCause::Arp, frames::arp_request((self.mac, self.v4), v4, None)),
            Kind::Solicitation => {
                self.punt(PuntCause::NeighbourDiscovery, frames::solicitation((self.mac, self.v6), v6, None))
            }
            Kind::RouterSolicitation => {
                let kind = Icmpv6Type::Unknown { type_u8: 133, code_u8: 0, bytes5to8: [0; 4] };
                self.punt(PuntCause::NeighbourDiscovery, icmpv6(kind))
            }
            Kind::Echo => {
                let bytes = frames::icmpv4_packet(self.v4, v4, 0, Icmpv4Type::EchoRequest(echo), &[0; 8]);
                self.punt(PuntCause::Icmp, packet(bytes))
            }
            Kind::EchoV6 => self.punt(PuntCause::Icmp, icmpv6(Icmpv6Type::EchoRequest(echo))),
        }
    }
}

/// Lets the hostile port send, from the `first` second on. Returns the number of its frames that Linux gets.
fn flood(router: &mut Router, kind: Kind, first: u32) -> usize {
    let sent = (0..SENDERS).filter(|number| {
        let is_for_linux = router.receive(&Host::new(0, *number).frame(kind), at(first + number / PER_SECOND));
        router.take_output();
        is_for_linux
    });
    sent.count()
}

#[test]
fn senders_of_one_port_take_no_place_in_linux_from_another() {
    for kind in KINDS {
        let (mut router, end) = (router(), SENDERS / PER_SECOND + 1);
        let reach = |router: &mut Router, numbers: std::ops::Range<u32>, now| {
            numbers.filter(|&number| router.receive(&Host::new(1, number).frame(kind), now)).count()
        };
        assert_eq!(reach(&mut router, 0..20, at(1)), 20, "{kind:?}");
        assert_eq!(flood(&mut router, kind, 1), MOST, "{kind:?}");
        assert_eq!(router.linux_view().unwrap().withheld[..2], [u64::from(SENDERS) - MOST as u64, 0], "{kind:?}");
        assert_eq!(reach(&mut router, 0..20, at(end)), 20, "old hosts, {kind:?}");
        assert_eq!(reach(&mut router, 20..240, at(end)), 220, "new hosts, {kind:?}");
        // The kernel has given up the entries of the flood by then.
        assert!(flood(&mut router, kind, 200) >= MOST, "{kind:?}");
    }
}

#[test]
fn host_that_linux_knows_reaches_it_beside_a_flood_of_its_port() {
    for kind in KINDS {
        let mut router = router();
        let known = Host { port: 0, ..Host::new(0, SENDERS) }.frame(kind);
        for first in [1, 42, 84] {
            assert!(router.receive(&known, at(first)), "{kind:?}");
            flood(&mut router, kind, first);
        }
    }
}

#[test]
fn router_answers_discovery_of_a_host_without_a_place_in_linux() {
    for kind in [Kind::Arp, Kind::Solicitation] {
        let mut router = router();
        flood(&mut router, kind, 1);
        let (new, other) = (Host::new(0, SENDERS), Host::new(1, 1));
        assert!(!router.receive(&new.frame(kind), at(2)), "{kind:?}");
        let sent = router.take_output();
        assert!(sent.iter().any(|sent| sent.bytes.starts_with(&new.mac.0)), "{kind:?}");
        assert!(router.receive(&other.frame(kind), at(2)), "{kind:?}");
        assert!(router.take_output().is_empty(), "Linux answers {kind:?}");
    }
}

#[test]
fn frames_that_make_and_keep_no_entry_need_no_place() {
    let mut router = router();
    KINDS.iter().for_each(|kind| _ = flood(&mut router, *kind, 1));
    let host = Host::new(0, SENDERS);
    let ((v4, v6), mac) = (host.gateways(), host.mac);
    let probe = frames::arp_request((mac, Ipv4Addr::UNSPECIFIED), v4, None);
    assert!(router.receive(&host.punt(PuntCause::Arp, probe), at(2)));
    let probe = frames::solicitation((mac, Ipv6Addr::UNSPECIFIED), v6, None);
    assert!(router.receive(&host.punt(PuntCause::NeighbourDiscovery, probe), at(2)));
    assert!(router.receive(&host.punt(PuntCause::Lldp, Vec::new()), at(2)));
    assert!(!router.receive(&host.punt(PuntCause::Arp, vec![0; 60]), at(2)), "the sender of invalid ARP is not known");
    // Packets of hosts behind a next hop make an entry of the next hop only.
    let hop = NextHopSpec { address: host.v4.into(), interface: 0, weight: 1 };
    router.set_route(Source::Kernel, "10.9.0.0/16".parse().unwrap(), &[hop], at(2));
    assert!(router.receive(&host.frame(Kind::Arp), at(2)), "a next hop");
    for number in 0..SENDERS / 2 {
        let far = Host { v4: Ipv4Addr::from_bits(0x0a09_0000 + number), ..Host::new(0, number) };
        assert!(router.receive(&far.frame(Kind::Echo), at(2)));
    }
}

/// Linux marks an entry as reachable by answers that it has not asked for. They must not keep more entries than places.
#[test]
fn answers_reach_linux_from_hosts_that_it_knows_or_asks_for() {
    let mut router = router();
    let host = Host::new(0, 7);
    let ((v4, v6), own) = (host.gateways(), MacAddr::local(0, 0));
    let answers = [
        host.punt(PuntCause::Arp, frames::arp_reply((host.mac, host.v4), (own, v4))),
        host.punt(PuntCause::Arp, frames::gratuitous_arp((host.mac, host.v4))),
        host.punt(PuntCause::NeighbourDiscovery, frames::advertisement((host.mac, host.v6), Some((own, v6)), host.v6)),
    ];
    let passed = |router: &mut Router, now| answers.each_ref().map(|answer| router.receive(answer, now));
    assert_eq!(passed(&mut router, at(1)), [false; 3]);
    [Kind::Arp, Kind::Solicitation].iter().for_each(|kind| _ = router.receive(&host.frame(*kind), at(1)));
    assert_eq!(passed(&mut router, at(60)), [true; 3]);
    assert_eq!(passed(&mut router, at(119)), [true; 3]);
    assert_eq!(passed(&mut router, at(179)), [false; 3], "the kernel may give up its entry");
    assert_eq!(router.linux_view().unwrap().withheld[0], 0);
    // Linux asks, although the port has no place left.
    KINDS.iter().for_each(|kind| _ = flood(&mut router, *kind, 200));
    let asked = [
        frames::arp_request((own, v4), host.v4, None),
        frames::solicitation((own, v6), host.v6, None),
        frames::gratuitous_arp((own, v4)),
        vec![0; 13],
    ];
    asked.iter().for_each(|frame| router.note_linux_frame(0, frame, at(240)));
    assert_eq!(passed(&mut router, at(241)), [true; 3]);
}

#[test]
fn places_never_exceed_the_table_and_each_port_has_its_reserve() {
    const LIMIT: usize = 256;
    let (ports, mut family) = (7_u8, Family::new(LIMIT, 7));
    assert_eq!((family.reserve, family.shared), (16, 112));
    // The last frame of each sender that Linux got.
    let (mut last, mut random) = (BTreeMap::new(), 1_u64);
    for step in 0..60_000_u64 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        // A sender may appear at several ports.
        let (port, number) = ((random >> 60) as u8 % ports, (random >> 33) as u32 % 600);
        let (key, now) = ((0, Ipv4Addr::from_bits(number).into()), Nanos(step * HELD.0 / 1000));
        if number.is_multiple_of(10) {
            family.ask(key, now);
        }
        let used = family.by_port[usize::from(port)];
        let is_admitted = family.admit(key, port, now);
        assert!(is_admitted || used >= 16, "port {port} has its reserve");
        if is_admitted {
            last.insert(key, now);
        }
        last.retain(|_, at| at.0 + HELD.0 > now.0);
        let asked = family.by_port[usize::from(NO_PORT)];
        assert!(asked <= LIMIT / 16 && last.len() <= LIMIT - LIMIT / 8 + asked, "{} entries", last.len());
        assert!(family.by_port.iter().all(|used| *used <= port_limit(LIMIT, 7)), "{:?}", family.by_port);
    }
    assert!(last.len() > LIMIT / 2);
    assert_eq!(family.by_port.iter().sum::<usize>(), family.held.len());
}

#[test]
fn limit_that_gives_a_port_too_few_places_is_named() {
    let limits = KernelLimits { ipv4: Some(1024), ipv6: Some(WANTED_LIMIT) };
    let expected = Shortage {
        key: "net.ipv4.neigh.default.gc_thresh3".to_owned(),
        state: "is 1024: Linux knows at most 336 hosts of a port, and the router 8192".to_owned(),
        remedy: "`sysctl -w net.ipv4.neigh.default.gc_thresh3=65536` on the host, before the switch starts".to_owned(),
    };
    assert_eq!(limits.shortages(4), [expected]);
    let unknown = KernelLimits { ipv4: None, ..limits }.shortages(4);
    assert!(unknown[0].state.starts_with("cannot be read here and may be 1024: "));
}
