//! Egress queues of all ports.

use ratatui::style::Style;
use ratatui::text::Line;

use super::super::app::App;
use super::super::bar::Bar;
use super::super::paint::{Part, Tick};
use super::super::step::QueueStep;
use super::super::table::{Column, Table, text};
use super::{mark, range};
use crate::api::State;
use crate::api::model::{Ecn, Queue};
use crate::text::format::{gigabits, short};
use crate::units::Bytes;

/// A column of the table of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Col {
    Mark,
    Port,
    Queue,
    Classes,
    Weight,
    State,
    Bar,
    Depth,
    Highest,
    Limit,
    Sent,
    Marked,
    Kmin,
    Kmax,
}

fn columns() -> Vec<Column<Col>> {
    let column = |id, title, width, right, rank| Column { id, title, width, right, rank };
    vec![
        column(Col::Mark, "", 1, false, 0),
        column(Col::Port, "port", 8, false, 0),
        column(Col::Queue, "que", 3, false, 0),
        column(Col::Classes, "classes", 7, false, 10),
        column(Col::Weight, "weight", 6, true, 7),
        column(Col::State, "state", 6, false, 3),
        column(Col::Bar, "depth", 10, false, 1),
        column(Col::Depth, "queued", 9, true, 2),
        column(Col::Highest, "highest", 9, true, 6),
        column(Col::Limit, "limit", 9, true, 8),
        column(Col::Sent, "tx Gb/s", 7, true, 4),
        column(Col::Marked, "ECN/s", 6, true, 5),
        column(Col::Kmin, "kmin", 9, true, 11),
        column(Col::Kmax, "kmax", 9, true, 12),
    ]
}

/// Draws the view.
pub fn view(app: &App, state: &State, width: usize, room: usize) -> Vec<Line<'static>> {
    if room == 0 {
        return Vec::new();
    }
    let queues: Vec<(&Queue, QueueStep)> = app.queues(state).collect();
    let table = Table::fit(&columns(), width, &[Col::Bar], 200);
    let mut lines = vec![table.titles(None, app.paint)];
    if queues.is_empty() {
        lines.push(Line::styled("no queue was used yet; press a to show idle queues", app.paint.dim()));
    }
    let at = app.cursor.min(queues.len().saturating_sub(1));
    for index in range(queues.len(), at, room - 1) {
        let (queue, step) = queues[index];
        lines.push(row(app, state, &table, &Row { queue, step, is_selected: index == at }));
    }
    lines
}

/// A queue, its changes in the last step, and whether the cursor is on it.
struct Row<'a> {
    queue: &'a Queue,
    step: QueueStep,
    is_selected: bool,
}

fn row(app: &App, state: &State, table: &Table<Col>, row: &Row<'_>) -> Line<'static> {
    let &Row { queue, step, is_selected } = row;
    let (paint, size) = (app.paint, |bytes: u64| Bytes(bytes).to_string());
    let (quiet, plain) = (paint.dim(), Style::new());
    let known = |value: String| if app.step.seconds > 0.0 { value } else { "-".to_owned() };
    let ecn = state.ecn.iter().find(|ecn| ecn.port == queue.port && ecn.queue == queue.queue);
    let or_none = |bytes: Option<u64>| text(bytes.map_or("-".to_owned(), size), quiet);
    let dogs = state.watchdog.iter().filter(|dog| dog.port == queue.port);
    let is_storming = dogs.flat_map(|dog| &dog.queues).any(|dog| dog.queue == queue.queue && dog.storming);
    table.row(|column, width| match column {
        Col::Mark => vec![mark(is_selected, paint)],
        Col::Port => text(queue.port.clone(), paint.when(is_selected, paint.strong())),
        Col::Queue => text(format!("{}{}", queue.queue, if queue.lossless { "*" } else { "" }), plain),
        Col::Classes => text(queue.classes.iter().map(u8::to_string).collect::<Vec<_>>().join(","), quiet),
        Col::Weight => text(queue.weight.map_or("strict".to_owned(), |weight| weight.to_string()), quiet),
        Col::State => match (is_storming, queue.paused) {
            (true, _) => text("STORM", paint.bad()),
            (_, true) => text("paused", paint.odd()),
            (_, false) => text("open", paint.good()),
        },
        Col::Bar => bar(queue, ecn).spans(width, paint),
        Col::Depth => text(size(queue.depth_bytes), paint.when(queue.depth_bytes == 0, quiet)),
        Col::Highest => text(size(queue.depth_highest_bytes), quiet),
        Col::Limit => or_none(queue.limit_bytes),
        Col::Sent => text(known(gigabits(step.tx_bps)), plain),
        Col::Marked if ecn.is_some() => text(known(short(step.marked.round() as u64)), plain),
        Col::Marked => text("-", quiet),
        Col::Kmin => or_none(ecn.map(|ecn| ecn.kmin_bytes)),
        Col::Kmax => or_none(ecn.map(|ecn| ecn.kmax_bytes)),
    })
}

/// The bar of a queue: its depth, its watermark, its limit, and the ECN thresholds.
fn bar(queue: &Queue, ecn: Option<&Ecn>) -> Bar {
    let kmax = ecn.map_or(0, |ecn| ecn.kmax_bytes);
    let most = queue.depth_highest_bytes.max(queue.depth_bytes).max(kmax);
    let mut ticks = vec![(queue.depth_highest_bytes, Tick::Highest)];
    if let Some(ecn) = ecn {
        ticks.extend([(ecn.kmin_bytes, Tick::Threshold), (ecn.kmax_bytes, Tick::Threshold)]);
    }
    let limit = queue.limit_bytes.map(|limit| limit.saturating_add(queue.reserve_bytes));
    ticks.extend(limit.map(|limit| (limit, Tick::Limit)));
    let reserve = queue.depth_bytes.min(queue.reserve_bytes);
    Bar {
        scale: most.max(limit.unwrap_or(0)).max(1),
        parts: vec![(reserve, Part::Reserve), (queue.depth_bytes - reserve, Part::Shared)],
        room: None,
        ticks,
    }
}
