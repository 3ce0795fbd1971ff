//! `holdfast headroom`: calculates the headroom of a lossless class, term by term.

mod prove;

use holdfast::config::checks::bounds::{self, LONGEST_RESPONSE, MTUS};
use holdfast::config::{Pool, Ratio, headroom_sum};
use holdfast::headroom::{Headroom, HeadroomInput, LEFT_BEHIND, Lapse, SmallPackets};
use holdfast::mmu::HeadroomPolicy;
use holdfast::text::table::Table;
use holdfast::units::{BitRate, Bytes, Length, Nanos};
use serde_json::json;

use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rate of the link, e.g. 100G
    #[arg(long, required_unless_present = "prove", value_parser = bounds::speed)]
    speed: Option<BitRate>,
    /// Length of the cable to the peer, e.g. 300m
    #[arg(long, required_unless_present = "prove", value_parser = bounds::cable)]
    cable: Option<Length>,
    /// Largest IP packet in bytes [default: 1500]
    #[arg(long, value_parser = clap::value_parser!(u16).range(i64::from(MTUS.0)..=i64::from(MTUS.1)))]
    mtu: Option<u16>,
    /// Size of a buffer cell
    #[arg(long, default_value = "208B", value_parser = bounds::cell)]
    cell: Bytes,
    /// Longest time between two polls of the port
    #[arg(long, default_value = "20us", value_parser = bounds::poll_gap)]
    poll_gap: Nanos,
    /// Largest share of bytes that the peer sends in packets shorter than half of the largest frame. Below 100% the
    /// result depends on the traffic
    #[arg(long, value_name = "SHARE", default_value = "100%")]
    small_packets: SmallPackets,
    /// Bytes that the peer sends until it obeys a pause, e.g. 25216B [default: by the link rate]
    #[arg(long, value_name = "BYTES")]
    response: Option<Bytes>,
    /// Number of ports like this one, for the sums of the headroom policies
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    ports: u8,
    /// Lossless classes of each port
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    classes: u8,
    /// Ratio of the sum of all headroom to a shared headroom pool
    #[arg(long, default_value = "2")]
    ratio: Ratio,
    /// Run the worst cases through the switch in simulated time, and find the smallest headroom without loss. Without
    /// speed, cable and MTU: 10G to 400G, 2m to 300m, 1500 and 9216
    #[arg(long, conflicts_with_all = ["ports", "classes", "ratio"])]
    prove: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const DEFAULT_MTU: u16 = 1500;

pub fn headroom(args: &Args) -> Result<(), Failure> {
    let (Some(speed), Some(cable), false) = (args.speed, args.cable, args.prove) else { return prove::prove(args) };
    let input = HeadroomInput {
        rate: speed,
        cable,
        mtu: args.mtu.unwrap_or(DEFAULT_MTU),
        poll_gap: args.poll_gap,
        posted: HeadroomInput::posted_by_pacing(speed, args.poll_gap),
        cell: args.cell,
        peer_response: args.response,
        left: LEFT_BEHIND,
        small_packets: args.small_packets,
        stops_queues: 0,
        other_rings: 0,
    };
    let most = speed.bytes_in(LONGEST_RESPONSE);
    if input.peer_response.is_some_and(|response| response > most) {
        return Err(Failure::usage(format!(
            "a response of {} B at {speed} is longer than any peer may take to obey PFC; write at most {} B",
            input.peer_response.map_or(0, |response| response.0),
            most.0
        )));
    }
    let headroom = holdfast::headroom::headroom(&input);
    let warnings = warnings(&input);
    if args.json {
        print_json(&to_json(args, &headroom, &warnings))
    } else {
        let warnings = warnings.iter().map(|warning| format!("warning: {warning}\n"));
        print(&(to_table(args, &input, &headroom) + &warnings.collect::<String>()))
    }
}

/// Warnings about cases in which no headroom is sufficient.
fn warnings(input: &HeadroomInput) -> Vec<String> {
    let lapse = Lapse::of(input).map(|lapse| {
        let remedy = match lapse.longest_poll_gap {
            Some(gap) => format!("the longest poll gap without this is {} ns", gap.0),
            None => "no poll gap is short enough for this response".to_owned(),
        };
        format!("at {} {lapse}; {remedy}", input.rate)
    });
    lapse.into_iter().collect()
}

/// The share of small packets for a title; empty if it is 100 %, because it then promises nothing.
fn small_packets(share: SmallPackets) -> String {
    if share.is_all() { String::new() } else { format!(", small packets {share}") }
}

fn to_table(args: &Args, input: &HeadroomInput, headroom: &Headroom) -> String {
    let mut table = Table::new("term | >bytes | how | source");
    for row in &headroom.rows {
        table.row([row.name.to_owned(), row.value.0.to_string(), row.how.clone(), row.source.to_owned()]);
    }
    let cells = format!("{} of {} B", headroom.cells, args.cell.0);
    let total = [headroom.total.0.to_string(), cells, "one lossless class of one port".to_owned()];
    table.row(std::iter::once("total".to_owned()).chain(total));
    let seed =
        [headroom.seed.0.to_string(), "2*(C*Dprop + L_mtu) + 3840 B".to_owned(), "the rows marked `seed`".to_owned()];
    table.row(std::iter::once("seed alone".to_owned()).chain(seed));
    let HeadroomInput { rate, cable, mtu, poll_gap, .. } = input;
    let small = small_packets(args.small_packets);
    let title = format!("headroom at {rate}, cable {cable}, mtu {mtu}, poll gap {poll_gap}{small}");
    // With a single eta, all policies take the same headroom.
    let sums =
        if args.ports > 1 || args.classes > 1 { to_sums(args, &policies(args, headroom)) } else { String::new() };
    format!("{title}\n\n{table}{sums}")
}

/// Headroom in cells that each policy takes for all ports and classes.
fn policies(args: &Args, headroom: &Headroom) -> [(HeadroomPolicy, u64); 3] {
    let etas = vec![vec![headroom.cells; args.classes.into()]; args.ports.into()];
    [HeadroomPolicy::Independent, HeadroomPolicy::SharedPool, HeadroomPolicy::Dynamic].map(|policy| {
        // The configuration refuses a pool smaller than one eta.
        let sum = headroom_sum(policy, Pool::Ratio(args.ratio), &etas, args.cell).max(headroom.cells.0.into());
        (policy, sum)
    })
}

fn to_sums(args: &Args, policies: &[(HeadroomPolicy, u64)]) -> String {
    let mut table = Table::new("policy | >cells | >size | how");
    let Args { ports, classes, ratio, .. } = args;
    for (policy, cells) in policies {
        let how = match policy {
            HeadroomPolicy::Independent => format!("{ports} x {classes} x eta"),
            HeadroomPolicy::SharedPool => format!("{ports} x {classes} x eta / {ratio}, at least one eta"),
            HeadroomPolicy::Dynamic => format!("{ports} x eta"),
        };
        let size = Bytes(cells.saturating_mul(args.cell.0)).to_string();
        table.row([policy.label().to_owned(), cells.to_string(), size, how]);
    }
    let plural = |count: &u8, one: &str, many: &str| format!("{count} {}", if *count == 1 { one } else { many });
    let ports = plural(ports, "such port", "such ports");
    format!("\n{ports}, each with {}\n\n{table}", plural(classes, "lossless class", "lossless classes"))
}

fn to_json(args: &Args, headroom: &Headroom, warnings: &[String]) -> serde_json::Value {
    let row = |row: &holdfast::headroom::HeadroomRow| json!({"name": row.name, "bytes": row.value.0, "how": row.how, "source": row.source, "seed": row.seed});
    let policies = policies(args, headroom).map(|(policy, cells)| (policy.label().to_owned(), json!(cells)));
    json!({
        "rows": headroom.rows.iter().map(row).collect::<Vec<_>>(),
        "seed_bytes": headroom.seed.0,
        "total_bytes": headroom.total.0,
        "cells": headroom.cells.0,
        "cell_bytes": args.cell.0,
        "small_packets_percent": args.small_packets.percent(),
        "warnings": warnings,
        "policy_cells": policies.into_iter().collect::<serde_json::Map<_, _>>(),
    })
}
