//! VLANs of ports that change while frames are exchanged, held and under way between lcores.

use holdfast::dataplane::LiveConfig;
use holdfast::forward::{LagSpec, LagsSpec, StaticEntry, VlanMode};
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::route::InjectTo;
use holdfast::sets::{ClassSet, PortSet};

use crate::harness::*;
use crate::layout::Layout;

/// Gives `port` other VLANs on all lcores. Returns the new spec.
fn give(bed: &mut Bed, spec: &SwitchSpec, port: usize, vlan: VlanMode) -> SwitchSpec {
    let wanted = with(spec, port, vlan);
    bed.switch.apply(&LiveConfig::between(spec, &wanted, HZ).expect("VLANs may change"));
    wanted
}

fn with(spec: &SwitchSpec, port: usize, vlan: VlanMode) -> SwitchSpec {
    let mut wanted = spec.clone();
    wanted.ports[port].vlan = vlan;
    wanted
}

fn trunk(tagged: &[u16], native: Option<u16>) -> VlanMode {
    VlanMode::Trunk { tagged: tagged.to_vec(), native }
}

fn sent(bed: &mut Bed) -> Vec<usize> {
    (0..bed.counters.ports.len()).map(|port| bed.data(port).len()).collect()
}

#[test]
fn moved_host_is_reached_in_its_new_vlan_only() {
    let mut spec = spec(4);
    spec.ports[2].vlan = VlanMode::Access(2);
    spec.ports[3].vlan = VlanMode::Access(2);
    let mut bed = Bed::learned(&spec);
    // The flow cache has the pair.
    for _ in 0..50 {
        bed.io.inject(0, &frame(0, 1, 0, 100));
        bed.run(2_000);
    }
    assert_eq!(sent(&mut bed), [0, 50, 0, 0]);
    let spec = give(&mut bed, &spec, 1, VlanMode::Access(2));
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(2_000);
    assert_eq!((sent(&mut bed), bed.drops(0, DropReason::NoMember)), (vec![0; 4], 1), "VLAN 1 has no other port");
    // It sends, and is known in its new VLAN.
    bed.io.inject(1, &frame(1, 2, 0, 100));
    bed.run(2_000);
    bed.io.inject(2, &frame(2, 1, LOSSLESS_DSCP, 100));
    bed.run(2_000);
    assert_eq!(sent(&mut bed), [0, 1, 1, 0]);
    give(&mut bed, &spec, 1, VlanMode::Access(1));
    bed.io.inject(2, &frame(2, 1, 0, 100));
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(2_000);
    assert_eq!(sent(&mut bed)[1..], [1, 0, 1], "both find no station; the one of VLAN 2 is flooded there");
    bed.assert_empty();
}

#[test]
fn lossless_frames_to_other_stations_of_a_trunk_are_not_lost_when_it_leaves_a_vlan() {
    let mut spec = spec(3);
    for port in [1, 2] {
        spec.ports[port].vlan = trunk(&[7, 8], Some(1));
    }
    let mut bed = Bed::learned(&spec);
    let eight = |from: usize, to: usize| {
        let mut frame = frame(from, to, LOSSLESS_DSCP, 100);
        frame.splice(12..12, [0x81, 0, 0, 8]);
        frame
    };
    bed.io.inject(1, &eight(1, 2));
    bed.io.inject(2, &eight(2, 1));
    bed.run(2_000);
    sent(&mut bed);
    let before = bed.drops(2, DropReason::LosslessUnknown);
    give(&mut bed, &spec, 1, trunk(&[7], Some(1)));
    // In VLAN 1, where the trunk stays, its station stays known; in VLAN 8 it is unknown.
    for _ in 0..10 {
        bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
        bed.io.inject(2, &eight(2, 1));
        bed.run(2_000);
    }
    assert_eq!((sent(&mut bed), bed.drops(2, DropReason::LosslessUnknown) - before), (vec![0, 10, 0], 10));
    bed.io.inject(1, &eight(1, 2));
    bed.run(2_000);
    assert_eq!((sent(&mut bed), bed.drops(1, DropReason::VlanNotAllowed)), (vec![0; 3], 1));
    bed.assert_empty();
}

#[test]
fn native_vlan_changes_the_tags_of_later_frames() {
    let mut spec = spec(2);
    spec.ports[1].vlan = trunk(&[7], Some(1));
    let mut bed = Bed::learned(&spec);
    let plain = frame(0, 1, 0, 100);
    bed.io.inject(0, &plain);
    bed.run(2_000);
    assert_eq!(bed.data(1), std::slice::from_ref(&plain));
    give(&mut bed, &spec, 1, trunk(&[1], Some(7)));
    bed.io.inject(0, &plain);
    bed.run(2_000);
    let [frame] = &bed.data(1)[..] else { panic!("one frame: its station is still in VLAN 1") };
    assert_eq!((&frame[12..16], &frame[16..]), (&[0x81, 0, 0, 1][..], &plain[12..]));
    bed.assert_empty();
}

#[test]
fn frames_that_wait_for_a_port_leave_as_they_were_received() {
    let spec = spec(3);
    let mut bed = Bed::blocked(&spec);
    bed.fill(20);
    bed.run(5_000);
    give(&mut bed, &spec, 1, trunk(&[1], Some(2)));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(50_000);
    let frames = bed.data(1);
    assert_eq!((frames.len(), frames.iter().all(|frame| frame[12..14] == [8, 0])), (20, true));
    bed.assert_empty();
}

/// One lcore takes the change later than the other: its frames go by the former VLANs, all later ones by the new.
#[test]
fn frame_that_was_received_before_the_change_may_still_leave_and_no_later_one() {
    for layout in [Layout::TWO, Layout::JOINT] {
        let spec = spec_on(layout, 4);
        let mut bed = Bed::learned(&spec);
        let live_config = LiveConfig::between(&spec, &with(&spec, 3, VlanMode::Access(2)), HZ).unwrap();
        // Ports 0 and 2 are of the first lcore, port 3 is of the second, which takes the change first.
        bed.switch.apply_one(1, &live_config);
        bed.io.inject(0, &frame(0, 3, 0, 100));
        bed.io.inject(1, &frame(1, 3, 0, 100));
        bed.run(5_000);
        let from: Vec<u8> = bed.data(3).iter().map(|frame| frame[11]).collect();
        assert_eq!(from, [0], "of the lcore that has not taken it, {layout:?}");
        assert_eq!((bed.data(0).len(), bed.data(2).len()), (1, 1), "the other frame is flooded, {layout:?}");
        bed.switch.apply_one(0, &live_config);
        for round in 0..20 {
            bed.io.inject(0, &frame(0, 3, 0, 100));
            bed.io.inject(1, &frame(1, 3, 0, 100));
            // The station of the port still sends, in its new VLAN.
            bed.io.inject(3, &frame(3, 0, 0, 100));
            bed.run(5_000);
            let sent = sent(&mut bed);
            assert_eq!((sent[3], sent[0]), (0, 1), "round {round}, {layout:?}");
        }
        bed.assert_empty();
    }
}

#[test]
fn stations_of_a_left_vlan_are_removed_in_time_and_others_stay() {
    let mut spec = spec(3);
    spec.ports[1].vlan = trunk(&[7], Some(1));
    let mut bed = Bed::learned(&spec);
    let station = |number: usize| {
        let mut frame = frame(100 + number, 0xffff, 0, 60);
        frame.splice(12..12, [0x81, 0, 0, 7]);
        frame
    };
    for number in 0..100 {
        bed.io.inject(1, &station(number));
        bed.run(1_000);
    }
    let stations = |bed: &Bed| (0..3).map(|port| bed.counters.fdb_stations(port)).sum::<u64>();
    bed.run(10_000);
    assert_eq!(stations(&bed), 103);
    give(&mut bed, &spec, 1, VlanMode::Access(1));
    // An idle poll looks at one bucket of 1024.
    bed.run(1_100_000);
    assert_eq!(stations(&bed), 3);
}

#[test]
fn frames_of_the_switch_itself_find_the_members_of_now() {
    let spec = spec(3);
    let mut bed = Bed::learned(&spec);
    let mut links = bed.switch.attach_exceptions(1522);
    give(&mut bed, &spec, 1, VlanMode::Access(2));
    assert!(links[0].inject(&frame(9, 1, 0, 100), InjectTo::Vlan(1), 1));
    bed.run(2_000);
    assert_eq!(sent(&mut bed), [1, 0, 1], "its station left: the frame goes to all members");
}

#[test]
fn static_station_outside_of_its_vlan_stays_and_gets_nothing() {
    let mut spec = spec(3);
    spec.fdb.entries = vec![StaticEntry { vlan: 1, mac: mac(1), port: 1 }];
    let mut bed = Bed::learned(&spec);
    let spec = give(&mut bed, &spec, 1, VlanMode::Access(2));
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(2_000);
    assert_eq!((sent(&mut bed), bed.drops(0, DropReason::VlanNotAllowed)), (vec![0; 3], 1));
    give(&mut bed, &spec, 1, VlanMode::Access(1));
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.run(2_000);
    assert_eq!(sent(&mut bed), [0, 1, 0]);
}

#[test]
fn blocked_port_stays_blocked_in_its_new_vlan() {
    let mut spec = spec(3);
    spec.ports[2].vlan = VlanMode::Access(2);
    let mut bed = Bed::learned(&spec);
    bed.switch.set_blocked(PortSet::only(1));
    give(&mut bed, &spec, 1, VlanMode::Access(2));
    bed.io.inject(2, &frame(2, 0xffff, 0, 100));
    bed.io.inject(1, &frame(1, 0xffff, 0, 100));
    bed.run(2_000);
    assert_eq!((sent(&mut bed), bed.drops(1, DropReason::LoopBlocked)), (vec![0; 3], 1));
    bed.switch.set_blocked(PortSet::EMPTY);
    bed.io.inject(2, &frame(2, 0xffff, 0, 100));
    bed.run(2_000);
    assert_eq!(sent(&mut bed), [0, 1, 0]);
}

#[test]
fn group_moves_with_all_its_members() {
    let mut spec = spec(4);
    spec.lags = LagsSpec {
        groups: vec![LagSpec {
            name: "bond".to_owned(),
            ports: [1, 2].into_iter().collect(),
            min_links: 1,
            is_negotiated: false,
        }],
        ..LagsSpec::default()
    };
    spec.ports[3].vlan = VlanMode::Access(2);
    let mut bed = Bed::learned(&spec);
    let mut wanted = spec.clone();
    (1..3).for_each(|port| wanted.ports[port].vlan = VlanMode::Access(2));
    bed.switch.apply(&LiveConfig::between(&spec, &wanted, HZ).unwrap());
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.io.inject(3, &frame(3, 0xffff, 0, 100));
    bed.run(2_000);
    let sent = sent(&mut bed);
    assert_eq!((sent[0], sent[1] + sent[2], sent[3]), (0, 1, 0));
}

#[test]
fn routed_port_and_output_of_mirrors_keep_their_vlans() {
    let mut running = spec(3);
    running.ports[0].vlan = VlanMode::Routed(4094);
    running.mirror.outputs = PortSet::only(1);
    let change = |port: usize, vlan: VlanMode| LiveConfig::between(&running, &with(&running, port, vlan), HZ);
    assert!(change(0, VlanMode::Access(1)).is_none() && change(0, VlanMode::Routed(4093)).is_none());
    assert!(change(1, VlanMode::Access(7)).is_none() && change(2, VlanMode::Routed(4093)).is_none());
    assert!(change(2, VlanMode::Access(7)).is_some());
}
