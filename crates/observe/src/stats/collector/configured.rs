//! Metrics of the configuration: the division of the buffer, the limits, and the depths from which frames are marked.

use super::buffer::POOLS;
use super::family::Families;
use crate::config::settings::{self, Gauges};
use crate::mmu::HeadroomPolicy;
use crate::sets::NUMBERS;
use crate::stats::needs::to_bytes;
use crate::stats::switch_view::SwitchView;

/// The limits in the configuration.
pub(super) fn limits(families: &mut Families, switch_view: &SwitchView) {
    let plan = &switch_view.spec.buffer;
    let family = families.gauge("holdfast_buffer_bytes", "Division of the buffer; `total` is all.");
    for (part, cells) in [
        ("total", plan.total),
        ("reserves", plan.reserves),
        ("headroom", plan.headroom),
        ("lossless_shared", plan.lossless_shared),
        ("lossy_shared", plan.lossy_shared),
    ] {
        family.add(&[("part", part)], cells.to_bytes(plan.cell).0);
    }
    let help = "1 while frames hold cells of a part of the buffer that a reload has made smaller.";
    families.gauge("holdfast_buffer_pending", help).add(&[], switch_view.pending.get().is_some().into());
    families.gauge("holdfast_cell_bytes", "Size of a cell.").add(&[], plan.cell.0);
    classes(families, switch_view);
    port_limits(families, switch_view);
    settings::measure(&switch_view.spec, families);
}

impl Gauges for Families {
    fn begin(&mut self, name: &str, help: &str) {
        self.gauge(name, help);
    }

    fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        self.add_real(labels, value);
    }
}

/// The maps of traffic classes, and which classes are lossless.
fn classes(families: &mut Families, switch_view: &SwitchView) {
    let family = families.gauge("holdfast_class_lossless", "1 if configured lossless.");
    for (class, number) in NUMBERS.iter().enumerate() {
        family.add(&[("tc", number)], u64::from(switch_view.is_lossless(class)));
    }
    let help = "1 for the map of the class; `lossless` is `yes` or `no`.";
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
    let help = "Reserve of the port, beyond its groups'.";
    let family = families.gauge("holdfast_port_reserve_bytes", help);
    for port in &switch_view.spec.ports {
        for (pool, cells) in POOLS.iter().zip(port.buffer.reserve) {
            family.add(&[("port", &port.name), ("pool", pool)], to_bytes(switch_view, cells).0);
        }
    }
    let help = "1 for `independent`, `shared-pool` or `dynamic`.";
    let family = families.gauge("holdfast_headroom_policy_info", help);
    family.add(&[("policy", plan.policy.label())], 1);
    if plan.policy == HeadroomPolicy::SharedPool {
        let help = "Size of the headroom pool (`shared-pool`).";
        let family = families.gauge("holdfast_headroom_pool_size_bytes", help);
        family.add(&[], to_bytes(switch_view, plan.headroom).0);
    }
    if plan.policy == HeadroomPolicy::Dynamic {
        let help = "Insurance of the port (`dynamic`).";
        let family = families.gauge("holdfast_port_insurance_bytes", help);
        for port in &switch_view.spec.ports {
            family.add(&[("port", &port.name)], to_bytes(switch_view, port.buffer.insurance).0);
        }
    }
}
