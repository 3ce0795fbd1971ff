//! Comparison of variants of a scenario: a row per variant, a column per measure.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::columns::{COLUMNS, Measure, Shown, column_titles};
use super::csv::quoted;
use super::json::ending;
use super::show;
use super::verdict::{VariantVerdict, of_variants};
use crate::sim::outcome::Outcome;
use crate::sim::spec::Scenario;
use crate::text::table::Table;

/// Name of a variant, with its scenario and outcome.
type Row<'a> = (String, &'a Scenario, &'a Outcome);

/// The table of variants as text, before its layout. Parts of it may come from several processes: a serialized part is
/// read again and appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Titles of the columns between `variant` and `ending`.
    titles: Vec<String>,
    /// Whether the scenario selects the columns.
    is_selected: bool,
    /// A row per variant.
    rows: Vec<VariantRow>,
}

/// A row of the table, and the lines below the table about this variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantRow {
    cells: Vec<String>,
    ending: String,
    verdict: VariantVerdict,
}

impl Comparison {
    /// Returns the rows of some variants. `columns` are those of the first variant of all, even if it is not among
    /// them.
    #[must_use]
    pub fn new(columns: &[String], rows: &[(String, &Scenario, &Outcome)]) -> Self {
        let shown = Shown::all(columns);
        let row = |(name, scenario, outcome): &Row<'_>| {
            let measures = shown.iter().map(|column| column.of(scenario, outcome));
            let cells = measures.map(|measure| measure.map_or(show::NOTHING.to_owned(), |measure| measure.text()));
            let verdict = VariantVerdict::new(name, scenario, outcome);
            VariantRow { cells: cells.collect(), ending: promised_ending(outcome), verdict }
        };
        Self {
            titles: shown.iter().map(|column| column.title().into_owned()).collect(),
            is_selected: !columns.is_empty(),
            rows: rows.iter().map(row).collect(),
        }
    }

    /// Returns the number of variants.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no variant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the rows of further variants of the scenario.
    pub fn append(&mut self, more: Self) {
        self.rows.extend(more.rows);
    }
}

/// A table with one row per variant. Default columns that are empty in all rows are left out; columns that the scenario
/// selects stay. Below the table are the losses of each variant and their causes.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = self.titles.iter().map(|title| format!(">{title}"));
        let [variant, ending] = ["variant", "ending"].map(str::to_owned);
        let mut table = Table::of([variant].into_iter().chain(titles).chain([ending]));
        for VariantRow { cells, ending, verdict } in &self.rows {
            table.row([verdict.name()].into_iter().chain(cells).chain([ending]).cloned());
        }
        let table = if self.is_selected {
            table
        } else {
            let idle: Vec<&str> = column_titles().collect();
            table.without_idle(&idle, show::NOTHING).without_idle(&idle, "0")
        };
        let verdicts: Vec<&VariantVerdict> = self.rows.iter().map(|row| &row.verdict).collect();
        write!(f, "{table}\n{}", of_variants(&verdicts))
    }
}

/// A column of the table as numbers, for a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The column's title.
    pub title: String,
    /// Unit of the values; empty for counts.
    pub unit: &'static str,
    /// One value per variant; NaN where the variant has no such flow.
    pub values: Vec<f64>,
}

/// Returns the columns of the table, except those that are empty in every row.
#[must_use]
pub fn comparison_series(rows: &[(String, &Scenario, &Outcome)]) -> Vec<Series> {
    let Some((_, first, _)) = rows.first() else { return Vec::new() };
    let all = Shown::all(&first.columns).into_iter().map(|column| {
        let measures: Vec<Option<Measure>> =
            rows.iter().map(|(_, scenario, outcome)| column.of(scenario, outcome)).collect();
        let unit = measures.iter().flatten().next().map_or("", Measure::unit);
        let values = measures.iter().map(|measure| measure.as_ref().map_or(f64::NAN, Measure::shown_number)).collect();
        Series { title: column.title().into_owned(), unit, values }
    });
    all.filter(|series| series.values.iter().any(|&value| value > 0.0)).collect()
}

/// Returns an object per variant, each with every measure.
#[must_use]
pub fn comparison_json(rows: &[(String, &Scenario, &Outcome)]) -> Vec<Value> {
    let object = |(name, scenario, outcome): &Row<'_>| {
        let mut object = Map::new();
        object.insert("variant".to_owned(), json!(name));
        object.insert("seed".to_owned(), json!(scenario.seed));
        object.insert("ending".to_owned(), json!(ending(outcome.ending)));
        object.insert("not_promised".to_owned(), json!(outcome.waivers));
        for column in COLUMNS {
            object.insert(column.name.to_owned(), json!((column.of)(scenario, outcome).number()));
        }
        Value::Object(object)
    };
    rows.iter().map(object).collect()
}

/// Formats how a run ended, and whether lossless service was guaranteed in it.
fn promised_ending(outcome: &Outcome) -> String {
    let ending = show::ending(outcome.ending);
    if outcome.waivers.is_empty() { ending } else { format!("{ending}, not promised") }
}

/// Returns the first line of the CSV of variants.
#[must_use]
pub fn comparison_csv_header() -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    format!("variant,seed,{},not_promised_reasons,ending\n", names.join(","))
}

/// Returns one line per variant, each with every measure.
#[must_use]
pub fn comparison_csv_lines(rows: &[(String, &Scenario, &Outcome)]) -> Vec<String> {
    let line = |(name, scenario, outcome): &Row<'_>| {
        let numbers = COLUMNS.iter().map(|column| (column.of)(scenario, outcome).number().to_string());
        let line: Vec<String> = [quoted(name), scenario.seed.to_string()].into_iter().chain(numbers).collect();
        format!("{},{},{}\n", line.join(","), outcome.waivers.len(), ending(outcome.ending))
    };
    rows.iter().map(line).collect()
}
