//! Models of `shutdown.rs`, `fdb_clear.rs`, `mailbox.rs` and `fdb_view.rs` of the crate plan, and of
//! `mmu/queue/reserves.rs`.

#[path = "support/check.rs"]
mod check;
#[path = "support/clear_models.rs"]
mod clear_models;
#[path = "../../../crates/plan/src/plan/lcore/fdb_clear.rs"]
mod fdb_clear;
#[path = "../../../crates/plan/src/plan/fdb_view.rs"]
#[allow(dead_code)]
mod fdb_view;
#[path = "support/forward.rs"]
mod forward;
#[path = "../../../crates/plan/src/plan/mailbox.rs"]
mod mailbox;
#[path = "support/handshake_models.rs"]
mod models;
#[path = "../../../crates/lossless/src/mmu/queue/reserves.rs"]
#[allow(dead_code)]
mod reserves;
#[path = "../../../crates/plan/src/plan/ring.rs"]
#[allow(dead_code)]
mod ring;
#[path = "../../../crates/base/src/sets.rs"]
#[allow(dead_code)]
mod sets;
#[path = "../../../crates/plan/src/plan/lcore/shutdown.rs"]
#[allow(dead_code)]
mod shutdown;
#[path = "support/units.rs"]
mod units;

mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
}

const AS_ASKED: [fn(); 2] = [|| (), || ()];

#[test]
fn lcores_end_with_empty_rings_and_all_releases() {
    check::check(3, || models::lcores_end_with_empty_rings_and_all_releases(AS_ASKED));
}

#[test]
fn settings_are_applied_whole_and_in_order() {
    check::check(3, || models::settings_are_applied_whole_and_in_order(AS_ASKED));
}

#[test]
fn fdb_answer_has_the_part_that_was_requested_last() {
    check::check(3, || models::fdb_answer_has_the_part_that_was_requested_last(AS_ASKED));
}

#[test]
fn request_to_clear_stations_is_read_whole_by_each_lcore() {
    check::check(3, clear_models::request_to_clear_stations_is_read_whole_by_each_lcore);
}

#[test]
fn unused_reserves_are_counted_once_by_two_lcores() {
    check::check(3, || models::unused_reserves_are_counted_once_by_two_lcores(|views| views));
}
