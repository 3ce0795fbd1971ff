//! What the simulator promises of its speed: docs/sim/scale.md.

use std::fs;
use std::path::Path;

use holdfast::sim::scenario::{self, Options};

/// Time that a CPU may take for 10 ms of 64 hosts at 100G: the promise, and ten times what was measured.
const LONGEST_NS: u64 = 60_000_000_000;

/// Time that this thread has had a CPU for: not the clock's, since others want it too.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "it is promised of what is shipped; cargo test --release")]
fn ten_milliseconds_of_64_hosts_take_less_than_a_minute_of_a_core() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/sim/scale.yaml");
    let scenarios = scenario::load(&path, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
    let (_, mut scenario) = scenarios.into_iter().find(|(variant, _)| variant == "10ms").unwrap();
    assert_eq!((scenario.hosts.len(), scenario.duration.0), (64, 10_000_000));
    // As the command does without plots.
    scenario.sample.0 = 0;
    let began = cpu_ns();
    let outcome = holdfast::sim::run(&scenario, &mut |_| {});
    let taken = cpu_ns() - began;
    let frames: u64 = outcome.flows.iter().map(|flow| flow.received_frames).sum();
    println!("{} events for {frames} frames in {:.1} s", outcome.events, taken as f64 / 1e9);
    // How fast it is hangs on these two more than on anything else: two events a frame.
    assert_eq!((outcome.events, frames, outcome.violation), (14_291_332, 7_081_920, None));
    assert!(taken < LONGEST_NS, "{taken} ns");
}
