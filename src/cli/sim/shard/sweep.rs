//! A sweep: the undivided command. Shards of equal sweeps belong together.

use std::fs;
use std::path::{Path, PathBuf};

use holdfast::sim::scenario::Written;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Shard;
use crate::cli::Failure;
use crate::cli::sim::Format;
use crate::cli::sim::files::reason;

/// The runs that were asked for, and all that affects their output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    Random(RandomSweep),
    Scenario(ScenarioSweep),
}

/// Random fabrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSweep {
    /// The first seed.
    pub seed: u64,
    /// Number of fabrics.
    pub count: u64,
}

/// The variants of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSweep {
    /// Path of the scenario.
    pub scenario: String,
    /// Fingerprint of the scenario and of its configurations.
    pub content: String,
    pub seed: Option<u64>,
    /// The selected variants; empty: all.
    pub variant: Vec<String>,
    /// Number of variants that are run.
    pub runs: u64,
    pub format: Format,
    pub all: bool,
    pub fail_on_loss: bool,
}

impl Sweep {
    /// Returns the number of fabrics or variants.
    pub fn len(&self) -> u64 {
        match self {
            Sweep::Random(random) => random.count,
            Sweep::Scenario(scenario) => scenario.runs,
        }
    }

    /// Returns the command that runs a shard.
    pub fn command(&self, shard: Shard, results: &Path) -> String {
        let mut command = "holdfast sim".to_owned();
        let mut add = |words: &[&str]| {
            for word in words {
                command += &format!(" {}", shell(word));
            }
        };
        match self {
            Sweep::Random(RandomSweep { seed, count }) => {
                add(&["--random", "--seed", &seed.to_string(), "--count", &count.to_string()]);
            }
            Sweep::Scenario(of) => {
                add(&[&of.scenario]);
                of.seed.iter().for_each(|seed| add(&["--seed", &seed.to_string()]));
                of.variant.iter().for_each(|variant| add(&["--variant", variant]));
                if of.format != Format::Table {
                    add(&["--format", of.format.name()]);
                }
                let options = [("--all", of.all), ("--fail-on-loss", of.fail_on_loss)];
                options.iter().filter(|(_, is_set)| *is_set).for_each(|(option, _)| add(&[option]));
            }
        }
        let Shard { index, count } = shard;
        add(&["--shard", &format!("{index}/{count}"), "--results", &results.to_string_lossy()]);
        command
    }

    /// Describes the first difference to another sweep.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        let [own, other] = [self, other].map(fields);
        if own.get("random").is_some() != other.get("random").is_some() {
            return Some("one is of random fabrics, the other of a scenario".to_owned());
        }
        let fields = |value: &Value| value.as_object().and_then(|kinds| kinds.values().next()).cloned();
        let (own, other) = (fields(&own)?, fields(&other)?);
        let names = own.as_object()?.keys().find(|name| own[*name] != other[*name]);
        names.map(|name| format!("its `{name}` is {}, not {}", own[name], other[name]))
    }
}

fn fields(sweep: &Sweep) -> Value {
    serde_json::to_value(sweep).unwrap_or_default()
}

/// Returns a word as a shell reads it.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns a fingerprint of the scenario's text and of its configurations (64-bit FNV-1a). It finds files that differ
/// by mistake.
pub fn fingerprint<'a>(written: &Written, files: impl Iterator<Item = &'a PathBuf>) -> Result<String, Failure> {
    let mut hash = fnv(0xcbf2_9ce4_8422_2325, written.text().as_bytes());
    let mut seen = Vec::new();
    for file in files {
        if seen.contains(&file) {
            continue;
        }
        seen.push(file);
        let cannot = |error| Failure::usage(format!("{}: cannot be read: {}", file.display(), reason(&error)));
        let content = fs::read(file).map_err(cannot)?;
        // A zero byte, which no text contains, separates the files.
        hash = fnv(fnv(hash, &[0]), &content);
    }
    Ok(format!("{hash:016x}"))
}

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> Sweep {
        Sweep::Random(RandomSweep { seed: 7, count: 200 })
    }

    fn scenario() -> ScenarioSweep {
        ScenarioSweep {
            scenario: "it's.yaml".into(),
            content: "0".to_owned(),
            seed: Some(3),
            variant: vec!["a b".to_owned()],
            runs: 2,
            format: Format::Json,
            all: true,
            fail_on_loss: true,
        }
    }

    #[test]
    fn command_of_a_shard_repeats_every_option_quoted_for_a_shell() {
        let shard = Shard { index: 3, count: 16 };
        assert_eq!(
            random().command(shard, Path::new("out")),
            "holdfast sim --random --seed 7 --count 200 --shard 3/16 --results out"
        );
        let whole = Sweep::Scenario(scenario());
        assert_eq!(
            whole.command(shard, Path::new("a dir")),
            r"holdfast sim 'it'\''s.yaml' --seed 3 --variant 'a b' --format json --all --fail-on-loss --shard 3/16 --results 'a dir'"
        );
        let plain = ScenarioSweep {
            seed: None,
            variant: Vec::new(),
            format: Format::Table,
            all: false,
            fail_on_loss: false,
            ..scenario()
        };
        let command = Sweep::Scenario(plain).command(shard, Path::new("out"));
        assert_eq!(command, r"holdfast sim 'it'\''s.yaml' --shard 3/16 --results out");
    }

    #[test]
    fn difference_names_the_field_and_both_values() {
        assert_eq!(random().difference(&random()), None);
        let more = Sweep::Random(RandomSweep { seed: 7, count: 300 });
        assert_eq!(random().difference(&more).unwrap(), "its `count` is 200, not 300");
        let whole = Sweep::Scenario(scenario());
        assert_eq!(random().difference(&whole).unwrap(), "one is of random fabrics, the other of a scenario");
        let csv = Sweep::Scenario(ScenarioSweep { format: Format::Csv, ..scenario() });
        assert_eq!(csv.difference(&whole).unwrap(), "its `format` is \"csv\", not \"json\"");
    }

    #[test]
    fn fingerprint_changes_with_the_scenario_and_with_each_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let written = |text: &str| Written::read(&at("x.yaml", text)).unwrap();
        let (one, two) = (written("a: 1\n"), written("a: 2\n"));
        let (tor, spine) = (at("tor.yaml", "b: 1\n"), at("spine.yaml", "b: 2\n"));
        let of = |written: &Written, files: &[&PathBuf]| fingerprint(written, files.iter().copied()).unwrap();
        let known = [of(&one, &[]), of(&two, &[]), of(&one, &[&tor]), of(&one, &[&spine]), of(&one, &[&tor, &spine])];
        let distinct: std::collections::BTreeSet<&String> = known.iter().collect();
        assert_eq!(distinct.len(), known.len(), "{known:?}");
        assert_eq!(of(&one, &[&tor, &tor]), known[2], "each file counts once");
        let Err(Failure::Usage(text)) = fingerprint(&one, [dir.path().join("none")].iter()) else { panic!() };
        assert!(text.contains("none: cannot be read: "), "{text}");
    }
}
