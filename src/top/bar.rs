//! Bars with thresholds in them, and sparklines.

use ratatui::style::Style;
use ratatui::text::Span;

use super::history::Sample;
use super::paint::{Paint, Part, Tick};

/// A bar: what is full of what, from the left, and where its lines are. All in bytes.
#[derive(Debug, Default)]
pub struct Bar {
    /// What the whole width stands for.
    pub scale: u64,
    /// What it is full of.
    pub parts: Vec<(u64, Part)>,
    /// From where to where what is empty is headroom.
    pub room: Option<(u64, u64)>,
    /// Lines in it; a later one hides an earlier one.
    pub ticks: Vec<(u64, Tick)>,
}

impl Bar {
    /// It in `width` cells.
    pub fn spans(&self, width: usize, paint: Paint) -> Vec<Span<'static>> {
        let mut cells: Vec<(char, Style)> = (0..width).map(|cell| self.cell(cell, width, paint)).collect();
        // What was never used has no highest use.
        for (at, tick) in self.ticks.iter().filter(|tick| **tick != (0, Tick::Highest)) {
            let at = (self.place(*at, width) as usize).min(width.saturating_sub(1));
            if let Some(cell) = cells.get_mut(at) {
                let full = !(is_empty(cell.0) || cell.0 == paint.partial(Part::Shared, 1));
                let (sign, style) = paint.tick(*tick);
                // Inside what is full its colour stays behind the line.
                *cell = (sign, if full { cell.1.fg.map_or(style, |colour| style.bg(colour)) } else { style });
            }
        }
        merge(cells)
    }

    /// Where `bytes` are, in cells.
    fn place(&self, bytes: u64, width: usize) -> f64 {
        if self.scale == 0 { 0.0 } else { (bytes as f64 / self.scale as f64 * width as f64).min(width as f64) }
    }

    fn cell(&self, cell: usize, width: usize, paint: Paint) -> (char, Style) {
        let end = self.parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.0));
        let full = self.place(end, width);
        let (low, middle) = (cell as f64, cell as f64 + 0.5);
        if full <= low {
            let is_room = |(from, to)| self.place(from, width) <= middle && middle < self.place(to, width);
            return paint.empty(self.room.is_some_and(is_room));
        }
        let part = self.part_at(middle.min((low + full) / 2.0), width);
        let eighths = ((full - low) * 8.0).round() as usize;
        let sign = if eighths >= 8 { paint.full(part) } else { paint.partial(part, eighths.max(1)) };
        (sign, paint.part(part))
    }

    /// What is at `place`.
    fn part_at(&self, place: f64, width: usize) -> Part {
        let mut end = 0_u64;
        for (bytes, part) in &self.parts {
            end = end.saturating_add(*bytes);
            if *bytes > 0 && place < self.place(end, width) {
                return *part;
            }
        }
        self.parts.iter().rev().find(|part| part.0 > 0).map_or(Part::Shared, |part| part.1)
    }
}

fn is_empty(sign: char) -> bool {
    matches!(sign, '·' | '░' | '.' | ':')
}

/// Neighbours of one style are one span.
fn merge(cells: Vec<(char, Style)>) -> Vec<Span<'static>> {
    let mut spans: Vec<(String, Style)> = Vec::new();
    for (sign, style) in cells {
        match spans.last_mut() {
            Some((text, last)) if *last == style => text.push(sign),
            _ => spans.push((sign.to_string(), style)),
        }
    }
    spans.into_iter().map(|(text, style)| Span::styled(text, style)).collect()
}

/// The last looks as columns, the newest at the right, `top` being full: red where something was lost, yellow where PFC
/// held the port or its peer.
pub fn sparkline<'a>(
    samples: impl DoubleEndedIterator<Item = &'a Sample>,
    of: impl Fn(&Sample) -> f64,
    top: f64,
    width: usize,
    paint: Paint,
) -> Vec<Span<'static>> {
    let mut cells: Vec<(char, Style)> = samples
        .rev()
        .take(width)
        .map(|sample| {
            let value = of(sample);
            let share = if top > 0.0 { (value / top).clamp(0.0, 1.0) } else { 0.0 };
            // Little is something.
            let level = if value > 0.0 { ((share * 8.0).round() as usize).max(1) } else { 0 };
            let style = match sample {
                Sample { lost: true, .. } => paint.bad(),
                Sample { held: true, .. } => paint.odd(),
                _ => paint.good(),
            };
            // What was lost shows though nothing went.
            (paint.column(if sample.lost { level.max(1) } else { level }), style)
        })
        .collect();
    cells.resize(width, (' ', Style::new()));
    cells.reverse();
    merge(cells)
}

/// Counts as columns, the highest full.
pub fn columns(counts: &[u64], paint: Paint) -> String {
    let top = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let level = |count: u64| match count {
        0 => 0,
        // By its logarithm: one in a million is what is looked for.
        _ => (((count as f64).ln_1p() / top.ln_1p() * 8.0).round() as usize).max(1),
    };
    counts.iter().map(|&count| paint.column(level(count))).collect()
}
