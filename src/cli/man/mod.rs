//! `holdfast man`: writes the manual pages.

mod yaml;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::builder::Resettable;

use super::{Cli, Failure};

/// Pages of commands that read a configuration. They end with [`SEE_ALSO`].
const READERS: [&str; 4] = ["holdfast.1", "holdfast-check.1", "holdfast-reload.1", "holdfast-run.1"];
const SEE_ALSO: &str = ".SH \"SEE ALSO\"\n.BR holdfast.yaml (5)\n";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory for holdfast.1, a page for each command and holdfast.yaml.5; created if it does not exist
    directory: PathBuf,
}

pub fn man(args: &Args) -> Result<(), Failure> {
    write_pages(&args.directory).map_err(|error| {
        let directory = args.directory.display();
        Failure::Run(format!(
            "manual pages cannot be written to {directory}: {error}; name a directory that you may write to"
        ))
    })
}

fn write_pages(directory: &Path) -> std::io::Result<()> {
    // The long version names the processor of this machine.
    let commands = Cli::command().long_version(Resettable::Reset);
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(commands, directory)?;
    for page in READERS {
        OpenOptions::new().append(true).open(directory.join(page))?.write_all(SEE_ALSO.as_bytes())?;
    }
    fs::write(directory.join("holdfast.yaml.5"), yaml::page())
}
