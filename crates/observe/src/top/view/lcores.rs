//! Dataplane lcores, and the flows of virtual hosts.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::app::App;
use super::super::bar::columns as columns_of;
use super::super::step::LcoreStep;
use super::super::table::{Column, Table, text};
use super::rule;
use crate::api::State;
use crate::api::model::{Flow, Lcore};
use crate::text::format::{gigabits, short, time};
use crate::units::Nanos;

/// The overview has one line per lcore up to this number of lcores.
const SHOWN: usize = 2;

fn ns(ns: u64) -> String {
    time(Nanos(ns))
}

/// Style of a poll gap: headroom does not cover a gap longer than the configured one.
fn gap_style(app: &App, gap: u64, lcore: &Lcore) -> Style {
    app.paint.when(gap > lcore.poll_gap_configured_ns, app.paint.odd())
}

fn steps<'a>(app: &'a App, state: &'a State) -> impl Iterator<Item = (&'a Lcore, LcoreStep)> {
    let steps = app.step.lcores.iter().cloned().chain(std::iter::repeat(LcoreStep::default()));
    state.lcores.iter().zip(steps)
}

/// One line per lcore; with many lcores, one line for all.
pub fn summary(app: &App, state: &State, width: usize) -> Vec<Line<'static>> {
    if state.lcores.len() > SHOWN {
        return vec![all(app, state)];
    }
    steps(app, state).map(|(lcore, step)| one(app, lcore, &step, width)).collect()
}

fn one(app: &App, lcore: &Lcore, step: &LcoreStep, width: usize) -> Line<'static> {
    let p99 = step.gap_p99_ns.or(lcore.poll_gap_p99_ns).unwrap_or(0);
    let gaps = vec![
        Span::raw(format!("{:<14}", format!("lcore {}", lcore.lcore))),
        Span::raw(format!("{:>3.0}% busy  gap 99% < ", step.busy * 100.0)),
        Span::styled(ns(p99), gap_style(app, p99, lcore)),
        Span::raw(", longest "),
        Span::styled(ns(lcore.poll_gap_highest_ns), gap_style(app, lcore.poll_gap_highest_ns, lcore)),
        Span::styled(format!(", configured {}", ns(lcore.poll_gap_configured_ns)), app.paint.dim()),
    ];
    let mut line = Line::from(gaps);
    let polls = format!("  {} polls/s", short(step.polls.round() as u64));
    if line.width() + polls.len() <= width {
        line.push_span(Span::styled(polls, app.paint.dim()));
    }
    line
}

fn all(app: &App, state: &State) -> Line<'static> {
    let busiest = steps(app, state).max_by(|a, b| a.1.busy.total_cmp(&b.1.busy));
    let longest = state.lcores.iter().max_by_key(|lcore| lcore.poll_gap_highest_ns);
    let (Some((busiest, step)), Some(longest)) = (busiest, longest) else { return Line::default() };
    Line::from(vec![
        Span::raw(format!("{:<14}", format!("{} lcores", state.lcores.len()))),
        Span::raw(format!("busiest {}: {:.0}%  longest poll gap ", busiest.lcore, step.busy * 100.0)),
        Span::styled(ns(longest.poll_gap_highest_ns), gap_style(app, longest.poll_gap_highest_ns, longest)),
        Span::raw(format!(" at {} ({} configured)", longest.lcore, ns(longest.poll_gap_configured_ns))),
    ])
}

/// A column of the table of lcores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Col {
    Lcore,
    Busy,
    Polls,
    P99,
    Longest,
    Configured,
    Rested,
    Handed,
    Waited,
    Held,
    Stations,
    Ports,
}

/// The view: the lcores, their poll gaps, and the flows.
pub fn view(app: &App, state: &State, width: usize) -> Vec<Line<'static>> {
    let mut lines = lcores(app, state, width);
    lines.extend(gaps(app, state, width));
    if !state.flows.is_empty() {
        lines.push(rule(vec![Span::styled("flows of virtual hosts", app.paint.strong())], width, app.paint));
        lines.extend(flows(app, state, width));
    }
    lines
}

fn lcores(app: &App, state: &State, width: usize) -> Vec<Line<'static>> {
    let column = |id, title, width, right, rank| Column { id, title, width, right, rank };
    let columns = [
        column(Col::Lcore, "lcore", 5, true, 0),
        column(Col::Busy, "busy", 4, true, 1),
        column(Col::Polls, "polls/s", 7, true, 6),
        column(Col::P99, "gap 99% <", 9, true, 2),
        column(Col::Longest, "longest", 8, true, 3),
        column(Col::Configured, "of", 8, true, 4),
        column(Col::Rested, "rests", 5, true, 8),
        column(Col::Handed, "handed/s", 8, true, 7),
        column(Col::Waited, "ring max", 9, true, 10),
        column(Col::Held, "frames", 6, true, 9),
        column(Col::Stations, "stations", 8, true, 11),
        column(Col::Ports, "ports", 8, false, 5),
    ];
    let table = Table::fit(&columns, width, &[Col::Ports], 200);
    let quiet = app.paint.dim();
    let mut lines = vec![table.titles(None, app.paint)];
    for (lcore, step) in steps(app, state) {
        let p99 = step.gap_p99_ns.or(lcore.poll_gap_p99_ns).unwrap_or(0);
        lines.push(table.row(|column, _| match column {
            Col::Lcore => text(lcore.lcore.to_string(), app.paint.strong()),
            Col::Busy => text(format!("{:.0}%", step.busy * 100.0), Style::new()),
            Col::Polls => text(short(step.polls.round() as u64), quiet),
            Col::P99 => text(ns(p99), gap_style(app, p99, lcore)),
            Col::Longest => text(ns(lcore.poll_gap_highest_ns), gap_style(app, lcore.poll_gap_highest_ns, lcore)),
            Col::Configured => text(ns(lcore.poll_gap_configured_ns), quiet),
            Col::Rested if lcore.rest_longest_ns.is_some() => text(format!("{:.0}%", step.rested * 100.0), quiet),
            Col::Rested => text("-", quiet),
            Col::Handed => text(short(step.handed.round() as u64), quiet),
            Col::Waited => text(short(lcore.handoff_highest_frames), quiet),
            Col::Held => text(short(lcore.held_frames), quiet),
            Col::Stations => text(lcore.fdb_entries.to_string(), quiet),
            Col::Ports => text(lcore.ports.join(" "), quiet),
        }));
    }
    lines
}

/// The poll gaps of each lcore since the last state, in buckets of powers of two.
fn gaps(app: &App, state: &State, width: usize) -> Vec<Line<'static>> {
    let used = |step: &LcoreStep| step.gaps.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    let buckets = steps(app, state).map(|(_, step)| used(&step)).max().unwrap_or(0);
    if buckets == 0 {
        return Vec::new();
    }
    let title = Span::styled("gaps between polls since the last reading", app.paint.strong());
    let mut lines = vec![rule(vec![title], width, app.paint)];
    // Each bucket is three cells wide.
    let first = steps(app, state).filter_map(|(_, step)| step.gaps.iter().position(|count| *count > 0)).min();
    let first = first.unwrap_or(0);
    for (lcore, step) in steps(app, state) {
        let counts: Vec<u64> = step.gaps.iter().copied().skip(first).take(buckets - first).collect();
        let wide: String = columns_of(&counts, app.paint).chars().flat_map(|sign| [sign; 3]).collect();
        lines.push(Line::from(vec![
            Span::raw(format!("{:<10}", format!("lcore {}", lcore.lcore))),
            Span::styled(wide, app.paint.good()),
        ]));
    }
    let mut axis = format!("{:<10}", "below");
    // Every third bucket has a label of nine cells.
    for bucket in (first..buckets).step_by(3) {
        axis += &format!("{:<9}", ns(1_u64.checked_shl(bucket as u32).unwrap_or(u64::MAX)));
    }
    lines.push(Line::styled(axis, app.paint.dim()));
    lines.push(Line::styled("bar heights are logarithmic", app.paint.dim()));
    lines
}

/// A column of the table of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowCol {
    Name,
    Kind,
    Class,
    Rate,
    Missing,
    Marked,
    P50,
    P99,
    Longest,
}

fn flows(app: &App, state: &State, width: usize) -> Vec<Line<'static>> {
    let column = |id, title, width, right, rank| Column { id, title, width, right, rank };
    let columns = [
        column(FlowCol::Name, "flow", 14, false, 0),
        column(FlowCol::Kind, "kind", 4, false, 7),
        column(FlowCol::Class, "class", 5, true, 5),
        column(FlowCol::Rate, "Gb/s", 6, true, 1),
        column(FlowCol::Missing, "missing", 9, true, 2),
        column(FlowCol::Marked, "CE", 5, true, 6),
        column(FlowCol::P50, "p50", 7, true, 4),
        column(FlowCol::P99, "p99", 7, true, 3),
        column(FlowCol::Longest, "longest", 7, true, 8),
    ];
    let table = Table::fit(&columns, width, &[FlowCol::Name], 30);
    let mut lines = vec![table.titles(None, app.paint)];
    for (index, flow) in state.flows.iter().enumerate() {
        let rate = app.step.flows.get(index).copied().unwrap_or(0.0);
        lines.push(table.row(|column, _| flow_cell(app, state, flow, rate, column)));
    }
    lines.push(Line::styled("missing: sent and not received, including frames under way", app.paint.dim()));
    lines
}

fn flow_cell(app: &App, state: &State, flow: &Flow, rate: f64, column: FlowCol) -> Vec<Span<'static>> {
    let (quiet, plain) = (app.paint.dim(), Style::new());
    let or_none = |time: Option<u64>| text(time.map_or("-".to_owned(), ns), quiet);
    let is_lossless = state.classes.iter().any(|class| class.class == flow.class && class.lossless);
    match column {
        FlowCol::Name => text(format!("{} > {}", flow.from, flow.to.as_deref().unwrap_or("outside")), plain),
        FlowCol::Kind => text(flow.kind.clone(), quiet),
        FlowCol::Class => text(format!("{}{}", flow.class, if is_lossless { "*" } else { "" }), plain),
        FlowCol::Rate => text(gigabits(rate), plain),
        FlowCol::Missing => text(flow.missing_frames.map_or("-".to_owned(), short), quiet),
        FlowCol::Marked => {
            let share = flow.ce_frames as f64 / flow.received_frames.max(1) as f64;
            text(format!("{:.0}%", share.min(1.0) * 100.0), quiet)
        }
        FlowCol::P50 => or_none(flow.latency_p50_ns),
        FlowCol::P99 => or_none(flow.latency_p99_ns),
        FlowCol::Longest => or_none(flow.latency_highest_ns),
    }
}
