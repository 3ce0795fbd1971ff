//! Random fabrics whose switches decide by rules of HPCC's simulator.

use super::{judge, yaml};
use crate::mmu::{HeadroomPolicy, HpccRule, HpccRules};
use crate::sim::engine::run_prepared;
use crate::sim::outcome::Outcome;
use crate::sim::scenario::{self, Options, mmu};
use crate::sim::spec::Scenario;
use crate::units::Cells;
use crate::verify::audit::Auditor;

/// Returns the fabric of `seed` with `rules` on each switch that they fit, and the number of these.
fn fabric(seed: u64, rules: HpccRules) -> (Scenario, usize) {
    let text = yaml(seed).unwrap();
    let mut scenario = scenario::parse("random.yaml", &text, None, &Options::default()).unwrap().remove(0).1;
    let mut count = 0;
    for switch in scenario.switches.iter_mut().map(|switch| &mut switch.config.switch) {
        let has_reserve = switch.ports.iter().any(|port| port.buffer.reserve[1] > Cells(0));
        if switch.buffer.policy == HeadroomPolicy::Independent && !has_reserve {
            mmu::follow(switch, rules);
            count += 1;
        }
    }
    (scenario, count)
}

fn run(scenario: &Scenario) -> Outcome {
    crate::sim::run(scenario, &mut |_| {})
}

#[test]
fn random_fabrics_with_all_rules_of_hpcc_keep_the_other_invariants() {
    let mut switches = 0;
    for seed in 0..150 {
        let (scenario, count) = fabric(seed, HpccRules::all());
        switches += count;
        if count > 0 {
            let outcome = run(&scenario);
            assert_eq!(judge(&scenario, &outcome), None, "seed {seed}");
            assert!(outcome.waivers.iter().any(|waiver| waiver.contains(" decides as HPCC's simulator (all rules)")));
        }
    }
    assert!(switches > 100, "{switches} switches");
}

/// Each waiver is needed: an auditor without it finds that the rule breaks the invariant.
#[test]
fn auditor_without_waiver_finds_each_rule_that_breaks_an_invariant() {
    for rule in HpccRule::ALL {
        let rules: HpccRules = [rule].into_iter().collect();
        let found = (0..300).find_map(|seed| {
            let (scenario, count) = fabric(seed, rules);
            let outcome = (count > 0 && rule.broken_invariant().is_some()).then(|| {
                run_prepared(
                    &scenario,
                    |engine| {
                        for node in engine.net.nodes.iter_mut() {
                            let mut spec = node.spec.clone();
                            spec.hpcc = HpccRules::NONE;
                            node.auditor = Auditor::new(&spec);
                        }
                    },
                    &mut |_| {},
                )
            })?;
            outcome.violation.map(|violation| (seed, violation.invariant))
        });
        assert_eq!(found.map(|(_, invariant)| invariant), rule.broken_invariant(), "{}", rule.label());
        if let Some((seed, _)) = found {
            assert_eq!(run(&fabric(seed, rules).0).violation, None, "{}, seed {seed}", rule.label());
        }
    }
}
