//! New sizes of reserves, headroom and insurance while frames hold cells of the old ones.
//!
//! A part that shrinks gives its cells up first; a part that grows takes them only when the caller says that all
//! others have. So the sum of all limits is never above the buffer, also with other changes between the steps:
//!
//! - Cells of a reserve beyond its new size become cells of the shared pool once that has room for all of them. Their
//!   frames stay where they are.
//! - Headroom shrinks while its group is XON and none of it is used: frames that are on their way after an XOFF find
//!   the room that they were promised. Insurance shrinks while its port is XON likewise.

use super::{LOSSLESS, Pools, PortLedger};
use crate::mmu::{HeadroomPolicy, Lease, PortProfile};
use crate::mutant::{self, Mutant};
use crate::sets::CLASSES;
use crate::units::Cells;

impl PortLedger {
    /// Takes the sizes of `wanted` that can be taken now: those that shrink, and with `may_grow` those that grow.
    /// Returns whether no part is larger than wanted, and with `may_grow` whether all are as wanted. Groups become
    /// lossless or lossy when they can; others keep their thresholds and XON levels. `promised` cells of the lossy pool
    /// stay free for queues below their reserve.
    pub fn resize(&mut self, wanted: &PortProfile, may_grow: bool, promised: Cells, pools: &mut Pools) -> bool {
        let may_grow = may_grow || mutant::is(Mutant::GrowsTooEarly);
        let mut is_done = true;
        for group in 0..CLASSES {
            let target = &wanted.groups[group];
            // It may have to wait until the lossy pool has grown.
            let has_kind = target.lossless || self.follow_kind(group, target, promised, pools);
            is_done &= has_kind || !may_grow;
            let reserve = self.reserve_towards(group, target.reserve, may_grow, promised, pools);
            let eta = self.eta_towards(group, target.headroom, may_grow);
            for profile in [&mut self.groups[group].profile, &mut self.profile.groups[group]] {
                (profile.reserve, profile.headroom) = (reserve, eta);
            }
            is_done &= reserve <= target.reserve && eta <= target.headroom;
        }
        for kind in 0..2 {
            let target = wanted.reserve[kind];
            self.profile.reserve[kind] = self.port_reserve_towards(kind, target, may_grow, promised, pools);
            is_done &= self.profile.reserve[kind] <= target;
        }
        self.profile.insurance = self.insurance_towards(wanted.insurance, may_grow);
        for (group, target) in wanted.groups.iter().enumerate().filter(|(_, target)| target.lossless) {
            let has_all = may_grow && self.has_headroom_of(group, target, wanted.insurance);
            let has_kind =
                (has_all || mutant::is(Mutant::PromisesTooEarly)) && self.follow_kind(group, target, promised, pools);
            is_done &= has_kind || !may_grow;
        }
        is_done && self.profile.insurance <= wanted.insurance
    }

    /// The size of the reserve of `group` from now on.
    fn reserve_towards(
        &mut self,
        group: usize,
        target: Cells,
        may_grow: bool,
        promised: Cells,
        pools: &mut Pools,
    ) -> Cells {
        let kind = usize::from(self.groups[group].profile.lossless);
        let state = &mut self.groups[group].state;
        let beyond = state.reserve.saturating_sub(target);
        let keep = if kind == LOSSLESS { Cells(0) } else { promised };
        if beyond > Cells(0) && take_beside(&mut pools.shared[kind], beyond, keep) {
            state.reserve -= beyond;
            state.shared += beyond;
            state.raise_watermarks();
            self.shared[kind] += beyond;
        }
        let now = self.groups[group].profile.reserve;
        towards(now, target, self.groups[group].state.reserve, may_grow)
    }

    /// The size of the port's reserve of `kind` from now on.
    fn port_reserve_towards(
        &mut self,
        kind: usize,
        target: Cells,
        may_grow: bool,
        promised: Cells,
        pools: &mut Pools,
    ) -> Cells {
        let keep = if kind == LOSSLESS { Cells(0) } else { promised };
        for group in &mut self.groups {
            if usize::from(group.profile.lossless) != kind {
                continue;
            }
            let beyond = self.reserve_used[kind].saturating_sub(target).min(group.state.port_reserve);
            if beyond > Cells(0) && take_beside(&mut pools.shared[kind], beyond, keep) {
                group.state.port_reserve -= beyond;
                group.state.shared += beyond;
                group.state.raise_watermarks();
                self.reserve_used[kind] -= beyond;
                self.shared[kind] += beyond;
            }
        }
        towards(self.profile.reserve[kind], target, self.reserve_used[kind], may_grow)
    }

    /// The eta of `group` from now on. With [`HeadroomPolicy::Dynamic`] it is a distance and no cells.
    fn eta_towards(&self, group: usize, target: Cells, may_grow: bool) -> Cells {
        let now = self.groups[group].profile.headroom;
        let is_distance = self.profile.policy == HeadroomPolicy::Dynamic;
        let is_free = !self.xoff().contains(group) && self.groups[group].state.headroom == Cells(0);
        let used = if is_distance || is_free { Cells(0) } else { now };
        towards(now, target, used, may_grow)
    }

    fn insurance_towards(&self, target: Cells, may_grow: bool) -> Cells {
        let now = self.profile.insurance;
        let is_free = !self.port_off && self.insurance_used == Cells(0);
        let used = if is_free { Cells(0) } else { now };
        towards(now, target, used, may_grow)
    }
}

/// Takes `cells` from a pool that keeps `keep` free.
pub(super) fn take_beside(pool: &mut Lease, cells: Cells, keep: Cells) -> bool {
    pool.free() >= cells.saturating_add(keep) && pool.take(cells)
}

/// The next size of a part of `now` cells, of which `used` are in use, on its way to `target`.
fn towards(now: Cells, target: Cells, used: Cells, may_grow: bool) -> Cells {
    if target > now {
        return if may_grow { target } else { now };
    }
    now.min(target.max(used))
}
