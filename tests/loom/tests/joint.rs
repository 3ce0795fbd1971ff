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
fn three_lcores_on_a_scarce_wire() {
    check::check(3, || model::three_lcores_on_a_scarce_wire(|| ()));
}

#[test]
fn two_lcores_that_poll_at_different_instants() {
    check::check(4, || model::two_lcores_that_poll_at_different_instants(|| ()));
}

#[test]
fn two_lcores_that_want_more_than_the_room() {
    check::check(5, || model::two_lcores_that_want_more_than_the_room(|| (), model::LONGEST));
}

#[test]
fn pfc_frame_beside_takes() {
    check::check(3, || model::pfc_frame_beside_takes([|| (), || ()]));
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
fn withdrawn_depths_are_forgotten() {
    check::check(4, || model::withdrawn_depths_are_forgotten(told::Heard::keep));
}

#[test]
fn ended_dropping_is_forgotten() {
    check::check(4, || model::ended_dropping_is_forgotten(told::Heard::keep));
}
