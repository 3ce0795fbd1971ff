//! The models of the handshakes see each ordering missing, and a second writer of a value that has one.

#[path = "support/check.rs"]
mod check;
#[path = "../../../crates/plan/src/plan/fdb_view.rs"]
#[allow(dead_code)]
mod fdb_view;
#[path = "support/forward.rs"]
mod forward;
#[path = "../../../crates/plan/src/plan/mailbox.rs"]
mod mailbox;
#[path = "support/handshake_models.rs"]
mod models;
#[path = "support/mutant.rs"]
#[allow(dead_code)]
mod mutant;
#[path = "../../../crates/lossless/src/mmu/queue/reserves.rs"]
#[allow(dead_code)]
mod reserves;
#[path = "../../../crates/plan/src/plan/ring.rs"]
#[allow(dead_code)]
mod ring;
#[path = "../../../crates/base/src/sets.rs"]
#[allow(dead_code)]
mod sets;
#[path = "../../../crates/plan/src/plan/lcore/shutdown.rs"]
#[allow(dead_code)]
mod shutdown;
#[path = "support/units.rs"]
mod units;

use mutant::{Broken, assert_found, break_promise};

mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::Ordering;

    pub(crate) use crate::mutant::{AtomicU32, AtomicU64, AtomicUsize};
}

const NOTHING: fn() = || ();

/// Failures of a shutdown that is not complete.
const LEFT: [&str; 2] = ["a frame is left in the ring", "an lcore ends with cells charged"];

#[test]
fn shutdown_step_without_release_is_detected() {
    assert_found(&LEFT, || {
        models::lcores_end_with_empty_rings_and_all_releases([|| break_promise(Broken::Exchanges), NOTHING])
    });
}

#[test]
fn shutdown_step_without_acquire_is_detected() {
    assert_found(&LEFT, || {
        models::lcores_end_with_empty_rings_and_all_releases([|| break_promise(Broken::Loads), NOTHING])
    });
}

#[test]
fn settings_sent_without_release_are_detected() {
    assert_found(&["Causality violation"], || {
        models::settings_are_applied_whole_and_in_order([|| break_promise(Broken::Stores), NOTHING]);
    });
}

#[test]
fn settings_read_without_acquire_are_detected() {
    assert_found(&["Causality violation"], || {
        models::settings_are_applied_whole_and_in_order([NOTHING, || break_promise(Broken::Loads)]);
    });
}

#[test]
fn fdb_answer_without_release_is_detected() {
    assert_found(&["from bucket"], || {
        models::fdb_answer_has_the_part_that_was_requested_last([NOTHING, || break_promise(Broken::Stores)]);
    });
}

#[test]
fn fdb_answer_without_acquire_is_detected() {
    assert_found(&["from bucket"], || {
        models::fdb_answer_has_the_part_that_was_requested_last([|| break_promise(Broken::Loads), NOTHING]);
    });
}

#[test]
fn fdb_request_without_release_is_detected() {
    assert_found(&["from bucket"], || {
        models::fdb_answer_has_the_part_that_was_requested_last([|| break_promise(Broken::Exchanges), NOTHING]);
    });
}

#[test]
fn reserves_with_two_writers_are_detected() {
    assert_found(&["a change is lost"], || {
        models::unused_reserves_are_counted_once_by_two_lcores(|[first, _]| [first.clone(), first]);
    });
}
