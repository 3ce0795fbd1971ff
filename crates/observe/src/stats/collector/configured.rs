//! Metrics of the configuration: the division of the buffer, the limits, and the depths from which frames are marked.

use super::buffer::POOLS;
use super::family::Families;
use super::port::NUMBERS;
use crate::mmu::{GroupProfile, HeadroomPolicy, Threshold};
use crate::qos::{FloodKind, MaxRate, QueueDiscipline};
use crate::stats::needs::to_bytes;
use crate::stats::switch_view::SwitchView;
use crate::units::{Cells, Probability};

/// A family with one gauge for each priority group that has the value.
type Limit = (&'static str, &'static str, fn(&GroupProfile) -> Option<Cells>);

/// A family with one gauge for each queue that has a maximum rate.
type Maximum = (&'static str, &'static str, fn(&MaxRate) -> u64);

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
    ("holdfast_group_xon_floor_bytes", "Share below which a paused group gets XON at any threshold.", |group| {
        group.lossless.then_some(group.xon_floor)
    }),
];

/// The limits in the configuration.
pub(super) fn limits(families: &mut Families, switch_view: &SwitchView) {
    let plan = &switch_view.spec.buffer;
    let family = families.gauge("holdfast_buffer_bytes", "Division of the buffer; total is the whole buffer.");
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
        for port in &switch_view.spec.ports {
            for (number, group) in NUMBERS.iter().zip(&port.buffer.groups) {
                if let Some(cells) = of(group) {
                    family.add(&[("port", &port.name), ("priority", number)], cells.to_bytes(plan.cell).0);
                }
            }
        }
    }
    let help = "Dynamic Threshold factor: the group may hold alpha times the free part of its pool.";
    let family = families.gauge("holdfast_group_alpha", help);
    for port in &switch_view.spec.ports {
        for (number, group) in NUMBERS.iter().zip(&port.buffer.groups) {
            if let Threshold::Dynamic(alpha) = group.threshold {
                let value = f64::from(alpha.exponent()).exp2();
                family.add_real(&[("port", &port.name), ("priority", number)], value);
            }
        }
    }
    classes(families, switch_view);
    port_limits(families, switch_view);
    queue_limits(families, switch_view);
    queue_service(families, switch_view);
    max_rates(families, switch_view);
    storm_limits(families, switch_view);
}

/// The most frames to be flooded that ports may receive, where they have limits.
fn storm_limits(families: &mut Families, switch_view: &SwitchView) {
    let help = "The most frames a second received by the port that are flooded (storm control).";
    let family = families.gauge("holdfast_port_flood_limit_frames_per_second", help);
    for port in &switch_view.spec.ports {
        for ((_, kind), limit) in FloodKind::TABLE.iter().zip(&port.live.storm_limits) {
            if let Some(rate) = limit {
                family.add(&[("port", &port.name), ("kind", kind)], rate.0.into());
            }
        }
    }
}

/// The maps of traffic classes, and which classes are lossless.
fn classes(families: &mut Families, switch_view: &SwitchView) {
    let family = families.gauge("holdfast_class_lossless", "1 for a traffic class that is configured as lossless.");
    for (class, number) in NUMBERS.iter().enumerate() {
        family.add(&[("tc", number)], u64::from(switch_view.is_lossless(class)));
    }
    let help = "1 for the priority group and the egress queue that the traffic class is mapped to.";
    let family = families.gauge("holdfast_class_map_info", help);
    let maps = &switch_view.spec.classes;
    for (class, number) in NUMBERS.iter().enumerate() {
        let target = |map: &[u8; 8]| NUMBERS[usize::from(map[class] & 7)];
        let lossless = if switch_view.is_lossless(class) { "yes" } else { "no" };
        let (group, queue) = (target(&maps.tc_to_group), target(&maps.tc_to_queue));
        family.add(&[("tc", number), ("group", group), ("queue", queue), ("lossless", lossless)], 1);
    }
}

/// Reserves and insurance of ports, and the headroom policy.
fn port_limits(families: &mut Families, switch_view: &SwitchView) {
    let plan = &switch_view.spec.buffer;
    let help = "Buffer guaranteed to the port, for any of its groups of the pool beyond their own reserves.";
    let family = families.gauge("holdfast_port_reserve_bytes", help);
    for port in &switch_view.spec.ports {
        for (pool, cells) in POOLS.iter().zip(port.buffer.reserve) {
            family.add(&[("port", &port.name), ("pool", pool)], to_bytes(switch_view, cells).0);
        }
    }
    let help = "1 for the headroom policy of lossless groups: independent, shared-pool or dynamic.";
    let family = families.gauge("holdfast_headroom_policy_info", help);
    family.add(&[("policy", plan.policy.label())], 1);
    if plan.policy == HeadroomPolicy::SharedPool {
        let family = families.gauge("holdfast_headroom_pool_size_bytes", "Headroom that all lossless groups share.");
        family.add(&[], to_bytes(switch_view, plan.headroom).0);
    }
    if plan.policy == HeadroomPolicy::Dynamic {
        let help = "Insurance: the port's own headroom, for frames that arrive after the whole port is XOFF.";
        let family = families.gauge("holdfast_port_insurance_bytes", help);
        for port in &switch_view.spec.ports {
            family.add(&[("port", &port.name)], to_bytes(switch_view, port.buffer.insurance).0);
        }
    }
}

/// Limits of egress queues in the lossy pool, which are equal on every port.
fn queue_limits(families: &mut Families, switch_view: &SwitchView) {
    let queues = || NUMBERS.iter().zip(&switch_view.spec.queues);
    let help = "Part of the lossy pool reserved for the egress queue of each port.";
    let family = families.gauge("holdfast_queue_reserve_bytes", help);
    for (number, queue) in queues() {
        family.add(&[("queue", number)], to_bytes(switch_view, queue.reserve).0);
    }
    let help = "Dynamic Threshold factor of the egress queue: it may hold alpha times the free part of the lossy pool.";
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
            family.add(&[("queue", number)], to_bytes(switch_view, cells).0);
        }
    }
}

/// Schedulers and ECN profiles of egress queues, which are equal on every port.
fn queue_service(families: &mut Families, switch_view: &SwitchView) {
    let queues = || NUMBERS.iter().zip(&switch_view.spec.queues);
    let help = "Weight of the egress queue among the queues that are not strict; 0 for a strict queue.";
    let family = families.gauge("holdfast_queue_weight", help);
    for (number, queue) in queues() {
        let weight = match queue.discipline {
            QueueDiscipline::Strict => 0,
            QueueDiscipline::Dwrr { weight } => weight,
        };
        family.add(&[("queue", number)], weight.into());
    }
    let profiles = || queues().filter_map(|(number, queue)| Some((*number, queue.wred?)));
    let help = "Depth of the egress queue up to which no frame is marked or dropped early.";
    let family = families.gauge("holdfast_queue_ecn_min_bytes", help);
    profiles().for_each(|(number, profile)| family.add(&[("queue", number)], profile.kmin.0));
    let help = "Depth of the egress queue from which every frame is marked or dropped early.";
    let family = families.gauge("holdfast_queue_ecn_max_bytes", help);
    profiles().for_each(|(number, profile)| family.add(&[("queue", number)], profile.kmax.0));
    let help = "Share of frames that are marked or dropped early just below the maximum depth, 0 to 1.";
    let family = families.gauge("holdfast_queue_ecn_probability_ratio", help);
    for (number, profile) in profiles() {
        family.add_real(&[("queue", number)], f64::from(profile.pmax.0) / f64::from(Probability::ONE.0));
    }
}

/// Maximum rates of egress queues and their bursts.
fn max_rates(families: &mut Families, switch_view: &SwitchView) {
    let values: [Maximum; 2] = [
        (
            "holdfast_queue_max_rate_bytes_per_second",
            "Maximum rate of the egress queue on the wire, where it has one.",
            |maximum| maximum.rate.0 / 8,
        ),
        (
            "holdfast_queue_max_burst_bytes",
            "Bytes on the wire that a queue with a maximum rate may send at once.",
            |maximum| maximum.burst.0,
        ),
    ];
    for (name, help, of) in values {
        let family = families.gauge(name, help);
        for port in &switch_view.spec.ports {
            for (number, maximum) in NUMBERS.iter().zip(&port.live.max_rates) {
                if let Some(maximum) = maximum {
                    family.add(&[("port", &port.name), ("queue", number)], of(maximum));
                }
            }
        }
    }
}
