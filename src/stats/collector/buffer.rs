//! The buffer: how it is divided, what limits whom, and who uses what.

use super::family::Families;
use super::port::NUMBERS;
use crate::mmu::{GroupProfile, HeadroomPolicy, Threshold};
use crate::stats::format::headroom_policy;
use crate::stats::needs::{needs, to_bytes};
use crate::stats::snapshot::{PortSnapshot, Snapshot, Values, cells};
use crate::stats::subject::Subject;
use crate::units::Cells;

/// Pools as what is indexed by `lossless as usize` has them.
const POOLS: [&str; 2] = ["lossy", "lossless"];

/// A family with one gauge a port: name, help, cells.
type PerPort = (&'static str, &'static str, fn(&PortSnapshot) -> u64);

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
    classes(families, subject);
    port_limits(families, subject);
    queue_limits(families, subject);
}

/// Traffic classes: where they go, and which are lossless.
fn classes(families: &mut Families, subject: &Subject) {
    let family = families.gauge("holdfast_class_lossless", "1 for a traffic class that is meant to be lossless.");
    for (class, number) in NUMBERS.iter().enumerate() {
        family.add(&[("tc", number)], u64::from(subject.is_lossless(class)));
    }
    let help = "1 for the priority group and the egress queue that the traffic class is mapped to.";
    let family = families.gauge("holdfast_class_map_info", help);
    let maps = &subject.spec.classes;
    for (class, number) in NUMBERS.iter().enumerate() {
        let target = |map: &[u8; 8]| NUMBERS[usize::from(map[class] & 7)];
        let lossless = if subject.is_lossless(class) { "yes" } else { "no" };
        let (group, queue) = (target(&maps.tc_to_group), target(&maps.tc_to_queue));
        family.add(&[("tc", number), ("group", group), ("queue", queue), ("lossless", lossless)], 1);
    }
}

/// What belongs to ports and not to their groups, and how headroom is shared.
fn port_limits(families: &mut Families, subject: &Subject) {
    let plan = &subject.spec.buffer;
    let help = "Buffer guaranteed to the port, for any of its groups of the pool beyond their own reserves.";
    let family = families.gauge("holdfast_port_reserve_bytes", help);
    for port in &subject.spec.ports {
        for (pool, cells) in POOLS.iter().zip(port.buffer.reserve) {
            family.add(&[("port", &port.name), ("pool", pool)], to_bytes(subject, cells).0);
        }
    }
    let help = "1 for what lossless groups do after XOFF: independent, shared-pool or dynamic.";
    let family = families.gauge("holdfast_headroom_policy_info", help);
    family.add(&[("policy", headroom_policy(plan.policy))], 1);
    if plan.policy == HeadroomPolicy::SharedPool {
        let family = families.gauge("holdfast_headroom_pool_size_bytes", "Headroom that all lossless groups share.");
        family.add(&[], to_bytes(subject, plan.headroom).0);
    }
    if plan.policy == HeadroomPolicy::Dynamic {
        let help = "Headroom of the port's own, for what comes after the whole port is XOFF.";
        let family = families.gauge("holdfast_port_insurance_bytes", help);
        for port in &subject.spec.ports {
            family.add(&[("port", &port.name)], to_bytes(subject, port.buffer.insurance).0);
        }
    }
}

/// How egress queues use the lossy pool; the same on every port.
fn queue_limits(families: &mut Families, subject: &Subject) {
    let queues = || NUMBERS.iter().zip(&subject.spec.queues);
    let help = "Part of the lossy pool kept for the egress queue of each port.";
    let family = families.gauge("holdfast_queue_reserve_bytes", help);
    for (number, queue) in queues() {
        family.add(&[("queue", number)], to_bytes(subject, queue.reserve).0);
    }
    let help = "Dynamic Threshold factor of the egress queue: it may hold alpha times what the lossy pool has free.";
    let family = families.gauge("holdfast_queue_alpha", help);
    for (number, queue) in queues() {
        if let Some(Threshold::Dynamic(alpha)) = queue.limit.map(|limit| limit.threshold) {
            family.add_real(&[("queue", number)], f64::from(alpha.exponent()).exp2());
        }
    }
    let help = "Limit on the egress queue's share of the lossy pool, where it is fixed.";
    let family = families.gauge("holdfast_queue_static_threshold_bytes", help);
    for (number, queue) in queues() {
        if let Some(Threshold::Static(cells)) = queue.limit.map(|limit| limit.threshold) {
            family.add(&[("queue", number)], to_bytes(subject, cells).0);
        }
    }
}

/// One family of eight gauges in cells a port, shown in bytes.
type Use = (&'static str, &'static str, fn(&PortSnapshot) -> &Values);

const GROUPS: [Use; 5] = [
    ("holdfast_group_used_bytes", "Buffer that frames of the group hold in reserve and shared pool.", |port| {
        &port.group_used_cells
    }),
    ("holdfast_group_used_highest_bytes", "The most they ever held there.", |port| &port.group_used_highest_cells),
    ("holdfast_group_shared_highest_bytes", "The most they ever held of the shared pool.", |port| {
        &port.group_shared_highest_cells
    }),
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

/// What each lossless group has turned out to need.
pub(super) fn headroom_needs(families: &mut Families, subject: &Subject, snapshot: &Snapshot) {
    let needs = needs(subject, snapshot);
    let labels = |port: usize, group: usize| [("port", subject.port_name(port)), ("priority", NUMBERS[group])];
    let help = "Headroom that the group needs by what was seen: with the longest poll gap, or its highest use.";
    let family = families.gauge("holdfast_group_headroom_needed_bytes", help);
    for need in &needs {
        family.add(&labels(need.port, need.group), to_bytes(subject, need.needed).0);
    }
    let help = "1 if the group has less headroom than was seen to be needed, or lost frames of a peer that obeys.";
    let family = families.gauge("holdfast_group_headroom_is_short", help);
    for need in &needs {
        family.add(&labels(need.port, need.group), u64::from(need.is_short()));
    }
}

/// Use of the ports' own reserves.
pub(super) fn port_reserves(families: &mut Families, subject: &Subject, snapshot: &Snapshot) {
    let family = families.gauge("holdfast_port_reserve_used_bytes", "Buffer of the port's own reserve in use.");
    for (index, port) in snapshot.ports.iter().enumerate() {
        for (pool, used) in POOLS.iter().zip(port.reserve_used_cells) {
            family.add(&[("port", subject.port_name(index)), ("pool", pool)], to_bytes(subject, cells(used)).0);
        }
    }
}

/// What ports use of their insurance; nothing where headroom is not dynamic.
pub(super) fn insurance(families: &mut Families, subject: &Subject, snapshot: &Snapshot) {
    if subject.spec.buffer.policy != HeadroomPolicy::Dynamic {
        return;
    }
    let rows: [PerPort; 2] = [
        ("holdfast_port_insurance_used_bytes", "Insurance of the port in use.", |port| port.insurance_cells),
        ("holdfast_port_insurance_highest_bytes", "Most of the insurance of the port that was in use.", |port| {
            port.insurance_highest_cells
        }),
    ];
    for (name, help, of) in rows {
        let family = families.gauge(name, help);
        for (index, port) in snapshot.ports.iter().enumerate() {
            family.add(&[("port", subject.port_name(index))], to_bytes(subject, cells(of(port))).0);
        }
    }
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
    if subject.spec.buffer.policy == HeadroomPolicy::SharedPool {
        for (name, help, value) in [
            ("holdfast_headroom_pool_used_bytes", "Shared headroom in use.", lcore.headroom_pool_used_cells),
            (
                "holdfast_headroom_pool_used_highest_bytes",
                "The most of the shared headroom that ever was in use.",
                lcore.headroom_pool_highest_cells,
            ),
        ] {
            families.gauge(name, help).add(&[], to_bytes(subject, cells(value)).0);
        }
    }
}
