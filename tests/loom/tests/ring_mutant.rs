//! The model of the hand-off ring detects the absence of each of its four memory orderings.

use std::sync::atomic::AtomicUsize;

#[path = "support/check.rs"]
mod check;
#[path = "support/ring_model.rs"]
#[allow(dead_code)]
mod model;
#[path = "support/mutant.rs"]
#[allow(dead_code)]
mod mutant;
#[path = "../../../crates/plan/src/plan/ring.rs"]
#[allow(dead_code)]
mod ring;

use mutant::{Broken, assert_found, break_promise};

mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::Ordering;

    pub(crate) use crate::mutant::AtomicUsize;
}

fn assert_race_found(starts: [fn(); 2]) {
    static FARTHEST: AtomicUsize = AtomicUsize::new(0);
    assert_found(&["Causality violation"], move || model::ring_passes_items_in_order(starts, &FARTHEST));
}

#[test]
fn item_publish_without_release_is_detected() {
    assert_race_found([|| break_promise(Broken::Stores), || ()]);
}

#[test]
fn item_read_without_acquire_is_detected() {
    assert_race_found([|| (), || break_promise(Broken::Loads)]);
}

#[test]
fn slot_return_without_release_is_detected() {
    assert_race_found([|| (), || break_promise(Broken::Stores)]);
}

#[test]
fn slot_reuse_without_acquire_is_detected() {
    assert_race_found([|| break_promise(Broken::Loads), || ()]);
}
