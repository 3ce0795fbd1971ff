use super::*;
use crate::forward::{FdbSpec, LagsSpec};
use crate::mmu::{BufferPlan, GroupProfile, HeadroomPolicy, QueueLimit, Threshold};
use crate::plan::PortSpec;
use crate::plan::spec::QueueSpec;
use crate::qos::{QueueDiscipline, WredProfile};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Alpha, BitRate, Nanos, Ticks};
use crate::wire::MacAddr;

/// Cells of 100 B. Class 3 is lossless: 4 cells of reserve, the threshold `lossless`, 6 of headroom; the lossless pool
/// has 40. Class 0 is lossy: 2 of reserve, alpha 8, alpha 1 at the queue; the lossy pool has 20.
pub(super) fn switch(lossless: Threshold) -> Replay {
    let lossy = GroupProfile {
        lossless: false,
        reserve: Cells(2),
        threshold: Threshold::Dynamic(Alpha::from_exponent(3).unwrap()),
        xon_offset: Cells(0),
        xon_floor: Cells(0),
        headroom: Cells(0),
    };
    let mut groups = [lossy; CLASSES];
    groups[3] = GroupProfile {
        lossless: true,
        reserve: Cells(4),
        threshold: lossless,
        xon_offset: Cells(4),
        xon_floor: Cells(1),
        headroom: Cells(6),
    };
    let port = |index: usize| {
        PortSpec::new(format!("p{index}"), MacAddr::local(0, index as u16), BitRate(10_000_000_000), groups)
    };
    let limit = QueueLimit::from(Threshold::Dynamic(Alpha::from_exponent(0).unwrap()));
    let discipline = QueueDiscipline::Dwrr { weight: 1 };
    let mut queues = [QueueSpec { discipline, wred: None, limit: Some(limit), reserve: Cells(0) }; CLASSES];
    let wred = WredProfile::new(Bytes(200), Bytes(712), "50%".parse().unwrap());
    queues[3] = QueueSpec { discipline, wred, limit: None, reserve: Cells(0) };
    let buffer = BufferPlan {
        cell: Bytes(100),
        total: Cells(200),
        reserves: Cells(54),
        headroom: Cells(18),
        policy: HeadroomPolicy::Independent,
        lossless_shared: Cells(40),
        lossy_shared: Cells(20),
    };
    let fdb = FdbSpec { capacity: 16, ageing: Nanos(1), entries: vec![], seed: 0 };
    Replay::new(&SwitchSpec {
        ports: (0..3).map(port).collect(),
        buffer,
        classes: ClassMap::identity(),
        queues,
        fdb,
        lags: LagsSpec::default(),
        poll_gap: Nanos(1),
        lcores: 1,
        floods_lossless: false,
        hpcc: crate::mmu::HpccRules::NONE,
        abm: None,
        reverie: false,
        telemetry_queues: ClassSet::EMPTY,
        congestion_points: [None; CLASSES],
        routing: None,
        mirror: crate::plan::mirror::MirrorSpec::default(),
    })
}

fn frame(port: usize, class: u8, bytes: u16) -> Frame {
    Frame { port, class, bytes, egress: 2, ecn: Ecn::Ect0 }
}

fn xoff(port: usize, xoff: bool) -> Transition {
    Transition { port, group: 3, xoff }
}

/// Returns outcome, used cells, headroom, and used cells of the pool.
fn short(decision: &Decision) -> (EventResult, u32, u32, u32) {
    let held = decision.held;
    let used = held.reserve.0 + held.port_reserve.0 + held.shared.0;
    (decision.outcome, used, held.headroom.0, decision.pool_used.0)
}

#[test]
fn group_fills_reserve_shared_and_headroom_and_drains_in_reverse() {
    let mut switch = switch(Threshold::Static(Cells(8)));
    let full = EventResult::Dropped(DropReason::HeadroomFull);
    let expected = [
        (EventResult::Reserve, 4, 0, 0),
        (EventResult::Shared, 8, 0, 4),
        (EventResult::Shared, 12, 0, 8),
        (EventResult::Headroom, 12, 4, 8),
        (full, 12, 4, 8),
    ];
    for (index, expected) in expected.into_iter().enumerate() {
        let decision = switch.arrive(frame(0, 3, 301));
        assert_eq!((short(&decision), decision.cells), (expected, Cells(4)));
        assert_eq!(decision.transitions, if index == 3 { vec![xoff(0, true)] } else { vec![] });
    }
    let expected = [(12, 0, 8), (8, 0, 4), (4, 0, 0), (0, 0, 0)];
    for (index, (used, headroom, pool)) in expected.into_iter().enumerate() {
        let decision = switch.depart(2, Some(3)).unwrap();
        assert_eq!(short(&decision), (EventResult::Released, used, headroom, pool));
        // A share of 4 is the limit of 8 less the offset of 4.
        assert_eq!(decision.transitions, if index == 1 { vec![xoff(0, false)] } else { vec![] });
    }
    assert_eq!(switch.depart(2, Some(3)), None);
}

#[test]
fn drop_beyond_the_headroom_sends_xoff_then_xon() {
    let mut switch = switch(Threshold::Static(Cells(8)));
    let decision = switch.arrive(frame(1, 3, 1300));
    assert_eq!(decision.outcome, EventResult::Dropped(DropReason::HeadroomFull));
    assert_eq!(decision.transitions, [xoff(1, true), xoff(1, false)]);
}

#[test]
fn dynamic_threshold_and_xon_follow_the_free_pool() {
    // alpha 1/4 of 40 free cells.
    let mut switch = switch(Threshold::Dynamic(Alpha::from_exponent(-2).unwrap()));
    let first = switch.arrive(frame(0, 3, 1200));
    assert_eq!((short(&first), first.limits.threshold), ((EventResult::Shared, 12, 0, 8), Cells(10)));
    let second = switch.arrive(frame(1, 3, 1000));
    assert_eq!((short(&second), second.limits.threshold), ((EventResult::Shared, 10, 0, 14), Cells(8)));
    // 40 - 14 = 26 free cells give a limit of 6, which port 1 has reached already.
    let third = switch.arrive(Frame { egress: 0, ..frame(1, 3, 100) });
    assert_eq!((short(&third), third.limits.threshold), ((EventResult::Headroom, 10, 1, 14), Cells(6)));
    assert_eq!(third.transitions, [xoff(1, true)]);
    // The headroom is empty, but a share of 6 is above 6 - 4.
    assert_eq!(switch.depart(0, None).unwrap().transitions, []);
    // The frame of port 0 leaves: 34 free cells give a limit of 8, and 6 is still above 8 - 4.
    let departed = switch.depart(2, None).unwrap();
    assert_eq!((departed.frame.port, departed.limits.threshold, departed.transitions), (0, Cells(8), vec![]));
    let departed = switch.depart(2, None).unwrap();
    assert_eq!((departed.frame.port, departed.transitions), (1, vec![xoff(1, false)]));
}

#[test]
fn lossy_frame_over_the_queue_limit_is_dropped_and_charges_no_cells() {
    let mut switch = switch(Threshold::Static(Cells(8)));
    assert_eq!(short(&switch.arrive(frame(0, 0, 800))), (EventResult::Shared, 8, 0, 6));
    // The queue would have 16 of at most 20 - 12 cells.
    let dropped = switch.arrive(frame(1, 0, 800));
    assert_eq!(short(&dropped), (EventResult::Dropped(DropReason::QueueThreshold), 0, 0, 6));
    assert_eq!((dropped.at_queue.bytes, dropped.lossless, dropped.marking), (Bytes(800), false, None));
    assert_eq!((dropped.at_queue.threshold, dropped.went), (Some(Cells(8)), Split::default()));
    // 10 cells of at most 14; then reserved cells, which the queue must accept.
    assert_eq!(short(&switch.arrive(frame(1, 0, 200))), (EventResult::Reserve, 2, 0, 6));
}

#[test]
fn frame_within_its_reserve_is_accepted_by_a_full_queue() {
    let mut switch = switch(Threshold::Static(Cells(8)));
    assert_eq!(short(&switch.arrive(frame(0, 0, 1100))), (EventResult::Shared, 11, 0, 9));
    // 11 cells wait, and the limit is 20 - 9: one more would be too many.
    let dropped = EventResult::Dropped(DropReason::QueueThreshold);
    assert_eq!(short(&switch.arrive(frame(0, 0, 100))), (dropped, 11, 0, 9));
    assert_eq!(short(&switch.arrive(frame(1, 0, 200))), (EventResult::Reserve, 2, 0, 9));
}

#[test]
fn a_departure_without_a_class_is_of_the_oldest_frame_of_the_port() {
    let mut switch = switch(Threshold::Static(Cells(8)));
    for (port, class) in [(0, 5), (1, 3), (0, 3), (1, 0)] {
        switch.arrive(frame(port, class, 60));
    }
    assert_eq!(switch.next(2, Some(3)), Some(frame(1, 3, 60)));
    let mut depart = |class| switch.depart(2, class).map(|decision| (decision.frame.port, decision.frame.class));
    let order = [depart(None), depart(Some(0)), depart(None), depart(None), depart(None)];
    assert_eq!(order, [Some((0, 5)), Some((1, 0)), Some((1, 3)), Some((0, 3)), None]);
}

#[test]
fn replayed_marking_probability_follows_the_depth() {
    let mut switch = switch(Threshold::Static(Cells(8)));
    let mut arrive = || switch.arrive(frame(0, 3, 200)).marking.map(|parts| parts >> 24);
    // Parts of 2^8: 0 up to 200 B, then half of (depth - 200) / 512, and 256 from 712 B on.
    assert_eq!([arrive(), arrive(), arrive(), arrive()], [Some(0), Some(50), Some(100), Some(256)]);
    let mut depart = |time_ns| {
        switch.set_time(Ticks(time_ns));
        switch.depart(2, None).and_then(|decision| decision.marking).map(|parts| parts >> 24)
    };
    let millis = [1, 2, 3, 4].map(|millis| depart(millis * 1_000_000));
    assert_eq!(millis, [Some(256), Some(100), Some(50), Some(0)]);
}

#[test]
fn posted_frames_count_as_depth_until_the_wire_has_sent_them() {
    let mut switch = switch(Threshold::Static(Cells(8)));
    (0..3).for_each(|_| drop(switch.arrive(frame(0, 3, 200))));
    let mut depart = |time_ns| {
        switch.set_time(Ticks(time_ns));
        let decision = switch.depart(2, None).unwrap();
        (decision.posted.0, decision.marking.map(|parts| parts >> 24))
    };
    // A frame of 200 B takes 224 B of the wire.
    assert_eq!(depart(0), (0, Some(100)));
    assert_eq!(depart(0), (224, Some(106)), "624 B");
    assert_eq!(depart(1_000_000_000), (0, Some(0)), "200 B");
}
