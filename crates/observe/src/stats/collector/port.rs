//! Metrics of ports: traffic, drops and flow control.

use super::family::{Families, Family, watermark};
use super::lcore::seconds;
use crate::plan::DropReason;
use crate::sets::{CLASSES, ClassSet, NUMBERS};
use crate::stats::snapshot::{PortSnapshot, Snapshot, Values};
use crate::stats::switch_view::SwitchView;
use crate::text::format::wire_rate;

/// Name and help of a family, and its eight values for a port.
pub(super) type ClassRow = (&'static str, &'static str, fn(&PortSnapshot) -> &Values);

const RECEIVED: [ClassRow; 2] = [
    ("holdfast_port_received_frames_total", "Data frames received, without PFC and malformed ones.", |port| {
        &port.rx_frames
    }),
    ("holdfast_port_received_bytes_total", "Bytes of data frames received.", |port| &port.rx_bytes),
];

const SENT: [ClassRow; 3] = [
    ("holdfast_port_sent_frames_total", "Data frames sent.", |port| &port.tx_frames),
    ("holdfast_port_sent_bytes_total", "Bytes of data frames sent.", |port| &port.tx_bytes),
    ("holdfast_ecn_marked_frames_total", "Frames marked Congestion Experienced.", |port| &port.ecn_marked),
];

const FLOW_CONTROL: [ClassRow; 6] = [
    ("holdfast_pfc_sent_xoff_total", "XOFFs sent, with refreshes.", |port| &port.pfc_tx_xoff),
    ("holdfast_pfc_sent_xon_total", "XONs sent, one at each link-up included.", |port| &port.pfc_tx_xon),
    ("holdfast_pfc_queue_stops_total", "Times that XOFF [stopped receive queues](pfc.md#pfc-by-queue).", |port| {
        &port.queue_stops
    }),
    ("holdfast_pfc_received_xoff_total", "XOFFs received.", |port| &port.pfc_rx_xoff),
    ("holdfast_pfc_received_xon_total", "XONs received.", |port| &port.pfc_rx_xon),
    ("holdfast_pfc_received_ignored_total", "XOFFs received and not obeyed because of the watchdog.", |port| {
        &port.pfc_rx_ignored
    }),
];

fn per_class(families: &mut Families, table: &[ClassRow], label: &str, switch_view: &SwitchView, snapshot: &Snapshot) {
    for (name, help, of) in table {
        let family = families.counter(name, help);
        for (index, port) in snapshot.ports.iter().enumerate() {
            for (number, value) in NUMBERS.iter().zip(of(port)) {
                family.add(&[("port", switch_view.port_name(index)), (label, number)], *value);
            }
        }
    }
}

/// Frames, bytes, paced rate and stuck state of each port.
pub(super) fn traffic(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    per_class(families, &RECEIVED, "tc", switch_view, snapshot);
    per_class(families, &SENT, "queue", switch_view, snapshot);
    let help = "Pacing rate, with preamble and gap.";
    let family = families.gauge("holdfast_port_speed_bytes_per_second", help);
    for port in &switch_view.spec.ports {
        family.add(&[("port", &port.name)], port.rate.0 / 8);
    }
    let help = "1 while the port is [stuck](configuration.md#stuck_after): its frames are dropped.";
    let stuck = |port: &PortSnapshot| u64::from(port.egress_stuck);
    per_port(families.gauge("holdfast_port_egress_stuck", help), switch_view, snapshot, stuck);
    let help = "Times that the port got stuck.";
    per_port(families.counter("holdfast_port_egress_stucks_total", help), switch_view, snapshot, |port| {
        port.egress_stucks
    });
    let help = "Times that the link came up, with the start.";
    per_port(families.counter("holdfast_port_link_ups_total", help), switch_view, snapshot, |port| port.link_ups);
    let overhead = wire_rate(1, 0, 8.0);
    let help = "Preamble, check sequence and gap of a frame.";
    families.gauge("holdfast_wire_overhead_bytes", help).add_real(&[], overhead);
}

/// The stations of each port, their limit, and what gave way.
pub(super) fn stations(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let help = "Stations learned at the port; those of a group at its first port.";
    per_port(families.gauge("holdfast_port_fdb_entries", help), switch_view, snapshot, |port| port.fdb_stations);
    let help = "Most stations of the port ([`fdb.limit`](configuration.md#fdb)).";
    let family = families.gauge("holdfast_port_fdb_limit", help);
    for port in &switch_view.spec.ports {
        family.add(&[("port", &port.name)], u64::from(port.fdb_limit));
    }
    let help = "Stations that gave way: at the limit of the port, or because it has most in a full database.";
    per_port(families.counter("holdfast_port_fdb_evicted_total", help), switch_view, snapshot, |port| port.fdb_evicted);
    let help = "Frames whose source was not learned, at the limit of the port.";
    per_port(families.counter("holdfast_port_fdb_refused_total", help), switch_view, snapshot, |port| port.fdb_refused);
}

/// Drops by reason; the help text names each.
pub(super) fn drops(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let meanings = DropReason::TABLE.iter().map(|(_, label, meaning)| format!("{label}: {meaning}"));
    let help = format!("Frames dropped. Reasons: {}.", meanings.collect::<Vec<_>>().join("; "));
    let family = families.counter("holdfast_port_dropped_frames_total", &help);
    for (index, port) in snapshot.ports.iter().enumerate() {
        let name = switch_view.port_name(index);
        for (reason, label, _) in DropReason::TABLE {
            let mut remaining = port.drops[CLASSES][*reason as usize];
            let occurs_here = switch_view.spec.routing.is_some() || !reason.is_of_routing();
            for (class, number) in NUMBERS.iter().enumerate() {
                // A count stays in the series that it had at the time, so that none goes back if the class changes.
                let [lost, others] = port.dropped_by_kind(class, *reason);
                let own = if reason.is_congestion() { lost + others } else { lost };
                let is_ever = switch_view.ever_lossless().contains(class);
                let has_series = can_occur(*reason, is_ever) || can_occur(*reason, switch_view.is_lossless(class));
                remaining += lost + others - own;
                if has_series && occurs_here || reason.is_congestion() && own > 0 {
                    family.add(&[("port", name), ("tc", number), ("reason", label)], own);
                } else {
                    remaining += own;
                }
            }
            let is_usual = !reason.is_congestion() && occurs_here;
            if is_usual || remaining > 0 {
                family.add(&[("port", name), ("tc", "any"), ("reason", label)], remaining);
            }
        }
    }
}

/// Whether a class of this kind has a series of its own for this reason. It has one if the reason is a want of buffer
/// that can affect it. If such a drop occurs against the rules, its series is added then. It also has one if the class
/// is lossless and the reason affects frames that could have been forwarded.
fn can_occur(reason: DropReason, lossless: bool) -> bool {
    match reason {
        DropReason::HeadroomFull | DropReason::HeadroomPoolEmpty | DropReason::Watchdog => lossless,
        DropReason::EgressDown | DropReason::EgressMtu | DropReason::EgressStuck | DropReason::AdminDown => lossless,
        DropReason::LosslessUnknown
        | DropReason::LosslessGroup
        | DropReason::LagInactive
        | DropReason::MirrorOutput => lossless,
        DropReason::NoRoute | DropReason::NeighbourIncomplete | DropReason::Blackhole => lossless,
        DropReason::FragmentationNeeded | DropReason::FragmentationUnsupported => lossless,
        DropReason::NoBuffer => true,
        _ => reason.is_congestion() && !lossless,
    }
}

/// Name and help of a family, and its value for a port.
type Row<T> = (&'static str, &'static str, fn(&PortSnapshot) -> T);

/// PFC in both directions, and its standing.
pub(super) fn flow_control(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    per_class(families, &FLOW_CONTROL, "priority", switch_view, snapshot);
    let totals: [Row<u64>; 3] = [
        ("holdfast_pfc_sent_frames_total", "PFC frames sent, for one or more priorities.", |port| port.pfc_tx_frames),
        ("holdfast_pfc_received_frames_total", "PFC frames received.", |port| port.pfc_rx_frames),
        ("holdfast_pause_received_frames_total", "Classic PAUSE frames received, ignored.", |port| {
            port.pause_rx_frames
        }),
    ];
    for (name, help, of) in totals {
        per_port(families.counter(name, help), switch_view, snapshot, of);
    }
    paused_times(families, switch_view, snapshot);
    held_times(families, switch_view, snapshot);
    congestion_points(families, switch_view, snapshot);
    roce(families, switch_view, snapshot);
    let sets: [Row<ClassSet>; 2] = [
        ("holdfast_pfc_xoff", "1 while this port holds its peer at XOFF.", |port| port.xoff_mask),
        ("holdfast_pfc_paused", "1 while the peer holds this port at XOFF.", |port| port.paused_mask),
    ];
    for (name, help, of) in sets {
        let family = families.gauge(name, help);
        for (index, port) in snapshot.ports.iter().enumerate() {
            for (class, number) in NUMBERS.iter().enumerate() {
                let labels = [("port", switch_view.port_name(index)), ("priority", number)];
                family.add(&labels, u64::from(of(port).contains(class)));
            }
        }
    }
    let help = "1 while the whole port is XOFF (`dynamic`).";
    per_port(families.gauge("holdfast_port_xoff", help), switch_view, snapshot, |port| u64::from(port.port_xoff));
    receive_queues(families, switch_view, snapshot);
    super::peer::peers(families, switch_view, snapshot);
    standing(families, switch_view);
}

/// The classes in each receive queue of ports with several queues, or with `pfc: queue`.
fn receive_queues(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let help = "1 if the queue carried this lossless group, or `lossy` frames, in the last second or two; only \
        with several queues or `pfc: queue`.";
    let family = families.gauge("holdfast_receive_queue_carries", help);
    for (spec, port) in switch_view.spec.ports.iter().zip(&snapshot.ports).filter(|(spec, _)| spec.has_managed_queues())
    {
        for (queue, carried) in NUMBERS.iter().zip(&port.rx_queue_carries).take(spec.rx_queues.into()) {
            let groups = NUMBERS.iter().copied().chain(["lossy"]);
            for (_, group) in groups.enumerate().filter(|(bit, _)| carried >> bit & 1 == 1) {
                family.add(&[("port", &spec.name), ("queue", queue), ("group", group)], 1);
            }
        }
    }
}

/// Classes of RoCEv2 packets without data of applications, and the frames that got them.
fn roce(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let help = "Class of RoCE `ack` (ACKs, NAKs) or `cnp` (with `maps.roce`).";
    let family = families.gauge("holdfast_port_roce_class", help);
    for port in &switch_view.spec.ports {
        for (kind, class) in port.live.marks.roce.entries() {
            if let Some(class) = class {
                family.add(&[("port", &port.name), ("kind", kind)], class.into());
            }
        }
    }
    let help = "Received RoCE `ack` or `cnp` that got their class (with `maps.roce`).";
    let family = families.counter("holdfast_port_roce_frames_total", help);
    for ((index, port), spec) in snapshot.ports.iter().enumerate().zip(&switch_view.spec.ports) {
        for ((kind, class), frames) in spec.live.marks.roce.entries().into_iter().zip(port.roce_frames) {
            if class.is_some() || frames > 0 {
                family.add(&[("port", switch_view.port_name(index)), ("kind", kind)], frames);
            }
        }
    }
}

/// Times for which queues were held by their maximum rates.
fn held_times(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let help = "Time with frames, held by the maximum rate (with `max_rate`).";
    let family = families.counter("holdfast_queue_max_rate_held_seconds_total", help);
    for ((index, port), spec) in snapshot.ports.iter().enumerate().zip(&switch_view.spec.ports) {
        for (queue, number) in NUMBERS.iter().enumerate().filter(|(queue, _)| spec.live.max_rates[*queue].is_some()) {
            let labels = [("port", switch_view.port_name(index)), ("queue", *number)];
            family.add_real(&labels, seconds(port.max_rate_held_ns[queue]));
        }
    }
}

/// Messages of QCN: made by congestion points, and sent.
fn congestion_points(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let points = &switch_view.spec.congestion_points;
    let help = "[Messages of QCN](congestion-control.md#qcn) that the congestion point made (with `qcn`).";
    let family = families.counter("holdfast_qcn_made_messages_total", help);
    for (index, port) in snapshot.ports.iter().enumerate() {
        for (queue, number) in NUMBERS.iter().enumerate().filter(|(queue, _)| points[*queue].is_some()) {
            family.add(&[("port", switch_view.port_name(index)), ("queue", number)], port.cnms_made[queue]);
        }
    }
    let help = "Messages of QCN that left by this port (with `qcn`).";
    let family = families.counter("holdfast_qcn_sent_messages_total", help);
    for (index, port) in snapshot.ports.iter().enumerate().filter(|_| switch_view.spec.has_congestion_points()) {
        family.add(&[("port", switch_view.port_name(index))], port.cnms_sent);
    }
}

/// Times for which each direction was paused.
fn paused_times(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let times: [ClassRow; 2] = [
        ("holdfast_pfc_sent_paused_seconds_total", "Time that this port held its peer.", |port| &port.pfc_tx_paused_ns),
        ("holdfast_pfc_received_paused_seconds_total", "Time that the peer held this port, obeyed or not.", |port| {
            &port.pfc_rx_paused_ns
        }),
    ];
    for (name, help, of) in times {
        let family = families.counter(name, help);
        for (index, port) in snapshot.ports.iter().enumerate() {
            for (number, ns) in NUMBERS.iter().zip(of(port)) {
                family.add_real(&[("port", switch_view.port_name(index)), ("priority", number)], seconds(*ns));
            }
        }
    }
}

/// PFC mode and PFC standing of each port, and its description.
fn standing(families: &mut Families, switch_view: &SwitchView) {
    let help = "1 for the port, with its [`description`](configuration.md#ports) if it has one.";
    let family = families.gauge("holdfast_port_info", help);
    for port in &switch_view.spec.ports {
        // An empty label is no label to Prometheus.
        let labels = [("port", port.name.as_str()), ("description", &port.live.description)];
        family.add(if port.live.description.is_empty() { &labels[..1] } else { &labels }, 1);
    }
    let family =
        families.gauge("holdfast_port_enabled", "1 while the port is in use, 0 if [shut](reload.md#shutting-a-port).");
    for port in &switch_view.spec.ports {
        family.add(&[("port", &port.name)], u64::from(!port.is_shut()));
    }
    let help = "1 for the PFC [mode](pfc.md#modes).";
    let family = families.gauge("holdfast_pfc_mode_info", help);
    for port in &switch_view.spec.ports {
        family.add(&[("port", &port.name), ("mode", port.pfc.label())], 1);
    }
    let help = "1 for the [standing](nics.md) of the port's PFC.";
    let family = families.gauge("holdfast_pfc_standing", help);
    for index in 0..switch_view.pfc.len() {
        family.add(&[("port", switch_view.port_name(index)), ("standing", switch_view.standing(index).label())], 1);
    }
    let help = "1 for the state of the [device's own](nics.md) flow control.";
    let family = families.gauge("holdfast_device_flow_control", help);
    for index in 0..switch_view.pfc.len() {
        family
            .add(&[("port", switch_view.port_name(index)), ("state", switch_view.flow_control.get(index).label())], 1);
    }
}

/// Frames that polls leave in receive rings because the core cannot keep up.
pub(super) fn backlog(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot, ever: &Snapshot) {
    let help = "Frames left in the receive ring that cause XOFF, if any do.";
    let family = families.gauge("holdfast_backlog_mark_frames", help);
    for port in &switch_view.spec.ports {
        if let Some(mark) = port.backlog_mark {
            family.add(&[("port", &port.name)], u64::from(mark));
        }
    }
    let help = "Frames left by the last poll that left any.";
    per_port(families.gauge("holdfast_backlog_frames", help), switch_view, snapshot, |port| port.backlog_frames);
    let marks = watermark("holdfast_backlog_highest_frames", "Most frames that a poll left", [snapshot, ever]);
    for (name, help, from) in marks {
        per_port(families.gauge(&name, &help), switch_view, from, |port| port.backlog_highest_frames);
    }
    let help = "XOFFs caused by frames left in the receive ring.";
    per_port(families.counter("holdfast_backlog_xoffs_total", help), switch_view, snapshot, |port| port.backlog_xoffs);
    let help = "Time at XOFF because of frames left in the receive ring.";
    let family = families.counter("holdfast_backlog_held_seconds_total", help);
    for (index, port) in snapshot.ports.iter().enumerate() {
        family.add_real(&[("port", switch_view.port_name(index))], seconds(port.backlog_held_ns));
    }
}

fn per_port(family: &mut Family, switch_view: &SwitchView, snapshot: &Snapshot, of: impl Fn(&PortSnapshot) -> u64) {
    for (index, port) in snapshot.ports.iter().enumerate() {
        family.add(&[("port", switch_view.port_name(index))], of(port));
    }
}
