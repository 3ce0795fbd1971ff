//! The report of all rounds, by the distance of the CPUs.

use std::fmt::Write;

use serde_json::json;

use crate::primitives::{Distance, median};
use crate::run::Rate;
use crate::{PATTERNS, Pattern};

/// A round counts if its lcores had their CPUs alone for this share of the time.
const UNDISTURBED: f64 = 0.99;

pub enum Format {
    Text,
    Markdown,
    Json,
}

/// One measurement of a pattern.
pub struct Round {
    pub pattern: usize,
    pub rate: Rate,
    /// The distance of the CPUs before and after the measurement.
    pub before: Distance,
    pub after: Distance,
}

impl Round {
    /// Whether the CPUs were near; `None` if that changed or other programs used them.
    pub fn is_near(&self) -> Option<bool> {
        let is_same = self.before.is_near() == self.after.is_near();
        (is_same && self.rate.on_cpu >= UNDISTURBED).then_some(self.before.is_near())
    }
}

/// The results of a pattern at a distance.
struct Row {
    pattern: usize,
    is_near: bool,
    rounds: usize,
    /// Median, minimum and maximum, in millions of packets per second.
    rate: [f64; 3],
    bursts: [f64; 2],
    line: f64,
    object: f64,
    /// Cycles of a core per packet.
    cycles: f64,
    /// The rate as a multiple of one core.
    ratio: Option<f64>,
}

pub fn report(rounds: &[Round], hz: u64, format: Format) -> String {
    let mut rows: Vec<Row> = Vec::new();
    for is_near in [true, false] {
        let mut one = None;
        for (pattern, &Pattern { lcores, .. }) in PATTERNS.iter().enumerate() {
            let is_wanted = |round: &&Round| round.pattern == pattern && round.is_near() == Some(is_near);
            let wanted: Vec<&Round> = rounds.iter().filter(is_wanted).collect();
            if wanted.is_empty() {
                continue;
            }
            let mut row = row(pattern, is_near, &wanted, hz as f64 * lcores as f64);
            if pattern == 0 {
                one = Some(row.rate[0]);
            }
            row.ratio = one.map(|one| row.rate[0] / one);
            rows.push(row);
        }
    }
    let left_out = rounds.iter().filter(|round| round.is_near().is_none()).count();
    match format {
        Format::Text => text(&rows, rounds.len(), left_out),
        Format::Markdown => markdown(&rows),
        Format::Json => json_of(&rows, rounds.len(), left_out, hz),
    }
}

fn row(pattern: usize, is_near: bool, rounds: &[&Round], cycles: f64) -> Row {
    let of = |value: &dyn Fn(&Round) -> f64| rounds.iter().map(|round| value(round)).collect::<Vec<f64>>();
    let rates = of(&|round| round.rate.packets / 1e6);
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let rate = median(rates);
    Row {
        pattern,
        is_near,
        rounds: rounds.len(),
        rate: [rate, lowest, highest],
        bursts: [0, 1].map(|which| median(of(&|round| round.rate.bursts[which]))),
        line: median(of(&|round| (round.before.line + round.after.line) / 2.0)),
        object: median(of(&|round| (round.before.object + round.after.object) / 2.0)),
        cycles: cycles / (rate * 1e6),
        ratio: None,
    }
}

fn distance(row: &Row) -> &'static str {
    if row.is_near { "prefetch" } else { "far" }
}

fn ratio(row: &Row) -> String {
    row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn text(rows: &[Row], rounds: usize, left_out: usize) -> String {
    let mut text = format!(
        "{:<52} {:>5} {:>8} {:>10} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}\n",
        "Mpackets a second",
        "CPUs",
        "line, ns",
        "object, ns",
        "rounds",
        "median",
        "lowest",
        "highest",
        "cycles",
        "bursts",
        "ratio"
    );
    for row in rows {
        let [median, lowest, highest] = row.rate;
        let _ = writeln!(
            text,
            "{:<52} {:>5} {:>8.0} {:>10.1} {:>6} {median:>8.2} {lowest:>8.2} {highest:>8.2} {:>8.0} {:>8} {:>6}",
            PATTERNS[row.pattern].name,
            distance(row),
            row.line,
            row.object,
            row.rounds,
            row.cycles,
            format!("{:.0}, {:.0}", row.bursts[0], row.bursts[1]),
            ratio(row)
        );
    }
    let _ = writeln!(
        text,
        "cycles: of a core, a packet; bursts: frames a poll, of the lcore that sends fewest and of the other"
    );
    let _ = writeln!(
        text,
        "{left_out} of {rounds} measurements left out: an lcore had no CPU for a part of the time, or they moved apart"
    );
    for row in rows {
        if let (Some(aim), Some(ratio)) = (PATTERNS[row.pattern].aim, row.ratio) {
            let verdict = if ratio >= aim { "reached" } else { "MISSED" };
            let (name, distance) = (PATTERNS[row.pattern].name, distance(row));
            let _ = writeln!(text, "{name}, CPUs {distance}: {ratio:.2} times one core, aim {aim}: {verdict}");
        }
    }
    text
}

fn markdown(rows: &[Row]) -> String {
    let mut text =
        "| | CPUs | line there and back | ring, an object | Mpackets/s | lowest to highest | cycles a packet | \
                    times one core |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for row in rows {
        let [median, lowest, highest] = row.rate;
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} ns | {:.1} ns | {median:.2} | {lowest:.2} to {highest:.2} | {:.0} | {} |",
            PATTERNS[row.pattern].name,
            distance(row),
            row.line,
            row.object,
            row.cycles,
            ratio(row)
        );
    }
    text
}

fn json_of(rows: &[Row], rounds: usize, left_out: usize, hz: u64) -> String {
    let row = |row: &Row| {
        let Pattern { name: pattern, lcores, .. } = PATTERNS[row.pattern];
        json!({
            "pattern": pattern, "lcores": lcores, "cpus": distance(row), "rounds": row.rounds,
            "line_round_trip_ns": row.line, "ring_object_ns": row.object,
            "packets_per_second": {
                "median": row.rate[0] * 1e6, "lowest": row.rate[1] * 1e6, "highest": row.rate[2] * 1e6,
            },
            "cycles_per_packet": row.cycles, "frames_per_poll": row.bursts, "ratio_to_one_core": row.ratio,
        })
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    format!("{:#}\n", json!({"tsc_hz": hz, "measurements": rounds, "left_out": left_out, "rows": rows}))
}
