//! Flows between virtual hosts, end to end.

use super::family::Families;
use crate::hosts::{FlowTally, HostCounters};

type Row = (&'static str, &'static str, fn(&FlowTally) -> u64);

const COUNTERS: [Row; 6] = [
    ("holdfast_flow_sent_frames_total", "Frames sent.", |flow| flow.sent_frames.get()),
    ("holdfast_flow_received_frames_total", "Frames received whole, each number once.", |flow| {
        flow.received_frames.get()
    }),
    ("holdfast_flow_late_frames_total", "Frames received after a later one.", |flow| flow.late_frames.get()),
    ("holdfast_flow_duplicate_frames_total", "Frames received again.", |flow| flow.duplicate_frames.get()),
    ("holdfast_flow_corrupt_frames_total", "Frames received with a wrong bit.", |flow| flow.corrupt_frames.get()),
    ("holdfast_flow_ce_frames_total", "Frames received with Congestion Experienced.", |flow| flow.ce_frames.get()),
];

/// Counters of each flow, labelled with its number and the names of its hosts.
pub(super) fn flows(families: &mut Families, hosts: &HostCounters) {
    for (name, help, of) in COUNTERS {
        let family = families.counter(name, help);
        for (number, flow) in hosts.flows.iter().enumerate() {
            let name = |host: usize| hosts.hosts[host].name.as_str();
            let (number, class) = (number.to_string(), flow.info.class.to_string());
            let to = flow.info.to.map_or("outside", name);
            let labels = [("flow", number.as_str()), ("from", name(flow.info.from)), ("to", to), ("tc", &class)];
            family.add(&labels, of(flow));
        }
    }
}
