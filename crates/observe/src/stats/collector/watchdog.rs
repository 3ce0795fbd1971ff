//! Metrics of PFC watchdogs, which detect peers that pause a class for too long.

use super::family::{Families, Family};
use super::lcore::seconds;
use super::port::ClassRow;
use crate::pfc::WatchdogSpec;
use crate::sets::NUMBERS;
use crate::stats::snapshot::{PortSnapshot, Snapshot};
use crate::stats::switch_view::SwitchView;

/// The ports with a watchdog: name, settings, counters.
fn watched<'a>(
    switch_view: &'a SwitchView,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = (&'a str, WatchdogSpec, &'a PortSnapshot)> {
    let ports = switch_view.spec.ports.iter().zip(&snapshot.ports);
    ports.filter_map(|(spec, port)| Some((spec.name.as_str(), spec.live.watchdog?, port)))
}

/// Settings, storms and restorations of the ports that have a watchdog.
pub(super) fn watchdogs(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let help = "1 for the [action](pfc.md#actions) in a storm.";
    let family = families.gauge("holdfast_watchdog_info", help);
    for (name, spec, _) in watched(switch_view, snapshot) {
        family.add(&[("port", name), ("action", spec.action.label())], 1);
    }
    let help = "Time until a storm.";
    let family = families.gauge("holdfast_watchdog_detection_seconds", help);
    for (name, spec, _) in watched(switch_view, snapshot) {
        family.add_real(&[("port", name)], seconds(spec.detection.0));
    }
    let help = "Quiet time until the end of a storm.";
    let family = families.gauge("holdfast_watchdog_restoration_seconds", help);
    for (name, spec, _) in watched(switch_view, snapshot) {
        family.add_real(&[("port", name)], seconds(spec.restoration.0));
    }
    let counts: [ClassRow; 2] = [
        ("holdfast_watchdog_storms_total", "Storms found.", |port| &port.watchdog_storms),
        ("holdfast_watchdog_restores_total", "Storms ended.", |port| &port.watchdog_restores),
    ];
    for (name, help, of) in counts {
        let family = families.counter(name, help);
        watched(switch_view, snapshot)
            .for_each(|(port, _, counters)| by_queue(family, port, |queue| of(counters)[queue]));
    }
    let family = families.gauge("holdfast_watchdog_storming", "1 during a storm.");
    for (name, _, port) in watched(switch_view, snapshot) {
        by_queue(family, name, |queue| u64::from(port.watchdog_mask.contains(queue)));
    }
}

fn by_queue(family: &mut Family, port: &str, of: impl Fn(usize) -> u64) {
    for (queue, number) in NUMBERS.iter().enumerate() {
        family.add(&[("port", port), ("queue", number)], of(queue));
    }
}
