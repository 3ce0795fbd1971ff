//! The model of the gate detects the absence of each ordering that it relies on.

#[path = "support/check.rs"]
mod check;
#[path = "../../../crates/dpdk/src/dpdk/gate.rs"]
mod gate;
#[path = "support/gate_model.rs"]
mod model;
#[path = "support/mutant.rs"]
#[allow(dead_code)]
mod mutant;

use mutant::{Broken, assert_found, break_promise};

mod sync {
    pub(crate) use loom::sync::atomic::Ordering;

    pub(crate) use crate::mutant::AtomicU32;
}

#[test]
fn entry_and_exit_without_orderings_are_detected() {
    let broken: [fn(); 2] = [|| break_promise(Broken::Exchanges), || ()];
    assert_found(&["Causality violation"], move || model::memory_is_freed_beside_an_lcore(false, broken));
}

#[test]
fn closing_without_acquire_is_detected() {
    let broken: [fn(); 2] = [|| (), || break_promise(Broken::Loads)];
    assert_found(&["Causality violation"], move || model::memory_is_freed_beside_an_lcore(false, broken));
}

#[test]
fn opening_without_release_is_detected() {
    let broken: [fn(); 2] = [|| (), || break_promise(Broken::Exchanges)];
    assert_found(&["Causality violation"], move || model::memory_is_freed_beside_an_lcore(false, broken));
}
