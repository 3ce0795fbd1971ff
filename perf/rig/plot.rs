//! Plots of distributions: the share of values that exceeds each value. Both axes are logarithmic, so that tails are
//! readable.

use super::Histogram;
use super::svg::{Anchor, PALETTE, Rect, Svg, text_width};

const WIDTH: f64 = 900.0;
const PANEL: f64 = 260.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 22.0;
/// The vertical axis covers 1 down to one in a million.
const DECADES: f64 = 6.0;

/// A line of a panel.
pub struct Curve<'a> {
    /// Name in the legend.
    pub name: String,
    /// Values in ticks.
    pub values: &'a Histogram,
    /// Whether the line is dashed.
    pub dashed: bool,
}

/// Draws one panel for each of `panels`, with values of a clock of `hz`. The axis reaches from 10 ns to the largest
/// value.
pub fn distributions(title: &str, subtitle: &str, hz: u64, panels: &[(String, Vec<Curve<'_>>)]) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.bold(LEFT, 22.0, 15, title);
    svg.faint(LEFT, 39.0, Anchor::Start, subtitle);
    let ns = |ticks: u64| ticks as f64 * 1e9 / hz as f64;
    let highest = panels.iter().flat_map(|panel| &panel.1).map(|curve| ns(curve.values.highest())).fold(1e4, f64::max);
    let scale = Scale { first: 1.0, last: highest.log10().ceil() };
    let mut top = 58.0;
    for (name, curves) in panels {
        top = legend(&mut svg, name, curves, top);
        let rect = Rect { x: LEFT, y: top, width: WIDTH - LEFT - RIGHT, height: PANEL };
        scale.axes(&mut svg, rect);
        for (index, curve) in curves.iter().enumerate().filter(|(_, curve)| curve.values.count() > 0) {
            let points = scale.line(rect, curve.values, ns);
            svg.stroke(&points, PALETTE[index / 2 % PALETTE.len()], 1.8, curve.dashed);
        }
        svg.frame(rect);
        top += PANEL + 34.0;
    }
    svg.finish(top)
}

/// Draws title and legend of a panel. Returns the vertical position below them.
fn legend(svg: &mut Svg, name: &str, curves: &[Curve<'_>], top: f64) -> f64 {
    svg.bold(LEFT, top + 13.0, 12, name);
    let (mut x, mut y) = (LEFT, top + 18.0);
    for (index, curve) in curves.iter().enumerate() {
        let width = 24.0 + text_width(&curve.name) + 16.0;
        if x + width > WIDTH - RIGHT {
            (x, y) = (LEFT, y + 18.0);
        }
        let colour = PALETTE[index / 2 % PALETTE.len()];
        svg.stroke(&[(x, y + 9.0), (x + 18.0, y + 9.0)], colour, 2.0, curve.dashed);
        svg.text(x + 24.0, y + 13.0, Anchor::Start, &curve.name);
        x += width;
    }
    y + 22.0
}

/// The horizontal axis, as exponents of ten nanoseconds.
struct Scale {
    first: f64,
    last: f64,
}

impl Scale {
    fn x(&self, rect: Rect, ns: f64) -> f64 {
        let share = (ns.max(1.0).log10() - self.first) / (self.last - self.first);
        rect.x + share.clamp(0.0, 1.0) * rect.width
    }

    fn y(rect: Rect, share: f64) -> f64 {
        let decades = if share > 0.0 { -share.log10() } else { DECADES };
        rect.y + (decades / DECADES).clamp(0.0, 1.0) * rect.height
    }

    fn line(&self, rect: Rect, values: &Histogram, ns: impl Fn(u64) -> f64) -> Vec<(f64, f64)> {
        let mut points = vec![(rect.x, rect.y)];
        for (value, share) in values.tail() {
            let (x, y) = (self.x(rect, ns(value)), Self::y(rect, share));
            let before = points[points.len() - 1];
            // Invisible steps are omitted: they would only enlarge the file.
            if y - before.1 > 1.0 || x - before.0 > 8.0 {
                points.extend([(x, before.1), (x, y)]);
            }
        }
        let (x, bottom) = (self.x(rect, ns(values.highest())), rect.y + rect.height);
        points.extend([(x, points[points.len() - 1].1), (x, bottom)]);
        points
    }

    fn axes(&self, svg: &mut Svg, rect: Rect) {
        let bottom = rect.y + rect.height;
        for exponent in self.first as i32..=self.last as i32 {
            let x = self.x(rect, 10_f64.powi(exponent));
            svg.grid((x, rect.y), (x, bottom));
            svg.text(x, bottom + 16.0, Anchor::Middle, &decade(exponent));
        }
        for (decades, label) in ["all", "10 %", "1 %", "0.1 %", "0.01 %", "10 ppm", "1 ppm"].iter().enumerate() {
            let y = Self::y(rect, 10_f64.powi(-(decades as i32)));
            svg.grid((rect.x, y), (rect.x + rect.width, y));
            svg.text(rect.x - 6.0, y + 4.0, Anchor::End, label);
        }
        svg.upright(18.0, rect.y + rect.height / 2.0, "share that takes longer");
    }
}

/// Label of a power of ten in nanoseconds.
fn decade(exponent: i32) -> String {
    let unit = ["ns", "us", "ms", "s"][(exponent / 3).clamp(0, 3) as usize];
    format!("{} {unit}", 10_i32.pow(exponent.rem_euclid(3) as u32))
}
