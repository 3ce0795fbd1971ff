//! `holdfast completions`: prints a completion script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Failure, print};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell that the script is for
    shell: Shell,
}

pub fn completions(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "holdfast", &mut script);
    print(&String::from_utf8_lossy(&script))
}
