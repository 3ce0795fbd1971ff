//! The screen: a list of lines for any width and height.

mod buffer;
mod head;
mod help;
mod lcores;
mod ports;
mod queues;
mod story;

use ratatui::text::{Line, Span};

use super::app::App;
use super::choice::View;
use super::paint::Paint;
use crate::api::State;
use crate::api::model::Queue;

/// More lines than any view has.
pub const LINES_MOST: usize = 100_000;

/// The whole screen. More lines than `height` are not shown.
pub fn screen(app: &App, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = head::head(app, width);
    // The keys are the last line, and on the smallest screens the only other one.
    lines.truncate(height.saturating_sub(1));
    let room = height.saturating_sub(lines.len() + 1);
    let mut middle = match &app.state {
        _ if app.shows_help => help::help(app, width),
        Some(state) => match app.view {
            View::Ports => ports::overview(app, state, width, room),
            View::Buffer => buffer::view(app, state, width, room),
            View::Queues => queues::view(app, state, width, room),
            View::Lcores => window(lcores::view(app, state, width), app.cursor, room, app.paint),
            View::Log => window(story::view(app, state, width), app.cursor, room, app.paint),
        },
        None => help::waiting(app, width),
    };
    middle.resize(room, Line::default());
    lines.append(&mut middle);
    lines.push(head::keys(app, width));
    lines.truncate(height);
    lines
}

/// The queue of `port` in which most waits, or ever waited if nothing does.
pub fn deepest<'a>(state: &'a State, port: &str) -> Option<&'a Queue> {
    let queues = state.queues.iter().filter(|queue| queue.port == port);
    queues.max_by_key(|queue| (queue.depth_bytes, queue.depth_highest_bytes))
}

/// `room` of `lines`, from number `first` on as far as there are so many.
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

/// The part of `count` rows that is shown in `room`, so that row `at` is among them.
fn range(count: usize, at: usize, room: usize) -> std::ops::Range<usize> {
    let first = at.saturating_sub(room / 2).min(count.saturating_sub(room));
    first..(first + room).min(count)
}

/// The sign before a row, and whether it is the selected one.
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

/// `text` in lines of at most `width`, broken at spaces where there are some.
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

/// Divides `room` lines: each part gets its least, in the order of `parts`, as long as there is room for it, and then in
/// the same order what it wants beyond that.
fn share<const N: usize>(room: usize, parts: [(usize, usize); N]) -> [usize; N] {
    let mut left = room;
    let mut lines = parts.map(|(least, _)| {
        let given = if least <= left { least } else { 0 };
        left -= given;
        given
    });
    // On a screen too small for any part the first takes what there is.
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
