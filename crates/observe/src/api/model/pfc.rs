//! Priority flow control in both directions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::pfc::PfcMode;
use crate::sets::{CLASSES, ClassSet};
use crate::stats::SwitchView;

/// PFC of one port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pfc {
    /// The port.
    pub port: String,
    /// PFC [mode](pfc.md#modes).
    pub mode: String,
    /// [Standing](nics.md) of its PFC.
    pub standing: String,
    /// PFC frames sent.
    pub sent_frames: u64,
    /// PFC frames received.
    pub received_frames: u64,
    /// Classic PAUSE frames received, ignored.
    pub pause_received_frames: u64,
    /// Whether the whole port is XOFF (dynamic headroom).
    pub port_xoff: bool,
    /// Priorities.
    pub priorities: Vec<PfcPriority>,
}

/// One priority of a port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PfcPriority {
    /// Its number.
    pub priority: u8,
    /// Whether the port may pause its peer.
    pub generated: bool,
    /// Whether the port obeys its peer.
    pub obeyed: bool,
    /// Whether the port holds its peer at XOFF.
    pub xoff: bool,
    /// Whether the peer holds the port at XOFF.
    pub paused: bool,
    /// XOFFs sent, with refreshes.
    pub sent_xoff_frames: u64,
    /// XONs sent.
    pub sent_xon_frames: u64,
    /// Times that XOFF [stopped receive queues](pfc.md#pfc-by-queue).
    pub queue_stops: u64,
    /// XOFFs received.
    pub received_xoff_frames: u64,
    /// XONs received.
    pub received_xon_frames: u64,
    /// XOFFs received and not obeyed because of the watchdog.
    pub ignored_frames: u64,
    /// Time that the port held its peer.
    pub sent_paused_ns: u64,
    /// Time that the peer held the port, obeyed or not.
    pub received_paused_ns: u64,
    /// The peer at XOFF, [as measured](pfc.md#the-peer): `unseen`, `obeys` or `disobeys`.
    pub observed: String,
    /// XOFFs at which it stopped in time.
    pub stops: u64,
    /// XOFFs after which frames came too late.
    pub late_pauses: u64,
    /// These frames.
    pub late_frames: u64,
    /// Their bytes.
    pub late_bytes: u64,
}

/// The priorities for which port `index` obeys PFC.
pub(super) fn obeyed(switch_view: &SwitchView, index: usize) -> ClassSet {
    match switch_view.spec.ports.get(index).map(|port| port.pfc) {
        Some(PfcMode::Asymmetric) => ClassSet::ALL,
        Some(PfcMode::Symmetric | PfcMode::Nic) => switch_view.guarded_groups(index),
        _ => ClassSet::EMPTY,
    }
}

impl Pfc {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let ports = look.switch_view.spec.ports.iter().zip(&look.snapshot.ports).enumerate();
        ports
            .map(|(index, (spec, counters))| {
                let (generated, obeyed) = (look.switch_view.guarded_groups(index), obeyed(look.switch_view, index));
                let observed = |priorities| look.switch_view.observed(index, &counters.peer, priorities);
                let priority = |priority| PfcPriority {
                    priority: priority as u8,
                    generated: generated.contains(priority),
                    obeyed: obeyed.contains(priority),
                    xoff: counters.xoff_mask.contains(priority),
                    paused: counters.paused_mask.contains(priority),
                    sent_xoff_frames: counters.pfc_tx_xoff[priority],
                    sent_xon_frames: counters.pfc_tx_xon[priority],
                    queue_stops: counters.queue_stops[priority],
                    received_xoff_frames: counters.pfc_rx_xoff[priority],
                    received_xon_frames: counters.pfc_rx_xon[priority],
                    ignored_frames: counters.pfc_rx_ignored[priority],
                    sent_paused_ns: counters.pfc_tx_paused_ns[priority],
                    received_paused_ns: counters.pfc_rx_paused_ns[priority],
                    observed: observed(ClassSet::only(priority)).label().to_owned(),
                    stops: counters.peer.stops[priority],
                    late_pauses: counters.peer.late_pauses[priority],
                    late_frames: counters.peer.late_frames[priority],
                    late_bytes: counters.peer.late_bytes[priority],
                };
                Self {
                    port: spec.name.clone(),
                    mode: spec.pfc.label().to_owned(),
                    standing: look.switch_view.standing(index).label().to_owned(),
                    sent_frames: counters.pfc_tx_frames,
                    received_frames: counters.pfc_rx_frames,
                    pause_received_frames: counters.pause_rx_frames,
                    port_xoff: counters.port_xoff,
                    priorities: (0..CLASSES).map(priority).collect(),
                }
            })
            .collect()
    }
}
