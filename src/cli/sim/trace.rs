//! `--trace`: records the frames that one switch received and sent, for `holdfast replay`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use holdfast::sim::outcome::Outcome;
use holdfast::sim::recording::{self, MOST_RECORDED, Recording};
use holdfast::sim::spec::Scenario;
use holdfast::sim::{run_on, run_recorded};

use super::files::{self, Output};
use crate::cli::Failure;

/// Index of the switch to record: the one with the given name, or the only one.
pub fn switch(scenario: &Scenario, name: Option<&str>) -> Result<usize, Failure> {
    let names: Vec<&str> = scenario.switches.iter().map(|switch| switch.name.as_str()).collect();
    let known = names.join(", ");
    let switch = match name {
        Some(name) => names
            .iter()
            .position(|of| *of == name)
            .ok_or_else(|| Failure::usage(format!("there is no switch `{name}`; write one of {known}")))?,
        None if names.len() == 1 => 0,
        None => {
            return Err(Failure::usage(format!(
                "a trace records one switch; write `--trace-switch` with one of {known}"
            )));
        }
    };
    match recording::why_not(scenario, switch) {
        None => Ok(switch),
        Some(reason) => Err(Failure::usage(format!("{} cannot be recorded: {reason}", names[switch]))),
    }
}

/// Runs `scenario` with these threads, and records `switch` if it is given: then with one.
pub fn record(
    scenario: &Scenario,
    switch: Option<usize>,
    threads: u8,
    progress: &mut dyn FnMut(u64),
) -> (Outcome, Option<Recording>) {
    match switch {
        None => (run_on(threads.into(), scenario, progress), None),
        Some(switch) => {
            let (outcome, recording) = run_recorded(scenario, switch, progress);
            (outcome, Some(recording))
        }
    }
}

fn write_csv(path: &Path, recording: &Recording) -> io::Result<()> {
    let mut out = BufWriter::new(Output::open(path)?);
    recording.write_csv(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// Writes the trace, and warns where a replay would decide otherwise.
pub fn write(path: &Path, recording: &Recording) -> Result<(), Failure> {
    write_csv(path, recording).map_err(|error| files::failed("file", path, &error))?;
    let warn = |text: String| {
        // A failed write cannot be reported, and `eprintln!` would panic on it.
        let _ = writeln!(io::stderr(), "warning: {}: {text}", path.display());
    };
    if recording.tape.is_cut() {
        warn(format!("the trace ends after {MOST_RECORDED} frames; write a shorter `duration`"));
    }
    for (reason, count) in &recording.untold {
        let label = reason.label();
        warn(format!(
            "{count} frames were dropped as {label}, which a replay cannot reproduce: it may end at the first of them"
        ));
    }
    Ok(())
}
