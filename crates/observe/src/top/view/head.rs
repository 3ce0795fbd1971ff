//! The first lines (switch, verdict, views) and the last line (keys) of the screen.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::app::App;
use super::super::choice::View;
use super::super::log::Weight;
use super::super::step::{dropped, lost};
use super::super::table::clip;
use crate::api::State;
use crate::text::format::{gigabits, grouped, short};

/// The identity of the switch, the verdict, and the tabs of the views.
pub fn head(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    match &app.state {
        Some(state) => {
            lines.push(who(app, state, width));
            lines.push(match &app.trouble {
                Some(_) => gone(app),
                None => verdict(app, state, width),
            });
        }
        None => lines.push(Line::styled("holdfast top", app.paint.strong())),
    }
    lines.push(tabs(app, width));
    lines
}

/// Joins as many of `parts` as fit, separated by `gap`.
fn fitting(parts: Vec<Vec<Span<'static>>>, gap: &str, width: usize) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for part in parts {
        let needs = part.iter().map(Span::width).sum::<usize>() + if spans.is_empty() { 0 } else { gap.len() };
        // The first part is cut to the width instead of being omitted.
        if spans.is_empty() && needs > width {
            return Line::from(clip(part, width));
        }
        if used + needs > width {
            continue;
        }
        if !spans.is_empty() {
            spans.push(Span::raw(gap.to_owned()));
        }
        used += needs;
        spans.extend(part);
    }
    Line::from(spans)
}

fn who(app: &App, state: &State, width: usize) -> Line<'static> {
    let version = &state.version;
    let part = |text: String, style: Style| vec![Span::styled(text, style)];
    let ports = match state.ports.len() {
        1 => "1 port".to_owned(),
        ports => format!("{ports} ports"),
    };
    let file = version.config_source.rsplit('/').next().unwrap_or_default();
    let hash: String = version.config_hash.chars().take(8).collect();
    fitting(
        vec![
            part(format!("holdfast {}", version.version), app.paint.strong()),
            part(format!("up {}", clock(state.at_ns)), Style::new()),
            part(ports, Style::new()),
            part(format!("{file} #{hash}"), Style::new()),
            part(format!("headroom {}", state.buffers.headroom_policy), Style::new()),
            part(format!("process {}", version.pid), app.paint.dim()),
        ],
        "  ",
        width,
    )
}

/// Formats `ns` as hours, minutes and seconds, with days if there are any.
pub fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let time = format!("{hours}:{minutes:02}:{:02}", seconds % 60);
    if days > 0 { format!("{days}d {time}") } else { time }
}

fn gone(app: &App) -> Line<'static> {
    let text = "the switch does not answer. These are its last values. Retrying; q quits";
    Line::styled(text, app.paint.bad())
}

fn verdict(app: &App, state: &State, width: usize) -> Line<'static> {
    let paint = app.paint;
    let sum =
        |of: fn(&crate::api::model::Port) -> u64| state.ports.iter().fold(0_u64, |sum, p| sum.saturating_add(of(p)));
    let (lost, lossy) = (sum(lost), sum(dropped));
    let has_lossless = state.classes.iter().any(|class| class.lossless);
    let mut parts = vec![match (has_lossless, lost) {
        (false, 0) => vec![Span::raw("lossless: no lossless class")],
        (true, 0) => vec![Span::raw("lossless: "), Span::styled("0 lost", paint.good())],
        (_, lost) => vec![Span::raw("lossless: "), Span::styled(format!("{} LOST", grouped(lost)), paint.bad())],
    }];
    let unsafe_ports = state.ports.iter().filter(|port| !port.lossless).count();
    if has_lossless && unsafe_ports > 0 {
        let text = format!("not lossless: {unsafe_ports} of {} ports", state.ports.len());
        parts.push(vec![Span::styled(text, paint.odd())]);
    }
    let blind = state.ports.iter().filter(|port| !port.missed_seen).count();
    let storms = state.watchdog.iter().flat_map(|dog| &dog.queues).filter(|queue| queue.storming).count();
    if storms > 0 {
        parts.push(vec![Span::styled(format!("{storms} in a STORM"), paint.bad())]);
    }
    if app.step.seconds > 0.0 {
        let total = |of: fn(&super::super::step::PortStep) -> f64| app.step.ports.iter().map(of).sum::<f64>();
        let rate = |rate: f64| short(rate.round() as u64);
        parts.push(vec![Span::raw(format!(
            "rx {} tx {} Gb/s",
            gigabits(total(|port| port.rx_bps)),
            gigabits(total(|port| port.tx_bps))
        ))]);
        parts.push(vec![Span::raw(format!("PFC {}/s", rate(total(|port| port.pfc_sent))))]);
        parts.push(vec![Span::raw(format!("ECN {}/s", rate(total(|port| port.marked))))]);
    }
    parts.push(vec![Span::raw("lossy drops "), Span::styled(short(lossy), paint.when(lossy > 0, paint.odd()))]);
    if blind > 0 {
        parts.push(vec![Span::styled(format!("{blind} ports do not report full rings"), paint.odd())]);
    }
    fitting(parts, "  ", width)
}

fn tabs(app: &App, width: usize) -> Line<'static> {
    let paint = app.paint;
    let mut parts: Vec<Vec<Span<'static>>> = View::ALL
        .into_iter()
        .map(|view| {
            let is_shown = view == app.view && !app.shows_help;
            let name =
                if is_shown && !paint.colour { format!("[{}]", view.name()) } else { format!(" {} ", view.name()) };
            vec![Span::styled(name, if is_shown { paint.tab() } else { Style::new() })]
        })
        .collect();
    if app.is_frozen {
        parts.push(vec![Span::styled(
            " PAUSED: p resumes ",
            paint.odd().add_modifier(ratatui::style::Modifier::REVERSED),
        )]);
    }
    let interval = match app.interval.as_millis() {
        ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    };
    parts.push(vec![Span::styled(format!(" every {interval}, sorted {}", by(app)), paint.dim())]);
    fitting(parts, " ", width)
}

fn by(app: &App) -> String {
    use super::super::choice::Sort;
    match app.sort {
        Sort::Configured => "as configured".to_owned(),
        sort => format!("by {}", sort.name()),
    }
}

/// The last line: the keys, or a message.
pub fn keys(app: &App, width: usize) -> Line<'static> {
    if let Some((weight, text)) = &app.notice {
        let style = match weight {
            Weight::Bad => app.paint.bad(),
            Weight::Odd => app.paint.odd(),
            Weight::Plain => app.paint.good(),
        };
        return Line::styled(text.clone(), style);
    }
    let move_by = app.paint.sign("↑↓", "j/k");
    let keys = [
        ("q", "quit"),
        ("?", "help"),
        ("Tab", "view"),
        (move_by, "select"),
        ("p", if app.is_frozen { "resume" } else { "pause" }),
        ("+/-", "interval"),
        ("s", "sort"),
        ("r", "rx/tx"),
        ("c", "clear max"),
        ("a", "idle too"),
    ];
    let part = |(key, does): (&str, &str)| {
        vec![Span::styled(key.to_owned(), app.paint.strong()), Span::styled(format!(" {does}"), app.paint.dim())]
    };
    fitting(keys.into_iter().map(part).collect(), "  ", width)
}
