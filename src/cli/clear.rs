//! `holdfast clear`.

use holdfast::api::socket::VARIABLE;
use holdfast::api::{Client, Socket};

use super::{Failure, print};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to clear
    #[arg(value_enum)]
    what: What,
    /// The switch's socket [default: $XDG_RUNTIME_DIR/holdfast.sock, then /run/holdfast/holdfast.sock]
    #[arg(long, value_name = "PATH", env = VARIABLE, hide_env_values = true)]
    socket: Option<Socket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// The highest uses of groups, queues, pools and headroom, the longest poll gaps: they begin again with what is now
    Watermarks,
}

pub fn clear(args: &Args) -> Result<(), Failure> {
    let failed = |error| Failure::Run(format!("{error}"));
    let client = Client::new(&args.socket.clone().unwrap_or_default()).map_err(failed)?;
    match args.what {
        What::Watermarks => client.clear_watermarks().map_err(failed)?,
    }
    print("watermarks begin again with what is held now\n")
}
