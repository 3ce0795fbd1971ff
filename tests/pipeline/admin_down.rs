//! Ports that the operator shuts and takes into use again while frames are exchanged, held and paused.

use holdfast::dataplane::LiveConfig;
use holdfast::forward::{LagSpec, LagsSpec, StaticEntry};
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::route::InjectTo;
use holdfast::sets::ClassSet;
use holdfast::wire::MacAddr;

use crate::harness::*;

/// Shuts `port` or takes it into use. Returns the new spec.
fn enable(bed: &mut Bed, spec: &SwitchSpec, port: usize, is_enabled: bool) -> SwitchSpec {
    let mut wanted = spec.clone();
    wanted.ports[port].live.is_enabled = is_enabled;
    bed.apply(&LiveConfig::between(spec, &wanted, HZ).expect("it may change"));
    wanted
}

fn sent(bed: &mut Bed) -> Vec<usize> {
    (0..bed.counters.ports.len()).map(|port| bed.data(port).len()).collect()
}

#[test]
fn shut_port_drops_what_it_receives_and_is_flooded_to_no_more() {
    let spec = spec(3);
    let mut bed = Bed::learned(&spec);
    let shut = enable(&mut bed, &spec, 1, false);
    for _ in 0..3 {
        bed.io.inject(1, &frame(1, 0, 0, 100));
        bed.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 100));
    }
    // Its station is unknown now.
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.run(5_000);
    assert_eq!((sent(&mut bed), bed.drops(1, DropReason::AdminDown)), (vec![0, 0, 2], 6));
    let received: u64 = bed.counters.ports[1].rx_frames.iter().map(|count| count.get()).sum();
    assert_eq!(received, 7, "they count as received");
    enable(&mut bed, &shut, 1, true);
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.run(5_000);
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.run(5_000);
    assert_eq!((sent(&mut bed), bed.drops(1, DropReason::AdminDown)), (vec![1, 1, 0], 6));
    bed.assert_empty();
}

#[test]
fn frames_that_wait_for_a_shut_port_are_dropped_and_their_cells_come_back() {
    let spec = spec(3);
    let mut bed = Bed::blocked(&spec);
    bed.fill(25);
    bed.run(5_000);
    assert_eq!((bed.switch.held_frames(), bed.switch.held_cells()), (25, 25));
    enable(&mut bed, &spec, 1, false);
    bed.run(5_000);
    assert_eq!(bed.drops(1, DropReason::AdminDown), 25);
    assert_eq!(sent(&mut bed)[1], 0);
    bed.assert_empty();
}

#[test]
fn paused_peer_of_a_port_that_is_shut_gets_xon_and_hears_of_xoff_again_when_it_is_back() {
    let spec = spec(3);
    let mut bed = Bed::blocked(&spec);
    bed.fill(32);
    bed.run(5_000);
    let told = |bed: &mut Bed| {
        let pfcs = bed.pfcs(0);
        pfcs.iter().map(|pfc| pfc.enabled.contains(LOSSLESS) && pfc.quanta[LOSSLESS].0 > 0).collect::<Vec<bool>>()
    };
    assert_eq!(told(&mut bed), [true], "its group is full");
    let shut = enable(&mut bed, &spec, 0, false);
    // A refresh would be due after 1.7 ms; the pause of port 1 ends after 3.4 ms.
    bed.run(2_500_000);
    assert_eq!(told(&mut bed), [false], "one XON, and no refresh");
    enable(&mut bed, &shut, 0, true);
    bed.run(5_000);
    assert_eq!(told(&mut bed), [true], "its frames still wait at port 1");
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(50_000);
    assert_eq!((told(&mut bed), bed.data(1).len()), (vec![false], 32));
    bed.assert_empty();
}

/// The peer may not notice, and counts on its pause.
#[test]
fn pause_that_a_shut_port_has_received_holds_when_it_is_back() {
    let spec = spec(3);
    let mut bed = Bed::learned(&spec);
    let shut = enable(&mut bed, &spec, 1, false);
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(5_000);
    enable(&mut bed, &shut, 1, true);
    bed.io.inject(1, &frame(1, 0xffff, 0, 60));
    bed.run(2_000);
    sent(&mut bed);
    bed.fill(5);
    bed.run(20_000);
    assert_eq!((bed.data(1).len(), bed.switch.held_frames()), (0, 5));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 5);
    bed.assert_empty();
}

#[test]
fn link_that_comes_and_goes_opens_no_shut_port() {
    let spec = spec(3);
    let mut bed = Bed::learned(&spec);
    let shut = enable(&mut bed, &spec, 1, false);
    bed.switch.set_link(1, false);
    bed.switch.set_link(1, true);
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.run(5_000);
    assert_eq!(sent(&mut bed), [0, 0, 1]);
    bed.switch.set_link(1, false);
    enable(&mut bed, &shut, 1, true);
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.run(5_000);
    assert_eq!(sent(&mut bed), [0, 0, 1], "it has no link");
    bed.switch.set_link(1, true);
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.run(5_000);
    assert_eq!(sent(&mut bed), [0, 1, 1]);
}

#[test]
fn port_may_be_shut_from_the_start_and_its_static_station_gets_nothing() {
    let mut spec = spec(3);
    spec.fdb.entries = vec![StaticEntry { vlan: 1, mac: mac(1), port: 1 }];
    spec.ports[1].live.is_enabled = false;
    let mut bed = Bed::new(&spec);
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.run(5_000);
    assert_eq!((sent(&mut bed), bed.drops(0, DropReason::AdminDown)), (vec![0, 0, 1], 1));
    enable(&mut bed, &spec, 1, true);
    bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
    bed.run(5_000);
    assert_eq!(sent(&mut bed), [0, 1, 0]);
}

#[test]
fn shut_port_sends_and_takes_no_frame_of_its_link() {
    let spec = spec(2);
    let mut bed = Bed::learned(&spec);
    let mut links = bed.switch.attach_exceptions(1522);
    enable(&mut bed, &spec, 1, false);
    let mut lldp = [&MacAddr::LLDP.0[..], &mac(1).0, &[0x88, 0xcc]].concat();
    lldp.resize(60, 0);
    bed.io.inject(1, &lldp);
    assert!(links[0].inject(&lldp, InjectTo::Link(1), 0));
    bed.run(5_000);
    assert_eq!((links.iter_mut().filter_map(|link| link.receive()).count(), sent(&mut bed)), (0, vec![0, 0]));
    assert_eq!(bed.drops(1, DropReason::AdminDown), 1);
}

#[test]
fn flows_of_a_shut_member_go_by_the_others_of_its_group() {
    let mut spec = spec(3);
    let ports = [1, 2].into_iter().collect();
    let bond = LagSpec { name: "bond".to_owned(), ports, min_links: 1, is_negotiated: false };
    spec.lags = LagsSpec { groups: vec![bond], ..LagsSpec::default() };
    let mut bed = Bed::learned(&spec);
    let shut = enable(&mut bed, &spec, 1, false);
    let send = |bed: &mut Bed| {
        (10..50).for_each(|from| bed.io.inject(0, &frame(from, 1, 0, 100)));
        bed.run(20_000);
        sent(bed)
    };
    assert_eq!(send(&mut bed), [0, 0, 40], "the head of the group is shut, and its stations stay");
    enable(&mut bed, &shut, 1, true);
    let back = send(&mut bed);
    assert!(back[1] > 0 && back[2] > 0 && back[1] + back[2] == 40, "{back:?}");
    bed.assert_empty();
}
