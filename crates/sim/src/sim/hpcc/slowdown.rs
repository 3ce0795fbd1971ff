//! Slowdown of the flows of the inputs, by size.

use super::Prepared;
use crate::sim::outcome::Outcome;
use crate::sim::report::slowdown::{Bucket, buckets, slowdown, table};
use crate::text::table::Table;

impl Prepared {
    /// Returns the slowdowns of the completed flows, the smallest first.
    #[must_use]
    pub fn slowdowns(&self, outcome: &Outcome) -> Vec<Bucket> {
        buckets(self.completions(outcome).map(|done| (done.bytes, slowdown(done.fct_ns, done.alone_ns))))
    }

    /// Returns the slowdowns as a table.
    #[must_use]
    pub fn slowdown_table(&self, outcome: &Outcome) -> Table {
        table(&self.slowdowns(outcome))
    }
}
