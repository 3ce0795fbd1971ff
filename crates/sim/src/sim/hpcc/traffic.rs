//! The flows of the inputs as flows of a scenario, with their transport and congestion control.

use std::collections::HashMap;

use super::MmuSizes;
use super::config::{CcMode, Settings};
use super::convert::{MOST_DRAIN_NS, Plan, overhead};
use super::equal_paths::{self, Direction, EqualPaths};
use super::path::BaseTimes;
use crate::config::error::Warning;
use crate::hosts::FlowKind;
use crate::sim::control::ControlSpec;
use crate::sim::control::dcqcn_nic::DcqcnNicSpec;
use crate::sim::control::dctcp::DctcpSpec;
use crate::sim::control::hpcc::HpccSpec;
use crate::sim::control::timely::TimelySpec;
use crate::sim::path::Paths;
use crate::sim::spec::{FlowNode, FrameSizes, Load, MessageSize, Scenario};
use crate::sim::transport::{Recovery, TransportSpec};
use crate::units::{BitRate, Bytes, Nanos};

/// DSCP of ACKs with ACK_HIGH_PRIO: class 6 of the preset, a strict class.
const FIRST_DSCP: u8 = 48;

/// Adds the flows to the scenario.
pub(super) fn add_flows(scenario: &mut Scenario, plan: &Plan<'_>, epoch_ns: u64, times: &BaseTimes) {
    let (settings, mut nodes) = (plan.settings, flow_nodes(plan, epoch_ns));
    // The control decides whether ACKs carry notes, and so the path's time.
    let first = control(settings, Nanos(1));
    nodes.iter_mut().for_each(|node| node.control = Some(first));
    let mut paths = Paths::new(scenario);
    let base: Vec<Nanos> = nodes.iter().map(|node| Nanos(paths.of(node).base_rtt_ps.div_ceil(1000))).collect();
    let longest = base.iter().copied().max().unwrap_or(Nanos(0));
    for ((node, own), line) in nodes.iter_mut().zip(base).zip(plan.flows) {
        let pair = times.of(line.src, line.dst).unwrap_or_default();
        let (rtt, window) = match (plan.sizes, settings.global_rtt) {
            (MmuSizes::Hpcc, true) => (Nanos(times.longest_ns), times.most_bdp),
            (MmuSizes::Hpcc, false) => (Nanos(pair.rtt_ns), pair.bdp()),
            (MmuSizes::Holdfast, is_global) => {
                let rtt = if is_global { longest } else { own };
                (rtt, Bytes((u128::from(node.rate.0) * u128::from(rtt.0) / 8_000_000_000) as u64))
            }
        };
        node.control = Some(control(settings, rtt));
        node.base_rtt = Some(rtt);
        node.transport = Some(TransportSpec {
            recovery: if settings.back_to_zero { Recovery::GoBack0 } else { Recovery::GoBackN },
            // Its receivers acknowledge each packet.
            ack_every: if plan.sizes == MmuSizes::Hpcc { 1 } else { settings.ack_interval.max(1) },
            window: settings.has_window.then_some(window),
            uncounted: Bytes(if plan.sizes == MmuSizes::Hpcc { overhead(settings) } else { 0 }),
            scales_window: settings.scales_window,
            timeout: Some(Nanos((4 * rtt.0).max(4_000_000))),
            // Its switches never read the key.
            ack_dscp: (settings.ack_first && plan.sizes == MmuSizes::Holdfast).then_some(FIRST_DSCP),
            ..TransportSpec::default()
        });
    }
    let without = take_paths(scenario, plan, &mut nodes);
    if without > 0 {
        let message = format!("{without} flows take other equal paths than in HPCC's simulator");
        scenario.warnings.push(Warning::of_text(&settings.topology, None, message));
    }
    scenario.flows = nodes;
}

/// Gives `nodes` the source ports with which they take the paths that they take in HPCC's simulator. Returns the number
/// of flows for which there are none.
fn take_paths(scenario: &Scenario, plan: &Plan<'_>, nodes: &mut [FlowNode]) -> usize {
    let ports = plan.switches.iter().map(|node| (*node, plan.ports[node].iter().map(|port| port.1).collect()));
    let mut paths = EqualPaths::new(plan.topology, ports, scenario);
    let (mut before, mut without) = (HashMap::new(), 0);
    for (number, (line, node)) in plan.flows.iter().zip(nodes).enumerate() {
        let of_pair = before.entry((line.src, line.dst)).or_insert(0);
        let [data, answers] = equal_paths::ports_of(*of_pair, line.dst_port);
        *of_pair += 1;
        let (nodes, addresses) = ([line.src, line.dst], [node.from, node.to].map(|host| scenario.hosts[host].ip));
        let there = Direction { nodes, addresses, ports: data };
        let back = there.reversed(answers);
        let entropy = [there, back].map(|direction| paths.entropy(number as u16, direction));
        match entropy {
            [Some(data), Some(answers)] => node.entropy = Some([data, answers]),
            _ => without += 1,
        }
    }
    without
}

/// Returns the flows, without transport and congestion control.
fn flow_nodes(plan: &Plan<'_>, epoch_ns: u64) -> Vec<FlowNode> {
    let settings = plan.settings;
    let index: HashMap<usize, usize> = plan.hosts.iter().enumerate().map(|(index, node)| (*node, index)).collect();
    let rates = plan.host_rates();
    let mut numbers: HashMap<(usize, usize), u32> = HashMap::new();
    let overhead = overhead(settings);
    let frame = settings.payload_bytes + overhead;
    let mut nodes: Vec<FlowNode> = Vec::new();
    for flow in plan.flows {
        let (from, to) = (index[&flow.src], index[&flow.dst]);
        let number = numbers.entry((from, to)).or_insert(0);
        *number += 1;
        let name = if *number == 1 {
            format!("h{}-h{}", flow.src, flow.dst)
        } else {
            format!("h{}-h{}/{number}", flow.src, flow.dst)
        };
        let bytes = flow.bytes.max(1);
        let size = bytes + bytes.div_ceil(settings.payload_bytes) * overhead;
        nodes.push(FlowNode {
            name,
            from,
            to,
            kind: FlowKind::Roce,
            frames: FrameSizes::Fixed(frame as u16),
            dscp: flow.group * 8,
            tag: None,
            class: flow.group,
            priority: flow.group,
            lossless: true,
            ecn: settings.ecn_enabled,
            rate: plan.wire_rate(rates[&flow.src]),
            start: Nanos(flow.start_ns - epoch_ns),
            stop: None,
            load: Load::Messages {
                size: MessageSize::Fixed(Bytes(size)),
                every: Nanos(MOST_DRAIN_NS),
                poisson: false,
                count: Some(1),
            },
            transport: None,
            control: None,
            base_rtt: None,
            entropy: None,
        });
    }
    nodes
}

/// The congestion control, for a base round-trip time of `rtt`.
fn control(settings: &Settings, rtt: Nanos) -> ControlSpec {
    let time = |us: f64| Nanos((us * 1000.0).max(1.0) as u64);
    let rate = BitRate;
    match settings.cc_mode {
        CcMode::Dcqcn => ControlSpec::DcqcnNic(DcqcnNicSpec {
            alpha_timer: time(settings.alpha_interval),
            decrease_timer: time(settings.decrease_interval),
            increase_timer: time(settings.increase_timer),
            gain: settings.gain,
            fast_recovery: settings.fast_recovery,
            clamps_target: settings.clamp_target,
            additive: rate(settings.rate_ai),
            hyper: rate(settings.rate_hai),
            least: rate(settings.rate_min),
            // ns-3 reports every marked packet in its ACK.
            cnp_interval: Nanos(0),
        }),
        CcMode::Hpcc => ControlSpec::Hpcc(HpccSpec {
            target: settings.target,
            most_stages: settings.most_stages,
            // R_AI T bytes in each round trip.
            additive: Some(Bytes((u128::from(settings.rate_ai) * u128::from(rtt.0) / 8_000_000_000).max(1) as u64)),
            ..HpccSpec::default()
        }),
        CcMode::Timely => ControlSpec::Timely(TimelySpec {
            additive: rate(settings.rate_ai),
            hyper: Some(rate(settings.rate_hai)),
            // There the first five increases in a row are small.
            hyper_after: 6,
            hyper_below_low: true,
            least: rate(settings.rate_min),
            ..TimelySpec::default()
        }),
        CcMode::Dctcp => ControlSpec::Dctcp(DctcpSpec {
            gain: settings.gain,
            additive: Some(rate(settings.dctcp_rate_ai)),
            least: Some(rate(settings.rate_min)),
            ..DctcpSpec::default()
        }),
    }
}
