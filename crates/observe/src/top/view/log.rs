//! The log with times, and advice about the configuration.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::app::App;
use super::super::log::{Entry, Weight};
use super::head::clock;
use super::{rule, wrap};
use crate::api::State;

/// The view: advice about the configuration, then the whole log.
pub fn view(app: &App, state: &State, width: usize) -> Vec<Line<'static>> {
    let mut all = Vec::new();
    if !state.advice.is_empty() {
        all.push(rule(vec![Span::styled("advice", app.paint.strong())], width, app.paint));
        for advice in &state.advice {
            all.extend(entry("", "!", app.paint.odd(), &advice.text, width));
        }
    }
    all.push(rule(vec![Span::styled("events", app.paint.strong())], width, app.paint));
    all.extend(lines(app, width));
    all
}

/// The log, newest first. Each line has the time since the start of the switch, a sign if the episode continues, and
/// the text.
pub fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let entries = app.log.entries();
    entries.flat_map(|line| entry(&time(line), sign(app, line), style(app, line), &line.text(), width)).collect()
}

fn time(entry: &Entry) -> String {
    format!("{}.{}", clock(entry.at_ns), entry.at_ns / 100_000_000 % 10)
}

fn sign(app: &App, entry: &Entry) -> &'static str {
    if entry.live { app.paint.sign("▸", ">") } else { " " }
}

fn style(app: &App, entry: &Entry) -> Style {
    match entry.weight {
        Weight::Bad => app.paint.bad(),
        Weight::Odd => app.paint.odd(),
        Weight::Plain => Style::new(),
    }
}

fn entry(time: &str, sign: &'static str, style: Style, text: &str, width: usize) -> Vec<Line<'static>> {
    let head = format!("{time:>9} {sign} ");
    let indent = head.chars().count();
    let mut head = Some(head);
    wrap(text, width.saturating_sub(indent).max(8))
        .into_iter()
        .map(|line| {
            let head = head.take().unwrap_or_else(|| " ".repeat(indent));
            Line::from(vec![Span::raw(head), Span::styled(line, style)])
        })
        .collect()
}
