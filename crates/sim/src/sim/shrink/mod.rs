//! Shrinks a scenario that violates an invariant to a small one that violates the same invariant.
//!
//! The search is limited by runs and simulated events: with a limit by time, results would depend on the speed of the
//! machine.

mod cuts;
mod render;
#[cfg(test)]
mod tests;
mod tree;

use super::outcome::{Outcome, Violation};
use super::spec::Scenario;

pub use self::tree::shrink;

/// Limits of a search: candidates, runs of valid candidates, and events of all runs.
pub(super) const BOUNDS: Bounds = Bounds { tries: 20_000, runs: 1500, events: 100_000_000 };
/// Events that a candidate may take: this multiple of the first run's events, and this many more.
const MORE: (u64, u64) = (4, 10_000);

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Smaller {
    /// Text of the scenario.
    pub yaml: String,
    /// Violation in the scenario.
    pub violation: Violation,
    /// Runs that the search took.
    pub runs: u32,
}

/// Limits of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub tries: u32,
    pub runs: u32,
    pub events: u64,
}

/// Returns `T` with change number `place` of a kind; `None` if there are fewer changes. The third argument is the time,
/// in ns, of the violation in the best candidate so far. A change without effect returns an equal `T`.
pub(super) type Step<T> = fn(&T, usize, u64) -> Option<T>;

/// A scenario that can be shrunk step by step.
pub(super) trait Shrinks: Clone + PartialEq + 'static {
    /// Kinds of changes, those that remove most first.
    const STEPS: &'static [Step<Self>];

    /// Applies the consequences of a change. Returns the text, and the scenario read from it; `None` if the reader
    /// refuses it.
    fn settle(&mut self) -> Option<(String, Scenario)>;

    /// Returns the violation of a run.
    fn judge(scenario: &Scenario, outcome: &Outcome) -> Option<Violation>;
}

/// The state of a search.
struct Search<'a, T> {
    best: T,
    found: Smaller,
    tries: u32,
    events: u64,
    bounds: Bounds,
    /// Events that a candidate may take.
    most_events: u64,
    progress: &'a mut dyn FnMut(u32),
}

/// Returns the smallest scenario found within `bounds`; `None` if no smaller one has the same violation. `progress`
/// receives the number of runs at each candidate.
pub(super) fn search<T: Shrinks>(
    whole: T,
    violation: &Violation,
    bounds: Bounds,
    progress: &mut dyn FnMut(u32),
) -> Option<Smaller> {
    let found = Smaller { yaml: String::new(), violation: violation.clone(), runs: 0 };
    let most_events = violation.event.saturating_mul(MORE.0).saturating_add(MORE.1);
    let mut search = Search { best: whole, found, tries: 0, events: 0, bounds, most_events, progress };
    while search.pass() {}
    (!search.found.yaml.is_empty()).then_some(search.found)
}

impl<T: Shrinks> Search<'_, T> {
    /// Tries every change once. Returns whether the scenario has become smaller and more changes may be tried.
    fn pass(&mut self) -> bool {
        let mut has_shrunk = false;
        for step in T::STEPS {
            // The changes of a step depend on the best candidate so far. After a success the list of changes is new,
            // and shorter or simpler.
            let mut place = 0;
            while let Some(candidate) = step(&self.best, place, self.found.violation.at_ps / 1000) {
                if self.is_enough() {
                    return false;
                }
                if candidate != self.best && self.fails(candidate) {
                    has_shrunk = true;
                } else {
                    place += 1;
                }
            }
        }
        has_shrunk
    }

    fn is_enough(&self) -> bool {
        let Bounds { tries, runs, events } = self.bounds;
        self.tries >= tries || self.found.runs >= runs || self.events >= events
    }

    /// Runs `candidate`. If it violates the same invariant, it becomes the best one.
    fn fails(&mut self, mut candidate: T) -> bool {
        self.tries += 1;
        (self.progress)(self.found.runs);
        let Some((yaml, mut scenario)) = candidate.settle() else { return false };
        // Nothing plots the run, and a sample may cost as much as a poll.
        (scenario.sample.0, scenario.queues.0) = (0, 0);
        let left = self.bounds.events.saturating_sub(self.events);
        scenario.most_events = scenario.most_events.min(self.most_events).min(left);
        self.found.runs += 1;
        let outcome = super::run(&scenario, &mut |_| {});
        self.events += outcome.events;
        match T::judge(&scenario, &outcome) {
            Some(violation) if violation.invariant == self.found.violation.invariant => {
                self.best = candidate;
                self.found = Smaller { yaml, violation, runs: self.found.runs };
                true
            }
            _ => false,
        }
    }
}
