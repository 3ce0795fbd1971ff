//! `holdfast replay`: decides a trace event by event; docs/replay.md.

mod column;
mod line;
mod show;
mod trace;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use holdfast::config;
use holdfast::plan::SwitchSpec;
use holdfast::units::Ticks;
use holdfast::verify::replay::Replay;

use self::show::Show;
use self::trace::{Fault, Trace, TraceStep};
use super::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Configuration file [default: the embedded incast]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Trace of arrivals and departures, as CSV or JSON lines; `-` for standard input
    trace: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value = "table")]
    format: show::Format,
    /// Name the rules by which another switch decides otherwise on the same event: docs/mmu-rules.md
    #[arg(long, value_enum)]
    beside: Option<Beside>,
}

/// A switch whose rules are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Beside {
    /// `SwitchMmu` of HPCC's ns-3 simulator
    Hpcc,
}

/// The reason why a replay ended early.
enum Stop {
    Fault(Fault),
    Output(io::Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Output(error)
    }
}

pub fn replay(args: &Args) -> Result<(), Failure> {
    let config = args.config.as_ref().map_or_else(|| Ok(config::embedded()), |path| config::load(path));
    let switch = config.map_err(Failure::usage)?.switch;
    if switch.abm.is_some() {
        let why = "ABM decides by drain rates, which a trace does not have; write `queue_policy: dt` in `buffer`";
        return Err(Failure::usage(format!("this configuration cannot be replayed: {why}")));
    }
    let is_stdin = args.trace.as_os_str() == "-";
    let source = if is_stdin { "<stdin>".to_owned() } else { args.trace.display().to_string() };
    let input: Box<dyn BufRead> = if is_stdin {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.trace).map_err(|error| {
            let text = error.to_string();
            let reason = text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason);
            Failure::usage(format!("{source}: cannot be read: {reason}; check the path and its permissions"))
        })?;
        Box::new(BufReader::new(file))
    };
    let mut out = BufWriter::new(io::stdout().lock());
    if args.beside.is_some()
        && let Some(why) = Replay::new(&switch).why_not_hpcc()
    {
        return Err(Failure::usage(format!("`--beside hpcc` cannot compare this configuration: {why}")));
    }
    let outcome = decide(&switch, input, args, &mut out);
    // The decisions before a fault are printed before the fault.
    let outcome = match (outcome, out.flush()) {
        (Ok(()), Err(error)) => Err(Stop::Output(error)),
        (outcome, _) => outcome,
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(Stop::Fault(fault)) => Err(Failure::usage(format!("{source}:{fault}"))),
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stop::Output(error)) => Err(Failure::Run(format!("standard output cannot be written: {error}"))),
    }
}

fn decide(switch: &SwitchSpec, input: Box<dyn BufRead>, args: &Args, out: &mut impl Write) -> Result<(), Stop> {
    let mut engine = Replay::new(switch);
    let mut trace = Trace::new(input, switch);
    let compares = args.beside.is_some();
    let mut show = Show::new(args.format, switch, compares);
    let mut totals = show::Totals::default();
    // A trace with an invalid first line causes no output, not even a header.
    let mut next = trace.next()?;
    show.head(out)?;
    while let Some(event) = next {
        engine.set_time(Ticks(event.time));
        let (before, decision) = match &event.kind {
            TraceStep::Arrive(frame) => (engine.hpcc_group(frame), engine.arrive(*frame)),
            TraceStep::Depart(departure) => {
                let waiting = engine.next(departure.egress, departure.class);
                trace.check_departure(departure, waiting)?;
                let before = waiting.and_then(|frame| engine.hpcc_group(&frame));
                let gone = engine.depart(departure.egress, departure.class);
                (before, gone.ok_or_else(|| trace.nothing_waits(departure))?)
            }
        };
        let before = before.filter(|_| compares);
        let rules = before.map_or_else(Vec::new, |before| engine.hpcc_rules(&before, &decision));
        totals.count(&decision, &rules);
        show.event(out, event.time, &decision, &rules)?;
        next = trace.next()?;
    }
    Ok(show.foot(out, &totals)?)
}
