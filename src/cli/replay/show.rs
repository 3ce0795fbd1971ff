//! What a replay prints: a table, CSV or JSON lines, a line an event.

use std::io::{self, Write};

use holdfast::dataplane::SwitchSpec;
use holdfast::dataplane::replay::{Decision, Outcome, Transition};
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Columns for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// One JSON object a line
    Json,
}

/// Sums of a whole trace.
#[derive(Debug, Default)]
pub struct Totals {
    pub admitted: u64,
    pub dropped: u64,
    pub departed: u64,
    pub xoff: u64,
    pub xon: u64,
}

/// The columns: titles of the table, names in CSV and JSON, widths in the table; 0 is the longest port's, and a
/// negative one is set to the left.
const COLUMNS: [(&str, &str, i8); 18] = [
    ("time_ns", "time_ns", 12),
    ("event", "event", -6),
    ("port", "port", 0),
    ("class", "class", 5),
    ("bytes", "bytes", 5),
    ("egress", "egress", 0),
    ("result", "result", -8),
    ("reason", "reason", -15),
    ("cells", "cells", 5),
    ("threshold", "threshold", 9),
    ("group", "group", 5),
    ("used", "group_used", 6),
    ("headroom", "group_headroom", 8),
    ("pool", "pool", -8),
    ("in use", "pool_used", 8),
    ("queue B", "queue_bytes", 9),
    ("marking", "marking", 8),
    ("pause", "pause", -1),
];

pub struct Show<'a> {
    format: Format,
    switch: &'a SwitchSpec,
    name_width: usize,
}

impl<'a> Show<'a> {
    pub fn new(format: Format, switch: &'a SwitchSpec) -> Self {
        let longest = switch.ports.iter().map(|port| port.name.len()).max().unwrap_or(0);
        Self { format, switch, name_width: longest.max("egress".len()) }
    }

    pub fn head(&self, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            Format::Table => self.row(out, &COLUMNS.map(|column| column.0.to_owned())),
            Format::Csv => writeln!(out, "{}", COLUMNS.map(|column| column.1).join(",")),
            Format::Json => Ok(()),
        }
    }

    pub fn event(&self, out: &mut impl Write, time: u64, decision: &Decision) -> io::Result<()> {
        match self.format {
            Format::Table => self.row(out, &self.cells(time, decision)),
            Format::Csv => writeln!(out, "{}", self.cells(time, decision).join(",")),
            Format::Json => writeln!(out, "{}", self.object(time, decision)),
        }
    }

    /// The table says that it is complete; CSV and JSON lines leave that to the exit code.
    pub fn foot(&self, out: &mut impl Write, totals: &Totals) -> io::Result<()> {
        if self.format != Format::Table {
            return Ok(());
        }
        let Totals { admitted, dropped, departed, xoff, xon } = totals;
        writeln!(
            out,
            "\nwhole trace: {admitted} admitted, {dropped} dropped, {departed} departed; {xoff} XOFF, {xon} XON"
        )
    }

    fn row(&self, out: &mut impl Write, cells: &[String; COLUMNS.len()]) -> io::Result<()> {
        let mut line = String::new();
        for (cell, (_, _, width)) in cells.iter().zip(COLUMNS) {
            let columns = if width == 0 { self.name_width } else { usize::from(width.unsigned_abs()) };
            line += &if width > 0 { format!("{cell:>columns$}  ") } else { format!("{cell:<columns$}  ") };
        }
        writeln!(out, "{}", line.trim_end())
    }

    fn name(&self, port: usize) -> &str {
        &self.switch.ports[port].name
    }

    fn cells(&self, time: u64, decision: &Decision) -> [String; COLUMNS.len()] {
        let (event, result, reason) = words(decision.outcome);
        let pause = |change: &Transition| format!("{} {}:{}", state(change), self.name(change.port), change.group);
        [
            time.to_string(),
            event.to_owned(),
            self.name(decision.frame.port).to_owned(),
            decision.frame.class.to_string(),
            decision.frame.bytes.to_string(),
            self.name(decision.frame.egress).to_owned(),
            result.to_owned(),
            reason.unwrap_or_default().to_owned(),
            decision.cells.0.to_string(),
            decision.threshold.0.to_string(),
            decision.group.to_string(),
            decision.used.0.to_string(),
            decision.headroom.0.to_string(),
            pool(decision).to_owned(),
            decision.pool_used.0.to_string(),
            decision.queue_bytes.0.to_string(),
            decision.marking.map_or(String::new(), |parts| {
                let millionths = millionths(parts);
                format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
            }),
            decision.transitions.iter().map(pause).collect::<Vec<_>>().join(" "),
        ]
    }

    fn object(&self, time: u64, decision: &Decision) -> serde_json::Value {
        let (event, result, reason) = words(decision.outcome);
        let pause = |change: &Transition| json!({"state": state(change), "port": self.name(change.port), "group": change.group});
        json!({
            "time_ns": time,
            "event": event,
            "port": self.name(decision.frame.port),
            "class": decision.frame.class,
            "bytes": decision.frame.bytes,
            "egress": self.name(decision.frame.egress),
            "result": result,
            "reason": reason,
            "cells": decision.cells.0,
            "threshold": decision.threshold.0,
            "group": decision.group,
            "group_used": decision.used.0,
            "group_headroom": decision.headroom.0,
            "pool": pool(decision),
            "pool_used": decision.pool_used.0,
            "queue_bytes": decision.queue_bytes.0,
            "marking": decision.marking.map(|parts| millionths(parts) as f64 / 1e6),
            "pause": decision.transitions.iter().map(pause).collect::<Vec<_>>(),
        })
    }
}

/// Event, result, and the reason of a drop.
fn words(outcome: Outcome) -> (&'static str, &'static str, Option<&'static str>) {
    match outcome {
        Outcome::Reserve => ("arrive", "reserve", None),
        Outcome::PortReserve => ("arrive", "port_reserve", None),
        Outcome::Shared => ("arrive", "shared", None),
        Outcome::Headroom => ("arrive", "headroom", None),
        Outcome::Dropped(reason) => ("arrive", "drop", Some(reason.label())),
        Outcome::Released => ("depart", "released", None),
    }
}

fn state(change: &Transition) -> &'static str {
    if change.xoff { "XOFF" } else { "XON" }
}

fn pool(decision: &Decision) -> &'static str {
    if decision.lossless { "lossless" } else { "lossy" }
}

/// Parts of 2^32 as millionths, rounded.
fn millionths(parts: u64) -> u64 {
    (parts * 1_000_000 + (1 << 31)) >> 32
}
