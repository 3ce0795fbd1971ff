//! Admission of a whole burst at once, if frame by frame has the same result.

use super::{Group, LOSSLESS, Parts, Pools, PortLedger};
use crate::mmu::{ExactPool, HeadroomPolicy, Lease};
use crate::sets::{CLASSES, ClassSet};
use crate::units::Cells;

impl PortLedger {
    /// Admits `cells` of each of the `groups` at once if that is sure to equal [`PortLedger::admit`] frame by
    /// frame. The same state must result for the same cells in any frames and any order. Each group's cells must all be
    /// outside of the headroom or all in it, and no new XOFF may result. Otherwise, or in doubt, nothing changes.
    /// Returns whether it admitted them.
    #[inline]
    pub fn admit_burst(&mut self, cells: &[Cells; CLASSES], groups: ClassSet, pools: &mut Pools) -> bool {
        // A group that is XOFF itself still uses the pool with dynamic headroom, as long as its port may.
        let uses_pool = self.profile.policy == HeadroomPolicy::Dynamic && !self.port_off;
        let paused = if uses_pool { ClassSet::EMPTY } else { self.xoff() & groups };
        if !paused.is_empty() && !self.all_go_to_headroom(cells, paused) {
            return false;
        }
        let mut parts = [Parts::default(); CLASSES];
        let mut shared = [Cells(0); 2];
        for group in (groups - paused).iter() {
            parts[group] = self.divide(group, cells[group]);
            // The order of frames decides which group gets the port's reserve.
            if parts[group].port_reserve > Cells(0) {
                return false;
            }
            shared[usize::from(self.groups[group].profile.lossless)] += parts[group].shared;
        }
        // Free cells of each pool after the whole burst: no frame of the burst finds less.
        let [lossy, lossless] = pools.shared.each_ref().map(Lease::free);
        let (Some(lossy), Some(lossless)) = (lossy.checked_sub(shared[0]), lossless.checked_sub(shared[1])) else {
            return false;
        };
        let free = [lossy, lossless];
        if !(groups - paused).iter().all(|group| self.stays_within(group, parts[group].shared, free)) {
            return false;
        }
        if self.profile.policy == HeadroomPolicy::Dynamic
            && self.shared[LOSSLESS] + shared[LOSSLESS] > self.port_threshold.limit(free[LOSSLESS])
        {
            return false;
        }
        let Pools { shared: leases, headroom } = pools;
        if !take_all(leases, shared, || paused.is_empty() || self.put_in_headroom(cells, paused, headroom)) {
            return false;
        }
        (groups - paused).iter().for_each(|group| self.put(group, parts[group]));
        true
    }

    /// Whether `group` stays below every limit with `cells` more of its pool, if that pool then has `free` cells.
    #[inline]
    fn stays_within(&self, group: usize, cells: Cells, free: [Cells; 2]) -> bool {
        let Group { profile, state } = &self.groups[group];
        let free = free[usize::from(profile.lossless)];
        if self.group_off.contains(group) && self.profile.policy == HeadroomPolicy::Dynamic {
            return true;
        }
        let limit = if profile.lossless && self.profile.policy == HeadroomPolicy::Dynamic {
            self.groups[group].xoff_level(free)
        } else {
            profile.threshold.limit(free)
        };
        cells == Cells(0) || state.headroom == Cells(0) && state.shared + cells <= limit
    }

    /// Whether all cells of the `paused` groups, in any frames, go to their headroom and fit there, if the pool has the
    /// cells. These are the frames that follow an XOFF until the peer obeys.
    #[inline(never)]
    fn all_go_to_headroom(&self, cells: &[Cells; CLASSES], paused: ClassSet) -> bool {
        let fits = |group: usize| {
            let state = &self.groups[group].state;
            let after = state.headroom.saturating_add(cells[group]);
            // A frame that fits a reserve would go there.
            let parts = self.divide(group, cells[group]);
            state.headroom > Cells(0) && parts.shared == cells[group] && after <= self.headroom_of(group)
        };
        match self.profile.policy {
            HeadroomPolicy::Independent | HeadroomPolicy::SharedPool => paused.iter().all(fits),
            // The port is XOFF, and the insurance is the sum over all groups.
            HeadroomPolicy::Dynamic => false,
        }
    }

    /// Puts the cells of the `paused` groups into their headroom. Returns false, and changes nothing, if the headroom
    /// pool has too few cells.
    #[inline(never)]
    fn put_in_headroom(&mut self, cells: &[Cells; CLASSES], paused: ClassSet, pool: &ExactPool) -> bool {
        if self.profile.policy == HeadroomPolicy::SharedPool && !pool.take(sum(cells, paused)) {
            return false;
        }
        for group in paused.iter() {
            let state = &mut self.groups[group].state;
            state.headroom += cells[group];
            state.headroom_highest = state.headroom_highest.max(state.headroom);
        }
        true
    }
}

/// Sum of the cells of `groups`.
fn sum(cells: &[Cells; CLASSES], groups: ClassSet) -> Cells {
    groups.iter().map(|group| cells[group]).sum()
}

/// Takes cells of both pools or of neither: another lcore may have taken them since the check. `and_headroom` runs last
/// and may still refuse.
#[inline]
fn take_all([lossy, lossless]: &mut [Lease; 2], cells: [Cells; 2], and_headroom: impl FnOnce() -> bool) -> bool {
    let highest = [lossy.used_highest(), lossless.used_highest()];
    if cells[0] > Cells(0) && !lossy.take(cells[0]) {
        return false;
    }
    let took_lossless = cells[1] == Cells(0) || lossless.take(cells[1]);
    if took_lossless && and_headroom() {
        return true;
    }
    if took_lossless {
        give_back(lossless, cells[1], highest[1]);
    }
    give_back(lossy, cells[0], highest[0]);
    false
}

/// Returns cells as if they had not been taken: no watermark includes them.
#[cold]
fn give_back(lease: &mut Lease, cells: Cells, highest: Cells) {
    lease.give(cells);
    lease.set_watermark(highest);
}
