//! Results of workloads: their flows, slowdowns by size, pauses by tier and lengths of queues.

use std::fmt::Write as _;

use super::show::{NOTHING, class, quantiles, share};
use super::slowdown::{self, Bucket, COLUMNS, buckets};
use super::tiers;
use crate::sim::outcome::{Completions, Outcome, WorkloadOutcome};
use crate::sim::queues::QueueLengths;
use crate::sim::spec::Scenario;
use crate::sim::workload::WorkloadNode;
use crate::text::format::{gigabits, grouped, wire_rate};
use crate::text::table::Table;
use crate::units::Bytes;

/// Returns the tables of workloads; empty without workloads.
#[must_use]
pub fn tables(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = String::new();
    if scenario.workloads.is_empty() {
        return text;
    }
    let tables = [flows(scenario, outcome), slowdowns(scenario, outcome), tiers::table(scenario, outcome)];
    for table in tables.into_iter().chain(outcome.queues.as_ref().map(queues)) {
        if !table.is_empty() {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n{table}");
        }
    }
    let _ =
        writeln!(text, "(at most {} flows of workloads were in progress at once)", grouped(outcome.most_flows_at_once));
    let Completions { seen, stride, .. } = outcome.completions;
    if stride > 1 {
        let _ = writeln!(text, "(slowdowns are of every {stride}th of {} flows)", grouped(seen));
    }
    text
}

/// Returns the received bits per second on the wire of a workload, from its start to its stop or last arrival.
pub fn rate(scenario: &Scenario, outcome: &Outcome, number: usize) -> f64 {
    let (spec, done) = (&scenario.workloads[number], &outcome.workloads[number].sum);
    let stop = spec.stop.map_or(outcome.sending_ps, |stop| (stop.0 * 1000).min(outcome.sending_ps));
    let time = stop.max(done.last_arrival_ps).saturating_sub(spec.start.0 * 1000);
    wire_rate(done.received_frames, done.received_bytes, time as f64 / 1e12)
}

/// The class of a workload at its first sender, and whether it is lossless.
pub fn class_of(workload: &WorkloadNode) -> (u8, bool) {
    (workload.senders.first().map_or(0, |flow| flow.class), workload.is_lossless())
}

/// Returns the median, the 95th and the 99th percentile of the slowdown of all completed flows; zero without any.
pub fn slowdown(outcome: &Outcome) -> [f64; 3] {
    let flows = outcome.completions.list.iter();
    // One size for all: one bucket.
    let bucket = buckets(flows.map(|flow| (0, slowdown::slowdown(flow.time_ps, flow.ideal_ps))));
    bucket.first().map_or([0.0; 3], |bucket| bucket.quantiles)
}

fn flows(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "workload | class | >flows | >complete | >failed | >left out | >rounds | >frames | >lost | >repeated | \
         >timeouts | >Gb/s | >marked | >CNPs | >FCT p50 | >p99 | >max",
    );
    for (number, (workload, done)) in scenario.workloads.iter().zip(&outcome.workloads).enumerate() {
        let (WorkloadOutcome { sum, .. }, (own, lossless)) = (done, class_of(workload));
        let head = [workload.name.clone(), class(usize::from(own), lossless)];
        let counts = [done.started, done.completed, sum.failed_flows, done.left_out].map(grouped);
        let rounds = done.rounds.map_or(NOTHING.to_owned(), grouped);
        let frames = [sum.sent_frames, sum.lost_frames(), sum.repeated_frames, sum.timeouts].map(grouped);
        let marks = [share(sum.marked_frames, sum.received_frames), grouped(sum.cnps)];
        let cells = head.into_iter().chain(counts).chain([rounds]).chain(frames);
        let cells = cells.chain([gigabits(rate(scenario, outcome, number))]).chain(marks);
        table.row(cells.chain(quantiles(&done.time)));
    }
    table
        .without_idle(&["failed", "left out", "repeated", "timeouts", "CNPs"], "0")
        .without_idle(&["rounds", "marked"], NOTHING)
}

/// Returns the slowdowns of workload `number`, by size.
#[must_use]
pub fn slowdowns_of(outcome: &Outcome, number: usize) -> Vec<Bucket> {
    let own = outcome.completions.list.iter().filter(|flow| usize::from(flow.workload) == number);
    buckets(own.map(|flow| (flow.bytes, slowdown::slowdown(flow.time_ps, flow.ideal_ps))))
}

fn slowdowns(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new(&format!("workload | {COLUMNS}"));
    for (number, workload) in scenario.workloads.iter().enumerate() {
        for bucket in slowdowns_of(outcome, number) {
            table.row([workload.name.clone()].into_iter().chain(bucket.cells()));
        }
    }
    table
}

/// Shares of the samples that the table of queues shows, in thousandths.
pub const SHARES: [(&str, u64); 5] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1000)];

/// Returns the lengths of queues as a table of one row.
#[must_use]
pub fn queues(lengths: &QueueLengths) -> Table {
    let titles = SHARES.map(|(title, _)| title).join(" | >");
    let mut table = Table::new(&format!("samples of queues | >empty | >{titles}"));
    let empty = lengths.cumulative().next().filter(|(bytes, _)| *bytes == 0).map_or(0, |(_, count)| count);
    let size = |(_, per_mille)| match lengths.quantile(per_mille) {
        0 => NOTHING.to_owned(),
        bytes => Bytes(bytes).to_string(),
    };
    let head = [grouped(lengths.samples), share(empty, lengths.samples)];
    table.row(head.into_iter().chain(SHARES.map(size)));
    table
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::sim::outcome::Completion;
    use crate::sim::workload::sizes::SizeCdf;
    use crate::sim::workload::{Pattern, Poisson};
    use crate::units::Nanos;

    /// The made-up run with a workload: ten flows of ten sizes, one of them with a slowdown of three.
    fn run() -> (Scenario, Outcome) {
        let (mut scenario, mut outcome) = fixture::run();
        let spec = Poisson { sizes: SizeCdf::fixed(Bytes(1)), senders: vec![(0, 1)], receivers: vec![1] };
        scenario.workloads.push(WorkloadNode {
            name: "web".to_owned(),
            pattern: Pattern::Poisson(spec),
            start: Nanos(0),
            stop: None,
            senders: vec![scenario.flows[0].clone()],
        });
        let mut done = WorkloadOutcome { started: 11, completed: 10, ..WorkloadOutcome::default() };
        done.sum.add(&outcome.flows[0]);
        outcome.workloads.push(done);
        for flow in 1..=10 {
            let time_ps = if flow == 10 { 3_000 } else { 900 };
            let flow = Completion { workload: 0, from: 0, to: 1, bytes: flow, start_ps: 0, time_ps, ideal_ps: 1_000 };
            outcome.completions.add(flow);
        }
        (outcome.most_flows_at_once, outcome.queues) = (4, Some(QueueLengths::default()));
        outcome.queues.as_mut().unwrap().add(0, 3);
        (scenario, outcome)
    }

    #[test]
    fn tables_show_flows_slowdowns_tiers_and_queues() {
        let (scenario, outcome) = run();
        insta::assert_snapshot!(tables(&scenario, &outcome), @r"

        workload  class  flows  complete  frames  lost  Gb/s  marked  CNPs  FCT p50  p99  max
        web       3*        11        10   1,000     0  3.90    5.0%    12        -    -    -

        workload  flows up to  flows  slowdown p50   p95   p99
        web               1 B      1          1.00  1.00  1.00
        web               2 B      1          1.00  1.00  1.00
        web               3 B      1          1.00  1.00  1.00
        web               4 B      1          1.00  1.00  1.00
        web               5 B      1          1.00  1.00  1.00
        web               6 B      1          1.00  1.00  1.00
        web               7 B      1          1.00  1.00  1.00
        web               8 B      1          1.00  1.00  1.00
        web               9 B      1          1.00  1.00  1.00
        web              10 B      1          3.00  3.00  3.00

        tier    transmitters  held  PFC time  of the time  longest
        hosts              3     2   600.0us         9.3%  300.0us
        1: ToR             3     1    40.0us         0.6%   40.0us

        samples of queues   empty  p50  p90  p99  p99.9  max
        3                  100.0%    -    -    -      -    -
        (at most 4 flows of workloads were in progress at once)
        ");
        assert_eq!(tables(&fixture::run().0, &outcome), "");
    }

    #[test]
    fn slowdown_of_all_flows_has_the_percentiles_of_hpccs_script() {
        let (_, mut outcome) = run();
        assert_eq!(slowdown(&outcome), [1.0, 3.0, 3.0]);
        outcome.completions.list.clear();
        assert_eq!(slowdown(&outcome), [0.0; 3]);
    }
}
