//! Failures of a random fabric, beyond violated invariants.

use super::deadlock::can_deadlock;
use super::draft::LEAST_DRAIN;
use crate::sim::load::PS;
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
        Ending::Undrained { .. } if is_slowed(scenario, outcome) && is_passing(outcome) => None,
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

/// Whether congestion control may have slowed a reliable flow that has not ended. Beside a strict class, TIMELY goes
/// down to its least rate, at which a message may take longer than any time to drain.
fn is_slowed(scenario: &Scenario, outcome: &Outcome) -> bool {
    let mut flows = scenario.flows.iter().zip(&outcome.flows);
    let mut workloads = scenario.workloads.iter().zip(&outcome.workloads);
    flows.any(|(flow, outcome)| flow.control.is_some() && outcome.is_reliable && !outcome.is_settled)
        || workloads.any(|(workload, outcome)| {
            let has_control = workload.senders.iter().any(|flow| flow.control.is_some());
            has_control && outcome.sum.is_reliable && outcome.completed < outcome.started
        })
}

/// Whether no frame is stuck: those under way at the end have been sent since a time shortly before at which there were
/// none.
fn is_passing(outcome: &Outcome) -> bool {
    let passing_ps = LEAST_DRAIN.0 * PS / 2;
    outcome.last_empty_ps.is_some_and(|empty_ps| outcome.end_ps - empty_ps < passing_ps)
}

/// Whether a fault pauses, stops or slows a part of the fabric to the end of the run, or loses frames.
fn holds_for_good(scenario: &Scenario) -> bool {
    scenario.faults.iter().filter(|fault| fault.until.is_none()).any(|fault| match fault.kind {
        FaultKind::Storm { .. } | FaultKind::Stall { .. } | FaultKind::Slow { .. } | FaultKind::Lose { .. } => true,
        // A dead host discards frames that reach it; a link that is down loses them; a late host obeys in the end.
        FaultKind::Dead { .. } | FaultKind::LinkDown { .. } | FaultKind::Shut { .. } => false,
        FaultKind::Late { .. } | FaultKind::Garbage { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::scenario::{Options, parse};

    /// A strict class slows a message with TIMELY to 10 Mb/s or so when hosts stop sending.
    #[test]
    fn message_at_the_least_rate_may_outlast_the_time_to_drain() {
        let yaml = "
seed: 1
duration: 72us
drain: 3302925ns
switches:
  - name: s0
    poll: {every: 1us}
    config:
      buffer: {size: 3703856B, cell: 208B, lossy: 25%}
      lcores: {poll_gap: 3154ns}
      classes: {3: {lossless: true, scheduler: strict}, 4: {lossless: true}}
      ports: [{name: p*, count: 3, speed: 100G, cable: 5m, mtu: 1500}]
hosts: [{name: h*, count: 3, at: s0.p*, length: 5m}]
flows: [{from: h3, to: h2, dscp: 24, frame: 1078, ecn: false, start: 10us}]
workloads:
  - {all_to_all: 319787B, hosts: [h1, h2], dscp: 32, frame: 1078, ecn: false, start: 10us, cc: timely}
";
        let mut scenarios = parse("slow.yaml", yaml, None, &Options::default());
        let mut scenario = scenarios.as_mut().unwrap_or_else(|errors| panic!("{errors}")).remove(0).1;
        let mut outcome = crate::sim::run(&scenario, &mut |_| {});
        assert_eq!(outcome.ending, Ending::Undrained { frames: 0 });
        assert_eq!(judge(&scenario, &outcome), None);
        // The end may meet a frame on its way. It is not stuck if there was none shortly before.
        outcome.ending = Ending::Undrained { frames: 1 };
        assert_eq!(judge(&scenario, &outcome), None);
        let stuck = Outcome { last_empty_ps: None, ..outcome.clone() };
        assert_eq!(judge(&scenario, &stuck).map(|violation| violation.invariant), Some("drains"));
        let stuck = Outcome { last_empty_ps: Some(outcome.end_ps - LEAST_DRAIN.0 * PS), ..outcome.clone() };
        assert_eq!(judge(&scenario, &stuck).map(|violation| violation.invariant), Some("drains"));
        // Without congestion control nothing slows a sender: it would have stopped for no reason.
        scenario.workloads.iter_mut().flat_map(|workload| &mut workload.senders).for_each(|flow| flow.control = None);
        assert_eq!(judge(&scenario, &outcome).map(|violation| violation.invariant), Some("drains"));
    }
}
