//! Recording of the frames that a switch received and sent in a run, as input of `holdfast replay`.

use std::io::{self, Write};

use super::node::Node;
use super::spec::{FaultKind, Learning, Scenario};
use crate::plan::SwitchSpec;
use crate::plan::drops::DropReason;
use crate::verify::record::{self, Stations, Tape};

/// Maximum number of recorded frames, each of 40 bytes.
pub const MOST_RECORDED: usize = 1 << 23;

/// Drop reasons that a trace cannot represent: of frames that were in a queue, or that had no egress for a while.
const UNTOLD: [DropReason; 6] = [
    DropReason::EgressDown,
    DropReason::AdminDown,
    DropReason::Watchdog,
    DropReason::NoBuffer,
    DropReason::Shutdown,
    DropReason::EgressStuck,
];

/// The recording of one switch.
#[derive(Debug)]
pub struct Recording {
    /// Recorded events.
    pub tape: Tape,
    /// Specification of the switch, including routes.
    pub spec: SwitchSpec,
    /// Egress ports of stations.
    pub stations: Stations,
    /// Frames that were dropped but that a replay does not drop, by reason.
    pub untold: Vec<(DropReason, u64)>,
}

/// Returns the reason for which a replay would decide differently from the recorded switch; `None`: it would not.
#[must_use]
pub fn why_not(scenario: &Scenario, switch: usize) -> Option<&'static str> {
    if scenario.learning == Learning::Frames {
        return Some("switches learn addresses from frames, which a trace does not record; write `learning: routes`");
    }
    if scenario.routed.is_some() {
        return Some("switches route, and a replay only bridges; write `forwarding: bridged`");
    }
    if scenario.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Garbage { .. })) {
        return Some("hosts send garbage, which a trace cannot record; remove `garbage`");
    }
    record::why_not(&scenario.switches[switch].config.switch)
}

impl Recording {
    pub(super) fn take(node: &mut Node) -> Self {
        let ports = node.spec.fdb.entries.iter().map(|entry| (entry.mac, usize::from(entry.port))).collect();
        let up = node.devices.iter().enumerate().filter(|(_, device)| device.wires.is_some());
        let up = up.map(|(port, _)| port).collect();
        let of_ports = || (0..node.spec.ports.len()).flat_map(|port| node.counters.of_port(port));
        let rows = || of_ports().flat_map(|port| &port.drops);
        let count = |reason: DropReason| rows().map(|row| row[reason as usize].get()).sum();
        let untold = UNTOLD.map(|reason| (reason, count(reason))).into_iter().filter(|(_, count)| *count > 0);
        Self {
            untold: untold.collect(),
            tape: node.tape.take().unwrap_or_default(),
            spec: node.spec.clone(),
            stations: Stations { ports, up },
        }
    }

    /// Writes the trace.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        record::write_csv(out, &self.tape, &self.spec, &self.stations)
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
