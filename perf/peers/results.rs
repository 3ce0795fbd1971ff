//! The results, as text, Markdown and JSON.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::lab::Lab;
use super::measure::Sample;
use super::offered::{self, Series};
use super::plan::{PORTS, Point};
use super::programs::Program;

/// The program with which the others are compared.
const SUBJECT: &str = "Holdfast";

/// All rounds of one program at one point.
pub struct Cell {
    pub point: Point,
    pub program: Program,
    pub samples: Vec<Sample>,
    /// Why rounds are missing.
    pub errors: Vec<String>,
}

/// Median, minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Spread {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
}

/// The results of a whole run.
pub struct Results {
    pub cells: Vec<Cell>,
    /// Rates that leave by offered load.
    pub offered: Vec<Series>,
    pub memory: &'static str,
    pub rounds: usize,
    /// The measured commit, or `unknown`.
    pub commit: String,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (&lowest, &highest) = (values.first()?, values.last()?);
        let median = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Some(Self { median, lowest, highest })
    }
}

impl Cell {
    pub fn spread(&self, value: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().map(value))
    }

    pub fn cycles(&self) -> Option<Spread> {
        self.spread(|sample| sample.cycles)
    }

    /// Whether the figure is the cost of forwarding, not of a slow path that never ended.
    pub fn has_settled(&self) -> bool {
        !self.samples.iter().any(|sample| sample.took_long() && !sample.steady)
    }

    /// Whether the program paused the senders: the cycles then include the wait for the receiver's link.
    fn has_paused(&self) -> bool {
        self.point.pfc && self.samples.iter().any(|sample| sample.pfc > 0)
    }

    /// The cycles for a table, with remarks.
    fn show_cycles(&self, rounds: usize) -> Option<String> {
        let cycles = self.cycles()?;
        if self.has_paused() {
            return Some("senders paused".to_owned());
        }
        let mut text = format!("{:.1} ({:.1} to {:.1})", cycles.median, cycles.lowest, cycles.highest);
        if self.samples.len() < rounds {
            let _ = write!(text, ", {} of {rounds} rounds", self.samples.len());
        }
        if self.samples.iter().any(|sample| sample.pfc > 0) {
            text.push_str(", XOFF sent and not obeyed");
        }
        if !self.samples.iter().all(|sample| sample.steady) {
            text.push_str(", not settled");
        }
        Some(text)
    }
}

impl Results {
    /// The measured points, in order.
    pub fn points(&self) -> Vec<Point> {
        let mut points: Vec<Point> = self.cells.iter().map(|cell| cell.point).collect();
        points.dedup();
        points
    }

    pub fn at<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.point == *point)
    }

    /// Ticks of the TSC per second, as measured by DPDK; zero without any sample.
    fn tsc_hz(&self) -> u64 {
        self.cells.iter().find_map(|cell| cell.samples.first()).map_or(0, |sample| sample.tsc_hz)
    }

    /// Cycles of a program relative to those of Holdfast at the same point.
    fn ratio(&self, cell: &Cell) -> Option<f64> {
        let switch_view = self.at(&cell.point).find(|cell| cell.program.name == SUBJECT && !cell.has_paused())?;
        let cycles = cell.cycles().filter(|_| cell.has_settled())?;
        Some(cycles.median / switch_view.cycles()?.median)
    }

    /// The measured programs, in order.
    fn programs(&self) -> Vec<Program> {
        let mut programs: Vec<Program> = Vec::new();
        for cell in &self.cells {
            if !programs.contains(&cell.program) {
                programs.push(cell.program);
            }
        }
        programs
    }

    /// The line above the tables: place and conditions of the measurement.
    pub fn header(&self) -> String {
        format!(
            "Commit {}; one core, {PORTS} ports, TSC at {:.2} GHz, {}; median of {} rounds (lowest to highest).\n",
            self.commit,
            self.tsc_hz() as f64 / 1e9,
            self.memory,
            self.rounds
        )
    }

    /// The tables in Markdown, below the work of each program.
    pub fn markdown(&self) -> String {
        let mut text = self.header();
        text.push_str(&self.what_they_do());
        for point in self.points() {
            let _ = write!(text, "\n**{}** (`{}`)\n\n{}", point.title, point.name, self.table(&point));
        }
        text
    }

    /// The work of each program per packet, as a list in Markdown.
    pub fn what_they_do(&self) -> String {
        let mut text = "\nWhat each does per packet:\n\n".to_owned();
        for program in self.programs() {
            let _ = writeln!(text, "- {}: {}.", program.title(), program.does);
        }
        text
    }

    /// The table of one point in Markdown, which is also readable on a terminal.
    pub fn table(&self, point: &Point) -> String {
        let mut text = "| program | cycles a packet | Mpps | of Holdfast's cycles | forwarded |\n".to_owned();
        text.push_str("|---|---|---|---|---|\n");
        for cell in self.at(point) {
            let name = cell.program.title();
            let (Some(cycles), Some(mpps), Some(forwarded)) = (
                cell.show_cycles(self.rounds),
                cell.spread(|sample| sample.mpps),
                cell.spread(|sample| sample.forwarded),
            ) else {
                let why = cell.errors.first().map_or("-", |error| error.split(';').next().unwrap_or_default());
                let _ = writeln!(text, "| {name} | {why} | | | |");
                continue;
            };
            let ratio = self.ratio(cell).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let forwarded = 100.0 * forwarded.median;
            let _ = writeln!(text, "| {name} | {cycles} | {:.2} | {ratio} | {forwarded:.2} % |", mpps.median);
        }
        text
    }

    /// All samples; the schema is in perf/README.md.
    pub fn json(&self, lab: &Lab) -> Value {
        let cell = |cell: &Cell| {
            json!({
                "point": cell.point.name,
                "program": cell.program.name,
                "cycles": cell.cycles(),
                "mpps": cell.spread(|sample| sample.mpps),
                "forwarded": cell.spread(|sample| sample.forwarded),
                "of_holdfast": self.ratio(cell),
                "samples": cell.samples,
                "errors": cell.errors,
            })
        };
        let program = |program: &Program| json!({"name": program.name, "does": program.does});
        json!({
            "schema": 1,
            "commit": self.commit,
            "ports": PORTS,
            "core": lab.core,
            "tsc_hz": self.tsc_hz(),
            "memory": self.memory,
            "rounds": self.rounds,
            "programs": self.programs().iter().map(program).collect::<Vec<_>>(),
            "points": self.points(),
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "offered": offered::json(&self.offered),
        })
    }

    pub fn write_json(&self, lab: &Lab, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.json(lab))?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }
}
