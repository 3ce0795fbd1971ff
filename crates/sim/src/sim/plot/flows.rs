//! Throughput over time, by flow or by receiver and class.

use super::figure::{Across, Figure, Layer, Panel, Points, Scale, Shape};
use super::subtitle;
use super::svg::PALETTE;
use crate::sim::outcome::Outcome;
use crate::sim::report::group::{Group, groups};
use crate::sim::spec::Scenario;
use crate::text::format::time;
use crate::units::Nanos;

/// Number of lines that readers can tell apart. More flows are grouped by receiver and class; of more groups, only the
/// busiest are shown.
const MOST: usize = PALETTE.len();
/// Number of intervals over which a rate is averaged: shorter intervals would show single frames instead of a rate.
const STRETCHES: usize = 240;

/// Returns the figure; `None` without samples.
pub fn figure(scenario: &Scenario, outcome: &Outcome) -> Option<Figure> {
    let samples = &outcome.samples;
    let mut groups = groups(scenario, outcome, MOST);
    if samples.count == 0 || samples.every_ps == 0 || groups.is_empty() {
        return None;
    }
    let all = groups.len();
    if all > MOST {
        groups.sort_by_key(|group| std::cmp::Reverse(group.sum.received_bytes));
        groups.truncate(MOST);
    }
    let stretch = samples.count.div_ceil(STRETCHES);
    let lines: Vec<Points> = groups.iter().map(|group| received(outcome, group, stretch)).collect();
    let rates: Vec<Points> = groups.iter().map(|group| allowed(outcome, group, stretch)).collect();
    let highest = |lines: &[Points]| lines.iter().flatten().map(|point| point.1).fold(0.0, f64::max);
    // Many senders may together send far more than arrives, since all begin at line rate. The scale follows the
    // received rate.
    let arrived = highest(&lines);
    let most = if arrived > 0.0 { highest(&rates).clamp(arrived, arrived * 2.0) } else { highest(&rates) };
    let over = time(Nanos(stretch as u64 * samples.every_ps / 1000));
    let title = match all - groups.len() {
        0 => format!("received, mean over {over}"),
        more => format!("received, mean over {over}, busiest flows; {more} more are not shown"),
    };
    let layers = layers(&groups, lines, rates);
    let height = 300.0;
    let scale = Scale::Values { title: "rate (Gb/s)".to_owned(), unit: (1e9, "Gb/s"), most: most * 1.08, height };
    let panels = vec![Panel { title, scale, layers }];
    Some(Figure {
        title: "throughput".to_owned(),
        subtitle: subtitle(scenario),
        across: Across::time(outcome.end_ps),
        panels,
    })
}

fn layers(groups: &[Group], lines: Vec<Points>, rates: Vec<Points>) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let name = format!("{}, class {}", group.name, group.class);
        let shape = Shape::Line { points: lines[index].clone(), dashed: false };
        layers.push(Layer { name, colour: PALETTE[index % MOST], shape });
    }
    let mut name = "dashed: rate allowed by DCQCN".to_owned();
    for (index, points) in rates.into_iter().enumerate().filter(|(_, points)| !points.is_empty()) {
        let shape = Shape::Line { points, dashed: true };
        layers.push(Layer { name: std::mem::take(&mut name), colour: PALETTE[index % MOST], shape });
    }
    layers
}

/// Sums several series by stretches of `stretch` samples. Returns each stretch as `(end, sum, samples)`.
fn sums<'a>(series: impl Iterator<Item = &'a Vec<u32>>, stretch: usize) -> Vec<(usize, u64, u64)> {
    let mut sums: Vec<(usize, u64, u64)> = Vec::new();
    for values in series {
        for (index, part) in values.chunks(stretch).enumerate() {
            if sums.len() == index {
                sums.push((index * stretch + part.len(), 0, part.len() as u64));
            }
            sums[index].1 += part.iter().map(|&value| u64::from(value)).sum::<u64>();
        }
    }
    sums
}

/// Returns the bits per second that a group received.
fn received(outcome: &Outcome, group: &Group, stretch: usize) -> Points {
    let samples = &outcome.samples;
    let every = samples.every_ps as f64;
    let series = group.flows.iter().filter_map(|&flow| samples.flow_bytes.get(flow));
    let point = |(end, bytes, count): (usize, u64, u64)| {
        let middle = end as f64 - count as f64 / 2.0;
        (middle * every, bytes as f64 * 8.0 / (count as f64 * every) * 1e12)
    };
    sums(series, stretch).into_iter().map(point).collect()
}

/// Returns the bits per second that DCQCN allows a group to send; empty without DCQCN.
fn allowed(outcome: &Outcome, group: &Group, stretch: usize) -> Points {
    let samples = &outcome.samples;
    let series = group.flows.iter().filter_map(|&flow| samples.flow_rate_mbps.get(flow));
    let point = |(end, rates, count): (usize, u64, u64)| {
        let middle = end as f64 - count as f64 / 2.0;
        (middle * samples.every_ps as f64, rates as f64 / count as f64 * 1e6)
    };
    sums(series, stretch).into_iter().map(point).collect()
}
