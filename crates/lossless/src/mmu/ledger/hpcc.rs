//! The ledger of a simulated switch that decides by some or all rules of HPCC's simulator.

use super::emulation::Emulation;
use super::{LOSSLESS, Pools, PortLedger};
use crate::mmu::{Admission, HpccGroup, HpccRule, HpccRules, Refusal};
use crate::sets::CLASSES;
use crate::units::Cells;

/// The rules, and the state that only they need.
#[derive(Debug, Clone)]
pub(super) struct HpccState {
    rules: HpccRules,
    /// By paused group, the cells that it would hold if none of its frames had departed since the last evaluation.
    without_departures: [Cells; CLASSES],
}

impl PortLedger {
    /// Returns the ledger with the `rules` of HPCC's simulator instead of its own. Only
    /// [`PortLedger::admit_as_hpcc`] admits by them, and only [`PortLedger::reevaluate_xoff`] resumes by them.
    #[must_use]
    pub fn with_hpcc(mut self, rules: HpccRules) -> Self {
        let state = HpccState { rules, without_departures: [Cells(0); CLASSES] };
        self.emulation = (!rules.is_empty()).then(|| Box::new(Emulation::Hpcc(state)));
        self
    }

    fn hpcc_mut(&mut self) -> Option<&mut HpccState> {
        match self.emulation.as_deref_mut() {
            Some(Emulation::Hpcc(state)) => Some(state),
            _ => None,
        }
    }

    /// Decides one packet of `cells` as [`PortLedger::admit`] does, but by the rules of HPCC's simulator that the
    /// ledger has.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn admit_as_hpcc(&mut self, group: usize, cells: Cells, pools: &mut Pools) -> Admission {
        let Some(rules) = self.hpcc_mut().map(|state| state.rules) else {
            return self.admit(group, cells, pools);
        };
        if !self.groups[group].profile.lossless {
            return self.admit(group, cells, pools);
        }
        let theirs = self.as_hpcc(group, pools);
        // A drop of theirs causes no XOFF.
        if rules.contains(HpccRule::ReserveRefused) && theirs.is_dropped(cells) {
            return Admission::Refused(Refusal::HeadroomFull);
        }
        let admission = self.place_as_hpcc(rules, group, &theirs, cells, pools);
        let is_xoff = self.group_off.contains(group);
        let held = self.groups[group].state.held();
        if let Some(hpcc) = self.hpcc_mut().filter(|_| is_xoff) {
            let expected = &mut hpcc.without_departures[group];
            let admitted = held - theirs.state.held();
            *expected = if theirs.is_xoff { *expected + admitted } else { held };
        }
        admission
    }

    /// Places a frame that is not dropped by HPCC's first check.
    fn place_as_hpcc(
        &mut self,
        rules: HpccRules,
        group: usize,
        theirs: &HpccGroup,
        cells: Cells,
        pools: &mut Pools,
    ) -> Admission {
        let parts = self.divide(group, cells);
        let may_be_beside = rules.contains(HpccRule::SharedBesideHeadroom) && !theirs.is_dropped(cells);
        let may_share = theirs.state.headroom == Cells(0) || may_be_beside;
        let stays_out = parts.shared == Cells(0) || may_share && theirs.fits_share(cells);
        if !stays_out || !pools.shared[LOSSLESS].take(parts.shared) {
            return self.admit_beyond(group, cells, &pools.headroom);
        }
        self.put(group, parts);
        if rules.contains(HpccRule::XoffAtThreshold) && self.as_hpcc(group, pools).must_pause() {
            self.group_off.insert(group);
        }
        if parts.shared == Cells(0) { Admission::Reserve } else { Admission::Shared }
    }

    /// Re-evaluates the paused groups by the rules of HPCC's simulator that the ledger has. Frames that have departed
    /// since the last evaluation count as one departure. Returns true if [`PortLedger::xoff`] changed.
    pub(super) fn resume_as_hpcc(&mut self, pools: &Pools) -> bool {
        let (before, free) = (self.group_off, pools.shared[LOSSLESS].free());
        for group in before.iter() {
            let theirs = self.as_hpcc(group, pools);
            let held = theirs.state.held();
            let Some(hpcc) = self.hpcc_mut() else { return false };
            let expected = std::mem::replace(&mut hpcc.without_departures[group], held);
            let is_judged = !hpcc.rules.contains(HpccRule::XonOwnDeparture) || held < expected;
            let by_theirs = hpcc.rules.contains(HpccRule::XonEmptyShare) && theirs.resumes();
            let own = &self.groups[group];
            let by_own = theirs.state.headroom == Cells(0) && own.may_resume(own.profile.threshold.limit(free), free);
            // Without cells, no departure can ever come.
            if held == Cells(0) || is_judged && (by_theirs || by_own) {
                self.group_off.remove(group);
                self.groups[group].state.refused = Cells(0);
            }
        }
        self.group_off != before
    }

    /// The lossless `group` as HPCC's simulator sees it.
    fn as_hpcc(&self, group: usize, pools: &Pools) -> HpccGroup {
        let (profile, state) = (self.groups[group].profile, self.groups[group].state);
        HpccGroup { profile, state, is_xoff: self.group_off.contains(group), free: pools.shared[LOSSLESS].free() }
    }
}
