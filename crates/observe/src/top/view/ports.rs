//! The overview: ports, pools, lcores, the groups of one port, and the log.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::app::App;
use super::super::bar::sparkline;
use super::super::choice::Sort;
use super::super::step::{Held, PortStep, pfc_of};
use super::super::table::{Column, Table, text};
use super::{buffer, deepest, lcores, log, mark, range, rule, share};
use crate::api::State;
use crate::api::model::Port;
use crate::text::format::{classes, gigabits, short};
use crate::units::Bytes;

/// A column of the table of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Col {
    Mark,
    Name,
    Link,
    Rate,
    Received,
    Sent,
    Used,
    Spark,
    Other,
    Queue,
    Highest,
    Xoff,
    Paused,
    Xoffs,
    Marks,
    Lost,
    Drops,
}

/// All columns; their ranks decide which a narrow screen omits.
fn columns(app: &App, state: &State, width: usize) -> Vec<Column<Col>> {
    let longest = state.ports.iter().map(|port| port.port.chars().count()).max().unwrap_or(0);
    let (tx, rx) = ("tx history", "rx history");
    let (first, second) = if app.shows_rx { (rx, tx) } else { (tx, rx) };
    let (xoff, paused) = (app.paint.sign("→XOFF time", "to:XOFF tm"), app.paint.sign("←paused tm", "fr:XOFF tm"));
    // A wide screen first extends the history: it is more useful than a further column.
    let spark = (width / 6).clamp(10, 40);
    let column = |id, title, width, right, rank| Column { id, title, width, right, rank };
    vec![
        column(Col::Mark, "", 1, false, 0),
        column(Col::Name, "port", longest.clamp(4, 16), false, 0),
        column(Col::Link, "link", 5, false, 6),
        column(Col::Rate, "speed", 5, true, 11),
        column(Col::Received, "rx Gb/s", 7, true, 4),
        column(Col::Sent, "tx Gb/s", 7, true, 1),
        column(Col::Used, "util", 4, true, 8),
        column(Col::Spark, first, spark, false, 5),
        column(Col::Other, second, 12, false, 15),
        column(Col::Queue, "queue", 9, true, 3),
        column(Col::Highest, "highest", 9, true, 12),
        column(Col::Xoff, xoff, 10, false, 2),
        column(Col::Paused, paused, 10, false, 7),
        column(Col::Xoffs, "PFC/s", 6, true, 13),
        column(Col::Marks, "ECN/s", 6, true, 14),
        column(Col::Drops, "drop/s", 6, true, 9),
        column(Col::Lost, "LOST/s", 6, true, 1),
    ]
}

fn sorted(sort: Sort) -> Option<Col> {
    match sort {
        Sort::Configured => None,
        Sort::Sent => Some(Col::Sent),
        Sort::Received => Some(Col::Received),
        Sort::Queue => Some(Col::Queue),
        Sort::Paused => Some(Col::Xoff),
        Sort::Drops => Some(Col::Drops),
    }
}

/// The whole overview in `room` lines.
pub fn overview(app: &App, state: &State, width: usize, room: usize) -> Vec<Line<'static>> {
    let order = app.order();
    let name = state.ports.get(app.selected).map_or("", |port| port.port.as_str());
    let groups = buffer::groups_of(app, state, name, width);
    let pools = buffer::pools(app, state, width);
    let lcores = lcores::summary(app, state, width);
    let [ports_room, pools_room, groups_room, log_room, lcores_room] = share(
        room,
        [
            (1 + order.len().clamp(1, 3), 1 + order.len()),
            (pools.len(), pools.len()),
            (2, 1 + groups.len()),
            (4, usize::MAX),
            (lcores.len(), lcores.len()),
        ]
        .map(|(least, most)| (least, most.min(1_000))),
    );
    let mut lines = table(app, state, &order, width, ports_room);
    lines.resize(ports_room, Line::default());
    lines.extend(pools.into_iter().take(pools_room));
    lines.extend(lcores.into_iter().take(lcores_room));
    if groups_room > 0 {
        lines.push(rule(about(app, state), width, app.paint));
        lines.extend(groups.into_iter().take(groups_room - 1));
    }
    if log_room > 0 {
        lines.push(rule(vec![Span::styled("events", app.paint.strong())], width, app.paint));
        lines.extend(log::lines(app, width).into_iter().take(log_room - 1));
    }
    lines
}

/// Describes the selected port.
fn about(app: &App, state: &State) -> Vec<Span<'static>> {
    let Some(port) = state.ports.get(app.selected) else { return Vec::new() };
    let standing = match port.pfc_mode.as_str() {
        "off" => "PFC off".to_owned(),
        mode if port.pfc_observed == "disobeys" => format!("PFC {mode}, the peer disobeys"),
        mode => format!("PFC {mode}, {}", port.pfc_standing),
    };
    let flow_control = match port.flow_control.as_str() {
        "" | "none" | "off" => String::new(),
        state => format!(", flow control {state}"),
    };
    let (cable, mtu) = (port.cable_m, port.mtu_bytes);
    vec![
        Span::styled(port.port.clone(), app.paint.strong()),
        Span::raw(format!("  {}  {}  {cable}m  mtu {mtu}  ", port.device, speed(port.rate_bps))),
        Span::styled(standing + &flow_control, app.paint.when(!port.lossless, app.paint.odd())),
    ]
}

fn speed(bps: u64) -> String {
    match bps {
        0..1_000_000_000 => format!("{}M", bps / 1_000_000),
        _ => format!("{}G", bps as f64 / 1e9),
    }
}

/// The table of ports in `room` lines, including its titles. The selected port is always visible.
fn table(app: &App, state: &State, order: &[usize], width: usize, room: usize) -> Vec<Line<'static>> {
    if room == 0 {
        return Vec::new();
    }
    let table = Table::fit(&columns(app, state, width), width, &[Col::Spark, Col::Other], 120);
    let mut lines = vec![table.titles(sorted(app.sort), app.paint)];
    let at = order.iter().position(|port| *port == app.selected).unwrap_or(0);
    let shown = range(order.len(), at, room - 1);
    let (first, last) = (shown.start, shown.end);
    for &index in &order[shown] {
        lines.push(table.row(|column, width| cell(app, state, index, column, width)));
    }
    if let Some(title) = lines.first_mut()
        && last - first < order.len()
    {
        let text = format!("  {}-{} of {}", first + 1, last, order.len());
        title.spans.push(Span::styled(text, app.paint.dim()));
    }
    lines
}

fn cell(app: &App, state: &State, index: usize, column: Col, width: usize) -> Vec<Span<'static>> {
    let (paint, port) = (app.paint, &state.ports[index]);
    let step = app.step.ports.get(index).copied().unwrap_or_default();
    let is_selected = index == app.selected;
    let known = |value: String| if app.step.seconds > 0.0 { value } else { "-".to_owned() };
    let plain = Style::new();
    match column {
        Col::Mark => vec![mark(is_selected, paint)],
        Col::Name => text(port.port.clone(), paint.when(is_selected, paint.strong())),
        Col::Link => link(app, state, port),
        Col::Rate => text(speed(port.rate_bps), paint.dim()),
        Col::Received => text(known(gigabits(step.rx_bps)), plain),
        Col::Sent => text(known(gigabits(step.tx_bps)), plain),
        Col::Used => {
            let share = if port.rate_bps > 0 { step.tx_bps / port.rate_bps as f64 } else { 0.0 };
            text(known(format!("{:.0}%", (share * 100.0).min(999.0))), plain)
        }
        Col::Spark => spark(app, port, index, app.shows_rx, width),
        Col::Other => spark(app, port, index, !app.shows_rx, width),
        Col::Queue => {
            let depth = deepest(state, &port.port).map_or(0, |queue| queue.depth_bytes);
            text(Bytes(depth).to_string(), paint.when(depth == 0, paint.dim()))
        }
        Col::Highest => {
            let queues = state.queues.iter().filter(|queue| queue.port == port.port);
            let highest = queues.map(|queue| queue.depth_highest_bytes).max().unwrap_or(0);
            text(Bytes(highest).to_string(), paint.dim())
        }
        Col::Xoff => held(app, step.xoff, state, port, true),
        Col::Paused => held(app, step.paused, state, port, false),
        Col::Xoffs => text(known(short(step.pfc_sent.round() as u64)), plain),
        Col::Marks => text(known(short(step.marked.round() as u64)), plain),
        Col::Drops => count(app, step, false),
        Col::Lost => count(app, step, true),
    }
}

fn count(app: &App, step: PortStep, is_lost: bool) -> Vec<Span<'static>> {
    let (rate, style) = if is_lost { (step.lost, app.paint.bad()) } else { (step.dropped, app.paint.odd()) };
    match app.step.seconds > 0.0 {
        // A rate above zero is never shown as 0, even one frame in a long interval.
        true if rate > 0.0 => text(short((rate.round() as u64).max(1)), style),
        true => text("0", app.paint.dim()),
        false => text("-", app.paint.dim()),
    }
}

fn link(app: &App, state: &State, port: &Port) -> Vec<Span<'static>> {
    let dogs = state.watchdog.iter().filter(|dog| dog.port == port.port);
    let is_storming = dogs.flat_map(|dog| &dog.queues).any(|queue| queue.storming);
    match (port.link_up, is_storming) {
        _ if port.state == "shut" => text("SHUT", app.paint.dim()),
        _ if port.state == "absent" => text("-", app.paint.dim()),
        _ if port.state == "blocked" => text("BLOCK", app.paint.bad()),
        (_, true) => text("STORM", app.paint.bad()),
        (false, _) => text("DOWN", app.paint.bad()),
        (true, _) if port.egress_stuck => text("STUCK", app.paint.bad()),
        (true, _) => text("up", app.paint.good()),
    }
}

fn spark(app: &App, port: &Port, index: usize, is_rx: bool, width: usize) -> Vec<Span<'static>> {
    let Some(history) = app.histories.get(index) else { return Vec::new() };
    let top = port.rate_bps as f64;
    match is_rx {
        true => sparkline(history.samples(), |sample| sample.rx_bps, top, width, app.paint),
        false => sparkline(history.samples(), |sample| sample.tx_bps, top, width, app.paint),
    }
}

/// The priorities that were paused since the last state, and the share of that time. A pause in force is highlighted.
fn held(app: &App, held: Held, state: &State, port: &Port, is_sent: bool) -> Vec<Span<'static>> {
    let pfc = pfc_of(state, &port.port);
    let lines = pfc.map_or(&[][..], |pfc| &pfc.priorities);
    let now = lines.iter().any(|line| if is_sent { line.xoff } else { line.paused });
    if pfc.is_some_and(|pfc| is_sent && pfc.port_xoff) {
        return text(format!("all   {:>3.0}%", held.share * 100.0), app.paint.bad());
    }
    if held.priorities.is_empty() && held.share == 0.0 {
        return text("-", app.paint.dim());
    }
    let style = if now { app.paint.odd() } else { Style::new() };
    text(format!("{:<6}{:>3.0}%", classes(held.priorities), held.share * 100.0), style)
}
