//! From a scenario in which a rule does not hold to a small one in which the same does not.
//!
//! The bounds are runs and simulated events: by the clock, what is found would hang on how fast the machine is.

mod cuts;
mod render;
#[cfg(test)]
mod tests;
mod tree;

use super::outcome::{Outcome, Violation};
use super::spec::Scenario;

pub use self::tree::shrink;

/// After so many it is small enough: candidates, the runs of those that the reader takes, and the events of all runs.
pub(super) const BOUNDS: Bounds = Bounds { tries: 20_000, runs: 1500, events: 100_000_000 };
/// A candidate is given so many times the events of the first run, and this many more.
const MORE: (u64, u64) = (4, 10_000);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Smaller {
    /// The scenario.
    pub yaml: String,
    /// What does not hold of it.
    pub violation: Violation,
    /// Runs that it took to find it.
    pub runs: u32,
}

/// How long a search may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub tries: u32,
    pub runs: u32,
    pub events: u64,
}

/// `T` with the change number `place` of a kind, as long as there are so many. The third argument is when, in ns, the best
/// so far goes wrong. A change that is none gives it back as it was.
pub(super) type Step<T> = fn(&T, usize, u64) -> Option<T>;

/// What can be made smaller bit by bit.
pub(super) trait Shrinks: Clone + PartialEq + 'static {
    /// The kinds of changes, those that take away most first.
    const STEPS: &'static [Step<Self>];

    /// As text, and as what is read of that; `None`: the reader refuses it. Whatever else must follow a change does.
    fn settle(&mut self) -> Option<(String, Scenario)>;

    /// What does not hold.
    fn judge(scenario: &Scenario, outcome: &Outcome) -> Option<Violation>;
}

/// A search for something smaller.
struct Search<'a, T> {
    best: T,
    found: Smaller,
    tries: u32,
    events: u64,
    bounds: Bounds,
    /// Events that a candidate is given.
    most_events: u64,
    progress: &'a mut dyn FnMut(u32),
}

/// The smallest that is found within `bounds`; `None`: nothing smaller than `whole` goes wrong in the same way. `progress`
/// hears at each candidate how many runs there were.
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
    /// Tries everything once. Whether anything has become smaller, and more may be tried.
    fn pass(&mut self) -> bool {
        let mut has_shrunk = false;
        for step in T::STEPS {
            // What a step offers hangs on the best so far: after a success its list is another, and shorter or simpler.
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

    /// Whether the same rule does not hold of `candidate`, which then is the best.
    fn fails(&mut self, mut candidate: T) -> bool {
        self.tries += 1;
        (self.progress)(self.found.runs);
        let Some((yaml, mut scenario)) = candidate.settle() else { return false };
        // Nobody plots it; a sample may cost as much as a poll.
        scenario.sample.0 = 0;
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
