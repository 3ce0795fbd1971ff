//! Defects that random fabrics have found, minimized. Each file of `found/` names the invariant that did not hold and
//! the reason; all hold now.

use std::path::{Path, PathBuf};

use holdfast::sim::outcome::Outcome;
use holdfast::sim::random::judge;
use holdfast::sim::scenario::{self, Options};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/found")
}

#[track_caller]
fn run(path: &Path) -> Outcome {
    let scenarios = scenario::load(path, &Options::default());
    let scenario = scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1;
    let outcome = holdfast::sim::run(&scenario, &mut |_| {});
    assert_eq!(judge(&scenario, &outcome), None, "{}", path.display());
    outcome
}

#[test]
fn minimized_defects_hold_every_invariant() {
    let files = std::fs::read_dir(dir()).unwrap().map(|entry| entry.unwrap().path());
    let outcomes: Vec<Outcome> = files.map(|path| run(&path)).collect();
    assert!(outcomes.len() >= 6, "{}", outcomes.len());
}

#[track_caller]
fn assert_waived(file: &str, by: &str) {
    let outcome = run(&dir().join(file));
    assert!(outcome.waivers.iter().any(|waiver| waiver.contains(by)), "{:?}", outcome.waivers);
}

#[test]
fn insufficient_class_headroom_is_waived() {
    assert_waived("headroom-of-each-class.yaml", "class 3 has 16.");
}

#[test]
fn too_short_receive_ring_is_waived() {
    assert_waived("a-ring-too-short-for-the-core.yaml", "has a receive ring of 256");
}

#[test]
fn late_poll_is_waived() {
    assert_waived("polls-later-than-a-pause-lives.yaml", "polled");
}
