//! Metrics of injected faults; nothing for a switch that allows none.

use super::family::Families;
use crate::faults::{FaultVerb, Toward};
use crate::stats::switch_view::SwitchView;

pub(super) fn faults(families: &mut Families, switch_view: &SwitchView) {
    let Some(board) = &switch_view.faults else { return };
    let counters = board.counters();
    let ports = || (0..switch_view.spec.ports.len()).map(|port| (port, switch_view.port_name(port)));
    let family = families.gauge("holdfast_faults_active", "Injected faults that act now.");
    for (port, name) in ports() {
        for (verb, fault, _) in FaultVerb::TABLE {
            family.add(&[("port", name), ("fault", fault)], board.active(port, verb) as u64);
        }
    }
    let help = "Frames that injected faults hit; with `storm` XOFF frames.";
    let family = families.counter("holdfast_fault_frames_total", help);
    for (port, name) in ports() {
        for (verb, fault, _) in FaultVerb::TABLE {
            for (word, toward) in Toward::TABLE {
                let frames = counters.of_port(port, verb, toward).iter().sum();
                family.add(&[("port", name), ("fault", fault), ("toward", word)], frames);
            }
        }
    }
    let help = "Frames that faults were to hold or copy, and let pass for lack of room.";
    let family = families.counter("holdfast_fault_passed_frames_total", help);
    for (port, name) in ports() {
        family.add(&[("port", name)], counters.passed_of_port(port));
    }
    let help = "Frames that faults hold now.";
    families.gauge("holdfast_fault_held_frames", help).add(&[], counters.held());
}
