use std::collections::BTreeMap;

use super::outcome::{Ending, Outcome};
use super::parts::Parts;
use super::spec::*;
use super::transport::TransportSpec;
use crate::config;
use crate::hosts::FlowKind;
use crate::mmu::HeadroomPolicy;
use crate::mutant::{self, Mutant};
use crate::plan::{DropReason, SwitchSpec};
use crate::units::{BitRate, Bytes, Length, Nanos};
use crate::verify::record::Tape;
use crate::wire::MacAddr;

/// A host that obeys PFC.
fn host(n: usize) -> HostNode {
    HostNode {
        name: format!("h{n}"),
        mac: MacAddr::local(1, n as u16),
        ip: [10, 0, 0, n as u8 + 1].into(),
        obeys_pfc: true,
        response: None,
        receiver: None,
        known: true,
    }
}

/// Builds a switch with ports of `rate` and `hosts` hosts. All hosts send to the last one, in class 3.
fn incast(hosts: usize, rate: &str, keys: &str) -> Scenario {
    let mut yaml = format!("preset: roce\n{keys}\nports:\n");
    (0..hosts).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: {rate}, cable: 5m}}\n"));
    yaml += "hosts:\n";
    (0..hosts).for_each(|n| yaml += &format!("  - {{name: h{n}, port: p{n}}}\n"));
    let mut config = config::parse("test", &yaml).unwrap_or_else(|errors| panic!("{errors}"));
    config.hosts.clear();
    let rate: BitRate = rate.parse().unwrap();
    let link = |n: usize| LinkNode {
        name: format!("s.p{n}-h{n}"),
        a: End::Port(PortRef { switch: 0, port: n }),
        b: End::Host(n),
        rate,
        length: Length::metres(5),
    };
    let flow = |n: usize| FlowNode {
        name: format!("h{n}-h{}", hosts - 1),
        from: n,
        to: hosts - 1,
        kind: FlowKind::Roce,
        frames: FrameSizes::Fixed(1078),
        dscp: 26,
        tag: None,
        class: 3,
        priority: 3,
        lossless: true,
        ecn: true,
        rate,
        start: Nanos(10_000),
        stop: None,
        load: Load::Steady,
        transport: None,
        control: None,
        base_rtt: None,
        entropy: None,
    };
    Scenario {
        source: "test".into(),
        files: Vec::new(),
        name: "incast".into(),
        variant: String::new(),
        seed: 1,
        duration: Nanos(1_000_000),
        drain: Nanos(10_000_000),
        sample: Nanos(1_000),
        queues: Nanos(0),
        monitor: None,
        most_events: 1 << 30,
        learning: Learning::Routes,
        routed: None,
        switches: vec![SwitchNode {
            name: "s".into(),
            config,
            poll: PollSpec { every: Nanos(1_000), frame: Nanos(0), shed: Nanos(0), jitter: Nanos(0) },
            floods_lossless: false,
            reloads: Vec::new(),
        }],
        hosts: (0..hosts).map(host).collect(),
        links: (0..hosts).map(link).collect(),
        flows: (0..hosts - 1).map(flow).collect(),
        workloads: Vec::new(),
        faults: vec![],
        watch: vec![],
        columns: vec![],
        warnings: vec![],
    }
}

fn run(scenario: &Scenario) -> Outcome {
    super::run(scenario, &mut |_| {})
}

#[track_caller]
fn assert_held(outcome: &Outcome) {
    assert_eq!(outcome.violation, None);
    assert_eq!(outcome.ending, Ending::Drained);
}

/// Without `backlog_xoff` a core that is too slow loses frames in its receive rings. That is not promised against, so
/// it is no violation.
#[test]
fn slow_core_without_backlog_xoff_is_a_waiver_and_no_violation() {
    let mut scenario = incast(5, "10G", "lcores: {backlog_xoff: off}\n");
    scenario.switches[0].poll.frame = Nanos(1_000);
    scenario.duration = Nanos(2_000_000);
    let outcome = run(&scenario);
    assert_eq!(outcome.violation, None);
    let expected = "a core of s needs 1us per frame, and the backlog of s.p0 pauses no peer";
    assert!(outcome.waivers.iter().any(|waiver| waiver == expected), "{:?}", outcome.waivers);
    assert!(outcome.switches[0].ports.iter().any(|port| port.missed_lossless_frames > 0));
}

#[test]
fn incast_pauses_its_senders_and_loses_nothing() {
    let scenario = incast(5, "100G", "");
    let outcome = run(&scenario);
    println!("{:?} {:?} events {} checks {}", outcome.ending, outcome.violation, outcome.events, outcome.checks);
    println!("waivers {:?}", outcome.waivers);
    for flow in &outcome.flows {
        println!("{flow:?}");
    }
    assert_held(&outcome);
    assert_eq!(outcome.waivers, Vec::<String>::new());
    let received: u64 = outcome.flows.iter().map(|flow| flow.received_bytes / 1078 * 1102).sum();
    println!("end {} received {received} pauses {}", outcome.end_ps, outcome.pauses.len());
    assert!(outcome.flows.iter().all(|flow| flow.lost_frames() == 0));
    assert!(!outcome.pauses.is_empty());
}

#[test]
fn lossless_queue_with_a_maximum_rate_pauses_its_senders_and_loses_nothing() {
    let scenario = incast(3, "10G", "buffer: {size: 1MiB}\nclasses: {3: {max_rate: 4G}}");
    let outcome = run(&scenario);
    assert_held(&outcome);
    assert!(outcome.flows.iter().all(|flow| flow.lost_frames() == 0 && flow.received_frames > 0));
    assert!(!outcome.pauses.is_empty());
    // Frames of 1078 bytes take 1102 on the wire. Both flows begin at 10 us.
    let bits: u64 = outcome.flows.iter().map(|flow| flow.received_frames * 1102 * 8).sum();
    let last_ps = outcome.flows.iter().map(|flow| flow.last_arrival_ps).max().unwrap_or(0);
    let rate = bits * 1_000_000 / (last_ps / 1_000_000 - 10);
    assert!((3_950_000_000..4_100_000_000).contains(&rate), "{rate} b/s");
}

#[test]
fn acks_with_the_dscp_of_data_are_in_their_class_and_no_flow_fails() {
    let mut scenario = incast(3, "10G", "maps: {roce: {ack: 6, cnp: 6}}");
    for flow in &mut scenario.flows {
        flow.transport = Some(TransportSpec::default());
    }
    let outcome = run(&scenario);
    assert_held(&outcome);
    assert!(outcome.flows.iter().all(|flow| flow.lost_frames() == 0 && flow.received_frames > 0));
    // The last host receives all data, and sends nothing but ACKs and NAKs.
    let received = &outcome.switches[0].ports[2].classes;
    assert!(received[6].rx_frames > 0 && received[3].rx_frames == 0, "{received:?}");
}

/// Builds an incast of four hosts whose first host also sends garbage at 5G until the end.
fn with_garbage() -> Scenario {
    let mut scenario = incast(4, "100G", "filter: {l4_length: true}");
    let kind = FaultKind::Garbage { host: 0, rate: BitRate(5_000_000_000) };
    scenario.faults = vec![Fault { at: Nanos(0), until: None, kind }];
    scenario
}

#[test]
fn malformed_frames_are_dropped_by_reason_and_flows_lose_nothing() {
    let outcome = run(&with_garbage());
    assert_held(&outcome);
    assert_eq!(outcome.waivers, Vec::<String>::new());
    assert!(outcome.flows.iter().all(|flow| flow.sent_frames > 1000 && flow.lost_frames() == 0));
    let port = &outcome.switches[0].ports[0];
    let dropped = port.classes.iter().flat_map(|class| &class.drops).chain(&port.unclassified_drops);
    let reasons: BTreeMap<&str, u64> = dropped.map(|(reason, count)| (reason.label(), *count)).collect();
    let expected = [
        "ipv4_malformed",
        "ipv4_truncated",
        "ipv6_malformed",
        "ipv6_truncated",
        "l4_malformed",
        "l4_truncated",
        "link_local",
        "mac_control",
        "oversize",
        "pfc_destination",
        "source_invalid",
        "truncated",
        "vlan_not_allowed",
    ];
    assert_eq!(reasons.keys().copied().collect::<Vec<_>>(), expected, "{reasons:?}");
    // No malformed PFC frame was accepted as PFC.
    assert_eq!(port.pfc_rx_frames, 0);
    // The switch forwarded some of them to other hosts, in class 0.
    assert!(outcome.switches[0].ports.iter().any(|port| port.classes[0].tx_frames > 0));
}

/// Host 0 fills its port's group, and host 2 sends to host 0 meanwhile.
#[test]
fn shut_port_loses_its_own_frames_alone_and_no_cell() {
    for (port, keys) in [(0, ""), (3, ""), (0, "lcores: {count: 2}"), (3, "lcores: {count: 2}")] {
        let mut scenario = incast(4, "10G", keys);
        let back = FlowNode { name: "back".to_owned(), from: 2, to: 1, ..scenario.flows[2].clone() };
        scenario.flows.push(back);
        let kind = FaultKind::Shut { port: PortRef { switch: 0, port } };
        let shut = |at, until| Fault { at: Nanos(at), until: Some(Nanos(until)), kind };
        scenario.faults = vec![shut(100_000, 200_000), shut(250_000, 251_000)];
        let outcome = run(&scenario);
        assert_eq!(outcome.violation, None, "port {port}, {keys}");
        let lost: Vec<(usize, &str)> = outcome.switches[0]
            .ports
            .iter()
            .enumerate()
            .flat_map(|(port, counts)| {
                let drops = counts.classes.iter().flat_map(|class| &class.drops);
                drops.filter(|(_, count)| *count > 0).map(move |(reason, _)| (port, reason.label()))
            })
            .collect();
        assert!(lost.contains(&(port, "admin_down")), "{lost:?}");
        // A frame counts where it was received: one whose station is forgotten, and one that waits for the receiver.
        let is_receiver = port == 3;
        let is_known = |(at, reason): &(usize, &str)| match *reason {
            "lossless_unknown" => true,
            reason => reason == "admin_down" && (is_receiver || *at == port),
        };
        assert!(lost.iter().all(is_known), "port {port}, {keys}: {lost:?}");
        let back = outcome.flows.last().unwrap();
        assert_eq!(back.lost_frames(), 0, "port {port}, {keys}: a flow between other ports");
    }
}

/// The headroom of each port grows by half of the pool and shrinks again, while the groups hold all that they may.
#[test]
fn buffer_is_divided_anew_under_full_load_without_loss_and_within_its_size() {
    for keys in ["", "lcores: {count: 2}", "buffer: {headroom: dynamic}"] {
        let mut scenario = incast(4, "10G", keys);
        let first = scenario.switches[0].config.switch.clone();
        let mut wanted = first.clone();
        let part = first.buffer.lossless_shared.0 / 8;
        for port in &mut wanted.ports {
            let lossless = port.buffer.groups.iter_mut().filter(|group| group.lossless);
            lossless.for_each(|group| group.headroom.0 += part);
            let is_dynamic = port.buffer.policy == HeadroomPolicy::Dynamic;
            port.buffer.insurance.0 += if is_dynamic { part } else { 0 };
        }
        let own = |spec: &SwitchSpec| spec.ports.iter().map(|port| port.buffer.own_cells()).sum::<u64>();
        let more = (own(&wanted) - own(&first)) as u32;
        assert!(more > 0);
        (wanted.buffer.headroom.0, wanted.buffer.lossless_shared.0) =
            (first.buffer.headroom.0 + more, first.buffer.lossless_shared.0 - more);
        // The second reload comes while the first is not over.
        let reload = |at, switch: &SwitchSpec| SwitchReload { at: Nanos(at), switch: switch.clone() };
        scenario.switches[0].reloads =
            vec![reload(100_000, &wanted), reload(115_000, &first), reload(150_000, &wanted), reload(250_000, &first)];
        let outcome = run(&scenario);
        assert_eq!(outcome.violation, None, "{keys}");
        assert_eq!(outcome.flows.iter().map(|flow| flow.lost_frames()).sum::<u64>(), 0, "{keys}");
        let found = mutant::with(Mutant::GrowsTooEarly, || run(&scenario)).violation.expect("a violation");
        assert_eq!(found.invariant, "division_fits", "{keys}");
    }
}

/// The outcome of an incast in class 4 beside a flow to h4, with these reloads.
fn reloaded(reloads: &str) -> Scenario {
    let text = format!(
        "duration: 600us\nswitches:\n  - name: tor\n    reloads: [{reloads}]\n    config:\n      preset: roce\n      \
         buffer: {{size: 10MiB}}\n      ports: [{{name: p*, count: 4, speed: 100G, cable: 5m}}]\n\
         hosts: [{{name: h*, count: 4, at: tor.p*}}]\n\
         flows: [{{from: [h1, h2], to: h3, dscp: 32}}, {{from: h1, to: h4}}]\n"
    );
    let scenarios = super::scenario::parse("x.yaml", &text, None, &super::scenario::Options::default());
    scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1
}

#[test]
fn class_becomes_lossless_and_lossy_again_under_an_incast() {
    let scenario = reloaded(
        "{at: 100us, set: {classes: {4: {lossless: true}}}}, {at: 400us, set: {classes: {3: {lossless: false}}}}",
    );
    let outcome = run(&scenario);
    assert_held(&outcome);
    assert_eq!(outcome.waivers, [""; 0]);
    let port = &outcome.switches[0].ports[0];
    assert!(port.classes[4].xoff_tx > 0 && port.classes[4].dropped() > 0, "{:?}", port.classes[4]);
    assert!(scenario.flows.iter().all(|flow| !flow.lossless), "none is lossless to the end");
    let found = mutant::with(Mutant::PromisesTooEarly, || run(&scenario)).violation.expect("a violation");
    assert_eq!(found.invariant, "promised_with_headroom");
}

#[test]
fn port_leaves_for_no_device_and_for_another_mtu_and_comes_back() {
    let scenario = reloaded(
        "{at: 100us, set: {ports: [{name: p4, device: none}]}}, {at: 300us, set: {ports: [{name: p4, mtu: 9000}]}}",
    );
    let outcome = run(&scenario);
    assert_held(&outcome);
    assert_eq!(outcome.waivers, ["tor.p4 is taken out"]);
    let down = |port: usize| {
        let drops = outcome.switches[0].ports[port].classes[3].drops.iter();
        drops.filter(|(reason, _)| *reason == DropReason::AdminDown).map(|(_, frames)| frames).sum::<u64>()
    };
    let lost: u64 = (0..4).map(down).sum();
    let flow = &outcome.flows[2];
    assert!(lost > 0 && lost < flow.sent_frames, "{lost} of {}", flow.sent_frames);
    // It sends for 100 us before and for nearly 300 us after.
    assert!((flow.received_frames * 100 / flow.sent_frames) > 55, "{} of {}", flow.received_frames, flow.sent_frames);
}

#[test]
fn missing_malformed_frame_breaks_frames_accounted() {
    let scenario = with_garbage();
    let outcome = super::engine::run_prepared(&scenario, |engine| engine.checks.garbage_sent += 1, &mut |_| {});
    assert_eq!(outcome.violation.map(|violation| violation.invariant), Some("frames_accounted"));
}

#[test]
fn acknowledged_frame_that_was_discarded_breaks_messages_delivered() {
    let mut scenario = incast(2, "10G", "");
    let size = MessageSize::Fixed(Bytes(50_000));
    let load = Load::Messages { size, every: Nanos(50_000), poisson: false, count: None };
    scenario.flows.truncate(1);
    let transport = Some(TransportSpec { nak_interval: Nanos(1), ..TransportSpec::default() });
    scenario.flows[0] = FlowNode { transport, load, ..scenario.flows[0].clone() };
    let kind = FaultKind::Lose { link: 0, toward: None, what: Lost::Data, per_million: 20_000 };
    scenario.faults = vec![Fault { at: Nanos(0), until: Some(Nanos(1_000_000)), kind }];
    assert_eq!(run(&scenario).violation, None);
    let outcome = mutant::with(Mutant::AcknowledgesDiscarded, || run(&scenario));
    assert_eq!(outcome.violation.map(|violation| violation.invariant), Some("messages_delivered"));
}

/// Runs the fabrics of many seeds, with faults, reliable flows and workloads: with and without rests of switches, and
/// with polls that visit all ports, as those of a recorded switch do.
#[test]
fn rests_of_switches_change_no_result() {
    let mut compared = 0;
    for seed in 1..=60 {
        let Ok(yaml) = super::random::yaml(seed) else { continue };
        let scenario = super::scenario::parse("random.yaml", &yaml, None, &super::scenario::Options::default());
        let scenario = scenario.unwrap_or_else(|errors| panic!("seed {seed}: {errors}")).remove(0).1;
        if scenario.drain.0 > 20_000_000 {
            // It takes seconds to run.
            continue;
        }
        let with = super::run(&scenario, &mut |_| {});
        let never = |engine: &mut super::engine::Engine<'_>| {
            for node in engine.net.nodes.iter_mut() {
                (node.rests, node.tape) = (false, Some(Tape::new(0)));
            }
        };
        let without = super::engine::run_prepared(&scenario, never, &mut |_| {});
        assert_eq!(with, without, "seed {seed}:\n{yaml}");
        compared += 1;
    }
    assert!(compared > 10, "{compared} runs");
}

/// Ten million polls without a frame take no time.
#[test]
fn polls_of_a_switch_at_rest_are_counted() {
    let text = "
duration: 100ms
switches: [{name: a, config: {preset: roce, ports: [{name: p*, count: 2, speed: 10G}]}, poll: {every: 10ns}}]
hosts: [{name: h*, count: 2, at: a.p*}]
flows: [{from: h1, to: h2, load: {message: 1kB, every: 50ms}}]
";
    let scenario = super::scenario::parse("rest.yaml", text, None, &super::scenario::Options::default());
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1;
    let outcome = super::run(&scenario, &mut |_| {});
    assert_eq!((outcome.ending, outcome.flows[0].received_frames), (Ending::Drained, 2));
    let (polls, events) = (outcome.switches[0].polls, outcome.events);
    assert!((10_000_000..10_010_000).contains(&polls), "{polls} polls");
    assert!(events > polls && outcome.checks == polls, "{events} events, {} checks", outcome.checks);
}

/// Returns the random fabric of `seed`, changed so that its network has several parts; `None` if it has only one.
fn divided(seed: u64) -> Option<(Scenario, Parts)> {
    let yaml = super::random::yaml(seed).ok()?;
    let scenario = super::scenario::parse("random.yaml", &yaml, None, &super::scenario::Options::default());
    let mut scenario = scenario.unwrap_or_else(|errors| panic!("seed {seed}: {errors}")).remove(0).1;
    scenario.faults.retain(|fault| !matches!(fault.kind, FaultKind::Lose { .. } | FaultKind::Stall { .. }));
    for switch in &mut scenario.switches {
        switch.poll = PollSpec { frame: Nanos(0), shed: Nanos(0), ..switch.poll };
        switch.config.switch.poll_gap =
            switch.config.switch.poll_gap.max(Nanos(switch.poll.every.0 + switch.poll.jitter.0));
    }
    for (number, link) in scenario.links.iter_mut().enumerate() {
        // Some hosts are with their switch, and some are parts of their own.
        let is_of_host = matches!(link.a, End::Host(_)) || matches!(link.b, End::Host(_));
        let least = Length::metres(if is_of_host && number % 3 > 0 { 1 } else { 40 + number as u64 % 50 });
        link.length = link.length.max(least);
    }
    let parts = Parts::new(&scenario);
    (parts.count() > 1 && scenario.drain.0 <= 20_000_000).then_some((scenario, parts))
}

/// Returns the first lines in which two outcomes differ.
fn difference(a: &Outcome, b: &Outcome) -> Option<(String, String)> {
    let [a, b] = [a, b].map(|outcome| format!("{outcome:#?}"));
    let lines = a.lines().zip(b.lines()).enumerate();
    let (at, (a, b)) = lines.into_iter().find(|(_, (a, b))| a != b)?;
    Some((format!("line {at}: {}", a.trim()), b.trim().to_owned()))
}

/// One part handles all events in order of time. Several parts, and several threads, must lead to the same bytes.
#[test]
fn parts_and_threads_change_no_result() {
    let (mut compared, mut broken, mut most_parts) = (0, 0, 0);
    for seed in 1..=150 {
        let Some((mut scenario, parts)) = divided(seed) else { continue };
        let whole = super::engine::run_in(Parts::one(&scenario), &scenario, |_| {}, &mut |_| {});
        let one = super::run_on(1, &scenario, &mut |_| {});
        for threads in 2..=3 {
            let several = super::run_on(threads, &scenario, &mut |_| {});
            assert_eq!(difference(&several, &one), None, "seed {seed}, {threads} threads");
        }
        if whole.violation.is_some() {
            // Longer cables need more headroom. A run of several parts ends after the window, not at once.
            assert_eq!(one.ending, Ending::Violated, "seed {seed}");
            broken += 1;
            continue;
        }
        assert_eq!(difference(&one, &whole), None, "seed {seed}, {} parts", parts.count());
        scenario.most_events = one.events / 2;
        let [one, several] = [1, 2].map(|threads| super::run_on(threads, &scenario, &mut |_| {}));
        assert_eq!((difference(&several, &one), one.ending), (None, Ending::TooManyEvents), "seed {seed}");
        compared += 1;
        most_parts = most_parts.max(parts.count());
    }
    assert!(compared >= 10 && most_parts >= 4, "{compared} runs, of at most {most_parts} parts, and {broken} broken");
}
