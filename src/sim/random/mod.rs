//! Random fabrics: switches, hosts, cables, flows and faults by a seed, run with every invariant checked.
//!
//! docs/testing.md says what is drawn and what counts as a failure; docs/simulation-found.md what was found.

mod deadlock;
mod draft;
mod draw;
#[cfg(test)]
mod mutants_tests;
mod render;
mod settle;
mod shrink;
mod soak;
mod verdict;

use std::fmt;

use self::draft::Draft;
use super::outcome::{Ending, Outcome, Violation};
use super::spec::Scenario;

pub use self::deadlock::can_deadlock;
pub use self::soak::{Progress, Totals, soak};
pub use self::verdict::judge;

/// What a fabric that held did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSummary {
    /// Events.
    pub events: u64,
    /// Frames that hosts sent in flows.
    pub frames: u64,
    /// Steps of switches after which every invariant was checked.
    pub checks: u64,
    /// Whether something was drawn, or happened, with which switches do not promise to lose nothing.
    pub waived: bool,
    /// How it ended.
    pub ending: Ending,
}

/// A fabric that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Seed of the fabric.
    pub seed: u64,
    /// The whole scenario. Empty if it is the generator that failed.
    pub yaml: String,
    /// What did not hold of it.
    pub violation: Violation,
    /// The smallest scenario found in which the same invariant does not hold.
    pub shrunk_yaml: String,
    /// What did not hold of that one.
    pub shrunk_violation: Violation,
    /// Runs that it took to find it.
    pub runs: u32,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, violation, shrunk_violation, runs, .. } = self;
        writeln!(f, "random fabric {seed}: {} at event {}: {}", violation.invariant, violation.event, violation.what)?;
        writeln!(f, "smaller, after {runs} runs, at event {}: {}", shrunk_violation.event, shrunk_violation.what)?;
        f.write_str(&self.shrunk_yaml)
    }
}

/// The scenario of `seed`, as text that `holdfast sim` reads.
///
/// # Errors
/// The reader refuses what was drawn, which is a bug of the generator.
pub fn yaml(seed: u64) -> Result<String, String> {
    settle::settle(&mut draw::draft(seed)).map(|(yaml, _)| yaml)
}

/// Runs the fabric of `seed`, and shrinks it if something does not hold.
///
/// # Errors
/// What does not hold.
pub fn try_seed(seed: u64) -> Result<RunSummary, Box<Failure>> {
    run(seed).map_err(|found| {
        let Found { draft, yaml, violation } = *found;
        let smaller = shrink::shrink(draft, &yaml, &violation);
        Box::new(Failure {
            seed,
            yaml,
            violation,
            shrunk_yaml: smaller.yaml,
            shrunk_violation: smaller.violation,
            runs: smaller.runs,
        })
    })
}

/// A fabric that does not hold, as it was drawn.
#[derive(Debug)]
struct Found {
    draft: Draft,
    /// Empty if the reader refuses it.
    yaml: String,
    violation: Violation,
}

fn run(seed: u64) -> Result<RunSummary, Box<Found>> {
    let mut draft = draw::draft(seed);
    let (yaml, scenario) = match settle::settle(&mut draft) {
        Ok(settled) => settled,
        Err(what) => {
            // What was drawn is not what the reader takes: the generator is wrong.
            let violation = Violation { invariant: "drawn_is_read", at_ps: 0, event: 0, what };
            return Err(Box::new(Found { draft, yaml: String::new(), violation }));
        }
    };
    let outcome = super::run(&scenario, &mut |_| {});
    match judge(&scenario, &outcome) {
        None => Ok(summary(&scenario, &outcome)),
        Some(violation) => Err(Box::new(Found { draft, yaml, violation })),
    }
}

fn summary(scenario: &Scenario, outcome: &Outcome) -> RunSummary {
    debug_assert_eq!(scenario.flows.len(), outcome.flows.len());
    RunSummary {
        events: outcome.events,
        frames: outcome.flows.iter().map(|flow| flow.sent_frames).sum(),
        checks: outcome.checks,
        waived: !outcome.waivers.is_empty(),
        ending: outcome.ending,
    }
}
