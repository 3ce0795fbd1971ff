//! What counts as a failure of a random fabric, beyond an invariant that was violated.

use super::deadlock::can_deadlock;
use super::draft::LEAST_DRAIN;
use crate::sim::outcome::{Ending, Outcome, Violation};
use crate::sim::spec::{FaultKind, Scenario};

/// What did not hold: an invariant; or the run does not end; or it does not drain, with nothing in it that explains why.
#[must_use]
pub fn judge(scenario: &Scenario, outcome: &Outcome) -> Option<Violation> {
    let found = |invariant, what| Violation { invariant, at_ps: outcome.end_ps, event: outcome.events, what };
    match outcome.ending {
        Ending::Violated | Ending::Drained => outcome.violation.clone(),
        Ending::TooManyEvents => Some(found("ends", format!("{} events are too many", outcome.events))),
        // No time to drain was drawn on purpose.
        Ending::Undrained { .. } if scenario.drain < LEAST_DRAIN => None,
        Ending::Undrained { .. } if holds_for_good(scenario) || can_deadlock(scenario) => None,
        Ending::Undrained { frames } => {
            let what =
                format!("{frames} frames never arrived, though nothing holds them for good and no circle of links");
            Some(found("drains", what))
        }
    }
}

/// Whether somebody is held, or does not work, to the end.
fn holds_for_good(scenario: &Scenario) -> bool {
    scenario.faults.iter().filter(|fault| fault.until.is_none()).any(|fault| match fault.kind {
        FaultKind::Storm { .. } | FaultKind::Stall { .. } | FaultKind::Slow { .. } | FaultKind::Lose { .. } => true,
        // A dead host's link swallows what comes; a link that is down loses it; one that is late obeys in the end.
        FaultKind::Dead { .. } | FaultKind::LinkDown { .. } | FaultKind::Late { .. } | FaultKind::Garbage { .. } => {
            false
        }
    })
}
