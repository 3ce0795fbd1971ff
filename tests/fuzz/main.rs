//! The inputs that fuzzing has kept, each to its target. `make fuzz` looks for more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

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

/// A package of a lock file.
struct Locked {
    name: String,
    version: String,
    /// Names of the packages that it needs.
    needs: BTreeSet<String>,
}

/// Returns the packages of a lock file, whose path begins at the root of the repository.
fn packages(path: &str) -> Vec<Locked> {
    let text = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a lock file");
    let package = |text: &str| {
        let value =
            |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix('"')).map(str::to_owned);
        // A name that has several versions is followed by one.
        let needed = |line: &str| Some(line.strip_prefix(" \"")?.split(['"', ' ']).next()?.to_owned());
        let needs = text.lines().filter_map(needed).collect();
        Locked { name: value("name = \"").expect("a name"), version: value("version = \"").expect("a version"), needs }
    };
    text.split("[[package]]\n").skip(1).map(package).collect()
}

/// Returns the versions of each crate of a lock file.
fn locked(path: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut crates: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for package in packages(path) {
        crates.entry(package.name).or_default().insert(package.version);
    }
    crates
}

const UPDATE: &str =
    "cp Cargo.lock tests/fuzz/afl/; cargo update --workspace --manifest-path tests/fuzz/afl/Cargo.toml";

#[test]
fn fuzzed_targets_are_built_from_the_versions_of_the_workspace() {
    let workspace = locked("Cargo.lock");
    let fuzzed = locked("tests/fuzz/afl/Cargo.lock");
    assert!(fuzzed.contains_key("holdfast") && fuzzed.contains_key("serde"), "{fuzzed:?}");
    // A lock file without a crate of Holdfast is refused by `--locked`.
    let built = |name: &&String| !["holdfast-loom", "holdfast-dpdk", "holdfast-control"].contains(&name.as_str());
    let own = workspace.keys().filter(|name| name.starts_with("holdfast")).filter(built);
    let missing: Vec<_> = own.filter(|name| !fuzzed.contains_key(*name)).collect();
    assert!(missing.is_empty(), "no {missing:?} for AFL++: {UPDATE}");
    for (name, versions) in &fuzzed {
        let expected = workspace.get(name).unwrap_or(versions);
        assert!(
            versions.is_subset(expected),
            "{name}: {versions:?} for AFL++, {expected:?} in the workspace. To take the workspace's versions: {UPDATE}"
        );
    }
}

/// A lock file that does not agree with the manifests is refused by `--locked`, which `make fuzz` would be the first
/// to tell.
#[test]
fn lock_file_for_afl_agrees_with_the_manifests() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output =
        Command::new(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON of cargo");
    let members = metadata["packages"].as_array().expect("packages");
    let mut compared = 0;
    for package in packages("tests/fuzz/afl/Cargo.lock") {
        let Some(member) = members.iter().find(|member| member["name"] == *package.name) else { continue };
        let built =
            member["dependencies"].as_array().expect("dependencies").iter().filter(|needed| needed["kind"] != "dev");
        let names = |optional| {
            let wanted = built.clone().filter(move |needed| optional || needed["optional"] == false);
            wanted.map(|needed| needed["name"].as_str().expect("a name").to_owned()).collect::<BTreeSet<_>>()
        };
        let name = &package.name;
        let (required, possible) = (names(false), names(true));
        assert!(
            required.is_subset(&package.needs),
            "{name} needs {required:?}, locked are {:?}: {UPDATE}",
            package.needs
        );
        assert!(
            package.needs.is_subset(&possible),
            "{name} needs {possible:?}, locked are {:?}: {UPDATE}",
            package.needs
        );
        compared += 1;
    }
    assert!(compared >= 10, "{compared} crates of the workspace are fuzzed");
}
