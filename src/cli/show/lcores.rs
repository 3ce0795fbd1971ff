//! Dataplane lcores.

use holdfast::text::table::Table;

use super::Looks;
use super::cells::{NONE, count, duration, grown, percent, since, time};

/// Columns that only some switches need.
const SELDOM: [&str; 4] = ["handed over", "ring highest", "rested", "wakes late"];

pub fn lcores(looks: &Looks<'_>) -> String {
    let state = looks.state();
    let mut table = Table::new(
        ">lcore | >polls/s | >busy | >gap p50 | >p99 | >highest | >queued | >stations | >handed over | \
         >ring highest | >rested | >wakes late | ports",
    );
    let ns = looks.before().map_or(state.at_ns, |(_, seconds)| (seconds * 1e9) as u64);
    for lcore in &state.lcores {
        let before =
            looks.before().and_then(|(before, _)| before.lcores.iter().find(|other| other.lcore == lcore.lcore));
        let polls = grown(lcore.polls, before.map(|lcore| lcore.polls));
        let busy = grown(lcore.busy_polls, before.map(|lcore| lcore.busy_polls));
        let rested = grown(lcore.rested_ns, before.map(|lcore| lcore.rested_ns));
        let quantile = |gap: Option<u64>| gap.map_or_else(|| NONE.to_owned(), time);
        table.row([
            lcore.lcore.to_string(),
            count((polls as f64 * 1e9 / ns.max(1) as f64) as u64),
            percent(busy, polls),
            quantile(lcore.poll_gap_p50_ns),
            quantile(lcore.poll_gap_p99_ns),
            time(lcore.poll_gap_highest_ns),
            count(lcore.held_frames),
            count(lcore.fdb_entries),
            count(grown(lcore.handed_off_frames, before.map(|lcore| lcore.handed_off_frames))),
            count(lcore.handoff_highest_frames),
            percent(rested, ns),
            time(lcore.rest_overshoot_highest_ns),
            ports(&lcore.ports),
        ]);
    }
    let configured = state.lcores.first().map_or(0, |lcore| lcore.poll_gap_configured_ns);
    let over = match looks.before() {
        Some(_) => format!("polls of the last {}", duration(ns)),
        None => since(state.at_ns),
    };
    format!(
        "{}(gaps: half and 99 % of them were shorter; headroom covers gaps up to {}; {over})\n",
        table.without_idle(&SELDOM, NONE),
        time(configured)
    )
}

/// Ports of one lcore: all names if they are at most four.
fn ports(names: &[String]) -> String {
    match names {
        [] => NONE.to_owned(),
        names if names.len() <= 4 => names.join(" "),
        [first, .., last] => format!("{first} .. {last} ({})", names.len()),
        [only] => only.clone(),
    }
}
