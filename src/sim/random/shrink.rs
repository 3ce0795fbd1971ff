//! From a fabric in which something does not hold to a small one in which the same does not.

mod steps;

use std::time::{Duration, Instant};

use super::draft::Draft;
use super::settle::settle;
use super::verdict::judge;
use crate::sim;
use crate::sim::outcome::Violation;

/// Runs, and time, after which it is small enough.
const MOST_RUNS: u32 = 1500;
const LONGEST: Duration = Duration::from_secs(20);

/// What was found.
#[derive(Debug)]
pub struct Smaller {
    pub yaml: String,
    pub violation: Violation,
    pub runs: u32,
}

/// A search for something smaller.
struct Search {
    best: Draft,
    yaml: String,
    violation: Violation,
    runs: u32,
    until: Instant,
}

/// The smallest that is found within bounds.
#[must_use]
pub fn shrink(draft: Draft, yaml: &str, violation: &Violation) -> Smaller {
    let until = Instant::now() + LONGEST;
    let mut search = Search { best: draft, yaml: yaml.to_owned(), violation: violation.clone(), runs: 0, until };
    // What was not even read has nothing to run.
    while !yaml.is_empty() && search.pass() {}
    Smaller { yaml: search.yaml, violation: search.violation, runs: search.runs }
}

impl Search {
    /// Tries everything once. Whether anything has become smaller, and there is time for more.
    fn pass(&mut self) -> bool {
        let mut has_shrunk = false;
        for step in steps::STEPS {
            // What a step offers hangs on the best so far: after a success its list is another, and shorter or simpler.
            let mut place = 0;
            while let Some(candidate) = step(&self.best, place, self.violation.at_ps / 1000) {
                if self.runs >= MOST_RUNS || Instant::now() > self.until {
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

    /// Whether the same invariant does not hold of `candidate`, which then is the best.
    fn fails(&mut self, mut candidate: Draft) -> bool {
        self.runs += 1;
        let Ok((yaml, scenario)) = settle(&mut candidate) else { return false };
        let outcome = sim::run(&scenario, &mut |_| {});
        match judge(&scenario, &outcome) {
            Some(violation) if violation.invariant == self.violation.invariant => {
                (self.best, self.yaml, self.violation) = (candidate, yaml, violation);
                true
            }
            _ => false,
        }
    }
}
