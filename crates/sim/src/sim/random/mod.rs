//! Random fabrics: a seed determines switches, hosts, cables, flows and faults. Each run checks every invariant.
//!
//! tests/README.md lists the draws and the failures that count; tests/sim/found has the defects found.

#[cfg(test)]
mod abm_tests;
mod deadlock;
mod draft;
mod draw;
#[cfg(test)]
mod hpcc_tests;
#[cfg(test)]
mod mutants_tests;
#[cfg(test)]
mod qcn_tests;
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

/// Statistics of a fabric that violated no invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSummary {
    /// Number of events.
    pub events: u64,
    /// Frames that hosts sent in flows.
    pub frames: u64,
    /// Steps of switches after which every invariant was checked.
    pub checks: u64,
    /// Whether a waiver voided the lossless guarantee, because of a draw or of an event in the run.
    pub waived: bool,
    /// Reason for which the run ended.
    pub ending: Ending,
}

/// A fabric that violated an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Seed of the fabric.
    pub seed: u64,
    /// The whole scenario; empty if the generator itself failed.
    pub yaml: String,
    /// The violation in the whole scenario.
    pub violation: Violation,
    /// The smallest scenario found that violates the same invariant.
    pub shrunk_yaml: String,
    /// The violation in the smallest scenario.
    pub shrunk_violation: Violation,
    /// Runs that the search for the smallest scenario took.
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

/// Returns the scenario of `seed`, as text that `holdfast sim` reads.
///
/// # Errors
/// The reader refuses the scenario, which is a bug of the generator.
pub fn yaml(seed: u64) -> Result<String, String> {
    settle::settle(&mut draw::draft(seed)).map(|(yaml, _)| yaml)
}

/// Runs the fabric of `seed`, and shrinks it if it violates an invariant.
///
/// # Errors
/// The violation, with the whole and the smallest scenario.
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

/// A fabric that violates an invariant, as drawn.
#[derive(Debug)]
struct Found {
    draft: Draft,
    /// Text of the scenario; empty if the reader refuses it.
    yaml: String,
    violation: Violation,
}

fn run(seed: u64) -> Result<RunSummary, Box<Found>> {
    let mut draft = draw::draft(seed);
    let (yaml, scenario) = match settle::settle(&mut draft) {
        Ok(settled) => settled,
        Err(what) => {
            // The generator drew a scenario that the reader refuses: the generator is wrong.
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
        frames: outcome
            .flows
            .iter()
            .chain(outcome.workloads.iter().map(|workload| &workload.sum))
            .map(|flow| flow.sent_frames)
            .sum(),
        checks: outcome.checks,
        waived: !outcome.waivers.is_empty(),
        ending: outcome.ending,
    }
}
