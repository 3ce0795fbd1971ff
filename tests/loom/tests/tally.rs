//! Models of `crates/lossless/src/mmu/tally.rs`.

#[path = "support/check.rs"]
mod check;
#[path = "support/tally_model.rs"]
mod model;
#[path = "../../../crates/lossless/src/mmu/tally.rs"]
#[allow(dead_code)]
mod tally;
#[path = "support/units.rs"]
mod units;
#[path = "../../../crates/base/src/sets.rs"]
#[allow(dead_code)]
mod whole_sets;

mod sets {
    pub(crate) use crate::whole_sets::PortSet;

    pub(crate) const MAX_PORTS: usize = 2;
    pub(crate) const CLASSES: usize = 2;
}

mod sync {
    // std's `Arc`: `self: &Arc<Self>` compiles with no other, and tallies rely on no memory ordering of it.
    pub(crate) use std::sync::Arc;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[test]
fn freed_cells_are_seen_with_single_tally_releases() {
    check::check(3, || model::freed_cells_are_seen_with_single_tally_releases([|| (), || ()]));
}

#[test]
fn freed_cells_are_seen_with_summed_tally_releases() {
    check::check(3, || model::freed_cells_are_seen_with_summed_tally_releases([|| (), || ()]));
}
