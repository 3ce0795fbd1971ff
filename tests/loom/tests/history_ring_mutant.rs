//! The model of the history ring detects the absence of each memory ordering.

use std::sync::atomic::AtomicUsize;

#[path = "support/check.rs"]
mod check;
#[path = "../../../crates/plan/src/plan/history_ring.rs"]
#[allow(dead_code)]
mod history_ring;
#[path = "support/history_ring_model.rs"]
mod model;
#[path = "support/mutant.rs"]
#[allow(dead_code)]
mod mutant;

use mutant::{Broken, assert_found, break_promise};

mod sync {
    pub(crate) use loom::sync::atomic::Ordering;

    pub(crate) use crate::mutant::AtomicU64;
}

fn assert_half_found(starts: [fn(); 2]) {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    assert_found(&["a record is half another", "a record is older"], move || {
        model::history_ring_reader_sees_whole_records(starts, &SEEN)
    });
}

#[test]
fn record_write_without_release_is_detected() {
    assert_half_found([|| break_promise(Broken::Stores), || ()]);
}

#[test]
fn record_read_without_acquire_is_detected() {
    assert_half_found([|| (), || break_promise(Broken::Loads)]);
}
