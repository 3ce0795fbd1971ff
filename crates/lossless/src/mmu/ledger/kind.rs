//! Groups that become lossless or lossy while they hold frames.
//!
//! The frames stay where they are, and their cells move from one shared pool to the other as soon as that has room for
//! all of them. A group becomes lossless only with its whole headroom, so that it keeps its promise from then on. One
//! that becomes lossy gives its headroom up: cells there become shared ones, and it is XON.

use super::port_threshold::PortThreshold;
use super::resize::take_beside;
use super::{LOSSLESS, Pools, PortLedger};
use crate::mmu::{GroupProfile, HeadroomPolicy};
use crate::units::Cells;

impl PortLedger {
    /// Gives `group` the kind of `wanted`, with its threshold and XON levels, if the pool of that kind has room for the
    /// cells of the group. Returns whether it is of that kind. `promised` cells of the lossy pool stay free.
    pub(super) fn follow_kind(
        &mut self,
        group: usize,
        wanted: &GroupProfile,
        promised: Cells,
        pools: &mut Pools,
    ) -> bool {
        let (from, to) = (usize::from(self.is_lossless(group)), usize::from(wanted.lossless));
        if from == to {
            return true;
        }
        let state = self.groups[group].state;
        let moved = state.port_reserve + state.shared + state.headroom;
        let port_reserve = (self.profile.reserve[to] - self.reserve_used[to]).min(moved);
        let shared = moved - port_reserve;
        let keep = if to == LOSSLESS { Cells(0) } else { promised };
        if shared > Cells(0) && !take_beside(&mut pools.shared[to], shared, keep) {
            return false;
        }
        self.release_headroom(group, state.headroom, &pools.headroom);
        pools.shared[from].give(state.shared);
        self.reserve_used[from] -= state.port_reserve;
        self.shared[from] -= state.shared;
        self.reserve_used[to] += port_reserve;
        self.shared[to] += shared;
        let now = &mut self.groups[group].state;
        (now.port_reserve, now.shared, now.refused) = (port_reserve, shared, Cells(0));
        now.raise_watermarks();
        self.group_off.remove(group);
        self.lossless.set(group, wanted.lossless);
        // Without a lossless group nothing at the port is XOFF, and nothing would end that.
        self.port_off &= !self.lossless.is_empty();
        self.groups[group].profile.lossless = wanted.lossless;
        self.profile.groups[group].lossless = wanted.lossless;
        self.set_levels(group, wanted);
        self.port_threshold = PortThreshold::new(&self.profile);
        true
    }

    /// Whether `group` has all that `wanted` needs to become lossless.
    pub(super) fn has_headroom_of(&self, group: usize, wanted: &GroupProfile, insurance: Cells) -> bool {
        let is_insured = self.profile.policy != HeadroomPolicy::Dynamic || self.profile.insurance == insurance;
        is_insured && self.profile.groups[group].headroom == wanted.headroom
    }
}
