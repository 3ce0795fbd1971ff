//! Metrics of the buffer: current use, current limits and watermarks.

use super::family::{Families, watermark};
use super::port::ClassRow;
use crate::mmu::HeadroomPolicy;
use crate::sets::NUMBERS;
use crate::stats::needs::{needs, to_bytes};
use crate::stats::snapshot::{PortSnapshot, Snapshot, Values, cells};
use crate::stats::switch_view::SwitchView;

/// Names of the pools, indexed by `lossless as usize`.
pub(super) const POOLS: [&str; 2] = ["lossy", "lossless"];

const GROUPS: [ClassRow; 3] = [
    ("holdfast_group_used_bytes", "Use of reserve and shared pool.", |port| &port.group_used_cells),
    ("holdfast_group_shared_bytes", "Use of the shared pool.", |port| &port.group_shared_cells),
    ("holdfast_group_headroom_bytes", "Use of headroom.", |port| &port.group_headroom_cells),
];

const GROUPS_HIGHEST: [ClassRow; 3] = [
    ("holdfast_group_used_highest_bytes", "Most in reserve and shared pool", |port| &port.group_used_highest_cells),
    ("holdfast_group_shared_highest_bytes", "Most in the shared pool", |port| &port.group_shared_highest_cells),
    ("holdfast_group_headroom_highest_bytes", "Most in headroom", |port| &port.group_headroom_highest_cells),
];

const QUEUES: ClassRow = ("holdfast_queue_bytes", "Bytes waiting in the egress queue.", |port| &port.queue_cells);

const QUEUES_HIGHEST: ClassRow =
    ("holdfast_queue_highest_bytes", "Most bytes that waited", |port| &port.queue_highest_cells);

/// Buffer use of each priority group.
pub(super) fn groups(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot, ever: &Snapshot) {
    uses(families, &GROUPS, "priority", switch_view, snapshot);
    GROUPS_HIGHEST.iter().for_each(|row| highest(families, row, "priority", switch_view, [snapshot, ever]));
    // A group takes its reserve first and returns it last, so its used cells determine the used part of its reserve.
    let used: fn(&PortSnapshot) -> &Values = |port| &port.group_used_cells;
    let mark: fn(&PortSnapshot) -> &Values = |port| &port.group_used_highest_cells;
    for (name, help, from, of) in [
        ("holdfast_group_reserve_used_bytes", "Use of the reserve.", snapshot, used),
        ("holdfast_group_reserve_highest_bytes", "Most in the reserve since watermarks were cleared.", snapshot, mark),
        ("holdfast_group_reserve_highest_since_start_bytes", "Most in the reserve since the start.", ever, mark),
    ] {
        let family = families.gauge(name, help);
        for ((index, port), spec) in from.ports.iter().enumerate().zip(&switch_view.spec.ports) {
            for ((number, used), group) in NUMBERS.iter().zip(of(port)).zip(&spec.buffer.groups) {
                let bytes = to_bytes(switch_view, cells(*used).min(group.reserve)).0;
                family.add(&[("port", switch_view.port_name(index)), ("priority", number)], bytes);
            }
        }
    }
}

/// The current limit of each group in its pool.
pub(super) fn thresholds(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let plan = &switch_view.spec.buffer;
    let help = "Current limit in the pool.";
    let family = families.gauge("holdfast_group_threshold_bytes", help);
    for port in &switch_view.spec.ports {
        for (number, group) in NUMBERS.iter().zip(&port.buffer.groups) {
            let limit = to_bytes(switch_view, snapshot.limit(plan, group.threshold, group.lossless)).0;
            family.add(&[("port", &port.name), ("priority", number)], limit);
        }
    }
}

/// The headroom that each lossless group needed according to measurements.
pub(super) fn headroom_needs(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let needs = needs(switch_view, snapshot);
    let labels = |port: usize, group: usize| [("port", switch_view.port_name(port)), ("priority", NUMBERS[group])];
    let help = "Measured need of headroom.";
    let family = families.gauge("holdfast_group_headroom_needed_bytes", help);
    for need in &needs {
        family.add(&labels(need.port, need.group), to_bytes(switch_view, need.needed).0);
    }
    let help = "1 if headroom is less than needed, or an obeying peer's frames were lost.";
    let family = families.gauge("holdfast_group_headroom_is_short", help);
    for need in &needs {
        family.add(&labels(need.port, need.group), u64::from(need.is_short()));
    }
}

/// Use of the reserves of ports.
pub(super) fn port_reserves(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let family = families.gauge("holdfast_port_reserve_used_bytes", "Use of the port's reserve.");
    for (index, port) in snapshot.ports.iter().enumerate() {
        for (pool, used) in POOLS.iter().zip(port.reserve_used_cells) {
            family.add(&[("port", switch_view.port_name(index)), ("pool", pool)], to_bytes(switch_view, cells(used)).0);
        }
    }
}

/// Use of the ports' insurance; no series unless headroom is dynamic.
pub(super) fn insurance(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot, ever: &Snapshot) {
    if switch_view.spec.buffer.policy != HeadroomPolicy::Dynamic {
        return;
    }
    let mut use_of = |name: &str, help: &str, from: &Snapshot, of: fn(&PortSnapshot) -> u64| {
        let family = families.gauge(name, help);
        for (index, port) in from.ports.iter().enumerate() {
            family.add(&[("port", switch_view.port_name(index))], to_bytes(switch_view, cells(of(port))).0);
        }
    };
    let help = "Use of the insurance (`dynamic`).";
    use_of("holdfast_port_insurance_used_bytes", help, snapshot, |port| port.insurance_cells);
    let name = "holdfast_port_insurance_highest_bytes";
    for (name, help, from) in watermark(name, "Most in the insurance", [snapshot, ever]) {
        use_of(&name, &help, from, |port| port.insurance_highest_cells);
    }
}

/// Buffer use of each egress queue.
pub(super) fn queues(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot, ever: &Snapshot) {
    uses(families, &[QUEUES], "queue", switch_view, snapshot);
    highest(families, &QUEUES_HIGHEST, "queue", switch_view, [snapshot, ever]);
}

fn uses(families: &mut Families, table: &[ClassRow], label: &str, switch_view: &SwitchView, snapshot: &Snapshot) {
    for (name, help, of) in table {
        use_of(families, name, help, label, switch_view, snapshot, *of);
    }
}

fn highest(families: &mut Families, row: &ClassRow, label: &str, switch_view: &SwitchView, snapshots: [&Snapshot; 2]) {
    for (name, help, from) in watermark(row.0, row.1, snapshots) {
        use_of(families, &name, &help, label, switch_view, from, row.2);
    }
}

fn use_of(
    families: &mut Families,
    name: &str,
    help: &str,
    label: &str,
    switch_view: &SwitchView,
    snapshot: &Snapshot,
    of: fn(&PortSnapshot) -> &Values,
) {
    let family = families.gauge(name, help);
    for (index, port) in snapshot.ports.iter().enumerate() {
        for (number, value) in NUMBERS.iter().zip(of(port)) {
            let bytes = to_bytes(switch_view, cells(*value)).0;
            family.add(&[("port", switch_view.port_name(index)), (label, number)], bytes);
        }
    }
}

/// Use of the shared pools.
pub(super) fn pools(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot, ever: &Snapshot) {
    let now = [snapshot.lcore.lossy_used_cells, snapshot.lcore.lossless_used_cells];
    let highest = |of: &Snapshot| [of.lcore.lossy_used_highest_cells, of.lcore.lossless_used_highest_cells];
    for (name, help, values) in [
        ("holdfast_pool_used_bytes", "Use of the shared pool.", now),
        (
            "holdfast_pool_used_highest_bytes",
            "Most in the shared pool since watermarks were cleared.",
            highest(snapshot),
        ),
        ("holdfast_pool_used_highest_since_start_bytes", "Most in the shared pool since the start.", highest(ever)),
    ] {
        let family = families.gauge(name, help);
        for (pool, value) in POOLS.iter().zip(values) {
            family.add(&[("pool", pool)], to_bytes(switch_view, cells(value)).0);
        }
    }
    if switch_view.spec.buffer.policy != HeadroomPolicy::SharedPool {
        return;
    }
    for (name, help, value) in [
        (
            "holdfast_headroom_pool_used_bytes",
            "Use of the headroom pool (`shared-pool`).",
            snapshot.lcore.headroom_pool_used_cells,
        ),
        (
            "holdfast_headroom_pool_used_highest_bytes",
            "Most in the headroom pool since watermarks were cleared.",
            snapshot.lcore.headroom_pool_highest_cells,
        ),
        (
            "holdfast_headroom_pool_used_highest_since_start_bytes",
            "Most in the headroom pool since the start.",
            ever.lcore.headroom_pool_highest_cells,
        ),
    ] {
        families.gauge(name, help).add(&[], to_bytes(switch_view, cells(value)).0);
    }
}
