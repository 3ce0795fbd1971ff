//! The first failure among the runs of a scenario, and its smaller scenario.

use holdfast::sim::outcome::{Ending, Violation};
use holdfast::sim::report;
use holdfast::sim::scenario::{Options, Written};
use holdfast::sim::shrink::shrink;

use super::found::{self, Found};
use super::progress::Progress;
use super::{Args, Run};
use crate::cli::Failure;

/// Reason for which a run makes the command fail.
pub enum Reason<'a> {
    /// An invariant was violated. The sentence names variant, seed and place.
    Violated { violation: &'a Violation, sentence: String },
    /// The run was given up. The sentence has the remedy.
    TooManyEvents(String),
    /// A lossless class lost a frame or starved, which `--fail-on-loss` forbids.
    Lost,
}

/// Returns the first run that fails, with its reason.
pub fn first<'a>(args: &Args, runs: &'a [Run]) -> Option<(&'a Run, Reason<'a>)> {
    runs.iter().find_map(|run| Some((run, reason(args, run)?)))
}

fn reason<'a>(args: &Args, run: &'a Run) -> Option<Reason<'a>> {
    let of = if run.variant.is_empty() { String::new() } else { format!("{}: ", run.variant) };
    if let Some(violation) = &run.outcome.violation {
        let (what, seed) = (found::describe(violation), run.scenario.seed);
        return Some(Reason::Violated { violation, sentence: format!("{of}seed {seed}: {what}") });
    }
    if run.outcome.ending == Ending::TooManyEvents {
        let most = run.scenario.most_events;
        let remedy = "write a larger `events` or a shorter `duration`";
        return Some(Reason::TooManyEvents(format!("{of}given up after {most} events; {remedy}")));
    }
    let is_lost = args.fail_on_loss && !report::verdict(&run.scenario, &run.outcome).kept;
    is_lost.then_some(Reason::Lost)
}

/// The command fails if an invariant is violated or a run does not end. With `--fail-on-loss` it also fails if a
/// lossless class lost a frame or starved. `shrunk` shrinks the first violating scenario and returns a text about it.
/// That may take long, so the violation is passed to `report` before: a user who interrupts the search has seen it.
pub fn verdict(
    args: &Args,
    runs: &[Run],
    report: &mut dyn FnMut(&str),
    shrunk: &mut dyn FnMut(&Run, &Violation) -> String,
) -> Result<(), Failure> {
    match first(args, runs) {
        None => Ok(()),
        Some((run, Reason::Violated { violation, sentence })) => {
            report(&sentence);
            report(&shrunk(run, violation));
            Err(Failure::Reported(1))
        }
        Some((_, Reason::TooManyEvents(sentence))) => Err(Failure::Run(sentence)),
        Some((_, Reason::Lost)) => Err(Failure::Reported(1)),
    }
}

/// Searches for a smaller scenario that violates the same invariant.
pub fn smaller(args: &Args, written: &Written, run: &Run, violation: &Violation) -> Option<Found> {
    let mut progress = Progress::new(1, args.quiet);
    let options = Options { seed: args.seed };
    let smaller = shrink(written, &options, &run.variant, violation, &mut |runs| progress.shrinking(runs));
    progress.clear();
    smaller.map(|smaller| Found::new(smaller.yaml, &smaller.violation, smaller.runs))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clap::Parser;
    use holdfast::sim;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn violation_is_printed_before_shrinking_starts() {
        let yaml = "duration: 1us\nswitches: [{name: a, config: {ports: [{name: p1, speed: 10G}]}}]\n";
        let scenario = sim::scenario::parse("x.yaml", yaml, None, &Options::default()).unwrap().remove(0).1;
        let mut outcome = sim::run(&scenario, &mut |_| {});
        let violation = Violation { invariant: "release_order", at_ps: 7_000, event: 12, what: "h1 was first".into() };
        outcome.violation = Some(violation);
        let run = Run { variant: "x".into(), file: "x".into(), scenario, outcome };
        let args = Line::parse_from(["sim", "x.yaml"]).args;
        let lines = RefCell::new(Vec::new());
        let sentence = "x: seed 1: release_order is violated at 7 ns, event 12: h1 was first";
        let result = verdict(&args, &[run], &mut |line| lines.borrow_mut().push(line.to_owned()), &mut |_, _| {
            assert_eq!(*lines.borrow(), [sentence]);
            "smaller".to_owned()
        });
        assert!(matches!(result, Err(Failure::Reported(1))), "{result:?}");
        assert_eq!(*lines.borrow(), [sentence, "smaller"]);
    }
}
