//! Reliable flows and congestion control in simulated networks.

use holdfast::sim::outcome::{Ending, FlowOutcome, Outcome};
use holdfast::sim::scenario::{self, Options};

/// Runs a scenario of hosts h1, h2, ... at a switch `s` with ports of `speed`. `keys` are those of class 3.
fn run(hosts: usize, speed: &str, keys: &str, settings: &str) -> Outcome {
    let text = format!(
        "
duration: 10ms
drain: 200ms
switches:
  - name: s
    poll: {{every: 500ns}}
    config:
      preset: roce
      ports: [{{name: p*, count: {hosts}, speed: {speed}, cable: 5m}}]
      classes: {{3: {{{keys}}}}}
hosts: [{{name: h*, count: {hosts}, at: s.p*}}]
{settings}
"
    );
    let mut scenarios = scenario::parse("reliable.yaml", &text, None, &Options::default()).expect(&text);
    let outcome = holdfast::sim::run(&scenarios.remove(0).1, &mut |_| ());
    assert_eq!(outcome.violation, None, "{text}");
    outcome
}

/// One flow of messages over a link that loses frames and ACKs.
fn over_lossy_link(transport: &str, message: &str, chance: &str) -> FlowOutcome {
    let settings = format!(
        "flows: [{{from: h1, to: h2, frame: 1078, load: {{message: {message}, every: 100us}}, transport: {transport}}}]
faults: [{{at: 0ns, for: 10ms, lose: s.p2, what: data, chance: {chance}}}]"
    );
    let outcome = run(2, "10G", "", &settings);
    outcome.flows[0].clone()
}

#[test]
fn every_message_arrives_over_a_lossy_link() {
    let mut repeated = Vec::new();
    for recovery in ["go-back-n", "selective-repeat", "go-back-0"] {
        let flow = over_lossy_link(&format!("{{recovery: {recovery}, timeout: 100us}}"), "20kB", "4%");
        assert!(flow.messages >= 90 && flow.timeouts > 0 && flow.naks > 0, "{recovery}: {flow:?}");
        assert_eq!((flow.completion.count, flow.acknowledged.count), (flow.messages, flow.messages), "{recovery}");
        assert!(flow.acknowledged.p50_ps > flow.completion.p50_ps);
        assert!(flow.lost_frames() > 10, "{recovery}: the link lost {} frames", flow.lost_frames());
        repeated.push(flow.repeated_frames);
    }
    assert!(repeated[1] < repeated[0] && repeated[0] < repeated[2], "fewest with selective repeat: {repeated:?}");
}

/// Guo et al., SIGCOMM 2016, section 4.1: with one of 256 frames lost, no message of 4 MB ever arrives.
#[test]
fn go_back_0_livelocks_where_go_back_n_delivers() {
    let goodput = |recovery| over_lossy_link(recovery, "4MB", "0.4%");
    let (zero, n) = (goodput("go-back-0"), goodput("go-back-n"));
    // The link loses frames for 10 ms, in which three such messages fit.
    assert!(zero.completion.least_ps > 10_000_000_000, "not before the last loss: {zero:?}");
    assert!(n.completion.least_ps < 7_000_000_000, "{n:?}");
}

#[test]
fn flow_to_a_queue_that_drops_all_fails() {
    let settings = "flows: [{from: h1, to: h2, transport: {timeout: 100us, retries: 3}}]
faults: [{at: 1ms, lose: s.p2, what: data}]";
    let outcome = run(2, "10G", "", settings);
    let flow = &outcome.flows[0];
    assert_eq!((outcome.ending, flow.failed_flows, flow.timeouts), (Ending::Drained, 1, 4));
    assert!(flow.received_frames > 1000 && flow.last_arrival_ps < 1_010_000_000);
}

#[test]
fn window_bounds_the_queue() {
    let settings =
        |window: &str| format!("flows: [{{from: [h1, h2, h3], to: h4, frame: 1078, transport: {{window: {window}}}}}]");
    let queue = |outcome: Outcome| {
        let cells = outcome.switches[0].ports[3].classes[3].queue_highest_cells;
        assert!(outcome.flows.iter().all(|flow| flow.lost_frames() == 0 && flow.repeated_frames == 0));
        cells * 208
    };
    let small = queue(run(4, "10G", "", &settings("20kB")));
    // Three windows, each with one frame more, of six cells a frame. Some of it is on the wires.
    assert!((30_000..=3 * 25_000).contains(&small), "{small} B");
    let large = queue(run(4, "10G", "", &settings("60kB")));
    assert!((120_000..=3 * 75_000).contains(&large), "{large} B");
}

/// Rates of the flows in Gbit/s from 5 ms on, and bytes in the queue to the receiver at the end.
fn steady(cc: &str, class: &str) -> (Vec<f64>, u64, Outcome) {
    let settings = format!("flows: [{{from: [h1, h2, h3, h4], to: h5, frame: 1078, ecn: true, cc: {cc}}}]");
    let outcome = run(5, "10G", class, &settings);
    let from = outcome.samples.count / 2;
    let seconds = (10_000_000.0 - from as f64 * outcome.samples.every_ps as f64 / 1000.0) / 1e9;
    let rate = |bytes: &Vec<u32>| {
        bytes[from..].iter().map(|&bytes| f64::from(bytes)).sum::<f64>() * 8.0 / seconds / 1e9 * 1102.0 / 1078.0
    };
    let rates = outcome.samples.flow_bytes.iter().map(rate).collect();
    (rates, outcome.switches[0].ports[4].classes[3].queue_at_stop_bytes, outcome)
}

fn assert_fair(rates: &[f64], least: f64) {
    let sum: f64 = rates.iter().sum();
    let fairness = sum * sum / rates.len() as f64 / rates.iter().map(|rate| rate * rate).sum::<f64>();
    assert!(sum > least && fairness > 0.9, "{rates:?}: {sum:.2} Gbit/s, fairness {fairness:.3}");
}

/// DCTCP, section 3.3: the queue stays near K, and the link is used.
#[test]
fn dctcp_keeps_the_queue_near_its_mark() {
    // A round trip is 3 us, so each window is at least a frame, and four queue 4.3 kB.
    let (rates, queue, outcome) = steady("dctcp", "ecn: {kmin: 10kB, kmax: 10001B, pmax: 100%}");
    assert_fair(&rates, 9.5);
    assert!(queue < 20_000, "{queue} B");
    assert!(outcome.pauses.is_empty() && outcome.flows.iter().all(|flow| flow.lost_frames() == 0));
}

#[test]
fn swift_and_theta_powertcp_use_the_link_with_a_short_queue() {
    for cc in ["swift", "theta-powertcp"] {
        let (rates, queue, outcome) = steady(cc, "");
        assert_fair(&rates, 9.0);
        assert!(queue < 40_000 && outcome.pauses.is_empty(), "{cc}: {queue} B");
    }
}

#[test]
fn dcqcn_of_nics_uses_the_link_without_pauses() {
    let (rates, _, outcome) =
        steady("{dcqcn-nic: {additive: 40M, hyper: 400M}}", "ecn: {kmin: 20kB, kmax: 80kB, pmax: 20%}");
    assert_fair(&rates, 7.0);
    assert!(outcome.flows.iter().all(|flow| flow.cnps > 100 && flow.lost_frames() == 0));
}

#[test]
fn timely_holds_the_round_trip_near_its_thresholds() {
    let (rates, _, outcome) = steady("{timely: {low: 20us, high: 100us, additive: 100M, least: 100M}}", "");
    let sum: f64 = rates.iter().sum();
    assert!(sum > 8.0, "{rates:?}");
    let p50 = outcome.flows.iter().map(|flow| flow.latency.p50_ps).max().unwrap();
    assert!(p50 < 150_000_000, "{p50} ps");
}

/// HPCC, figure 9 in substance: the queue is nearly empty, the link is used to eta, and no pause happens.
#[test]
fn hpcc_and_powertcp_keep_the_queue_nearly_empty() {
    for (cc, least) in [("hpcc", 8.5), ("powertcp", 9.0)] {
        let (rates, queue, outcome) = steady(cc, "telemetry: hpcc");
        assert_fair(&rates, least);
        assert!(queue < 8_000, "{cc}: {queue} B");
        assert!(outcome.pauses.is_empty() && outcome.flows.iter().all(|flow| flow.lost_frames() == 0), "{cc}");
    }
}

/// Alizadeh et al., Allerton 2008, in substance: without any PFC the queue stays near its set point, and the link is
/// full. The cycles are short, as a run of 10 ms needs.
#[test]
fn qcn_holds_the_queue_near_its_set_point() {
    let cc = "{qcn: {increase_timer: 250us, byte_counter: 20kB, additive: 20M, hyper: 200M}}";
    let (rates, _, outcome) = steady(cc, "qcn: {set_point: 26kB, sample: 50kB}");
    let sum: f64 = rates.iter().sum();
    assert!(sum > 9.3, "{rates:?}");
    let port = &outcome.switches[0].ports[4];
    assert!(port.classes[3].cnms_made > 100, "{} messages", port.classes[3].cnms_made);
    assert!(port.classes[3].queue_highest_cells * 208 < 300_000, "{} cells", port.classes[3].queue_highest_cells);
    assert!(outcome.flows.iter().all(|flow| flow.lost_frames() == 0 && flow.cnps == 0));
    // A flow of a class without congestion points never slows down.
    let (_, _, outcome) = steady("qcn", "");
    assert!(outcome.flows.iter().all(|flow| flow.rate_at_end == 10_000_000_000) && !outcome.pauses.is_empty());
}

/// A mark once removed the place of the network header, which a note needs.
#[test]
fn marked_frames_carry_notes() {
    let (rates, queue, _) = steady("hpcc", "telemetry: hpcc, ecn: {kmin: 1kB, kmax: 1100B, pmax: 100%}");
    assert_fair(&rates, 8.5);
    assert!(queue < 8_000, "{queue} B");
}

#[test]
fn rare_acks_do_not_stall_a_full_window_or_a_silent_phase() {
    let settings = "flows:
  - {from: h1, to: h3, frame: 1078, transport: {ack_every: 32, window: 10kB}}
  - {from: h2, to: h4, frame: 1078, load: {on: 100us, off: 400us}, transport: {ack_every: 100}}
  - {from: h5, to: h6, frame: 1078, cc: swift, transport: {ack_every: 8}}";
    let outcome = run(6, "10G", "", settings);
    assert!(outcome.flows.iter().all(|flow| flow.timeouts == 0 && flow.repeated_frames == 0), "{:?}", outcome.flows);
    // In 10 ms: 12.5 MB at the full rate, a fifth of it in phases.
    let received: Vec<u64> = outcome.flows.iter().map(|flow| flow.received_bytes).collect();
    assert!(received[0] > 10_000_000 && received[1] > 2_000_000 && received[2] > 6_000_000, "{received:?}");
}

#[test]
fn slow_flow_that_loses_frames_does_not_fail() {
    let settings = "flows: [{from: h1, to: h2, rate: 1M, transport: go-back-n}]
faults: [{at: 0ns, for: 1ms, lose: s.p2, what: data}]";
    let outcome = run(2, "10G", "", settings);
    assert_eq!((outcome.flows[0].failed_flows, outcome.flows[0].lost_frames()), (0, 1));
}
