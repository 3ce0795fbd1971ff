//! The rules by which a real-time test runs again, passes or fails.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::quiet::{ATTEMPTS, attempt, explained, longest_gap, saw_gap, too_busy};

/// Longer than any machine takes a CPU away.
const LONG: Duration = Duration::from_secs(3600);

/// Returns the number of runs of `test`, and the message of its failure, if it failed.
fn outcome(allowed: Duration, test: impl Fn(usize)) -> (usize, Option<String>) {
    let runs = Cell::new(0);
    let counted = || {
        runs.set(runs.get() + 1);
        test(runs.get());
    };
    let failure = catch_unwind(AssertUnwindSafe(|| attempt(allowed, counted))).err();
    let text = failure.map(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().expect("a text")).to_owned(),
    });
    (runs.get(), text)
}

#[test]
fn a_test_that_passes_runs_once() {
    assert_eq!(outcome(LONG, |_| ()), (1, None));
}

#[test]
fn a_failure_without_a_long_gap_is_a_failure_at_once() {
    let defect = |_| {
        saw_gap(1_000_000);
        panic!("a defect");
    };
    assert_eq!(outcome(LONG, defect), (1, Some("a defect".to_owned())));
}

#[test]
fn failure_after_a_long_gap_is_retried_with_the_gap_reset() {
    let allowed = Duration::from_secs(60);
    let first_is_late = |run| {
        assert_eq!(longest_gap(), Duration::ZERO);
        if run == 1 {
            saw_gap(61_000_000_000);
            panic!("late");
        }
    };
    assert_eq!(outcome(allowed, first_is_late), (2, None));
    let defect_after = |run| {
        if run == 1 {
            saw_gap(61_000_000_000);
        }
        panic!("run {run}");
    };
    assert_eq!(outcome(allowed, defect_after), (2, Some("run 2".to_owned())));
}

#[test]
fn loss_explained_by_gaps_passes_and_busy_machine_fails_after_retries() {
    assert_eq!(outcome(LONG, |_| explained("a ring was full".to_owned())), (ATTEMPTS, None));
    let (runs, text) = outcome(LONG, |_| too_busy("XON came late".to_owned()));
    assert_eq!(runs, ATTEMPTS);
    let text = text.expect("a failure");
    assert!(text.contains("not quiet in any of") && text.contains("XON came late"), "{text}");
    // A defect in the last attempt is still a defect.
    let busy_then_defect = |run| if run < ATTEMPTS { too_busy("busy".to_owned()) } else { panic!("a defect") };
    assert_eq!(outcome(LONG, busy_then_defect), (ATTEMPTS, Some("a defect".to_owned())));
}
