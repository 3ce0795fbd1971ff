//! `holdfast sim`: runs scenarios in simulated time; docs/simulation.md.

mod claims;
mod files;
mod found;
mod hpcc;
mod interrupt;
mod progress;
mod random;
mod rows;
mod shard;
mod trace;
mod verdict;
mod warnings;

use std::path::{Path, PathBuf};

use holdfast::mmu::HpccRules;
use holdfast::sim;
use holdfast::sim::outcome::{Outcome, Samples};
use holdfast::sim::recording::Recording;
use holdfast::sim::report;
use holdfast::sim::scenario::{Options, Written};
use holdfast::sim::spec::Scenario;
use holdfast::units::Nanos;
use serde::{Deserialize, Serialize};

use self::claims::Claims;
use self::interrupt::First;
use self::progress::Progress;
use self::rows::Rows;
use self::shard::{Part, RandomSweep, ScenarioSweep, Shard, Sweep, VariantFailure, Writer};
use self::verdict::verdict;
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    /// Scenario file, e.g. conf/sim/incast.yaml
    scenario: Option<PathBuf>,
    /// Simulate random fabrics instead of a scenario until one violates an invariant: switches, hosts, cables, flows
    /// and faults are drawn from a seed, and every invariant is checked after each step
    #[arg(long, conflicts_with_all = ["scenario", "variant", "format", "all", "plots", "samples", "csv", "fail_on_loss"])]
    random: bool,
    /// Run the configuration of HPCC's simulator, with its topology and flows, and write its output files: docs/hpcc.md
    #[arg(long, value_name = "CONFIG", conflicts_with_all = ["scenario", "random", "variant", "trace", "csv", "out"])]
    hpcc: Option<PathBuf>,
    /// With --hpcc, rules of the buffer: `hpcc` for all of HPCC's simulator, names of some with commas between them, or
    /// `holdfast` for none: docs/mmu-rules.md [default: hpcc]
    #[arg(long, value_name = "RULES")]
    mmu: Option<HpccRules>,
    /// With --hpcc, sizes of reserves, headroom and thresholds: those of HPCC's simulator, or of the real switch
    /// [default: as --mmu]
    #[arg(long, value_name = "SIZES", value_enum)]
    mmu_sizes: Option<hpcc::Sizes>,
    /// Number of random fabrics [default: 10000 without --for]
    #[arg(long, value_parser = fabrics)]
    count: Option<u64>,
    /// Time limit for random fabrics, e.g. 10min
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Nanos>,
    /// File for the smallest scenario found that violates the invariant [default: holdfast-found-SEED.yaml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seed of all randomness, instead of the scenario's; with --random the first fabric's
    #[arg(long)]
    seed: Option<u64>,
    /// Run only this variant of the scenario; may be given several times
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Format of the output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// List every flow, variant and warning
    #[arg(long)]
    all: bool,
    /// Draw queues, pauses, throughput and completion times as SVG into this directory
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Write the samples of the plots as CSV into this file; with several variants, one file each: FILE-VARIANT.csv
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Write the tables of workloads as CSV into this directory: flows, slowdowns, PFC time, queues; docs/workloads.md
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Write a trace for `holdfast replay` into this file; with several variants, one file each, as with --samples
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Switch whose trace --trace writes, if there are several
    #[arg(long, value_name = "NAME")]
    trace_switch: Option<String>,
    /// Exit with 1 if a lossless class lost a frame or was starved
    #[arg(long)]
    fail_on_loss: bool,
    /// Run only shard I of N, counted from 0, of the random fabrics or of the variants; /N takes I from
    /// JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID: docs/sweeps.md
    #[arg(long, value_name = "I/N", conflicts_with_all = ALONE)]
    shard: Option<shard::Asked>,
    /// Directory for the result of the shard, for `holdfast sim merge`
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Threads of each run, which divide the switches with long cables; the output does not depend on their number
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["random", "trace"])]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Print no progress and no speed
    #[arg(long, short)]
    quiet: bool,
}

/// Options that a shard does not have: a search that ends by time differs from run to run, and each file would be that
/// of one shard.
const ALONE: [&str; 7] = ["hpcc", "time", "out", "plots", "samples", "csv", "trace"];

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Prints the output of the undivided run from the results of its shards
    Merge(shard::MergeArgs),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    Table,
    Json,
    Csv,
}

impl Format {
    /// Returns the word of the command line.
    fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Json => "json",
            Format::Csv => "csv",
        }
    }
}

/// A variant and the outcome of its run.
struct Run {
    variant: String,
    /// The variant as part of file names.
    file: String,
    scenario: Scenario,
    outcome: Outcome,
}

/// Reads a number of random fabrics.
fn fabrics(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("`{text}` is not a number of fabrics; write a whole number from 1 on"))
}

impl Args {
    /// Returns an error if there is nothing to simulate, or an option lacks the one that it belongs to. clap's own
    /// errors name no remedy.
    fn check(&self) -> Result<(), Failure> {
        // Whether the option is given, its name, whether the other one is given, the remedy.
        let needs = [
            (
                self.mmu.is_some(),
                "--mmu",
                self.hpcc.is_some(),
                "goes with --hpcc; remove it, or write `mmu: hpcc` at a switch of the scenario",
            ),
            (
                self.mmu_sizes == Some(hpcc::Sizes::Hpcc),
                "--mmu-sizes hpcc",
                self.mmu.is_none_or(|rules| !rules.is_empty()),
                "goes with rules of HPCC's simulator; remove it, or `--mmu holdfast`",
            ),
            (self.mmu_sizes.is_some(), "--mmu-sizes", self.hpcc.is_some(), "goes with --hpcc; remove it"),
            (self.count.is_some(), "--count", self.random, "goes with --random; write that too, or remove it"),
            (self.time.is_some(), "--for", self.random, "goes with --random; write that too, or remove it"),
            (
                self.trace_switch.is_some(),
                "--trace-switch",
                self.trace.is_some(),
                "goes with --trace; write `--trace FILE` too, or remove it",
            ),
            (
                self.shard.is_some(),
                "--shard",
                self.results.is_some(),
                "needs a directory for its result; write `--results DIR` too",
            ),
            (
                self.results.is_some(),
                "--results",
                self.shard.is_some(),
                "goes with --shard; write `--shard I/N` too, or remove it",
            ),
        ];
        if let Some((_, option, _, remedy)) = needs.iter().find(|(is_given, _, is_met, _)| *is_given && !is_met) {
            return Err(Failure::usage(format!("{option} {remedy}")));
        }
        if self.scenario.is_none() && self.hpcc.is_none() && !self.random {
            return Err(Failure::usage(
                "there is nothing to simulate; write a scenario such as conf/sim/incast.yaml, `--hpcc CONFIG` or \
                 `--random`",
            ));
        }
        Ok(())
    }

    fn shows_samples_in_json(&self) -> bool {
        self.format == Format::Json && self.all
    }

    fn shows_samples(&self) -> bool {
        self.plots.is_some() || self.samples.is_some() || self.shows_samples_in_json()
    }
}

pub fn sim(args: &Args) -> Result<(), Failure> {
    if let Some(Task::Merge(merge)) = &args.task {
        listen(First::Ends)?;
        return shard::merge(merge);
    }
    args.check()?;
    if let Some(config) = &args.hpcc {
        return hpcc::run(args, config);
    }
    let shard = args.shard.map(|asked| asked.shard(&|name| std::env::var(name).ok())).transpose()?;
    match (&args.scenario, shard.zip(args.results.as_deref())) {
        (Some(path), shard) => scenario(args, path, shard),
        (None, Some((shard, results))) => random_shard(args, shard, results),
        (None, None) => {
            listen(First::Asks)?;
            random::random(&random::Random {
                seed: args.seed.unwrap_or(1),
                count: args.count,
                time: args.time,
                out: args.out.clone(),
                quiet: args.quiet,
            })
        }
    }
}

/// Runs the shard's share of the random fabrics.
fn random_shard(args: &Args, shard: Shard, results: &Path) -> Result<(), Failure> {
    listen(First::Ends)?;
    let (seed, count) = (args.seed.unwrap_or(1), args.count.unwrap_or(random::DEFAULT_COUNT));
    let writer = Writer::new(results, shard, Sweep::Random(RandomSweep { seed, count }))?;
    let share = shard.range(count);
    let first = seed.wrapping_add(share.start);
    let (result, _) = random::run(first, Some(share.end - share.start), None, args.quiet);
    print(&writer.write(result.map_or_else(Part::Failure, Part::Totals))?)
}

/// Runs the variants of a scenario, or the shard's share of them.
fn scenario(args: &Args, path: &Path, shard: Option<(Shard, &Path)>) -> Result<(), Failure> {
    listen(First::Ends)?;
    let options = Options { seed: args.seed };
    let written = Written::read(path).map_err(Failure::usage)?;
    let scenarios = written.parse(&options).map_err(Failure::usage)?;
    let mut claims = Claims::default();
    claims.read(path, "the scenario");
    for file in scenarios.iter().flat_map(|(_, scenario)| &scenario.files) {
        claims.read(file, "the configuration");
    }
    let mut scenarios = chosen(scenarios, &args.variant)?;
    if args.csv.is_some() && scenarios.iter().all(|(_, scenario)| scenario.workloads.is_empty()) {
        let remedy = "write `workloads`, or use --samples or --format csv";
        return Err(Failure::usage(format!("--csv: the scenario has no workloads, whose flows it writes; {remedy}")));
    }
    let columns = scenarios.first().map(|(_, scenario)| scenario.columns.clone()).unwrap_or_default();
    let share = |(shard, results)| share(args, path, &written, &mut scenarios, shard, results);
    let writer = shard.map(share).transpose()?;
    let warnings = scenarios.iter().flat_map(|(_, scenario)| &scenario.warnings);
    warnings::print(warnings, args.all);
    let runs = run(args, scenarios, &mut claims)?;
    if let Some(writer) = writer {
        return print(&writer.write(part(args, &written, &columns, &runs))?);
    }
    show(args, &runs)?;
    let drawn = draw_comparison(args, &runs, &mut claims);
    let mut report = |text: &str| {
        Failure::Run(text.to_owned()).report();
    };
    let verdict = verdict(args, &runs, &mut report, &mut |run, violation| {
        let smaller = verdict::smaller(args, &written, run, violation);
        let path = args.out.clone().unwrap_or_else(|| found::free_path(run.scenario.seed, &mut claims));
        found::text(smaller.as_ref(), &path)
    });
    // The verdict is shown even if a plot could not be written.
    drawn.and(verdict)
}

/// Leaves the shard's share in `scenarios`, and returns the writer of its result.
fn share(
    args: &Args,
    path: &Path,
    written: &Written,
    scenarios: &mut Vec<(String, Scenario)>,
    shard: Shard,
    results: &Path,
) -> Result<Writer, Failure> {
    let runs = scenarios.len() as u64;
    if runs < 2 {
        let remedy = "write `variants`, e.g. of `seed`, or run it without --shard";
        return Err(Failure::usage(format!("--shard: one run cannot be divided; {remedy}")));
    }
    let name =
        path.to_str().ok_or_else(|| Failure::usage("--shard: the path of the scenario is not UTF-8; rename it"))?;
    let files = scenarios.iter().flat_map(|(_, scenario)| &scenario.files);
    let sweep = ScenarioSweep {
        scenario: name.to_owned(),
        content: shard::fingerprint(written, files)?,
        seed: args.seed,
        variant: args.variant.clone(),
        runs,
        format: args.format,
        all: args.all,
        fail_on_loss: args.fail_on_loss,
    };
    let range = shard.range(runs);
    *scenarios = scenarios.drain(range.start as usize..range.end as usize).collect();
    Writer::new(results, shard, Sweep::Scenario(sweep))
}

/// Returns the result of a shard: rows, and the first failure with a smaller scenario.
fn part(args: &Args, written: &Written, columns: &[String], runs: &[Run]) -> Part {
    let failure = verdict::first(args, runs).map(|(run, reason)| {
        VariantFailure::new(run.scenario.seed, reason, |violation| verdict::smaller(args, written, run, violation))
    });
    Part::Variants { rows: Rows::new(args.format, args.all, columns, runs), failure }
}

/// Runs the scenarios one after the other, and writes the files of each.
fn run(args: &Args, scenarios: Vec<(String, Scenario)>, claims: &mut Claims) -> Result<Vec<Run>, Failure> {
    // A directory that cannot be created is reported before the long runs.
    for dir in args.plots.iter().chain(&args.csv) {
        files::make_dir(dir)?;
    }
    let recorded =
        |scenario| args.trace.as_ref().map(|_| trace::switch(scenario, args.trace_switch.as_deref())).transpose();
    let recorded = scenarios.iter().map(|(_, scenario)| recorded(scenario)).collect::<Result<Vec<_>, _>>()?;
    let count = scenarios.len();
    let names = files::unique(scenarios.iter().map(|(variant, _)| variant.as_str()));
    claim(args, &names, claims)?;
    let mut progress = Progress::new(count, args.quiet);
    let mut runs = Vec::new();
    for (((variant, mut scenario), file), recorded) in scenarios.into_iter().zip(names).zip(recorded) {
        if !args.shows_samples() && !report::needs_samples(&scenario) {
            // Samples would take most of the memory.
            scenario.sample = Nanos(0);
        }
        progress.begin(&variant);
        let (outcome, recording) =
            trace::record(&scenario, recorded, args.threads, &mut |thousandths| progress.show(thousandths));
        progress.end(outcome.events);
        let mut run = Run { variant, file, scenario, outcome };
        write_files(args, &run, recording.as_ref(), count, claims)?;
        if !args.shows_samples_in_json() {
            run.outcome.pauses = Vec::new();
            if !report::needs_samples(&run.scenario) {
                run.outcome.samples = Samples::default();
            }
        }
        runs.push(run);
    }
    progress.finish();
    Ok(runs)
}

fn listen(first: First) -> Result<(), Failure> {
    interrupt::listen(first).map_err(|error| Failure::Run(format!("signal handlers cannot be installed: {error}")))
}

/// Claims the output files, so that one that is also an input is refused before the long runs. Plots are claimed when
/// they are drawn: their names are not known before.
fn claim(args: &Args, names: &[String], claims: &mut Claims) -> Result<(), Failure> {
    for (option, output) in [("--samples", &args.samples), ("--trace", &args.trace)] {
        let Some(output) = output else { continue };
        for name in names {
            claims.write(&named(output, name, names.len()), option)?;
        }
    }
    if let Some(out) = &args.out {
        claims.write(out, "--out")?;
    }
    Ok(())
}

/// The variants with these names, in the order of the scenario; all variants without names.
fn chosen(scenarios: Vec<(String, Scenario)>, names: &[String]) -> Result<Vec<(String, Scenario)>, Failure> {
    if let Some(missing) = names.iter().find(|name| !scenarios.iter().any(|(variant, _)| variant == *name)) {
        let known: Vec<String> =
            scenarios.iter().filter(|(name, _)| !name.is_empty()).map(|(name, _)| format!("`{name}`")).collect();
        let remedy = if known.is_empty() {
            "the scenario has no variants".to_owned()
        } else {
            format!("write {}", known.join(", "))
        };
        return Err(Failure::usage(format!("there is no variant `{missing}`; {remedy}")));
    }
    Ok(scenarios.into_iter().filter(|(variant, _)| names.is_empty() || names.contains(variant)).collect())
}

fn write_files(
    args: &Args,
    run: &Run,
    recording: Option<&Recording>,
    count: usize,
    claims: &mut Claims,
) -> Result<(), Failure> {
    if let Some(dir) = &args.plots {
        let dir = if count > 1 { dir.join(&run.file) } else { dir.clone() };
        files::make_dir(&dir)?;
        for (name, svg) in sim::plot::plots(&run.scenario, &run.outcome) {
            write_plot(&dir.join(name), &svg, claims)?;
        }
    }
    if let Some(dir) = &args.csv {
        let dir = if count > 1 { dir.join(&run.file) } else { dir.clone() };
        files::make_dir(&dir)?;
        for (name, text) in report::workload_files(&run.scenario, &run.outcome) {
            claims.write(&dir.join(name), "--csv")?;
            files::write(&dir.join(name), &text)?;
        }
    }
    if let Some(path) = &args.samples {
        files::write(&named(path, &run.file, count), &report::samples_csv(&run.scenario, &run.outcome))?;
    }
    if let (Some(path), Some(recording)) = (&args.trace, recording) {
        trace::write(&named(path, &run.file, count), recording)?;
    }
    Ok(())
}

fn write_plot(path: &Path, svg: &str, claims: &mut Claims) -> Result<(), Failure> {
    claims.write(path, "--plots")?;
    files::write(path, svg)
}

/// The file of one of several variants: `dir/samples.csv` becomes `dir/samples-variant.csv`.
fn named(path: &Path, file: &str, count: usize) -> PathBuf {
    if count < 2 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{file}{extension}"))
}

fn show(args: &Args, runs: &[Run]) -> Result<(), Failure> {
    if let [run] = runs {
        return match args.format {
            Format::Table => print(&report::table(&run.scenario, &run.outcome, args.all)),
            Format::Json => print_json(&report::json(&run.scenario, &run.outcome, args.all)),
            Format::Csv => print(&report::csv(&run.scenario, &run.outcome)),
        };
    }
    let columns = runs.first().map_or(&[][..], |run| &run.scenario.columns);
    Rows::new(args.format, args.all, columns, runs).print()
}

/// The rows of a table of variants.
fn rows_of(runs: &[Run]) -> Vec<(String, &Scenario, &Outcome)> {
    runs.iter().map(|run| (run.variant.clone(), &run.scenario, &run.outcome)).collect()
}

/// Draws the plots that compare variants, if there are several. Each has a file of its own.
fn draw_comparison(args: &Args, runs: &[Run], claims: &mut Claims) -> Result<(), Failure> {
    let (Some(dir), [first, _, ..]) = (&args.plots, runs) else { return Ok(()) };
    let labels: Vec<String> = runs.iter().map(|run| run.variant.clone()).collect();
    let series = report::comparison_series(&rows_of(runs));
    let names = files::unique(series.iter().map(|series| series.title.as_str()));
    for (report::Series { title, unit, values }, name) in series.into_iter().zip(names) {
        let heading = format!("{}: {title}", first.scenario.name);
        let svg = sim::plot::bars(&heading, unit, &labels, &[(title, values)]);
        write_plot(&dir.join(format!("variants-{name}.svg")), &svg, claims)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn refused(line: &str) -> String {
        let args = match Line::try_parse_from(["sim"].into_iter().chain(line.split_whitespace())) {
            Ok(line) => line.args,
            Err(error) => return error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        match args.check() {
            Err(Failure::Usage(text)) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn option_without_the_one_that_it_belongs_to_is_refused_with_a_remedy() {
        for (line, expected) in [
            (
                "x.yaml --mmu hpcc",
                "--mmu goes with --hpcc; remove it, or write `mmu: hpcc` at a switch of the scenario",
            ),
            ("--mmu hpcc", "--mmu goes with --hpcc; remove it, or write `mmu: hpcc` at a switch of the scenario"),
            (
                "--hpcc c.txt --mmu holdfast --mmu-sizes hpcc",
                "--mmu-sizes hpcc goes with rules of HPCC's simulator; remove it, or `--mmu holdfast`",
            ),
            ("x.yaml --mmu-sizes holdfast", "--mmu-sizes goes with --hpcc; remove it"),
            ("x.yaml --count 3", "--count goes with --random; write that too, or remove it"),
            ("x.yaml --for 1s", "--for goes with --random; write that too, or remove it"),
            ("x.yaml --trace-switch a", "--trace-switch goes with --trace; write `--trace FILE` too, or remove it"),
            ("x.yaml --shard 0/2", "--shard needs a directory for its result; write `--results DIR` too"),
            ("--random --results d", "--results goes with --shard; write `--shard I/N` too, or remove it"),
            (
                "-q",
                "there is nothing to simulate; write a scenario such as conf/sim/incast.yaml, `--hpcc CONFIG` or `--random`",
            ),
            (
                "--random --count 0",
                "error: invalid value '0' for '--count <COUNT>': `0` is not a number of fabrics; write a whole number from 1 on",
            ),
        ] {
            assert_eq!(refused(line), expected, "{line}");
        }
    }
}
