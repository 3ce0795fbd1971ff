//! `holdfast sim`: runs scenarios in simulated time; docs/simulation.md.

mod claims;
mod files;
mod found;
mod hpcc;
mod interrupt;
mod progress;
mod random;
mod trace;
mod warnings;

use std::path::{Path, PathBuf};

use holdfast::sim;
use holdfast::sim::outcome::{Ending, Outcome, Samples, Violation};
use holdfast::sim::recording::Recording;
use holdfast::sim::report;
use holdfast::sim::scenario::{Options, Written};
use holdfast::sim::shrink::shrink;
use holdfast::sim::spec::Scenario;
use holdfast::units::Nanos;
use serde_json::{Value, json};

use self::claims::Claims;
use self::found::Found;
use self::interrupt::First;
use self::progress::Progress;
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scenario file, e.g. conf/sim/incast.yaml
    #[arg(required_unless_present_any = ["random", "hpcc"])]
    scenario: Option<PathBuf>,
    /// Simulate random fabrics instead of a scenario until one violates an invariant: switches, hosts, cables, flows
    /// and faults are drawn from a seed, and every invariant is checked after each step
    #[arg(long, conflicts_with_all = ["scenario", "variant", "format", "all", "plots", "samples", "fail_on_loss"])]
    random: bool,
    /// Run the configuration of HPCC's simulator, with its topology and flows, and write its output files: docs/hpcc.md
    #[arg(long, value_name = "CONFIG", conflicts_with_all = ["scenario", "random", "variant", "trace", "out"])]
    hpcc: Option<PathBuf>,
    /// Number of random fabrics [default: 10000 without --for]
    #[arg(long, requires = "random", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time limit for random fabrics, e.g. 10min
    #[arg(long = "for", requires = "random", value_name = "TIME")]
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
    /// Write a trace for `holdfast replay` into this file; with several variants, one file each, as with --samples
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Switch whose trace --trace writes, if there are several
    #[arg(long, value_name = "NAME", requires = "trace")]
    trace_switch: Option<String>,
    /// Exit with 1 if a lossless class lost a frame or was starved
    #[arg(long)]
    fail_on_loss: bool,
    /// Print no progress and no speed
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
}

/// A variant and the outcome of its run.
struct Run {
    variant: String,
    /// The variant as part of file names.
    file: String,
    scenario: Scenario,
    outcome: Outcome,
}

impl Args {
    fn shows_samples_in_json(&self) -> bool {
        self.format == Format::Json && self.all
    }

    fn shows_samples(&self) -> bool {
        self.plots.is_some() || self.samples.is_some() || self.shows_samples_in_json()
    }
}

pub fn sim(args: &Args) -> Result<(), Failure> {
    if let Some(config) = &args.hpcc {
        return hpcc::run(args, config);
    }
    let Some(path) = &args.scenario else {
        listen(First::Asks)?;
        return random::random(&random::Random {
            seed: args.seed.unwrap_or(1),
            count: args.count,
            time: args.time,
            out: args.out.clone(),
            quiet: args.quiet,
        });
    };
    listen(First::Ends)?;
    let options = Options { seed: args.seed };
    let written = Written::read(path).map_err(Failure::usage)?;
    let scenarios = written.parse(&options).map_err(Failure::usage)?;
    let mut claims = Claims::default();
    claims.read(path, "the scenario");
    for file in scenarios.iter().flat_map(|(_, scenario)| &scenario.files) {
        claims.read(file, "the configuration");
    }
    let scenarios = chosen(scenarios, &args.variant)?;
    let warnings = scenarios.iter().flat_map(|(_, scenario)| &scenario.warnings);
    warnings::print(warnings.map(String::as_str), args.all);
    // A directory that cannot be created is reported before the long runs.
    if let Some(dir) = &args.plots {
        files::make_dir(dir)?;
    }
    let recorded =
        |scenario| args.trace.as_ref().map(|_| trace::switch(scenario, args.trace_switch.as_deref())).transpose();
    let recorded = scenarios.iter().map(|(_, scenario)| recorded(scenario)).collect::<Result<Vec<_>, _>>()?;
    let count = scenarios.len();
    let names = files::unique(scenarios.iter().map(|(variant, _)| variant.as_str()));
    claim(args, &names, &mut claims)?;
    let mut progress = Progress::new(count, args.quiet);
    let mut runs = Vec::new();
    for (((variant, mut scenario), file), recorded) in scenarios.into_iter().zip(names).zip(recorded) {
        if !args.shows_samples() && !report::needs_samples(&scenario) {
            // Samples would take most of the memory.
            scenario.sample = Nanos(0);
        }
        progress.begin(&variant);
        let (outcome, recording) = trace::record(&scenario, recorded, &mut |thousandths| progress.show(thousandths));
        progress.end(outcome.events);
        let mut run = Run { variant, file, scenario, outcome };
        write_files(args, &run, recording.as_ref(), count, &mut claims)?;
        if !args.shows_samples_in_json() {
            run.outcome.pauses = Vec::new();
            if !report::needs_samples(&run.scenario) {
                run.outcome.samples = Samples::default();
            }
        }
        runs.push(run);
    }
    progress.finish();
    show(args, &runs)?;
    let drawn = draw_comparison(args, &runs, &mut claims);
    let mut report = |text: &str| {
        super::report(text, 1);
    };
    let verdict =
        verdict(args, &runs, &mut report, &mut |run, violation| shrunk(args, &written, run, violation, &mut claims));
    // The verdict is shown even if a plot could not be written.
    drawn.and(verdict)
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
    let rows = rows(runs);
    match args.format {
        Format::Table => {
            if args.all {
                for run in runs {
                    print(&format!("== {}\n\n{}\n", run.variant, report::table(&run.scenario, &run.outcome, true)))?;
                }
            }
            print(&report::comparison(&rows))
        }
        Format::Json if args.all => {
            let one = |run: &Run| -> Value {
                json!({"variant": run.variant, "run": report::json(&run.scenario, &run.outcome, true)})
            };
            print_json(&Value::Array(runs.iter().map(one).collect()))
        }
        Format::Json => print_json(&report::comparison_json(&rows)),
        Format::Csv => print(&report::comparison_csv(&rows)),
    }
}

/// The rows of a table of variants.
fn rows(runs: &[Run]) -> Vec<(String, &Scenario, &Outcome)> {
    runs.iter().map(|run| (run.variant.clone(), &run.scenario, &run.outcome)).collect()
}

/// Draws the plots that compare variants, if there are several. Each has a file of its own.
fn draw_comparison(args: &Args, runs: &[Run], claims: &mut Claims) -> Result<(), Failure> {
    let (Some(dir), [first, _, ..]) = (&args.plots, runs) else { return Ok(()) };
    let labels: Vec<String> = runs.iter().map(|run| run.variant.clone()).collect();
    let series = report::comparison_series(&rows(runs));
    let names = files::unique(series.iter().map(|series| series.title.as_str()));
    for (report::Series { title, unit, values }, name) in series.into_iter().zip(names) {
        let heading = format!("{}: {title}", first.scenario.name);
        let svg = sim::plot::bars(&heading, unit, &labels, &[(title, values)]);
        write_plot(&dir.join(format!("variants-{name}.svg")), &svg, claims)?;
    }
    Ok(())
}

/// The command fails if an invariant is violated or a run does not end. With `--fail-on-loss` it also fails if a
/// lossless class lost a frame or starved. `shrunk` shrinks the first violating scenario and returns a text about it.
/// That may take long, so the violation is passed to `report` before: a user who interrupts the search has seen it.
fn verdict(
    args: &Args,
    runs: &[Run],
    report: &mut dyn FnMut(&str),
    shrunk: &mut dyn FnMut(&Run, &Violation) -> String,
) -> Result<(), Failure> {
    for run in runs {
        let of = if run.variant.is_empty() { String::new() } else { format!("{}: ", run.variant) };
        if let Some(violation) = &run.outcome.violation {
            let (what, seed) = (found::describe(violation), run.scenario.seed);
            report(&format!("{of}seed {seed}: {what}"));
            report(&shrunk(run, violation));
            return Err(Failure::Reported(1));
        }
        if run.outcome.ending == Ending::TooManyEvents {
            let most = run.scenario.most_events;
            return Err(Failure::Run(format!(
                "{of}given up after {most} events; write a larger `events` or a shorter `duration`"
            )));
        }
        if args.fail_on_loss && !report::verdict(&run.scenario, &run.outcome).kept {
            return Err(Failure::Reported(1));
        }
    }
    Ok(())
}

/// Shrinks a scenario, writes a smaller one that violates the same invariant, and returns a text with its path.
fn shrunk(args: &Args, written: &Written, run: &Run, violation: &Violation, claims: &mut Claims) -> String {
    let mut progress = Progress::new(1, args.quiet);
    let options = Options { seed: args.seed };
    let smaller = shrink(written, &options, &run.variant, violation, &mut |runs| progress.shrinking(runs));
    progress.clear();
    let Some(smaller) = smaller else { return "no smaller scenario with this violation was found".to_owned() };
    let path = args.out.clone().unwrap_or_else(|| found::free_path(run.scenario.seed, claims));
    found::keep(&path, &Found { yaml: &smaller.yaml, violation: &smaller.violation, runs: smaller.runs })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn violation_is_printed_before_shrinking_starts() {
        let yaml = "duration: 1us\nswitches: [{name: a, config: {ports: [{name: p1, speed: 10G}]}}]\n";
        let scenario = sim::scenario::parse("x.yaml", yaml, None, &Options::default()).unwrap().remove(0).1;
        let mut outcome = sim::run(&scenario, &mut |_| {});
        let violation = Violation { invariant: "release_order", at_ps: 7_000, event: 12, what: "h1 was first".into() };
        outcome.violation = Some(violation);
        let run = Run { variant: "x".into(), file: "x".into(), scenario, outcome };
        let args = Line::parse_from(["sim", "x.yaml"]).args;
        let lines = RefCell::new(Vec::new());
        let sentence = "x: seed 1: release_order is violated at 7 ns, event 12: h1 was first";
        let result = verdict(&args, &[run], &mut |line| lines.borrow_mut().push(line.to_owned()), &mut |_, _| {
            assert_eq!(*lines.borrow(), [sentence]);
            "smaller".to_owned()
        });
        assert!(matches!(result, Err(Failure::Reported(1))), "{result:?}");
        assert_eq!(*lines.borrow(), [sentence, "smaller"]);
    }
}
