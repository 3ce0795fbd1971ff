//! Bar charts with groups of horizontal bars: message completion times, and comparisons of variants.

use super::axis::ticks;
use super::figure::{HEAD, WIDTH};
use super::svg::{Anchor, PALETTE, Rect, Svg, text_width};
use crate::sim::outcome::Outcome;
use crate::sim::report::group::groups;
use crate::sim::spec::Scenario;

/// Height of a bar.
const BAR: f64 = 14.0;
/// Height of the gap between two groups of bars.
const GAP: f64 = 12.0;
const RIGHT: f64 = 70.0;
/// Height of a line of the legend.
const LINE: f64 = 18.0;
/// Most flows that get a row of their own.
const MOST_ROWS: usize = 16;

/// Draws a picture with a group of bars for each of `labels`. Each of `series` has a name and one value per label. A
/// negative or non-finite value has no bar.
#[must_use]
pub fn bars(title: &str, unit: &str, labels: &[String], series: &[(String, Vec<f64>)]) -> String {
    draw(title, "", unit, labels, series)
}

/// Draws [`bars`] with a subtitle.
pub(super) fn draw(
    title: &str,
    subtitle: &str,
    unit: &str,
    labels: &[String],
    series: &[(String, Vec<f64>)],
) -> String {
    let widest = labels.iter().map(|label| text_width(label)).fold(0.0, f64::max);
    let left = (widest + 24.0).clamp(84.0, WIDTH / 2.0);
    let mut svg = Svg::new(WIDTH);
    svg.bold(16.0, 22.0, 15, title);
    svg.faint(16.0, 39.0, Anchor::Start, subtitle);
    let below = HEAD + legend(&mut svg, left, series);
    let group = BAR * series.len() as f64 + GAP;
    let rect = Rect { x: left, y: below, width: WIDTH - left - RIGHT, height: group * labels.len() as f64 + GAP };
    let most = series.iter().flat_map(|(_, values)| values).copied().filter(|value| value.is_finite());
    let most = most.fold(0.0, f64::max) * 1.1;
    axis(&mut svg, rect, most, unit);
    for (row, label) in labels.iter().enumerate() {
        let top = rect.y + GAP + group * row as f64;
        svg.text(left - 8.0, top + (group - GAP) / 2.0 + 4.0, Anchor::End, label);
        for (index, (_, values)) in series.iter().enumerate() {
            let Some(&value) = values.get(row).filter(|value| value.is_finite() && **value >= 0.0) else { continue };
            let width = if most > 0.0 { value / most * rect.width } else { 0.0 };
            let y = top + BAR * index as f64;
            let colour = PALETTE[index % PALETTE.len()];
            svg.bar(Rect { x: left, y: y + 1.0, width: width.max(0.5), height: BAR - 2.0 }, colour);
            svg.faint(left + width + 5.0, y + BAR - 3.0, Anchor::Start, &number(value));
        }
    }
    svg.frame(rect);
    svg.finish(rect.y + rect.height + 44.0)
}

/// Draws the names of `series`, in as many lines as they need. Returns their height.
fn legend(svg: &mut Svg, left: f64, series: &[(String, Vec<f64>)]) -> f64 {
    let (mut x, mut y) = (left, HEAD);
    for (index, (name, _)) in series.iter().enumerate() {
        let width = 20.0 + text_width(name);
        if x > left && x + width > WIDTH {
            (x, y) = (left, y + LINE);
        }
        svg.bar(Rect { x, y: y + 3.0, width: 14.0, height: 11.0 }, PALETTE[index % PALETTE.len()]);
        svg.text(x + 20.0, y + 13.0, Anchor::Start, name);
        x += width + 18.0;
    }
    y - HEAD + 24.0
}

fn axis(svg: &mut Svg, rect: Rect, most: f64, unit: &str) {
    let bottom = rect.y + rect.height;
    let most = if most > 0.0 { most } else { 1.0 };
    for (value, label) in ticks(most, 8) {
        let x = rect.x + value / most * rect.width;
        svg.grid((x, rect.y), (x, bottom));
        svg.text(x, bottom + 16.0, Anchor::Middle, &label);
    }
    svg.text(rect.x + rect.width / 2.0, bottom + 34.0, Anchor::Middle, unit);
}

/// Formats a value with three digits, or as a whole number.
fn number(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 => crate::text::format::grouped(value as u64),
        100.0.. => crate::text::format::grouped((value + 0.5) as u64),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Draws the completion times of messages; `None` if there were no messages.
pub fn completion(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let (mut labels, mut p50, mut p99, mut most) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let count = outcome.flows.iter().filter(|flow| flow.completion.count > 0).count();
    // Few flows with messages get a row each, even among many other flows.
    let limit = if count <= MOST_ROWS { usize::MAX } else { MOST_ROWS };
    for group in groups(scenario, outcome, limit) {
        let times = &group.sum.completion;
        if times.count > 0 {
            labels.push(format!("{}, class {}", group.name, group.class));
            p50.push(times.p50_ps as f64 / 1e6);
            p99.push(times.p99_ps as f64 / 1e6);
            most.push(times.most_ps as f64 / 1e6);
        }
    }
    let names = if limit == MOST_ROWS {
        ["p50 of the median flow", "p99 of the worst flow", "longest"]
    } else {
        ["p50", "p99", "longest"]
    };
    let series: Vec<(String, Vec<f64>)> = names.into_iter().map(str::to_owned).zip([p50, p99, most]).collect();
    let subtitle = super::subtitle(scenario);
    (count > 0).then(|| draw("message completion", &subtitle, "time (us)", &labels, &series))
}
