//! Priority flow control in both directions.

use serde::{Deserialize, Serialize};

use super::Look;
use crate::pfc::PfcMode;
use crate::sets::{CLASSES, ClassSet};
use crate::stats::SwitchView;

/// PFC of one port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pfc {
    /// The port.
    pub port: String,
    /// PFC mode: `off`, `software` or `asymmetric`.
    pub mode: String,
    /// Whether PFC can be relied upon: `proven`, `trusted`, `unproven` or `off`.
    pub standing: String,
    /// PFC frames sent.
    pub sent_frames: u64,
    /// PFC frames received.
    pub received_frames: u64,
    /// Classic PAUSE frames received, and ignored.
    pub pause_received_frames: u64,
    /// Whether the whole port is XOFF because the memory that its groups share is at its limit (dynamic headroom).
    pub port_xoff: bool,
    /// PFC of each priority.
    pub priorities: Vec<PfcPriority>,
}

/// One priority of a port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PfcPriority {
    /// Its number.
    pub priority: u8,
    /// Whether the port pauses its peer for this priority: its group is lossless, and PFC is on.
    pub generated: bool,
    /// Whether the port stops sending when the peer pauses this priority.
    pub obeyed: bool,
    /// Whether the port currently pauses its peer.
    pub xoff: bool,
    /// Whether the peer currently pauses this port.
    pub paused: bool,
    /// PFC frames sent that paused the peer, including refreshes.
    pub sent_xoff_frames: u64,
    /// PFC frames sent that resumed the peer.
    pub sent_xon_frames: u64,
    /// Times that XOFF stopped the receive queues that carry this priority (`pfc: queue`).
    pub queue_stops: u64,
    /// PFC frames received that paused this port.
    pub received_xoff_frames: u64,
    /// PFC frames received that resumed this port.
    pub received_xon_frames: u64,
    /// PFC frames received that this port would obey, but ignores because of the watchdog.
    pub ignored_frames: u64,
    /// Time for which the port has paused its peer.
    pub sent_paused_ns: u64,
    /// Time for which the peer has paused this port, whether obeyed or not.
    pub received_paused_ns: u64,
}

/// The priorities for which port `index` obeys PFC.
pub(super) fn obeyed(switch_view: &SwitchView, index: usize) -> ClassSet {
    match switch_view.spec.ports.get(index).map(|port| port.pfc) {
        Some(PfcMode::Asymmetric) => ClassSet::ALL,
        Some(PfcMode::Symmetric) => switch_view.guarded_groups(index),
        _ => ClassSet::EMPTY,
    }
}

impl Pfc {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let ports = look.switch_view.spec.ports.iter().zip(&look.snapshot.ports).enumerate();
        ports
            .map(|(index, (spec, counters))| {
                let (generated, obeyed) = (look.switch_view.guarded_groups(index), obeyed(look.switch_view, index));
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
