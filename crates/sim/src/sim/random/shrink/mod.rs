//! Shrinking of a fabric that violates an invariant; [`crate::sim::shrink`] does the search.

mod steps;

use super::draft::Draft;
use super::settle::settle;
use super::verdict::judge;
use crate::sim::outcome::{Outcome, Violation};
use crate::sim::shrink::{BOUNDS, Shrinks, Smaller, Step, search};
use crate::sim::spec::Scenario;

/// Returns the smallest scenario found within the bounds, which may be the whole one.
#[must_use]
pub fn shrink(draft: Draft, yaml: &str, violation: &Violation) -> Smaller {
    let whole = Smaller { yaml: yaml.to_owned(), violation: violation.clone(), runs: 0 };
    // A scenario that the reader refused cannot be run.
    if yaml.is_empty() { whole } else { search(draft, violation, BOUNDS, &mut |_| {}).unwrap_or(whole) }
}

impl Shrinks for Draft {
    const STEPS: &'static [Step<Self>] = steps::STEPS;

    fn settle(&mut self) -> Option<(String, Scenario)> {
        settle(self).ok()
    }

    fn judge(scenario: &Scenario, outcome: &Outcome) -> Option<Violation> {
        judge(scenario, outcome)
    }
}
