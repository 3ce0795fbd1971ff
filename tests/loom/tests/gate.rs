//! Models of `crates/dpdk/src/dpdk/gate.rs`.

#[path = "support/check.rs"]
mod check;
#[path = "../../../crates/dpdk/src/dpdk/gate.rs"]
mod gate;
#[path = "support/gate_model.rs"]
mod model;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}

#[test]
fn memory_is_freed_beside_an_lcore() {
    for is_closed in [false, true] {
        check::check(4, move || model::memory_is_freed_beside_an_lcore(is_closed, [|| (), || ()]));
    }
}
