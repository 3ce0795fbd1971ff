//! The model of `crates/plan/src/plan/history_ring.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "support/check.rs"]
mod check;
#[path = "../../../crates/plan/src/plan/history_ring.rs"]
mod history_ring;
#[path = "support/history_ring_model.rs"]
mod model;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[test]
fn history_ring_reader_sees_whole_records() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    check::check(4, || model::history_ring_reader_sees_whole_records([|| (), || ()], &SEEN));
    assert_eq!(SEEN.load(Ordering::Relaxed), 2, "the reader sees a record each time in some execution");
}
