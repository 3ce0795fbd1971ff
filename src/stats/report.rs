//! The final report, as data: what the tables show to people and `--json` to machines.
//!
//! Names of fields are part of the interface: they may be added to, and change only with [`FORMAT`]. Sizes are bytes
//! without the frame check sequence, rates are bits a second on the wire with preamble and gap, times say their unit.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::format::wire_rate;
use super::snapshot::{PortSnapshot, Snapshot, cells};
use super::subject::{PfcStanding, Subject};
use super::verdict::Verdict;
use crate::dataplane::DropReason;
use crate::dataplane::counters::UNCLASSIFIED;
use crate::hosts::{FlowKind, FlowTally, HostCounters, HostTally};
use crate::qos::CLASSES;
use crate::units::Cells;

/// Version of the report's format.
pub const FORMAT: u32 = 1;

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program.
    pub version: &'static str,
    /// How long traffic ran: what rates are computed with.
    pub seconds: f64,
    /// Every port.
    pub ports: Vec<PortReport>,
    /// The shared pools.
    pub pools: Vec<PoolReport>,
    /// The dataplane's polls.
    pub polls: PollReport,
    /// What is still in the buffer; all zero after a drain.
    pub held: HeldReport,
    /// Virtual hosts.
    pub hosts: Vec<HostReport>,
    /// Their flows, end to end.
    pub flows: Vec<FlowReport>,
    /// Whether the promise was kept.
    pub verdict: Verdict,
}

/// One port.
#[derive(Debug, Clone, Serialize)]
pub struct PortReport {
    /// Its name.
    pub name: String,
    /// Rate it is paced to.
    pub rate_bits_per_second: u64,
    /// Whether its PFC can be relied upon.
    pub pfc: PfcStanding,
    /// Whether its link is up.
    pub link_up: bool,
    /// Frames lost to a full receive ring.
    pub receive_missed_frames: u64,
    /// Frames lost to an empty buffer pool before admission.
    pub receive_no_buffer_frames: u64,
    /// PFC frames sent.
    pub pfc_sent_frames: u64,
    /// PFC frames received.
    pub pfc_received_frames: u64,
    /// Classic PAUSE frames received and ignored.
    pub pause_received_frames: u64,
    /// Classes in which something happened.
    pub classes: Vec<ClassReport>,
}

/// One class on one port. With maps that are not one to one, `received` and drops are of the traffic class, `sent` and
/// marks of the queue, PFC and the group's use of the priority with this number.
#[derive(Debug, Clone, Serialize)]
pub struct ClassReport {
    /// Its number; null for frames dropped before they had a class.
    pub class: Option<usize>,
    /// Whether it is meant to be lossless.
    pub lossless: bool,
    /// Frames received.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames dropped.
    pub dropped_frames: u64,
    /// Of those, by reason; only reasons that occurred.
    pub drops: BTreeMap<&'static str, u64>,
    /// PFC frames sent that told the peer to stop.
    pub pfc_sent_xoff: u64,
    /// PFC frames sent that told it to go on.
    pub pfc_sent_xon: u64,
    /// PFC frames received that told this port to stop.
    pub pfc_received_xoff: u64,
    /// PFC frames received that told it to go on.
    pub pfc_received_xon: u64,
    /// Frames marked Congestion Experienced.
    pub ecn_marked_frames: u64,
    /// Most bytes of buffer, in whole cells, that frames received here held in reserve and shared pool.
    pub group_highest_bytes: u64,
    /// Most they held in headroom.
    pub headroom_highest_bytes: u64,
    /// Most that waited in the egress queue.
    pub queue_highest_bytes: u64,
}

/// One shared pool.
#[derive(Debug, Clone, Serialize)]
pub struct PoolReport {
    /// `lossless` or `lossy`.
    pub name: &'static str,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes in use, in whole cells.
    pub used_bytes: u64,
    /// Most ever in use.
    pub highest_bytes: u64,
}

/// How promptly the dataplane polled.
#[derive(Debug, Clone, Serialize)]
pub struct PollReport {
    /// Polls of all ports.
    pub polls: u64,
    /// Of those, how many moved a frame.
    pub busy_polls: u64,
    /// 99 % of gaps between polls were shorter than this (a power of two).
    pub gap_p99_ns: Option<u64>,
    /// The longest.
    pub gap_highest_ns: u64,
}

/// What is still in the buffer.
#[derive(Debug, Clone, Serialize)]
pub struct HeldReport {
    /// Cells not released.
    pub cells: u64,
    /// Frames in egress queues.
    pub frames: u64,
}

/// One virtual host.
#[derive(Debug, Clone, Serialize)]
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// Its switch port.
    pub port: String,
    /// PFC frames it received.
    pub pfc_received_frames: u64,
    /// Time for which it was told to stop, by class; only classes that were.
    pub paused_ns: BTreeMap<usize, u64>,
    /// Frames it received that are of no flow to it.
    pub foreign_frames: u64,
}

/// One flow, end to end.
#[derive(Debug, Clone, Serialize)]
pub struct FlowReport {
    /// Sending host.
    pub from: String,
    /// Receiving host; null for a station outside, of which nothing is known.
    pub to: Option<String>,
    /// `roce` or `udp`.
    pub kind: &'static str,
    /// Its class.
    pub class: u8,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames received, each number once.
    pub received_frames: u64,
    /// Frames sent and never received; null if the receiver is outside.
    pub lost_frames: Option<u64>,
    /// Of those received, how many were overtaken.
    pub late_frames: u64,
    /// Frames received a second time.
    pub duplicate_frames: u64,
    /// Frames received with a wrong bit.
    pub corrupt_frames: u64,
    /// Frames received with Congestion Experienced.
    pub ce_frames: u64,
    /// Rate at which it was received.
    pub received_bits_per_second: f64,
    /// Half of all frames took no longer; within 12.5 %.
    pub latency_p50_ns: Option<u64>,
    /// 99 % of all frames took no longer; within 12.5 %.
    pub latency_p99_ns: Option<u64>,
    /// The longest any frame took.
    pub latency_highest_ns: Option<u64>,
}

impl Report {
    /// The report on what `subject` has counted, after `traffic` of traffic and a drain.
    #[must_use]
    pub fn new(subject: &Subject, traffic: Duration) -> Self {
        let snapshot = &Snapshot::take(subject, traffic);
        let seconds = traffic.as_secs_f64();
        let hosts = subject.hosts.as_deref();
        let (hosts, flows) = hosts.map_or_else(Default::default, |hosts| {
            let host_reports: Vec<_> = hosts.hosts.iter().map(|host| host_report(subject, hosts, host)).collect();
            let flow_reports: Vec<_> = hosts.flows.iter().map(|flow| flow_report(hosts, flow, seconds)).collect();
            (host_reports, flow_reports)
        });
        Self {
            format: FORMAT,
            version: subject.version,
            seconds,
            ports: (0..snapshot.ports.len()).map(|port| port_report(subject, snapshot, port)).collect(),
            pools: pool_reports(subject, snapshot),
            polls: PollReport {
                polls: snapshot.lcore.polls,
                busy_polls: snapshot.lcore.busy_polls,
                gap_p99_ns: snapshot.lcore.poll_gap_quantile_ns(990),
                gap_highest_ns: snapshot.lcore.poll_gap_highest_ns,
            },
            held: HeldReport { cells: snapshot.held_cells(), frames: snapshot.lcore.held_frames },
            hosts,
            flows,
            verdict: Verdict::new(subject, snapshot),
        }
    }

    /// Whether nothing was lost that must not be.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        self.verdict.is_kept()
    }

    /// The report as one JSON document, indented, with a line end.
    ///
    /// # Panics
    /// Never: nothing in it can fail to be written.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps have string or number keys and no value can fail") + "\n"
    }
}

fn port_report(subject: &Subject, snapshot: &Snapshot, index: usize) -> PortReport {
    let port = &snapshot.ports[index];
    PortReport {
        name: subject.port_name(index).to_owned(),
        rate_bits_per_second: subject.spec.ports.get(index).map_or(0, |port| port.rate.0),
        pfc: subject.pfc.get(index).copied().unwrap_or(PfcStanding::Off),
        link_up: port.device.link_up,
        receive_missed_frames: port.device.rx_missed,
        receive_no_buffer_frames: port.device.rx_no_buffer,
        pfc_sent_frames: port.pfc_tx_frames,
        pfc_received_frames: port.pfc_rx_frames,
        pause_received_frames: port.pause_rx_frames,
        classes: (0..=UNCLASSIFIED).filter_map(|row| class_report(subject, port, row)).collect(),
    }
}

/// The class in `row` of the drops; `None` if nothing happened in it.
fn class_report(subject: &Subject, port: &PortSnapshot, row: usize) -> Option<ClassReport> {
    let drops: BTreeMap<_, _> = DropReason::TABLE
        .iter()
        .map(|(reason, label, _)| (*label, port.drops[row][*reason as usize]))
        .filter(|(_, frames)| *frames > 0)
        .collect();
    let class = (row < CLASSES).then_some(row);
    let of = |values: &[u64; CLASSES]| class.map_or(0, |class| values[class]);
    let bytes = |values: &[u64; CLASSES]| in_bytes(subject, of(values));
    let report = ClassReport {
        class,
        lossless: class.is_some_and(|class| subject.is_lossless(class)),
        received_frames: of(&port.rx_frames),
        received_bytes: of(&port.rx_bytes),
        sent_frames: of(&port.tx_frames),
        sent_bytes: of(&port.tx_bytes),
        dropped_frames: drops.values().sum(),
        drops,
        pfc_sent_xoff: of(&port.pfc_tx_xoff),
        pfc_sent_xon: of(&port.pfc_tx_xon),
        pfc_received_xoff: of(&port.pfc_rx_xoff),
        pfc_received_xon: of(&port.pfc_rx_xon),
        ecn_marked_frames: of(&port.ecn_marked),
        group_highest_bytes: bytes(&port.group_used_highest_cells),
        headroom_highest_bytes: bytes(&port.group_headroom_highest_cells),
        queue_highest_bytes: bytes(&port.queue_highest_cells),
    };
    report.has_news().then_some(report)
}

impl ClassReport {
    fn has_news(&self) -> bool {
        let pfc = [self.pfc_sent_xoff, self.pfc_sent_xon, self.pfc_received_xoff, self.pfc_received_xon];
        [self.received_frames, self.sent_frames, self.dropped_frames].iter().chain(&pfc).any(|count| *count > 0)
    }
}

fn pool_reports(subject: &Subject, snapshot: &Snapshot) -> Vec<PoolReport> {
    let (plan, lcore) = (&subject.spec.buffer, &snapshot.lcore);
    let pool = |name, size: Cells, used, highest| PoolReport {
        name,
        size_bytes: size.to_bytes(plan.cell).0,
        used_bytes: in_bytes(subject, used),
        highest_bytes: in_bytes(subject, highest),
    };
    vec![
        pool("lossless", plan.lossless_shared, lcore.lossless_used_cells, lcore.lossless_used_highest_cells),
        pool("lossy", plan.lossy_shared, lcore.lossy_used_cells, lcore.lossy_used_highest_cells),
    ]
}

fn host_report(subject: &Subject, hosts: &HostCounters, host: &HostTally) -> HostReport {
    let paused = host.paused_ticks.iter().enumerate().map(|(class, ticks)| (class, hosts.nanos(ticks.get())));
    HostReport {
        name: host.name.clone(),
        port: subject.port_name(host.port).to_owned(),
        pfc_received_frames: host.pfc_rx_frames.get(),
        paused_ns: paused.filter(|(_, ns)| *ns > 0).collect(),
        foreign_frames: host.foreign_frames.get(),
    }
}

fn flow_report(hosts: &HostCounters, flow: &FlowTally, seconds: f64) -> FlowReport {
    let name = |host: usize| hosts.hosts[host].name.clone();
    let received = flow.received_frames.get();
    FlowReport {
        from: name(flow.info.from),
        to: flow.info.to.map(name),
        kind: match flow.info.kind {
            FlowKind::Roce => "roce",
            FlowKind::Udp => "udp",
        },
        class: flow.info.class,
        frame_bytes: flow.info.frame_len,
        sent_frames: flow.sent_frames.get(),
        received_frames: received,
        lost_frames: flow.missing(),
        late_frames: flow.late_frames.get(),
        duplicate_frames: flow.duplicate_frames.get(),
        corrupt_frames: flow.corrupt_frames.get(),
        ce_frames: flow.ce_frames.get(),
        received_bits_per_second: wire_rate(received, flow.received_bytes.get(), seconds),
        // A bucket's end may lie beyond the longest.
        latency_p50_ns: flow.latency.quantile(500).map(|ticks| hosts.nanos(ticks.min(flow.latency_highest.get()))),
        latency_p99_ns: flow.latency.quantile(990).map(|ticks| hosts.nanos(ticks.min(flow.latency_highest.get()))),
        latency_highest_ns: (received > 0).then(|| hosts.nanos(flow.latency_highest.get())),
    }
}

fn in_bytes(subject: &Subject, count: u64) -> u64 {
    cells(count).to_bytes(subject.spec.buffer.cell).0
}
