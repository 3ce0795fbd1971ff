//! Flows as rows of tables and lines of plots: one by one, or grouped where there are too many to read.

use crate::sim::outcome::{FlowOutcome, Outcome, Spread};
use crate::sim::spec::Scenario;
use crate::text::format::wire_rate;

/// One flow, or all flows to one receiver in one class.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Group {
    /// Name of the flow, or `> h5 (8 flows)`.
    pub name: String,
    pub class: u8,
    pub lossless: bool,
    /// Indices of the flows.
    pub flows: Vec<usize>,
    /// Results of the flows together: sums, and times as described at [`together`].
    pub sum: FlowOutcome,
    /// Received bits per second on the wire, each flow over its own sending time.
    pub rate: f64,
}

/// Returns all flows: one by one if there are at most `most`, otherwise by receiver and class.
pub(in crate::sim) fn groups(scenario: &Scenario, outcome: &Outcome, most: usize) -> Vec<Group> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    let key = |index: usize| {
        let flow = &scenario.flows[index];
        (flow.to, flow.class, flow.lossless)
    };
    for index in 0..scenario.flows.len().min(outcome.flows.len()) {
        let same = members.iter_mut().find(|group| scenario.flows.len() > most && key(group[0]) == key(index));
        match same {
            Some(group) => group.push(index),
            None => members.push(vec![index]),
        }
    }
    members.into_iter().map(|flows| group(scenario, outcome, flows, most)).collect()
}

fn group(scenario: &Scenario, outcome: &Outcome, flows: Vec<usize>, most: usize) -> Group {
    let first = &scenario.flows[flows[0]];
    let name = if scenario.flows.len() <= most {
        first.name.clone()
    } else {
        let plural = if flows.len() == 1 { "" } else { "s" };
        format!("> {} ({} flow{plural})", scenario.hosts[first.to].name, flows.len())
    };
    let rate = flows.iter().map(|&flow| rate(scenario, outcome, flow)).sum();
    let sum = sum(flows.iter().map(|&flow| &outcome.flows[flow]));
    Group { name, class: first.class, lossless: first.lossless, flows, sum, rate }
}

/// Returns the bits per second on the wire that a flow received. The time is from its start to its stop, or to its last
/// arrival if that is later. So a flow that a switch delayed cannot exceed the rate of the link.
fn rate(scenario: &Scenario, outcome: &Outcome, flow: usize) -> f64 {
    let (spec, done) = (&scenario.flows[flow], &outcome.flows[flow]);
    let stop = spec.stop.map_or(outcome.sending_ps, |stop| (stop.0 * 1000).min(outcome.sending_ps));
    let time = stop.max(done.last_arrival_ps).saturating_sub(spec.start.0 * 1000);
    wire_rate(done.received_frames, done.received_bytes, time as f64 / 1e12)
}

/// Combines several flows into one result.
pub(in crate::sim) fn sum<'a>(flows: impl Iterator<Item = &'a FlowOutcome> + Clone) -> FlowOutcome {
    let mut all = FlowOutcome {
        latency: together(flows.clone().map(|flow| &flow.latency)),
        completion: together(flows.clone().map(|flow| &flow.completion)),
        acknowledged: together(flows.clone().map(|flow| &flow.acknowledged)),
        ..FlowOutcome::default()
    };
    flows.for_each(|flow| all.add(flow));
    all
}

/// Returns the results of all flows and workloads together.
pub(in crate::sim) fn all(outcome: &Outcome) -> FlowOutcome {
    let mut all = sum(outcome.flows.iter());
    outcome.workloads.iter().for_each(|workload| all.add(&workload.sum));
    let times = outcome.workloads.iter().map(|workload| &workload.time);
    all.completion = together(outcome.flows.iter().map(|flow| &flow.completion).chain(times));
    all
}

/// Combines several spreads into one. Exact quantiles cannot be computed from those of the parts. The median is that of
/// the median flow, the 99th percentile that of the worst flow.
pub(in crate::sim) fn together<'a>(spreads: impl Iterator<Item = &'a Spread>) -> Spread {
    let parts: Vec<&Spread> = spreads.filter(|spread| spread.count > 0).collect();
    let mut medians: Vec<u64> = parts.iter().map(|spread| spread.p50_ps).collect();
    medians.sort_unstable();
    Spread {
        count: parts.iter().map(|spread| spread.count).sum(),
        sum_ps: parts.iter().map(|spread| spread.sum_ps).sum(),
        least_ps: parts.iter().map(|spread| spread.least_ps).min().unwrap_or(0),
        p50_ps: medians.get(medians.len().saturating_sub(1) / 2).copied().unwrap_or(0),
        p99_ps: parts.iter().map(|spread| spread.p99_ps).max().unwrap_or(0),
        most_ps: parts.iter().map(|spread| spread.most_ps).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn flows_beyond_the_limit_are_grouped_by_receiver_and_class() {
        let (scenario, outcome) = fixture::run();
        let names = |most| groups(&scenario, &outcome, most).into_iter().map(|group| group.name).collect::<Vec<_>>();
        assert_eq!(names(3), ["h1-h3", "h2-h3", "h2-h3.2"]);
        assert_eq!(names(2), ["> h3 (2 flows)", "> h3 (1 flow)"]);
        let both = &groups(&scenario, &outcome, 2)[0];
        assert_eq!((both.flows.as_slice(), both.sum.sent_frames, both.class), ([0, 1].as_slice(), 2_200, 3));
    }

    #[test]
    fn merged_spread_has_the_worst_p99_and_maximum() {
        let spread = |p50_ps, p99_ps| Spread { count: 1, sum_ps: p50_ps, least_ps: 1, p50_ps, p99_ps, most_ps: p99_ps };
        let all = together([spread(5, 9), spread(1, 30), spread(7, 8), Spread::default()].iter());
        assert_eq!((all.count, all.p50_ps, all.p99_ps, all.most_ps), (3, 5, 30, 30));
        assert_eq!(together([].iter()), Spread::default());
    }
}
