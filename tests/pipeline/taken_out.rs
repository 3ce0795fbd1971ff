//! Ports that are taken out and put in again with another rate, MTU, address or PFC mode.

use holdfast::dataplane::LiveConfig;
use holdfast::pfc::PfcMode;
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::sets::{ClassSet, PortSet};
use holdfast::units::{BitRate, Cells, Nanos};
use holdfast::wire::MacAddr;

use crate::harness::*;

/// Another rate, MTU, address and PFC mode of port 1.
fn replaced(spec: &SwitchSpec) -> SwitchSpec {
    let mut wanted = spec.clone();
    let port = &mut wanted.ports[1];
    (port.rate, port.mtu, port.mac) = (BitRate(1_000_000_000), 9000, MacAddr::local(7, 7));
    port.pfc = PfcMode::Asymmetric;
    wanted
}

fn shut(spec: &SwitchSpec) -> SwitchSpec {
    let mut wanted = spec.clone();
    wanted.ports[1].live.is_enabled = false;
    wanted
}

fn between(from: &SwitchSpec, to: &SwitchSpec) -> Option<LiveConfig> {
    LiveConfig::between(from, to, HZ)
}

/// A switch whose ports have one owner each.
fn owned(ports: usize) -> SwitchSpec {
    let mut spec = spec(ports);
    spec.ports.iter_mut().for_each(|port| port.tx_queues = 1);
    spec
}

/// Lossless frames from port 0 to port 2, and what port 2 has sent of them.
fn exchange(bed: &mut Bed, frames: usize) -> usize {
    for _ in 0..frames {
        bed.io.inject(0, &frame(0, 2, LOSSLESS_DSCP, 1000));
        bed.run(2_000);
    }
    bed.run(10_000);
    bed.data(2).len()
}

#[test]
fn others_lose_nothing_while_a_port_is_taken_out_and_put_in_with_other_settings() {
    let before = owned(3);
    let after = replaced(&before);
    let mut bed = Bed::learned(&before);
    for _ in 0..20 {
        bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 1000));
    }
    bed.run(2_000);
    let left = shut(&before);
    bed.apply(&between(&before, &left).expect("shut").leaving(PortSet::only(1)));
    assert_eq!(exchange(&mut bed, 50), 50);
    bed.apply(&between(&left, &shut(&after)).expect("it is out"));
    assert_eq!(exchange(&mut bed, 50), 50);
    bed.apply(&between(&shut(&after), &after).expect("in use again"));
    bed.run(10_000);
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.run(10_000);
    assert_eq!(exchange(&mut bed, 50), 50);
    assert_eq!(bed.drops(0, DropReason::Threshold), 0);
    // A frame of 1.2 kB takes ten microseconds at the new rate.
    bed.data(1);
    for _ in 0..10 {
        bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 1226));
    }
    bed.run(52_000);
    let sent = bed.data(1).len();
    assert!((4..=8).contains(&sent), "{sent} in 50 us at 1G, with the slack of a poll");
    bed.run(100_000);
    bed.assert_empty();
}

#[test]
fn port_is_not_left_while_a_frame_from_it_waits_at_a_paused_one() {
    let spec = owned(3);
    let mut bed = Bed::learned(&spec);
    bed.pause(2, ClassSet::only(LOSSLESS), 0xffff);
    bed.io.inject(1, &frame(1, 2, LOSSLESS_DSCP, 1000));
    bed.run(5_000);
    let mut leave = bed.messages(&between(&spec, &shut(&spec)).expect("shut").leaving(PortSet::only(1)));
    assert_eq!(bed.step(&mut leave, false), PortSet::only(1));
    bed.run(5_000);
    assert_eq!(bed.step(&mut leave, false), PortSet::only(1), "the frame still waits");
    bed.pause(2, ClassSet::only(LOSSLESS), 0);
    bed.run(20_000);
    assert_eq!(bed.step(&mut leave, false), PortSet::EMPTY);
    bed.assert_empty();
}

/// The peer remembers that it has paused the port, whose link stays up.
#[test]
fn pause_of_the_peer_lasts_while_its_port_takes_other_settings() {
    let before = owned(2);
    let mut after = before.clone();
    after.ports[1].mac = MacAddr::local(7, 7);
    let mut bed = Bed::blocked(&before);
    bed.run(10_000);
    bed.apply(&between(&before, &shut(&before)).expect("shut").leaving(PortSet::only(1)));
    bed.run(10_000);
    let paused = bed.counters.ports[1].pfc_rx_paused_ns[LOSSLESS].get();
    bed.apply(&between(&shut(&before), &shut(&after)).expect("it is out"));
    bed.apply(&between(&shut(&after), &after).expect("in use again"));
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.run(10_000);
    bed.fill(3);
    bed.run(50_000);
    assert_eq!(bed.data(1).len(), 0, "still paused");
    assert!(bed.counters.ports[1].pfc_rx_paused_ns[LOSSLESS].get() >= paused, "time does not run back");
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(50_000);
    assert_eq!(bed.data(1).len(), 3);
    bed.assert_empty();
}

#[test]
fn port_without_pfc_has_none_after_it_and_one_with_pfc_announces_it() {
    let mut without = owned(2);
    without.ports[1].pfc = PfcMode::Off;
    let with = owned(2);
    let mut bed = Bed::learned(&without);
    bed.run(10_000);
    assert_eq!(bed.pfcs(1), []);
    bed.apply(&between(&without, &shut(&without)).expect("shut"));
    bed.apply(&between(&shut(&without), &shut(&with)).expect("it is out"));
    bed.apply(&between(&shut(&with), &with).expect("in use again"));
    bed.run(10_000);
    let announced: Vec<_> = bed.pfcs(1).iter().map(|pfc| pfc.enabled).collect();
    assert_eq!(announced, [ClassSet::only(LOSSLESS)]);
}

/// An absent port has no cells. It gets its headroom in the step in which all parts grow.
#[test]
fn absent_port_gets_its_parts_of_the_buffer_when_it_has_a_device() {
    let with = owned(3);
    let mut without = with.clone();
    without.ports[1].is_absent = true;
    for group in &mut without.ports[1].buffer.groups {
        (group.reserve, group.headroom) = (Cells(0), Cells(0));
    }
    let mut bed = Bed::learned(&without);
    bed.io.inject(0, &frame(0, 1, 0, 100));
    bed.run(5_000);
    assert_eq!(bed.data(1).len(), 0, "it forwards nothing");
    let mut enter = bed.messages(&between(&without, &shut(&with)).expect("absent ports are out"));
    assert_eq!(bed.step(&mut enter, true), PortSet::EMPTY);
    assert_eq!(bed.step(&mut enter, true), PortSet::EMPTY);
    bed.apply(&between(&shut(&with), &with).expect("in use"));
    bed.pause(2, ClassSet::only(LOSSLESS), 0xffff);
    bed.run(5_000);
    for _ in 0..40 {
        bed.io.inject(1, &frame(1, 2, LOSSLESS_DSCP, CELL));
    }
    bed.run(10_000);
    assert_eq!(bed.switch.held_cells(), 35, "10 of reserve, 20 shared and 5 of headroom");
}

/// Each case: a setting that needs a port that is out, and what keeps the port in.
#[test]
fn change_is_refused_at_a_port_that_is_in_use_or_cannot_leave() {
    let spec = owned(3);
    let after = replaced(&spec);
    assert!(between(&spec, &after).is_none() && between(&shut(&spec), &after).is_none());
    assert!(between(&spec, &shut(&after)).is_none() && between(&shut(&spec), &shut(&after)).is_some());
    let obstacles: [fn(&mut SwitchSpec); 4] = [
        |spec| spec.ports[1].pfc = PfcMode::Queue,
        |spec| spec.ports[1].rx_queues = 2,
        |spec| (spec.lcores, spec.ports[1].tx_queues) = (2, 2),
        |spec| spec.telemetry_queues = ClassSet::only(0),
    ];
    for (index, obstacle) in obstacles.iter().enumerate() {
        let [mut before, mut after] = [shut(&spec), shut(&spec)];
        obstacle(&mut before);
        obstacle(&mut after);
        after.ports[1].rate.0 += 1;
        assert!(before.obstacle(1).is_some() && between(&before, &after).is_none(), "obstacle {index}");
    }
    let mut slow = spec.clone();
    slow.ports[0].backlog_mark = Some(7);
    slow.poll_gap = Nanos(2000);
    assert!(between(&shut(&spec), &shut(&slow)).is_none(), "a setting of the switch");
}
