//! A made-up run for tests: two hosts send to a third through one switch, one of them with DCQCN, and some frames are
//! lost.

use std::net::Ipv4Addr;

use crate::config;
use crate::hosts::FlowKind;
use crate::plan::DropReason;
use crate::sets::CLASSES;
use crate::sim::control::ControlSpec;
use crate::sim::control::dcqcn::DcqcnSpec;
use crate::sim::outcome::{
    ClassOutcome, ClassSeries, Completions, Ending, FlowOutcome, HostOutcome, LinkOutcome, Outcome, Pause, PortOutcome,
    PortSeries, Samples, Spread, SwitchOutcome,
};
use crate::sim::spec::{
    End, FlowNode, FrameSizes, HostNode, Learning, LinkNode, Load, MessageSize, PollSpec, PortRef, Scenario, SwitchNode,
};
use crate::units::{BitRate, Bytes, Length, Nanos};
use crate::wire::MacAddr;

const US: u64 = 1_000_000;
const RATE: BitRate = BitRate(10_000_000_000);

const SWITCH: &str = "\
preset: roce
ports:
  - {name: p1, device: ring, speed: 10G, cable: 5m}
  - {name: p2, device: ring, speed: 10G, cable: 5m}
  - {name: p3, device: ring, speed: 10G, cable: 5m}
hosts: [{name: h1, port: p1}, {name: h2, port: p2}, {name: h3, port: p3}]
";

fn host(index: usize) -> HostNode {
    HostNode {
        name: format!("h{}", index + 1),
        mac: MacAddr::local(1, index as u16),
        ip: Ipv4Addr::new(10, 0, 0, index as u8 + 1),
        obeys_pfc: true,
        response: None,
        receiver: None,
        known: true,
    }
}

fn link(index: usize) -> LinkNode {
    LinkNode {
        name: format!("tor.p{0}-h{0}", index + 1),
        a: End::Port(PortRef { switch: 0, port: index }),
        b: End::Host(index),
        rate: RATE,
        length: Length::metres(5),
    }
}

fn flow(name: &str, from: usize, class: u8) -> FlowNode {
    FlowNode {
        name: name.to_owned(),
        from,
        to: 2,
        kind: if class == 3 { FlowKind::Roce } else { FlowKind::Udp },
        frames: FrameSizes::Fixed(1000),
        dscp: class << 3,
        tag: None,
        class,
        priority: class,
        lossless: class == 3,
        ecn: class == 3,
        rate: RATE,
        start: Nanos(0),
        stop: None,
        load: Load::Steady,
        transport: None,
        control: None,
        base_rtt: None,
        entropy: None,
    }
}

/// Returns the scenario: two milliseconds of an incast, with a name that needs escaping.
pub(in crate::sim) fn scenario() -> Scenario {
    let size = MessageSize::Fixed(Bytes(100_000));
    let messages = Load::Messages { size, every: Nanos(100_000), poisson: false, count: None };
    let first =
        FlowNode { load: messages, control: Some(ControlSpec::Dcqcn(DcqcnSpec::default())), ..flow("h1-h3", 0, 3) };
    Scenario {
        source: "incast.yaml".to_owned(),
        files: Vec::new(),
        name: "incast <2 & 1>".to_owned(),
        variant: String::new(),
        seed: 7,
        duration: Nanos(2_000_000),
        drain: Nanos(1_000_000),
        sample: Nanos(1_000),
        queues: Nanos(0),
        monitor: None,
        most_events: 1_000_000,
        learning: Learning::Routes,
        routed: None,
        switches: vec![SwitchNode {
            name: "tor".to_owned(),
            config: config::parse("tor", SWITCH).unwrap(),
            poll: PollSpec { every: Nanos(500), frame: Nanos(0), shed: Nanos(0), jitter: Nanos(0) },
            floods_lossless: false,
            reloads: Vec::new(),
        }],
        hosts: (0..3).map(host).collect(),
        links: (0..3).map(link).collect(),
        flows: vec![first, flow("h2-h3", 1, 3), flow("h2-h3.2", 1, 0)],
        workloads: Vec::new(),
        faults: Vec::new(),
        watch: Vec::new(),
        columns: Vec::new(),
        warnings: Vec::new(),
    }
}

fn times(count: u64, least: u64) -> Spread {
    let [least_ps, p50_ps, p99_ps, most_ps] = [1, 3, 8, 9].map(|times| times * least * US);
    Spread { count, sum_ps: count * p50_ps, least_ps, p50_ps, p99_ps, most_ps }
}

fn flows() -> Vec<FlowOutcome> {
    let first = FlowOutcome {
        sent_frames: 1_000,
        sent_bytes: 1_000_000,
        received_frames: 1_000,
        received_bytes: 1_000_000,
        marked_frames: 50,
        cnps: 12,
        latency: times(1_000, 4),
        completion: times(10, 100),
        messages: 10,
        rate_at_end: 4_000_000_000,
        last_arrival_ps: 2_100 * US,
        ..FlowOutcome::default()
    };
    let second = FlowOutcome {
        sent_frames: 1_200,
        sent_bytes: 1_200_000,
        received_frames: 1_200,
        received_bytes: 1_200_000,
        marked_frames: 30,
        latency: times(1_200, 5),
        last_arrival_ps: 2_090 * US,
        ..FlowOutcome::default()
    };
    let third = FlowOutcome { sent_frames: 300, sent_bytes: 300_000, latency: times(290, 6), ..FlowOutcome::default() };
    vec![first, second, FlowOutcome { received_frames: 290, received_bytes: 290_000, ..third }]
}

fn port(classes: &[(usize, ClassOutcome)]) -> PortOutcome {
    let of = |class| classes.iter().find(|(number, _)| *number == class).map(|(_, outcome)| outcome.clone());
    PortOutcome {
        classes: std::array::from_fn(|class| {
            let lossless = class == 3;
            ClassOutcome { lossless, headroom_cells: if lossless { 200 } else { 0 }, ..of(class).unwrap_or_default() }
        }),
        unclassified_drops: Vec::new(),
        pfc_tx_frames: 0,
        pfc_rx_frames: 0,
        missed_frames: 0,
        missed_lossless_frames: 0,
        ring_highest_frames: 12,
        backlog_xoffs: 0,
        backlog_held_ps: 0,
        insurance_highest_cells: 0,
        watchdog: (0, 0),
    }
}

fn switch() -> SwitchOutcome {
    let first = ClassOutcome {
        rx_frames: 1_000,
        pauses_tx: 2,
        xoff_tx: 5,
        xon_tx: 2,
        held_ps: 300 * US,
        used_highest_cells: 1_600,
        headroom_highest_cells: 90,
        ..ClassOutcome::default()
    };
    let lossy = ClassOutcome {
        rx_frames: 300,
        drops: vec![(DropReason::Threshold, 10)],
        used_highest_cells: 900,
        ..ClassOutcome::default()
    };
    let out = ClassOutcome {
        tx_frames: 2_200,
        tx_bytes: 2_200_000,
        marked_frames: 80,
        paused_ps: 40 * US,
        xoff_rx: 1,
        queue_highest_cells: 2_900,
        ..ClassOutcome::default()
    };
    SwitchOutcome {
        hops: Vec::new(),
        ports: vec![port(&[(3, first.clone())]), port(&[(0, lossy), (3, first)]), port(&[(3, out)])],
        shared_highest_cells: [900, 3_100],
        shared_at_stop_cells: [0, 2_000],
        headroom_pool_highest_cells: 0,
        polls: 4_000,
        poll_gap_highest_ps: 650_000,
        handed_off_frames: 0,
    }
}

/// Returns a sawtooth from zero to `most` with a period of `period` samples.
fn saw(count: usize, period: usize, most: u32) -> Vec<u32> {
    (0..count).map(|at| (at % period) as u32 * most / period as u32).collect()
}

fn samples(count: usize) -> Samples {
    let queue = ClassSeries {
        class: 3,
        queue_bytes: saw(count, 400, 640_000),
        shared_cells: vec![0; count],
        headroom_cells: vec![0; count],
        threshold_cells: vec![3_000; count],
        xoff: vec![false; count],
        marked: saw(count, 400, 9).iter().map(|&marked| marked.saturating_sub(5)).collect(),
    };
    let fill = saw(count, 500, 2_000);
    let threshold = |used: &u32| 2_600 - used / 2;
    let group = ClassSeries {
        class: 3,
        queue_bytes: vec![0; count],
        shared_cells: fill.iter().map(|&used| used.min(threshold(&used))).collect(),
        headroom_cells: fill.iter().map(|used| used.saturating_sub(threshold(used)) / 3).collect(),
        threshold_cells: fill.iter().map(threshold).collect(),
        xoff: fill.iter().map(|used| *used > threshold(used)).collect(),
        marked: vec![0; count],
    };
    let series = |port, class| PortSeries {
        port: PortRef { switch: 0, port },
        classes: vec![class],
        tx_bytes: vec![1_250; count],
    };
    let [first, second, third] = [500, 625, 120].map(|bytes| saw(count, 250, bytes));
    Samples {
        every_ps: US,
        count,
        ports: vec![series(0, group), series(2, queue)],
        flow_bytes: vec![first, second, third],
        flow_rate_mbps: vec![saw(count, 600, 10_000), Vec::new(), Vec::new()],
        pools: vec![[vec![0; count], saw(count, 500, 3_100)]],
    }
}

fn pauses() -> Vec<Pause> {
    let pause = |link, holds_a, from, to| Pause { link, holds_a, priority: 3, from_ps: from * US, to_ps: to * US };
    vec![
        pause(0, false, 430, 510),
        pause(1, false, 430, 505),
        pause(2, true, 600, 640),
        pause(0, false, 930, 1_010),
        pause(0, false, 1_430, 1_570),
    ]
}

/// Returns the scenario and its outcome.
pub(in crate::sim) fn run() -> (Scenario, Outcome) {
    let paused = std::array::from_fn::<u64, CLASSES, _>(|class| if class == 3 { 300 * US } else { 0 });
    let hosts = (0..3).map(|host| HostOutcome {
        pfc_rx_frames: if host < 2 { 7 } else { 0 },
        paused_ps: if host < 2 { paused } else { [0; CLASSES] },
        ..HostOutcome::default()
    });
    let outcome = Outcome {
        end_ps: 2_150 * US,
        last_empty_ps: Some(2_150 * US),
        sending_ps: 2_000 * US,
        events: 123_456,
        checks: 4_000,
        ending: Ending::Drained,
        violation: None,
        waivers: Vec::new(),
        flows: flows(),
        hosts: hosts.collect(),
        switches: vec![switch()],
        links: vec![LinkOutcome::default(); 3],
        pauses: pauses(),
        pauses_left_out: 0,
        workloads: Vec::new(),
        completions: Completions::default(),
        most_flows_at_once: 0,
        queues: None,
        queue_dumps: Vec::new(),
        samples: samples(2_150),
    };
    (scenario(), outcome)
}
