//! Random fabrics whose switches limit their lossy queues by ABM, or as Reverie.

use super::{judge, yaml};
use crate::mmu::{AbmSpec, Threshold};
use crate::sim::engine::run_prepared;
use crate::sim::scenario::{self, Options};
use crate::sim::spec::Scenario;
use crate::units::{Bytes, Nanos};

/// Returns the fabric of `seed` with ABM or Reverie on each switch, and the number of queues that it limits.
fn fabric(seed: u64, reverie: bool) -> (Scenario, usize) {
    let text = yaml(seed).unwrap();
    let mut scenario = scenario::parse("random.yaml", &text, None, &Options::default()).unwrap().remove(0).1;
    let mut count = 0;
    for switch in scenario.switches.iter_mut().map(|switch| &mut switch.config.switch) {
        switch.reverie = reverie;
        // Short intervals and a low mark, so that short runs measure often.
        switch.abm = Some(AbmSpec { interval: Nanos(5_000), congested: Bytes(3_000) });
        for limit in switch.queues.iter_mut().filter_map(|queue| queue.limit.as_mut()) {
            limit.abm = matches!(limit.threshold, Threshold::Dynamic(_));
            count += usize::from(limit.abm);
        }
    }
    (scenario, count)
}

fn check(reverie: bool) {
    let (mut queues, mut differ) = (0, 0);
    for seed in 0..150 {
        let (scenario, count) = fabric(seed, reverie);
        queues += count;
        let outcome = crate::sim::run(&scenario, &mut |_| {});
        assert_eq!(judge(&scenario, &outcome), None, "seed {seed}");
        let text = yaml(seed).unwrap();
        let without = scenario::parse("random.yaml", &text, None, &Options::default()).unwrap().remove(0).1;
        differ += usize::from(crate::sim::run(&without, &mut |_| {}).flows != outcome.flows);
    }
    assert!(queues > 300 && differ > 10, "{queues} queues, {differ} fabrics with other results than with DT");
}

#[test]
fn random_fabrics_with_abm_keep_all_invariants() {
    check(false);
}

#[test]
fn random_fabrics_with_lossy_queues_of_reverie_keep_all_invariants() {
    check(true);
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
