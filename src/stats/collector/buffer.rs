//! The buffer: how it is divided, what limits whom, and who uses what.

use super::family::Families;
use super::port::NUMBERS;
use crate::mmu::{GroupProfile, Threshold};
use crate::stats::snapshot::{PortSnapshot, Snapshot, Values, cells};
use crate::stats::subject::Subject;
use crate::units::Cells;

/// A family with one gauge a priority group, if the group has it.
type Limit = (&'static str, &'static str, fn(&GroupProfile) -> Option<Cells>);

const LIMITS: [Limit; 5] = [
    ("holdfast_group_reserve_bytes", "Buffer guaranteed to the priority group.", |group| Some(group.reserve)),
    ("holdfast_group_headroom_size_bytes", "Headroom (eta) of the lossless priority group.", |group| {
        group.lossless.then_some(group.headroom)
    }),
    ("holdfast_group_static_threshold_bytes", "Limit on the group's share of its pool, where it is fixed.", |group| {
        match group.threshold {
            Threshold::Static(cells) => Some(cells),
            Threshold::Dynamic(_) => None,
        }
    }),
    ("holdfast_group_xon_offset_bytes", "How far below its threshold a paused group must fall for XON.", |group| {
        group.lossless.then_some(group.xon_offset)
    }),
    ("holdfast_group_xon_floor_bytes", "Share below which a paused group gets XON whatever its threshold.", |group| {
        group.lossless.then_some(group.xon_floor)
    }),
];

/// What the configuration allows.
pub(super) fn limits(families: &mut Families, subject: &Subject) {
    let plan = &subject.spec.buffer;
    let family = families.gauge("holdfast_buffer_bytes", "Division of the buffer; total is all of it.");
    for (part, cells) in [
        ("total", plan.total),
        ("reserves", plan.reserves),
        ("headroom", plan.headroom),
        ("lossless_shared", plan.lossless_shared),
        ("lossy_shared", plan.lossy_shared),
    ] {
        family.add(&[("part", part)], cells.to_bytes(plan.cell).0);
    }
    families.gauge("holdfast_cell_bytes", "Size of a buffer cell; a frame takes whole cells.").add(&[], plan.cell.0);
    for (name, help, of) in LIMITS {
        let family = families.gauge(name, help);
        for port in &subject.spec.ports {
            for (number, group) in NUMBERS.iter().zip(&port.buffer.groups) {
                if let Some(cells) = of(group) {
                    family.add(&[("port", &port.name), ("priority", number)], cells.to_bytes(plan.cell).0);
                }
            }
        }
    }
    let help = "Dynamic Threshold factor: the group may hold alpha times what its pool has free.";
    let family = families.gauge("holdfast_group_alpha", help);
    for port in &subject.spec.ports {
        for (number, group) in NUMBERS.iter().zip(&port.buffer.groups) {
            if let Threshold::Dynamic(alpha) = group.threshold {
                let value = f64::from(alpha.exponent()).exp2();
                family.add_real(&[("port", &port.name), ("priority", number)], value);
            }
        }
    }
    let family = families.gauge("holdfast_class_lossless", "1 for a traffic class that is meant to be lossless.");
    for (class, number) in NUMBERS.iter().enumerate() {
        family.add(&[("tc", number)], u64::from(subject.is_lossless(class)));
    }
}

/// One family of eight gauges in cells a port, shown in bytes.
type Use = (&'static str, &'static str, fn(&PortSnapshot) -> &Values);

const GROUPS: [Use; 4] = [
    ("holdfast_group_used_bytes", "Buffer that frames of the group hold in reserve and shared pool.", |port| {
        &port.group_used_cells
    }),
    ("holdfast_group_used_highest_bytes", "The most they ever held there.", |port| &port.group_used_highest_cells),
    ("holdfast_group_headroom_bytes", "Buffer that frames of the group hold in headroom.", |port| {
        &port.group_headroom_cells
    }),
    ("holdfast_group_headroom_highest_bytes", "The most they ever held there.", |port| {
        &port.group_headroom_highest_cells
    }),
];

const QUEUES: [Use; 2] = [
    ("holdfast_queue_bytes", "Buffer that frames waiting in the egress queue hold.", |port| &port.queue_cells),
    ("holdfast_queue_highest_bytes", "The most they ever held.", |port| &port.queue_highest_cells),
];

/// Use by priority group.
pub(super) fn groups(families: &mut Families, subject: &Subject, snapshot: &Snapshot) {
    uses(families, &GROUPS, "priority", subject, snapshot);
}

/// Use by egress queue.
pub(super) fn queues(families: &mut Families, subject: &Subject, snapshot: &Snapshot) {
    uses(families, &QUEUES, "queue", subject, snapshot);
}

fn uses(families: &mut Families, table: &[Use], label: &str, subject: &Subject, snapshot: &Snapshot) {
    for (name, help, of) in table {
        let family = families.gauge(name, help);
        for (index, port) in snapshot.ports.iter().enumerate() {
            for (number, value) in NUMBERS.iter().zip(of(port)) {
                let bytes = cells(*value).to_bytes(subject.spec.buffer.cell).0;
                family.add(&[("port", subject.port_name(index)), (label, number)], bytes);
            }
        }
    }
}

/// Use of the shared pools.
pub(super) fn pools(families: &mut Families, subject: &Subject, snapshot: &Snapshot) {
    let lcore = &snapshot.lcore;
    let now = [("lossless", lcore.lossless_used_cells), ("lossy", lcore.lossy_used_cells)];
    let highest = [("lossless", lcore.lossless_used_highest_cells), ("lossy", lcore.lossy_used_highest_cells)];
    for (name, help, values) in [
        ("holdfast_pool_used_bytes", "Buffer of the shared pool in use.", now),
        ("holdfast_pool_used_highest_bytes", "The most of the shared pool that ever was in use.", highest),
    ] {
        let family = families.gauge(name, help);
        for (pool, value) in values {
            family.add(&[("pool", pool)], cells(value).to_bytes(subject.spec.buffer.cell).0);
        }
    }
}
