//! Prints tables for the terminal or for a page of the documentation, and writes JSON and plots.

use std::path::Path;

use holdfast::text::table::Table;
use serde_json::Value;

use super::{Args, Histogram};

/// A table with a title and column titles.
pub struct Section {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Section {
    /// Creates a table without rows.
    pub fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        Self { title: title.into(), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints the table in the format that `args` selects.
    pub fn print(&self, args: Args) {
        if args.markdown { self.print_markdown() } else { self.print_text() }
    }

    fn print_text(&self) {
        let mut table = Table::new(&self.columns.join(" | >"));
        self.rows.iter().for_each(|row| table.row(row.iter().cloned()));
        println!("{}\n\n{table}", self.title);
    }

    fn print_markdown(&self) {
        println!("**{}**\n\n| {} |", self.title, self.columns.join(" | "));
        println!("|{}|", vec!["---"; self.columns.len()].join("|"));
        self.rows.iter().for_each(|row| println!("| {} |", row.join(" | ")));
        println!();
    }
}

/// Formats nanoseconds as microseconds with three digits.
pub fn micros(ns: f64) -> String {
    let us = ns / 1e3;
    match us {
        ..10.0 => format!("{us:.2}"),
        10.0..100.0 => format!("{us:.1}"),
        _ => format!("{us:.0}"),
    }
}

impl Histogram {
    /// Median, p99, p99.9 and maximum of a histogram of ticks, in microseconds.
    pub fn micros(&self, hz: u64) -> [String; 4] {
        if self.count() == 0 {
            return std::array::from_fn(|_| "-".to_owned());
        }
        let us = |ticks: u64| micros(ticks as f64 * 1e9 / hz as f64);
        [us(self.quantile(0.5)), us(self.quantile(0.99)), us(self.quantile(0.999)), us(self.highest())]
    }

    /// A histogram of ticks as JSON, in nanoseconds: count, mean, quantiles and maximum.
    pub fn json(&self, hz: u64) -> Value {
        let ns = |ticks: u64| (ticks as f64 * 1e9 / hz as f64).round() as u64;
        serde_json::json!({
            "count": self.count(),
            "mean_ns": (self.mean() * 1e9 / hz as f64).round() as u64,
            "p50_ns": ns(self.quantile(0.5)),
            "p90_ns": ns(self.quantile(0.9)),
            "p99_ns": ns(self.quantile(0.99)),
            "p999_ns": ns(self.quantile(0.999)),
            "p9999_ns": ns(self.quantile(0.9999)),
            "highest_ns": ns(self.highest()),
        })
    }
}

/// Writes `target/perf/NAME.json`.
///
/// # Panics
/// If the file cannot be written: the run would be useless.
pub fn write_json(name: &str, value: &Value) {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| format!("{}/target", env!("CARGO_MANIFEST_DIR")));
    let directory = Path::new(&target).join("perf");
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    std::fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let path = directory.join(format!("{name}.json"));
    std::fs::write(&path, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    eprintln!("{}", path.display());
}

/// Writes `docs/performance/NAME.svg`.
///
/// # Panics
/// If the file cannot be written.
pub fn write_plot(name: &str, picture: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance");
    std::fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let path = directory.join(format!("{name}.svg"));
    std::fs::write(&path, picture).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    eprintln!("{}", path.display());
}
