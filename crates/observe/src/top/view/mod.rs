//! The screen: a list of lines for any width and height.

mod buffer;
mod head;
mod help;
mod lcores;
mod log;
mod ports;
mod queues;

use ratatui::text::{Line, Span};

use super::app::App;
use super::choice::View;
use super::paint::Paint;
use crate::api::State;
use crate::api::model::Queue;

/// An upper bound of the lines of any view.
pub const LINES_MOST: usize = 100_000;

/// The whole screen. It has at most `height` lines.
pub fn screen(app: &App, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = head::head(app, width);
    // The keys are the last line; on the smallest screens they have priority over the head.
    lines.truncate(height.saturating_sub(1));
    let room = height.saturating_sub(lines.len() + 1);
    let mut middle = match &app.state {
        _ if app.shows_help => help::help(app, width),
        Some(state) => match app.view {
            View::Ports => ports::overview(app, state, width, room),
            View::Buffer => buffer::view(app, state, width, room),
            View::Queues => queues::view(app, state, width, room),
            View::Lcores => window(lcores::view(app, state, width), app.cursor, room, app.paint),
            View::Log => window(log::view(app, state, width), app.cursor, room, app.paint),
        },
        None => help::waiting(app, width),
    };
    middle.resize(room, Line::default());
    lines.append(&mut middle);
    lines.push(head::keys(app, width));
    lines.truncate(height);
    lines
}

/// The deepest queue of `port`; if all are empty, the one with the highest watermark.
pub fn deepest<'a>(state: &'a State, port: &str) -> Option<&'a Queue> {
    let queues = state.queues.iter().filter(|queue| queue.port == port);
    queues.max_by_key(|queue| (queue.depth_bytes, queue.depth_highest_bytes))
}

/// Returns `room` of `lines`, beginning at line `first`, or the last `room` lines if `first` is too far.
fn window(lines: Vec<Line<'static>>, first: usize, room: usize, paint: Paint) -> Vec<Line<'static>> {
    let (count, first) = (lines.len(), first.min(lines.len().saturating_sub(room)));
    let mut shown: Vec<Line<'static>> = lines.into_iter().skip(first).take(room).collect();
    let below = count - first - shown.len();
    if below > 0
        && let Some(last) = shown.last_mut()
    {
        *last = Line::styled(format!("{} {} more lines", paint.sign("↓", "v"), below + 1), paint.dim());
    }
    shown
}

/// The range of `count` rows that is shown in `room` lines, so that row `at` is visible.
fn range(count: usize, at: usize, room: usize) -> std::ops::Range<usize> {
    let first = at.saturating_sub(room / 2).min(count.saturating_sub(room));
    first..(first + room).min(count)
}

/// The sign before a row: an arrow before the selected one.
fn mark(is_selected: bool, paint: Paint) -> Span<'static> {
    match is_selected {
        true => Span::styled(paint.sign("▶", ">"), paint.strong()),
        false => Span::raw(" "),
    }
}

/// A title in a rule across the screen.
fn rule(title: Vec<Span<'static>>, width: usize, paint: Paint) -> Line<'static> {
    let line = paint.sign("─", "-");
    let mut spans = vec![Span::styled(format!("{line} "), paint.dim())];
    spans.extend(title);
    let left = width.saturating_sub(spans.iter().map(Span::width).sum::<usize>() + 1);
    spans.push(Span::styled(format!(" {}", line.repeat(left)), paint.dim()));
    Line::from(spans)
}

/// Breaks `text` into lines of at most `width` characters, at spaces where possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split_whitespace() {
        let mut letters: Vec<char> = word.chars().collect();
        if length > 0 && length + 1 + letters.len() > width {
            lines.push(String::new());
            length = 0;
        }
        while letters.len() > width {
            lines.push(letters.drain(..width).collect());
        }
        if let Some(line) = lines.last_mut() {
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            line.extend(&letters);
            length += letters.len();
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Divides `room` lines among `parts`, given as (minimum, maximum). Each part first gets its minimum if that still
/// fits, in the order of `parts`. In the same order they then grow up to their maxima.
fn share<const N: usize>(room: usize, parts: [(usize, usize); N]) -> [usize; N] {
    let mut left = room;
    let mut lines = parts.map(|(least, _)| {
        let given = if least <= left { least } else { 0 };
        left -= given;
        given
    });
    // If the first part does not fit, it takes all the room.
    if lines[0] == 0 {
        lines[0] = left;
        return lines;
    }
    for (given, (_, most)) in lines.iter_mut().zip(parts) {
        if *given > 0 {
            let more = most.saturating_sub(*given).min(left);
            *given += more;
            left -= more;
        }
    }
    lines
}
