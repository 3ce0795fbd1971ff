//! The output of a replay: a table, CSV or JSON lines, one line per event.

use std::fmt::Write as _;
use std::io::{self, Write};

use holdfast::mmu::HpccRule;
use holdfast::plan::SwitchSpec;
use holdfast::verify::replay::{Decision, EventResult, Transition};

use super::column::{COLUMNS, Column, Value, values};

/// Name of the column with the rules of HPCC's simulator, which follows all others.
const BESIDE: &str = "hpcc";
/// Blanks after the title of the last column, `pause`, so that one pause fits.
const PAUSES: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Columns for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// One JSON object a line
    Json,
}

/// Totals of a trace.
#[derive(Debug, Default)]
pub struct Totals {
    admitted: u64,
    dropped: u64,
    departed: u64,
    xoff: u64,
    xon: u64,
    /// Events on which HPCC's simulator decides otherwise.
    otherwise: u64,
}

impl Totals {
    pub fn count(&mut self, decision: &Decision, rules: &[HpccRule]) {
        self.otherwise += u64::from(!rules.is_empty());
        match decision.outcome {
            EventResult::Released => self.departed += 1,
            EventResult::Dropped(_) => self.dropped += 1,
            _ => self.admitted += 1,
        }
        let xoff = decision.transitions.iter().filter(|transition| transition.xoff).count();
        self.xoff += xoff as u64;
        self.xon += (decision.transitions.len() - xoff) as u64;
    }
}

pub struct Show<'a> {
    format: Format,
    switch: &'a SwitchSpec,
    /// Whether rules of HPCC's simulator are shown.
    compares: bool,
    /// Width of each column; `None` for a column that the table does not show.
    widths: [Option<usize>; COLUMNS.len()],
    line: String,
    cell: String,
}

impl<'a> Show<'a> {
    pub fn new(format: Format, switch: &'a SwitchSpec, compares: bool) -> Self {
        let names = switch.ports.iter().map(|port| port.name.len());
        let longest = names.chain(["egress".len()]).max().unwrap_or(0);
        let width = |column: &Column| if column.width == 0 { longest } else { column.width };
        Self {
            format,
            switch,
            compares,
            widths: COLUMNS.each_ref().map(|column| column.is_in_table_of(switch).then(|| width(column))),
            line: String::new(),
            cell: String::new(),
        }
    }

    pub fn head(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            Format::Table => {
                self.line.clear();
                for (index, column) in COLUMNS.iter().enumerate() {
                    self.cell.clear();
                    self.cell.push_str(column.title);
                    self.pad(index);
                }
                if self.compares {
                    let _ = write!(self.line, "{:PAUSES$}{BESIDE}", "");
                }
                writeln!(out, "{}", self.line.trim_end())
            }
            Format::Csv => {
                let beside = if self.compares { format!(",{BESIDE}") } else { String::new() };
                writeln!(out, "{}{beside}", COLUMNS.each_ref().map(|column| column.name).join(","))
            }
            Format::Json => Ok(()),
        }
    }

    pub fn event(
        &mut self,
        out: &mut impl Write,
        time: u64,
        decision: &Decision,
        rules: &[HpccRule],
    ) -> io::Result<()> {
        let values = values(time, decision);
        self.line.clear();
        for (index, value) in values.iter().enumerate() {
            if self.format == Format::Table && self.widths[index].is_none() {
                continue;
            }
            self.cell.clear();
            match self.format {
                Format::Table => {
                    self.text(value);
                    self.pad(index);
                }
                Format::Csv => {
                    self.text(value);
                    self.separate(index, "");
                }
                Format::Json => {
                    self.json(value);
                    self.separate(index, COLUMNS[index].name);
                }
            }
        }
        if self.compares {
            self.beside(rules);
        }
        match self.format {
            Format::Table => writeln!(out, "{}", self.line.trim_end()),
            Format::Csv => writeln!(out, "{}", self.line),
            Format::Json => writeln!(out, "{{{}}}", self.line),
        }
    }

    /// Appends the rules by which HPCC's simulator decides otherwise.
    fn beside(&mut self, rules: &[HpccRule]) {
        let labels: Vec<&str> = rules.iter().map(|rule| rule.label()).collect();
        let _ = match self.format {
            Format::Table => {
                // The last column has the width of one pause; more of them shift what follows.
                let used = self.cell.chars().count();
                write!(self.line, "{:1$}{2}", "", (PAUSES + 1).saturating_sub(used), labels.join(" "))
            }
            Format::Csv => write!(self.line, ",{}", labels.join(" ")),
            Format::Json => write!(self.line, ",\"{BESIDE}\":{labels:?}"),
        };
    }

    /// Writes the totals below a table, which also mark it as complete. CSV and JSON lines leave that to the exit code.
    pub fn foot(&self, out: &mut impl Write, totals: &Totals) -> io::Result<()> {
        if self.format != Format::Table {
            return Ok(());
        }
        let Totals { admitted, dropped, departed, xoff, xon, otherwise } = totals;
        let beside =
            if self.compares { format!("; HPCC's rules decide {otherwise} events otherwise") } else { String::new() };
        writeln!(
            out,
            "\nwhole trace: {admitted} admitted, {dropped} dropped, {departed} departed; {xoff} XOFF, {xon} XON{beside}"
        )
    }

    /// Appends the cell to the line of the table.
    fn pad(&mut self, index: usize) {
        let Some(width) = self.widths[index] else { return };
        let blank = width.saturating_sub(self.cell.chars().count());
        let (left, right) = if COLUMNS[index].is_left { (0, blank) } else { (blank, 0) };
        self.line.extend(std::iter::repeat_n(' ', left));
        self.line.push_str(&self.cell);
        self.line.extend(std::iter::repeat_n(' ', right + 2));
    }

    /// Appends the cell to a line of CSV, or with its name to a line of JSON.
    fn separate(&mut self, index: usize, name: &str) {
        if index > 0 {
            self.line.push(',');
        }
        if !name.is_empty() {
            let _ = write!(self.line, "\"{name}\":");
        }
        self.line.push_str(&self.cell);
    }

    /// Formats the value for the table and CSV. Writing to a string cannot fail.
    fn text(&mut self, value: &Value<'_>) {
        let cell = &mut self.cell;
        let _ = match value {
            Value::Blank => Ok(()),
            Value::Number(number) => write!(cell, "{number}"),
            Value::Parts(parts) => write_parts(cell, *parts),
            Value::Text(text) => write!(cell, "{text}"),
            Value::Port(port) => write!(cell, "{}", self.switch.ports[*port].name),
            Value::Truth(truth) => write!(cell, "{truth}"),
            Value::Pauses(changes) => changes.iter().enumerate().try_for_each(|(index, change)| {
                let blank = if index > 0 { " " } else { "" };
                write!(cell, "{blank}{} {}:{}", state(change), self.switch.ports[change.port].name, change.group)
            }),
        };
    }

    fn json(&mut self, value: &Value<'_>) {
        let cell = &mut self.cell;
        let _ = match value {
            Value::Blank => write!(cell, "null"),
            Value::Number(number) => write!(cell, "{number}"),
            Value::Parts(parts) => write_parts(cell, *parts),
            // Text is our own words and port names: letters, digits and `_-./`, which need no escaping.
            Value::Text(text) => write!(cell, "\"{text}\""),
            Value::Port(port) => write!(cell, "\"{}\"", self.switch.ports[*port].name),
            Value::Truth(truth) => write!(cell, "{truth}"),
            Value::Pauses(changes) => {
                cell.push('[');
                for (index, change) in changes.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    let (state, port) = (state(change), &self.switch.ports[change.port].name);
                    let group = change.group;
                    let _ = write!(cell, r#"{comma}{{"state":"{state}","port":"{port}","group":{group}}}"#);
                }
                write!(cell, "]")
            }
        };
    }
}

fn state(change: &Transition) -> &'static str {
    if change.xoff { "XOFF" } else { "XON" }
}

/// Writes parts of 2^32 as a number with six decimal places, rounded. Only certainty (2^32 parts) becomes 1.
fn write_parts(out: &mut String, parts: u64) -> std::fmt::Result {
    const ONE: u64 = 1 << 32;
    let millionths = (parts * 1_000_000 + ONE / 2) >> 32;
    let millionths = if parts < ONE { millionths.min(999_999) } else { millionths };
    write!(out, "{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}
