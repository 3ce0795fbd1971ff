//! `holdfast headroom --prove`: compares the headroom formula with the worst cases in simulated time.

use std::io::{self, IsTerminal, Write};

use holdfast::headroom::most_slack;
use holdfast::sim::headroom::{Link, Peer, Proof, Term, links, prove as prove_link, terms};
use holdfast::text::table::Table;
use holdfast::units::Nanos;
use serde_json::json;

use super::super::{Failure, print, print_json};
use super::{Args, small_packets};

/// Proves the links that `args` select.
pub fn prove(args: &Args) -> Result<(), Failure> {
    let links = wanted(args)?;
    let mut proofs = Vec::new();
    for (number, link) in links.iter().enumerate() {
        progress(number, links.len());
        proofs.push((*link, prove_link(link)));
    }
    progress(links.len(), links.len());
    if args.json {
        return print_json(&to_json(&proofs));
    }
    let mut text = to_table(&proofs);
    text += &match &proofs[..] {
        [(link, proof)] => format!("\n{}", to_terms(&terms(link, proof))),
        _ => format!("\n{}", to_slack(&proofs)),
    };
    text += &broken(&proofs);
    print(&text)
}

/// The loss if traffic breaks the promise about small packets; empty without a promise.
fn broken(proofs: &[(Link, Proof)]) -> String {
    let mut lines = proofs.iter().filter_map(|(link, proof)| {
        let cells = proof.broken?.0;
        let (rate, cable, mtu) = (link.rate, link.cable, link.mtu);
        let missing = cells.saturating_sub(proof.formula.0);
        Some(format!("{rate}, cable {cable}, mtu {mtu}: {cells} cells, {missing} more than eta\n"))
    });
    let Some(first) = lines.next() else { return String::new() };
    format!(
        "\nif every packet is small, the class loses frames with a headroom of less than\n\n{first}{}",
        lines.collect::<String>()
    )
}

/// The links to prove: the one that is specified completely, or those of the table that match the given values.
fn wanted(args: &Args) -> Result<Vec<Link>, Failure> {
    let peer = match (args.response, args.speed) {
        (None, _) => Peer::Standard,
        (Some(bytes), Some(speed)) => {
            let time = u128::from(bytes.0) * 8_000_000_000 / u128::from(speed.0.max(1));
            Peer::Takes(Nanos(u64::try_from(time).unwrap_or(u64::MAX)))
        }
        (Some(_), None) => return Err(Failure::usage("`--response` in bytes needs a speed; write `--speed` too")),
    };
    let small_packets = args.small_packets;
    let with = |link: Link| Link { cell: args.cell, poll_gap: args.poll_gap, peer, small_packets, ..link };
    let mut found: Vec<Link> = links().map(with).collect();
    if let (Some(rate), Some(cable)) = (args.speed, args.cable) {
        let mtus = args.mtu.map_or(vec![1500, 9216], |mtu| vec![mtu]);
        found = mtus.into_iter().map(|mtu| Link { rate, cable, mtu, ..found[0] }).collect();
    }
    found.retain(|link| {
        args.speed.is_none_or(|speed| link.rate == speed)
            && args.cable.is_none_or(|cable| link.cable == cable)
            && args.mtu.is_none_or(|mtu| link.mtu == mtu)
    });
    for link in &found {
        check(link)?;
    }
    if found.is_empty() {
        return Err(Failure::usage("the table has no such link; write `--speed` and `--cable` for a link of your own"));
    }
    Ok(found)
}

/// Refuses links outside the supported range: they prove no more and take long. Also refuses links whose pause can
/// lapse.
fn check(link: &Link) -> Result<(), Failure> {
    let right = (1_000_000_000..=800_000_000_000).contains(&link.rate.0)
        && link.cable.mm <= 10_000_000
        && (500..=200_000).contains(&link.poll_gap.0)
        && !matches!(link.peer, Peer::Takes(Nanos(200_001..)));
    if right && link.pause_may_lapse() {
        return Err(Failure::usage(format!(
            "at {} a pause is refreshed after {} ns, too late for a poll gap of {}, {} of posted data and \
             this response: it expires before, and no headroom is sufficient; write a shorter `--poll-gap` or a \
             smaller `--response`",
            link.rate,
            link.half_life_ps() / 1000,
            link.poll_gap,
            most_slack(link.poll_gap)
        )));
    }
    if right {
        return Ok(());
    }
    Err(Failure::usage(
        "`--prove` does not cover this link; write a speed from 1G to 800G, a cable up to 10km, a poll gap from 500ns \
         to 200us and a response up to 200us",
    ))
}

fn progress(done: usize, of: usize) {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() {
        let end = if done == of { "\r          \r" } else { "" };
        // The progress is not essential: an error is ignored.
        let _ = write!(stderr, "\r{done} of {of}{end}").and_then(|()| stderr.flush());
    }
}

fn to_table(proofs: &[(Link, Proof)]) -> String {
    let mut table = Table::new(">speed | >cable | >mtu | >eta | >smallest | >slack | worst case");
    for (link, proof) in proofs {
        let slack = i64::from(proof.formula.0) - i64::from(proof.demand.0);
        let percent = slack * 1000 / i64::from(proof.formula.0.max(1));
        table.row([
            link.rate.to_string(),
            link.cable.to_string(),
            link.mtu.to_string(),
            proof.formula.0.to_string(),
            proof.demand.0.to_string(),
            format!("{slack} ({}.{}%)", percent / 10, percent % 10),
            proof.worst.to_string(),
        ]);
    }
    let Some((link, proof)) = proofs.first() else { return String::new() };
    format!(
        "headroom in cells of {} B, poll gap {}{}: by the formula, and the smallest without loss in {} worst \
         cases\n\n{table}",
        link.cell.0,
        link.poll_gap,
        small_packets(link.small_packets),
        proof.tried
    )
}

fn to_terms(terms: &[Term]) -> String {
    let mut table = Table::new("term | >eta | >measured | >slack | removed by");
    let (mut formula, mut measured) = (0, 0);
    for term in terms {
        (formula, measured) = (formula + term.formula, measured + term.measured);
        let numbers = [term.formula, term.measured, term.slack()].map(|cells| cells.to_string());
        let [eta, used, slack] = numbers;
        table.row([term.name.to_owned(), eta, used, slack, term.how.to_owned()]);
    }
    let total = [formula, measured, formula - measured].map(|cells| cells.to_string());
    table.row(std::iter::once("total".to_owned()).chain(total).chain([String::new()]));
    table.to_string()
}

/// The slack of each link, by term.
fn to_slack(proofs: &[(Link, Proof)]) -> String {
    let mut table = Table::new("");
    for (link, proof) in proofs {
        let terms = terms(link, proof);
        if table.is_empty() {
            let names =
                ["speed", "cable", "mtu"].into_iter().chain(terms.iter().map(|term| term.name)).chain(["slack"]);
            table = Table::of(names.map(|name| format!(">{name}")));
        }
        let slack = terms.iter().map(Term::slack);
        let cells = slack.clone().chain([slack.sum()]).map(|cells| cells.to_string());
        table.row([link.rate.to_string(), link.cable.to_string(), link.mtu.to_string()].into_iter().chain(cells));
    }
    format!("slack by term; the causes are removed one after the other, from left to right\n\n{table}")
}

fn to_json(proofs: &[(Link, Proof)]) -> serde_json::Value {
    let term = |term: Term| json!({"name": term.name, "formula_cells": term.formula, "measured_cells": term.measured});
    let row = |(link, proof): &(Link, Proof)| {
        json!({
            "bits_per_second": link.rate.0,
            "cable_mm": link.cable.mm,
            "mtu": link.mtu,
            "cell_bytes": link.cell.0,
            "small_packets_percent": link.small_packets.percent(),
            "broken_promise_cells": proof.broken.map(|cells| cells.0),
            "poll_gap_ns": link.poll_gap.0,
            "formula_cells": proof.formula.0,
            "smallest_cells": proof.demand.0,
            "worst_case": proof.worst.to_string(),
            "cases": proof.tried,
            "terms": terms(link, proof).into_iter().map(term).collect::<Vec<_>>(),
        })
    };
    json!({ "links": proofs.iter().map(row).collect::<Vec<_>>() })
}
