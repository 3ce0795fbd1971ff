//! `holdfast sim merge`: the output of the undivided run, from the results of its shards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use holdfast::sim::random::Totals;

use super::part::{self, File, Part, VariantFailure};
use super::rows::Rows;
use super::{Failure, Shard, Sweep, found, random};
use crate::cli::print;
use crate::cli::sim::claims::Claims;
use crate::cli::sim::files::reason;

/// Maximum number of wrong files, and of commands for missing shards, that are listed.
const MOST_LINES: usize = 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory with the results of all shards
    dir: PathBuf,
    /// File for the smallest scenario found that violates the invariant [default: holdfast-found-SEED.yaml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn merge(args: &Args) -> Result<(), Failure> {
    let mut claims = Claims::default();
    let files = read(&args.dir, &mut claims).map_err(Failure::usage)?;
    if let Some(out) = &args.out {
        claims.write(out, "--out")?;
    }
    let Merged { sweep, parts } = Merged::new(files, &args.dir).map_err(Failure::usage)?;
    match sweep {
        Sweep::Random(sweep) => {
            let totals = totals(parts).map_err(|failed| failed.keep(args.out.as_deref()))?;
            print(&random::summary(sweep.seed, &totals))
        }
        Sweep::Scenario(sweep) => {
            claims.read(Path::new(&sweep.scenario), "the scenario");
            let (rows, failure) = rows(parts);
            rows.map_or(Ok(()), Rows::print)?;
            failure.map_or(Ok(()), |failure| Err(failed(failure, args, &mut claims)))
        }
    }
}

/// Reads every result of a directory, in the order of the shards. Files of other types may be there, such as logs.
///
/// # Errors
/// A line for each wrong file.
pub fn read(dir: &Path, claims: &mut Claims) -> Result<Vec<(PathBuf, File)>, String> {
    let cannot = |error: io::Error| format!("{}: cannot be read: {}", dir.display(), reason(&error));
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(format!(
            "{} has no results of shards; write some with: holdfast sim ... --shard I/N --results {}",
            dir.display(),
            dir.display()
        ));
    }
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        claims.read(&path, "the result");
        match part::read(&path) {
            Ok(file) => files.push((path, file)),
            Err(error) => errors.push(error),
        }
    }
    files.sort_by_key(|(_, file)| (file.shards, file.shard));
    if errors.is_empty() { Ok(files) } else { Err(bounded(errors)) }
}

/// Joins lines; beyond [`MOST_LINES`] it counts them.
fn bounded(mut lines: Vec<String>) -> String {
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("(and {more} more)"));
    }
    lines.join("\n")
}

/// The results of all shards of a sweep, in order.
pub struct Merged {
    pub sweep: Sweep,
    pub parts: Vec<Part>,
}

impl Merged {
    /// Checks that the files are all shards of one sweep.
    ///
    /// # Errors
    /// A file of another sweep, or the missing shards with the commands that run them.
    pub fn new(files: Vec<(PathBuf, File)>, dir: &Path) -> Result<Self, String> {
        let Some((first, head)) = files.first() else { return Err("there are no shards".to_owned()) };
        let (sweep, count) = (head.sweep.clone(), head.shards);
        let others = files.iter().filter_map(|(path, file)| {
            let difference = if file.shards == count {
                file.sweep.difference(&sweep)?
            } else {
                format!("it is one of {} shards, not of {count}", file.shards)
            };
            let (path, first) = (path.display(), first.display());
            Some(format!("{path}: of another sweep than {first}: {difference}; remove one of them"))
        });
        let others: Vec<String> = others.collect();
        if !others.is_empty() {
            return Err(bounded(others));
        }
        let present = |index: u64| files.binary_search_by_key(&index, |(_, file)| file.shard).is_ok();
        let missing: Vec<u64> = (0..count).filter(|index| !present(*index)).collect();
        if missing.is_empty() {
            return Ok(Self { sweep, parts: files.into_iter().map(|(_, file)| file.result).collect() });
        }
        let failure = files.iter().find_map(|(path, file)| Some((path, file.result.failure()?)));
        let found = failure.map(|(path, failure)| format!("{} has a failure: {failure}", path.display()));
        let head = format!(
            "{} of {count} shards missing in {}: {}; run each and merge again:",
            missing.len(),
            dir.display(),
            list(&missing)
        );
        let commands: Vec<String> =
            missing.iter().map(|index| sweep.command(Shard { index: *index, count }, dir)).collect();
        Err(found.into_iter().chain([head, bounded(commands)]).collect::<Vec<_>>().join("\n"))
    }
}

/// Lists numbers as the arrays of Slurm do: `3,7-9`.
pub fn list(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Adds the totals. The first failure in the order of seeds is the one of the undivided run.
pub fn totals(parts: Vec<Part>) -> Result<Totals, random::RandomFailure> {
    let mut all = Totals::default();
    for part in parts {
        match part {
            Part::Totals(totals) => all.merge(&totals),
            Part::Failure(failure) => return Err(failure),
            // A result of another kind does not fit its sweep and was refused.
            Part::Variants { .. } => {}
        }
    }
    Ok(all)
}

/// Joins the rows, and returns the first failure in the order of variants.
pub fn rows(parts: Vec<Part>) -> (Option<Rows>, Option<VariantFailure>) {
    let (mut all, mut first) = (None::<Rows>, None);
    for part in parts {
        let Part::Variants { rows, failure } = part else { continue };
        match &mut all {
            Some(all) => all.append(rows),
            None => all = Some(rows),
        }
        first = first.or(failure);
    }
    (all, first)
}

/// Reports a failure as the undivided run does.
fn failed(failure: VariantFailure, args: &Args, claims: &mut Claims) -> Failure {
    match failure {
        VariantFailure::Violated { seed, sentence, smaller } => {
            let path = args.out.clone().unwrap_or_else(|| found::free_path(seed, claims));
            Failure::Run(format!("{sentence}\n{}", found::text(smaller.as_ref(), &path)))
        }
        VariantFailure::TooManyEvents(sentence) => Failure::Run(sentence),
        VariantFailure::Lost => Failure::Reported(1),
    }
}
