//! Link aggregation groups: several ports that bridge and route as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast::dataplane::LiveConfig;
use holdfast::forward::{LagSpec, LagState, LagsSpec, VlanMode};
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::route::{
    Adjacency, AdjacencyId, Attachment, FibWriter, Group, GroupId, InjectTo, InterfaceSpec, RouteTable, RoutingSpec,
    SoftFib,
};
use holdfast::sets::{ClassSet, PortSet};
use holdfast::units::BitRate;
use holdfast::wire::MacAddr;
use proptest::prelude::*;

use crate::harness::*;
use crate::layout::Layout;

/// Members of the group. Ports 3 and 4 are alone.
const MEMBERS: [usize; 3] = [0, 1, 2];
/// The station behind the group, and those behind the other ports.
const BONDED: usize = 0;

fn members() -> PortSet {
    PortSet::from_bits(0b111)
}

/// A switch of five ports, of which the first three are a group.
fn bonded(is_negotiated: bool, min_links: u8) -> SwitchSpec {
    let group = LagSpec { name: "bond".to_owned(), ports: members(), min_links, is_negotiated };
    SwitchSpec { lags: LagsSpec { groups: vec![group], hash_seed: 7, is_symmetric: false }, ..spec(5) }
}

fn state(collecting: u64, distributing: u64, closed: u64) -> LagState {
    let [collecting, distributing, closed] = [collecting, distributing, closed].map(PortSet::from_bits);
    LagState { collecting, distributing, closed }
}

/// A frame of flow `flow` with `payload` bytes behind its headers.
fn of_flow(from: usize, to: usize, flow: u16, number: u16) -> Vec<u8> {
    let mut bytes = frame(from, to, 0, 100);
    bytes[34..36].copy_from_slice(&(0xc000 + flow).to_be_bytes());
    bytes[50..52].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// A lossless frame of flow `flow` to the bonded station.
fn lossless(flow: u16, number: u16) -> Vec<u8> {
    let mut bytes = of_flow(3, BONDED, flow, number);
    bytes[15] = LOSSLESS_DSCP << 2 | 2;
    bytes[24..26].fill(0);
    bytes
}

fn flow_of(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[34], frame[35]]) - 0xc000
}

fn number_of(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[50], frame[51]])
}

/// A switch that knows station 3 and 4 behind their ports, and the bonded station behind the group.
fn learned(spec: &SwitchSpec) -> Bed {
    let mut bed = Bed::new(spec);
    for (port, station) in [(1, BONDED), (3, 3), (4, 4)] {
        bed.io.inject(port, &frame(station, 0xffff, 0, 60));
    }
    bed.run(100_000);
    (0..5).for_each(|port| drop(bed.io.sent_all(port)));
    bed
}

/// The member by which each of `flows` flows to the bonded station leaves.
fn members_of(bed: &mut Bed, flows: u16) -> BTreeMap<u16, usize> {
    for flow in 0..flows {
        bed.io.inject(3, &of_flow(3, BONDED, flow, 0));
    }
    bed.run(200_000);
    let mut members = BTreeMap::new();
    for member in MEMBERS {
        for frame in bed.data(member) {
            assert_eq!(members.insert(flow_of(&frame), member), None, "a frame leaves once");
        }
    }
    // Flooded copies, while no member makes the station known.
    bed.data(4);
    members
}

#[test]
fn flows_spread_over_the_members_and_each_keeps_its_own() {
    let mut bed = learned(&bonded(false, 1));
    let first = members_of(&mut bed, 240);
    let second = members_of(&mut bed, 240);
    assert_eq!((first.len(), &second), (240, &first));
    let count = |member| first.values().filter(|&&at| at == member).count();
    assert!(MEMBERS.iter().all(|&member| (50..=110).contains(&count(member))), "{:?}", MEMBERS.map(count));
    bed.assert_empty();
}

#[test]
fn lost_member_moves_its_own_flows_alone_and_takes_them_back() {
    let mut bed = learned(&bonded(false, 1));
    let before = members_of(&mut bed, 240);
    bed.switch.set_link(0, false);
    let without = members_of(&mut bed, 240);
    assert_eq!(without.len(), 240, "the first member is gone, and the group is not");
    for (flow, member) in &before {
        assert!(if *member == 0 { without[flow] != 0 } else { without[flow] == *member }, "flow {flow}");
    }
    bed.switch.set_link(0, true);
    assert_eq!(members_of(&mut bed, 240), before);
    bed.assert_empty();
}

/// The first member, by which the group is known, and another one.
#[test]
fn member_takes_other_settings_while_the_group_goes_on() {
    let mut before = bonded(false, 1);
    before.ports.iter_mut().for_each(|port| port.tx_queues = 1);
    for member in [0, 1] {
        let shut = |spec: &SwitchSpec| {
            let mut spec = spec.clone();
            spec.ports[member].live.is_enabled = false;
            spec
        };
        let mut after = before.clone();
        (after.ports[member].rate, after.ports[member].mac) = (BitRate(1_000_000_000), MacAddr::local(7, 7));
        let between =
            |from: &SwitchSpec, to: &SwitchSpec| LiveConfig::between(from, to, HZ).expect("a member can leave");
        let mut bed = learned(&before);
        let flows = members_of(&mut bed, 240);
        bed.apply(&between(&before, &shut(&before)).leaving(PortSet::only(member)));
        let without = members_of(&mut bed, 240);
        let moved = |flow: &u16, at: usize| if at == member { without[flow] != at } else { without[flow] == at };
        assert_eq!(without.len(), 240);
        assert!(flows.iter().all(|(flow, at)| moved(flow, *at)), "its own flows alone");
        bed.apply(&between(&shut(&before), &shut(&after)));
        assert_eq!(members_of(&mut bed, 240), without);
        bed.apply(&between(&shut(&after), &after));
        bed.run(10_000);
        assert_eq!(members_of(&mut bed, 240), flows);
        bed.assert_empty();
    }
}

#[test]
fn group_is_one_port_to_bridging() {
    let mut bed = learned(&bonded(false, 1));
    // One copy for the group, none for the port that it came by.
    bed.io.inject(3, &frame(3, 0xffff, 0, 100));
    bed.run(10_000);
    let copies: usize = MEMBERS.iter().map(|&member| bed.data(member).len()).sum();
    assert_eq!((copies, bed.data(3).len(), bed.data(4).len()), (1, 0, 1));
    bed.io.inject(2, &frame(BONDED, 0xffff, 0, 100));
    bed.run(10_000);
    let copies = [0, 1, 2, 3, 4].map(|port| bed.data(port).len());
    assert_eq!(copies, [0, 0, 0, 1, 1], "no copy comes back by another member");
    // Two stations behind the group: their frames are theirs.
    bed.io.inject(0, &frame(9, 0xffff, 0, 100));
    bed.run(10_000);
    bed.io.inject(1, &frame(9, BONDED, 0, 100));
    bed.run(10_000);
    assert_eq!(bed.drops(1, DropReason::SamePort), 1);
    bed.assert_empty();
}

/// A station that sends by all members does not move between ports: its frames are of known stations after the first.
#[test]
fn station_stays_at_its_group_whichever_member_its_frames_come_by() {
    let mut bed = learned(&bonded(false, 1));
    let learned = |bed: &Bed| bed.counters.lcores.iter().map(|lcore| lcore.fdb_learned.get()).sum::<u64>();
    let before = learned(&bed);
    for number in 0..90 {
        bed.io.inject(number % 3, &of_flow(BONDED, 3, 0, number as u16));
        bed.run(2_000);
    }
    assert_eq!((bed.data(3).len(), learned(&bed)), (90, before));
    bed.assert_empty();
}

#[test]
fn idle_member_takes_frames_of_its_link_and_pfc_alone() {
    let mut bed = Bed::new(&bonded(true, 1));
    let mut links = bed.switch.attach_exceptions(1522);
    bed.io.inject(3, &frame(3, 0xffff, 0, 60));
    bed.io.inject(1, &frame(BONDED, 3, 0, 100));
    bed.run(100_000);
    assert_eq!((bed.drops(1, DropReason::LagInactive), bed.data(3).len()), (1, 0));
    assert_eq!(MEMBERS.map(|member| bed.data(member).len()), [0; 3], "nothing is negotiated yet");
    let mut lacp = [&MacAddr::SLOW_PROTOCOLS.0[..], &mac(BONDED).0, &[0x88, 0x09, 1, 1]].concat();
    lacp.resize(124, 0);
    bed.io.inject(1, &lacp);
    bed.io.inject(3, &lacp);
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(100_000);
    let punted: Vec<u8> = links.iter_mut().filter_map(|link| link.receive()).map(|frame| frame.port).collect();
    assert_eq!(punted, [1], "a port that is in no group takes no slow protocols");
    assert_eq!(bed.drops(3, DropReason::LinkLocal), 1);
    assert_eq!(bed.counters.of_port(1).map(|port| port.pfc_rx_frames.get()).sum::<u64>(), 1);
    assert!(links[usize::from(Layout::current().lcores - 1)].inject(&lacp, InjectTo::Link(1), 0));
    bed.run(100_000);
    assert_eq!(bed.data(1), [lacp]);

    // One that takes frames and may not send any yet.
    bed.switch.set_lags(state(0b010, 0b001, 0));
    bed.io.inject(1, &frame(BONDED, 3, 0, 100));
    bed.io.inject(0, &frame(BONDED, 3, 0, 100));
    bed.run(100_000);
    assert_eq!((bed.data(3).len(), bed.drops(0, DropReason::LagInactive)), (1, 1));
    assert_eq!(members_of(&mut bed, 30).into_values().collect::<BTreeSet<_>>(), [0].into());
    bed.assert_empty();
}

#[test]
fn group_with_too_few_links_carries_nothing() {
    let mut bed = learned(&bonded(false, 2));
    bed.switch.set_link(2, false);
    assert_eq!(members_of(&mut bed, 60).len(), 60);
    bed.switch.set_link(0, false);
    assert_eq!(members_of(&mut bed, 60).len(), 0);
    assert_eq!(bed.drops(3, DropReason::EgressDown) + bed.drops(3, DropReason::NoMember), 0);
    bed.io.inject(1, &frame(BONDED, 3, 0, 100));
    bed.run(10_000);
    assert_eq!(bed.drops(1, DropReason::LagInactive), 1);
    bed.switch.set_link(0, true);
    bed.io.inject(1, &frame(BONDED, 3, 0, 100));
    bed.run(10_000);
    assert_eq!(bed.data(3).len(), 1);
    bed.assert_empty();
}

#[test]
fn loop_guard_blocks_a_group_as_a_whole() {
    let mut bed = learned(&bonded(false, 1));
    bed.switch.set_blocked(PortSet::only(2));
    bed.io.inject(0, &frame(BONDED, 3, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.drops(0, DropReason::LoopBlocked), bed.data(3).len()), (1, 0));
    assert_eq!(members_of(&mut bed, 30).len(), 0);
    bed.switch.set_blocked(PortSet::EMPTY);
    bed.io.inject(0, &frame(BONDED, 3, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.data(3).len(), members_of(&mut bed, 30).len()), (1, 30));
}

/// The VLANs of a group are those of its first port. A loop at that port alone, while it is idle, must not end the
/// others.
#[test]
fn loop_at_an_idle_member_leaves_its_group_to_the_others() {
    let mut bed = learned(&bonded(true, 1));
    bed.switch.set_lags(state(0b110, 0b110, 0));
    bed.io.inject(1, &frame(BONDED, 0xffff, 0, 60));
    bed.run(10_000);
    bed.data(3);
    bed.switch.set_blocked(PortSet::only(0));
    bed.io.inject(0, &frame(BONDED, 3, 0, 100));
    bed.io.inject(1, &frame(BONDED, 3, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.data(3).len(), bed.drops(0, DropReason::LagInactive)), (1, 1));
    assert_eq!(members_of(&mut bed, 30).values().collect::<BTreeSet<_>>(), BTreeSet::from([&1, &2]));
}

/// Stations behind a group are learned at its first port, whichever member is in the loop.
#[test]
fn loop_at_a_member_forgets_the_stations_of_its_group_alone() {
    for (blocked, looped) in [(2, [2, 2]), (4, [4, 2])] {
        let mut bed = learned(&bonded(false, 1));
        bed.switch.set_loops(PortSet::only(blocked), looped.into_iter().collect());
        for (port, to) in [(4, 3), (3, BONDED)] {
            bed.io.inject(port, &frame(port, to, LOSSLESS_DSCP, 100));
            bed.run(10_000);
        }
        let is_forwarded = usize::from(blocked != 4);
        assert_eq!((bed.data(3).len(), bed.drops(3, DropReason::LosslessUnknown)), (is_forwarded, 1), "{blocked}");
    }
}

/// Each member has its own ledger and PFC: only the member whose frames wait pauses its peer.
#[test]
fn pfc_and_headroom_are_those_of_the_member() {
    let mut bed = learned(&bonded(false, 1));
    bed.pause(3, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(2_000);
    for _ in 0..60 {
        bed.io.inject(1, &frame(BONDED, 3, LOSSLESS_DSCP, CELL));
    }
    bed.run(20_000);
    let paused = MEMBERS.map(|member| bed.pfcs(member).iter().any(|pfc| pfc.quanta[LOSSLESS].0 > 0));
    assert_eq!(paused, [false, true, false]);
    // Reserve, shared and headroom of one port: 10, 20 and 5 cells.
    assert_eq!((bed.drops(1, DropReason::HeadroomFull), bed.switch.held_frames()), (25, 35));
    bed.io.inject(2, &frame(BONDED, 3, LOSSLESS_DSCP, CELL));
    bed.run(2_000);
    assert_eq!((bed.drops(2, DropReason::HeadroomFull), bed.switch.held_frames()), (0, 36));
    bed.pause(3, ClassSet::only(LOSSLESS), 0);
    bed.run(100_000);
    assert_eq!(bed.data(3).len(), 36);
    bed.assert_empty();
}

#[test]
fn closed_member_keeps_its_frames_until_the_others_have_sent_older_ones() {
    let mut bed = learned(&bonded(true, 1));
    bed.switch.set_lags(state(0b111, 0b111, 0));
    bed.io.inject(1, &frame(BONDED, 0xffff, 0, 60));
    bed.run(10_000);
    // Fewer than the group of the sender holds.
    let all = members_of(&mut bed, 40);
    let own: Vec<u16> = all.into_iter().filter(|(_, member)| *member == 0).map(|(flow, _)| flow).collect();
    bed.switch.set_lags(state(0b111, 0b110, 0));
    // The peer has paused the members that are left, so that frames wait.
    [1, 2].iter().for_each(|&port| bed.pause(port, ClassSet::only(LOSSLESS), 0xffff));
    bed.run(2_000);
    own.iter().for_each(|&flow| bed.io.inject(3, &lossless(flow, 1)));
    bed.run(10_000);
    bed.switch.set_lags(state(0b111, 0b111, 0b001));
    bed.switch.note_members(members());
    own.iter().for_each(|&flow| bed.io.inject(3, &lossless(flow, 2)));
    bed.run(10_000);
    assert!(!bed.switch.undrained_members().is_empty());
    assert_eq!(MEMBERS.map(|member| bed.data(member).len()), [0; 3], "flows that came back wait for their old frames");
    [1, 2].iter().for_each(|&port| bed.pause(port, ClassSet::only(LOSSLESS), 0));
    bed.run(10_000);
    assert!(bed.switch.undrained_members().is_empty());
    let old: Vec<u16> = [1, 2].iter().flat_map(|&member| bed.data(member)).map(|frame| number_of(&frame)).collect();
    assert_eq!((old, bed.data(0).len()), (vec![1; own.len()], 0));
    bed.switch.set_lags(state(0b111, 0b111, 0));
    bed.run(10_000);
    let new: Vec<u16> = bed.data(0).iter().map(|frame| number_of(frame)).collect();
    assert_eq!(new, vec![2; own.len()]);
    bed.assert_empty();
}

#[test]
fn link_that_goes_down_opens_a_closed_member() {
    let mut bed = learned(&bonded(true, 1));
    bed.switch.set_lags(state(0b111, 0b001, 0b001));
    members_of(&mut bed, 30);
    assert_eq!(bed.switch.held_frames(), 30);
    bed.switch.set_link(0, false);
    bed.run(10_000);
    assert_eq!((bed.switch.held_frames(), bed.drops(0, DropReason::EgressDown)), (0, 30));
    bed.assert_empty();
}

/// A router whose first interface is the group, with a host on the network of the second.
fn routed() -> SwitchSpec {
    let mut spec = bonded(false, 1);
    for (port, vlan) in spec.ports.iter_mut().zip([4094, 4094, 4094, 4093]) {
        port.vlan = VlanMode::Routed(vlan);
    }
    let interface = |port: u8, vlan, network: u8| InterfaceSpec {
        name: format!("p{port}"),
        attachment: Attachment::Port(port),
        vlan,
        mac: MacAddr::local(9, port.into()),
        ports: PortSet::only(port.into()),
        addresses: vec![format!("10.250.{network}.1/24").parse().unwrap()],
        mtu: 1500,
    };
    spec.routing = Some(RoutingSpec::of(vec![interface(0, 4094, 0), interface(3, 4093, 1)]));
    spec
}

/// Routes to a host on each of the two networks.
fn tables() -> Arc<RouteTable> {
    let fib = Arc::new(SoftFib::default());
    let mut table = RouteTable::empty(fib.clone());
    let (mut groups, mut buckets): (Vec<Group>, _) = (RouteTable::fixed_groups().into(), Vec::new());
    let mut adjacencies = Vec::new();
    for (id, (port, vlan, prefix)) in [(0, 4094, "10.0.0.0/24"), (3, 4093, "10.0.3.0/24")].into_iter().enumerate() {
        let id = AdjacencyId(id as u16);
        let addresses = [mac(port), MacAddr::local(9, port as u16)];
        adjacencies.push(Adjacency::new(id, addresses, vlan, PortSet::only(port), 1500));
        groups.push(Group::of(&[id], &mut buckets));
        fib.set(prefix.parse().unwrap(), GroupId(groups.len() as u32 - 1)).unwrap();
    }
    table.set_groups(groups.into(), buckets.into(), adjacencies.into());
    Arc::new(table)
}

#[test]
fn routed_group_routes_from_and_to_all_members() {
    let mut bed = Bed::new(&routed());
    bed.switch.set_routes(&tables());
    let packet = |to: u8, router: u16, flow: u16| {
        let mut bytes = of_flow(50, 51, flow, 0);
        bytes[..6].copy_from_slice(&MacAddr::local(9, router).0);
        bytes[26..34].copy_from_slice(&[10, 9, 9, 9, 10, 0, to, 7]);
        bytes[24..26].fill(0);
        let sum = bytes[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>();
        bytes[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        bytes
    };
    for member in MEMBERS {
        bed.io.inject(member, &packet(3, 0, 1));
    }
    bed.run(10_000);
    assert_eq!(bed.data(3).len(), 3, "from any member");
    (0..90).for_each(|flow| bed.io.inject(3, &packet(0, 3, flow)));
    bed.run(100_000);
    let sent = MEMBERS.map(|member| bed.data(member).len());
    assert!(sent.iter().sum::<usize>() == 90 && sent.iter().all(|&count| count > 10), "{sent:?}");
    // A frame of the control plane to the interface leaves by one member.
    let mut links = bed.switch.attach_exceptions(1522);
    bed.switch.set_link(0, false);
    assert!(links[0].inject(&packet(0, 3, 1), InjectTo::Port(0), 4094));
    bed.run(10_000);
    assert_eq!(MEMBERS.map(|member| bed.data(member).len()).iter().sum::<usize>(), 1);
    bed.assert_empty();
}

/// A step of the random test.
#[derive(Debug, Clone)]
enum Step {
    Send {
        flow: u16,
        frames: u8,
    },
    /// The member has no link for a while.
    Cut(usize),
    /// The member has its link back, and flows that move to it wait for older frames.
    Mend(usize),
    Pause(usize, bool),
    Run(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..12_u16, 1..6_u8).prop_map(|(flow, frames)| Step::Send { flow, frames }),
        1 => (0..3_usize).prop_map(Step::Cut),
        1 => (0..3_usize).prop_map(Step::Mend),
        2 => (0..3_usize, any::<bool>()).prop_map(|(port, is_on)| Step::Pause(port, is_on)),
        2 => (1..20_u16).prop_map(Step::Run),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Members come and go: frames of a flow leave in their order, and those of members with a link all leave.
    #[test]
    fn no_flow_is_reordered_when_members_come_and_go(steps in prop::collection::vec(step(), 1..60)) {
        let mut bed = learned(&bonded(true, 1));
        let (mut sent, mut seen) = ([0_u16; 12], [0_u16; 12]);
        let (mut up, mut closed) = (members(), PortSet::EMPTY);
        let tell = |bed: &mut Bed, up: PortSet, closed: PortSet| {
            bed.switch.set_lags(LagState { collecting: members(), distributing: up, closed });
        };
        tell(&mut bed, up, closed);
        bed.io.inject(1, &frame(BONDED, 0xffff, 0, 60));
        bed.run(10_000);
        bed.data(3);
        let look = |bed: &mut Bed, seen: &mut [u16; 12]| {
            for member in MEMBERS {
                for frame in bed.data(member) {
                    let (flow, number) = (usize::from(flow_of(&frame)), number_of(&frame));
                    prop_assert!(number > seen[flow], "flow {flow}: {number} after {}", seen[flow]);
                    seen[flow] = number;
                }
            }
            Ok(())
        };
        for step in steps {
            match step {
                Step::Send { flow, frames } => for _ in 0..frames {
                    sent[usize::from(flow)] += 1;
                    bed.io.inject(3, &lossless(flow, sent[usize::from(flow)]));
                },
                Step::Cut(port) => {
                    bed.switch.set_link(port, false);
                    up.remove(port);
                    closed.remove(port);
                    tell(&mut bed, up, closed);
                }
                // A member that becomes active during an opening waits for its end (`control::plane::openings`).
                Step::Mend(port) if !up.contains(port) && closed.is_empty() => {
                    bed.switch.set_link(port, true);
                    up.insert(port);
                    if up.len() > 1 {
                        closed.insert(port);
                    }
                    tell(&mut bed, up, closed);
                    // Frames on their way between lcores are in their queues after this.
                    bed.run(2_000);
                    bed.switch.note_members(members());
                }
                Step::Mend(_) => {}
                Step::Pause(port, is_on) => bed.pause(port, ClassSet::ALL, if is_on { 0xffff } else { 0 }),
                Step::Run(us) => bed.run(u64::from(us) * 1000),
            }
            bed.run(1_000);
            look(&mut bed, &mut seen)?;
            if !closed.is_empty() && bed.switch.undrained_members().is_empty() {
                closed = PortSet::EMPTY;
                tell(&mut bed, up, closed);
            }
        }
        MEMBERS.iter().for_each(|&port| bed.pause(port, ClassSet::ALL, 0));
        bed.run(50_000);
        look(&mut bed, &mut seen)?;
        tell(&mut bed, up, PortSet::EMPTY);
        bed.run(50_000);
        look(&mut bed, &mut seen)?;
        bed.assert_empty();
    }
}
