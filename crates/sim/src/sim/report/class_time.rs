//! Columns with the completion times of the messages of one traffic class, e.g. `class 4 mean`.

use super::columns::Measure;
use super::group::sum;
use crate::sets::CLASSES;
use crate::sim::outcome::{Outcome, Spread};
use crate::sim::spec::Scenario;

/// A function that reads a time, in picoseconds.
type Statistic = fn(&Spread) -> u64;

/// Statistics of completion times, by the last word of the title.
const STATISTICS: [(&str, Statistic); 4] = [
    ("mean", Spread::mean_ps),
    ("p50", |spread| spread.p50_ps),
    ("p99", |spread| spread.p99_ps),
    ("max", |spread| spread.most_ps),
];

/// A statistic of the messages of the flows of one class.
#[derive(Debug, Clone, Copy)]
pub struct ClassTime {
    class: u8,
    name: &'static str,
    of: Statistic,
}

impl ClassTime {
    /// Reads the title of a column; `None` if it is another one.
    #[must_use]
    pub fn read(title: &str) -> Option<Self> {
        let (class, statistic) = title.strip_prefix("class ")?.split_once(' ')?;
        let class = class.parse().ok().filter(|&class: &u8| usize::from(class) < CLASSES)?;
        let &(name, of) = STATISTICS.iter().find(|(name, _)| *name == statistic)?;
        Some(Self { class, name, of })
    }

    /// Returns the title of the column.
    #[must_use]
    pub fn title(&self) -> String {
        format!("class {} {}", self.class, self.name)
    }

    /// Measures the column.
    #[must_use]
    pub fn of(&self, scenario: &Scenario, outcome: &Outcome) -> Measure {
        let flows = scenario.flows.iter().zip(&outcome.flows).filter(|(flow, _)| flow.class == self.class);
        Measure::Time((self.of)(&sum(flows.map(|(_, flow)| flow)).completion))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn title_names_a_class_and_a_statistic() {
        for title in ["class 0 mean", "class 7 p50", "class 3 p99", "class 3 max"] {
            assert_eq!(ClassTime::read(title).map(|time| time.title()).as_deref(), Some(title));
        }
        for title in ["class 8 mean", "class 3", "class 3 p90", "3 mean", "class x max"] {
            assert!(ClassTime::read(title).is_none(), "{title}");
        }
    }

    #[test]
    fn class_column_counts_only_messages_of_its_class() {
        let (scenario, mut outcome) = fixture::run();
        outcome.flows[2].completion = outcome.flows[0].completion.clone();
        outcome.flows[2].completion.most_ps = 1_000_000_000_000;
        let shown = |title| ClassTime::read(title).unwrap().of(&scenario, &outcome).text();
        assert_eq!(
            ["class 3 mean", "class 3 max", "class 0 max", "class 5 max"].map(shown),
            ["300.0us", "900.0us", "1.00s", "-"]
        );
    }
}
