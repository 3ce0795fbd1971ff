//! Slowdown of flows by size: completion time over the time on an empty path, as `fct_analysis.py` of HPCC computes it.

use crate::text::format::grouped;
use crate::text::table::Table;

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

impl Bucket {
    /// The cells of its row: size, number of flows, quantiles.
    pub fn cells(&self) -> impl Iterator<Item = String> {
        let quantiles = self.quantiles.map(|quantile| format!("{quantile:.2}"));
        [format!("{} B", grouped(self.most_bytes)), grouped(self.flows as u64)].into_iter().chain(quantiles)
    }
}

/// The columns of [`Bucket::cells`].
pub const COLUMNS: &str = ">flows up to | >flows | >slowdown p50 | >p95 | >p99";

/// Returns the slowdown of a flow with this completion time, on an empty path `ideal`. A slowdown below one counts as
/// one.
#[must_use]
pub fn slowdown(time: u64, ideal: u64) -> f64 {
    (time as f64 / ideal.max(1) as f64).max(1.0)
}

/// Returns the slowdowns of `flows`, given as size and slowdown, the smallest flows first. Flows of one size are one
/// bucket.
#[must_use]
pub fn buckets(flows: impl Iterator<Item = (u64, f64)>) -> Vec<Bucket> {
    let mut flows: Vec<(u64, f64)> = flows.collect();
    flows.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let is_uniform = flows.first().map(|flow| flow.0) == flows.last().map(|flow| flow.0);
    let rows = if is_uniform { 1 } else { MOST_ROWS }.min(flows.len());
    let part = |row: usize| &flows[row * flows.len() / rows..(row + 1) * flows.len() / rows];
    (0..rows).map(|row| bucket(part(row))).collect()
}

/// Returns the buckets as a table.
#[must_use]
pub fn table(buckets: &[Bucket]) -> Table {
    let mut table = Table::new(COLUMNS);
    buckets.iter().for_each(|bucket| table.row(bucket.cells()));
    table
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
    fn slowdown_quantiles_match_the_script_of_hpcc() {
        let flows: Vec<(u64, f64)> = (1..=100).map(|number| (number, 101.0 - number as f64)).collect();
        // Index int(n p) of the ordered values, as get_pctl has it.
        assert_eq!(bucket(&flows), Bucket { most_bytes: 100, flows: 100, quantiles: [51.0, 96.0, 100.0] });
        assert_eq!(bucket(&flows[..1]).quantiles, [100.0; 3]);
    }

    #[test]
    fn buckets_have_equally_many_flows_unless_all_have_one_size() {
        let counts =
            |flows: &[(u64, f64)]| buckets(flows.iter().copied()).iter().map(|row| row.flows).collect::<Vec<_>>();
        let flows: Vec<(u64, f64)> = (0..25).rev().map(|bytes| (bytes, 1.0)).collect();
        assert_eq!(counts(&flows), [2, 3, 2, 3, 2, 3, 2, 3, 2, 3]);
        assert_eq!(buckets(flows.into_iter()).iter().map(|row| row.most_bytes).max(), Some(24));
        assert_eq!(counts(&[(7, 1.0); 25]), [25]);
        assert!(counts(&[]).is_empty());
    }
}
