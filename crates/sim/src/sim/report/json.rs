//! A run as JSON: all counts, with units in their names. Names are part of the interface; docs/json.md shows them with
//! the texts that stand beside them here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::columns::COLUMNS;
use super::csv::whole;
use super::group::{Group, groups};
use super::table::end_name;
use super::verdict::{FlowVerdict, verdict};
use super::workloads_json as of_workloads;
use crate::plan::DropReason;
use crate::sim::outcome::{
    ClassOutcome, ClassSeries, Ending, HopOutcome, HostOutcome, LinkOutcome, Outcome, Pause, PortOutcome, PortSeries,
    Samples, Spread, SwitchOutcome, Violation,
};
use crate::sim::spec::{End, FlowNode, LinkNode, Scenario, SwitchNode};

/// Version of this format. It increases when names change.
const FORMAT: u32 = 1;

/// Names of fields, and their texts on the page. A field with an empty text shares that of the next one.
pub type Fields = &'static [(&'static str, &'static str)];

/// Makes a function that returns an object of JSON, and the list of its fields.
macro_rules! object {
    ($fields:ident, fn $name:ident($($arg:ident: $kind:ty),*) { $($field:literal: $value:expr, $text:literal;)* }) => {
        pub(super) const $fields: $crate::sim::report::json::Fields = &[$(($field, $text)),*];

        pub(super) fn $name($($arg: $kind),*) -> ::serde_json::Value {
            ::serde_json::json!({$($field: $value),*})
        }
    };
}

pub(super) use object;

/// The objects of a run with their fields: title and list.
pub const SECTIONS: &[(&str, Fields)] = &[
    ("A run:", RUN),
    ("`violation`:", VIOLATION),
    ("`verdict`:", VERDICT),
    ("`flows[]`:", FLOW),
    ("`latency`, `completion` and `acknowledged` of a flow:", SPREAD),
    ("`hosts[]`:", HOST),
    ("`switches[]`:", SWITCH),
    ("`switches[].next_hops[]`, of routers:", HOP),
    ("`switches[].ports[]`:", PORT),
    ("`switches[].ports[].classes[]`, those with traffic:", CLASS),
    ("`links[]`:", LINK),
    ("`links[].ways[]`:", WAY),
    ("A run with [workloads](workloads.md#results) also has:", RUN_OF_WORKLOADS),
    ("`workloads[]`:", of_workloads::WORKLOAD),
    ("`workloads[].slowdowns[]`, of flows up to a size:", of_workloads::SLOWDOWN),
    ("`pfc_tiers[]`:", of_workloads::TIER),
    ("`queues`:", of_workloads::QUEUES),
    ("`queues.cumulative[]`:", of_workloads::CUMULATIVE),
    ("With `--all` a run also has:", RUN_WITH_SAMPLES),
    ("`pause_list[]`:", PAUSE),
    ("`samples`, with a value for each sample in lists:", SAMPLES),
    ("`samples.ports[]`:", PORT_SAMPLES),
    ("`samples.ports[].classes[]`:", CLASS_SAMPLES),
    ("`samples.switch_pools[]`:", POOL_SAMPLES),
];

/// Returns the names of the measures of a variant.
pub fn measures() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|column| column.name)
}

/// Returns the whole outcome. The pauses and the samples, which are long, are included only if `samples` is true.
#[must_use]
pub fn json(scenario: &Scenario, outcome: &Outcome, samples: bool) -> Value {
    let mut value = run(scenario, outcome);
    if !scenario.workloads.is_empty() {
        add(&mut value, run_of_workloads(scenario, outcome));
    }
    if samples {
        add(&mut value, run_with_samples(scenario, outcome));
    }
    value
}

/// Adds the fields of `more`.
fn add(value: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (value, more) {
        object.extend(more);
    }
}

object! { RUN, fn run(scenario: &Scenario, outcome: &Outcome) {
    "format": FORMAT, "1";
    "scenario": scenario.name, "";
    "source": scenario.source, "strings: name, file";
    "seed": scenario.seed, "seed of all randomness";
    "end_ps": outcome.end_ps, "";
    "sending_ps": outcome.sending_ps, "end; time for which hosts sent";
    "events": outcome.events, "";
    "invariant_checks": outcome.checks, "events; checks of every invariant";
    "ending": ending(outcome.ending), "string: `drained`, `undrained`, `too_many_events`, `violated`";
    "under_way_frames": if let Ending::Undrained { frames } = outcome.ending { frames } else { 0 },
        "if undrained: frames in queues, rings and wires";
    "violation": outcome.violation.as_ref().map(violation), "object?: the broken rule";
    "not_promised": outcome.waivers, "list: sentences, the [waivers](simulation.md#waivers)";
    "verdict": flow_verdict(&verdict(scenario, outcome)), "object: the [verdict](simulation.md#verdicts)";
    "flows": flows(scenario, outcome), "";
    "hosts": scenario.hosts.iter().zip(&outcome.hosts).map(|(node, of)| host(&node.name, of)).collect::<Vec<_>>(), "";
    "switches": scenario.switches.iter().zip(&outcome.switches).map(|(node, of)| switch(node, of)).collect::<Vec<_>>(), "";
    "links": links(scenario, outcome), "lists in the scenario's order";
    "pauses": outcome.pauses.len() as u64 + outcome.pauses_left_out, "pauses of hosts and switches";
} }

object! { RUN_OF_WORKLOADS, fn run_of_workloads(scenario: &Scenario, outcome: &Outcome) {
    "workloads": of_workloads::workloads(scenario, outcome), "";
    "pfc_tiers": of_workloads::pfc_tiers(scenario, outcome), "lists";
    "queues": outcome.queues.as_ref().map(of_workloads::queues), "object";
    "most_flows_at_once": outcome.most_flows_at_once, "flows of workloads in progress";
} }

object! { RUN_WITH_SAMPLES, fn run_with_samples(scenario: &Scenario, outcome: &Outcome) {
    "pause_list": outcome.pauses.iter().map(|of| pause(scenario, of)).collect::<Vec<_>>(), "";
    "pauses_left_out": outcome.pauses_left_out, "list of up to 65,536 pauses, and the number of others";
    "samples": samples(scenario, &outcome.samples), "object";
} }

object! { VIOLATION, fn violation(of: &Violation) {
    "invariant": of.invariant, "";
    "what": of.what, "strings: its name, a sentence";
    "at_ps": of.at_ps, "";
    "event": of.event, "time and number of the event";
} }

object! { VERDICT, fn flow_verdict(of: &FlowVerdict) {
    "kept": of.kept, "";
    "starved": of.starved, "bools";
    "lossless_sent_frames": of.lossless_sent, "";
    "lossless_lost_frames": of.lossless_lost, "of all lossless flows";
} }

/// Returns the name of an ending in JSON and CSV.
pub(super) fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Drained => "drained",
        Ending::Undrained { .. } => "undrained",
        Ending::TooManyEvents => "too_many_events",
        Ending::Violated => "violated",
    }
}

object! { SPREAD, fn spread(of: &Spread) {
    "count": of.count, "number of times";
    "mean_ps": of.mean_ps(), "";
    "min_ps": of.least_ps, "";
    "p50_ps": of.p50_ps, "";
    "p99_ps": of.p99_ps, "";
    "max_ps": of.most_ps, "mean, shortest, median, 99th percentile, longest";
} }

fn flows(scenario: &Scenario, outcome: &Outcome) -> Vec<Value> {
    let groups = groups(scenario, outcome, usize::MAX);
    scenario.flows.iter().zip(&groups).map(|(node, group)| flow(scenario, node, group)).collect()
}

object! { FLOW, fn flow(scenario: &Scenario, node: &FlowNode, group: &Group) {
    "name": node.name, "";
    "from": scenario.hosts.get(node.from).map(|host| &host.name), "";
    "to": scenario.hosts.get(node.to).map(|host| &host.name), "strings: its name, and its hosts";
    "class": node.class, "";
    "priority": node.priority, "traffic class, and its priority";
    "lossless": node.lossless, "bool: its class is lossless at its first switch";
    "sent_frames": group.sum.sent_frames, "";
    "sent_bytes": group.sum.sent_bytes, "";
    "received_frames": group.sum.received_frames, "";
    "received_bytes": group.sum.received_bytes, "";
    "lost_frames": group.sum.lost_frames(), "sent, received, never arrived";
    "received_bits_per_second": whole(group.rate), "on the wire, from start to stop or last arrival";
    "marked_frames": group.sum.marked_frames, "";
    "cnps": group.sum.cnps, "received with CE; CNPs of its receiver";
    "late_frames": group.sum.late_frames, "";
    "duplicate_frames": group.sum.duplicate_frames, "overtaken; received again";
    "repeated_frames": group.sum.repeated_frames, "";
    "discarded_frames": group.sum.discarded_frames, "reliable flows: sent again; received and not used";
    "naks": group.sum.naks, "";
    "timeouts": group.sum.timeouts, "of the sender";
    "has_failed": group.sum.failed_flows > 0, "bool: the sender gave up";
    "latency": spread(&group.sum.latency), "object: of frames";
    "completion": spread(&group.sum.completion), "";
    "acknowledged": spread(&group.sum.acknowledged), "objects: of messages, until received and until acknowledged";
    "messages": group.sum.messages, "begun; `completion.count` are complete";
    "rate_at_end_bits_per_second": group.sum.rate_at_end, "that of its congestion control, else the flow's";
    "last_arrival_ps": group.sum.last_arrival_ps, "time of the last frame";
} }

object! { HOST, fn host(name: &str, host: &HostOutcome) {
    "name": name, "string";
    "pfc_received_frames": host.pfc_rx_frames, "";
    "pfc_sent_frames": host.pfc_tx_frames, "PFC frames";
    "paused_ps": host.paused_ps, "list: time held, by priority";
    "foreign_frames": host.foreign_frames, "received for others";
    "receive_highest_bytes": host.receive_highest_bytes, "most in the buffer of a slow receiver";
} }

fn switch(node: &SwitchNode, outcome: &SwitchOutcome) -> Value {
    let mut value = switch_without_hops(node, outcome);
    if !outcome.hops.is_empty() {
        let hops: Vec<Value> = outcome.hops.iter().map(|of| hop(node, of)).collect();
        add(&mut value, json!({ "next_hops": hops }));
    }
    value
}

object! { SWITCH, fn switch_without_hops(node: &SwitchNode, switch: &SwitchOutcome) {
    "name": node.name, "string";
    "cell_bytes": node.config.switch.buffer.cell.0, "size of a cell";
    "lossy_shared_highest_cells": switch.shared_highest_cells[0], "";
    "lossless_shared_highest_cells": switch.shared_highest_cells[1], "";
    "headroom_pool_highest_cells": switch.headroom_pool_highest_cells, "most used of each pool";
    "lossy_shared_at_stop_cells": switch.shared_at_stop_cells[0], "";
    "lossless_shared_at_stop_cells": switch.shared_at_stop_cells[1], "used when hosts stopped";
    "polls": switch.polls, "";
    "poll_gap_highest_ps": switch.poll_gap_highest_ps, "";
    "handed_off_frames": switch.handed_off_frames, "polls, longest gap, frames handed to other lcores";
    "ports": node.config.switch.ports.iter().zip(&switch.ports).map(|(spec, of)| port(&spec.name, of))
        .collect::<Vec<_>>(), "list";
} }

object! { HOP, fn hop(node: &SwitchNode, hop: &HopOutcome) {
    "port": node.config.switch.ports[hop.port].name, "";
    "frames": hop.frames, "string: the port that leads to the next hop; frames routed to it";
} }

object! { PORT, fn port(name: &str, port: &PortOutcome) {
    "name": name, "string";
    "classes": port.classes.iter().enumerate().filter(|(_, class)| !is_idle(class))
        .map(|(number, of)| class(number, of)).collect::<Vec<_>>(), "list";
    "unclassified_drops": drops(&port.unclassified_drops), "object: drops of frames without a class, by reason";
    "pfc_sent_frames": port.pfc_tx_frames, "";
    "pfc_received_frames": port.pfc_rx_frames, "PFC frames";
    "missed_frames": port.missed_frames, "";
    "missed_lossless_frames": port.missed_lossless_frames, "lost to a full receive ring; lossless ones of them";
    "ring_highest_frames": port.ring_highest_frames, "most in the receive ring";
    "backlog_xoffs": port.backlog_xoffs, "";
    "backlog_held_ps": port.backlog_held_ps, "XOFFs caused by receive backlog, and their time";
    "insurance_highest_cells": port.insurance_highest_cells, "most used of the insurance (`dynamic`)";
    "watchdog_storms": port.watchdog.0, "";
    "watchdog_restores": port.watchdog.1, "storms found, ended";
} }

/// Whether a class had no traffic. It would only repeat its configuration, so it is left out.
fn is_idle(class: &ClassOutcome) -> bool {
    let configured =
        ClassOutcome { lossless: class.lossless, headroom_cells: class.headroom_cells, ..Default::default() };
    *class == configured
}

object! { CLASS, fn class(number: usize, class: &ClassOutcome) {
    "class": number, "its number";
    "lossless": class.lossless, "bool";
    "received_frames": class.rx_frames, "";
    "sent_frames": class.tx_frames, "";
    "sent_bytes": class.tx_bytes, "";
    "marked_frames": class.marked_frames, "received; sent; marked CE";
    "cnms_made": class.cnms_made, "messages of QCN";
    "dropped_frames": class.dropped(), "";
    "drops": drops(&class.drops), "all drops; object: by reason";
    "pfc_sent_xoff": class.xoff_tx, "";
    "pauses_sent": class.pauses_tx, "";
    "pfc_sent_xon": class.xon_tx, "";
    "pfc_received_xoff": class.xoff_rx, "PFC frames; pauses of the peer";
    "peer_held_ps": class.held_ps, "";
    "held_ps": class.paused_ps, "time for which the port held its peer, and its peer the port";
    "group_highest_cells": class.used_highest_cells, "";
    "group_at_stop_cells": class.used_at_stop_cells, "in reserve and shared pool: most, and when hosts stopped";
    "headroom_highest_cells": class.headroom_highest_cells, "";
    "headroom_cells": class.headroom_cells, "most in headroom; its size";
    "queue_highest_cells": class.queue_highest_cells, "";
    "queue_at_stop_bytes": class.queue_at_stop_bytes, "in the queue: most, and when hosts stopped";
} }

fn drops(drops: &[(DropReason, u64)]) -> BTreeMap<&'static str, u64> {
    drops.iter().map(|(reason, count)| (reason.label(), *count)).collect()
}

fn links(scenario: &Scenario, outcome: &Outcome) -> Vec<Value> {
    scenario.links.iter().zip(&outcome.links).map(|(node, of)| link(scenario, node, of)).collect()
}

object! { LINK, fn link(scenario: &Scenario, node: &LinkNode, outcome: &LinkOutcome) {
    "name": node.name, "string";
    "ways": [way(scenario, node.a, outcome, 0), way(scenario, node.b, outcome, 1)], "list of two";
} }

object! { WAY, fn way(scenario: &Scenario, end: End, link: &LinkOutcome, way: usize) {
    "toward": end_name(scenario, end), "string: an end";
    "lost_frames": link.lost_frames[way], "";
    "lost_pfc_frames": link.lost_pfc_frames[way], "frames that faults took; PFC frames of them";
} }

object! { PAUSE, fn pause(scenario: &Scenario, pause: &Pause) {
    "link": scenario.links.get(pause.link).map(|link| &link.name), "";
    "held": scenario.links.get(pause.link)
        .map(|link| end_name(scenario, if pause.holds_a { link.a } else { link.b })), "strings: the link, its held end";
    "priority": pause.priority, "";
    "from_ps": pause.from_ps, "";
    "to_ps": pause.to_ps, "priority, begin and end";
} }

object! { SAMPLES, fn samples(scenario: &Scenario, samples: &Samples) {
    "every_ps": samples.every_ps, "";
    "count": samples.count, "time between two samples; their number";
    "ports": samples.ports.iter().map(|of| port_samples(scenario, of)).collect::<Vec<_>>(), "list";
    "flow_received_bytes": samples.flow_bytes, "";
    "flow_rate_megabits_per_second": samples.flow_rate_mbps, "lists by flow";
    "switch_pools": samples.pools.iter().map(pool_samples).collect::<Vec<_>>(), "list by switch";
} }

object! { PORT_SAMPLES, fn port_samples(scenario: &Scenario, port: &PortSeries) {
    "port": end_name(scenario, End::Port(port.port)), "string";
    "sent_bytes": port.tx_bytes, "";
    "classes": port.classes.iter().map(class_samples).collect::<Vec<_>>(), "lists";
} }

object! { CLASS_SAMPLES, fn class_samples(class: &ClassSeries) {
    "class": class.class, "its number";
    "queue_bytes": class.queue_bytes, "";
    "shared_cells": class.shared_cells, "";
    "headroom_cells": class.headroom_cells, "";
    "threshold_cells": class.threshold_cells, "";
    "xoff": class.xoff, "";
    "marked_frames": class.marked, "lists";
} }

object! { POOL_SAMPLES, fn pool_samples(pools: &[Vec<u32>; 2]) {
    "lossy_cells": pools[0], "";
    "lossless_cells": pools[1], "lists";
} }
