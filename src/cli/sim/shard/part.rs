//! The result of a shard as a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use holdfast::sim::outcome::Violation;
use holdfast::sim::random::Totals;
use serde::{Deserialize, Serialize};

use super::found::Found;
use super::random::RandomFailure;
use super::rows::Rows;
use super::verdict::Reason;
use super::{Failure, Shard, Sweep};
use crate::cli::sim::files::{self, Output};

/// Maximum size of a file, so that merging takes bounded memory. Rows with all samples are the largest.
const MOST_BYTES: u64 = 1 << 30;

/// A result with all that says where it belongs. It has no time and no name of a machine: a shard that runs again
/// writes equal bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Version of the program.
    pub version: String,
    pub shard: u64,
    pub shards: u64,
    pub sweep: Sweep,
    pub result: Part,
}

/// The version alone, which each version can read.
#[derive(Deserialize)]
struct Head {
    version: String,
}

/// The result of a shard.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// Totals of random fabrics, of which all held.
    Totals(Totals),
    /// The first random fabric that violated an invariant.
    Failure(RandomFailure),
    /// Rows of variants, and the first failure among them.
    Variants { rows: Rows, failure: Option<VariantFailure> },
}

/// Reason for which a variant makes the command fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum VariantFailure {
    /// An invariant was violated.
    Violated { seed: u64, sentence: String, smaller: Option<Found> },
    /// The run was given up; a sentence.
    TooManyEvents(String),
    /// A lossless class lost a frame or starved, which `--fail-on-loss` forbids.
    Lost,
}

impl VariantFailure {
    /// Returns the failure of a run with this seed. `smaller` searches for a smaller scenario with the violation.
    pub fn new(seed: u64, reason: Reason<'_>, smaller: impl FnOnce(&Violation) -> Option<Found>) -> Self {
        match reason {
            Reason::Violated { violation, sentence } => Self::Violated { seed, sentence, smaller: smaller(violation) },
            Reason::TooManyEvents(sentence) => Self::TooManyEvents(sentence),
            Reason::Lost => Self::Lost,
        }
    }
}

impl Part {
    /// Describes the failure in a sentence; `None`: the shard has none.
    pub fn failure(&self) -> Option<String> {
        match self {
            Part::Totals(_) | Part::Variants { failure: None, .. } => None,
            Part::Failure(failure) => Some(failure.sentence()),
            Part::Variants { failure: Some(failure), .. } => Some(match failure {
                VariantFailure::Violated { sentence, .. } | VariantFailure::TooManyEvents(sentence) => sentence.clone(),
                VariantFailure::Lost => "a lossless class lost frames or starved".to_owned(),
            }),
        }
    }

    /// Whether the result is that of `share` items of `sweep`. A random search ends at its first failure.
    fn fits(&self, sweep: &Sweep, share: u64) -> bool {
        match (self, sweep) {
            (Part::Totals(totals), Sweep::Random(_)) => totals.fabrics == share,
            (Part::Failure(_), Sweep::Random(_)) => share > 0,
            (Part::Variants { rows, .. }, Sweep::Scenario(of)) => rows.len() as u64 == share && rows.is(of.format),
            _ => false,
        }
    }
}

/// Returns the name of a shard's file.
pub fn name(shard: Shard) -> String {
    let Shard { index, count } = shard;
    format!("shard-{index}-of-{count}.json")
}

/// The file that a shard is going to write.
pub struct Writer {
    path: PathBuf,
    shard: Shard,
    sweep: Sweep,
}

impl Writer {
    /// Creates the directory. A directory in which no file can be created is reported before the long run.
    pub fn new(dir: &Path, shard: Shard, sweep: Sweep) -> Result<Self, Failure> {
        files::make_dir(dir)?;
        let path = dir.join(name(shard));
        drop(Output::open(&path).map_err(|error| files::failed("file", &path, &error))?);
        Ok(Self { path, shard, sweep })
    }

    /// Writes the result. Until it is complete, the file has another name. Returns a sentence about it. A failure is
    /// part of the result, so that engines do not run the shard again.
    pub fn write(self, result: Part) -> Result<String, Failure> {
        let Shard { index, count } = self.shard;
        let share = self.shard.range(self.sweep.len());
        let items = match self.sweep {
            Sweep::Random(_) => super::random::counted(share.end - share.start, "random fabric"),
            Sweep::Scenario(_) => super::random::counted(share.end - share.start, "variant"),
        };
        let held = result.failure().unwrap_or_else(|| "no failure".to_owned());
        let version = holdfast::build::VERSION.to_owned();
        let file = File { version, shard: index, shards: count, sweep: self.sweep, result };
        let text = serde_json::to_string_pretty(&file);
        let text = text.map_err(|error| Failure::Run(format!("the result cannot be written: {error}")))?;
        files::write(&self.path, &(text + "\n"))?;
        Ok(format!("shard {index}/{count}: {items}, {held}; written to {}\n", self.path.display()))
    }
}

/// Reads a result, and checks that it is whole, of this program and under its own name.
pub fn read(path: &Path) -> Result<File, String> {
    let shown = path.display();
    let cannot = |error: io::Error| format!("{shown}: cannot be read: {}", files::reason(&error));
    let bytes = fs::metadata(path).map_err(cannot)?.len();
    if bytes > MOST_BYTES {
        return Err(format!("{shown}: {bytes} bytes are too many for the result of a shard; write more shards"));
    }
    let text = fs::read_to_string(path).map_err(cannot)?;
    let file: File = serde_json::from_str(&text).map_err(|error| refused(path, &text, &error))?;
    check_version(path, &file.version)?;
    let shard = Shard { index: file.shard, count: file.shards };
    if path.file_name().is_none_or(|of| of != name(shard).as_str()) {
        return Err(format!("{shown}: the content is that of {}; rename the file, or remove it", name(shard)));
    }
    let is_shard = shard.index < shard.count && shard.count <= super::MOST_SHARDS;
    let share = is_shard.then(|| shard.range(file.sweep.len()));
    if share.is_none_or(|share| !file.result.fits(&file.sweep, share.end - share.start)) {
        return Err(format!("{shown}: the result is not that of its share; run the shard again"));
    }
    Ok(file)
}

/// Describes why a text is not a result: the version of another program, or the place of the mistake.
fn refused(path: &Path, text: &str, error: &serde_json::Error) -> String {
    if let Ok(head) = serde_json::from_str::<Head>(text)
        && let Err(message) = check_version(path, &head.version)
    {
        return message;
    }
    let (line, column, message) = (error.line(), error.column(), error.to_string());
    let what = message.split(" at line ").next().unwrap_or_default();
    let remedy = "remove the file, or run its shard again";
    format!("{}:{line}:{column}: not the result of a shard: {what}; {remedy}", path.display())
}

/// Results of another version are refused: its numbers and tables may differ.
fn check_version(path: &Path, version: &str) -> Result<(), String> {
    let own = holdfast::build::VERSION;
    if version == own {
        return Ok(());
    }
    let remedy = "merge with the version that ran the shards";
    Err(format!("{}: written by holdfast {version}, and this is {own}; {remedy}", path.display()))
}
