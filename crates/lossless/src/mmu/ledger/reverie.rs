//! The lossless groups of a simulated switch that decides as Reverie (Addanki et al., NSDI 2024), written from its
//! description. docs/mmu-rules.md lists the differences.
//!
//! Lossy and lossless groups share one pool. A group turns XOFF when its filtered share would exceed alpha/n of the
//! free pool, where n is the number of congested groups of its number. Its share itself has no limit but the pool, so
//! that a burst may pass the threshold for a while. Reserves and headroom are those of [`PortLedger`]: a frame that
//! finds the pool empty goes to headroom.

use std::sync::Arc;

use super::emulation::Emulation;
use super::{Group, LOSSLESS, Pools, PortLedger};
use crate::mmu::{AbmSpec, Admission, DepthFilter, LimitPart, Threshold};
use crate::sets::CLASSES;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::units::{Bytes, Cells};

/// State of the lossless groups that the ledgers of all ports share. Only one lcore uses it.
#[derive(Debug)]
pub struct ReverieGroups {
    spec: AbmSpec,
    cell: Bytes,
    /// By group number, the sum over all ports of the congestion of the filtered shares, in bytes.
    congestion: [AtomicU64; CLASSES],
    /// Cells of the pool that stay free for lossy queues below their reserve.
    kept: AtomicU32,
}

impl ReverieGroups {
    /// Creates the state of a switch without frames, whose cells have `cell` bytes.
    #[must_use]
    pub fn new(spec: AbmSpec, cell: Bytes) -> Arc<Self> {
        Arc::new(Self { spec, cell, congestion: Default::default(), kept: AtomicU32::new(0) })
    }

    /// Sets the cells of the pool that stay free for lossy queues below their reserve.
    pub fn set_kept(&self, kept: Cells) {
        self.kept.store(kept.0, Ordering::Relaxed);
    }

    /// Returns the sum of the congestion of `group` over all ports.
    #[must_use]
    pub fn congestion(&self, group: usize) -> Bytes {
        Bytes(self.congestion[group].load(Ordering::Relaxed))
    }

    /// Returns what a group with a share of `filtered` adds to the congestion.
    #[must_use]
    pub fn congestion_of(&self, filtered: Cells) -> Bytes {
        self.spec.congestion(filtered.to_bytes(self.cell))
    }

    /// Replaces the part of `group` at one port that `before` was by that of `after`.
    fn update(&self, group: usize, before: Cells, after: Cells) {
        let others = self.congestion(group).0 - self.congestion_of(before).0;
        self.congestion[group].store(others + self.congestion_of(after).0, Ordering::Relaxed);
    }

    /// Returns 1/n for `group`.
    fn part(&self, group: usize) -> LimitPart {
        self.spec.share(self.congestion(group))
    }

    /// Returns the cells of `free` that lossless groups may take.
    fn unreserved(&self, free: Cells) -> Cells {
        free.saturating_sub(Cells(self.kept.load(Ordering::Relaxed)))
    }
}

/// The filters of a port's groups.
#[derive(Debug, Clone)]
pub(super) struct Reverie {
    filters: [DepthFilter; CLASSES],
    groups: Arc<ReverieGroups>,
}

impl PortLedger {
    /// Lets the ledger, which holds no cells, decide as Reverie: [`PortLedger::admit_emulated`] admits,
    /// [`PortLedger::depart`] releases, and [`PortLedger::reevaluate_xoff`] resumes.
    pub fn follow_reverie(&mut self, groups: Arc<ReverieGroups>) {
        let reverie = Reverie { filters: [DepthFilter::default(); CLASSES], groups };
        self.emulation = Some(Box::new(Emulation::Reverie(reverie)));
    }

    fn reverie(&self) -> Option<&Reverie> {
        match self.emulation.as_deref() {
            Some(Emulation::Reverie(reverie)) => Some(reverie),
            _ => None,
        }
    }

    /// Whether a filter decides on the lossless `group`: a static threshold is not filtered.
    fn is_filtered(&self, group: usize) -> bool {
        let profile = &self.groups[group].profile;
        profile.lossless && matches!(profile.threshold, Threshold::Dynamic(_))
    }

    /// Returns the filtered share of a group that decides as Reverie, and 1/n for it; `None`: its share is not
    /// filtered.
    #[must_use]
    pub fn filtered(&self, group: usize) -> Option<(Cells, LimitPart)> {
        let reverie = self.reverie().filter(|_| self.is_filtered(group))?;
        let filtered = reverie.filters[group].of(self.groups[group].state.shared);
        Some((filtered, reverie.groups.part(group)))
    }

    /// Decides one packet of `cells` as [`PortLedger::admit`] does, but as Reverie.
    pub(super) fn admit_as_reverie(&mut self, group: usize, cells: Cells, pools: &mut Pools) -> Admission {
        if !self.groups[group].profile.lossless {
            return self.admit(group, cells, pools);
        }
        let parts = self.divide(group, cells);
        if parts.shared > Cells(0) {
            let (share, limit, free) = self.terms(group, pools);
            let is_empty = self.groups[group].state.headroom == Cells(0);
            let is_within = is_empty && share + parts.shared <= limit && parts.shared <= free;
            if !is_within || !pools.shared[LOSSLESS].take(parts.shared) {
                return self.admit_beyond(group, cells, &pools.headroom);
            }
        }
        self.put(group, parts);
        match parts {
            parts if parts.shared > Cells(0) => Admission::Shared,
            parts if parts.port_reserve > Cells(0) => Admission::PortReserve,
            _ => Admission::Reserve,
        }
    }

    /// Returns the share of the lossless `group` that its limit bounds, this limit, and the cells that it may take.
    fn terms(&self, group: usize, pools: &Pools) -> (Cells, Cells, Cells) {
        let Group { profile, state } = &self.groups[group];
        let free = pools.shared[LOSSLESS].free();
        let free = self.reverie().map_or(free, |reverie| reverie.groups.unreserved(free));
        let whole = profile.threshold.limit(free);
        match self.filtered(group) {
            Some((filtered, part)) => (filtered, part.of(whole), free),
            None => (state.shared, whole, free),
        }
    }

    /// Releases `cells` of `group` that have left in `frames` frames, and moves its filter with each frame. All frames
    /// count as equally large. Cells of frames that never left count as one frame.
    ///
    /// # Panics
    /// If more cells leave than the group holds, or if there is no such group.
    pub fn depart(&mut self, group: usize, cells: Cells, frames: u32, pools: &mut Pools) {
        let Some((before, _)) = self.filtered(group) else { return self.release(group, cells, pools) };
        let (mut released, frames) = (0, frames.max(1));
        for frame in 1..=frames {
            let until = (u64::from(cells.0) * u64::from(frame) / u64::from(frames)) as u32;
            self.release(group, Cells(until - released), pools);
            released = until;
            let share = self.groups[group].state.shared;
            if let Some(Emulation::Reverie(reverie)) = self.emulation.as_deref_mut() {
                reverie.filters[group].depart(share);
            }
        }
        let after = self.filtered(group).map_or(before, |(filtered, _)| filtered);
        if let Some(reverie) = self.reverie() {
            reverie.groups.update(group, before, after);
        }
    }

    /// Re-evaluates the paused groups as Reverie. Returns true if [`PortLedger::xoff`] changed.
    pub(super) fn resume_as_reverie(&mut self, pools: &Pools) -> bool {
        let before = self.group_off;
        for group in before.iter() {
            if self.may_resume_as_reverie(group, pools) {
                self.group_off.remove(group);
            }
        }
        self.group_off != before
    }

    /// Whether the paused `group` may resume: its headroom is empty, and the rule of [`Group::may_resume`] holds for
    /// its filtered share. The pool must have room for the offset too: it may be full while the filtered share is low.
    fn may_resume_as_reverie(&self, group: usize, pools: &Pools) -> bool {
        let Group { profile, state } = &self.groups[group];
        if state.headroom > Cells(0) {
            return false;
        }
        let (share, limit, free) = self.terms(group, pools);
        // With 64 bits the sums cannot overflow.
        let [share, limit, free, offset, floor, free_reserve] =
            [share, limit, free, profile.xon_offset, profile.xon_floor, profile.reserve - state.reserve]
                .map(|cells| u64::from(cells.0));
        let is_below = share + offset <= limit || share <= floor && share + floor + offset <= limit + free_reserve;
        is_below && offset <= free + free_reserve || state.held() == Cells(0)
    }
}
