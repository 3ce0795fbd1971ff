//! `holdfast reload`: lets a running switch read its configuration again.

use holdfast::api::model::{Reload, ReloadOutcome};

use super::asked::{Asked, failed};
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only show the settings that would change
    #[arg(long)]
    dry_run: bool,
    /// Print the answer of the API as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: Asked,
}

pub fn reload(args: &Args) -> Result<(), Failure> {
    let client = args.switch.client().map_err(failed)?;
    let answer = client.reload(!args.dry_run).map_err(failed)?;
    if args.json {
        print_json(&serde_json::to_value(&answer).unwrap_or_default())?;
    } else {
        print(&text(&answer))?;
    }
    match answer.outcome {
        _ if answer.is_right() => Ok(()),
        _ if args.json => Err(Failure::Reported(code(answer.outcome))),
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
        ReloadOutcome::Busy => format!("{source}: nothing was applied"),
    };
    let mark = |live: bool| if live { "" } else { "  (needs a restart)" };
    let differences = answer.differences.iter().map(|found| format!("  {}{}", found.text, mark(found.live)));
    let warnings = answer.warnings.iter().map(|warning| format!("warning: {warning}"));
    std::iter::once(head).chain(differences).chain(warnings).map(|line| line + "\n").collect()
}
