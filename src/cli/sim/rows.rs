//! The output of several variants, in parts that may come from several shards.

use holdfast::sim::report::{self, Comparison};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Format, Run};
use crate::cli::{Failure, print, print_json};

/// The output of some variants in one format.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rows {
    /// The table of each variant if all is asked for, and the rows of the table of variants.
    Table { tables: Vec<String>, comparison: Comparison },
    /// An object for each variant.
    Json(Vec<Value>),
    /// The header, and a line for each variant.
    Csv { header: String, lines: Vec<String> },
}

impl Rows {
    /// Returns the rows of these runs. `columns` are those of the first variant of all.
    pub fn new(format: Format, all: bool, columns: &[String], runs: &[Run]) -> Self {
        let rows = super::rows_of(runs);
        match format {
            Format::Table => {
                let table =
                    |run: &Run| format!("== {}\n\n{}\n", run.variant, report::table(&run.scenario, &run.outcome, true));
                let tables = if all { runs.iter().map(table).collect() } else { Vec::new() };
                Rows::Table { tables, comparison: Comparison::new(columns, &rows) }
            }
            Format::Json if all => {
                let object =
                    |run: &Run| json!({"variant": run.variant, "run": report::json(&run.scenario, &run.outcome, true)});
                Rows::Json(runs.iter().map(object).collect())
            }
            Format::Json => Rows::Json(report::comparison_json(&rows)),
            Format::Csv => {
                Rows::Csv { header: report::comparison_csv_header(), lines: report::comparison_csv_lines(&rows) }
            }
        }
    }

    /// Returns the number of variants.
    pub fn len(&self) -> usize {
        match self {
            Rows::Table { comparison, .. } => comparison.len(),
            Rows::Json(objects) => objects.len(),
            Rows::Csv { lines, .. } => lines.len(),
        }
    }

    /// Whether the rows are in this format.
    pub fn is(&self, format: Format) -> bool {
        match self {
            Rows::Table { .. } => format == Format::Table,
            Rows::Json(_) => format == Format::Json,
            Rows::Csv { .. } => format == Format::Csv,
        }
    }

    /// Appends the rows of further variants in the same format.
    pub fn append(&mut self, more: Self) {
        match (self, more) {
            (Rows::Table { tables, comparison }, Rows::Table { tables: more, comparison: rows }) => {
                tables.extend(more);
                comparison.append(rows);
            }
            (Rows::Json(objects), Rows::Json(more)) => objects.extend(more),
            (Rows::Csv { lines, .. }, Rows::Csv { lines: more, .. }) => lines.extend(more),
            // The caller has checked the format.
            _ => {}
        }
    }

    /// Writes the rows to standard output.
    pub fn print(self) -> Result<(), Failure> {
        match self {
            Rows::Table { tables, comparison } => {
                tables.iter().try_for_each(|table| print(table))?;
                print(&comparison.to_string())
            }
            Rows::Json(objects) => print_json(&Value::Array(objects)),
            Rows::Csv { header, lines } => print(&(header + &lines.concat())),
        }
    }
}
