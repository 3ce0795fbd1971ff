//! Writes a scenario that violates an invariant to a file, so that it can be run again.

use std::path::{Path, PathBuf};

use holdfast::sim::outcome::Violation;
use serde::{Deserialize, Serialize};

use super::claims::Claims;
use super::files;

/// The smallest scenario found that causes a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// Runs that shrinking took.
    runs: u32,
    /// Time of the violation in the smallest scenario.
    at_ps: u64,
    /// Number of the event after which it was found.
    event: u64,
    /// A sentence with the place and the numbers.
    what: String,
    /// Text of the scenario.
    yaml: String,
}

impl Found {
    /// Returns the scenario that `runs` runs have found, with its violation.
    pub fn new(yaml: String, violation: &Violation, runs: u32) -> Self {
        let Violation { at_ps, event, what, .. } = violation;
        Self { runs, at_ps: *at_ps, event: *event, what: what.clone(), yaml }
    }
}

/// The default file for a scenario of `seed`.
pub fn default_path(seed: u64) -> PathBuf {
    PathBuf::from(format!("holdfast-found-{seed}.yaml"))
}

/// The default path, or a numbered one if this run reads or writes that file: the scenario of this run may itself be an
/// earlier finding.
pub fn free_path(seed: u64, claims: &mut Claims) -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("holdfast-found-{seed}-{number}.yaml")));
    let mut paths = std::iter::once(default_path(seed)).chain(numbered);
    paths.find(|path| claims.write(path, "--out").is_ok()).unwrap_or_else(|| default_path(seed))
}

/// Describes a violation: invariant, time, event and sentence.
pub fn describe(violation: &Violation) -> String {
    let Violation { invariant, at_ps, event, what } = violation;
    format!("{invariant} is violated at {} ns, event {event}: {what}", at_ps / 1000)
}

/// Writes the scenario. Returns a text with its path and its violation.
pub fn keep(path: &Path, found: &Found) -> String {
    let Found { runs, at_ps, event, what, yaml } = found;
    let text = match files::write(path, yaml) {
        Ok(()) => format!("shrunk in {runs} runs; reproduce it with: holdfast sim {}", path.display()),
        // If the file cannot be written, the text contains the scenario, so it is not lost.
        Err(_) => format!("{} cannot be written; the scenario:\n{yaml}", path.display()),
    };
    format!("{text}\nin the smaller scenario at {} ns, event {event}: {what}", at_ps / 1000)
}

/// Writes the scenario, if a smaller one was found. Returns a text about it.
pub fn text(smaller: Option<&Found>, path: &Path) -> String {
    smaller.map_or_else(|| "no smaller scenario with this violation was found".to_owned(), |found| keep(path, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "duration: 1us\n";

    fn violation() -> Violation {
        Violation { invariant: "release_order", at_ps: 7_000, event: 12, what: "h1 was first".to_owned() }
    }

    fn keep_in(path: &Path) -> String {
        keep(path, &Found::new(YAML.to_owned(), &violation(), 3))
    }

    #[test]
    fn found_scenario_is_saved_and_described() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("found.yaml");
        let text = keep_in(&path);
        assert_eq!(
            text,
            format!(
                "shrunk in 3 runs; reproduce it with: holdfast sim {}\nin the smaller scenario at 7 ns, event 12: h1 \
                 was first",
                path.display()
            )
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), YAML);
        assert_eq!(describe(&violation()), "release_order is violated at 7 ns, event 12: h1 was first");
    }

    #[test]
    fn free_path_avoids_the_scenario_being_read() {
        let mut claims = Claims::default();
        claims.read(Path::new("holdfast-found-7.yaml"), "the scenario");
        assert_eq!(free_path(7, &mut claims), Path::new("holdfast-found-7-2.yaml"));
        assert_eq!(free_path(8, &mut claims), Path::new("holdfast-found-8.yaml"));
    }

    #[test]
    fn found_scenario_is_printed_if_the_disk_is_full() {
        let text = keep_in(Path::new("/dev/full"));
        assert!(text.starts_with("/dev/full cannot be written; the scenario:\nduration: 1us\n"), "{text}");
        assert!(text.ends_with("\nin the smaller scenario at 7 ns, event 12: h1 was first"), "{text}");
    }
}
