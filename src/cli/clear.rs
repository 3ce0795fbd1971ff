//! `holdfast clear`: clears the watermarks of a running switch.

use super::asked::{Asked, failed, nothing_named};
use super::{Failure, print};

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast clear [OPTIONS] <WHAT>")]
pub struct Args {
    /// Counters to clear
    #[arg(value_enum)]
    what: Option<What>,
    #[command(flatten)]
    switch: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Watermarks of groups, queues, pools and headroom, and the longest poll gaps: set to the current values
    Watermarks,
}

pub fn clear(args: &Args) -> Result<(), Failure> {
    let what = args.what.ok_or_else(|| nothing_named::<What>("clear"))?;
    let client = args.switch.client().map_err(failed)?;
    match what {
        What::Watermarks => client.clear_watermarks().map_err(failed)?,
    }
    print("watermarks are set to the current values\n")
}
