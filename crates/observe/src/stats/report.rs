//! The final report as data: the tables show it to people, `--json` to machines.
//!
//! Field names are part of the interface: fields may be added, and other changes require a new [`FORMAT`]. Sizes are
//! bytes without the frame check sequence. Rates are bits per second on the wire with preamble and gap. Times have
//! their unit in the name.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::advice::{Advice, advices};
use super::flow_control::DeviceFlowControl;
use super::needs::{Need, needs, to_bytes};
use super::snapshot::{LcoreSnapshot, PortSnapshot, Snapshot, cells};
use super::switch_view::{PfcStanding, SwitchView};
use super::verdict::Verdict;
use crate::hosts::{FlowKind, FlowTally, HostCounters, HostTally};
use crate::mmu::HeadroomPolicy;
use crate::pfc::PfcMode;
use crate::plan::DropReason;
use crate::plan::counters::UNCLASSIFIED;
use crate::sets::CLASSES;
use crate::text::format::wire_rate;
use crate::units::Cells;

/// Version of the report's format.
pub const FORMAT: u32 = 1;

/// The report of a whole run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// 1. It grows with each incompatible change.
    pub format: u32,
    /// Version of the program.
    pub version: &'static str,
    /// Duration of traffic, by which rates are computed.
    pub seconds: f64,
    /// Ports.
    pub ports: Vec<PortReport>,
    /// Shared pools.
    pub pools: Vec<PoolReport>,
    /// Use of headroom.
    pub headroom: HeadroomReport,
    /// Polls of all lcores.
    pub polls: PollReport,
    /// Dataplane lcores.
    pub lcores: Vec<LcoreReport>,
    /// Contents of the buffer; zero after a drain.
    pub held: HeldReport,
    /// Virtual hosts.
    pub hosts: Vec<HostReport>,
    /// Flows of virtual hosts, end to end.
    pub flows: Vec<FlowReport>,
    /// Recommended changes.
    pub advice: Vec<Advice>,
    /// Loss in lossless classes.
    pub verdict: Verdict,
}

/// One port.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PortReport {
    /// Its name.
    pub name: String,
    /// Pacing rate.
    pub rate_bits_per_second: u64,
    /// Owning lcore.
    pub lcore: u8,
    /// [Standing](nics.md) of its PFC.
    pub pfc: PfcStanding,
    /// PFC [mode](pfc.md#modes).
    pub pfc_mode: &'static str,
    /// Flow control that the [device does itself](nics.md).
    pub flow_control: DeviceFlowControl,
    /// Whether its link is up.
    pub link_up: bool,
    /// Frames lost to a full receive ring.
    pub receive_missed_frames: u64,
    /// Whether the device reports such loss.
    pub receive_loss_seen: bool,
    /// Frames lost to an empty packet pool.
    pub receive_no_buffer_frames: u64,
    /// PFC frames sent.
    pub pfc_sent_frames: u64,
    /// PFC frames received.
    pub pfc_received_frames: u64,
    /// Classic PAUSE frames received, ignored.
    pub pause_received_frames: u64,
    /// XOFFs caused by receive backlog.
    pub backlog_xoffs: u64,
    /// Most frames left by a poll.
    pub backlog_highest_frames: u64,
    /// Times [stuck](configuration.md#stuck_after).
    pub egress_stucks: u64,
    /// Frames taken by the device and not sent.
    pub send_errors: u64,
    /// Classes with events. With `maps`, sent frames, marks and storms are those of the class's queue; PFC and buffer
    /// those of its priority group.
    pub classes: Vec<ClassReport>,
}

/// One class on one port. If maps are not one to one, the fields refer to different objects with this number.
/// `received` and drops are of the traffic class; `sent`, marks and storms of the queue; PFC and the group's use of the
/// priority.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClassReport {
    /// Its number; null: before classification.
    pub class: Option<usize>,
    /// Whether it is configured as lossless.
    pub lossless: bool,
    /// Frames received.
    pub received_frames: u64,
    /// Bytes of the received frames.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes of the sent frames.
    pub sent_bytes: u64,
    /// Frames dropped.
    pub dropped_frames: u64,
    /// Dropped frames by [reason](metrics.md#drops), if any.
    pub drops: BTreeMap<&'static str, u64>,
    /// PFC frames that paused the peer.
    pub pfc_sent_xoff: u64,
    /// PFC frames that resumed the peer.
    pub pfc_sent_xon: u64,
    /// PFC frames that paused this port.
    pub pfc_received_xoff: u64,
    /// PFC frames that resumed this port.
    pub pfc_received_xon: u64,
    /// PFC frames not obeyed because of the watchdog.
    pub pfc_ignored: u64,
    /// Time that the port held its peer.
    pub pfc_sent_paused_ns: u64,
    /// Time that the peer held the port, obeyed or not.
    pub pfc_received_paused_ns: u64,
    /// Storms found.
    pub watchdog_storms: u64,
    /// Storms ended.
    pub watchdog_restores: u64,
    /// Frames marked Congestion Experienced.
    pub ecn_marked_frames: u64,
    /// Most in reserve and shared pool.
    pub group_highest_bytes: u64,
    /// Most in the shared pool.
    pub shared_highest_bytes: u64,
    /// Most in headroom.
    pub headroom_highest_bytes: u64,
    /// Headroom of the group: eta.
    pub headroom_bytes: u64,
    /// [Measured need](metrics.md#buffer-use) of headroom; null: lossy, or no PFC.
    pub headroom_needed_bytes: Option<u64>,
    /// Most in the egress queue.
    pub queue_highest_bytes: u64,
}

/// One shared pool.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PoolReport {
    /// `lossless` or `lossy`.
    pub name: &'static str,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Most in use.
    pub highest_bytes: u64,
}

/// The headroom, in which lossless groups store frames that arrive after XOFF.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HeadroomReport {
    /// `independent`, `shared-pool` or `dynamic`.
    pub policy: &'static str,
    /// All headroom: that of groups, the pool, or the insurance of ports.
    pub size_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Most in use of the pool; null without `shared-pool`.
    pub highest_bytes: Option<u64>,
}

/// One lcore of the dataplane.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LcoreReport {
    /// Its number, from zero.
    pub lcore: usize,
    /// Ports that it owns.
    pub ports: Vec<String>,
    /// Statistics of its polls.
    #[serde(flatten)]
    pub polls: PollReport,
    /// Frames handed to other lcores.
    pub handed_off_frames: u64,
    /// Most frames in one hand-off ring to it.
    pub handoff_highest_frames: u64,
}

/// Statistics of polls, gaps and rests.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PollReport {
    /// All polls.
    pub polls: u64,
    /// Polls that moved a frame.
    pub busy_polls: u64,
    /// 99 % of gaps were shorter: a power of two, or the longest gap.
    pub gap_p99_ns: Option<u64>,
    /// The longest gap.
    pub gap_highest_ns: u64,
    /// [Rests](idle.md).
    pub rests: u64,
    /// Their time, also part of gaps.
    pub rested_ns: u64,
    /// 99 % of rests ended late by less, likewise.
    pub rest_overshoot_p99_ns: Option<u64>,
    /// Latest end of a rest.
    pub rest_overshoot_highest_ns: u64,
}

/// Cells and frames that are still in the buffer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HeldReport {
    /// Cells not released.
    pub cells: u64,
    /// Frames in egress queues.
    pub frames: u64,
}

/// One virtual host.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// Its switch port.
    pub port: String,
    /// PFC frames received.
    pub pfc_received_frames: u64,
    /// Time told to stop, by class.
    pub paused_ns: BTreeMap<usize, u64>,
    /// Frames received, of no flow to it.
    pub foreign_frames: u64,
}

/// One flow, end to end.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FlowReport {
    /// Sending host.
    pub from: String,
    /// Receiving host; null: station outside.
    pub to: Option<String>,
    /// `roce` or `udp`.
    pub kind: &'static str,
    /// Its traffic class.
    pub class: u8,
    /// Bytes of one frame.
    pub frame_bytes: u32,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames received; each sequence number counts once.
    pub received_frames: u64,
    /// Frames never received; null: station outside.
    pub lost_frames: Option<u64>,
    /// Frames received after a later one.
    pub late_frames: u64,
    /// Frames received again.
    pub duplicate_frames: u64,
    /// Frames received with a wrong bit.
    pub corrupt_frames: u64,
    /// Frames received with Congestion Experienced.
    pub ce_frames: u64,
    /// Rate at which it was received.
    pub received_bits_per_second: f64,
    /// Median latency, within 12.5 %.
    pub latency_p50_ns: Option<u64>,
    /// 99th percentile, within 12.5 %.
    pub latency_p99_ns: Option<u64>,
    /// Longest latency.
    pub latency_highest_ns: Option<u64>,
}

impl Report {
    /// Creates the report of `switch_view` after `traffic` of traffic and a drain.
    #[must_use]
    pub fn new(switch_view: &SwitchView, traffic: Duration) -> Self {
        let snapshot = &Snapshot::take(switch_view, traffic);
        let (seconds, needs) = (traffic.as_secs_f64(), needs(switch_view, snapshot));
        let hosts = switch_view.hosts.as_deref();
        let (hosts, flows) = hosts.map_or_else(Default::default, |hosts| {
            let host_reports: Vec<_> = hosts.hosts.iter().map(|host| host_report(switch_view, hosts, host)).collect();
            let flow_reports: Vec<_> = hosts.flows.iter().map(|flow| flow_report(hosts, flow, seconds)).collect();
            (host_reports, flow_reports)
        });
        Self {
            format: FORMAT,
            version: switch_view.build.version,
            seconds,
            ports: (0..snapshot.ports.len()).map(|port| port_report(switch_view, snapshot, &needs, port)).collect(),
            pools: pool_reports(switch_view, snapshot),
            headroom: headroom_report(switch_view, snapshot),
            polls: poll_report(&snapshot.lcore),
            lcores: (0..snapshot.lcores.len()).map(|lcore| lcore_report(switch_view, snapshot, lcore)).collect(),
            held: HeldReport { cells: snapshot.held_cells(), frames: snapshot.lcore.held_frames },
            hosts,
            flows,
            advice: advices(switch_view, snapshot),
            verdict: Verdict::new(switch_view, snapshot),
        }
    }

    /// Whether the run kept its promise: no loss broke it, and no lossless class starved.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        self.verdict.is_kept()
    }

    /// The report as one JSON document, indented, with a line end.
    ///
    /// # Panics
    /// Never: every value of the report can be serialized.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps have string or number keys and no value can fail") + "\n"
    }
}

fn port_report(switch_view: &SwitchView, snapshot: &Snapshot, needs: &[Need], index: usize) -> PortReport {
    let (port, spec) = (&snapshot.ports[index], switch_view.spec.ports.get(index));
    let needed = |row| needs.iter().find(|need| need.port == index && need.group == row).map(|need| need.needed);
    let eta = |row: usize| spec.and_then(|spec| Some(spec.buffer.groups.get(row)?.headroom)).unwrap_or_default();
    let class = |row| class_report(switch_view, port, row, eta(row), needed(row));
    PortReport {
        name: switch_view.port_name(index).to_owned(),
        rate_bits_per_second: spec.map_or(0, |port| port.rate.0),
        lcore: spec.map_or(0, |port| port.lcore),
        pfc: switch_view.standing(index),
        pfc_mode: spec.map_or(PfcMode::Off, |port| port.pfc).label(),
        flow_control: switch_view.flow_control.get(index),
        link_up: port.device.link_up,
        receive_missed_frames: port.device.rx_missed,
        receive_loss_seen: switch_view.blind.get(index).is_none_or(Option::is_none),
        receive_no_buffer_frames: port.device.rx_no_buffer,
        pfc_sent_frames: port.pfc_tx_frames,
        pfc_received_frames: port.pfc_rx_frames,
        pause_received_frames: port.pause_rx_frames,
        backlog_xoffs: port.backlog_xoffs,
        backlog_highest_frames: port.backlog_highest_frames,
        egress_stucks: port.egress_stucks,
        send_errors: port.device.tx_errors,
        classes: (0..=UNCLASSIFIED).filter_map(class).collect(),
    }
}

/// The class in `row` of the drops; its group has and needs the given headroom. `None` if no event was counted in it.
fn class_report(
    switch_view: &SwitchView,
    port: &PortSnapshot,
    row: usize,
    headroom: Cells,
    needed: Option<Cells>,
) -> Option<ClassReport> {
    let drops: BTreeMap<_, _> = DropReason::TABLE
        .iter()
        .map(|(reason, label, _)| (*label, port.drops[row][*reason as usize]))
        .filter(|(_, frames)| *frames > 0)
        .collect();
    let class = (row < CLASSES).then_some(row);
    let of = |values: &[u64; CLASSES]| class.map_or(0, |class| values[class]);
    let bytes = |values: &[u64; CLASSES]| in_bytes(switch_view, of(values));
    let report = ClassReport {
        class,
        lossless: class.is_some_and(|class| switch_view.is_lossless(class)),
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
        pfc_ignored: of(&port.pfc_rx_ignored),
        pfc_sent_paused_ns: of(&port.pfc_tx_paused_ns),
        pfc_received_paused_ns: of(&port.pfc_rx_paused_ns),
        watchdog_storms: of(&port.watchdog_storms),
        watchdog_restores: of(&port.watchdog_restores),
        ecn_marked_frames: of(&port.ecn_marked),
        group_highest_bytes: bytes(&port.group_used_highest_cells),
        shared_highest_bytes: bytes(&port.group_shared_highest_cells),
        headroom_highest_bytes: bytes(&port.group_headroom_highest_cells),
        headroom_bytes: to_bytes(switch_view, headroom).0,
        headroom_needed_bytes: needed.map(|cells| to_bytes(switch_view, cells).0),
        queue_highest_bytes: bytes(&port.queue_highest_cells),
    };
    report.has_news().then_some(report)
}

impl ClassReport {
    fn has_news(&self) -> bool {
        let pfc = [self.pfc_sent_xoff, self.pfc_sent_xon, self.pfc_received_xoff, self.pfc_received_xon];
        let frames = [self.received_frames, self.sent_frames, self.dropped_frames, self.watchdog_storms];
        frames.iter().chain(&pfc).any(|count| *count > 0)
    }
}

fn pool_reports(switch_view: &SwitchView, snapshot: &Snapshot) -> Vec<PoolReport> {
    let (plan, lcore) = (&switch_view.spec.buffer, &snapshot.lcore);
    let pool = |name, size: Cells, used, highest| PoolReport {
        name,
        size_bytes: size.to_bytes(plan.cell).0,
        used_bytes: in_bytes(switch_view, used),
        highest_bytes: in_bytes(switch_view, highest),
    };
    vec![
        pool("lossless", plan.lossless_shared, lcore.lossless_used_cells, lcore.lossless_used_highest_cells),
        pool("lossy", plan.lossy_shared, lcore.lossy_used_cells, lcore.lossy_used_highest_cells),
    ]
}

fn headroom_report(switch_view: &SwitchView, snapshot: &Snapshot) -> HeadroomReport {
    let plan = &switch_view.spec.buffer;
    let is_pool = plan.policy == HeadroomPolicy::SharedPool;
    HeadroomReport {
        policy: plan.policy.label(),
        size_bytes: to_bytes(switch_view, plan.headroom).0,
        used_bytes: in_bytes(switch_view, snapshot.sum(|port| port.group_headroom_cells.iter().sum())),
        highest_bytes: is_pool.then(|| in_bytes(switch_view, snapshot.lcore.headroom_pool_highest_cells)),
    }
}

fn poll_report(lcore: &LcoreSnapshot) -> PollReport {
    PollReport {
        polls: lcore.polls,
        busy_polls: lcore.busy_polls,
        gap_p99_ns: lcore.poll_gap_quantile_ns(990),
        gap_highest_ns: lcore.poll_gap_highest_ns,
        rests: lcore.rests,
        rested_ns: lcore.rested_ns,
        rest_overshoot_p99_ns: lcore.rest_overshoot_quantile_ns(990),
        rest_overshoot_highest_ns: lcore.rest_overshoot_highest_ns,
    }
}

fn lcore_report(switch_view: &SwitchView, snapshot: &Snapshot, index: usize) -> LcoreReport {
    let lcore = &snapshot.lcores[index];
    let ports = switch_view.spec.ports.iter().filter(|port| usize::from(port.lcore) == index);
    LcoreReport {
        lcore: index,
        ports: ports.map(|port| port.name.clone()).collect(),
        polls: poll_report(lcore),
        handed_off_frames: lcore.handed_off_frames,
        handoff_highest_frames: lcore.handoff_highest_frames,
    }
}

fn host_report(switch_view: &SwitchView, hosts: &HostCounters, host: &HostTally) -> HostReport {
    let paused = host.paused_ticks.iter().enumerate().map(|(class, ticks)| (class, hosts.nanos(ticks.get())));
    HostReport {
        name: host.name.clone(),
        port: switch_view.port_name(host.port).to_owned(),
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
        // The upper bound of a bucket may exceed the longest latency.
        latency_p50_ns: flow.latency.quantile(500).map(|ticks| hosts.nanos(ticks.min(flow.latency_highest.get()))),
        latency_p99_ns: flow.latency.quantile(990).map(|ticks| hosts.nanos(ticks.min(flow.latency_highest.get()))),
        latency_highest_ns: (received > 0).then(|| hosts.nanos(flow.latency_highest.get())),
    }
}

fn in_bytes(switch_view: &SwitchView, count: u64) -> u64 {
    cells(count).to_bytes(switch_view.spec.buffer.cell).0
}
