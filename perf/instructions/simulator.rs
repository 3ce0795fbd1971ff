//! The case of the simulator, per event. Instructions guard its promise of speed (conf/golden/scale.md), because
//! CPU time and its ratio to a reference loop vary with the machine's caches and neighbours.

use std::path::Path;

use holdfast::sim::outcome::Outcome;
use holdfast::sim::scenario::{self, Options};
use holdfast::sim::spec::Scenario;

/// 64 hosts at 100G for 100 us: the scenario of conf/golden/scale.md. Two events a frame, so that a change of their
/// number fails here, and is not taken for a change of their cost.
const EVENTS: u64 = 129_146;

pub fn event() -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/sim/scale.yaml");
    let scenarios = scenario::load(&path, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
    let (_, mut scenario) = scenarios.into_iter().find(|(variant, _)| variant == "100us").expect("a variant");
    // Without samples, as the command runs without plots.
    scenario.sample.0 = 0;
    let outcome = measured_run(&scenario);
    assert_eq!((outcome.events, outcome.violation), (EVENTS, None));
    EVENTS
}

#[inline(never)]
fn measured_run(scenario: &Scenario) -> Outcome {
    holdfast::sim::run(scenario, &mut |_| {})
}
