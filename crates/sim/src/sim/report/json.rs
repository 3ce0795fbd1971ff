//! A run as JSON: all counts, with units in their names. Names are part of the interface, as docs/json.md explains for
//! the switch's own report.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::csv::whole;
use super::group::{Group, groups};
use super::table::end_name;
use super::verdict::verdict;
use super::workloads_json;
use crate::plan::DropReason;
use crate::sim::outcome::{
    ClassOutcome, ClassSeries, Ending, HopOutcome, HostOutcome, LinkOutcome, Outcome, Pause, PortOutcome, PortSeries,
    Spread, SwitchOutcome,
};
use crate::sim::spec::{End, FlowNode, LinkNode, Scenario, SwitchNode};

/// Version of this format. It increases when names change.
const FORMAT: u32 = 1;

/// Returns the whole outcome. The pauses and the samples, which are long, are included only if `samples` is true.
#[must_use]
pub fn json(scenario: &Scenario, outcome: &Outcome, samples: bool) -> Value {
    let verdict = verdict(scenario, outcome);
    let violation = outcome.violation.as_ref().map(|violation| {
        json!({
            "invariant": violation.invariant,
            "at_ps": violation.at_ps,
            "event": violation.event,
            "what": violation.what,
        })
    });
    let hosts = scenario.hosts.iter().zip(&outcome.hosts);
    let switches = scenario.switches.iter().zip(&outcome.switches);
    let mut value = json!({
        "format": FORMAT,
        "scenario": scenario.name,
        "source": scenario.source,
        "seed": scenario.seed,
        "end_ps": outcome.end_ps,
        "sending_ps": outcome.sending_ps,
        "events": outcome.events,
        "invariant_checks": outcome.checks,
        "ending": ending(outcome.ending),
        "under_way_frames": if let Ending::Undrained { frames } = outcome.ending { frames } else { 0 },
        "violation": violation,
        "not_promised": outcome.waivers,
        "verdict": {
            "kept": verdict.kept,
            "starved": verdict.starved,
            "lossless_sent_frames": verdict.lossless_sent,
            "lossless_lost_frames": verdict.lossless_lost,
        },
        "flows": flows(scenario, outcome),
        "hosts": hosts.map(|(node, host)| self::host(&node.name, host)).collect::<Vec<_>>(),
        "switches": switches.map(|(node, switch)| self::switch(node, switch)).collect::<Vec<_>>(),
        "links": links(scenario, outcome),
        "pauses": outcome.pauses.len() as u64 + outcome.pauses_left_out,
    });
    if let Some(object) = value.as_object_mut().filter(|_| !scenario.workloads.is_empty()) {
        object.insert("workloads".to_owned(), workloads_json::workloads(scenario, outcome));
        object.insert("most_flows_at_once".to_owned(), outcome.most_flows_at_once.into());
        object.insert("pfc_tiers".to_owned(), workloads_json::pfc_tiers(scenario, outcome));
        object.insert("queues".to_owned(), outcome.queues.as_ref().map(workloads_json::queues).into());
    }
    if samples && let Some(object) = value.as_object_mut() {
        object.insert("pause_list".to_owned(), pauses(scenario, outcome));
        object.insert("pauses_left_out".to_owned(), outcome.pauses_left_out.into());
        object.insert("samples".to_owned(), self::samples(scenario, outcome));
    }
    value
}

/// Returns the name of an ending in JSON and CSV.
pub(super) fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Drained => "drained",
        Ending::Undrained { .. } => "undrained",
        Ending::TooManyEvents => "too_many_events",
        Ending::Violated => "violated",
    }
}

pub(super) fn spread(spread: &Spread) -> Value {
    json!({
        "count": spread.count,
        "mean_ps": spread.mean_ps(),
        "min_ps": spread.least_ps,
        "p50_ps": spread.p50_ps,
        "p99_ps": spread.p99_ps,
        "max_ps": spread.most_ps,
    })
}

fn flows(scenario: &Scenario, outcome: &Outcome) -> Vec<Value> {
    let host = |index: usize| scenario.hosts.get(index).map(|host| &host.name);
    let groups = groups(scenario, outcome, usize::MAX);
    let flow = |(spec, group): (&FlowNode, &Group)| {
        let flow = &group.sum;
        json!({
            "name": spec.name,
            "from": host(spec.from),
            "to": host(spec.to),
            "class": spec.class,
            "priority": spec.priority,
            "lossless": spec.lossless,
            "sent_frames": flow.sent_frames,
            "sent_bytes": flow.sent_bytes,
            "received_frames": flow.received_frames,
            "received_bytes": flow.received_bytes,
            "lost_frames": flow.lost_frames(),
            "received_bits_per_second": whole(group.rate),
            "marked_frames": flow.marked_frames,
            "cnps": flow.cnps,
            "late_frames": flow.late_frames,
            "duplicate_frames": flow.duplicate_frames,
            "repeated_frames": flow.repeated_frames,
            "discarded_frames": flow.discarded_frames,
            "naks": flow.naks,
            "timeouts": flow.timeouts,
            "has_failed": flow.failed_flows > 0,
            "latency": spread(&flow.latency),
            "messages": flow.messages,
            "completion": spread(&flow.completion),
            "acknowledged": spread(&flow.acknowledged),
            "rate_at_end_bits_per_second": flow.rate_at_end,
            "last_arrival_ps": flow.last_arrival_ps,
        })
    };
    scenario.flows.iter().zip(&groups).map(flow).collect()
}

fn host(name: &str, host: &HostOutcome) -> Value {
    json!({
        "name": name,
        "pfc_received_frames": host.pfc_rx_frames,
        "pfc_sent_frames": host.pfc_tx_frames,
        "paused_ps": host.paused_ps,
        "foreign_frames": host.foreign_frames,
        "receive_highest_bytes": host.receive_highest_bytes,
    })
}

fn switch(node: &SwitchNode, switch: &SwitchOutcome) -> Value {
    let spec = &node.config.switch;
    let ports = spec.ports.iter().zip(&switch.ports);
    let mut value = json!({
        "name": node.name,
        "cell_bytes": spec.buffer.cell.0,
        "lossy_shared_highest_cells": switch.shared_highest_cells[0],
        "lossless_shared_highest_cells": switch.shared_highest_cells[1],
        "lossy_shared_at_stop_cells": switch.shared_at_stop_cells[0],
        "lossless_shared_at_stop_cells": switch.shared_at_stop_cells[1],
        "headroom_pool_highest_cells": switch.headroom_pool_highest_cells,
        "polls": switch.polls,
        "poll_gap_highest_ps": switch.poll_gap_highest_ps,
        "handed_off_frames": switch.handed_off_frames,
        "ports": ports.map(|(spec, port)| self::port(&spec.name, port)).collect::<Vec<_>>(),
    });
    if let Some(object) = value.as_object_mut().filter(|_| !switch.hops.is_empty()) {
        let hop = |hop: &HopOutcome| json!({"port": spec.ports[hop.port].name, "frames": hop.frames});
        object.insert("next_hops".to_owned(), switch.hops.iter().map(hop).collect());
    }
    value
}

fn port(name: &str, port: &PortOutcome) -> Value {
    // A class without traffic only repeats its configuration, so it is left out.
    let idle = |class: &ClassOutcome| {
        let configured =
            ClassOutcome { lossless: class.lossless, headroom_cells: class.headroom_cells, ..Default::default() };
        *class == configured
    };
    let classes = port.classes.iter().enumerate().filter(|(_, class)| !idle(class));
    json!({
        "name": name,
        "classes": classes.map(|(number, class)| self::class(number, class)).collect::<Vec<_>>(),
        "unclassified_drops": drops(&port.unclassified_drops),
        "pfc_sent_frames": port.pfc_tx_frames,
        "pfc_received_frames": port.pfc_rx_frames,
        "missed_frames": port.missed_frames,
        "missed_lossless_frames": port.missed_lossless_frames,
        "ring_highest_frames": port.ring_highest_frames,
        "backlog_xoffs": port.backlog_xoffs,
        "backlog_held_ps": port.backlog_held_ps,
        "insurance_highest_cells": port.insurance_highest_cells,
        "watchdog_storms": port.watchdog.0,
        "watchdog_restores": port.watchdog.1,
    })
}

fn class(number: usize, class: &ClassOutcome) -> Value {
    json!({
        "class": number,
        "lossless": class.lossless,
        "received_frames": class.rx_frames,
        "sent_frames": class.tx_frames,
        "sent_bytes": class.tx_bytes,
        "marked_frames": class.marked_frames,
        "cnms_made": class.cnms_made,
        "dropped_frames": class.dropped(),
        "drops": drops(&class.drops),
        "pfc_sent_xoff": class.xoff_tx,
        "pauses_sent": class.pauses_tx,
        "pfc_sent_xon": class.xon_tx,
        "pfc_received_xoff": class.xoff_rx,
        "peer_held_ps": class.held_ps,
        "held_ps": class.paused_ps,
        "group_highest_cells": class.used_highest_cells,
        "group_at_stop_cells": class.used_at_stop_cells,
        "headroom_highest_cells": class.headroom_highest_cells,
        "headroom_cells": class.headroom_cells,
        "queue_highest_cells": class.queue_highest_cells,
        "queue_at_stop_bytes": class.queue_at_stop_bytes,
    })
}

fn drops(drops: &[(DropReason, u64)]) -> BTreeMap<&'static str, u64> {
    drops.iter().map(|(reason, count)| (reason.label(), *count)).collect()
}

fn links(scenario: &Scenario, outcome: &Outcome) -> Vec<Value> {
    let link = |(node, link): (&LinkNode, &LinkOutcome)| {
        let way = |way: usize, end| {
            json!({
                "toward": end_name(scenario, end),
                "lost_frames": link.lost_frames[way],
                "lost_pfc_frames": link.lost_pfc_frames[way],
            })
        };
        json!({"name": node.name, "ways": [way(0, node.a), way(1, node.b)]})
    };
    scenario.links.iter().zip(&outcome.links).map(link).collect()
}

fn pauses(scenario: &Scenario, outcome: &Outcome) -> Value {
    let pause = |pause: &Pause| {
        let link = scenario.links.get(pause.link);
        let held = link.map(|link| end_name(scenario, if pause.holds_a { link.a } else { link.b }));
        json!({
            "link": link.map(|link| &link.name),
            "held": held,
            "priority": pause.priority,
            "from_ps": pause.from_ps,
            "to_ps": pause.to_ps,
        })
    };
    outcome.pauses.iter().map(pause).collect()
}

fn samples(scenario: &Scenario, outcome: &Outcome) -> Value {
    let samples = &outcome.samples;
    let class = |class: &ClassSeries| {
        json!({
            "class": class.class,
            "queue_bytes": class.queue_bytes,
            "shared_cells": class.shared_cells,
            "headroom_cells": class.headroom_cells,
            "threshold_cells": class.threshold_cells,
            "xoff": class.xoff,
            "marked_frames": class.marked,
        })
    };
    let port = |port: &PortSeries| {
        json!({
            "port": end_name(scenario, End::Port(port.port)),
            "sent_bytes": port.tx_bytes,
            "classes": port.classes.iter().map(class).collect::<Vec<_>>(),
        })
    };
    let pool = |[lossy, lossless]: &[Vec<u32>; 2]| json!({"lossy_cells": lossy, "lossless_cells": lossless});
    json!({
        "every_ps": samples.every_ps,
        "count": samples.count,
        "ports": samples.ports.iter().map(port).collect::<Vec<_>>(),
        "flow_received_bytes": samples.flow_bytes,
        "flow_rate_megabits_per_second": samples.flow_rate_mbps,
        "switch_pools": samples.pools.iter().map(pool).collect::<Vec<_>>(),
    })
}
