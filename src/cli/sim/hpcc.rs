//! `holdfast sim --hpcc`: runs the inputs of HPCC's simulator; docs/hpcc.md.

use std::path::Path;

use holdfast::mmu::HpccRules;
use holdfast::sim;
use holdfast::sim::hpcc::{Inputs, MmuSizes};
use holdfast::units::Nanos;

use super::super::print;
use super::claims::Claims;
use super::interrupt::First;
use super::progress::Progress;
use super::{Args, Failure, Run, claim, files, found, listen, show, verdict, warnings, write_files};

/// Sizes of buffers of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Sizes {
    /// HPCC's simulator
    Hpcc,
    /// Holdfast: a difference comes from the rules alone
    Holdfast,
}

impl From<Sizes> for MmuSizes {
    fn from(sizes: Sizes) -> Self {
        match sizes {
            Sizes::Hpcc => Self::Hpcc,
            Sizes::Holdfast => Self::Holdfast,
        }
    }
}

pub fn run(args: &Args, config: &Path) -> Result<(), Failure> {
    listen(First::Ends)?;
    let inputs = Inputs::read(config).map_err(Failure::usage)?;
    let mut claims = Claims::default();
    claims.read(config, "the configuration");
    for file in inputs.files() {
        claims.read(file, "the input");
    }
    let rules = args.mmu.unwrap_or(HpccRules::all());
    let sizes = args.mmu_sizes.unwrap_or(if rules.is_empty() { Sizes::Holdfast } else { Sizes::Hpcc });
    let mut prepared = inputs.prepare(args.seed, (rules, sizes.into())).map_err(Failure::usage)?;
    claim(args, &["hpcc".to_owned()], &mut claims)?;
    for (key, path) in prepared.output_paths() {
        claims.write(path, key)?;
    }
    warnings::print(prepared.scenario.warnings.iter(), args.all);
    if let Some(dir) = &args.plots {
        files::make_dir(dir)?;
    }
    if !args.shows_samples() {
        prepared.scenario.sample = Nanos(0);
    }
    let mut progress = Progress::new(1, args.quiet);
    progress.begin("");
    let mut outcome =
        sim::run_on(args.threads.into(), &prepared.scenario, &mut |thousandths| progress.show(thousandths));
    progress.end(outcome.events);
    progress.finish();
    if outcome.pauses_left_out > 0 {
        let left_out = outcome.pauses_left_out;
        warnings::print_line(&format!("the file of pauses lacks {left_out} pauses, which were too many to keep"));
    }
    let outputs = prepared.outputs(&outcome);
    for (path, text) in [&outputs.fct, &outputs.pfc].into_iter().chain(&outputs.qlen) {
        files::write(path, text)?;
    }
    if !args.all {
        shorten(&mut outcome.waivers);
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
        Failure::Run(text.to_owned()).report();
    };
    verdict(args, &runs, &mut report, &mut |_, violation| {
        format!("run it again with another seed to learn more: {}", found::describe(violation))
    })
}

/// Most reasons for which lossless service is not promised that are shown: a fabric has one for each port.
const MOST_REASONS: usize = 2;

fn shorten(reasons: &mut Vec<String>) {
    if reasons.len() > MOST_REASONS {
        let more = reasons.len() - MOST_REASONS;
        reasons.truncate(MOST_REASONS);
        reasons.push(format!("{more} further reasons (--all shows each)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_reasons_are_shown_and_others_counted() {
        let mut reasons: Vec<String> = (0..5).map(|number| number.to_string()).collect();
        shorten(&mut reasons);
        assert_eq!(reasons, ["0", "1", "3 further reasons (--all shows each)"]);
        let mut few = vec!["one".to_owned(); 2];
        shorten(&mut few);
        assert_eq!(few.len(), 2);
    }
}
