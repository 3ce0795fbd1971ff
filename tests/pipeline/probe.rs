//! Probes of the loop guard: own ones end at the switch, and those of other switches are bridged.

use std::hash::RandomState;
use std::sync::Arc;

use holdfast::forward::{LagSpec, LagState, LagsSpec, VlanMode};
use holdfast::lldp::{Guard, ProbedPort, Prober, probe::identity};
use holdfast::plan::DropReason;
use holdfast::plan::exception::ExceptionLink;
use holdfast::plan::own_probes::OwnProbes;
use holdfast::route::{InjectTo, PuntCause};
use holdfast::sets::PortSet;
use holdfast::units::Nanos;
use holdfast::wire::MacAddr;
use holdfast::wire::loop_probe::{LoopProbe, RecentRounds};

use crate::harness::*;

const OWN: u64 = 0x0123_4567_89ab_cdef;
const OTHER: u64 = OWN + 1;
const LONGEST: usize = 1522;
/// The rounds whose probes count.
const ROUNDS: RecentRounds = RecentRounds { newest: 1000, count: 7 };

/// A probe of the switch `identity` and of the newest round, from the address of `station`.
fn probe(station: usize, identity: u64, tag: Option<u16>) -> Vec<u8> {
    let (port, vlan) = (station as u16, tag.unwrap_or(1));
    LoopProbe { identity, port, vlan, sequence: ROUNDS.newest, seal: 9 }.emit(mac(station), tag)
}

/// A switch of `spec` with a control plane, and the ends of that.
fn bed(spec: &holdfast::plan::SwitchSpec) -> (Bed, Vec<ExceptionLink>) {
    let mut bed = Bed::new(spec);
    let links = bed.switch.attach_exceptions(LONGEST);
    bed.switch.recognize_probes(&Arc::new(OwnProbes::new(OWN, ROUNDS)));
    (bed, links)
}

/// Causes, ports and bytes of the punted frames.
fn punted(links: &mut [ExceptionLink]) -> Vec<(PuntCause, usize, Vec<u8>)> {
    let mut all = Vec::new();
    for link in links {
        while let Some(frame) = link.receive() {
            all.push((frame.cause, usize::from(frame.port), frame.bytes.clone()));
            link.give_back(frame);
        }
    }
    all
}

fn learned(bed: &Bed) -> u64 {
    bed.counters.lcores.iter().map(|lcore| lcore.fdb_learned.get()).sum()
}

/// Numbers of frames that left by each of `ports` ports.
fn sent(bed: &mut Bed, ports: usize) -> Vec<usize> {
    (0..ports).map(|port| bed.data(port).len()).collect()
}

fn policed(bed: &Bed) -> u64 {
    bed.counters.lcores.iter().map(|lcore| lcore.punt_policed[PuntCause::LoopProbe as usize].get()).sum()
}

#[test]
fn own_probe_is_punted_from_any_port_and_neither_forwarded_nor_learned() {
    let mut spec = spec(4);
    spec.ports[1].vlan = VlanMode::Trunk { tagged: vec![10], native: None };
    spec.ports[2].live.port_class = LOSSLESS as u8;
    let (mut bed, mut links) = bed(&spec);
    bed.switch.set_blocked(PortSet::only(3));
    for (port, tag) in [(0, None), (1, None), (1, Some(10)), (1, Some(99)), (2, None), (3, None)] {
        let probe = probe(9, OWN, tag);
        bed.io.inject(port, &probe);
        bed.run(10_000);
        assert_eq!(punted(&mut links), [(PuntCause::LoopProbe, port, probe)], "port {port}, tag {tag:?}");
    }
    assert_eq!((sent(&mut bed, 4), learned(&bed)), (vec![0; 4], 0));
    bed.assert_empty();
}

#[test]
fn probe_of_another_switch_is_flooded_and_learned_like_any_multicast_frame() {
    let mut spec = spec(5);
    spec.ports[3].vlan = VlanMode::Access(20);
    let (mut bed, mut links) = bed(&spec);
    bed.switch.set_blocked(PortSet::only(4));
    let other = probe(0, OTHER, None);
    // Beside frames that are admitted as a burst.
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.io.inject(0, &other);
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(10_000);
    assert_eq!(punted(&mut links), []);
    for port in [1, 2] {
        assert_eq!(bed.data(port).iter().filter(|bytes| **bytes == other).count(), 1, "port {port}");
    }
    assert_eq!((sent(&mut bed, 5), learned(&bed)), (vec![0; 5], 1), "no other port gets it");
    // A blocked port relays none, so that it does not go round.
    bed.io.inject(4, &other);
    bed.run(10_000);
    assert_eq!((sent(&mut bed, 5), bed.drops(4, DropReason::LoopBlocked)), (vec![0; 5], 1));
    bed.assert_empty();
}

/// The simulator, and a switch that ended its probes, have no identity; other stations may use the protocol too.
#[test]
fn other_frame_of_the_protocol_is_bridged() {
    let mut test = probe(0, OWN, None);
    let mut bed = Bed::new(&spec(3));
    bed.io.inject(0, &test);
    bed.run(10_000);
    assert_eq!(sent(&mut bed, 3), [0, 1, 1], "without a control plane it is any frame");
    let (mut bed, mut links) = self::bed(&spec(3));
    test[20] ^= 1;
    bed.io.inject(0, &test);
    test.truncate(15);
    bed.io.inject(0, &test);
    bed.run(10_000);
    assert_eq!((punted(&mut links).len(), sent(&mut bed, 3)), (0, vec![0, 2, 2]));
    bed.assert_empty();
}

#[test]
fn flood_of_own_probes_is_policed_and_starves_neither_lldp_nor_other_ports() {
    let (mut bed, mut links) = bed(&spec(2));
    for _ in 0..500 {
        bed.io.inject(0, &probe(1, OWN, None));
        bed.run(1_000);
    }
    let passed = punted(&mut links).len();
    assert!((1..=64).contains(&passed), "{passed} probes passed");
    assert_eq!(bed.drops(0, DropReason::PuntPoliced), 500 - passed as u64);
    assert_eq!(policed(&bed), 500 - passed as u64);
    let mut lldp = [&MacAddr::LLDP.0[..], &mac(0).0, &[0x88, 0xcc]].concat();
    lldp.resize(60, 0);
    bed.io.inject(0, &lldp);
    bed.io.inject(1, &probe(0, OWN, None));
    bed.run(10_000);
    let mut causes: Vec<_> = punted(&mut links).into_iter().map(|(cause, port, _)| (port, cause)).collect();
    causes.sort_by_key(|(port, _)| *port);
    assert_eq!(causes, [(0, PuntCause::Lldp), (1, PuntCause::LoopProbe)]);
    assert_eq!(sent(&mut bed, 2), [0, 0]);
    bed.assert_empty();
}

#[test]
fn own_probes_of_ended_rounds_use_up_no_allowance() {
    let (mut bed, mut links) = bed(&spec(2));
    let of_round = |sequence| LoopProbe { identity: OWN, port: 0, vlan: 1, sequence, seal: 9 }.emit(mac(0), None);
    // Ended rounds, and one that has not begun.
    let stale = (1..=993).chain([1001]);
    for sequence in stale {
        bed.io.inject(1, &of_round(sequence));
        bed.run(1_000);
    }
    assert_eq!((punted(&mut links), policed(&bed), bed.drops(1, DropReason::PuntPoliced)), (vec![], 994, 994));
    for sequence in 994..=1000 {
        bed.io.inject(1, &of_round(sequence));
        bed.run(1_000);
        assert_eq!(punted(&mut links), [(PuntCause::LoopProbe, 1, of_round(sequence))]);
    }
    bed.assert_empty();
}

/// Two ports lead to a network with a loop of its own, which the switch cannot end: each probe circulates there for
/// ever. All come in once a second, the oldest first.
#[test]
fn block_lasts_while_more_old_probes_circulate_than_the_policer_passes() {
    let (mut bed, mut links) = bed(&spec(2));
    let (secret, vlans, both) = (RandomState::new(), [VlanMode::Access(1), VlanMode::Access(1)], PortSet::first(2));
    let ports = vlans.clone().map(|vlan| Some(ProbedPort { mac: mac(0), vlan }));
    let mut prober = Prober::new(ports.to_vec(), Some(Nanos(HZ)), secret.clone());
    prober.set_ports(both, both);
    let own = Arc::new(OwnProbes::new(identity(&secret), prober.recent_rounds()));
    bed.switch.recognize_probes(&own);
    let mut guard = Guard::new(["a", "b"].map(str::to_owned).into_iter().zip(vlans), LagsSpec::default(), true);
    let mut circulating = Vec::new();
    for round in 0..100 {
        prober.tick(Nanos(bed.now));
        own.set_rounds(prober.recent_rounds());
        circulating.extend(prober.take_frames(99).into_iter().map(|probe| probe.frame));
        circulating.iter().for_each(|probe| bed.io.inject(1, probe));
        bed.run(100_000);
        for (_, port, bytes) in punted(&mut links) {
            prober.received(port, &bytes, Nanos(bed.now));
        }
        let _ = guard.look(std::iter::empty(), prober.returned(), Nanos(bed.now));
        assert_eq!(guard.blocked(), PortSet::only(1), "round {round}, {} probes circulate", circulating.len());
        bed.switch.set_loops(guard.blocked(), guard.looped());
        bed.now += HZ;
    }
    bed.assert_empty();
}

#[test]
fn idle_member_of_a_group_takes_own_probes_and_relays_no_others() {
    let group = LagSpec { name: "bond".to_owned(), ports: PortSet::first(2), min_links: 1, is_negotiated: true };
    let mut spec = spec(3);
    spec.lags = LagsSpec { groups: vec![group], hash_seed: 7, is_symmetric: false };
    let (mut bed, mut links) = bed(&spec);
    let active = PortSet::only(0);
    bed.switch.set_lags(LagState { collecting: active, distributing: active, closed: PortSet::EMPTY });
    bed.io.inject(1, &probe(9, OWN, None));
    bed.io.inject(1, &probe(8, OTHER, None));
    bed.run(10_000);
    assert_eq!(punted(&mut links), [(PuntCause::LoopProbe, 1, probe(9, OWN, None))]);
    assert_eq!((sent(&mut bed, 3), bed.drops(1, DropReason::LagInactive)), (vec![0; 3], 1));
    // From the active member it goes to the other port alone, and from there to one member.
    bed.io.inject(0, &probe(8, OTHER, None));
    bed.io.inject(2, &probe(7, OTHER, None));
    bed.run(10_000);
    assert_eq!(sent(&mut bed, 3), [1, 0, 1]);
    bed.assert_empty();
}

#[test]
fn tagged_probe_leaves_a_link_as_it_was_built_from_a_blocked_port_too() {
    let mut spec = spec(2);
    spec.ports[1].vlan = VlanMode::Trunk { tagged: vec![10], native: Some(1) };
    let (mut bed, mut links) = bed(&spec);
    bed.switch.set_blocked(PortSet::only(1));
    let frames = [probe(1, OWN, None), probe(1, OWN, Some(10))];
    for frame in &frames {
        assert!(links[0].inject(frame, InjectTo::Link(1), 0));
    }
    bed.run(10_000);
    assert_eq!((bed.data(0).len(), bed.data(1)), (0, frames.to_vec()));
    bed.assert_empty();
}
