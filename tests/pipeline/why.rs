//! The reason for a drop or for an XOFF: the counters at that instant, and the sentence made of them.

use std::time::Duration;

use holdfast::api::model::{Look, Why};
use holdfast::mmu::{QueueLimit, Threshold};
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::stats::{Snapshot, SwitchView};
use holdfast::units::Cells;

use crate::harness::*;

/// Returns the explanation for class `class` at port `port`.
fn why(bed: &Bed, spec: &SwitchSpec, port: usize, class: usize) -> Why {
    let switch_view = SwitchView::new(spec.clone(), bed.counters.clone());
    let snapshot = Snapshot::take(&switch_view, Duration::from_secs(1));
    let look = Look { switch_view: &switch_view, snapshot: &snapshot };
    let told = Why::all(&look);
    let of = |why: &&Why| why.port == format!("p{port}") && why.class == Some(class as u8);
    told.iter().find(of).unwrap_or_else(|| panic!("{told:#?}")).clone()
}

fn texts(why: &Why) -> Vec<&str> {
    why.decisions.iter().map(|told| told.text.as_str()).collect()
}

#[test]
fn lossless_drop_explanation_states_headroom_and_held_bytes() {
    let spec = spec(2);
    let mut bed = Bed::blocked(&spec);
    bed.fill(30);
    bed.run(10_000);
    bed.fill(1);
    bed.run(10_000);
    let stopped = why(&bed, &spec, 0, LOSSLESS);
    assert_eq!(
        texts(&stopped),
        ["p0 paused its peer for class 3: the group held 2.03KiB of 2.03KiB reserve, 4.06KiB shared with a limit of \
          4.06KiB (fixed) and 208B of 1.01KiB headroom"]
    );
    assert_eq!((stopped.reasons.len(), stopped.xoffs, stopped.lossless), (0, 1, true));
    bed.fill(40);
    bed.run(10_000);
    let why = why(&bed, &spec, 0, LOSSLESS);
    assert_eq!(why.reasons.len(), 1);
    let reason = &why.reasons[0];
    assert_eq!((reason.reason.as_str(), reason.frames), ("headroom_full", 36));
    assert!(reason.remedy.contains("obeys PFC"), "{}", reason.remedy);
    // Two polls received the frames: 32 and 8.
    let dropped: Vec<_> = why.decisions.iter().filter(|told| told.what == "dropped").collect();
    assert_eq!(dropped.len(), 2, "one a poll");
    assert_eq!(
        dropped[0].text,
        "a frame of 208 bytes (1 cell) in class 3 from p0 to p1 was dropped with 0B of headroom left: the group held 2.03KiB of \
         2.03KiB reserve, 4.06KiB shared with a limit of 4.06KiB (fixed) and 1.01KiB of 1.01KiB headroom"
    );
    assert!(dropped[0].age_ns < 20_000, "{}", dropped[0].age_ns);
}

#[test]
fn a_lossy_drop_names_the_queue_that_was_too_deep() {
    let mut spec = spec(2);
    spec.queues[0].limit = Some(QueueLimit::from(Threshold::Static(Cells(7))));
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    for _ in 0..8 {
        bed.io.inject(0, &frame(0, 1, 0, CELL));
    }
    bed.run(10_000);
    assert_eq!(bed.drops(1, DropReason::QueueThreshold), 1);
    let why = why(&bed, &spec, 1, 0);
    assert_eq!(
        texts(&why),
        [
            "a frame of 208 bytes (1 cell) in class 0 from p0 to p1 would have filled its queue at p1 to 1.62KiB, above the limit of \
          1.42KiB: fixed"
        ]
    );
    assert_eq!(why.decisions[0].reason, "queue_threshold");
}

#[test]
fn backlog_xoff_explanation_states_the_backlog() {
    let mut spec = spec(2);
    spec.ports[0].backlog_mark = Some(5);
    let mut bed = Bed::blocked(&spec);
    for _ in 0..60 {
        bed.io.inject(0, &frame(0, 1, 0, 60));
    }
    bed.poll();
    let why = why(&bed, &spec, 0, LOSSLESS);
    assert_eq!(
        texts(&why),
        [
            "p0 paused its peer for class 3, because a poll left 28 frames in the receive ring (XOFF from 5 on): the core \
          did not keep up, and the port's own backlog pauses class 3"
        ]
    );
}

#[test]
fn drop_without_class_is_explained_by_its_reason_only() {
    let spec = spec(2);
    let mut bed = Bed::learned(&spec);
    bed.io.inject(0, &[0; 5]);
    bed.run(10_000);
    let switch_view = SwitchView::new(spec.clone(), bed.counters.clone());
    let snapshot = Snapshot::take(&switch_view, Duration::from_secs(1));
    let told = Why::all(&Look { switch_view: &switch_view, snapshot: &snapshot });
    let truncated = told.iter().find(|why| why.class.is_none()).expect("a row");
    assert_eq!((truncated.reasons[0].reason.as_str(), truncated.decisions.len()), ("truncated", 0));
}
