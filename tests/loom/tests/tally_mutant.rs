//! The models of the tallies detect the absence of either memory ordering.

#[path = "support/check.rs"]
mod check;
#[path = "support/tally_model.rs"]
mod model;
#[path = "support/mutant.rs"]
#[allow(dead_code)]
mod mutant;
#[path = "../../../crates/lossless/src/mmu/tally.rs"]
#[allow(dead_code)]
mod tally;
#[path = "support/units.rs"]
mod units;
#[path = "../../../crates/base/src/sets.rs"]
#[allow(dead_code)]
mod whole_sets;

use mutant::{Broken, assert_found, break_promise};

mod sets {
    pub(crate) use crate::whole_sets::PortSet;

    pub(crate) const MAX_PORTS: usize = 2;
    pub(crate) const CLASSES: usize = 2;
}

mod sync {
    pub(crate) use std::sync::Arc;

    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};

    pub(crate) use crate::mutant::AtomicU64;
}

const WITHOUT_RELEASE: [fn(); 2] = [|| break_promise(Broken::Stores), || ()];
const WITHOUT_ACQUIRE: [fn(); 2] = [|| (), || break_promise(Broken::Loads)];

#[test]
fn single_release_stored_without_release_is_detected() {
    assert_found(&["Causality violation"], || model::freed_cells_are_seen_with_single_tally_releases(WITHOUT_RELEASE));
}

#[test]
fn single_release_read_without_acquire_is_detected() {
    assert_found(&["Causality violation"], || model::freed_cells_are_seen_with_single_tally_releases(WITHOUT_ACQUIRE));
}

#[test]
fn batched_release_stored_without_release_is_detected() {
    assert_found(&["Causality violation"], || model::freed_cells_are_seen_with_summed_tally_releases(WITHOUT_RELEASE));
}

#[test]
fn batched_release_read_without_acquire_is_detected() {
    assert_found(&["Causality violation"], || model::freed_cells_are_seen_with_summed_tally_releases(WITHOUT_ACQUIRE));
}
