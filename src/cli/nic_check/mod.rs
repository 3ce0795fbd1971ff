//! `holdfast nic-check`: checks two ports that are connected by a cable, and prints a report.

#[cfg(feature = "dpdk")]
mod report;

use super::Failure;
use holdfast::units::BitRate;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// First port: a PCI address bound to a userspace driver, or a virtual device of DPDK
    port: String,
    /// Second port, connected to the first by a cable
    other: String,
    /// Rate of the link [default: as the driver reports it]
    #[arg(long)]
    rate: Option<BitRate>,
    /// Largest IP packet
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u16).range(256..=9600))]
    mtu: u16,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Write DPDK's log to standard error
    #[arg(short, long)]
    verbose: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.port == args.other {
        return Err(Failure::usage("both ports are the same; name the two ends of a cable"));
    }
    check(args)
}

#[cfg(feature = "dpdk")]
fn check(args: &Args) -> Result<(), Failure> {
    use holdfast::control::nic_check::{NicCheck, nic_check};

    let devices = [args.port.clone(), args.other.clone()];
    let settings = NicCheck { devices, rate: args.rate, mtu: args.mtu, verbose: args.verbose };
    let found = nic_check(&settings).map_err(|error| Failure::Run(error.to_string()))?;
    if args.json {
        super::print_json(&report::to_json(&found))?
    } else {
        super::print(&report::to_text(&found))?
    }
    if found.pfc().is_some() { Ok(()) } else { Err(Failure::Reported(1)) }
}

#[cfg(not(feature = "dpdk"))]
fn check(args: &Args) -> Result<(), Failure> {
    let _ = (args.rate, args.mtu, args.json, args.verbose);
    Err(Failure::usage(
        "this holdfast was built without DPDK and has no ports; build it with `cargo build --release`, which needs \
         libdpdk-dev, and without `--no-default-features`",
    ))
}
