//! The answers of peers to XOFF, as the switch has measured them.

use super::snapshot::{PortSnapshot, Reading, Values};
use super::switch_view::SwitchView;
use crate::pfc::{Observed, RESPONSE_BUCKETS};
use crate::plan::counters::PortCounters;
use crate::sets::{CLASSES, ClassSet};
use crate::text::format::{frames, grouped};

/// The answers of the peer of one port; each field as in [`PortCounters`].
#[derive(Debug, Default, Clone)]
#[allow(missing_docs, reason = "each is documented where it is counted")]
pub struct PeerSnapshot {
    pub stops: Values,
    pub late_pauses: Values,
    pub late_frames: Values,
    pub late_bytes: Values,
    pub response: [[u64; RESPONSE_BUCKETS]; CLASSES],
    pub response_sum_ns: Values,
    pub obeyed: ClassSet,
    pub disobeyed: ClassSet,
}

impl PeerSnapshot {
    pub(super) fn take(port: &PortCounters) -> Self {
        Self {
            stops: Reading::read(&port.pfc_stops),
            late_pauses: Reading::read(&port.pfc_late_pauses),
            late_frames: Reading::read(&port.pfc_late_frames),
            late_bytes: Reading::read(&port.pfc_late_bytes),
            response: Reading::read(&port.pfc_response),
            response_sum_ns: Reading::read(&port.pfc_response_sum_ns),
            obeyed: Reading::read(&port.pfc_obeyed_mask),
            disobeyed: Reading::read(&port.pfc_disobeyed_mask),
        }
    }
}

impl PortSnapshot {
    /// The evidence against the peer in some priorities.
    #[must_use]
    pub(crate) fn lateness(&self, priorities: ClassSet) -> String {
        let sum = |of: &Values| priorities.iter().map(|priority| of[priority]).sum::<u64>();
        let pauses = sum(&self.peer.late_pauses);
        let times = if pauses == 1 { "1 XOFF".to_owned() } else { format!("{} XOFFs", grouped(pauses)) };
        format!("{} came too late after {times}", frames(sum(&self.peer.late_frames)))
    }
}

impl SwitchView {
    /// Priorities whose XOFF the peer of `port` disobeys, as measured. A device that pauses by itself may have held
    /// back the PFC frames, so it accuses no peer.
    #[must_use]
    pub fn disobeyed(&self, port: usize) -> ClassSet {
        let mask = self.counters.ports.get(port).map_or(0, |port| port.pfc_disobeyed_mask.get());
        if self.flow_control.get(port).defeats_pfc() { ClassSet::EMPTY } else { ClassSet::from_bits(mask as u8) }
    }
    /// The answer of the peer of `port`, which has the counters `peer`, to XOFF of the `priorities`: one that it
    /// disobeys counts.
    #[must_use]
    pub fn observed(&self, port: usize, peer: &PeerSnapshot, priorities: ClassSet) -> Observed {
        let disobeyed = peer.disobeyed & self.disobeyed(port) & priorities;
        match (disobeyed.is_empty(), (peer.obeyed & priorities).is_empty()) {
            (false, _) => Observed::Disobeys,
            (true, false) => Observed::Obeys,
            (true, true) => Observed::Unseen,
        }
    }
}
