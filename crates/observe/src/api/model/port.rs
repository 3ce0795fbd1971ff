//! Ports: their settings and counters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::plan::PortSpec;
use crate::plan::counters::UNCLASSIFIED;
use crate::qos::Trust;
use crate::sets::{CLASSES, ClassSet};
use crate::stats::snapshot::Values;
use crate::units::WIRE_OVERHEAD;

/// One port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Port {
    /// Its name.
    pub port: String,
    /// `absent` (no device), `shut` by the operator, `blocked` by the loop guard, `down` (no link), `stuck`
    /// (`egress_stuck`) or `up`.
    pub state: String,
    /// The operator's words about it, as configured; empty: none.
    pub description: String,
    /// PCI address, virtual device or `ring`.
    pub device: String,
    /// MAC address of the port.
    pub mac: String,
    /// Rate to which transmission is paced.
    pub rate_bps: u64,
    /// Largest IP packet.
    pub mtu_bytes: u16,
    /// Length of its cable.
    pub cable_m: f64,
    /// Owning lcore.
    pub lcore: u8,
    /// Mark that decides the class of a frame: `dscp`, `pcp` or `port`.
    pub trust: String,
    /// Class of frames without the trusted mark.
    pub default_class: u8,
    /// Class of ACKs and NAKs of RoCEv2; null: that of their marks.
    pub roce_ack_class: Option<u8>,
    /// Class of CNPs of RoCEv2; null: that of their marks.
    pub roce_cnp_class: Option<u8>,
    /// ACKs and NAKs received that got this class.
    pub roce_ack_frames: u64,
    /// CNPs received that got this class.
    pub roce_cnp_frames: u64,
    /// Most broadcast frames a second to be flooded; null: any number.
    pub storm_broadcast_pps: Option<u32>,
    /// The limit of multicast frames.
    pub storm_multicast_pps: Option<u32>,
    /// The limit of frames to unknown stations.
    pub storm_unknown_pps: Option<u32>,
    /// VLAN of untagged frames; null: they are dropped.
    pub vlan_untagged: Option<u16>,
    /// VLANs that are tagged on the wire.
    pub vlan_tagged: Vec<u16>,
    /// Whether its link is up.
    pub link_up: bool,
    /// Whether it is [stuck](configuration.md#stuck_after): frames for it are dropped.
    pub egress_stuck: bool,
    /// Times stuck.
    pub egress_stucks: u64,
    /// PFC [mode](pfc.md#modes).
    pub pfc_mode: String,
    /// [Standing](nics.md) of its PFC.
    pub pfc_standing: String,
    /// Its peer at XOFF, [as measured](pfc.md#the-peer).
    pub pfc_observed: String,
    /// Flow control that the [device does itself](nics.md).
    pub flow_control: String,
    /// Whether it has lossless classes, and PFC is proven or trusted.
    pub lossless: bool,
    /// Data frames received, without PFC and malformed ones.
    pub received_frames: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Bytes of these on the wire.
    pub received_wire_bytes: u64,
    /// Data frames sent.
    pub sent_frames: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Bytes of these on the wire.
    pub sent_wire_bytes: u64,
    /// All drops that `drops` counts at this port.
    pub dropped_frames: u64,
    /// Drops in lossless classes.
    pub lossless_dropped_frames: u64,
    /// Frames lost to a full receive ring.
    pub missed_frames: u64,
    /// Whether the device reports such loss.
    pub missed_seen: bool,
    /// Frames lost to an empty packet pool.
    pub no_buffer_frames: u64,
    /// Frames received with errors.
    pub receive_errors: u64,
    /// Frames taken by the device and not sent.
    pub send_errors: u64,
    /// Number of frames left in the receive ring that causes XOFF; null: none does.
    pub backlog_mark_frames: Option<u32>,
    /// Frames left by the last poll that left any.
    pub backlog_frames: u64,
    /// Most frames left by a poll.
    pub backlog_highest_frames: u64,
    /// XOFFs caused by these.
    pub backlog_xoffs: u64,
    /// Time at XOFF because of them.
    pub backlog_held_ns: u64,
    /// Traffic classes.
    pub classes: Vec<PortClass>,
    /// Receive queues, by the frames of the last second or two; empty with one queue and no `pfc: queue`.
    pub receive_queues: Vec<ReceiveQueue>,
}

/// One receive queue of a port, by the frames of the last second or two.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReceiveQueue {
    /// Its number.
    pub queue: u8,
    /// Lossless groups in it; with [`pfc: queue`](pfc.md#pfc-by-queue) XOFF of any stops it.
    pub lossless_groups: Vec<u8>,
    /// Whether it carries other frames too.
    pub lossy: bool,
}

/// One traffic class of a port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PortClass {
    /// Its number.
    pub class: u8,
    /// Whether it is configured as lossless.
    pub lossless: bool,
    /// Data frames received.
    pub received_frames: u64,
    /// Bytes of the received frames.
    pub received_bytes: u64,
    /// Data frames sent.
    pub sent_frames: u64,
    /// Bytes of the sent frames.
    pub sent_bytes: u64,
    /// Frames dropped.
    pub dropped_frames: u64,
}

/// The state of port `index`: the first of these that holds.
fn state(look: &Look<'_>, index: usize) -> &'static str {
    let (switch_view, counters) = (look.switch_view, &look.snapshot.ports[index]);
    let is_blocked = || {
        let board = switch_view.lldp.as_ref()?;
        board.view().ports.iter().find(|port| port.port == index).map(|port| port.is_blocked)
    };
    match () {
        () if switch_view.spec.ports[index].is_absent => "absent",
        () if switch_view.is_shut(index) => "shut",
        () if !counters.device.link_up => "down",
        () if is_blocked() == Some(true) => "blocked",
        () if counters.egress_stuck => "stuck",
        () => "up",
    }
}

impl Port {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        (0..look.switch_view.spec.ports.len().min(look.snapshot.ports.len()))
            .map(|index| Self::of(look, index))
            .collect()
    }

    fn of(look: &Look<'_>, index: usize) -> Self {
        let (switch_view, spec) = (look.switch_view, &look.switch_view.spec.ports[index]);
        let (counters, standing) = (&look.snapshot.ports[index], look.switch_view.standing(index));
        let (vlan_untagged, vlan_tagged) = (spec.vlan.untagged(), spec.vlan.tagged().to_vec());
        let (counted, device) = (&counters.device, switch_view.settings.get(Some(&spec.name), "device"));
        let [roce_ack_frames, roce_cnp_frames] = counters.roce_frames;
        let [storm_broadcast_pps, storm_multicast_pps, storm_unknown_pps] =
            spec.live.flood_limits.map(|limit| limit.map(|rate| rate.0));
        Self {
            port: spec.name.clone(),
            state: state(look, index).to_owned(),
            description: spec.live.description.clone(),
            device: device.map(|setting| setting.text.clone()).unwrap_or_default(),
            mac: spec.mac.to_string(),
            storm_broadcast_pps,
            storm_multicast_pps,
            storm_unknown_pps,
            rate_bps: spec.rate.0,
            mtu_bytes: spec.mtu,
            cable_m: switch_view.links.get(index).map_or(0.0, |link| link.cable.mm as f64 / 1e3),
            lcore: spec.lcore,
            trust: trust(spec.live.trust).to_owned(),
            default_class: spec.live.port_class,
            roce_ack_class: spec.live.marks.roce.ack,
            roce_cnp_class: spec.live.marks.roce.cnp,
            roce_ack_frames,
            roce_cnp_frames,
            vlan_untagged,
            vlan_tagged,
            link_up: counted.link_up,
            egress_stuck: counters.egress_stuck,
            egress_stucks: counters.egress_stucks,
            pfc_mode: spec.pfc.label().to_owned(),
            pfc_standing: standing.label().to_owned(),
            pfc_observed: switch_view.observed(index, &counters.peer, ClassSet::ALL).label().to_owned(),
            flow_control: switch_view.flow_control.get(index).label().to_owned(),
            lossless: !spec.lossless_groups().is_empty() && standing.is_relied_upon(),
            received_frames: counters.rx_frames.iter().sum(),
            received_bytes: counters.rx_bytes.iter().sum(),
            received_wire_bytes: wire_bytes(&counters.rx_frames, &counters.rx_bytes),
            sent_frames: counters.tx_frames.iter().sum(),
            sent_bytes: counters.tx_bytes.iter().sum(),
            sent_wire_bytes: wire_bytes(&counters.tx_frames, &counters.tx_bytes),
            dropped_frames: counters.dropped(|row| row <= UNCLASSIFIED),
            lossless_dropped_frames: counters.all_lost(),
            missed_frames: counted.rx_missed,
            missed_seen: switch_view.blind.get(index).is_none_or(Option::is_none),
            no_buffer_frames: counted.rx_no_buffer,
            receive_errors: counted.rx_errors,
            send_errors: counted.tx_errors,
            backlog_mark_frames: spec.backlog_mark,
            backlog_frames: counters.backlog_frames,
            backlog_highest_frames: counters.backlog_highest_frames,
            backlog_xoffs: counters.backlog_xoffs,
            backlog_held_ns: counters.backlog_held_ns,
            classes: (0..CLASSES)
                .map(|class| PortClass {
                    class: class as u8,
                    lossless: switch_view.is_lossless(class),
                    received_frames: counters.rx_frames[class],
                    received_bytes: counters.rx_bytes[class],
                    sent_frames: counters.tx_frames[class],
                    sent_bytes: counters.tx_bytes[class],
                    dropped_frames: counters.dropped(|row| row == class),
                })
                .collect(),
            receive_queues: receive_queues(spec, &counters.rx_queue_carries),
        }
    }
}

fn receive_queues(spec: &PortSpec, carries: &Values) -> Vec<ReceiveQueue> {
    let queues = carries.iter().take(if spec.has_managed_queues() { spec.rx_queues.into() } else { 0 });
    let queue = |(queue, &carried): (usize, &u64)| ReceiveQueue {
        queue: queue as u8,
        lossless_groups: (0..CLASSES as u8).filter(|group| carried >> group & 1 == 1).collect(),
        lossy: carried >> CLASSES & 1 == 1,
    };
    queues.enumerate().map(queue).collect()
}

fn wire_bytes(frames: &Values, bytes: &Values) -> u64 {
    bytes.iter().sum::<u64>() + frames.iter().sum::<u64>() * u64::from(WIRE_OVERHEAD)
}

fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Dscp => "dscp",
        Trust::Pcp => "pcp",
        Trust::Port => "port",
    }
}
