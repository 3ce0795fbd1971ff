//! The headroom that a group needed according to measurements, compared with its configured headroom.

use super::snapshot::{PortSnapshot, Snapshot, cells};
use super::switch_view::SwitchView;
use crate::headroom::{HeadroomInput, headroom};
use crate::mmu::HeadroomPolicy;
use crate::pfc::Observed;
use crate::plan::DropReason;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, Cells, Nanos};

/// The need of one lossless group of a port with PFC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Index of the port.
    pub port: usize,
    /// Priority group.
    pub group: usize,
    /// Headroom that it may use.
    pub size: Cells,
    /// Result of the formula with the longest observed poll gap, or the highest use if that is more. Only the use
    /// counts if the peer is a virtual host, which also stands still in a poll gap.
    pub needed: Cells,
    /// Frames of its classes dropped because the headroom, its own or the shared pool, was full.
    pub overflows: u64,
    /// The answer of the peer to XOFF, as measured.
    pub observed: Observed,
    /// Whether the peer is known to obey PFC, or the operator asserts it and no measurement has refuted it. If so, a
    /// drop is the fault of the headroom and not of the peer.
    pub obeys: bool,
}

impl Need {
    /// Whether the configured headroom is less than the measured need.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.needed > self.size || (self.obeys && self.overflows > 0)
    }
}

/// The needs of all lossless groups of all ports with PFC. Without PFC no headroom is sufficient, so none is judged.
#[must_use]
pub fn needs(switch_view: &SwitchView, snapshot: &Snapshot) -> Vec<Need> {
    let mut needs = Vec::new();
    for (port, counters) in snapshot.ports.iter().enumerate() {
        // The formula does not depend on the group: one result for each port.
        let by_formula = by_formula(switch_view, port, snapshot.longest_poll_gap(switch_view, port));
        let guarded = switch_view.guarded_groups(port);
        needs.extend(guarded.iter().map(|group| Need {
            port,
            group,
            size: size(switch_view, port, group),
            needed: by_formula.max(cells(counters.group_headroom_highest_cells[group])),
            overflows: overflows(switch_view, counters, group),
            observed: switch_view.observed(port, &counters.peer, ClassSet::only(group)),
            obeys: !switch_view.disobeyed(port).contains(group)
                && (switch_view.standing(port).is_relied_upon() || counters.peer.obeyed.contains(group)),
        }));
    }
    needs
}

/// The formula's result for port `port` with a poll gap of `gap`. Zero if gaps are harmless there, or before the first
/// gap.
fn by_formula(switch_view: &SwitchView, port: usize, gap: Nanos) -> Cells {
    match switch_view.links.get(port) {
        Some(link) if gap.0 > 0 && !switch_view.is_in_process(port) => {
            headroom(&HeadroomInput { poll_gap: gap, ..*link }).cells
        }
        _ => Cells(0),
    }
}

/// Headroom that one group may use: its eta, limited by the shared headroom.
fn size(switch_view: &SwitchView, port: usize, group: usize) -> Cells {
    let eta = switch_view.spec.ports.get(port).map_or(Cells(0), |port| port.buffer.groups[group].headroom);
    match switch_view.spec.buffer.policy {
        HeadroomPolicy::SharedPool => eta.min(switch_view.spec.buffer.headroom),
        HeadroomPolicy::Independent => eta,
        // Frames that arrive after XOFF use the port's insurance, regardless of their group.
        HeadroomPolicy::Dynamic => switch_view.spec.ports.get(port).map_or(Cells(0), |port| port.buffer.insurance),
    }
}

fn overflows(switch_view: &SwitchView, port: &PortSnapshot, group: usize) -> u64 {
    let classes = (0..CLASSES).filter(|&class| usize::from(switch_view.spec.classes.tc_to_group[class]) == group);
    let reasons = [DropReason::HeadroomFull, DropReason::HeadroomPoolEmpty];
    classes.map(|class| reasons.map(|reason| port.drops[class][reason as usize]).iter().sum::<u64>()).sum()
}

/// Converts `count` cells of this switch's buffer to bytes.
#[must_use]
pub fn to_bytes(switch_view: &SwitchView, count: Cells) -> Bytes {
    count.to_bytes(switch_view.spec.buffer.cell)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixture::quiet;
    use super::super::switch_view::PfcStanding;
    use super::*;

    /// The needs of the only lossless groups of both ports, after a longest poll gap of `gap`.
    fn after(switch_view: &SwitchView, gap: u64) -> [Need; 2] {
        switch_view.counters.lcores[0].poll_gap_highest_ns.set(gap);
        needs(switch_view, &Snapshot::take(switch_view, Duration::ZERO)).try_into().expect("two")
    }

    #[test]
    fn headroom_need_follows_the_formula_for_the_poll_gap() {
        let mut switch_view = quiet();
        switch_view.hosts = None;
        switch_view.spec.ports[0].buffer.groups[3].headroom = headroom(&switch_view.links[0]).cells;
        let configured = switch_view.links[0].poll_gap.0;
        let [p1, p2] = after(&switch_view, configured);
        assert_eq!((p1.port, p1.group, p1.needed, p1.is_short()), (0, 3, p1.size, false));
        assert!(p2.needed == p1.needed && p2.is_short(), "200 cells were given by hand: {p2:?}");
        assert!(after(&switch_view, configured + 1_000)[0].is_short());
        assert_eq!(after(&switch_view, 0)[0].needed, Cells(0), "before the first gap nothing is known");
    }

    #[test]
    fn poll_gap_needs_no_headroom_with_virtual_hosts() {
        let switch_view = quiet();
        switch_view.counters.ports[0].group_headroom_highest_cells[3].set(150);
        let [p1, p2] = after(&switch_view, 9_000_000);
        assert_eq!((p1.needed, p1.size, p1.is_short()), (Cells(150), Cells(200), false));
        assert_eq!((p2.needed, p2.is_short()), (Cells(0), false));
        switch_view.counters.ports[1].drops[3][DropReason::HeadroomFull as usize].add(1);
        assert!(after(&switch_view, 0)[1].is_short(), "it obeys and yet it did not fit");
    }

    #[test]
    fn loss_from_an_unproven_peer_is_no_headroom_shortage() {
        let mut switch_view = quiet();
        switch_view.pfc[1] = PfcStanding::Unproven;
        switch_view.counters.ports[1].drops[3][DropReason::HeadroomFull as usize].add(1);
        assert!(!after(&switch_view, 0)[1].is_short());
        switch_view.spec.ports[1].pfc = crate::pfc::PfcMode::Off;
        assert_eq!(needs(&switch_view, &Snapshot::take(&switch_view, Duration::ZERO)).len(), 1);
    }

    #[test]
    fn a_shared_pool_limits_every_group() {
        let mut switch_view = quiet();
        switch_view.spec.buffer.policy = HeadroomPolicy::SharedPool;
        switch_view.spec.buffer.headroom = Cells(120);
        assert_eq!(after(&switch_view, 0)[0].size, Cells(120));
    }
}
