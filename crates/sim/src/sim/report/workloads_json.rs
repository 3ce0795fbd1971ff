//! Results of workloads as JSON and CSV.

use std::fmt::Write as _;

use serde_json::Value;

use super::csv::{quoted, whole};
use super::json::{object, spread};
use super::slowdown::{Bucket, slowdown};
use super::tiers::{Tier, tiers};
use super::workloads::{class_of, rate, slowdowns_of};
use crate::sim::outcome::{Outcome, WorkloadOutcome};
use crate::sim::queues::QueueLengths;
use crate::sim::spec::Scenario;
use crate::sim::workload::WorkloadNode;

/// Returns a slowdown in thousandths.
fn thousandths(slowdown: f64) -> u64 {
    (slowdown * 1000.0 + 0.5) as u64
}

/// Returns the workloads.
pub(super) fn workloads(scenario: &Scenario, outcome: &Outcome) -> Vec<Value> {
    (0..outcome.workloads.len()).map(|number| workload(scenario, outcome, number)).collect()
}

fn workload(scenario: &Scenario, outcome: &Outcome, number: usize) -> Value {
    let (node, done) = (&scenario.workloads[number], &outcome.workloads[number]);
    let slowdowns = slowdowns_of(outcome, number).iter().map(slowdown_of).collect();
    workload_of(node, done, rate(scenario, outcome, number), slowdowns)
}

object! { WORKLOAD, fn workload_of(node: &WorkloadNode, done: &WorkloadOutcome, rate: f64, slowdowns: Vec<Value>) {
    "name": node.name, "string";
    "class": class_of(node).0, "traffic class";
    "lossless": class_of(node).1, "bool";
    "started_flows": done.started, "";
    "completed_flows": done.completed, "";
    "failed_flows": done.sum.failed_flows, "";
    "left_out_flows": done.left_out, "flows: started, complete, given up, not begun";
    "rounds": done.rounds, "? complete ones of a collective";
    "sent_frames": done.sum.sent_frames, "";
    "sent_bytes": done.sum.sent_bytes, "";
    "received_frames": done.sum.received_frames, "";
    "received_bytes": done.sum.received_bytes, "";
    "lost_frames": done.sum.lost_frames(), "";
    "received_bits_per_second": whole(rate), "";
    "marked_frames": done.sum.marked_frames, "";
    "cnps": done.sum.cnps, "";
    "repeated_frames": done.sum.repeated_frames, "";
    "discarded_frames": done.sum.discarded_frames, "";
    "naks": done.sum.naks, "";
    "timeouts": done.sum.timeouts, "as of flows, of all together";
    "completion": spread(&done.time), "object: as of flows, the FCT";
    "slowdowns": slowdowns, "list";
} }

object! { SLOWDOWN, fn slowdown_of(bucket: &Bucket) {
    "most_bytes": bucket.most_bytes, "";
    "flows": bucket.flows, "the size, and number of flows";
    "p50_thousandths": thousandths(bucket.quantiles[0]), "";
    "p95_thousandths": thousandths(bucket.quantiles[1]), "";
    "p99_thousandths": thousandths(bucket.quantiles[2]), "slowdowns";
} }

/// Returns the pauses by tier.
pub(super) fn pfc_tiers(scenario: &Scenario, outcome: &Outcome) -> Vec<Value> {
    tiers(scenario, outcome).iter().enumerate().map(|(number, of)| tier(number, of)).collect()
}

object! { TIER, fn tier(number: usize, tier: &Tier) {
    "tier": number, "0: hosts";
    "transmitters": tier.transmitters, "";
    "held_transmitters": tier.held, "their number; those that were held";
    "held_ps": tier.held_ps, "";
    "longest_held_ps": tier.longest_ps, "time held, in all and of one";
} }

object! { QUEUES, fn queues(lengths: &QueueLengths) {
    "samples": lengths.samples, "";
    "most_bytes": lengths.most_bytes, "samples of queues, and the longest";
    "cumulative": lengths.cumulative().map(|(bytes, samples)| cumulative(bytes, samples)).collect::<Vec<_>>(), "list";
} }

object! { CUMULATIVE, fn cumulative(bytes: u64, samples: u64) {
    "most_bytes": bytes, "";
    "samples": samples, "a length, and the samples up to it";
} }

/// Returns the tables as CSV files: name and content. They are empty without workloads.
#[must_use]
pub fn files(scenario: &Scenario, outcome: &Outcome) -> Vec<(&'static str, String)> {
    if scenario.workloads.is_empty() {
        return Vec::new();
    }
    let mut files = vec![
        ("flows.csv", flows_csv(scenario, outcome)),
        ("slowdown.csv", slowdown_csv(scenario, outcome)),
        ("pfc.csv", pfc_csv(scenario, outcome)),
    ];
    files.extend(outcome.queues.as_ref().map(|lengths| ("queues.csv", queues_csv(lengths))));
    files
}

/// Returns a header and a line for each completed flow.
fn flows_csv(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = "workload,from,to,bytes,start_ns,fct_ns,ideal_ns,slowdown\n".to_owned();
    let host = |index: u16| scenario.hosts.get(usize::from(index)).map_or("", |host| &host.name);
    for flow in &outcome.completions.list {
        let name = scenario.workloads.get(usize::from(flow.workload)).map_or("", |workload| &workload.name);
        let [name, from, to] = [name, host(flow.from), host(flow.to)].map(quoted);
        let [start, time, ideal] = [flow.start_ps, flow.time_ps, flow.ideal_ps].map(|ps| ps / 1000);
        let slowdown = slowdown(flow.time_ps, flow.ideal_ps);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{name},{from},{to},{},{start},{time},{ideal},{slowdown:.3}", flow.bytes);
    }
    text
}

/// Returns a header and a line for each bucket of sizes of each workload.
fn slowdown_csv(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = "workload,most_bytes,flows,p50,p95,p99\n".to_owned();
    for (number, workload) in scenario.workloads.iter().enumerate() {
        for Bucket { most_bytes, flows, quantiles: [p50, p95, p99] } in slowdowns_of(outcome, number) {
            let name = quoted(&workload.name);
            let _ = writeln!(text, "{name},{most_bytes},{flows},{p50:.3},{p95:.3},{p99:.3}");
        }
    }
    text
}

/// Returns a header and a line for each tier.
fn pfc_csv(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = "tier,transmitters,held_transmitters,held_ns,longest_held_ns,end_ns\n".to_owned();
    for (number, tier) in tiers(scenario, outcome).iter().enumerate() {
        let [held, longest, end] = [tier.held_ps, tier.longest_ps, outcome.end_ps].map(|ps| ps / 1000);
        let _ = writeln!(text, "{number},{},{},{held},{longest},{end}", tier.transmitters, tier.held);
    }
    text
}

/// Returns a header and a line for each bucket of lengths.
fn queues_csv(lengths: &QueueLengths) -> String {
    let mut text = "most_bytes,samples,share\n".to_owned();
    for (bytes, samples) in lengths.cumulative() {
        let share = samples as f64 / lengths.samples.max(1) as f64;
        let _ = writeln!(text, "{bytes},{samples},{share:.6}");
    }
    text
}
