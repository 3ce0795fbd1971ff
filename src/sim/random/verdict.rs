//! Failures of a random fabric, beyond violated invariants.

use super::deadlock::can_deadlock;
use super::draft::LEAST_DRAIN;
use crate::sim::outcome::{Ending, FlowOutcome, Outcome, Violation, WorkloadOutcome};
use crate::sim::spec::{FaultKind, Scenario};

/// Returns the failure of a run: a violated invariant, a run that does not end, or one that does not drain for no known
/// reason.
#[must_use]
pub fn judge(scenario: &Scenario, outcome: &Outcome) -> Option<Violation> {
    let found = |invariant, what| Violation { invariant, at_ps: outcome.end_ps, event: outcome.events, what };
    match outcome.ending {
        Ending::Violated | Ending::Drained => outcome.violation.clone(),
        Ending::TooManyEvents => Some(found("ends", format!("{} events are too many", outcome.events))),
        // The generator drew too short a time to drain on purpose.
        Ending::Undrained { .. } if scenario.drain < LEAST_DRAIN => None,
        Ending::Undrained { .. } if holds_for_good(scenario) || can_deadlock(scenario) => None,
        Ending::Undrained { .. } if outcome.flows.iter().any(repeats) => None,
        Ending::Undrained { .. } if outcome.workloads.iter().any(is_open) => None,
        Ending::Undrained { frames } => {
            let what = format!(
                "{frames} frames never arrived, without a fault that blocks them for good and without a loop of links"
            );
            Some(found("drains", what))
        }
    }
}

/// Whether a reliable flow still sends lost frames again, or has given up. That may take longer than any time to drain,
/// and with go-back-0 it may never end.
fn repeats(flow: &FlowOutcome) -> bool {
    let is_open = !flow.is_settled || flow.failed_flows > 0;
    flow.is_reliable && is_open && (flow.repeated_frames > 0 || flow.lost_frames() > 0)
}

/// Whether reliable flows of a workload may still send lost frames again, or have given up.
fn is_open(workload: &WorkloadOutcome) -> bool {
    let sum = &workload.sum;
    sum.is_reliable && workload.completed < workload.started && (sum.repeated_frames > 0 || sum.lost_frames() > 0)
}

/// Whether a fault pauses, stops or slows a part of the fabric to the end of the run, or loses frames.
fn holds_for_good(scenario: &Scenario) -> bool {
    scenario.faults.iter().filter(|fault| fault.until.is_none()).any(|fault| match fault.kind {
        FaultKind::Storm { .. } | FaultKind::Stall { .. } | FaultKind::Slow { .. } | FaultKind::Lose { .. } => true,
        // A dead host discards frames that reach it; a link that is down loses them; a late host obeys in the end.
        FaultKind::Dead { .. } | FaultKind::LinkDown { .. } | FaultKind::Late { .. } | FaultKind::Garbage { .. } => {
            false
        }
    })
}
