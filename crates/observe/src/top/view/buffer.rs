//! The buffer: pools as bars, and priority groups as bars of reserve, shared pool and headroom.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::app::App;
use super::super::bar::Bar;
use super::super::paint::{Paint, Part, Tick};
use super::super::table::{Column, Table, text};
use super::{mark, range, rule};
use crate::api::State;
use crate::api::model::{Group, Pool};
use crate::text::format::percent;
use crate::units::Bytes;

/// A column of the table of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Col {
    Mark,
    Port,
    Group,
    Classes,
    State,
    Bar,
    Used,
    Limit,
    Highest,
    Headroom,
    Eta,
    Most,
    Needed,
}

fn columns(has_port: bool) -> Vec<Column<Col>> {
    let column = |id, title, width, right, rank| Column { id, title, width, right, rank };
    let mut columns = vec![
        column(Col::Mark, "", 1, false, 0),
        column(Col::Port, "port", 8, false, 0),
        column(Col::Group, "grp", 3, false, 0),
        column(Col::Classes, "classes", 7, false, 10),
        column(Col::State, "PFC", 4, false, 3),
        column(Col::Bar, "reserve, shared, headroom", 26, false, 1),
        column(Col::Used, "used", 9, true, 2),
        column(Col::Limit, "XOFF at", 9, true, 4),
        column(Col::Highest, "highest", 9, true, 8),
        column(Col::Headroom, "headroom", 9, true, 5),
        column(Col::Eta, "of", 9, true, 6),
        column(Col::Most, "highest", 9, true, 9),
        column(Col::Needed, "needed", 9, true, 11),
    ];
    if !has_port {
        columns.retain(|column| !matches!(column.id, Col::Port | Col::Mark));
    }
    columns
}

/// The view of the pools and of the groups of all ports.
pub fn view(app: &App, state: &State, width: usize, room: usize) -> Vec<Line<'static>> {
    let mut lines = pools(app, state, width);
    lines.push(rule(legend(app.paint), width, app.paint));
    let groups: Vec<&Group> = app.groups(state).collect();
    let table = Table::fit(&columns(true), width, &[Col::Bar], 200);
    lines.push(titles(&table, app.paint));
    let at = app.cursor.min(groups.len().saturating_sub(1));
    let shown = range(groups.len(), at, room.saturating_sub(lines.len()));
    for index in shown {
        lines.push(row(app, state, &table, groups[index], index == at));
    }
    lines
}

/// The table of the groups of `port`, titles first.
pub fn groups_of(app: &App, state: &State, port: &str, width: usize) -> Vec<Line<'static>> {
    let table = Table::fit(&columns(false), width, &[Col::Bar], 120);
    let mut groups: Vec<&Group> = app.groups(state).filter(|group| group.port == port).collect();
    // Lossless groups come first: a small screen may cut off the others.
    groups.sort_by_key(|group| !group.lossless);
    let rows = groups.into_iter().map(|group| row(app, state, &table, group, false));
    std::iter::once(titles(&table, app.paint)).chain(rows).collect()
}

fn titles(table: &Table<Col>, paint: Paint) -> Line<'static> {
    table.titles(None, paint)
}

/// The legend of the bars' colours and lines.
fn legend(paint: Paint) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (part, name) in [(Part::Reserve, "reserve"), (Part::Shared, "shared"), (Part::Headroom, "headroom")] {
        spans.push(Span::styled(paint.full(part).to_string(), paint.part(part)));
        spans.push(Span::raw(format!(" {name}  ")));
    }
    let ticks = [(Tick::Threshold, "XOFF or limit"), (Tick::Limit, "end of headroom"), (Tick::Highest, "highest")];
    for (tick, name) in ticks {
        let (sign, style) = paint.tick(tick);
        spans.push(Span::styled(sign.to_string(), style));
        spans.push(Span::raw(format!(" {name}  ")));
    }
    spans
}

fn row(app: &App, state: &State, table: &Table<Col>, group: &Group, is_selected: bool) -> Line<'static> {
    let (paint, size) = (app.paint, |bytes: u64| Bytes(bytes).to_string());
    let (quiet, plain) = (paint.dim(), Style::new());
    let only_lossless = |value: u64, style| match group.lossless {
        true => text(size(value), style),
        false => text("-", quiet),
    };
    table.row(|column, width| match column {
        Col::Mark => vec![mark(is_selected, paint)],
        Col::Port => text(group.port.clone(), paint.when(is_selected, paint.strong())),
        Col::Group => text(format!("{}{}", group.group, if group.lossless { "*" } else { "" }), plain),
        Col::Classes => text(list(&group.classes), quiet),
        Col::State => match (group.lossless, group.xoff) {
            (false, _) => text("-", quiet),
            (true, true) => text("XOFF", paint.odd()),
            (true, false) => text("xon", paint.good()),
        },
        Col::Bar => bar(state, group).spans(width, paint),
        Col::Used => text(size(group.used_bytes), paint.when(group.used_bytes == 0, quiet)),
        Col::Limit => text(size(threshold(group)), plain),
        Col::Highest => text(size(group.used_highest_bytes), quiet),
        Col::Headroom => only_lossless(group.headroom_bytes, paint.when(group.headroom_bytes > 0, paint.odd())),
        Col::Eta => only_lossless(group.headroom_size_bytes, quiet),
        Col::Most => {
            let is_full = group.headroom_size_bytes > 0 && group.headroom_highest_bytes >= group.headroom_size_bytes;
            only_lossless(group.headroom_highest_bytes, if is_full { paint.bad() } else { quiet })
        }
        Col::Needed => match group.headroom_needed_bytes {
            Some(needed) if needed > group.headroom_size_bytes => text(size(needed), paint.bad()),
            Some(needed) => text(size(needed), quiet),
            None => text("-", quiet),
        },
    })
}

fn list(classes: &[u8]) -> String {
    classes.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}

/// The use in bytes at which a lossless group pauses its peer, or a lossy group drops.
fn threshold(group: &Group) -> u64 {
    group.xoff_bytes.unwrap_or_else(|| group.reserve_bytes.saturating_add(group.limit_bytes))
}

/// The bar of a group. Its length is the most that the group can hold, which is when no other group uses its pool. With
/// a Dynamic Threshold the XOFF line moves left while other groups use the pool.
fn bar(state: &State, group: &Group) -> Bar {
    let pool = state.buffers.pools.iter().find(|pool| pool.pool == if group.lossless { "lossless" } else { "lossy" });
    let pool = pool.map_or(0, |pool| pool.size_bytes);
    let share = match (group.static_limit_bytes, group.alpha) {
        (Some(limit), _) => limit,
        (None, Some(alpha)) => (alpha * pool as f64) as u64,
        (None, None) => group.limit_bytes,
    };
    let (reserve, eta) = (group.reserve_bytes, group.headroom_size_bytes);
    // A large alpha can give a threshold beyond the size of the pool.
    let threshold = threshold(group).min(reserve.saturating_add(pool));
    let end = threshold.max(group.used_bytes).saturating_add(eta);
    let mut ticks = vec![(group.used_highest_bytes, Tick::Highest)];
    if group.lossless {
        ticks.push((end, Tick::Limit));
    }
    ticks.push((threshold, Tick::Threshold));
    Bar {
        scale: reserve.saturating_add(share.min(pool)).saturating_add(eta).max(end).max(group.used_highest_bytes),
        parts: vec![
            (group.used_bytes.min(reserve), Part::Reserve),
            (group.used_bytes.saturating_sub(reserve), Part::Shared),
            (group.headroom_bytes, Part::Headroom),
        ],
        room: group.lossless.then(|| (threshold.max(group.used_bytes), end)),
        ticks,
    }
}

/// One line per pool: use, watermark and size.
pub fn pools(app: &App, state: &State, width: usize) -> Vec<Line<'static>> {
    let shown = state.buffers.pools.iter().filter(|pool| pool.size_bytes > 0);
    shown.map(|pool| pool_line(app, pool, width)).collect()
}

fn pool_line(app: &App, pool: &Pool, width: usize) -> Line<'static> {
    let (paint, size) = (app.paint, |bytes: u64| Bytes(bytes).to_string());
    let part = if pool.pool == "headroom" { Part::Headroom } else { Part::Shared };
    let name = match (pool.pool.as_str(), pool.used_highest_bytes) {
        ("headroom", None) => "headroom".to_owned(),
        (name, _) => format!("{name} pool"),
    };
    let share = percent(pool.used_bytes.min(pool.size_bytes) / 1024, (pool.size_bytes / 1024).max(1));
    let used = format!("{:>9} of {:<9}{share:>3}%", size(pool.used_bytes), size(pool.size_bytes));
    let highest = pool.used_highest_bytes.map(|highest| format!("  highest {:>9}", size(highest)));
    let highest = highest.unwrap_or_else(|| " ".repeat(19));
    // A narrow screen omits the watermark before it shortens the bar.
    let fixed = 14 + used.len() + 1;
    let highest = if width >= fixed + highest.len() + 10 { highest } else { String::new() };
    let bar = Bar {
        scale: pool.size_bytes.max(pool.used_bytes),
        parts: vec![(pool.used_bytes, part)],
        room: None,
        ticks: pool.used_highest_bytes.map(|highest| (highest, Tick::Highest)).into_iter().collect(),
    };
    let mut spans = vec![Span::raw(format!("{name:<14}"))];
    spans.extend(bar.spans(width.saturating_sub(fixed + highest.len()).min(120), paint));
    spans.push(Span::raw(format!(" {used}")));
    spans.push(Span::styled(highest, paint.dim()));
    Line::from(spans)
}
