//! Bars with thresholds in them, and sparklines.

use ratatui::style::Style;
use ratatui::text::Span;

use super::history::Sample;
use super::paint::{Paint, Part, Tick};

/// A horizontal bar: coloured parts from the left, an optional headroom area and threshold lines. All values are in
/// bytes.
#[derive(Debug, Default)]
pub struct Bar {
    /// The value that the whole width stands for.
    pub scale: u64,
    /// The filled parts, from left to right: a size and its meaning.
    pub parts: Vec<(u64, Part)>,
    /// The range of the empty area that is drawn as headroom.
    pub room: Option<(u64, u64)>,
    /// The threshold lines: a position and a kind. A later line hides an earlier one in the same cell.
    pub ticks: Vec<(u64, Tick)>,
}

impl Bar {
    /// Draws the bar in `width` cells.
    pub fn spans(&self, width: usize, paint: Paint) -> Vec<Span<'static>> {
        let mut cells: Vec<(char, Style)> = (0..width).map(|cell| self.cell(cell, width, paint)).collect();
        // A watermark of zero is not drawn: the buffer was never used.
        for (at, tick) in self.ticks.iter().filter(|tick| **tick != (0, Tick::Highest)) {
            let at = (self.place(*at, width) as usize).min(width.saturating_sub(1));
            if let Some(cell) = cells.get_mut(at) {
                let full = !(is_empty(cell.0) || cell.0 == paint.partial(Part::Shared, 1));
                let (sign, style) = paint.tick(*tick);
                // Inside a filled part, the line keeps the part's colour as its background.
                *cell = (sign, if full { cell.1.fg.map_or(style, |colour| style.bg(colour)) } else { style });
            }
        }
        merge(cells)
    }

    /// Position of `bytes`, in cells.
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

    /// The part that covers position `place`, in cells.
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

/// Joins adjacent cells of the same style into one span.
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

/// Draws the last `width` samples as columns, the newest at the right; `top` is a full column. A column is red where a
/// lossless frame was lost, and yellow where PFC paused the port or its peer.
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
            // A value above zero is never drawn as an empty column.
            let level = if value > 0.0 { ((share * 8.0).round() as usize).max(1) } else { 0 };
            let style = match sample {
                Sample { lost: true, .. } => paint.bad(),
                Sample { held: true, .. } => paint.odd(),
                _ => paint.good(),
            };
            // A loss is visible even if the value is zero.
            (paint.column(if sample.lost { level.max(1) } else { level }), style)
        })
        .collect();
    cells.resize(width, (' ', Style::new()));
    cells.reverse();
    merge(cells)
}

/// Draws counts as columns; the highest count is a full column.
pub fn columns(counts: &[u64], paint: Paint) -> String {
    let top = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let level = |count: u64| match count {
        0 => 0,
        // The scale is logarithmic, so that one count beside a million stays visible.
        _ => (((count as f64).ln_1p() / top.ln_1p() * 8.0).round() as usize).max(1),
    };
    counts.iter().map(|&count| paint.column(level(count))).collect()
}
