//! The pool models detect a count that is not changed atomically, and a watermark without memory ordering.

#[path = "support/check.rs"]
mod check;
#[path = "support/pool_model.rs"]
mod model;
#[path = "support/mutant.rs"]
#[allow(dead_code)]
mod mutant;
#[path = "../../../crates/lossless/src/mmu/pool.rs"]
#[allow(dead_code)]
mod pool;
#[path = "support/units.rs"]
mod units;

use mutant::{Broken, assert_found, break_promise};

mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::Ordering;

    pub(crate) use crate::mutant::{AtomicU32, AtomicU64};
}

/// The first failure depends on the execution that loom tries first.
const WRONG_COUNT: [&str; 3] = ["cells are in use of", "more cells returned than taken", "the accounts are wrong"];

#[test]
fn non_atomic_lease_is_detected() {
    assert_found(&WRONG_COUNT, || {
        model::pool_never_grants_three_leases_more_than_it_has(|| break_promise(Broken::Atomicity))
    });
}

#[test]
fn non_atomic_batch_is_detected() {
    assert_found(&WRONG_COUNT, || {
        model::leases_in_batches_return_their_spare_cells(|| break_promise(Broken::Atomicity))
    });
}

#[test]
fn non_atomic_exact_take_is_detected() {
    assert_found(&WRONG_COUNT, || {
        model::exact_pool_never_grants_three_lcores_more_than_it_has(|| break_promise(Broken::Atomicity))
    });
}

#[test]
fn non_atomic_withholding_is_detected() {
    assert_found(&WRONG_COUNT, || model::withheld_cells_are_not_granted(|| break_promise(Broken::Atomicity)));
}

#[test]
fn watermark_raise_without_release_is_detected() {
    let start = [|| break_promise(Broken::Exchanges), (|| ()) as fn()];
    assert_found(&["the watermark lost"], move || model::restarted_watermark_is_never_below_the_cells_in_use(start));
}

#[test]
fn watermark_reset_without_acquire_is_detected() {
    let start = [(|| ()) as fn(), || break_promise(Broken::Exchanges)];
    assert_found(&["the watermark lost"], move || model::restarted_watermark_is_never_below_the_cells_in_use(start));
}
