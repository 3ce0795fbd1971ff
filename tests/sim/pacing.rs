//! The rate of a port whose lcore polls rarely.

use holdfast::sim::scenario::{self, Options};

/// Bits per second that two hosts of 10G bring to a third, with a switch that polls at these times.
fn rate(poll: &str) -> u64 {
    let text = format!(
        "
duration: 5ms
drain: 20ms
switches:
  - name: s
    poll: {poll}
    config: {{preset: roce, ports: [{{name: p*, count: 3, speed: 10G, cable: 5m}}]}}
hosts: [{{name: h*, count: 3, at: s.p*}}]
flows: [{{from: [h1, h2], to: h3, dscp: 26, frame: 1500}}]
"
    );
    let mut scenarios = scenario::parse("pacing.yaml", &text, None, &Options::default()).expect(&text);
    let outcome = holdfast::sim::run(&scenarios.remove(0).1, &mut |_| ());
    assert_eq!(outcome.violation, None, "{text}");
    // The port still holds little after 5 ms.
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.received_bytes).sum();
    bytes * 8 * 200
}

/// A port sends at its rate if its slack covers the gaps. PFC holds the hosts to the bytes that the port sends.
#[test]
fn rare_polls_within_the_slack_keep_the_rate() {
    let often = rate("{every: 100ns}");
    for poll in ["{every: 1us}", "{every: 5us}", "{every: 9us}", "{every: 4us, jitter: 5us}"] {
        let rare = rate(poll);
        assert!(rare * 100 >= often * 97, "{poll}: {rare} of {often} b/s");
    }
    let rarer = rate("{every: 20us}");
    assert!(rarer * 100 < often * 75, "10 us of data leave each 20 us: {rarer} of {often} b/s");
}
