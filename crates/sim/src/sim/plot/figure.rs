//! A figure: panels below each other that share the horizontal axis, which is time but for distributions.

use super::axis::{Unit, join, thin, ticks, time_unit};
use super::svg::{Anchor, Rect, Svg, text_width};

/// Width of every picture.
pub const WIDTH: f64 = 900.0;
/// Room on the left for the axis and its title.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 22.0;
/// Room above the first panel.
pub const HEAD: f64 = 48.0;
/// Height of a line of a panel's head.
const LINE: f64 = 18.0;
/// Height of a row of bars.
const ROW: f64 = 22.0;
const GAP: f64 = 14.0;

/// Points: time in picoseconds or place on another axis, and value in the panel's unit.
pub type Points = Vec<(f64, f64)>;

pub struct Figure {
    pub title: String,
    pub subtitle: String,
    pub across: Across,
    pub panels: Vec<Panel>,
}

/// The horizontal axis, from zero to `most`, shown in `unit`.
pub struct Across {
    pub name: &'static str,
    pub unit: Unit,
    pub most: f64,
}

impl Across {
    /// Returns the time axis of a run that ends at `end_ps`.
    pub fn time(end_ps: u64) -> Self {
        Self { name: "time", unit: time_unit(end_ps), most: end_ps as f64 }
    }
}

pub struct Panel {
    pub title: String,
    pub scale: Scale,
    pub layers: Vec<Layer>,
}

/// The vertical axis of a panel.
pub enum Scale {
    /// Numbers from zero to `most`, shown in `unit`, with an axis title.
    Values { title: String, unit: Unit, most: f64, height: f64 },
    /// One row for each name.
    Rows(Vec<String>),
}

pub struct Layer {
    /// Name in the legend; empty: no entry.
    pub name: String,
    pub colour: &'static str,
    pub shape: Shape,
}

pub enum Shape {
    /// The area between two lines; between the axis and a line if `low` is empty.
    Area {
        high: Points,
        low: Points,
    },
    Line {
        points: Points,
        dashed: bool,
    },
    /// A constant limit.
    Level(f64),
    /// Thin bars from the axis up.
    Bars(Points),
    /// Periods, drawn in a row.
    Spans {
        row: usize,
        spans: Vec<(f64, f64)>,
    },
}

/// The rectangle that a panel draws on, and the ranges of its axes.
struct Frame {
    rect: Rect,
    end: f64,
    most: f64,
}

impl Frame {
    fn x(&self, ps: f64) -> f64 {
        self.rect.x + (ps / self.end).clamp(0.0, 1.0) * self.rect.width
    }

    fn y(&self, value: f64) -> f64 {
        self.rect.y + self.rect.height * (1.0 - (value / self.most).clamp(0.0, 1.0))
    }

    fn place(&self, points: &[(f64, f64)]) -> Points {
        points.iter().map(|&(ps, value)| (self.x(ps), self.y(value))).collect()
    }
}

impl Figure {
    pub fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        svg.bold(LEFT, 22.0, 15, &self.title);
        svg.faint(LEFT, 39.0, Anchor::Start, &self.subtitle);
        let mut top = HEAD;
        let Across { name, unit, most: end } = self.across;
        for (index, panel) in self.panels.iter().enumerate() {
            let body = head(&mut svg, panel, top);
            let rect = Rect { x: LEFT, y: body, width: WIDTH - LEFT - RIGHT, height: panel.height() };
            let most = if let Scale::Values { most, .. } = panel.scale { most.max(1e-9) } else { 1.0 };
            let frame = Frame { rect, end: end.max(1.0), most };
            let is_last = index + 1 == self.panels.len();
            across(&mut svg, &frame, unit, is_last);
            panel.axis(&mut svg, &frame);
            panel.layers.iter().for_each(|layer| layer.draw(&mut svg, &frame));
            svg.frame(rect);
            top = body + rect.height + GAP;
        }
        svg.text(LEFT + (WIDTH - LEFT - RIGHT) / 2.0, top + 22.0, Anchor::Middle, &format!("{name} ({})", unit.1));
        svg.finish(top + 32.0)
    }
}

impl Panel {
    fn height(&self) -> f64 {
        match &self.scale {
            Scale::Values { height, .. } => *height,
            Scale::Rows(rows) => ROW * rows.len() as f64,
        }
    }

    fn axis(&self, svg: &mut Svg, frame: &Frame) {
        let (left, right) = (frame.rect.x, frame.rect.x + frame.rect.width);
        match &self.scale {
            Scale::Values { title, unit, most, height } => {
                for (value, label) in ticks(most / unit.0, (height / 30.0) as u32) {
                    let y = frame.y(value * unit.0);
                    svg.grid((left, y), (right, y));
                    svg.text(left - 6.0, y + 4.0, Anchor::End, &label);
                }
                svg.upright(18.0, frame.rect.y + height / 2.0, title);
            }
            Scale::Rows(rows) => {
                for (index, name) in rows.iter().enumerate() {
                    let y = frame.rect.y + ROW * index as f64;
                    svg.grid((left, y), (right, y));
                    svg.text(left - 6.0, y + ROW / 2.0 + 4.0, Anchor::End, name);
                }
            }
        }
    }
}

/// Draws a panel's title and legend from `top` on. Returns where the panel's body begins.
fn head(svg: &mut Svg, panel: &Panel, top: f64) -> f64 {
    svg.bold(LEFT, top + 13.0, 12, &panel.title);
    let (mut x, mut y) = (LEFT + text_width(&panel.title) * 1.1 + 24.0, top);
    for layer in panel.layers.iter().filter(|layer| !layer.name.is_empty()) {
        let width = 24.0 + text_width(&layer.name) + 16.0;
        if x + width > WIDTH - RIGHT {
            (x, y) = (LEFT, y + LINE);
        }
        match &layer.shape {
            Shape::Line { dashed, .. } => {
                svg.stroke(&[(x, y + 9.0), (x + 18.0, y + 9.0)], layer.colour, 2.0, *dashed);
            }
            Shape::Level(_) => svg.stroke(&[(x, y + 9.0), (x + 18.0, y + 9.0)], layer.colour, 1.5, true),
            _ => svg.fill(&[(x, y + 3.0), (x + 18.0, y + 3.0), (x + 18.0, y + 14.0), (x, y + 14.0)], layer.colour),
        }
        svg.text(x + 24.0, y + 13.0, Anchor::Start, &layer.name);
        x += width;
    }
    y + LINE + 2.0
}

fn across(svg: &mut Svg, frame: &Frame, unit: Unit, has_labels: bool) {
    let bottom = frame.rect.y + frame.rect.height;
    for (value, label) in ticks(frame.end / unit.0, 10) {
        let x = frame.x(value * unit.0);
        svg.grid((x, frame.rect.y), (x, bottom));
        if has_labels {
            svg.text(x, bottom + 16.0, Anchor::Middle, &label);
        }
    }
}

impl Layer {
    fn draw(&self, svg: &mut Svg, frame: &Frame) {
        let Rect { x: left, y: top, width, height } = frame.rect;
        match &self.shape {
            Shape::Area { high, low } => {
                let mut outline = frame.place(&thin(high));
                let Some((&first, &last)) = outline.first().zip(outline.last()) else { return };
                if low.is_empty() {
                    svg.stroke(&outline, self.colour, 1.2, false);
                    outline.extend([(last.0, top + height), (first.0, top + height)]);
                } else {
                    outline.extend(frame.place(&thin(low)).into_iter().rev());
                }
                svg.fill(&outline, self.colour);
            }
            // Parts above the panel are left out, instead of being drawn along its edge.
            Shape::Line { points, dashed } => {
                for part in thin(points).split(|point| point.1 > frame.most).filter(|part| part.len() > 1) {
                    svg.stroke(&frame.place(part), self.colour, 1.6, *dashed);
                }
            }
            Shape::Level(level) if *level <= frame.most => {
                let y = frame.y(*level);
                svg.stroke(&[(left, y), (left + width, y)], self.colour, 1.5, true);
            }
            Shape::Level(_) => {}
            Shape::Bars(points) => {
                for (x, y) in frame.place(&thin(points)).into_iter().filter(|(_, y)| *y < top + height) {
                    svg.bar(Rect { x: x - 0.5, y, width: 1.0, height: top + height - y }, self.colour);
                }
            }
            Shape::Spans { row, spans } => {
                let placed: Points = spans.iter().map(|&(from, to)| (frame.x(from), frame.x(to))).collect();
                for (from, to) in join(&placed, 0.3) {
                    let y = top + ROW * *row as f64 + 4.0;
                    svg.bar(Rect { x: from, y, width: (to - from).max(0.6), height: ROW - 8.0 }, self.colour);
                }
            }
        }
    }
}
