//! Runs as comma-separated values: one line per flow, or one line per sample.

use std::fmt::Write as _;

use super::group::groups;
use crate::sim::outcome::{Outcome, Spread};
use crate::sim::spec::Scenario;

const HEADER: &str = "flow,from,to,class,lossless,sent_frames,sent_bytes,received_frames,received_bytes,lost_frames,\
                      received_bits_per_second,marked_frames,cnps,late_frames,duplicate_frames,latency_mean_ps,\
                      latency_p50_ps,latency_p99_ps,latency_max_ps,messages,completions,completion_mean_ps,\
                      completion_p50_ps,completion_p99_ps,completion_max_ps,rate_at_end_bits_per_second,repeated_frames,\
                      discarded_frames,naks,timeouts,failed,acknowledged_mean_ps,acknowledged_p50_ps,\
                      acknowledged_p99_ps,acknowledged_max_ps\n";

/// Returns a text as a CSV value, quoted (RFC 4180) if necessary.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns a header and one line per flow.
#[must_use]
pub fn csv(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = HEADER.to_owned();
    for (index, group) in groups(scenario, outcome, usize::MAX).iter().enumerate() {
        let (spec, flow) = (&scenario.flows[index], &group.sum);
        let host = |index: usize| scenario.hosts.get(index).map_or_else(String::new, |host| quoted(&host.name));
        let names = [quoted(&spec.name), host(spec.from), host(spec.to)];
        let head = names.into_iter().chain([spec.class.to_string(), spec.lossless.to_string()]);
        let frames = [flow.sent_frames, flow.sent_bytes, flow.received_frames, flow.received_bytes, flow.lost_frames()];
        let marks = [whole(group.rate), flow.marked_frames, flow.cnps, flow.late_frames, flow.duplicate_frames];
        let messages = [flow.messages, flow.completion.count];
        let numbers = frames.into_iter().chain(marks).chain(times(&flow.latency)).chain(messages);
        let numbers = numbers.chain(times(&flow.completion)).chain([flow.rate_at_end]);
        let repeats = [flow.repeated_frames, flow.discarded_frames, flow.naks, flow.timeouts, flow.failed_flows];
        let numbers = numbers.chain(repeats).chain(times(&flow.acknowledged));
        let line: Vec<String> = head.chain(numbers.map(|number| number.to_string())).collect();
        text += &line.join(",");
        text.push('\n');
    }
    text
}

/// Rounds a rate to whole bits per second.
pub(super) fn whole(rate: f64) -> u64 {
    (rate + 0.5) as u64
}

fn times(spread: &Spread) -> [u64; 4] {
    [spread.mean_ps(), spread.p50_ps, spread.p99_ps, spread.most_ps]
}

/// Returns a header and one line per sample of each sampled class and port, by port, class and time.
#[must_use]
pub fn samples_csv(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text =
        "time_ns,switch,port,class,queue_bytes,shared_cells,headroom_cells,threshold_cells,xoff,marked\n".to_owned();
    let samples = &outcome.samples;
    for series in &samples.ports {
        let Some(switch) = scenario.switches.get(series.port.switch) else { continue };
        let port = switch.config.switch.ports.get(series.port.port).map_or("", |port| &port.name);
        let (switch, port) = (quoted(&switch.name), quoted(port));
        for class in &series.classes {
            for at in 0..samples.count {
                let time = at as u64 * samples.every_ps / 1000;
                let of = |values: &[u32]| values.get(at).copied().unwrap_or(0);
                let [queue, shared] = [&class.queue_bytes, &class.shared_cells].map(|values| of(values));
                let [headroom, threshold] = [&class.headroom_cells, &class.threshold_cells].map(|values| of(values));
                let (xoff, marked) = (class.xoff.get(at).copied().unwrap_or(false), of(&class.marked));
                let number = class.class;
                // Writing to a `String` cannot fail.
                let _ = writeln!(
                    text,
                    "{time},{switch},{port},{number},{queue},{shared},{headroom},{threshold},{xoff},{marked}"
                );
            }
        }
    }
    text
}
