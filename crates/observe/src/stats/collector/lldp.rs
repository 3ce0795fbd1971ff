//! Metrics of LLDP: frames, neighbours and their differences, by port. Those of the loop guard.

use super::family::Families;
use crate::lldp::{DifferenceKind, PortView};
use crate::stats::switch_view::SwitchView;

type Row = (&'static str, &'static str, fn(&PortView) -> u64);

const COUNTERS: [Row; 4] = [
    ("holdfast_lldp_sent_frames_total", "LLDP frames sent.", |port| port.counts.frames_out),
    ("holdfast_lldp_received_frames_total", "LLDP frames received.", |port| port.counts.frames_in),
    (
        "holdfast_lldp_discarded_frames_total",
        "LLDP frames discarded for an error or for lack of room for a neighbour.",
        |port| port.counts.frames_discarded,
    ),
    ("holdfast_lldp_expired_neighbours_total", "Neighbours that fell silent.", |port| port.counts.ageouts),
];

/// LLDP of the ports that have it; nothing for a switch that has none.
pub(super) fn lldp(families: &mut Families, switch_view: &SwitchView) {
    let Some(board) = &switch_view.lldp else { return };
    let view = board.view();
    let ports = || view.ports.iter().filter(|port| port.is_enabled);
    for (name, help, of) in COUNTERS {
        let family = families.counter(name, help);
        ports().for_each(|port| family.add(&[("port", switch_view.port_name(port.port))], of(port)));
    }
    let help = "Frames and events dropped because too many waited.";
    families.counter("holdfast_lldp_output_dropped_total", help).add(&[], view.output_dropped);
    let family = families.gauge("holdfast_lldp_neighbours", "Neighbours known, at most 8.");
    for port in ports() {
        family.add(&[("port", switch_view.port_name(port.port))], port.neighbours.len() as u64);
    }
    let guarded = || view.ports.iter().filter(|port| port.is_enabled || port.has_probes);
    let help = "1 while the [loop guard](lldp.md#loops) blocks the port.";
    let family = families.gauge("holdfast_port_loop_blocked", help);
    for port in guarded() {
        family.add(&[("port", switch_view.port_name(port.port))], u64::from(port.is_blocked));
    }
    let help = "1 while the port receives LLDP or [probes](lldp.md#probes) of the switch itself.";
    let family = families.gauge("holdfast_port_loop", help);
    for port in guarded() {
        family.add(&[("port", switch_view.port_name(port.port))], u64::from(port.loop_with.is_some()));
    }
    let help = "Neighbours that differ from the port, by [kind](lldp.md#differences).";
    let family = families.gauge("holdfast_lldp_differences", help);
    for port in ports() {
        for (_, name) in DifferenceKind::TABLE {
            let differs = |differences: &[crate::lldp::view::DifferenceView]| {
                differences.iter().any(|difference| difference.name == name)
            };
            let count = port.neighbours.iter().filter(|neighbour| differs(&neighbour.differences)).count();
            family.add(&[("port", switch_view.port_name(port.port)), ("kind", name)], count as u64);
        }
    }
}
