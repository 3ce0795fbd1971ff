//! Virtual hosts and their flows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::hosts::{FlowKind, FlowTally, HostCounters};
use crate::sets::CLASSES;
use crate::units::WIRE_OVERHEAD;

/// One virtual host.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Its switch port.
    pub port: String,
    /// PFC frames it received.
    pub pfc_received_frames: u64,
    /// Time told to stop, by priority.
    pub paused_ns: Vec<u64>,
    /// Frames received, of no flow to it.
    pub foreign_frames: u64,
}

/// One flow, end to end.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Flow {
    /// Sending host.
    pub from: String,
    /// Receiving host; null: outside station.
    pub to: Option<String>,
    /// `roce` or `udp`.
    pub kind: String,
    /// Its traffic class.
    pub class: u8,
    /// Bytes of one frame.
    pub frame_bytes: u32,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames received; each sequence number once.
    pub received_frames: u64,
    /// Bytes of these on the wire.
    pub received_wire_bytes: u64,
    /// Frames not received, in flight included; null: outside.
    pub missing_frames: Option<u64>,
    /// Frames received with CE.
    pub ce_frames: u64,
    /// Median latency, within 12.5 %.
    pub latency_p50_ns: Option<u64>,
    /// 99 % of latencies were no longer, within 12.5 %.
    pub latency_p99_ns: Option<u64>,
    /// Longest latency.
    pub latency_highest_ns: Option<u64>,
}

impl Host {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let Some(hosts) = look.switch_view.hosts.as_deref() else { return Vec::new() };
        let tallies = hosts.hosts.iter();
        tallies
            .map(|host| Self {
                host: host.name.clone(),
                port: look.switch_view.port_name(host.port).to_owned(),
                pfc_received_frames: host.pfc_rx_frames.get(),
                paused_ns: (0..CLASSES).map(|class| hosts.nanos(host.paused_ticks[class].get())).collect(),
                foreign_frames: host.foreign_frames.get(),
            })
            .collect()
    }
}

impl Flow {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let Some(hosts) = look.switch_view.hosts.as_deref() else { return Vec::new() };
        hosts.flows.iter().map(|flow| Self::of(hosts, flow)).collect()
    }

    fn of(hosts: &HostCounters, flow: &FlowTally) -> Self {
        let name = |host: usize| hosts.hosts[host].name.clone();
        let (received, highest) = (flow.received_frames.get(), flow.latency_highest.get());
        // The upper bound of a bucket may exceed the longest latency.
        let quantile = |per_mille| flow.latency.quantile(per_mille).map(|ticks| hosts.nanos(ticks.min(highest)));
        Self {
            from: name(flow.info.from),
            to: flow.info.to.map(name),
            kind: match flow.info.kind {
                FlowKind::Roce => "roce",
                FlowKind::Udp => "udp",
            }
            .to_owned(),
            class: flow.info.class,
            frame_bytes: flow.info.frame_len,
            sent_frames: flow.sent_frames.get(),
            received_frames: received,
            received_wire_bytes: flow.received_bytes.get() + received * u64::from(WIRE_OVERHEAD),
            missing_frames: flow.missing(),
            ce_frames: flow.ce_frames.get(),
            latency_p50_ns: quantile(500),
            latency_p99_ns: quantile(990),
            latency_highest_ns: (received > 0).then(|| hosts.nanos(highest)),
        }
    }
}
