//! The second half of a run, in which rates and queues have settled: measures from its samples.

use super::columns::{Measure, fairness};
use crate::sim::outcome::{FlowOutcome, Outcome};
use crate::sim::spec::{FlowNode, Load, Scenario};
use crate::text::format::wire_rate;

/// Positions of the samples of the second half of the time for which hosts sent.
fn samples(outcome: &Outcome) -> std::ops::Range<usize> {
    let samples = &outcome.samples;
    let position = |ps: u64| ((ps / samples.every_ps.max(1)) as usize + 1).min(samples.count);
    position(outcome.sending_ps / 2)..position(outcome.sending_ps)
}

/// Returns the bits per second on the wire that flow `index` received. Its frames count with their mean length.
fn rate(outcome: &Outcome, index: usize) -> f64 {
    let (range, Some(flow)) = (samples(outcome), outcome.flows.get(index)) else { return 0.0 };
    let FlowOutcome { received_frames, received_bytes, .. } = *flow;
    let seconds = (range.len() as u64 * outcome.samples.every_ps) as f64 / 1e12;
    let series = outcome.samples.flow_bytes.get(index).and_then(|series| series.get(range));
    let bytes: u64 = series.unwrap_or_default().iter().map(|&bytes| u64::from(bytes)).sum();
    let frames = u128::from(bytes) * u128::from(received_frames) / u128::from(received_bytes.max(1));
    wire_rate(frames as u64, bytes, seconds)
}

/// Whether `flow` has data to send until the end.
fn lasts(flow: &FlowNode, scenario: &Scenario) -> bool {
    let has_messages = matches!(flow.load, Load::Messages { .. });
    flow.start.0 <= scenario.duration.0 / 2 && flow.stop.is_none_or(|stop| stop >= scenario.duration) && !has_messages
}

/// Returns the rate of each flow that lasts, in bits per second.
fn lasting_rates(scenario: &Scenario, outcome: &Outcome) -> Vec<f64> {
    let lasting = scenario.flows.iter().enumerate().filter(|(_, flow)| lasts(flow, scenario));
    lasting.map(|(index, _)| rate(outcome, index)).collect()
}

/// Returns the rate of all flows.
pub fn total(_: &Scenario, outcome: &Outcome) -> Measure {
    Measure::Rate((0..outcome.flows.len()).map(|index| rate(outcome, index)).sum())
}

/// Returns the lowest rate of the flows that last.
pub fn slowest(scenario: &Scenario, outcome: &Outcome) -> Measure {
    Measure::Rate(lasting_rates(scenario, outcome).into_iter().reduce(f64::min).unwrap_or(0.0))
}

/// Returns the highest rate of the flows that last.
pub fn fastest(scenario: &Scenario, outcome: &Outcome) -> Measure {
    Measure::Rate(lasting_rates(scenario, outcome).into_iter().fold(0.0, f64::max))
}

/// Returns Jain's index of the flows that last.
pub fn fair(scenario: &Scenario, outcome: &Outcome) -> Measure {
    Measure::Part(fairness(&lasting_rates(scenario, outcome)))
}

/// Returns the depth that at most `percent` of the samples of a queue exceed, in the queue where it is greatest.
fn depth(outcome: &Outcome, percent: usize) -> Measure {
    let range = samples(outcome);
    let queues = outcome.samples.ports.iter().flat_map(|port| &port.classes);
    let depths = queues.filter_map(|class| {
        let mut depths = class.queue_bytes.get(range.clone())?.to_vec();
        depths.sort_unstable();
        depths.get(depths.len().saturating_sub(1) * (100 - percent) / 100).copied()
    });
    Measure::Bytes(depths.max().unwrap_or(0).into())
}

/// Returns the median depth of the deepest queue.
pub fn median_depth(_: &Scenario, outcome: &Outcome) -> Measure {
    depth(outcome, 50)
}

/// Returns the 99th percentile of the depth of the deepest queue.
pub fn high_depth(_: &Scenario, outcome: &Outcome) -> Measure {
    depth(outcome, 1)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::units::{Bytes, Nanos};

    /// The fixture samples each microsecond of two milliseconds. Its series have a period of 250 or 400 samples.
    #[test]
    fn late_rate_columns_count_the_second_half_of_the_run() {
        let (mut scenario, mut outcome) = fixture::run();
        scenario.flows[0].load = Load::Steady;
        for (flow, bytes) in [(0, 500), (1, 1000), (2, 0)] {
            let series = &mut outcome.samples.flow_bytes[flow];
            series.iter_mut().enumerate().for_each(|(at, sample)| *sample = if at > 1000 { bytes } else { 7 });
        }
        // 1000 samples of 500 bytes are 500 frames of 1000 bytes, with 24 bytes each around them on the wire.
        assert_eq!(rate(&outcome, 0), 1000.0 * 500.0 * 1.024 * 8.0 / 1e-3);
        assert_eq!(total(&scenario, &outcome).number(), 12_288_000_000);
        assert_eq!((slowest(&scenario, &outcome).number(), fastest(&scenario, &outcome).number()), (0, 8_192_000_000));
        assert_eq!(fair(&scenario, &outcome).number(), 600_000);
    }

    #[test]
    fn flow_with_messages_or_that_ends_does_not_last() {
        let (mut scenario, _) = fixture::run();
        let lasting = |scenario: &Scenario| scenario.flows.iter().map(|flow| lasts(flow, scenario)).collect::<Vec<_>>();
        assert_eq!(lasting(&scenario), [false, true, true], "the first has messages");
        (scenario.flows[1].start, scenario.flows[2].stop) = (Nanos(1_100_000), Some(Nanos(1_900_000)));
        assert_eq!(lasting(&scenario), [false; 3]);
    }

    #[test]
    fn late_depth_columns_have_the_deepest_queue_of_the_second_half() {
        let (scenario, mut outcome) = fixture::run();
        let queue = &mut outcome.samples.ports[1].classes[0].queue_bytes;
        queue.iter_mut().enumerate().for_each(|(at, bytes)| *bytes = (at as u32).saturating_sub(1000));
        assert_eq!(median_depth(&scenario, &outcome).text(), Bytes(500).to_string());
        assert_eq!(high_depth(&scenario, &outcome).number(), 990);
        outcome.samples.ports.clear();
        assert_eq!(median_depth(&scenario, &outcome).number(), 0);
    }
}
