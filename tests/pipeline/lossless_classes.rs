//! Classes that become lossless or lossy while frames of them are held.

use holdfast::dataplane::LiveConfig;
use holdfast::mmu::AbmSpec;
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::qos::CongestionPointSpec;
use holdfast::sets::{ClassSet, PortSet};
use holdfast::units::{Bytes, Cells};

use crate::harness::*;

/// A class that changes, and a DSCP that maps to it.
const OTHER: usize = 4;
const OTHER_DSCP: u8 = 32;

/// `spec` with class 4 lossless, like class 3.
fn with_two(spec: &SwitchSpec) -> SwitchSpec {
    let mut wanted = spec.clone();
    for port in &mut wanted.ports {
        port.buffer.groups[OTHER] = lossless_group();
    }
    wanted.queues[OTHER].limit = None;
    wanted
}

fn between(from: &SwitchSpec, to: &SwitchSpec) -> LiveConfig {
    LiveConfig::between(from, to, HZ).expect("only what may change has changed")
}

/// Frames of a cell from port `from` to port 2, whose device takes none.
fn fill(bed: &mut Bed, from: usize, dscp: u8, frames: usize) {
    for _ in 0..frames {
        bed.io.inject(from, &frame(from, 2, dscp, CELL));
    }
    bed.run(20_000);
}

/// The priorities that `port` has told its peer, and whether with XOFF.
fn told(bed: &mut Bed, port: usize, priority: usize) -> Vec<bool> {
    let pfcs = bed.pfcs(port);
    pfcs.iter().filter(|pfc| pfc.enabled.contains(priority)).map(|pfc| pfc.quanta[priority].0 > 0).collect()
}

/// A switch of three ports, plain and with each mechanism that measures the queues of a class.
fn measured() -> [SwitchSpec; 4] {
    let mut specs = [0; 4].map(|_| spec(3));
    specs[1].abm = Some(AbmSpec::USUAL);
    if let Some(limit) = &mut specs[1].queues[OTHER].limit {
        limit.abm = true;
    }
    specs[2].telemetry_queues = ClassSet::only(OTHER);
    // A set point that no queue reaches.
    let point = CongestionPointSpec { set_point: Bytes(1 << 20), weight: 2, sample: Bytes(9_000) };
    specs[3].congestion_points[OTHER] = Some(point);
    specs
}

#[test]
fn class_becomes_lossless_with_its_headroom_beside_a_congested_one() {
    measured().iter().for_each(become_lossless);
}

fn become_lossless(before: &SwitchSpec) {
    let after = with_two(before);
    let mut bed = Bed::learned(before);
    bed.io.set_room(2, Some(0));
    fill(&mut bed, 0, OTHER_DSCP, 45);
    fill(&mut bed, 1, LOSSLESS_DSCP, 33);
    let mut messages = bed.messages(&between(before, &after));
    assert_eq!(bed.step(&mut messages, true), PortSet::EMPTY, "no part shrinks");
    fill(&mut bed, 0, OTHER_DSCP, 5);
    assert_eq!(told(&mut bed, 0, OTHER), [false; 0], "lossy until all ports have given up cells");
    assert_eq!(bed.step(&mut messages, true), PortSet::EMPTY);
    bed.run(10_000);
    assert_eq!(told(&mut bed, 0, OTHER), [false], "its state is announced");
    fill(&mut bed, 0, OTHER_DSCP, 10);
    assert_eq!(told(&mut bed, 0, OTHER), [false; 0], "its reserve had room");
    fill(&mut bed, 0, OTHER_DSCP, 5);
    assert_eq!(told(&mut bed, 0, OTHER), [true]);
    let counters = &bed.counters.ports[0];
    assert_eq!((counters.group_headroom_cells[OTHER].get(), counters.group_used_cells[OTHER].get()), (5, 60));
    bed.pause(2, ClassSet::only(OTHER), 0xffff);
    bed.run(5_000);
    bed.io.set_room(2, None);
    bed.run(100_000);
    assert_eq!(bed.data(2).len(), 33, "class 4 obeys the pause now");
    bed.pause(2, ClassSet::only(OTHER), 0);
    bed.run(100_000);
    assert_eq!(bed.data(2).len(), 65);
    assert_eq!(told(&mut bed, 0, OTHER), [false]);
    assert_eq!([0, 1].map(|port| bed.drops(port, DropReason::HeadroomFull)), [0, 0]);
    bed.assert_empty();
}

#[test]
fn class_becomes_lossy_at_once_and_its_peer_goes_on() {
    measured().iter().for_each(become_lossy);
}

fn become_lossy(after: &SwitchSpec) {
    let before = with_two(after);
    let mut bed = Bed::learned(&before);
    bed.io.set_room(2, Some(0));
    fill(&mut bed, 0, OTHER_DSCP, 33);
    fill(&mut bed, 1, LOSSLESS_DSCP, 33);
    assert_eq!(told(&mut bed, 0, OTHER).last(), Some(&true));
    bed.pause(2, ClassSet::only(OTHER), 0xffff);
    let mut messages = bed.messages(&between(&before, after));
    assert_eq!(bed.step(&mut messages, true), PortSet::EMPTY, "the lossy pool has room for its cells");
    fill(&mut bed, 0, OTHER_DSCP, 50);
    assert!(!told(&mut bed, 0, OTHER).contains(&true), "XON, and no XOFF any more");
    let counters = &bed.counters.ports[0];
    assert_eq!((counters.group_headroom_cells[OTHER].get(), counters.group_used_cells[OTHER].get()), (0, 83));
    bed.io.set_room(2, None);
    bed.run(200_000);
    assert_eq!(bed.data(2).len(), 33 + 83, "the pause is forgotten");
    assert_eq!(bed.step(&mut messages, true), PortSet::EMPTY);
    assert_eq!([0, 1].map(|port| bed.drops(port, DropReason::HeadroomFull)), [0, 0]);
    bed.assert_empty();
}

/// Its frames have no room among the lossy ones.
#[test]
fn class_that_waits_to_become_lossy_loses_nothing_and_can_stay_lossless() {
    let mut after = spec(3);
    after.buffer.lossy_shared = Cells(10);
    let before = with_two(&after);
    let mut bed = Bed::learned(&before);
    bed.io.set_room(2, Some(0));
    fill(&mut bed, 0, OTHER_DSCP, 33);
    let mut messages = bed.messages(&between(&before, &after));
    assert_eq!(bed.step(&mut messages, false), PortSet::only(0), "23 of 10 cells");
    bed.apply(&between(&after, &before));
    fill(&mut bed, 0, OTHER_DSCP, 2);
    assert_eq!(bed.counters.ports[0].group_headroom_cells[OTHER].get(), 5);
    let mut messages = bed.messages(&between(&before, &after));
    assert_eq!(bed.step(&mut messages, false), PortSet::only(0));
    bed.io.set_room(2, None);
    bed.run(50_000);
    assert_eq!(bed.data(2).len(), 35);
    assert_eq!(bed.step(&mut messages, true), PortSet::EMPTY);
    assert_eq!(bed.step(&mut messages, true), PortSet::EMPTY);
    assert_eq!(bed.drops(0, DropReason::HeadroomFull), 0);
    bed.pause(2, ClassSet::only(OTHER), 0xffff);
    fill(&mut bed, 0, OTHER_DSCP, 5);
    bed.run(20_000);
    assert_eq!(bed.data(2).len(), 5, "a lossy class obeys no pause");
    bed.assert_empty();
}

#[test]
fn classes_stay_where_ports_or_queues_depend_on_them() {
    let spec = spec(3);
    let obstacles: [fn(&mut SwitchSpec); 3] = [
        |spec| spec.ports[1].pfc = holdfast::pfc::PfcMode::Queue,
        |spec| spec.ports[1].rx_queues = 2,
        |spec| spec.queues[OTHER].reserve = Cells(1),
    ];
    for (index, obstacle) in obstacles.iter().enumerate() {
        let mut before = spec.clone();
        obstacle(&mut before);
        let mut after = with_two(&before);
        after.queues[OTHER].reserve = Cells(0);
        assert!(LiveConfig::between(&before, &after, HZ).is_none(), "obstacle {index}");
    }
}
