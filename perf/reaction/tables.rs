//! Tables, JSON and plot of the outcomes.

use serde_json::{Value, json};

use super::{Outcome, THEFT_NS};
use crate::rig::{Curve, Histogram, Samples, Section, Watch, distributions, micros};
use holdfast::headroom::headroom;

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Thefts per second, and their share of the time.
fn thefts(watch: &Watch, seconds: f64, hz: u64) -> [String; 2] {
    [format!("{:.0}", watch.thefts as f64 / seconds), percent(watch.stolen as f64 / hz as f64 / seconds)]
}

pub fn table_of_runs(outcomes: &[Outcome]) -> Section {
    let columns = [
        "case",
        "port",
        "core can",
        "forwarded",
        "idle",
        "frames a poll",
        "XOFF/s",
        "ring, highest",
        "lossless drops",
        "lossy drops",
        "thefts/s",
        "stolen",
        "machine: thefts/s",
        "stolen",
    ];
    let mut section =
        Section::new("What was run (frames a second; idle: of the time, in polls that moved nothing)", &columns);
    for outcome in outcomes {
        let millions = |pps: f64| format!("{:.2} M", pps / 1e6);
        let cells = [
            outcome.name.clone(),
            format!("{:.2} Gb/s", outcome.rate.0 as f64 / 1e9),
            millions(outcome.core_pps),
            millions(outcome.forwarded as f64 / outcome.seconds),
            percent(outcome.idle_share),
            format!("{:.1}", outcome.frames_per_poll),
            format!("{:.0}", outcome.reaction.times.xoffs as f64 / outcome.seconds),
            outcome.ring_highest.to_string(),
            outcome.lossless_drops.to_string(),
            outcome.lossy_drops.to_string(),
        ];
        let run = thefts(&outcome.run, outcome.seconds, outcome.hz);
        let machine = thefts(&outcome.machine.watch, outcome.machine_seconds(), outcome.hz);
        section.row(cells.into_iter().chain(run).chain(machine));
    }
    section
}

pub fn table_of_samples<'a>(
    title: &str,
    outcomes: &'a [Outcome],
    rows: impl Fn(&'a Outcome) -> Vec<(&'static str, &'a Samples)>,
) -> Section {
    let columns =
        ["case", "what", "samples", "p50", "p99", "p99.9", "max", "undisturbed", "p50", "p99", "p99.9", "max"];
    let mut section = Section::new(format!("{title} (us)"), &columns);
    for outcome in outcomes {
        for (what, samples) in rows(outcome).into_iter().filter(|row| row.1.all.count() > 0) {
            let cells = [outcome.name.clone(), what.to_owned(), samples.all.count().to_string()];
            let share = samples.undisturbed.count() as f64 / samples.all.count() as f64;
            let cells = cells.into_iter().chain(samples.all.micros(outcome.hz)).chain([percent(share)]);
            section.row(cells.chain(samples.undisturbed.micros(outcome.hz)));
        }
    }
    section
}

/// How often two readings of the clock were further apart than a number of microseconds. If a run and the machine alone
/// agree, the switch is not the cause.
pub fn table_of_looks(outcomes: &[Outcome]) -> Section {
    let mut section = Section::new(
        "Looks at the clock further apart than this, a second",
        &["case", "1 us", "2 us", "3 us", "5 us", "10 us", "20 us", "50 us", "100 us"],
    );
    for outcome in outcomes {
        let rows =
            [(&outcome.run, outcome.seconds, ""), (&outcome.machine.watch, outcome.machine_seconds(), ", machine")];
        for (watch, seconds, what) in rows {
            let above = |us: u64| format!("{:.1}", watch.gaps.above(us * outcome.hz / 1_000_000) as f64 / seconds);
            let name = format!("{}{what}", outcome.name);
            section.row(std::iter::once(name).chain([1, 2, 3, 5, 10, 20, 50, 100].map(above)));
        }
    }
    section
}

/// The time to XOFF beside the delay that the machine adds to a job of its median.
pub fn table_of_machine(outcomes: &[Outcome]) -> Section {
    let columns = ["case", "samples", "XOFF sent, p50", "p99.9", "machine alone, p99.9", "beyond it"];
    let mut section = Section::new("XOFF sent, threshold, all samples, and the machine (us)", &columns);
    for outcome in outcomes.iter().filter(|outcome| outcome.reaction.times.xoff.all.count() > 0) {
        let xoff = &outcome.reaction.times.xoff.all;
        let us = |ticks: u64| micros(ticks as f64 * 1e9 / outcome.hz as f64);
        let (late, machine) = (xoff.quantile(0.999), outcome.machine_delay());
        let times = [xoff.quantile(0.5), late, machine, late.saturating_sub(machine)].map(us);
        section.row([outcome.name.clone(), xoff.count().to_string()].into_iter().chain(times));
    }
    section
}

/// Measured times beside the terms of headroom that depend on this switch, in microseconds.
pub fn table_of_terms(outcomes: &[Outcome]) -> Section {
    let columns = [
        "case",
        "poll gap: has",
        "XOFF sent, p99.9",
        "max",
        "longest visit gap less thefts",
        "transmit ring: has",
        "ahead of PFC, p99.9",
        "max",
        "both: have",
        "unseen and ahead, p99.9",
        "max",
        "eta",
        "headroom used",
    ];
    let mut section = Section::new("Measured, undisturbed, beside the terms of headroom (us; bytes)", &columns);
    for outcome in outcomes {
        let input = outcome.headroom_input();
        let us = |ticks: u64| micros(ticks as f64 * 1e9 / outcome.hz as f64);
        let times = &outcome.reaction.times;
        let xoff = times.xoff.undisturbed.micros(outcome.hz);
        section.row([
            outcome.name.clone(),
            micros(input.poll_gap.0 as f64),
            xoff[2].clone(),
            xoff[3].clone(),
            us(times.longest_net),
            micros(input.posted.0 as f64 * 8e9 / outcome.rate.0 as f64),
            us(times.ahead.quantile(0.999)),
            us(times.ahead.highest()),
            micros(input.poll_gap.0 as f64 + input.posted.0 as f64 * 8e9 / outcome.rate.0 as f64),
            us(times.unheard.undisturbed.quantile(0.999)),
            us(times.unheard.undisturbed.highest()),
            headroom(&input).total.to_string(),
            outcome.headroom_highest.to_string(),
        ]);
    }
    section
}

pub fn to_json(outcomes: &[Outcome]) -> Value {
    let samples =
        |samples: &Samples, hz| json!({"all": samples.all.json(hz), "undisturbed": samples.undisturbed.json(hz)});
    let case = |outcome: &Outcome| {
        let hz = outcome.hz;
        let named = |rows: Vec<(&'static str, &Samples)>| -> serde_json::Map<String, Value> {
            rows.into_iter().map(|(name, row)| (name.to_owned(), samples(row, hz))).collect()
        };
        json!({
            "case": outcome.name,
            "ports": outcome.ports,
            "frame_bytes": outcome.frame_len,
            "port_bits_per_second": outcome.rate.0,
            "core_frames_per_second": outcome.core_pps,
            "forwarded_frames_per_second": outcome.forwarded as f64 / outcome.seconds,
            "idle_share": outcome.idle_share,
            "xoffs_per_second": outcome.reaction.times.xoffs as f64 / outcome.seconds,
            "lossless_drops": outcome.lossless_drops,
            "lossy_drops": outcome.lossy_drops,
            "ring_highest_frames": outcome.ring_highest,
            "headroom_highest_bytes": outcome.headroom_highest.0,
            "thefts": outcome.run.thefts,
            "stolen_share": outcome.run.stolen as f64 / hz as f64 / outcome.seconds,
            "machine_thefts": outcome.machine.watch.thefts,
            "machine_stolen_share": outcome.machine.watch.stolen as f64 / outcome.machine.ticks as f64,
            "machine_delay_p999_ns": outcome.machine_delay() as f64 * 1e9 / hz as f64,
            "looks_apart": outcome.run.gaps.json(hz),
            "reaction": named(outcome.reactions().to_vec()),
            "gaps": named(outcome.gaps().to_vec()),
            "data_ahead_of_pfc": outcome.reaction.times.ahead.json(hz),
            "unseen_and_ahead_of_pfc": samples(&outcome.reaction.times.unheard, hz),
        })
    };
    json!({"theft_ns": THEFT_NS, "cases": outcomes.iter().map(case).collect::<Vec<_>>()})
}

/// Draws a panel for each case: undisturbed samples as solid lines, all samples dashed.
pub fn picture(outcomes: &[Outcome]) -> String {
    fn curves<'a>(rows: &[(&'static str, &'a Samples)]) -> Vec<Curve<'a>> {
        let pair = |(name, samples): &(&'static str, &'a Samples)| {
            let curve = |name: String, values: &'a Histogram, dashed| Curve { name, values, dashed };
            [curve((*name).to_owned(), &samples.undisturbed, false), curve("all".to_owned(), &samples.all, true)]
        };
        rows.iter().flat_map(pair).collect()
    }
    let panels: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let times = &outcome.reaction.times;
            let rows = [
                ("XOFF sent", &times.xoff),
                ("XOFF received to last frame", &times.stop),
                ("XON sent", &times.xon),
                ("poll gap", &times.gaps),
            ];
            (outcome.name.clone(), curves(&rows))
        })
        .collect();
    let subtitle = "solid: nobody took the core away meanwhile; dashed: all; one core, switch and peers";
    distributions("Reaction of a saturated switch", subtitle, outcomes[0].hz, &panels)
}
