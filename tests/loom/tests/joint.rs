//! Models of `crates/lossless/src/qos/joint_wire.rs` and `crates/dataplane/src/dataplane/egress/joint/told.rs`.

#[path = "support/check.rs"]
mod check;
#[path = "../../../crates/lossless/src/qos/joint_wire.rs"]
mod joint_wire;
#[path = "support/joint_model.rs"]
mod model;
#[path = "../../../crates/dataplane/src/dataplane/egress/joint/told.rs"]
#[allow(dead_code)]
mod told;
#[path = "support/units.rs"]
mod units;
#[path = "../../../crates/base/src/sets.rs"]
#[allow(dead_code)]
mod whole_sets;

mod sets {
    pub(crate) use crate::whole_sets::{ClassSet, PortSet};

    pub(crate) const CLASSES: usize = 3;
}

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[test]
fn joint_wire_never_grants_three_lcores_more_than_it_has() {
    check::check(3, || model::joint_wire_never_grants_three_lcores_more_than_it_has(|| ()));
}

#[test]
fn joint_wire_loses_no_time_after_the_later_poll() {
    check::check(4, || model::joint_wire_loses_no_time_after_the_later_poll(|| ()));
}

#[test]
fn frame_does_not_start_while_another_lcore_holds_the_end_of_the_wire() {
    check::check(5, || {
        model::frame_does_not_start_while_another_lcore_holds_the_end_of_the_wire(|| (), model::LONGEST)
    });
}

#[test]
fn joint_wire_is_charged_for_pfc_frames_beside_takes() {
    check::check(3, || model::joint_wire_is_charged_for_pfc_frames_beside_takes([|| (), || ()]));
}

#[test]
fn depths_are_seen_with_their_ports() {
    check::check(3, || model::depths_are_seen_with_their_ports([|| (), || ()]));
}

#[test]
fn depths_are_whole_and_in_order() {
    check::check(4, || model::depths_are_whole_and_in_order([|| (), || ()]));
}

#[test]
fn dropping_queues_are_seen_with_their_ports() {
    check::check(3, || model::dropping_queues_are_seen_with_their_ports([|| (), || ()]));
}

#[test]
fn withdrawn_depths_of_other_lcores_are_forgotten() {
    check::check(4, || model::withdrawn_depths_of_other_lcores_are_forgotten(told::Heard::keep));
}

#[test]
fn ended_dropping_of_another_owner_is_forgotten() {
    check::check(4, || model::ended_dropping_of_another_owner_is_forgotten(told::Heard::keep));
}
