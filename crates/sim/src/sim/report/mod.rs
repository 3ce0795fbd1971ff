//! Reports of a run: tables for people, JSON and CSV for machines. All are pure functions of the scenario and the
//! outcome.

mod class_time;
mod columns;
mod compare;
mod csv;
pub(in crate::sim) mod group;
mod json;
mod late;
mod show;
pub mod slowdown;
mod starved;
mod table;
pub mod tiers;
mod verdict;
pub mod workloads;
mod workloads_json;

pub use columns::needs_samples;
pub(in crate::sim) use columns::{column_titles, is_column};
pub use compare::{
    Comparison, Series, comparison_csv_header, comparison_csv_lines, comparison_json, comparison_series,
};
pub use csv::{csv, samples_csv};
pub use json::{Fields, SECTIONS, json, measures};
pub use table::table;
pub use verdict::{FlowVerdict, verdict};
pub use workloads_json::files as workload_files;

#[cfg(test)]
pub(in crate::sim) mod fixture;
#[cfg(test)]
mod tests;
