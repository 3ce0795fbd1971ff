//! Breaks each invariant on purpose: by a change of the switch's state, or by an audit with another specification.

use super::bed::*;
use crate::forward::{FdbSpec, LagsSpec};
use crate::mmu::{BufferPlan, GroupProfile, HeadroomPolicy, QueueLimit, Threshold};
use crate::plan::{DropReason, PortSpec, QueueSpec, SwitchSpec};
use crate::qos::{ClassMap, QueueDiscipline};
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{BitRate, Bytes, Cells, Nanos, Ticks};
use crate::verify::audit::{Auditor, Broken, Check};
use crate::wire::MacAddr;

/// Class 3 is lossless: 2 cells of reserve, 10 of shared, 20 of headroom; XON at 8.
fn spec(policy: HeadroomPolicy) -> SwitchSpec {
    let lossy = GroupProfile {
        lossless: false,
        reserve: Cells(0),
        threshold: Threshold::Static(Cells(10)),
        xon_offset: Cells(0),
        xon_floor: Cells(0),
        headroom: Cells(0),
    };
    let mut groups = [lossy; CLASSES];
    groups[3] = GroupProfile {
        lossless: true,
        reserve: Cells(2),
        xon_offset: Cells(2),
        xon_floor: Cells(1),
        headroom: Cells(20),
        ..lossy
    };
    let port = |index: usize| {
        let mac = MacAddr::local(0, index as u16);
        let mut port = PortSpec::new(format!("p{index}"), mac, BitRate(10_000_000_000), groups);
        port.buffer.policy = policy;
        port.buffer.insurance = Cells(if policy == HeadroomPolicy::Dynamic { 20 } else { 0 });
        port
    };
    let queue =
        QueueSpec { discipline: QueueDiscipline::Dwrr { weight: 1 }, wred: None, limit: None, reserve: Cells(0) };
    SwitchSpec {
        ports: (0..PORTS).map(port).collect(),
        buffer: BufferPlan {
            cell: Bytes(CELL),
            total: Cells(2000),
            reserves: Cells(8),
            headroom: Cells(80),
            policy,
            lossless_shared: Cells(100),
            lossy_shared: Cells(100),
        },
        classes: ClassMap::identity(),
        queues: [queue; CLASSES],
        fdb: FdbSpec { capacity: 64, ageing: Nanos(HZ * 1000), entries: vec![], seed: 0 },
        lags: LagsSpec::default(),
        poll_gap: Nanos(20_000),
        lcores: 1,
        floods_lossless: false,
        hpcc: crate::mmu::HpccRules::NONE,
        abm: None,
        reverie: false,
        telemetry_queues: ClassSet::EMPTY,
        congestion_points: [None; CLASSES],
        routing: None,
        mirror: crate::plan::mirror::MirrorSpec::default(),
    }
}

/// Pauses class 3 at port 1 and sends it 40 frames of one cell each from port 0, more than fit.
fn filled(bed: &mut Bed) -> Check {
    bed.pause(1, ClassSet::only(3), 0xffff);
    bed.poll()?;
    bed.frames(0, 1, 3, CELL as usize, 40);
    bed.poll()?;
    bed.poll()
}

/// Ends the pause; port 1 then sends frame by frame.
fn emptied(bed: &mut Bed) -> Check {
    bed.pause(1, ClassSet::only(3), 0);
    for _ in 0..100 {
        bed.now += 10_000;
        bed.io.set_room(1, Some(1));
        bed.poll()?;
    }
    bed.auditor.check_idle(&bed.fleet)
}

fn invariant(outcome: Check) -> &'static str {
    outcome.map_or_else(|Broken { invariant, .. }| invariant, |()| "none")
}

/// Returns the invariant that breaks if the switch is audited with a specification that `change` has modified.
fn audited_as(policy: HeadroomPolicy, change: impl Fn(&mut SwitchSpec)) -> &'static str {
    let mut bed = Bed::new(&spec(policy));
    let mut other = spec(policy);
    change(&mut other);
    bed.auditor = Auditor::new(&other);
    invariant(filled(&mut bed).and_then(|()| emptied(&mut bed)))
}

/// Returns the invariant that breaks after `change` modified a full switch, within enough polls for every check to run.
fn after(change: impl Fn(&mut Bed)) -> &'static str {
    let mut bed = Bed::new(&spec(HeadroomPolicy::Independent));
    assert_eq!(filled(&mut bed), Ok(()));
    change(&mut bed);
    invariant((0..40).try_for_each(|_| bed.poll()))
}

const POLICIES: [HeadroomPolicy; 3] =
    [HeadroomPolicy::Independent, HeadroomPolicy::SharedPool, HeadroomPolicy::Dynamic];

#[test]
fn audit_with_the_true_spec_finds_no_violation() {
    for policy in POLICIES {
        assert_eq!(audited_as(policy, |_| ()), "none", "{policy:?}");
    }
}

#[test]
fn audit_with_wrong_limits_finds_the_broken_invariant() {
    let group = |change: fn(&mut GroupProfile)| {
        move |spec: &mut SwitchSpec| spec.ports.iter_mut().for_each(|port| change(&mut port.buffer.groups[3]))
    };
    for policy in POLICIES {
        assert_eq!(audited_as(policy, group(|group| group.reserve = Cells(1))), "shared_limit", "{policy:?}");
        assert_eq!(audited_as(policy, |spec| spec.buffer.lossless_shared = Cells(5)), "shared_limit", "{policy:?}");
    }
    for policy in &POLICIES[..2] {
        let xoff = group(|group| group.threshold = Threshold::Static(Cells(90)));
        assert_eq!(audited_as(*policy, xoff), "paused_without_cause", "{policy:?}");
        let lower = group(|group| group.threshold = Threshold::Static(Cells(5)));
        assert_eq!(audited_as(*policy, lower), "share_within_threshold", "{policy:?}");
        assert_eq!(audited_as(*policy, group(|group| group.headroom = Cells(5))), "headroom_limit", "{policy:?}");
    }
    for policy in POLICIES {
        let later = group(|group| (group.xon_offset, group.xon_floor) = (Cells(10), Cells(0)));
        assert_eq!(audited_as(policy, later), "xon_too_early", "{policy:?}");
    }
    let insurance = |spec: &mut SwitchSpec| spec.ports.iter_mut().for_each(|port| port.buffer.insurance = Cells(5));
    assert_eq!(audited_as(HeadroomPolicy::Dynamic, insurance), "headroom_limit");
    assert_eq!(audited_as(HeadroomPolicy::SharedPool, |spec| spec.buffer.headroom = Cells(5)), "headroom_limit");
}

#[test]
fn a_cell_too_many_or_too_few_is_found() {
    assert_eq!(after(|_| ()), "none");
    assert_eq!(after(|bed| bed.fleet[0].ports[0].admitted[3] += 1), "cells_conserved");
    assert_eq!(after(|bed| assert!(bed.fleet[0].buffer.pools.shared[1].take(Cells(1)))), "cells_conserved");
    assert_eq!(after(|bed| bed.fleet[0].ports[0].holding = ClassSet::EMPTY), "cells_conserved");
    assert_eq!(after(|bed| bed.fleet[0].buffer.releases.release(0, 3, Cells(1))), "never_underestimated");
    let lose = |bed: &mut Bed| {
        let part = &mut bed.fleet[0];
        assert!(part.ports[1].queues[3].pop(&mut part.egress.slab).is_some());
    };
    assert_eq!(after(lose), "never_underestimated");
}

#[test]
fn ledger_that_collects_no_releases_is_found() {
    let mut bed = Bed::new(&spec(HeadroomPolicy::Independent));
    assert_eq!(filled(&mut bed), Ok(()));
    bed.pause(1, ClassSet::only(3), 0);
    let deaf = |bed: &mut Bed| {
        bed.fleet[0].buffer.holding = PortSet::EMPTY;
        bed.now += 200;
        bed.poll()
    };
    assert_eq!(invariant((0..5).try_for_each(|_| deaf(&mut bed))), "releases_collected");
}

#[test]
fn corrupted_generator_queue_or_counter_state_is_found() {
    assert_eq!(after(|bed| _ = bed.fleet[0].ports[0].pfc.set_xoff(ClassSet::EMPTY)), "generator_follows");
    assert_eq!(after(|bed| _ = bed.fleet[0].ports[2].pfc.set_xoff(ClassSet::only(3))), "generator_follows");
    assert_eq!(after(|bed| bed.fleet[0].pauses.xoff = PortSet::EMPTY), "generator_follows");
    assert_eq!(after(|bed| bed.fleet[0].ports[1].waiting.insert(0)), "queues_consistent");
    assert_eq!(after(|bed| bed.fleet[0].egress.waiting = PortSet::EMPTY), "never_underestimated");
    let charge = |bed: &mut Bed| bed.fleet[0].telemetry.counters.ports[0].rx_frames[3].set(0);
    let counted = |bed: &mut Bed| (0..40).for_each(|_| assert_eq!(bed.poll(), Ok(())));
    assert_eq!(after(|bed| (counted(bed), charge(bed)).1), "counters_monotonic");
}

/// Sends 40 lossy frames of one cell each from port 0 to port 1, whose driver accepts none.
fn crowded(bed: &mut Bed) -> Check {
    bed.io.set_room(1, Some(0));
    bed.frames(0, 1, 0, CELL as usize, 40);
    bed.poll()?;
    bed.poll()
}

#[test]
fn lossy_drop_within_the_audited_limits_is_found() {
    type Change = fn(&mut SwitchSpec);
    const fn limit(cells: u32) -> Option<QueueLimit> {
        Some(QueueLimit { threshold: Threshold::Static(Cells(cells)), abm: false })
    }
    let cases: [(DropReason, Change, Change); 3] = [
        (DropReason::Threshold, |_| (), |spec| spec.ports[0].buffer.groups[0].threshold = Threshold::Static(Cells(90))),
        (
            DropReason::PoolEmpty,
            |spec| spec.buffer.lossy_shared = Cells(5),
            |spec| spec.ports[0].buffer.reserve[0] = Cells(90),
        ),
        (DropReason::QueueThreshold, |spec| spec.queues[0].limit = limit(5), |spec| spec.queues[0].limit = limit(90)),
    ];
    for (reason, real, other) in cases {
        let mut spec = spec(HeadroomPolicy::Independent);
        real(&mut spec);
        let mut bed = Bed::new(&spec);
        assert_eq!(crowded(&mut bed), Ok(()));
        assert!(
            bed.fleet[0].telemetry.counters.ports.iter().any(|port| port.drops[0][reason as usize].get() > 0),
            "{reason:?}"
        );
        let mut bed = Bed::new(&spec);
        other(&mut spec);
        bed.auditor = Auditor::new(&spec);
        assert_eq!(invariant(crowded(&mut bed)), "dropped_without_cause", "{reason:?}");
    }
}

#[test]
fn a_switch_that_holds_anything_is_not_idle() {
    let mut bed = Bed::new(&spec(HeadroomPolicy::Independent));
    assert_eq!(bed.auditor.check_idle(&bed.fleet), Ok(()));
    assert_eq!(filled(&mut bed), Ok(()));
    assert_eq!(invariant(bed.auditor.check_idle(&bed.fleet)), "idle");
}

#[test]
fn class_view_shows_cells_threshold_and_xoff() {
    let mut bed = Bed::new(&spec(HeadroomPolicy::Independent));
    assert_eq!(filled(&mut bed), Ok(()));
    let part = &bed.fleet[0];
    let (group, queue) = (part.view(0, 3), part.view(1, 3));
    assert_eq!((group.used, group.shared, group.headroom), (Cells(12), Cells(10), Cells(20)));
    assert_eq!((group.threshold, group.is_xoff, group.queue_frames), (Cells(10), true, 0));
    assert_eq!((queue.queue_frames, queue.queue_cells, queue.queue_bytes), (32, Cells(32), Bytes(32 * CELL)));
    assert_eq!((queue.used, queue.is_xoff), (Cells(0), false));
    assert_eq!(crate::dataplane::Pipeline::pool_used(&bed.fleet), [Cells(0), Cells(10)]);
    let state = (part.generated_xoff(0), part.stopped_queues(1, Ticks(bed.now)), part.ignoring(1));
    assert_eq!(state, (ClassSet::only(3), ClassSet::only(3), ClassSet::EMPTY));
    // 65535 quanta at 10G have passed.
    assert_eq!(part.stopped_queues(1, Ticks(bed.now + 3_400_000)), ClassSet::EMPTY);
    assert_eq!(emptied(&mut bed), Ok(()));
    assert_eq!(bed.fleet[0].view(0, 3).used, Cells(0));
}

#[test]
fn lossless_frames_are_flooded_only_if_that_is_asked_for() {
    for floods in [false, true] {
        let mut bed = Bed::new(&SwitchSpec { floods_lossless: floods, ..spec(HeadroomPolicy::Independent) });
        bed.frames(0, PORTS, 3, CELL as usize, 1);
        assert_eq!((bed.poll(), bed.poll()), (Ok(()), Ok(())));
        let sent = (0..PORTS).map(|port| bed.io.sent_all(port).len()).sum::<usize>();
        assert_eq!(sent, if floods { PORTS - 1 } else { 0 });
    }
}
