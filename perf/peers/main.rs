//! Compares Holdfast with other switches: the same frames, core and counters in one run.
//!
//! `cargo bench --bench peers -- --quick`, or `make perf`. perf/README.md describes the method,
//! docs/performance.md the results.

mod counts;
mod lab;
mod measure;
mod offered;
mod ovs;
mod plan;
mod plots;
mod process;
mod programs;
mod results;
#[allow(dead_code, unused_imports)] // it has more than bars need, and tests of its own
#[path = "../../crates/sim/src/sim/plot/svg.rs"]
mod svg;
mod vpp;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;

use lab::Lab;
use plan::{POINTS, Point};
use programs::{PROGRAMS, Program};
use results::{Cell, Results};

const WINDOW: Duration = Duration::from_millis(500);
const QUICK_WINDOW: Duration = Duration::from_millis(300);

/// Runs Holdfast and its peers in turn over the same generator on one core.
#[derive(Debug, Parser)]
struct Args {
    /// Only the first point: 64-byte frames, 1,024 flows
    #[arg(long)]
    quick: bool,
    /// Only the rates that leave by offered load
    #[arg(long, conflicts_with_all = ["quick", "points"])]
    offered: bool,
    /// Print the tables as Markdown to standard output in the end; docs/performance.md has their medians. Write
    /// the plots to docs/performance
    #[arg(long)]
    markdown: bool,
    /// How often each program runs at each point
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=50))]
    rounds: u8,
    /// Only these points, by the names in perf/README.md
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    points: Vec<String>,
    /// Only these programs, e.g. `l3fwd,Holdfast`
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    programs: Vec<String>,
    /// The CPU to poll on [default: the last one]
    #[arg(long)]
    core: Option<usize>,
    /// File for the JSON [default: perf/peers.json of the target directory]
    #[arg(long)]
    json: Option<PathBuf>,
    /// Cargo says so.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the measurement. Returns whether all requested points and programs were measured.
fn run(args: &Args) -> Result<bool> {
    let points = choose(&POINTS, &args.points, |point| point.name, "point")?;
    let points = match (args.quick, args.offered) {
        (true, _) => vec![POINTS[0]],
        (_, true) => Vec::new(),
        _ => points,
    };
    let mut programs = choose(&PROGRAMS, &args.programs, |program| program.name, "program")?;
    process::catch_signals()?;
    let lab = Lab::open(args.core)?;
    // An optional program is required if it is asked for by name.
    let is_required =
        |program: &&Program| !program.is_optional() || args.programs.iter().any(|name| name == program.name);
    let required = |programs: &[Program]| programs.iter().filter(is_required).count();
    let wanted = required(&programs);
    programs.retain(|program| program.find(&lab).inspect_err(|missing| eprintln!("left out: {missing:#}")).is_ok());
    if programs.is_empty() {
        bail!("there is no program to measure; `make perf` installs and builds all of them");
    }
    eprintln!("core {}, {}, {} rounds", lab.core, lab.memory.name(), args.rounds);
    let window = if args.quick { QUICK_WINDOW } else { WINDOW };
    let mut cells = Vec::new();
    for point in &points {
        cells.extend(measure_point(&lab, point, &programs, args.rounds.into(), window)?);
    }
    let is_whole = args.offered || (!args.quick && args.points.is_empty());
    let offered = if is_whole { offered::measure(&lab, &programs, args.rounds)? } else { Vec::new() };
    let results = Results { cells, offered, memory: lab.memory.name(), rounds: args.rounds.into(), commit: commit() };
    report(args, &lab, &results)?;
    let is_complete = results.cells.iter().all(|cell| cell.errors.is_empty())
        && results.offered.iter().all(|series| series.is_complete(args.rounds));
    Ok(required(&programs) == wanted && is_complete)
}

/// The commit of this checkout, with `-dirty` if a file of it differs; `unknown` outside a checkout or without git.
fn commit() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // If the sources were unpacked inside another checkout, git would return a commit of that project.
    let git = |words: &[&str]| {
        root.join(".git").exists().then(|| process::run(Command::new("git").arg("-C").arg(root).args(words)).ok())?
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_owned() };
    let is_dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    format!("{}{}", commit.trim(), if is_dirty { "-dirty" } else { "" })
}

/// The items of `all` with these names; all items without names.
fn choose<T: Copy>(all: &[T], names: &[String], name: fn(&T) -> &'static str, what: &str) -> Result<Vec<T>> {
    for wanted in names {
        if !all.iter().any(|one| name(one) == wanted) {
            let known = all.iter().map(name).collect::<Vec<_>>().join(", ");
            bail!("there is no {what} `{wanted}`; write one or more of: {known}");
        }
    }
    let is_wanted = |one: &&T| names.is_empty() || names.iter().any(|wanted| name(one) == wanted);
    Ok(all.iter().filter(is_wanted).copied().collect())
}

/// Measures all programs in turn for several rounds, so that changes of the machine affect all of them.
fn measure_point(lab: &Lab, point: &Point, programs: &[Program], rounds: usize, window: Duration) -> Result<Vec<Cell>> {
    let able = programs.iter().filter(|program| program.can(point));
    let new = |&program| Cell { point: *point, program, samples: Vec::new(), errors: Vec::new() };
    let mut cells: Vec<Cell> = able.map(new).collect();
    eprintln!("\n{} ({})", point.title, point.name);
    for round in 1..=rounds {
        for cell in &mut cells {
            let name = cell.program.name;
            if cell.samples.iter().any(measure::Sample::took_long) {
                continue;
            }
            match measure::measure(lab, &cell.program, point, window) {
                Ok(sample) => {
                    eprintln!(
                        "  {round} {name:<17} {:>7.1} cycles {:>7.2} Mpps {:>7.2} % forwarded {:>4.0} % on the CPU",
                        sample.cycles,
                        sample.mpps,
                        100.0 * sample.forwarded,
                        100.0 * sample.on_cpu
                    );
                    cell.samples.push(sample);
                }
                Err(error) if process::interrupted() => return Err(error),
                Err(error) => {
                    eprintln!("  {round} {name:<17} error: {error:#}");
                    cell.errors.push(format!("{error:#}"));
                }
            }
        }
    }
    Ok(cells)
}

fn report(args: &Args, lab: &Lab, results: &Results) -> Result<()> {
    if args.markdown {
        println!("{}", results.markdown());
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/performance");
        for figure in plots::write(results, &directory)? {
            println!("![{}](performance/{})\n", figure.title, figure.file);
        }
    } else if !results.cells.is_empty() {
        print!("{}{}", results.header(), results.what_they_do());
        for point in results.points() {
            println!("\n{} ({})\n\n{}", point.title, point.name, results.table(&point));
        }
    }
    if !results.offered.is_empty() {
        print!("{}", offered::table(&results.offered));
    }
    let json = args.json.clone().unwrap_or_else(|| lab.directory.join("peers.json"));
    results.write_json(lab, &json)?;
    eprintln!("written: {}", json.display());
    Ok(())
}
