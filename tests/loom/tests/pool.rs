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
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}

#[test]
fn three_leases_of_a_scarce_pool() {
    check::check(3, || model::three_leases_of_a_scarce_pool(|| ()));
}

#[test]
fn two_leases_in_batches() {
    check::check(4, || model::two_leases_in_batches(|| ()));
}

#[test]
fn an_exact_pool() {
    check::check(3, || model::an_exact_pool(|| ()));
}

#[test]
fn a_watermark_that_starts_anew() {
    check::check(3, || model::a_watermark_that_starts_anew([|| (), || ()]));
}
