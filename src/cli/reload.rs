//! `holdfast reload`, `confirm` and `rollback`: change the configuration of a running switch.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use holdfast::api::configs::{LONGEST_CONFIRM, ReloadRequest};
use holdfast::api::history::MAX_TEXT;
use holdfast::api::model::{Reload, ReloadOutcome};
use holdfast::units::Nanos;

use super::asked::Asked;
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Configuration to run by; not for the next start [default: the switch's file]
    file: Option<PathBuf>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
pub struct BackArgs {
    /// Number of a configuration that `holdfast history` lists [default: the one before the running one]
    number: Option<u64>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
pub struct ConfirmArgs {
    /// Print the answer of the API as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: Asked,
}

#[derive(Debug, clap::Args)]
struct How {
    /// Only show the settings that would change
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,
    /// Go back to the configuration before, unless `holdfast confirm` comes within this time, e.g. 60s
    #[arg(long, value_name = "TIME", value_parser = confirm_time)]
    confirm: Option<Duration>,
    /// Print the answer of the API as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: Asked,
}

fn confirm_time(text: &str) -> Result<Duration, String> {
    let time = text.parse::<Nanos>().map(|time| Duration::from_nanos(time.0)).map_err(|error| error.to_string())?;
    if (Duration::from_secs(1)..=LONGEST_CONFIRM).contains(&time) {
        return Ok(time);
    }
    Err("write a time from 1s to 24h, e.g. 60s".to_owned())
}

pub fn reload(args: &Args) -> Result<(), Failure> {
    let text = args.file.as_ref().map(|path| {
        let shown = path.display();
        let wrong = |what: String| Failure::usage(format!("{shown}: {what}"));
        if fs::metadata(path).is_ok_and(|file| file.len() > MAX_TEXT as u64) {
            return Err(wrong("it has more than 1 MiB, which is no configuration".to_owned()));
        }
        fs::read_to_string(path).map_err(|error| wrong(format!("it cannot be read: {error}; check its path")))
    });
    let source = args.file.as_ref().map(|path| path.display().to_string());
    args.how.ask(ReloadRequest { text: text.transpose()?, source, ..ReloadRequest::default() })
}

pub fn rollback(args: &BackArgs) -> Result<(), Failure> {
    let before = args.number.is_none();
    args.how.ask(ReloadRequest { number: args.number, before, ..ReloadRequest::default() })
}

pub fn confirm(args: &ConfirmArgs) -> Result<(), Failure> {
    let client = args.switch.client()?;
    tell(&client.confirm()?, args.json)
}

impl How {
    fn ask(&self, request: ReloadRequest) -> Result<(), Failure> {
        let client = self.switch.client()?;
        let confirm_within_ns = self.confirm.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let request = ReloadRequest { dry_run: self.dry_run, confirm_within_ns, ..request };
        tell(&client.reload(&request)?, self.json)
    }
}

fn tell(answer: &Reload, json: bool) -> Result<(), Failure> {
    if json {
        print_json(&serde_json::to_value(answer).unwrap_or_default())?;
    } else {
        print(&text(answer))?;
    }
    match answer.outcome {
        _ if answer.is_right() => Ok(()),
        _ if json => Err(Failure::Reported(code(answer.outcome))),
        ReloadOutcome::Invalid => Err(Failure::Usage(answer.errors.join("\n"))),
        _ => Err(Failure::Run(answer.errors.join("\n"))),
    }
}

/// The exit code, as for all commands: 2 for an invalid configuration, 1 for other failures.
fn code(outcome: ReloadOutcome) -> u8 {
    if outcome == ReloadOutcome::Invalid { 2 } else { 1 }
}

/// Describes the outcome and each setting that differs.
fn text(answer: &Reload) -> String {
    let (count, source) = (answer.differences.len(), &answer.source);
    let settings = if count == 1 { "1 setting differs".to_owned() } else { format!("{count} settings differ") };
    let applied = if count == 1 { "is applied" } else { "are applied" };
    let head = match answer.outcome {
        ReloadOutcome::Unchanged => format!("{source}: no setting differs from the running configuration"),
        ReloadOutcome::Applicable => format!("{source}: {settings} and can be applied while the switch runs"),
        ReloadOutcome::Applied => format!("{source}: {settings} and {applied}"),
        ReloadOutcome::NeedsRestart => format!("{source}: {settings}; nothing was applied"),
        ReloadOutcome::Invalid => format!("{source}: the configuration is invalid; nothing was applied"),
        ReloadOutcome::Busy | ReloadOutcome::Unconfirmed => format!("{source}: nothing was applied"),
        ReloadOutcome::Confirmed => format!("{source}: confirmed"),
    };
    let mark = |live: bool| if live { "" } else { "  (needs a restart)" };
    let differences = answer.differences.iter().map(|found| format!("  {}{}", found.text, mark(found.live)));
    let warnings = answer.warnings.iter().map(|warning| format!("warning: {warning}"));
    let waits = answer
        .confirm_within_ns
        .map(|time| format!("write `holdfast confirm` within {}, or the configuration before comes back", Nanos(time)));
    std::iter::once(head).chain(differences).chain(warnings).chain(waits).map(|line| line + "\n").collect()
}
