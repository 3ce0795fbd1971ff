//! Bar charts of cycles per packet: a group for each point, a bar for each program, a whisker from lowest to highest.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::plan::Point;
use super::results::{Cell, Results, Spread};
use super::svg::{Anchor, PALETTE, Rect, Svg, text_width};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const PLOT: Rect = Rect { x: 64.0, y: 64.0, width: WIDTH - 84.0, height: HEIGHT - 116.0 };
/// The share of a group's width that stays empty.
const GAP: f64 = 0.2;
const GRID_LINES: f64 = 5.0;

/// A plot: its points, each with the label below its bars.
pub struct Figure {
    pub file: &'static str,
    pub title: &'static str,
    points: &'static [(&'static str, &'static str)],
}

const FIGURES: [Figure; 3] = [
    Figure {
        file: "peers-sizes.svg",
        title: "Cycles a packet by frame size",
        points: &[("base", "64 B"), ("size-512", "512 B"), ("size-1500", "1500 B"), ("imix", "IMIX")],
    },
    Figure {
        file: "peers-flows.svg",
        title: "Cycles a packet by flows a port, and with cold headers",
        points: &[
            ("flows-1", "1"),
            ("base", "1,024"),
            ("flows-16384", "16,384"),
            ("flows-65536", "65,536"),
            ("posted-16384", "1,024, cold"),
        ],
    },
    Figure {
        file: "peers-classes.svg",
        title: "Cycles a packet by class",
        points: &[("base", "both"), ("lossy", "lossy"), ("lossless", "lossless")],
    },
];

/// Writes every plot whose points were measured, and returns those.
pub fn write(results: &Results, directory: &Path) -> Result<Vec<Figure>> {
    let measured = results.points();
    let mut written = Vec::new();
    for figure in FIGURES {
        let find = |(name, label)| Some((measured.iter().find(|point| point.name == name).copied()?, label));
        let points: Option<Vec<(Point, &str)>> = figure.points.iter().copied().map(find).collect();
        if let Some(points) = points {
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
            let path = directory.join(figure.file);
            let picture = draw(results, figure.title, &points);
            fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
            written.push(figure);
        }
    }
    Ok(written)
}

fn draw(results: &Results, title: &str, points: &[(Point, &str)]) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.bold(16.0, 24.0, 16, title);
    let names: Vec<&str> = results.at(&points[0].0).map(|cell| cell.program.name).collect();
    legend(&mut svg, &names);
    // A program that did not settle within a minute would compress the scale of all others.
    let settled = |cell: &Cell| cell.cycles().filter(|_| cell.has_settled());
    let spreads: Vec<Vec<Option<Spread>>> =
        points.iter().map(|(point, _)| results.at(point).map(settled).collect()).collect();
    let highest = spreads.iter().flatten().flatten().map(|spread| spread.highest).fold(1.0, f64::max);
    let step = nice_step(highest / GRID_LINES);
    let top = (highest / step).ceil() * step;
    axis(&mut svg, step, top);
    let group = PLOT.width / points.len() as f64;
    for ((index, (_, label)), spreads) in points.iter().enumerate().zip(&spreads) {
        let left = PLOT.x + group * index as f64;
        svg.text(left + group / 2.0, PLOT.y + PLOT.height + 20.0, Anchor::Middle, label);
        let width = group * (1.0 - GAP) / names.len() as f64;
        for (bar, spread) in spreads.iter().enumerate() {
            let x = left + group * GAP / 2.0 + width * bar as f64;
            draw_bar(&mut svg, x, width, *spread, top, PALETTE[bar % PALETTE.len()]);
        }
    }
    svg.frame(PLOT);
    let below = format!(
        "one core, 4 ports; median of {} rounds, whiskers from lowest to highest; {}",
        results.rounds, results.memory
    );
    svg.faint(PLOT.x, HEIGHT - 10.0, Anchor::Start, &below);
    svg.finish(HEIGHT)
}

fn legend(svg: &mut Svg, names: &[&str]) {
    let mut x = PLOT.x;
    for (index, name) in names.iter().enumerate() {
        svg.bar(Rect { x, y: 38.0, width: 12.0, height: 12.0 }, PALETTE[index % PALETTE.len()]);
        svg.text(x + 16.0, 48.0, Anchor::Start, name);
        x += 34.0 + text_width(name);
    }
}

fn axis(svg: &mut Svg, step: f64, top: f64) {
    let mut value = 0.0;
    while value <= top {
        let y = height_of(value, top);
        svg.grid((PLOT.x, y), (PLOT.x + PLOT.width, y));
        svg.text(PLOT.x - 6.0, y + 4.0, Anchor::End, &format!("{value:.0}"));
        value += step;
    }
    svg.upright(18.0, PLOT.y + PLOT.height / 2.0, "TSC cycles a packet");
}

fn draw_bar(svg: &mut Svg, x: f64, width: f64, spread: Option<Spread>, top: f64, colour: &str) {
    let middle = x + width / 2.0;
    let Some(spread) = spread else {
        svg.faint(middle, PLOT.y + PLOT.height - 4.0, Anchor::Middle, "-");
        return;
    };
    let y = height_of(spread.median, top);
    svg.bar(Rect { x, y, width: width - 2.0, height: PLOT.y + PLOT.height - y }, colour);
    let (low, high) = (height_of(spread.lowest, top), height_of(spread.highest, top));
    svg.stroke(&[(middle, low), (middle, high)], "#333333", 1.0, false);
    svg.faint(middle, high - 4.0, Anchor::Middle, &format!("{:.0}", spread.median));
}

fn height_of(value: f64, top: f64) -> f64 {
    PLOT.y + PLOT.height * (1.0 - value / top)
}

/// The smallest number that is 1, 2 or 5 times a power of ten and at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|&step| step >= least).unwrap_or(least)
}
