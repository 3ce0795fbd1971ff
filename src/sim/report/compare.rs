//! Comparison of variants of a scenario: a row per variant, a column per measure.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::columns::{COLUMNS, Measure, Shown, column_titles};
use super::csv::quoted;
use super::json::ending;
use super::show;
use super::verdict::of_variants;
use crate::sim::outcome::Outcome;
use crate::sim::spec::Scenario;
use crate::stats::table::{Align, Table};

/// Name of a variant, with its scenario and outcome.
type Row<'a> = (String, &'a Scenario, &'a Outcome);

/// Returns a table with one row per variant. Default columns that are empty in all rows are left out; columns that the
/// scenario selects stay. Below the table are the losses of each variant and their causes.
#[must_use]
pub fn comparison(rows: &[(String, &Scenario, &Outcome)]) -> String {
    let Some((_, first, _)) = rows.first() else { return String::new() };
    let shown = Shown::all(first);
    let titles = shown.iter().map(|column| (column.title(), Align::Right));
    let [variant, ending] = ["variant", "ending"].map(|title| (Cow::Borrowed(title), Align::Left));
    let mut table = Table::of([variant].into_iter().chain(titles).chain([ending]));
    for (name, scenario, outcome) in rows {
        let measures = shown.iter().map(|column| column.of(scenario, outcome));
        let cells = measures.map(|measure| measure.map_or(show::NOTHING.to_owned(), |measure| measure.text()));
        table.row([name.clone()].into_iter().chain(cells).chain([promised_ending(outcome)]));
    }
    let table = if first.columns.is_empty() {
        let idle: Vec<&str> = column_titles().collect();
        table.without_idle(&idle, show::NOTHING).without_idle(&idle, "0")
    } else {
        table
    };
    format!("{table}\n{}", of_variants(rows))
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
    let all = Shown::all(first).into_iter().map(|column| {
        let measures: Vec<Option<Measure>> =
            rows.iter().map(|(_, scenario, outcome)| column.of(scenario, outcome)).collect();
        let unit = measures.iter().flatten().next().map_or("", Measure::unit);
        let values = measures.iter().map(|measure| measure.as_ref().map_or(f64::NAN, Measure::shown_number)).collect();
        Series { title: column.title().into_owned(), unit, values }
    });
    all.filter(|series| series.values.iter().any(|&value| value > 0.0)).collect()
}

/// Returns a list with one object per variant, each with every measure.
#[must_use]
pub fn comparison_json(rows: &[(String, &Scenario, &Outcome)]) -> Value {
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

/// Returns a header and one line per variant, each with every measure.
#[must_use]
pub fn comparison_csv(rows: &[(String, &Scenario, &Outcome)]) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    let mut text = format!("variant,seed,{},not_promised_reasons,ending\n", names.join(","));
    for (name, scenario, outcome) in rows {
        let numbers = COLUMNS.iter().map(|column| (column.of)(scenario, outcome).number().to_string());
        let line: Vec<String> = [quoted(name), scenario.seed.to_string()].into_iter().chain(numbers).collect();
        text += &format!("{},{},{}\n", line.join(","), outcome.waivers.len(), ending(outcome.ending));
    }
    text
}
