//! Rules on changes since the last check: XOFF, XON, admission and the order of releases.

use super::{Check, Look, ensure};
use crate::dataplane::pipeline::Pipeline;
use crate::io::Packet;
use crate::mmu::{GroupState, HeadroomPolicy, HpccRule};
use crate::sets::{CLASSES, ClassSet};
use crate::units::Cells;

const TOO_EARLY: &str = "xon_too_early";
const NO_CAUSE: &str = "paused_without_cause";

/// Releases `cells` of the group: headroom first, then shared, then the port's reserve, then its own.
pub(crate) fn collect(state: &mut GroupState, cells: u64) {
    let mut left = cells;
    for part in [&mut state.headroom, &mut state.shared, &mut state.port_reserve, &mut state.reserve] {
        let freed = u64::from(part.0).min(left);
        part.0 -= freed as u32;
        left -= freed;
    }
}

impl Look<'_> {
    pub(crate) fn check_moves(&self) -> Check {
        let was_off = self.audited.seen.groups_off;
        let is_off = self.port.ledger.groups_xoff();
        for group in self.groups.iter() {
            self.check_release_order(group)?;
            if !self.audited.profile.groups[group].lossless {
                continue;
            }
            self.check_headroom_is_paused(group, is_off)?;
            self.check_share(group)?;
            match (was_off.contains(group), is_off.contains(group)) {
                (true, false) => self.check_xon(group)?,
                (false, true) => self.check_xoff(group)?,
                _ => {}
            }
        }
        match (self.audited.seen.is_port_off, self.port.ledger.is_port_xoff()) {
            (true, false) => self.check_port_xon(),
            (false, true) => self.check_port_xoff(),
            _ => Ok(()),
        }
    }

    /// Checks that the peer receives the XOFF state of ledger and backlog, for the priorities for which PFC is
    /// generated.
    pub(crate) fn check_telling<P: Packet>(&self, part: &Pipeline<P>, index: usize) -> Check {
        let (wanted, announced) = (self.port.wants_xoff() & self.port.pfc.generated(), self.port.pfc.xoff());
        let (xoff, followed) = (self.port.ledger.xoff(), part.pauses.xoff.contains(index));
        ensure(wanted == announced && followed != xoff.is_empty(), "generator_follows", || {
            let [xoff, wanted, announced] = [xoff, wanted, announced].map(ClassSet::bits);
            format!(
                "{}: groups {xoff:#010b} are XOFF, {wanted:#010b} must be announced, and {announced:#010b} are announced; \
                 the port is evaluated at each poll: {followed}",
                self.audited.name
            )
        })
    }

    /// Checks that no part has released cells while a part that is released before it still held some.
    fn check_release_order(&self, group: usize) -> Check {
        let (least, now) = (&self.audited.collected[group], self.port.ledger.group(group));
        let kept = now.headroom >= least.headroom
            && now.shared >= least.shared
            && now.port_reserve >= least.port_reserve
            && now.reserve >= least.reserve;
        ensure(kept, "release_order", || {
            let (name, before) = (&self.audited.name, &self.audited.seen.groups[group]);
            let cells = self.port.released[group] - self.audited.seen.released[group];
            format!("{name} group {group}: {} before, {cells} cells released, and {} now", parts(before), parts(&now))
        })
    }

    /// Checks that a group with cells in headroom is paused.
    fn check_headroom_is_paused(&self, group: usize, is_off: ClassSet) -> Check {
        let headroom = self.port.ledger.group(group).headroom.0;
        let is_paused = match self.audited.profile.policy {
            HeadroomPolicy::Independent | HeadroomPolicy::SharedPool => is_off.contains(group),
            HeadroomPolicy::Dynamic => self.port.ledger.is_port_xoff(),
        };
        ensure(headroom == 0 || is_paused, "xoff_while_headroom", || {
            format!("{} group {group}: XON with {headroom} cells in headroom", self.audited.name)
        })
    }

    /// Checks a share that has grown: it was within the threshold of the pool's free cells when the poll began, and
    /// headroom was empty. With Reverie the filtered share was below it, which no admission changes.
    fn check_share(&self, group: usize) -> Check {
        let profile = &self.audited.profile;
        let (then, now) = (&self.audited.collected[group], self.port.ledger.group(group));
        if now.shared <= then.shared {
            return Ok(());
        }
        let (share, limit, empty) = match profile.policy {
            HeadroomPolicy::Dynamic => {
                (self.port.ledger.shared()[1], self.port.ledger.port_limit(self.free_then), true)
            }
            _ => {
                let may_be_beside = self.audited.hpcc.contains(HpccRule::SharedBesideHeadroom);
                let empty = then.headroom == Cells(0) || may_be_beside;
                let limit = self.limit(group, self.free_then);
                // The last frame had at least one cell.
                (self.filtered(group).map_or(now.shared, |filtered| filtered + Cells(1)), limit, empty)
            }
        };
        ensure(share <= limit && empty, "share_within_threshold", || {
            format!(
                "{} group {group}: {} before, {} now, and a limit of {} while {} cells were free",
                self.audited.name,
                parts(then),
                parts(&now),
                limit.0,
                self.free_then.0
            )
        })
    }

    /// Checks an XON of a group: the rules allowed it by the state after the poll collected releases.
    fn check_xon(&self, group: usize) -> Check {
        let (profile, then) = (&self.audited.profile.groups[group], &self.audited.collected[group]);
        let (offset, floor) = (u64::from(profile.xon_offset.0), u64::from(profile.xon_floor.0));
        let limit = u64::from(self.limit(group, self.free_then).0);
        let share = u64::from(self.filtered(group).unwrap_or(then.shared).0);
        let may = match self.audited.profile.policy {
            HeadroomPolicy::Independent | HeadroomPolicy::SharedPool => {
                let free_reserve = u64::from(profile.reserve.0 - then.reserve.0);
                // With Reverie the pool may be full while the filtered share is below its limit.
                let has_room = self.filtered(group).is_none() || offset <= u64::from(self.free_then.0) + free_reserve;
                let room = limit.saturating_sub(share).min(self.free_then.0.into()) + free_reserve;
                let fits = u64::from(then.refused.0) <= room && has_room;
                may_resume(share, limit, offset, floor, free_reserve) && fits || then.held() == Cells(0)
            }
            HeadroomPolicy::Dynamic => {
                let xoff_level = limit.saturating_sub(u64::from(profile.headroom.0)).max(floor + offset);
                share <= xoff_level.saturating_sub(offset).max(floor)
            }
        };
        let may = may || share == 0 && self.audited.hpcc.contains(HpccRule::XonEmptyShare);
        ensure(may && then.headroom == Cells(0), TOO_EARLY, || {
            format!(
                "{} group {group}: XON with {} and a threshold of {limit}, XON offset {offset}, floor {floor}",
                self.audited.name,
                parts(then)
            )
        })
    }

    /// Checks an XON of a port: its insurance was empty, and its share was within the sum of its groups' limits.
    fn check_port_xon(&self) -> Check {
        let profile = &self.audited.profile;
        let groups = || (0..CLASSES).filter(|&group| profile.groups[group].lossless);
        let then = |group: usize| &self.audited.collected[group];
        let sum = |of: &dyn Fn(usize) -> Cells| groups().map(|group| u64::from(of(group).0)).sum::<u64>();
        let (insurance, held) = (sum(&|group| then(group).headroom), sum(&|group| then(group).held()));
        let share = sum(&|group| then(group).shared);
        let (offset, floor) =
            (sum(&|group| profile.groups[group].xon_offset), sum(&|group| profile.groups[group].xon_floor));
        let free_reserve = sum(&|group| Cells(profile.groups[group].reserve.0 - then(group).reserve.0));
        let limit = u64::from(self.port.ledger.port_limit(self.free_then).0);
        let may = may_resume(share, limit, offset, floor, free_reserve) || held == 0;
        ensure(may && insurance == 0, TOO_EARLY, || {
            format!(
                "{}: the port is XON with {share} cells shared, {insurance} in its insurance and a limit of {limit}, XON \
                 offset {offset}, floor {floor}",
                self.audited.name
            )
        })
    }

    /// Checks an XOFF of a group: a frame no longer fits its reserves and its threshold, by their current values. A
    /// group without congestion is never paused because another one is congested.
    fn check_xoff(&self, group: usize) -> Check {
        if self.audited.hpcc.contains(HpccRule::XoffAtThreshold) {
            return Ok(());
        }
        let (profile, now) = (&self.audited.profile.groups[group], self.port.ledger.group(group));
        let free = self.free.saturating_sub(self.audited.kept);
        let limit = self.limit(group, free).0;
        let (beyond, is_held_back) = match self.audited.profile.policy {
            HeadroomPolicy::Independent => (limit, now.headroom.0 > 0 || profile.headroom.0 < self.most),
            HeadroomPolicy::SharedPool => {
                let least = profile.headroom.0.min(self.headroom_free.0);
                (limit, now.headroom.0 > 0 || least < self.most)
            }
            HeadroomPolicy::Dynamic => {
                let floor = profile.xon_floor.0.saturating_add(profile.xon_offset.0);
                (limit.saturating_sub(profile.headroom.0).max(floor), true)
            }
        };
        let share = self.filtered(group).unwrap_or(now.shared).0;
        let is_full =
            share + self.most > beyond || self.audited.profile.policy != HeadroomPolicy::Dynamic && free.0 < self.most;
        ensure(self.free_reserve(group) < self.most && is_full && is_held_back, NO_CAUSE, || {
            format!(
                "{} group {group}: XOFF with {}, {} cells of its reserves free and a share of {beyond} allowed",
                self.audited.name,
                parts(&now),
                self.free_reserve(group)
            )
        })
    }

    /// Checks an XOFF of a port: a frame of one of its groups exceeded the sum of their limits, or the pool was empty.
    fn check_port_xoff(&self) -> Check {
        let (share, limit) = (self.port.ledger.shared()[1].0, self.port.ledger.port_limit(self.free).0);
        let groups = (0..CLASSES).filter(|&group| self.audited.profile.groups[group].lossless);
        let is_out = groups.map(|group| self.free_reserve(group)).any(|free| free < self.most);
        ensure(is_out && (share + self.most > limit || self.free.0 < self.most), NO_CAUSE, || {
            format!(
                "{}: the port is XOFF with {share} cells shared of {limit}, while {} are free",
                self.audited.name, self.free.0
            )
        })
    }

    /// Returns the filtered share by which Reverie decides; `None`: the share itself decides.
    fn filtered(&self, group: usize) -> Option<Cells> {
        self.port.ledger.filtered(group).map(|(filtered, _)| filtered)
    }

    /// Returns the limit on the share of `group`, or with Reverie on its filtered share, while `free` cells are free.
    fn limit(&self, group: usize, free: Cells) -> Cells {
        let whole = self.audited.profile.groups[group].threshold.limit(free);
        self.port.ledger.filtered(group).map_or(whole, |(_, part)| part.of(whole))
    }

    /// Returns the free cells of the reserves that a lossless group can use.
    fn free_reserve(&self, group: usize) -> u32 {
        let (profile, ledger) = (&self.audited.profile, &self.port.ledger);
        profile.groups[group].reserve.0 - ledger.group(group).reserve.0 + profile.reserve[1].0
            - ledger.reserve_used()[1].0
    }
}

/// Whether docs/buffer.md allows XON: the share is below the limit by the offset. Or it is below the floor, and floor
/// and offset fit below the next XOFF.
fn may_resume(share: u64, limit: u64, offset: u64, floor: u64, free_reserve: u64) -> bool {
    share + offset <= limit || share <= floor && share + floor + offset <= limit + free_reserve
}

/// Describes the cells of a group by their parts.
fn parts(state: &GroupState) -> String {
    let GroupState { reserve, port_reserve, shared, headroom, .. } = state;
    format!("{}+{} reserve, {} shared, {} headroom", reserve.0, port_reserve.0, shared.0, headroom.0)
}
