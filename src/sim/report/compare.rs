//! Variants of a scenario beside each other: a row a variant, a column a measure.

use serde_json::{Map, Value, json};

use super::csv::{quoted, whole};
use super::group::{groups, sum};
use super::json::ending;
use super::show;
use super::verdict::{of_variants, sent_and_lost};
use crate::sim::outcome::{ClassOutcome, Outcome, SwitchOutcome};
use crate::sim::spec::Scenario;
use crate::stats::format::{gigabits, grouped};
use crate::stats::table::{Align, Table};
use crate::units::Bytes;

/// A variant's name and its run.
type Row<'a> = (String, &'a Scenario, &'a Outcome);

/// What is measured, in its unit.
enum Measure {
    Count(u64),
    /// Bits a second.
    Rate(f64),
    /// Picoseconds; zero is nothing.
    Time(u64),
    Bytes(u64),
    /// Some of all, in frames.
    Share(u64, u64),
}

/// A measure: its title in the table, its name for machines, and how to take it.
struct Column {
    title: &'static str,
    name: &'static str,
    of: fn(&Scenario, &Outcome) -> Measure,
}

const fn column(title: &'static str, name: &'static str, of: fn(&Scenario, &Outcome) -> Measure) -> Column {
    Column { title, name, of }
}

const COLUMNS: &[Column] = &[
    column("lossless Gb/s", "lossless_received_bits_per_second", |s, o| Measure::Rate(rate(s, o, true))),
    column("lossy Gb/s", "lossy_received_bits_per_second", |s, o| Measure::Rate(rate(s, o, false))),
    column("lossless lost", "lossless_lost_frames", |s, o| Measure::Count(sent_and_lost(s, o, true).1)),
    column("lossy lost", "lossy_lost_frames", |s, o| Measure::Count(sent_and_lost(s, o, false).1)),
    column("pauses", "pauses_sent", |_, o| Measure::Count(classes(o, |class| class.pauses_tx))),
    column("held", "peers_held_ps", |_, o| Measure::Time(classes(o, |class| class.held_ps))),
    column("marked", "marked_per_million", |_, o| {
        let all = sum(o.flows.iter());
        Measure::Share(all.marked_frames, all.received_frames)
    }),
    column("CNPs", "cnps", |_, o| Measure::Count(sum(o.flows.iter()).cnps)),
    column("headroom", "headroom_highest_bytes", |s, o| Measure::Bytes(switches(s, o, headroom))),
    column("lossless pool", "lossless_shared_highest_bytes", |s, o| {
        Measure::Bytes(switches(s, o, |switch| switch.shared_highest_cells[1]))
    }),
    column("lossy pool", "lossy_shared_highest_bytes", |s, o| {
        Measure::Bytes(switches(s, o, |switch| switch.shared_highest_cells[0]))
    }),
    column("message p50", "completion_p50_ps", |_, o| Measure::Time(sum(o.flows.iter()).completion.p50_ps)),
    column("p99", "completion_p99_ps", |_, o| Measure::Time(sum(o.flows.iter()).completion.p99_ps)),
    column("max", "completion_max_ps", |_, o| Measure::Time(sum(o.flows.iter()).completion.most_ps)),
];

/// Bits a second that lossless or lossy flows received together.
fn rate(scenario: &Scenario, outcome: &Outcome, lossless: bool) -> f64 {
    let groups = groups(scenario, outcome, usize::MAX);
    groups.iter().filter(|group| group.lossless == lossless).map(|group| group.rate).sum()
}

/// A count of all classes of all ports.
fn classes(outcome: &Outcome, of: fn(&ClassOutcome) -> u64) -> u64 {
    let ports = outcome.switches.iter().flat_map(|switch| &switch.ports);
    ports.flat_map(|port| &port.classes).map(of).sum()
}

/// A number of cells of all switches, as bytes.
fn switches(scenario: &Scenario, outcome: &Outcome, of: fn(&SwitchOutcome) -> u64) -> u64 {
    let nodes = scenario.switches.iter().zip(&outcome.switches);
    nodes.map(|(node, switch)| of(switch) * node.config.switch.buffer.cell.0).sum()
}

/// Most cells in headroom, of every group for itself: as much as would have been needed if all had been full at once.
fn headroom(switch: &SwitchOutcome) -> u64 {
    switch.ports.iter().flat_map(|port| &port.classes).map(|class| class.headroom_highest_cells).sum()
}

/// A table with a row a variant, and what was lost in which; measures that are nothing in all of them are left out.
#[must_use]
pub fn comparison(rows: &[(String, &Scenario, &Outcome)]) -> String {
    let titles = COLUMNS.iter().map(|column| (column.title, Align::Right));
    let titles: Vec<_> =
        [("variant", Align::Left)].into_iter().chain(titles).chain([("ending", Align::Left)]).collect();
    let mut table = Table::new(&titles);
    for (name, scenario, outcome) in rows {
        let cells = COLUMNS.iter().map(|column| text(&(column.of)(scenario, outcome)));
        table.row([name.clone()].into_iter().chain(cells).chain([show::ending(outcome.ending)]));
    }
    let idle: Vec<&str> = COLUMNS.iter().map(|column| column.title).collect();
    let table = table.without_idle(&idle, show::NOTHING).without_idle(&idle, "0");
    format!("{table}\n{}", of_variants(rows))
}

fn text(measure: &Measure) -> String {
    match *measure {
        Measure::Bytes(0) => show::NOTHING.to_owned(),
        Measure::Rate(0.0) => show::NOTHING.to_owned(),
        Measure::Count(count) => grouped(count),
        Measure::Rate(rate) => gigabits(rate),
        Measure::Time(ps) => show::span(ps),
        Measure::Bytes(bytes) => Bytes(bytes).to_string(),
        Measure::Share(part, whole) => show::share(part, whole),
    }
}

fn number(measure: &Measure) -> u64 {
    match *measure {
        Measure::Count(number) | Measure::Time(number) | Measure::Bytes(number) => number,
        Measure::Rate(rate) => whole(rate),
        Measure::Share(part, whole) => (part * 1_000_000).checked_div(whole).unwrap_or(0),
    }
}

/// A list with an object a variant, each with every measure.
#[must_use]
pub fn comparison_json(rows: &[(String, &Scenario, &Outcome)]) -> Value {
    let object = |(name, scenario, outcome): &Row<'_>| {
        let mut object = Map::new();
        object.insert("variant".to_owned(), json!(name));
        object.insert("seed".to_owned(), json!(scenario.seed));
        object.insert("ending".to_owned(), json!(ending(outcome.ending)));
        for column in COLUMNS {
            object.insert(column.name.to_owned(), json!(number(&(column.of)(scenario, outcome))));
        }
        Value::Object(object)
    };
    rows.iter().map(object).collect()
}

/// A line a variant, each with every measure, after a header.
#[must_use]
pub fn comparison_csv(rows: &[(String, &Scenario, &Outcome)]) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    let mut text = format!("variant,seed,{},ending\n", names.join(","));
    for (name, scenario, outcome) in rows {
        let numbers = COLUMNS.iter().map(|column| number(&(column.of)(scenario, outcome)).to_string());
        let line: Vec<String> = [quoted(name), scenario.seed.to_string()].into_iter().chain(numbers).collect();
        text += &format!("{},{}\n", line.join(","), ending(outcome.ending));
    }
    text
}
