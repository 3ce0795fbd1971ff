//! Tests of shrinking, with scenarios of switches that are broken on purpose.

use std::path::{Path, PathBuf};

use super::tree::shrink;
use super::{BOUNDS, Bounds, Shrinks, Smaller, Step, render, search};
use crate::config;
use crate::mutant::{self, Mutant};
use crate::sim::outcome::{Outcome, Violation};
use crate::sim::scenario::{self, Options, Written};
use crate::sim::spec::Scenario;

const TOR: &str = "preset: roce\nports: [{name: p*, count: 8, speed: 10G}]\nbuffer: {size: 2MiB}\n";
const INCAST: &str = "\
name: many at once
duration: 2ms
switches: [{name: tor, file: tor.yaml, poll: {jitter: 500ns}}]
hosts: [{name: h*, count: 8, at: tor.p*}]
flows:
  - {from: [h1, h2, h3, h4, h5], to: h8}
  - {from: h6, to: h7, kind: udp, frame: imix}
faults: [{at: 100us, for: 10us, storm: h7}]
variants:
  - {name: slow, flows: [{from: h1, to: h2, rate: 1G}]}
  - {name: as it is}
";

/// Writes [`INCAST`] to a directory of its own.
fn incast() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.yaml");
    std::fs::write(&path, INCAST).unwrap();
    std::fs::write(dir.path().join("tor.yaml"), TOR).unwrap();
    (dir, path)
}

fn violation_of(scenario: &Scenario) -> Option<Violation> {
    crate::sim::run(scenario, &mut |_| {}).violation
}

fn read(yaml: &str) -> Scenario {
    let scenarios = scenario::parse("smaller.yaml", yaml, None, &Options::default());
    scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1
}

/// Returns the violation that `mutant` causes in the variant `as it is`, and the smaller scenario.
fn found(path: &Path, mutant: Mutant, options: &Options) -> (Violation, Option<Smaller>) {
    let written = Written::read(path).unwrap();
    let scenarios = written.parse(options).unwrap_or_else(|errors| panic!("{errors}"));
    let (variant, scenario) = &scenarios[1];
    mutant::with(mutant, || {
        let violation = violation_of(scenario).expect("the mutant is seen");
        let smaller = shrink(&written, options, variant, &violation, &mut |_| {});
        (violation, smaller)
    })
}

#[test]
fn scenario_shrinks_to_one_file_with_the_same_violation() {
    let (_dir, path) = incast();
    let (violation, smaller) = found(&path, Mutant::ReleaseOrder, &Options { seed: Some(3) });
    let smaller = smaller.expect("half of it has nothing to do with it");
    println!("{}", smaller.yaml);
    let scenario = read(&smaller.yaml);
    assert_eq!((violation.invariant, smaller.violation.invariant), ("release_order", "release_order"));
    assert!(scenario.hosts.len() <= 5 && scenario.flows.len() <= 4 && scenario.faults.is_empty(), "{}", smaller.yaml);
    assert!(scenario.duration.0 < 2_000_000 && smaller.yaml.lines().count() < 30, "{}", smaller.yaml);
    assert!(!smaller.yaml.contains("variants") && !smaller.yaml.contains("file"), "{}", smaller.yaml);
    assert_eq!(mutant::with(Mutant::ReleaseOrder, || violation_of(&scenario)), Some(smaller.violation));
    assert_eq!(violation_of(&scenario), None);
}

#[test]
fn shrinking_a_scenario_twice_gives_equal_results() {
    let (_dir, path) = incast();
    let one = found(&path, Mutant::XonTooEarly, &Options::default());
    assert!(one.1.is_some());
    assert_eq!(one, found(&path, Mutant::XonTooEarly, &Options::default()));
}

#[test]
fn shrunk_scenario_does_not_shrink_again() {
    let (_dir, path) = incast();
    let (violation, smaller) = found(&path, Mutant::ReleaseOrder, &Options::default());
    let smaller = smaller.unwrap();
    std::fs::write(&path, &smaller.yaml).unwrap();
    let written = Written::read(&path).unwrap();
    let again = |violation: &Violation| {
        mutant::with(Mutant::ReleaseOrder, || shrink(&written, &Options::default(), "", violation, &mut |_| {}))
    };
    assert_eq!(again(&smaller.violation), None);
    // No candidate violates an invariant that holds.
    assert_eq!(again(&Violation { invariant: "frames_in_order", ..violation }), None);
}

/// A number of hosts of which every run violates the invariant `few`; it shrinks to two.
#[derive(Debug, Clone, PartialEq)]
struct Hosts(usize);

impl Shrinks for Hosts {
    const STEPS: &'static [Step<Self>] = &[|hosts, place, _| (place == 0 && hosts.0 > 2).then(|| Hosts(hosts.0 - 1))];

    fn settle(&mut self) -> Option<(String, Scenario)> {
        let yaml = format!(
            "duration: 1ms\nswitches: [{{name: tor, config: {{ports: [{{name: p*, count: {0}, speed: 10G}}]}}}}]\n\
             hosts: [{{name: h*, count: {0}, at: tor.p*}}]\nflows: [{{from: all, to: all}}]\n",
            self.0
        );
        let scenario = read(&yaml);
        Some((yaml, scenario))
    }

    fn judge(_: &Scenario, outcome: &Outcome) -> Option<Violation> {
        Some(Violation { invariant: "few", at_ps: 0, event: outcome.events, what: String::new() })
    }
}

#[test]
fn search_ends_at_its_bounds_of_runs_tries_or_events() {
    let violation = Violation { invariant: "few", at_ps: 0, event: 1_000_000, what: String::new() };
    let runs = |bounds| search(Hosts(12), &violation, bounds, &mut |_| {}).map_or(0, |found| found.runs);
    assert_eq!(runs(BOUNDS), 10, "to the end");
    assert_eq!(runs(Bounds { runs: 4, ..BOUNDS }), 4);
    assert_eq!(runs(Bounds { tries: 3, ..BOUNDS }), 3);
    assert_eq!(runs(Bounds { events: 1, ..BOUNDS }), 1, "one run is more than one event");
    assert_eq!(runs(Bounds { events: 0, ..BOUNDS }), 0);
}

#[test]
fn shrinking_bounds_the_events_of_a_candidate() {
    // The first run took one event.
    let violation = Violation { invariant: "few", at_ps: 0, event: 1, what: String::new() };
    let found = search(Hosts(12), &violation, Bounds { runs: 1, ..BOUNDS }, &mut |_| {}).unwrap();
    assert_eq!(found.violation.event, 10_004);
}

#[test]
fn last_candidate_runs_within_the_remaining_event_bound() {
    let violation = Violation { invariant: "few", at_ps: 0, event: 1_000_000, what: String::new() };
    let first = search(Hosts(12), &violation, Bounds { runs: 1, ..BOUNDS }, &mut |_| {}).unwrap().violation.event;
    let found = search(Hosts(12), &violation, Bounds { events: first + 500, ..BOUNDS }, &mut |_| {}).unwrap();
    assert_eq!((found.runs, found.violation.event), (2, 500));
}

#[test]
fn progress_is_reported_for_candidates_that_the_reader_refuses() {
    let (_dir, path) = incast();
    let written = Written::read(&path).unwrap();
    let scenarios = written.parse(&Options::default()).unwrap();
    // If two consecutive reports have the same number of runs, the reader refused the second candidate.
    let mut progress = Vec::new();
    mutant::with(Mutant::ReleaseOrder, || {
        let violation = violation_of(&scenarios[1].1).unwrap();
        shrink(&written, &Options::default(), &scenarios[1].0, &violation, &mut |runs| progress.push(runs))
    });
    assert!(progress.windows(2).any(|pair| pair[0] == pair[1]), "{progress:?}");
}

/// The examples, rewritten into a single file each, are read as the same scenarios.
#[test]
fn rendered_scenario_is_read_back_unchanged() {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let everything = [dir.join("crates/sim/src/sim/scenario/tests/everything.yaml")];
    let examples = std::fs::read_dir(dir.join("conf/sim")).unwrap().map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for path in examples.filter(|path| !path.ends_with("tor-400g.yaml")).chain(everything) {
        let written = Written::read(&path).unwrap();
        let scenarios = written.parse(&Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
        for (variant, scenario) in scenarios.into_iter().take(3) {
            let text = render::yaml(&written.whole(&variant).unwrap());
            let again = read(&text);
            let shown = |of: Scenario| {
                let [source, name, variant] = [const { String::new() }; 3];
                format!("{:#?}", Scenario { source, name, variant, files: Vec::new(), warnings: Vec::new(), ..of })
            };
            let (scenario, again) = (shown(scenario), shown(again));
            let lines = scenario.lines().zip(again.lines());
            let differs =
                lines.filter(|(one, _)| !one.trim().starts_with("source: ")).find(|(one, other)| one != other);
            assert!(differs.is_none(), "{}: {variant}: {differs:?} in\n{text}", path.display());
            assert_eq!(scenario.lines().count(), again.lines().count(), "{}: {variant}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn ambiguous_yaml_strings_are_quoted() {
    let text = "a: 'null'\nb: '*x'\nc: \"say \\\"so\\\"\\n: [\"\nd: ''\ne: 02:00:00:00:00:99\nf: -1\ng: ~\n'h i': [{}, [], 1.50]\n";
    let tree = config::tree("x", text).unwrap();
    let rendered = render::yaml(&tree);
    assert_eq!(
        rendered,
        "a: \"null\"\nb: \"*x\"\nc: \"say \\\"so\\\"\\n: [\"\nd: \"\"\ne: \"02:00:00:00:00:99\"\nf: \"-1\"\ng: null\n\"h i\": [{}, [], 1.50]\n"
    );
    assert_eq!(render::yaml(&config::tree("x", &rendered).unwrap()), rendered);
}
