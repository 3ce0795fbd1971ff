//! Models of `crates/plan/src/plan/ring.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "support/check.rs"]
mod check;
#[path = "support/ring_model.rs"]
mod model;
#[path = "../../../crates/plan/src/plan/ring.rs"]
#[allow(dead_code)]
mod ring;

mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
}

/// More preemptions than a model has operations, so loom tries every interleaving.
const ALL: usize = 30;

const AS_ASKED: [fn(); 2] = [|| (), || ()];

#[test]
fn ring_passes_items_in_order() {
    static FARTHEST: AtomicUsize = AtomicUsize::new(0);
    check::check(ALL, || model::ring_passes_items_in_order(AS_ASKED, &FARTHEST));
    assert!(FARTHEST.load(Ordering::Relaxed) >= 7, "the ring wraps three times in some execution");
}

#[test]
fn items_left_in_a_ring_are_dropped_once() {
    check::check(ALL, || model::items_left_in_a_ring_are_dropped_once(AS_ASKED));
}
