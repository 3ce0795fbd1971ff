//! The command line: commands, options, and the mapping of outcomes to exit codes.

mod asked;
mod baseline;
mod check;
mod clear;
mod completions;
mod doctor;
mod exit;
mod fault;
mod headroom;
mod history;
mod man;
mod nic_check;
mod plan;
#[cfg(feature = "dpdk")]
mod privileges;
mod reload;
mod replay;
mod routing;
mod run;
mod show;
mod sim;
mod top;
mod usage;
mod why;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};
use holdfast::build;
use holdfast::isa::Isa;

use self::exit::Failure;

/// The version, and the form of the packet path that this processor runs.
static LONG_VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}\n{}\npacket path: {}", build::VERSION, build::table(), Isa::detect()));

/// A lossless top-of-rack switch in software.
#[derive(Debug, Parser)]
#[command(
    name = "holdfast",
    version = build::VERSION,
    long_version = LONG_VERSION.as_str(),
    arg_required_else_help = true,
    after_help = "Exit codes: 0 success, 1 refused or failed, 2 wrong command line, configuration or other input.\nTry `holdfast run`: \
                  an incast over in-process ports that needs no NIC, no root and no file."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the switch; without a file, an incast on in-process ports for 10 seconds
    Run(run::Args),
    /// Shows the state of a running switch: ports, PFC, buffers, queues, drops and more
    Show(show::Args),
    /// Shows a running switch live: ports, buffer, pauses, drops
    Top(top::Args),
    /// Explains why a running switch dropped frames and paused peers, from its decision log
    #[command(visible_alias = "why")]
    WhyDropped(why::Args),
    /// Clears watermarks or learned stations of a running switch, or counters for this user
    Clear(clear::Args),
    /// Makes a running switch read its configuration again, or run by another, and apply all of it or nothing
    Reload(reload::Args),
    /// Stays with a configuration that waits for its confirmation
    Confirm(reload::ConfirmArgs),
    /// Lists the configurations by which a running switch ran, or prints one
    History(history::Args),
    /// Lets a running switch run by an earlier configuration
    Rollback(reload::BackArgs),
    /// Orders faults on the wires of a running switch, or ends them
    Fault(fault::Args),
    /// Checks a configuration and shows the resulting plan
    Check(check::Args),
    /// Calculates the headroom of a lossless class of a port, term by term
    Headroom(headroom::Args),
    /// Replays a trace of arrivals and departures, and shows each decision
    Replay(replay::Args),
    /// Simulates a scenario: switches, hosts, cables and faults
    Sim(Box<sim::Args>),
    /// Checks the machine: hugepages, CPUs, NICs, privileges; names each problem and its remedy
    Doctor(doctor::Args),
    /// Checks two ports that are connected by a cable: data, PFC of each priority, PAUSE, response; prints a report
    NicCheck(nic_check::Args),
    /// Prints a script that completes commands and options in a shell
    Completions(completions::Args),
    /// Writes the manual pages
    Man(man::Args),
}

/// Runs the program.
pub fn main() -> ExitCode {
    #[cfg(feature = "dpdk")]
    privileges::raise();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error),
    };
    let outcome = match cli.command {
        Command::Run(args) => run::run(args),
        Command::Show(args) => show::show(&args),
        Command::WhyDropped(args) => why::why(&args),
        Command::Clear(args) => clear::clear(&args),
        Command::Reload(args) => reload::reload(&args),
        Command::Confirm(args) => reload::confirm(&args),
        Command::History(args) => history::history(&args),
        Command::Rollback(args) => reload::rollback(&args),
        Command::Fault(args) => fault::fault(&args),
        Command::Check(args) => check::check(&args),
        Command::Headroom(args) => headroom::headroom(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Sim(args) => sim::sim(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::NicCheck(args) => nic_check::run(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => man::man(&args),
        Command::Top(args) => top::top(&args),
    };
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// Writes to standard output. If the reader has closed the pipe (`| head`), that is not an error.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes JSON to standard output.
fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
