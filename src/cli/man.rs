//! `holdfast man`: writes the manual pages.

use std::path::PathBuf;

use clap::CommandFactory;
use clap::builder::Resettable;

use super::{Cli, Failure};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory for holdfast.1 and a page for each command; created if it does not exist
    directory: PathBuf,
}

pub fn man(args: &Args) -> Result<(), Failure> {
    let directory = &args.directory;
    // The long version names the processor of this machine.
    let pages = Cli::command().long_version(Resettable::Reset);
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(pages, directory));
    written.map_err(|error| {
        let directory = directory.display();
        Failure::Run(format!(
            "manual pages cannot be written to {directory}: {error}; name a directory that you may write to"
        ))
    })
}
