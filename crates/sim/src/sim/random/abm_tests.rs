//! Random fabrics whose switches limit their lossy queues by ABM, or decide as Reverie.

use super::{judge, yaml};
use crate::mmu::{AbmSpec, GroupProfile, Threshold};
use crate::sim::engine::{Engine, run_prepared};
use crate::sim::outcome::Outcome;
use crate::sim::scenario::{self, Options, mmu};
use crate::sim::spec::Scenario;
use crate::units::{Alpha, Bytes, Cells, Nanos};
use crate::verify::audit::Auditor;

fn drawn(seed: u64) -> Scenario {
    let text = yaml(seed).unwrap();
    scenario::parse("random.yaml", &text, None, &Options::default()).unwrap().remove(0).1
}

/// Returns the fabric of `seed` with ABM on each switch, or Reverie on those that it fits, and the number of queues
/// that it limits.
fn fabric(seed: u64, reverie: bool) -> (Scenario, usize) {
    let mut scenario = drawn(seed);
    let mut count = 0;
    for switch in scenario.switches.iter_mut().map(|switch| &mut switch.config.switch) {
        if reverie {
            if mmu::why_not_reverie(switch).is_some() {
                continue;
            }
            mmu::follow_reverie(switch);
        }
        // Short intervals and a low mark, so that short runs measure often.
        switch.abm = Some(AbmSpec { interval: Nanos(5_000), congested: Bytes(3_000) });
        for limit in switch.queues.iter_mut().filter_map(|queue| queue.limit.as_mut()) {
            limit.abm = matches!(limit.threshold, Threshold::Dynamic(_));
            count += usize::from(limit.abm);
        }
    }
    (scenario, count)
}

/// Returns how often lossless groups with a filtered share went from XON to XOFF.
fn pauses_by_filter(scenario: &Scenario, outcome: &Outcome) -> u64 {
    let mut pauses = 0;
    for (switch, outcome) in scenario.switches.iter().zip(&outcome.switches) {
        let spec = &switch.config.switch;
        for (port, outcome) in spec.ports.iter().zip(&outcome.ports).filter(|_| spec.reverie) {
            let groups = port.buffer.groups.iter().zip(&outcome.classes);
            let is_filtered = |threshold| matches!(threshold, Threshold::Dynamic(_));
            let filtered = groups.filter(|(group, _)| group.lossless && is_filtered(group.threshold));
            pauses += filtered.map(|(_, outcome)| outcome.pauses_tx).sum::<u64>();
        }
    }
    pauses
}

/// Runs fabrics with ABM or Reverie. Returns the queues that it limits, the fabrics with other results than with DT,
/// and the pauses of groups with a filtered share.
fn check(reverie: bool) -> (usize, usize, u64) {
    let (mut queues, mut differ, mut pauses) = (0, 0, 0);
    for seed in 0..150 {
        let (scenario, count) = fabric(seed, reverie);
        queues += count;
        let outcome = crate::sim::run(&scenario, &mut |_| {});
        assert_eq!(judge(&scenario, &outcome), None, "seed {seed}");
        pauses += pauses_by_filter(&scenario, &outcome);
        differ += usize::from(crate::sim::run(&drawn(seed), &mut |_| {}).flows != outcome.flows);
    }
    (queues, differ, pauses)
}

#[test]
fn random_fabrics_with_abm_keep_all_invariants() {
    let (queues, differ, _) = check(false);
    assert!(queues > 300 && differ > 10, "{queues} queues, {differ} fabrics with other results than with DT");
}

#[test]
fn random_fabrics_with_reverie_keep_all_invariants() {
    let (queues, differ, pauses) = check(true);
    let found = format!("{queues} queues, {differ} fabrics with other results than with DT, {pauses} pauses");
    assert!(queues > 100 && differ > 10 && pauses > 100, "{found}");
}

/// Whether some fabric with Reverie breaks `invariant` if the auditor assumes changed lossless groups.
fn is_found(invariant: &str, change: fn(&mut GroupProfile)) -> bool {
    (0..150).any(|seed| {
        let audited_as = |engine: &mut Engine<'_>| {
            for node in engine.net.nodes.iter_mut().filter(|node| node.spec.reverie) {
                let mut spec = node.spec.clone();
                let groups = spec.ports.iter_mut().flat_map(|port| &mut port.buffer.groups);
                groups.filter(|group| group.lossless).for_each(change);
                node.auditor = Auditor::new(&spec);
            }
        };
        let outcome = run_prepared(&fabric(seed, true).0, audited_as, &mut |_| {});
        outcome.violation.is_some_and(|violation| violation.invariant == invariant)
    })
}

fn alpha(exponent: i8) -> Threshold {
    Threshold::Dynamic(Alpha::from_exponent(exponent).unwrap())
}

/// The rules on shares are in force for filtered ones.
#[test]
fn auditor_with_other_limits_finds_the_decisions_of_reverie() {
    assert!(is_found("share_within_threshold", |group| group.threshold = alpha(-7)));
    assert!(is_found("paused_without_cause", |group| group.threshold = alpha(3)));
    assert!(is_found("xon_too_early", |group| group.xon_offset = Cells(10 * group.xon_offset.0 + 100)));
    assert!(is_found("headroom_limit", |group| group.headroom = Cells(1)));
}

/// A measurement at the end of a rest must equal those that the rest left out.
#[test]
fn rests_change_no_result_with_abm() {
    let mut compared = 0;
    for seed in 0..60 {
        let (scenario, _) = fabric(seed, seed % 2 == 0);
        if scenario.drain.0 > 20_000_000 {
            // It takes seconds to run.
            continue;
        }
        let without = run_prepared(
            &scenario,
            |engine| engine.net.nodes.iter_mut().for_each(|node| node.rests = false),
            &mut |_| {},
        );
        assert_eq!(crate::sim::run(&scenario, &mut |_| {}), without, "seed {seed}");
        compared += 1;
    }
    assert!(compared > 10, "{compared} runs");
}
