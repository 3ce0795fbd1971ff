//! The models of joint ports detect time that is not taken atomically, and the absence of either memory ordering. They
//! also detect a last frame without ticks for its end, and words that are not read again.

#[path = "support/check.rs"]
mod check;
#[path = "../../../crates/lossless/src/qos/joint_wire.rs"]
mod joint_wire;
#[path = "support/joint_model.rs"]
mod model;
#[path = "support/mutant.rs"]
#[allow(dead_code)]
mod mutant;
#[path = "../../../crates/dataplane/src/dataplane/egress/joint/told.rs"]
#[allow(dead_code)]
mod told;
#[path = "support/units.rs"]
mod units;
#[path = "../../../crates/base/src/sets.rs"]
#[allow(dead_code)]
mod whole_sets;

use mutant::{Broken, assert_found, break_promise};

mod sets {
    pub(crate) use crate::whole_sets::{ClassSet, PortSet};

    pub(crate) const CLASSES: usize = 3;
}

mod sync {
    pub(crate) use loom::sync::atomic::Ordering;

    pub(crate) use crate::mutant::AtomicU64;
}

/// The first failure depends on the execution that loom tries first.
const WRONG_TIME: [&str; 2] = ["ticks are held of", "the time of the wire is wrong"];

const WITHOUT_RELEASE: [fn(); 2] = [|| break_promise(Broken::Stores), || ()];
const WITHOUT_ACQUIRE: [fn(); 2] = [|| (), || break_promise(Broken::Loads)];

/// Failures of a set of ports that does not order the words of its ports.
const UNORDERED_DEPTHS: [&str; 3] =
    ["a port is seen before its depth", "a port is gone before its depth", "an lcore's depth is missing"];
const UNORDERED_QUEUES: [&str; 2] = ["a port is seen before its queues", "a port is gone before its queues"];

#[test]
fn non_atomic_take_of_scarce_time_is_detected() {
    assert_found(&WRONG_TIME, || {
        model::joint_wire_never_grants_three_lcores_more_than_it_has(|| break_promise(Broken::Atomicity))
    });
}

#[test]
fn non_atomic_take_at_different_instants_is_detected() {
    assert_found(&WRONG_TIME, || {
        model::joint_wire_loses_no_time_after_the_later_poll(|| break_promise(Broken::Atomicity));
    });
}

#[test]
fn non_atomic_take_of_more_than_the_room_is_detected() {
    assert_found(&WRONG_TIME, || {
        model::frame_does_not_start_while_another_lcore_holds_the_end_of_the_wire(
            || break_promise(Broken::Atomicity),
            model::LONGEST,
        );
    });
}

#[test]
fn last_frame_without_ticks_for_its_end_is_detected() {
    assert_found(&["a frame starts beside the last one"], || {
        model::frame_does_not_start_while_another_lcore_holds_the_end_of_the_wire(|| (), 0);
    });
}

#[test]
fn non_atomic_take_beside_a_pfc_frame_is_detected() {
    assert_found(&WRONG_TIME, || {
        model::joint_wire_is_charged_for_pfc_frames_beside_takes([|| break_promise(Broken::Atomicity), || ()])
    });
}

#[test]
fn standing_ports_told_without_release_are_detected() {
    assert_found(&UNORDERED_DEPTHS, || model::depths_are_seen_with_their_ports(WITHOUT_RELEASE));
}

#[test]
fn standing_ports_read_without_acquire_are_detected() {
    assert_found(&UNORDERED_DEPTHS, || model::depths_are_seen_with_their_ports(WITHOUT_ACQUIRE));
}

#[test]
fn standing_port_of_two_polls_told_without_release_is_detected() {
    assert_found(&UNORDERED_DEPTHS, || model::depths_are_whole_and_in_order(WITHOUT_RELEASE));
}

#[test]
fn standing_port_of_two_polls_read_without_acquire_is_detected() {
    assert_found(&UNORDERED_DEPTHS, || model::depths_are_whole_and_in_order(WITHOUT_ACQUIRE));
}

#[test]
fn dropping_ports_told_without_release_are_detected() {
    assert_found(&UNORDERED_QUEUES, || model::dropping_queues_are_seen_with_their_ports(WITHOUT_RELEASE));
}

#[test]
fn dropping_ports_read_without_acquire_are_detected() {
    assert_found(&UNORDERED_QUEUES, || model::dropping_queues_are_seen_with_their_ports(WITHOUT_ACQUIRE));
}

#[test]
fn port_whose_newer_depth_is_not_kept_is_detected() {
    assert_found(&["withdrawn words are remembered"], || {
        model::withdrawn_depths_of_other_lcores_are_forgotten(|_, _, _| ())
    });
}

#[test]
fn port_whose_newer_queues_are_not_kept_is_detected() {
    assert_found(&["withdrawn words are remembered"], || {
        model::ended_dropping_of_another_owner_is_forgotten(|_, _, _| ())
    });
}
