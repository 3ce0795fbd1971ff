//! Models of `crates/lossless/src/mmu/pool.rs`.

#[path = "support/check.rs"]
mod check;
#[path = "support/pool_model.rs"]
mod model;
#[path = "../../../crates/lossless/src/mmu/pool.rs"]
#[allow(dead_code)]
mod pool;
#[path = "support/units.rs"]
mod units;

mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

#[test]
fn pool_never_grants_three_leases_more_than_it_has() {
    check::check(3, || model::pool_never_grants_three_leases_more_than_it_has(|| ()));
}

#[test]
fn leases_in_batches_return_their_spare_cells() {
    check::check(4, || model::leases_in_batches_return_their_spare_cells(|| ()));
}

#[test]
fn exact_pool_never_grants_three_lcores_more_than_it_has() {
    check::check(3, || model::exact_pool_never_grants_three_lcores_more_than_it_has(|| ()));
}

#[test]
fn withheld_cells_are_not_granted() {
    check::check(3, || model::withheld_cells_are_not_granted(|| ()));
}

#[test]
fn restarted_watermark_is_never_below_the_cells_in_use() {
    check::check(3, || model::restarted_watermark_is_never_below_the_cells_in_use([|| (), || ()]));
}
