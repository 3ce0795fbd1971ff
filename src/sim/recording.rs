//! What a switch received and sent in a run, as `holdfast replay` takes it.

use std::io::{self, Write};

use super::node::Node;
use super::spec::{FaultKind, Learning, Scenario};
use crate::dataplane::SwitchSpec;
use crate::dataplane::drops::DropReason;
use crate::dataplane::record::{self, Stations, Tape};

/// Frames that are recorded at most, each of 32 bytes.
pub const MOST_RECORDED: usize = 1 << 23;

/// Drops of which a trace says nothing: of frames that were in a queue, or had nowhere to go for a while.
const UNTOLD: [DropReason; 5] =
    [DropReason::EgressDown, DropReason::Watchdog, DropReason::NoBuffer, DropReason::Shutdown, DropReason::EgressStuck];

/// The record of one switch.
#[derive(Debug)]
pub struct Recording {
    /// What happened.
    pub tape: Tape,
    /// Of what the switch is made, routes included.
    pub spec: SwitchSpec,
    /// Where frames leave it.
    pub stations: Stations,
    /// Frames dropped where a replay does not drop them, by reason.
    pub untold: Vec<(DropReason, u64)>,
}

/// Why the record of a switch would not be what a replay decides; `None`: it is.
#[must_use]
pub fn why_not(scenario: &Scenario, switch: usize) -> Option<&'static str> {
    if scenario.learning == Learning::Frames {
        return Some("it learns from frames where hosts are, which a trace cannot tell; write `learning: routes`");
    }
    if scenario.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Garbage { .. })) {
        return Some("hosts send garbage, which a trace has no words for; remove `garbage`");
    }
    record::why_not(&scenario.switches[switch].config.switch)
}

impl Recording {
    pub(super) fn take(node: &mut Node) -> Self {
        let ports = node.spec.fdb.entries.iter().map(|entry| (entry.mac, usize::from(entry.port))).collect();
        let up = node.devices.iter().enumerate().filter(|(_, device)| device.wires.is_some());
        let up = up.map(|(port, _)| port).collect();
        let rows = || node.counters.ports.iter().flat_map(|port| &port.drops);
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
    /// What `out` has to say.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        record::write_csv(out, &self.tape, &self.spec, &self.stations)
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
