//! `holdfast clear`: clears watermarks and learned stations of a running switch, and counters for one user.

use clap::ValueEnum;

use super::asked::{Asked, nothing_named, port_to_show};
use super::{Failure, baseline, print};

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast clear [OPTIONS] <WHAT>")]
pub struct Args {
    /// Watermarks, stations or counters to clear
    #[arg(value_enum)]
    what: Option<What>,
    /// For fdb: only stations behind this port or link aggregation group
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// For fdb: only stations in this VLAN
    #[arg(long, value_name = "1-4094", value_parser = clap::value_parser!(u16).range(1..=4094))]
    vlan: Option<u16>,
    /// For counters: count from the start of the switch again
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    switch: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Watermarks of groups, queues, pools and headroom, and the longest poll gaps: set to the current values
    Watermarks,
    /// Learned stations of the forwarding database; static ones stay (also `mac`)
    #[value(alias = "mac")]
    Fdb,
    /// Counters that `holdfast show` prints for this user; the switch and its metrics count on
    Counters,
}

impl What {
    /// The options that it has.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Watermarks => &[],
            Self::Fdb => &["--port", "--vlan"],
            Self::Counters => &["--undo"],
        }
    }
}

pub fn clear(args: &Args) -> Result<(), Failure> {
    let what = args.what.ok_or_else(|| nothing_named::<What>("clear"))?;
    let given = [("--port", args.port.is_some()), ("--vlan", args.vlan.is_some()), ("--undo", args.undo)];
    let wrong = |(option, is_given): &(&str, bool)| *is_given && !what.options().contains(option);
    if let Some((option, _)) = given.into_iter().find(wrong) {
        let name = what.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        return Err(Failure::usage(format!("`clear {name}` does not take {option}; remove it")));
    }
    let client = args.switch.client()?;
    match what {
        What::Watermarks => {
            client.clear_watermarks()?;
            print("watermarks are set to the current values\n")
        }
        What::Counters if args.undo => print(&baseline::undo(&client)?),
        What::Counters => print(&baseline::set(&client)?),
        What::Fdb => {
            let port = args.port.as_deref().map(|name| port_to_show(&client, name, true)).transpose()?;
            let count = client.clear_fdb(port.as_deref(), args.vlan)?;
            print(&format!("learned stations removed: {count}\n"))
        }
    }
}
