//! Slowdown of flows: completion time over the time on an empty path, by size, as `fct_analysis.py` computes it.

use super::Prepared;
use crate::sim::outcome::Outcome;
use crate::stats::format::grouped;
use crate::stats::table::{Align, Table};

/// Most rows: each has an equal share of the flows, by size.
const MOST_ROWS: usize = 10;

/// Slowdowns of flows of similar size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Size of its largest flow.
    pub most_bytes: u64,
    /// Number of its flows.
    pub flows: usize,
    /// Median, 95th and 99th percentile.
    pub quantiles: [f64; 3],
}

impl Prepared {
    /// Returns the slowdowns of the completed flows, the smallest first. A slowdown below one counts as one.
    #[must_use]
    pub fn slowdowns(&self, outcome: &Outcome) -> Vec<Bucket> {
        let mut flows: Vec<(u64, f64)> = self
            .completions(outcome)
            .map(|done| (done.bytes, (done.fct_ns as f64 / done.alone_ns.max(1) as f64).max(1.0)))
            .collect();
        flows.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let rows = MOST_ROWS.min(flows.len());
        let part = |row: usize| &flows[row * flows.len() / rows..(row + 1) * flows.len() / rows];
        (0..rows).map(|row| bucket(part(row))).collect()
    }

    /// Returns the slowdowns as a table.
    #[must_use]
    pub fn slowdown_table(&self, outcome: &Outcome) -> Table {
        let mut table = Table::new(&[
            ("flows up to", Align::Right),
            ("flows", Align::Right),
            ("slowdown p50", Align::Right),
            ("p95", Align::Right),
            ("p99", Align::Right),
        ]);
        for Bucket { most_bytes, flows, quantiles } in self.slowdowns(outcome) {
            let size = format!("{} B", grouped(most_bytes));
            let quantiles = quantiles.map(|quantile| format!("{quantile:.2}"));
            table.row([size, grouped(flows as u64)].into_iter().chain(quantiles));
        }
        table
    }
}

/// The bucket of `flows`, which are ordered by size.
fn bucket(flows: &[(u64, f64)]) -> Bucket {
    let mut slowdowns: Vec<f64> = flows.iter().map(|(_, slowdown)| *slowdown).collect();
    slowdowns.sort_by(f64::total_cmp);
    let quantile = |share: f64| slowdowns[((slowdowns.len() as f64 * share) as usize).min(slowdowns.len() - 1)];
    Bucket {
        most_bytes: flows.last().map_or(0, |(bytes, _)| *bytes),
        flows: flows.len(),
        quantiles: [0.5, 0.95, 0.99].map(quantile),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_script() {
        let flows: Vec<(u64, f64)> = (1..=100).map(|number| (number, 101.0 - number as f64)).collect();
        // Index int(n p) of the ordered values, as get_pctl has it.
        assert_eq!(bucket(&flows), Bucket { most_bytes: 100, flows: 100, quantiles: [51.0, 96.0, 100.0] });
        assert_eq!(bucket(&flows[..1]).quantiles, [100.0; 3]);
    }
}
