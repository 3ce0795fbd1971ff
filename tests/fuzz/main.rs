//! The inputs that fuzzing has kept, each to its target. `make fuzz` looks for more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;

mod targets;

use targets::TARGETS;

fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/corpus"))
}

/// Also each beginning of an input, of which AFL++ tries only some.
#[test]
fn kept_inputs_and_their_beginnings_cause_no_panic() {
    for (name, target) in TARGETS {
        let directory = corpus().join(name);
        let files = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let mut count = 0;
        for file in files {
            let path = file.expect("a file").path();
            let input = fs::read(&path).expect("a file");
            let step = input.len() / 64 + 1;
            let ends = (0..input.len()).step_by(step).chain([input.len()]);
            for end in ends {
                let result = catch_unwind(|| target(&input[..end]));
                assert!(result.is_ok(), "{name}: the first {end} bytes of {}", path.display());
            }
            count += 1;
        }
        assert!(count > 0, "{name} has inputs");
    }
}

#[test]
fn each_directory_of_inputs_has_a_target() {
    for file in fs::read_dir(corpus()).expect("a directory") {
        let name = file.expect("a file").file_name();
        assert!(TARGETS.iter().any(|(target, _)| name == *target), "{name:?}");
    }
}

/// Returns the versions of each crate of a lock file, whose path begins at the root of the repository.
fn locked(path: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a lock file");
    let mut crates: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for package in text.split("[[package]]\n").skip(1) {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix('"'));
        let name = value("name = \"").expect("a name");
        crates.entry(name.to_owned()).or_default().insert(value("version = \"").expect("a version").to_owned());
    }
    crates
}

#[test]
fn fuzzed_targets_are_built_from_the_versions_of_the_workspace() {
    let workspace = locked("Cargo.lock");
    let fuzzed = locked("tests/fuzz/afl/Cargo.lock");
    assert!(fuzzed.contains_key("holdfast") && fuzzed.contains_key("serde"), "{fuzzed:?}");
    // A lock file without a crate of Holdfast is refused by `--locked`.
    let built = |name: &&String| !["holdfast-loom", "holdfast-dpdk", "holdfast-control"].contains(&name.as_str());
    let own = workspace.keys().filter(|name| name.starts_with("holdfast")).filter(built);
    let missing: Vec<_> = own.filter(|name| !fuzzed.contains_key(*name)).collect();
    assert!(missing.is_empty(), "no {missing:?} for AFL++: cp Cargo.lock tests/fuzz/afl/, and cargo update as below");
    for (name, versions) in &fuzzed {
        let expected = workspace.get(name).unwrap_or(versions);
        assert!(
            versions.is_subset(expected),
            "{name}: {versions:?} for AFL++, {expected:?} in the workspace. To take the workspace's versions: \
             cp Cargo.lock tests/fuzz/afl/; cargo update --workspace --manifest-path tests/fuzz/afl/Cargo.toml"
        );
    }
}
