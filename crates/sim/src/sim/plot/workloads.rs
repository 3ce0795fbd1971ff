//! Plots of workloads: slowdown by size, PFC time by tier, and the distribution of queue lengths.

use super::axis::size_unit;
use super::bars::draw;
use super::figure::{Across, Figure, Layer, Panel, Points, Scale, Shape};
use super::svg::PALETTE;
use crate::sim::outcome::Outcome;
use crate::sim::queues::QueueLengths;
use crate::sim::report::tiers::{name, tiers};
use crate::sim::report::workloads::slowdowns_of;
use crate::sim::spec::Scenario;
use crate::units::Bytes;

/// Height of a panel of queue lengths.
const HEIGHT: f64 = 160.0;

/// Draws the plots of workloads: file name and picture.
pub fn plots(scenario: &Scenario, outcome: &Outcome) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    if scenario.workloads.is_empty() {
        return plots;
    }
    let subtitle = super::subtitle(scenario);
    for (number, workload) in scenario.workloads.iter().enumerate() {
        let buckets = slowdowns_of(outcome, number);
        let labels: Vec<String> = buckets.iter().map(|bucket| format!("up to {}", Bytes(bucket.most_bytes))).collect();
        let series = ["p50", "p95", "p99"].into_iter().enumerate();
        let values = |place: usize| buckets.iter().map(|bucket| bucket.quantiles[place]).collect();
        let series: Vec<(String, Vec<f64>)> = series.map(|(place, name)| (name.to_owned(), values(place))).collect();
        if !labels.is_empty() {
            let title = format!("slowdown of {}", workload.name);
            let file = format!("slowdown-{}", super::file_name(&workload.name));
            plots.push((file, draw(&title, &subtitle, "FCT / FCT on the empty path", &labels, &series)));
        }
    }
    let tiers = tiers(scenario, outcome);
    let labels: Vec<String> = (0..tiers.len()).map(name).collect();
    let mean = |(held, count): (u64, u64)| held as f64 / 1e6 / count.max(1) as f64;
    let series = [
        ("mean of all transmitters", tiers.iter().map(|tier| mean((tier.held_ps, tier.transmitters))).collect()),
        ("longest", tiers.iter().map(|tier| mean((tier.longest_ps, 1))).collect()),
    ];
    let series: Vec<(String, Vec<f64>)> = series.into_iter().map(|(name, values)| (name.to_owned(), values)).collect();
    plots.push(("pfc".to_owned(), draw("PFC time by tier", &subtitle, "time (us)", &labels, &series)));
    plots.extend(outcome.queues.as_ref().map(|lengths| ("queues".to_owned(), queues(lengths, subtitle).draw())));
    plots
}

/// Draws the share of samples of queues up to each length, and of those beyond it: most queues are empty.
fn queues(lengths: &QueueLengths, subtitle: String) -> Figure {
    let share = |samples: u64| samples as f64 * 100.0 / lengths.samples.max(1) as f64;
    let (mut up_to, mut beyond): (Points, Points) = (Vec::new(), Vec::new());
    for (bytes, samples) in lengths.cumulative() {
        for (points, samples) in [(&mut up_to, samples), (&mut beyond, lengths.samples - samples)] {
            // A step: the share holds up to the next length.
            points.extend(points.last().map(|&(_, before)| (bytes as f64, before)));
            points.push((bytes as f64, share(samples)));
        }
    }
    let longest = beyond.first().map_or(1.0, |&(_, share)| share).max(0.01);
    let most = lengths.most_bytes.max(1) as f64;
    Figure {
        title: "queues of all switch ports".to_owned(),
        subtitle,
        across: Across { name: "queue", unit: size_unit(most), most },
        panels: vec![panel("samples up to this length", up_to, 100.0), panel("longer samples", beyond, longest)],
    }
}

/// Returns a panel with shares of samples, up to `most` percent.
fn panel(title: &str, points: Points, most: f64) -> Panel {
    Panel {
        title: title.to_owned(),
        scale: Scale::Values { title: "samples (%)".to_owned(), unit: (1.0, "%"), most, height: HEIGHT },
        layers: vec![Layer { name: String::new(), colour: PALETTE[0], shape: Shape::Line { points, dashed: false } }],
    }
}
