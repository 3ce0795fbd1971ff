//! The ledger of one ingress priority group: where its cells are, and whether its sender is told to stop.
//!
//! Classes are counts, not labels on packets: whatever leaves frees headroom first, then shared, then reserve.

use super::{GroupProfile, Lease};
use crate::units::Cells;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Within the group's guarantee.
    Reserve,
    /// In the shared pool, at least in part.
    Shared,
    /// In the headroom: the group is XOFF.
    Headroom,
    /// Not admitted, for this reason.
    Refused(Refusal),
}

/// Which limit refused a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A lossless group's headroom is full: its peer did not stop in time, or eta is too small.
    HeadroomFull,
    /// The group's threshold.
    Threshold,
    /// The pool is empty, though the threshold would allow it.
    PoolEmpty,
}

/// What a poll of a paused group found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Stay as it is.
    Keep,
    /// The group may go on: XON is due.
    Resume,
}

/// Occupancy and XOFF state of one ingress (port, priority group). Owned by the port's lcore.
#[derive(Debug, Clone)]
pub struct Ledger {
    profile: GroupProfile,
    /// Cells in reserve and shared.
    used: u32,
    /// Cells in headroom.
    headroom: u32,
    xoff: bool,
    used_highest: u32,
    headroom_highest: u32,
}

impl Ledger {
    /// An empty group.
    #[must_use]
    pub fn new(profile: GroupProfile) -> Self {
        Self { profile, used: 0, headroom: 0, xoff: false, used_highest: 0, headroom_highest: 0 }
    }

    /// How the group uses the buffer.
    #[must_use]
    pub fn profile(&self) -> &GroupProfile {
        &self.profile
    }

    /// Cells in reserve and shared.
    #[inline]
    #[must_use]
    pub fn used(&self) -> Cells {
        Cells(self.used)
    }

    /// Cells in headroom.
    #[inline]
    #[must_use]
    pub fn headroom(&self) -> Cells {
        Cells(self.headroom)
    }

    /// omega: cells beyond the reserve, that is in the shared pool.
    #[inline]
    #[must_use]
    pub fn shared(&self) -> Cells {
        Cells(self.used.saturating_sub(self.profile.reserve.0))
    }

    /// Whether the sender is told to stop.
    #[inline]
    #[must_use]
    pub fn is_xoff(&self) -> bool {
        self.xoff
    }

    /// Most cells ever in reserve and shared, and in headroom.
    #[must_use]
    pub fn highest(&self) -> (Cells, Cells) {
        (Cells(self.used_highest), Cells(self.headroom_highest))
    }

    /// Decides one packet of `cells`, in constant time. `pool` is the group's own: lossless or lossy.
    ///
    /// In order: the reserve if it fits; the shared pool while headroom is empty, the share with this packet stays
    /// within the threshold and the pool has the cells; the headroom of a lossless group, which turns it XOFF;
    /// else refused, which turns a lossless group XOFF too.
    #[inline]
    #[must_use]
    pub fn admit(&mut self, cells: Cells, pool: &mut Lease) -> Admission {
        let after = self.used + cells.0;
        if after <= self.profile.reserve.0 {
            self.take(cells.0);
            return Admission::Reserve;
        }
        let refusal = if self.headroom == 0 {
            let share = after - self.profile.reserve.0;
            if share > self.profile.threshold.limit(pool.free()).0 {
                Refusal::Threshold
            } else if pool.take(Cells(share - self.shared().0)) {
                self.take(cells.0);
                return Admission::Shared;
            } else {
                Refusal::PoolEmpty
            }
        } else {
            Refusal::Threshold
        };
        if self.profile.lossless { self.admit_beyond(cells) } else { Admission::Refused(refusal) }
    }

    #[inline]
    fn take(&mut self, cells: u32) {
        self.used += cells;
        self.used_highest = self.used_highest.max(self.used);
    }

    /// The lossless group's way when its share is at the limit: rare, so out of line.
    #[cold]
    fn admit_beyond(&mut self, cells: Cells) -> Admission {
        self.xoff = true;
        // A sum of two counts of cells in the buffer cannot overflow, but a limit must hold whatever comes.
        if self.headroom.saturating_add(cells.0) > self.profile.headroom.0 {
            return Admission::Refused(Refusal::HeadroomFull);
        }
        self.headroom += cells.0;
        self.headroom_highest = self.headroom_highest.max(self.headroom);
        Admission::Headroom
    }

    /// `cells` have left the switch.
    ///
    /// # Panics
    /// If more leave than are held: cells would be counted twice from then on.
    #[inline]
    pub fn release(&mut self, cells: Cells, pool: &mut Lease) {
        let from_headroom = cells.0.min(self.headroom);
        let rest = cells.0 - from_headroom;
        assert!(rest <= self.used, "a group released more cells than it held");
        let shared_before = self.shared().0;
        self.headroom -= from_headroom;
        self.used -= rest;
        let freed = shared_before - self.shared().0;
        if freed > 0 {
            pool.give(Cells(freed));
        }
    }

    /// Judges a paused group while its pool has `free` cells: at each poll, not only when its own packet leaves,
    /// since the threshold moves with others.
    #[inline]
    #[must_use]
    pub fn judge(&mut self, free: Cells) -> Judgement {
        if !self.xoff || self.headroom > 0 {
            return Judgement::Keep;
        }
        let threshold = self.profile.threshold.limit(free).0;
        let level = threshold.saturating_sub(self.profile.xon_offset.0).max(self.profile.xon_floor.0);
        if self.shared().0 > level {
            return Judgement::Keep;
        }
        self.xoff = false;
        Judgement::Resume
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
