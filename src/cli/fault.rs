//! `holdfast fault`: orders faults on the ports of a running switch, and ends them.

use super::asked::{Asked, failed};
use super::{Failure, print};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, clap::Subcommand)]
enum Order {
    /// Adds faults, all or none, and prints their numbers
    Add {
        /// Faults as the configuration writes them, such as '{lose: p1, one_in: 1000, for: 10s}'
        #[arg(required = true, value_name = "FAULT")]
        faults: Vec<String>,
        #[command(flatten)]
        switch: Asked,
    },
    /// Removes one fault
    Remove {
        /// Its number
        id: u64,
        #[command(flatten)]
        switch: Asked,
    },
    /// Removes all faults
    Clear {
        #[command(flatten)]
        switch: Asked,
    },
}

pub fn fault(args: &Args) -> Result<(), Failure> {
    match &args.order {
        Order::Add { faults, switch } => {
            let client = switch.client().map_err(failed)?;
            let ids = client.add_faults(&format!("[{}]", faults.join(", "))).map_err(failed)?;
            let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
            print(&format!("{}\n", ids.join(" ")))
        }
        Order::Remove { id, switch } => removed(switch.client().map_err(failed)?.remove_faults(Some(*id))),
        Order::Clear { switch } => removed(switch.client().map_err(failed)?.remove_faults(None)),
    }
}

fn removed(count: Result<u64, holdfast::api::client::ClientError>) -> Result<(), Failure> {
    match count.map_err(failed)? {
        1 => print("1 fault is removed\n"),
        count => print(&format!("{count} faults are removed\n")),
    }
}
