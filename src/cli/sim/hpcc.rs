//! `holdfast sim --hpcc`: runs the inputs of HPCC's simulator; docs/hpcc.md.

use std::io::{self, Write};
use std::path::Path;

use holdfast::sim;
use holdfast::sim::hpcc::Inputs;
use holdfast::units::Nanos;

use super::super::print;
use super::claims::Claims;
use super::interrupt::First;
use super::progress::Progress;
use super::{Args, Failure, Run, files, found, listen, show, verdict, warnings, write_files};

pub fn run(args: &Args, config: &Path) -> Result<(), Failure> {
    listen(First::Ends)?;
    let inputs = Inputs::read(config).map_err(Failure::usage)?;
    let mut prepared = inputs.prepare(args.seed).map_err(Failure::usage)?;
    let mut claims = Claims::default();
    claims.read(config, "the configuration");
    for path in prepared.output_paths() {
        claims.write(path, "--hpcc")?;
    }
    for warning in warnings::lines(prepared.scenario.warnings.iter().map(String::as_str), args.all) {
        // A failed write cannot be reported, and `eprintln!` would panic on it.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
    if let Some(dir) = &args.plots {
        files::make_dir(dir)?;
    }
    if !args.shows_samples() {
        prepared.scenario.sample = Nanos(0);
    }
    let mut progress = Progress::new(1, args.quiet);
    progress.begin("");
    let outcome = sim::run(&prepared.scenario, &mut |thousandths| progress.show(thousandths));
    progress.end(outcome.events);
    progress.finish();
    let outputs = prepared.outputs(&outcome);
    for (path, text) in [&outputs.fct, &outputs.pfc] {
        files::write(path, text)?;
    }
    let slowdowns = prepared.slowdown_table(&outcome);
    let run = Run { variant: String::new(), file: "hpcc".to_owned(), scenario: prepared.scenario, outcome };
    write_files(args, &run, None, 1, &mut claims)?;
    let runs = [run];
    show(args, &runs)?;
    if args.format == super::Format::Table && !slowdowns.is_empty() {
        print(&format!("\n{slowdowns}"))?;
    }
    let mut report = |text: &str| {
        super::super::report(text, 1);
    };
    verdict(args, &runs, &mut report, &mut |_, violation| {
        format!("run it again with another seed to learn more: {}", found::describe(violation))
    })
}
