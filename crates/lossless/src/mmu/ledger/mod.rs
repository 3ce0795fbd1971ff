//! The ledger of one port: the cells that its eight priority groups hold, and the groups whose senders must stop.
//!
//! The parts of the buffer are counts, not labels on packets: a release frees headroom first, then the shared pool,
//! then the port's reserve, then the group's. Rules, formulas and examples: docs/buffer.md.

mod burst;
mod emulation;
mod hpcc;
mod kind;
mod port_threshold;
mod resize;
mod reverie;

use std::sync::Arc;

use super::admission::{Admission, Refusal};
use super::{ExactPool, GroupProfile, HeadroomPolicy, Lease, PortProfile};
use crate::mutant::{self, Mutant};
use crate::sets::{CLASSES, ClassSet};
use crate::units::Cells;
use emulation::Emulation;
use port_threshold::PortThreshold;

pub use reverie::ReverieGroups;

/// Index of the lossless entry in arrays that are indexed by `lossless as usize`.
const LOSSLESS: usize = 1;

/// This lcore's leases of the pools.
#[derive(Debug)]
pub struct Pools {
    /// Leases of the lossy and the lossless pool, indexed by `lossless as usize`.
    pub shared: [Lease; 2],
    /// The headroom pool; used with [`HeadroomPolicy::SharedPool`] only.
    pub headroom: Arc<ExactPool>,
}

/// The cells that a group holds, by part of the buffer. Their sum is the group's occupancy.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct GroupState {
    /// Cells in the group's own reserve.
    pub reserve: Cells,
    /// Cells in the port's reserve.
    pub port_reserve: Cells,
    /// omega: cells in the shared pool.
    pub shared: Cells,
    /// Cells in headroom, or with [`HeadroomPolicy::Dynamic`] in the port's insurance.
    pub headroom: Cells,
    /// The most cells ever used outside of the headroom.
    pub used_highest: Cells,
    /// The most cells ever used in the shared pool.
    pub shared_highest: Cells,
    /// The most cells ever used in headroom.
    pub headroom_highest: Cells,
    /// Cells of the last frame that was refused because the headroom pool was empty; reset at XON.
    pub refused: Cells,
}

impl GroupState {
    /// Cells outside of the headroom: in the two reserves and in the shared pool.
    #[inline]
    #[must_use]
    pub fn used(&self) -> Cells {
        self.reserve + self.port_reserve + self.shared
    }

    /// All cells of the group.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Cells {
        self.used() + self.headroom
    }

    #[inline]
    fn raise_watermarks(&mut self) {
        self.used_highest = self.used_highest.max(self.used());
        self.shared_highest = self.shared_highest.max(self.shared);
    }
}

/// Everything of a group that the admission of a packet accesses, in one cache line.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Group {
    profile: GroupProfile,
    state: GroupState,
}

impl Group {
    #[inline]
    fn xoff_level(&self, free: Cells) -> Cells {
        self.profile.xoff_level(free)
    }

    /// With [`HeadroomPolicy::Dynamic`], the share at or below which a paused group may resume if `limit` bounds its
    /// share.
    fn xon_level(&self, limit: Cells) -> Cells {
        limit.saturating_sub(self.profile.xon_offset).max(self.profile.xon_floor)
    }

    /// Whether the paused group, with nothing in headroom, may resume while `limit` bounds its share.
    ///
    /// It may resume if its share is below the limit by the offset. A share at or below the floor may resume only with
    /// room for offset plus floor more cells before the next XOFF. That room is in its share or in the free part of its
    /// reserve. Otherwise XON at a threshold of zero would admit one frame, and each frame would cause a pause. An
    /// empty group may always resume.
    ///
    /// With [`HeadroomPolicy::SharedPool`] a frame may be refused, and so pause the group, while the group's headroom
    /// is empty. XON then waits until a frame of that size has room. Otherwise XOFF and XON would fall into one
    /// evaluation, and the sender would never stop.
    fn may_resume(&self, limit: Cells, free: Cells) -> bool {
        let GroupProfile { reserve, xon_offset, xon_floor, .. } = self.profile;
        // With 64 bits the sums cannot overflow.
        let limit = u64::from(limit.0);
        let (share, offset, floor) = (u64::from(self.state.shared.0), u64::from(xon_offset.0), u64::from(xon_floor.0));
        let free_reserve = u64::from((reserve - self.state.reserve).0);
        let room = limit.saturating_sub(share).min(free.0.into()) + free_reserve;
        let is_below = share + offset <= limit || share <= floor && share + floor + offset <= limit + free_reserve;
        is_below && u64::from(self.state.refused.0) <= room || self.state.held() == Cells(0)
    }
}

/// The division of a packet's cells if it stays out of the headroom.
#[derive(Debug, Default, Clone, Copy)]
struct Parts {
    reserve: Cells,
    port_reserve: Cells,
    shared: Cells,
}

/// Occupancy and XOFF state of one ingress port. Owned by the port's lcore.
#[derive(Debug, Clone)]
pub struct PortLedger {
    groups: [Group; CLASSES],
    /// Cells in the port's own reserves: lossy, lossless.
    reserve_used: [Cells; 2],
    /// Cells of all groups in the shared pools: lossy, lossless.
    shared: [Cells; 2],
    /// Groups that are XOFF themselves.
    group_off: ClassSet,
    /// Whether the port is XOFF, so that all its lossless groups must stop. Only with [`HeadroomPolicy::Dynamic`].
    port_off: bool,
    /// Lossless groups.
    lossless: ClassSet,
    /// Cells in the port's insurance: the sum of the groups' headroom with [`HeadroomPolicy::Dynamic`], else zero.
    insurance_used: Cells,
    insurance_highest: Cells,
    port_threshold: PortThreshold,
    /// Rules of another simulator; `None` in the product.
    emulation: Option<Box<Emulation>>,
    /// The port's settings. [`Group`] has a second copy of each group's profile, beside its counts.
    profile: PortProfile,
}

impl PortLedger {
    /// Creates the ledger of an empty port.
    #[must_use]
    pub fn new(profile: &PortProfile) -> Self {
        Self {
            groups: profile.groups.map(|profile| Group { profile, state: GroupState::default() }),
            reserve_used: [Cells(0); 2],
            shared: [Cells(0); 2],
            group_off: ClassSet::EMPTY,
            port_off: false,
            lossless: (0..CLASSES).filter(|&group| profile.groups[group].lossless).collect(),
            insurance_used: Cells(0),
            insurance_highest: Cells(0),
            port_threshold: PortThreshold::new(profile),
            emulation: None,
            profile: *profile,
        }
    }

    /// Buffer settings of the port.
    #[must_use]
    pub fn profile(&self) -> &PortProfile {
        &self.profile
    }

    /// Lossless groups.
    #[must_use]
    pub fn lossless(&self) -> ClassSet {
        self.lossless
    }

    /// Replaces the thresholds and XON levels by those of `groups`. Sizes and lossless flags stay, which
    /// [`resize`](Self::resize) changes; a group whose flag is to change gets all at that time. No state changes at
    /// once: the new levels apply to the next frame and to the next evaluation of each paused group.
    pub fn set_groups(&mut self, groups: &[GroupProfile; CLASSES]) {
        for (index, new) in groups.iter().enumerate() {
            if new.lossless == self.is_lossless(index) {
                self.set_levels(index, new);
            }
        }
        self.port_threshold = PortThreshold::new(&self.profile);
    }

    fn set_levels(&mut self, group: usize, new: &GroupProfile) {
        for profile in [&mut self.groups[group].profile, &mut self.profile.groups[group]] {
            let GroupProfile { threshold, xon_offset, xon_floor, .. } = *new;
            *profile = GroupProfile { threshold, xon_offset, xon_floor, ..*profile };
        }
    }

    fn is_lossless(&self, group: usize) -> bool {
        self.groups[group].profile.lossless
    }

    /// The cells that `group` holds.
    #[inline]
    #[must_use]
    pub fn group(&self, group: usize) -> GroupState {
        self.groups[group].state
    }

    /// T: the limit on the share of `group` now.
    #[inline]
    #[must_use]
    pub fn threshold(&self, group: usize, pools: &Pools) -> Cells {
        let profile = &self.groups[group].profile;
        profile.threshold.limit(pools.shared[usize::from(profile.lossless)].free())
    }

    /// X_qoff: with [`HeadroomPolicy::Dynamic`], the share beyond which `group` is XOFF now.
    #[must_use]
    pub fn xoff_level(&self, group: usize, pools: &Pools) -> Cells {
        self.groups[group].xoff_level(pools.shared[LOSSLESS].free())
    }

    /// X_poff: with [`HeadroomPolicy::Dynamic`], the limit on the sum of all lossless groups' shares of the pool now.
    #[must_use]
    pub fn port_threshold(&self, pools: &Pools) -> Cells {
        self.port_limit(pools.shared[LOSSLESS].free())
    }

    /// X_poff while the pool has `free` cells.
    #[must_use]
    pub fn port_limit(&self, free: Cells) -> Cells {
        self.port_threshold.limit(free)
    }

    /// Cells in the port's own reserves: lossy, lossless.
    #[must_use]
    pub fn reserve_used(&self) -> [Cells; 2] {
        self.reserve_used
    }

    /// Cells of all groups in the shared pools: lossy, lossless.
    #[must_use]
    pub fn shared(&self) -> [Cells; 2] {
        self.shared
    }

    /// Cells in the port's insurance.
    #[must_use]
    pub fn insurance_used(&self) -> Cells {
        self.insurance_used
    }

    /// The most cells ever used in the port's insurance.
    #[must_use]
    pub fn insurance_highest(&self) -> Cells {
        self.insurance_highest
    }

    /// Sets all watermarks to the cells held now.
    pub fn clear_watermarks(&mut self) {
        for Group { state, .. } in &mut self.groups {
            state.used_highest = state.used();
            state.shared_highest = state.shared;
            state.headroom_highest = state.headroom;
        }
        self.insurance_highest = self.insurance_used;
    }

    /// Groups whose senders must stop. Their numbers are the PFC priorities.
    #[inline]
    #[must_use]
    pub fn xoff(&self) -> ClassSet {
        if self.port_off { self.group_off | self.lossless } else { self.group_off }
    }

    /// Groups that are XOFF themselves, regardless of the port's state.
    #[must_use]
    pub fn groups_xoff(&self) -> ClassSet {
        self.group_off
    }

    /// Whether the whole port is XOFF, with [`HeadroomPolicy::Dynamic`].
    #[must_use]
    pub fn is_port_xoff(&self) -> bool {
        self.port_off
    }

    /// Decides one packet of `cells`, in constant time.
    ///
    /// The parts of the buffer are tried in this order:
    ///
    /// - the group's reserve, then the port's reserve;
    /// - the shared pool, if the group's headroom is empty, its share with this packet stays within its threshold, and
    ///   the pool has the cells;
    /// - the headroom of a lossless group, which turns the group XOFF.
    ///
    /// Otherwise the packet is refused, which turns a lossless group XOFF too. [`HeadroomPolicy::Dynamic`] compares the
    /// port's share with the port's threshold instead.
    ///
    /// # Panics
    /// If there is no such group.
    #[inline]
    #[must_use]
    pub fn admit(&mut self, group: usize, cells: Cells, pools: &mut Pools) -> Admission {
        let Group { profile, state } = &mut self.groups[group];
        if state.reserve + cells <= profile.reserve {
            state.reserve += cells;
            state.raise_watermarks();
            return Admission::Reserve;
        }
        let (lossless, threshold) = (profile.lossless, profile.threshold);
        let (share, headroom) = (state.shared, state.headroom);
        let parts = self.divide(group, cells);
        if parts.shared == Cells(0) {
            self.put(group, parts);
            return Admission::PortReserve;
        }
        if lossless && self.profile.policy == HeadroomPolicy::Dynamic {
            return self.admit_dynamic(group, cells, parts, pools);
        }
        let pool = &mut pools.shared[usize::from(lossless)];
        let within = headroom == Cells(0) && share + parts.shared <= threshold.limit(pool.free());
        if within && pool.take(parts.shared) {
            self.put(group, parts);
            return Admission::Shared;
        }
        if lossless {
            return self.admit_beyond(group, cells, &pools.headroom);
        }
        Admission::Refused(if within { Refusal::PoolEmpty } else { Refusal::Threshold })
    }

    /// Whether `group` holds less than its own reserve, or its port has a free reserve for it.
    #[inline]
    #[must_use]
    pub fn has_free_reserve(&self, group: usize) -> bool {
        let Group { profile, state } = &self.groups[group];
        state.reserve < profile.reserve
            || self.reserve_used[usize::from(profile.lossless)] < self.profile.reserve[usize::from(profile.lossless)]
    }

    /// Admits a lossy frame that [`PortLedger::admit`] refused, for an egress queue below its reserve. The frame takes
    /// cells of the pool regardless of the group's threshold. It is refused only if the pool has too few cells.
    ///
    /// # Panics
    /// If there is no such group.
    #[inline]
    #[must_use]
    pub fn admit_guaranteed(&mut self, group: usize, cells: Cells, pools: &mut Pools) -> Admission {
        let lossless = self.groups[group].profile.lossless;
        debug_assert!(!lossless, "a lossless group uses its headroom instead");
        let parts = self.divide(group, cells);
        if !pools.shared[usize::from(lossless)].take(parts.shared) {
            return Admission::Refused(Refusal::PoolEmpty);
        }
        self.put(group, parts);
        Admission::Shared
    }

    /// Admission with Dynamic and Shared Headroom: the pool serves as footroom and headroom. The group turns XOFF an
    /// eta before its threshold. Its cells stay in the pool while the port is within the sum of its groups' thresholds.
    fn admit_dynamic(&mut self, group: usize, cells: Cells, parts: Parts, pools: &mut Pools) -> Admission {
        let pool = &mut pools.shared[LOSSLESS];
        let free = pool.free();
        if self.groups[group].state.shared + parts.shared > self.groups[group].xoff_level(free) {
            self.group_off.insert(group);
        }
        let within = !self.port_off && self.shared[LOSSLESS] + parts.shared <= self.port_threshold.limit(free);
        if within && pool.take(parts.shared) {
            self.put(group, parts);
            return Admission::Shared;
        }
        self.admit_beyond(group, cells, &pools.headroom)
    }

    /// Admits a packet of a lossless group that the shared pool cannot take. Rare, so out of line.
    #[cold]
    fn admit_beyond(&mut self, group: usize, cells: Cells, pool: &ExactPool) -> Admission {
        let headroom = self.headroom_of(group);
        let Group { state, .. } = &mut self.groups[group];
        // The sum of two counts of buffer cells cannot overflow, but the limit must hold for any input.
        let after = state.headroom.saturating_add(cells);
        match self.profile.policy {
            HeadroomPolicy::Independent | HeadroomPolicy::SharedPool => {
                self.group_off.insert(group);
                if after > headroom {
                    return Admission::Refused(Refusal::HeadroomFull);
                }
                if self.profile.policy == HeadroomPolicy::SharedPool && !pool.take(cells) {
                    state.refused = cells;
                    return Admission::Refused(Refusal::HeadroomPoolEmpty);
                }
            }
            HeadroomPolicy::Dynamic => {
                self.port_off = true;
                let insurance = self.insurance_used.saturating_add(cells);
                if insurance > self.profile.insurance {
                    return Admission::Refused(Refusal::HeadroomFull);
                }
                self.insurance_used = insurance;
                self.insurance_highest = self.insurance_highest.max(insurance);
            }
        }
        state.headroom = after;
        state.headroom_highest = state.headroom_highest.max(after);
        Admission::Headroom
    }

    /// Eta: the most cells that `group` may have in headroom. With [`HeadroomPolicy::Dynamic`] the port's insurance
    /// limits it instead.
    #[inline]
    fn headroom_of(&self, group: usize) -> Cells {
        let is_shared = mutant::is(Mutant::HeadroomShared);
        if is_shared { self.profile.all_headroom() } else { self.groups[group].profile.headroom }
    }

    /// Divides `cells` between the free reserve of the group, the free reserve of the port and the shared pool, in this
    /// order.
    #[inline]
    fn divide(&self, group: usize, cells: Cells) -> Parts {
        let Group { profile, state } = &self.groups[group];
        let kind = usize::from(profile.lossless);
        let reserve = (profile.reserve - state.reserve).min(cells);
        let beyond = cells - reserve;
        let port_reserve = (self.profile.reserve[kind] - self.reserve_used[kind]).min(beyond);
        Parts { reserve, port_reserve, shared: beyond - port_reserve }
    }

    #[inline(always)]
    fn put(&mut self, group: usize, parts: Parts) {
        let Group { profile, state } = &mut self.groups[group];
        let kind = usize::from(profile.lossless);
        state.reserve += parts.reserve;
        state.port_reserve += parts.port_reserve;
        state.shared += parts.shared;
        state.raise_watermarks();
        self.reserve_used[kind] += parts.port_reserve;
        self.shared[kind] += parts.shared;
    }

    /// Undoes the last admission, of a frame of the lossy `group` that its queue refused. `before` is the value of
    /// [`PortLedger::group`] and `pool_highest` the watermark of the lossy pool's lease before it. No watermark
    /// includes a frame that was never enqueued.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn undo(&mut self, group: usize, before: &GroupState, pool_highest: Cells, pools: &mut Pools) {
        let state = &mut self.groups[group].state;
        debug_assert!(state.headroom == before.headroom, "only the admission of a lossy frame is undone");
        let (shared, port_reserve) = (state.shared - before.shared, state.port_reserve - before.port_reserve);
        *state = *before;
        self.shared[0] -= shared;
        self.reserve_used[0] -= port_reserve;
        pools.shared[0].give(shared);
        pools.shared[0].set_watermark(pool_highest);
    }

    /// Releases `cells` of `group` that have left the switch.
    ///
    /// # Panics
    /// If more cells leave than the group holds, because cells would be counted twice from then on. If there is no such
    /// group.
    #[inline]
    pub fn release(&mut self, group: usize, cells: Cells, pools: &mut Pools) {
        let mut left = cells;
        let is_late = mutant::is(Mutant::ReleaseOrder) && self.groups[group].state.used() >= cells;
        if self.groups[group].state.headroom > Cells(0) && !is_late {
            left -= self.release_headroom(group, cells, &pools.headroom);
        }
        let Group { profile, state } = &mut self.groups[group];
        let kind = usize::from(profile.lossless);
        let shared = left.min(state.shared);
        left -= shared;
        let port_reserve = left.min(state.port_reserve);
        left -= port_reserve;
        assert!(left <= state.reserve, "a group released more cells than it held");
        state.reserve -= left;
        state.port_reserve -= port_reserve;
        state.shared -= shared;
        self.reserve_used[kind] -= port_reserve;
        self.shared[kind] -= shared;
        if shared > Cells(0) {
            pools.shared[kind].give(shared);
        }
    }

    /// Frees the part of `cells` that is in headroom, and returns it.
    #[cold]
    fn release_headroom(&mut self, group: usize, cells: Cells, pool: &ExactPool) -> Cells {
        let state = &mut self.groups[group].state;
        let freed = state.headroom.min(cells);
        state.headroom -= freed;
        match self.profile.policy {
            HeadroomPolicy::Independent => {}
            HeadroomPolicy::SharedPool => pool.give(freed),
            HeadroomPolicy::Dynamic => self.insurance_used -= freed,
        }
        freed
    }

    /// Re-evaluates everything that is paused, even if none of its own packets left: thresholds depend on other groups.
    /// Returns true if [`PortLedger::xoff`] changed. It costs one comparison if nothing is paused.
    #[inline]
    pub fn reevaluate_xoff(&mut self, pools: &Pools) -> bool {
        (!self.group_off.is_empty() || self.port_off) && self.resume_paused(pools)
    }

    #[cold]
    fn resume_paused(&mut self, pools: &Pools) -> bool {
        if self.emulation.is_some() {
            return self.resume_emulated(pools);
        }
        let before = self.xoff();
        let free = pools.shared[LOSSLESS].free();
        if self.port_off && self.insurance_used == Cells(0) && self.may_resume(free) {
            self.port_off = false;
        }
        let dynamic = self.profile.policy == HeadroomPolicy::Dynamic;
        // Only a group that is XOFF has a refused frame to forget.
        for index in self.group_off.iter() {
            let group = &mut self.groups[index];
            let may = if dynamic {
                // The XOFF level is never below offset plus floor, so XON at the floor has room.
                group.state.shared <= group.xon_level(group.xoff_level(free))
            } else {
                group.may_resume(group.profile.threshold.limit(free), free)
            };
            if may && (group.state.headroom == Cells(0) || mutant::is(Mutant::XonTooEarly)) {
                self.group_off.remove(index);
                group.state.refused = Cells(0);
            }
        }
        self.xoff() != before
    }

    /// Whether the port, paused and with its insurance empty, may resume: the rule of [`Group::may_resume`] on the sums
    /// over its lossless groups.
    fn may_resume(&self, free: Cells) -> bool {
        let lossless = || self.groups.iter().filter(|group| group.profile.lossless);
        let free_reserves = lossless().map(|group| group.profile.reserve - group.state.reserve).sum();
        self.port_threshold.may_resume(self.shared[LOSSLESS], free_reserves, free)
            || lossless().all(|group| group.state.held() == Cells(0))
    }
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod policy_tests;

#[cfg(test)]
mod burst_tests;

#[cfg(test)]
mod resize_tests;

#[cfg(test)]
mod reverie_tests;
