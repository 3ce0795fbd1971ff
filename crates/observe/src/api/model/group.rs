//! Priority groups: the ingress side of the buffer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Look, classes_of, threshold};
use crate::mmu::HeadroomPolicy;
use crate::sets::CLASSES;
use crate::stats::needs::{Need, needs};

/// One priority group of a port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Group {
    /// The port.
    pub port: String,
    /// 0 to 7, also PFC priority.
    pub group: u8,
    /// Traffic classes in it.
    pub classes: Vec<u8>,
    /// Whether it uses the lossless pool and headroom.
    pub lossless: bool,
    /// Whether it holds its peer at XOFF.
    pub xoff: bool,
    /// Its own reserve.
    pub reserve_bytes: u64,
    /// Factor of the Dynamic Threshold; null: fixed limit.
    pub alpha: Option<f64>,
    /// Fixed limit; null: dynamic.
    pub static_limit_bytes: Option<u64>,
    /// Current limit, without reserve (`holdfast_group_threshold_bytes`).
    pub limit_bytes: u64,
    /// Use that now causes XOFF, with reserve; null: lossy.
    pub xoff_bytes: Option<u64>,
    /// Distance below the limit for XON; 0: lossy.
    pub xon_offset_bytes: u64,
    /// XON below this at any limit; 0: lossy.
    pub xon_floor_bytes: u64,
    /// Bytes in reserve and shared pool.
    pub used_bytes: u64,
    /// Most bytes of these.
    pub used_highest_bytes: u64,
    /// Most bytes in the shared pool.
    pub shared_highest_bytes: u64,
    /// Most headroom that it may use: eta.
    pub headroom_size_bytes: u64,
    /// Bytes in headroom.
    pub headroom_bytes: u64,
    /// Most bytes of these.
    pub headroom_highest_bytes: u64,
    /// Measured need of headroom; null: no PFC.
    pub headroom_needed_bytes: Option<u64>,
}

impl Group {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let needs = needs(look.switch_view, look.snapshot);
        let ports = 0..look.switch_view.spec.ports.len().min(look.snapshot.ports.len());
        ports
            .flat_map(|port| (0..CLASSES).map(move |group| (port, group)))
            .map(|(port, group)| Self::of(look, &needs, port, group))
            .collect()
    }

    fn of(look: &Look<'_>, needs: &[Need], port: usize, group: usize) -> Self {
        let (spec, counters) = (&look.switch_view.spec.ports[port], &look.snapshot.ports[port]);
        let profile = &spec.buffer.groups[group];
        let limit = look.limit(profile.threshold, profile.lossless);
        let early = if look.switch_view.spec.buffer.policy == HeadroomPolicy::Dynamic { profile.headroom.0 } else { 0 };
        let xoff = limit.0.saturating_sub(early).saturating_add(profile.reserve.0);
        let (alpha, fixed) = threshold(profile.threshold);
        let need = needs.iter().find(|need| need.port == port && need.group == group);
        let lossless_only = |cells| if profile.lossless { look.size(cells) } else { 0 };
        Self {
            port: spec.name.clone(),
            group: group as u8,
            classes: classes_of(&look.switch_view.spec.classes.tc_to_group, group),
            lossless: profile.lossless,
            xoff: counters.xoff_mask.contains(group),
            reserve_bytes: look.size(profile.reserve),
            alpha,
            static_limit_bytes: fixed.map(|cells| look.size(cells)),
            limit_bytes: look.size(limit),
            xoff_bytes: profile.lossless.then(|| look.bytes(xoff.into())),
            xon_offset_bytes: lossless_only(profile.xon_offset),
            xon_floor_bytes: lossless_only(profile.xon_floor),
            used_bytes: look.bytes(counters.group_used_cells[group]),
            used_highest_bytes: look.bytes(counters.group_used_highest_cells[group]),
            shared_highest_bytes: look.bytes(counters.group_shared_highest_cells[group]),
            headroom_size_bytes: look.size(profile.headroom),
            headroom_bytes: look.bytes(counters.group_headroom_cells[group]),
            headroom_highest_bytes: look.bytes(counters.group_headroom_highest_cells[group]),
            headroom_needed_bytes: need.map(|need| look.size(need.needed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mmu::Threshold;
    use crate::stats::{Current, Snapshot, SwitchCollector, fixture};
    use crate::units::{Alpha, Cells};
    use std::time::Duration;

    /// The API and the metric report the same limit for every group.
    #[test]
    fn group_limit_in_api_and_metric_is_capped_by_its_pool() {
        let mut switch_view = fixture::run();
        let groups = &mut switch_view.spec.ports[0].buffer.groups;
        groups[0].threshold = Threshold::Dynamic(Alpha::from_exponent(3).unwrap());
        groups[3].threshold = Threshold::Static(Cells(u32::MAX));
        let plan = switch_view.spec.buffer;
        let snapshot = Snapshot::take(&switch_view, Duration::from_secs(1));
        let groups = Group::all(&Look { switch_view: &switch_view, snapshot: &snapshot });
        let text = SwitchCollector::new(Current::new(switch_view)).text();
        for group in &groups {
            let (port, number) = (&group.port, group.group);
            let pool = if number == 3 { plan.lossless_shared } else { plan.lossy_shared };
            assert!(group.limit_bytes <= pool.to_bytes(plan.cell).0, "{port}, group {number}");
            let labels = format!("port=\"{port}\",priority=\"{number}\"");
            let line = format!("\nholdfast_group_threshold_bytes{{{labels}}} {}\n", group.limit_bytes);
            assert!(text.contains(&line), "{line}");
        }
        let of = |number| groups.iter().find(|group| group.port == "p1" && group.group == number).unwrap().limit_bytes;
        assert_eq!(of(0), plan.lossy_shared.to_bytes(plan.cell).0);
        assert_eq!(of(3), plan.lossless_shared.to_bytes(plan.cell).0);
    }
}
