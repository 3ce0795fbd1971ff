//! The columns that describe a decision, defined once for the table, CSV and JSON lines.

use holdfast::mmu::HeadroomPolicy;
use holdfast::plan::SwitchSpec;
use holdfast::qos::ClassMap;
use holdfast::units::Cells;
use holdfast::verify::replay::{Decision, EventResult, Transition};

/// The value of a column; blank if the column does not apply.
pub enum Value<'a> {
    Blank,
    Number(u64),
    /// A probability in parts of 2^32.
    Parts(u64),
    Text(&'a str),
    /// Index of a port, shown by its name.
    Port(usize),
    Truth(bool),
    Pauses(&'a [Transition]),
}

/// When the table shows a column. CSV and JSON lines always have all columns, because programs read them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Always,
    /// In CSV and JSON lines only: the table shows it in other columns.
    Never,
    /// If a class has a group or a queue whose number differs from its own.
    Maps,
    /// If a port has a reserve.
    PortReserve,
    /// If all lossless groups share their headroom.
    HeadroomPool,
    /// With Dynamic and Shared Headroom.
    Dynamic,
    /// Not with Dynamic and Shared Headroom: there the port has one insurance, and a group's use of it limits nothing.
    NotDynamic,
    /// If a queue has a WRED profile.
    Wred,
    /// If a lossy queue has a WRED profile.
    LossyWred,
}

impl Shown {
    fn is_for(self, switch: &SwitchSpec) -> bool {
        let policy = switch.buffer.policy;
        match self {
            Shown::Always => true,
            Shown::Never => false,
            Shown::Maps => switch.classes != ClassMap::identity(),
            Shown::PortReserve => switch.ports.iter().any(|port| port.buffer.reserve != [Cells(0); 2]),
            Shown::HeadroomPool => policy == HeadroomPolicy::SharedPool,
            Shown::Dynamic => policy == HeadroomPolicy::Dynamic,
            Shown::NotDynamic => policy != HeadroomPolicy::Dynamic,
            Shown::Wred => switch.queues.iter().any(|queue| queue.wred.is_some()),
            Shown::LossyWred => switch.queues.iter().any(|queue| queue.wred.is_some() && queue.limit.is_some()),
        }
    }
}

/// A column of the output.
pub struct Column {
    /// Name in CSV and JSON lines.
    pub name: &'static str,
    /// Title in the table.
    pub title: &'static str,
    /// Width in the table. Zero stands for the length of the longest port name.
    pub width: usize,
    pub is_left: bool,
    shown: Shown,
}

impl Column {
    pub fn is_in_table_of(&self, switch: &SwitchSpec) -> bool {
        self.shown.is_for(switch)
    }
}

const fn number(name: &'static str, title: &'static str, width: usize, shown: Shown) -> Column {
    Column { name, title, width, is_left: false, shown }
}

const fn text(name: &'static str, title: &'static str, width: usize, shown: Shown) -> Column {
    Column { name, title, width, is_left: true, shown }
}

pub const COLUMNS: [Column; 38] = [
    number("time_ns", "time_ns", 9, Shown::Always),
    text("event", "event", 6, Shown::Always),
    text("port", "port", 0, Shown::Always),
    number("class", "class", 5, Shown::Always),
    number("bytes", "bytes", 5, Shown::Always),
    text("egress", "egress", 0, Shown::Always),
    text("ecn", "ecn", 7, Shown::Wred),
    text("result", "result", 12, Shown::Always),
    text("reason", "reason", 19, Shown::Always),
    number("cells", "cells", 5, Shown::Always),
    number("reserve", "reserve", 7, Shown::Never),
    number("port_reserve", "port_reserve", 12, Shown::Never),
    number("shared", "shared", 6, Shown::Never),
    number("headroom", "headroom", 8, Shown::Never),
    number("group", "group", 5, Shown::Maps),
    number("group_reserve", "g_rsv", 5, Shown::Always),
    number("group_port_reserve", "p_rsv", 5, Shown::PortReserve),
    number("group_shared", "shared", 6, Shown::Always),
    number("threshold", "T", 6, Shown::Always),
    number("xoff_level", "X_qoff", 6, Shown::Dynamic),
    number("group_headroom", "headroom", 8, Shown::NotDynamic),
    text("group_xoff", "group_xoff", 10, Shown::Never),
    number("port_reserve_used", "port_reserve_used", 17, Shown::Never),
    number("port_shared", "p_shared", 8, Shown::Dynamic),
    number("port_xoff_level", "X_poff", 6, Shown::Dynamic),
    number("port_insurance", "insurance", 9, Shown::Dynamic),
    text("port_xoff", "port_xoff", 9, Shown::Never),
    text("pool", "pool", 8, Shown::Always),
    number("pool_used", "in_use", 6, Shown::Always),
    number("headroom_pool_used", "hr_pool", 7, Shown::HeadroomPool),
    number("queue", "queue", 5, Shown::Maps),
    number("queue_cells", "q_cells", 7, Shown::Always),
    number("queue_limit", "q_limit", 7, Shown::Always),
    number("queue_bytes", "q_bytes", 7, Shown::Wred),
    number("marking", "marking", 8, Shown::Wred),
    number("dropping", "dropping", 8, Shown::LossyWred),
    text("pause", "pause", 1, Shown::Always),
    number("posted_bytes", "posted", 6, Shown::Never),
];

/// The values of a decision, in the order of [`COLUMNS`].
pub fn values(time: u64, decision: &Decision) -> [Value<'_>; COLUMNS.len()] {
    let Decision { frame, went, held, limits, port, at_queue, .. } = decision;
    let (event, result, reason) = words(decision.outcome);
    let cells = |cells: Cells| Value::Number(cells.0.into());
    let maybe = |value: Option<Cells>| value.map_or(Value::Blank, cells);
    let parts = |value: Option<u64>| value.map_or(Value::Blank, Value::Parts);
    // Shared use, insurance and XOFF of a whole port limit something only with Dynamic and Shared Headroom.
    let is_dynamic = limits.dynamic.is_some();
    let dynamic = |value| if is_dynamic { value } else { Value::Blank };
    [
        Value::Number(time),
        Value::Text(event),
        Value::Port(frame.port),
        Value::Number(frame.class.into()),
        Value::Number(frame.bytes.into()),
        Value::Port(frame.egress),
        Value::Text(frame.ecn.label()),
        Value::Text(result),
        reason.map_or(Value::Blank, Value::Text),
        cells(decision.cells),
        cells(went.reserve),
        cells(went.port_reserve),
        cells(went.shared),
        cells(went.headroom),
        Value::Number(decision.group as u64),
        cells(held.reserve),
        cells(held.port_reserve),
        cells(held.shared),
        cells(limits.threshold),
        maybe(limits.dynamic.map(|dynamic| dynamic.group_xoff)),
        cells(held.headroom),
        Value::Truth(decision.is_xoff),
        cells(port.reserve),
        dynamic(cells(port.shared)),
        maybe(limits.dynamic.map(|dynamic| dynamic.port_xoff)),
        dynamic(cells(port.insurance)),
        dynamic(Value::Truth(port.is_xoff)),
        Value::Text(if decision.lossless { "lossless" } else { "lossy" }),
        cells(decision.pool_used),
        maybe(decision.headroom_pool_used),
        Value::Number(decision.queue as u64),
        cells(at_queue.cells),
        maybe(at_queue.threshold),
        Value::Number(at_queue.bytes.0),
        parts(decision.marking),
        parts(decision.dropping),
        Value::Pauses(&decision.transitions),
        Value::Number(decision.posted.0),
    ]
}

/// The event, the result, and the reason of a drop.
fn words(outcome: EventResult) -> (&'static str, &'static str, Option<&'static str>) {
    match outcome {
        EventResult::Reserve => ("arrive", "reserve", None),
        EventResult::PortReserve => ("arrive", "port_reserve", None),
        EventResult::Shared => ("arrive", "shared", None),
        EventResult::Headroom => ("arrive", "headroom", None),
        EventResult::Dropped(reason) => ("arrive", "drop", Some(reason.label())),
        EventResult::Released => ("depart", "released", None),
    }
}
