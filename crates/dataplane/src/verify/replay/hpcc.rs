//! Comparison with the rules of HPCC's simulator ([`crate::mmu::HpccGroup`]), to see where they decide otherwise.
//! docs/mmu-rules.md explains each difference.
//!
//! Each event is judged from the state of this switch, so a difference comes from one rule and not from its history.
//! Cells are counted as here, although that simulator counts bytes. Headroom holds at least one frame, as the
//! configuration demands; without it that simulator would differ in two more rules.

use super::decision::{Decision, EventResult, Frame};
use super::{Replay, Way};
use crate::mmu::{HeadroomPolicy, HpccGroup, HpccPlace, HpccRule};
use crate::units::Cells;

impl Replay {
    /// Returns the reason why decisions of this switch cannot be compared; `None`: they can.
    #[must_use]
    pub fn why_not_hpcc(&self) -> Option<&'static str> {
        let mut profiles = self.ports.iter().map(|port| *port.ledger.profile());
        if profiles.clone().any(|profile| profile.policy != HeadroomPolicy::Independent) {
            return Some("its groups have headroom of their own; write `buffer: {headroom: independent}`");
        }
        profiles
            .any(|profile| profile.reserve[1] > Cells(0))
            .then_some("its ports have no lossless reserve; remove `port_reserve`")
    }

    /// Returns the group of `frame` before its event; `None` if it is lossy, which HPCC's simulator has not.
    #[must_use]
    pub fn hpcc_group(&self, frame: &Frame) -> Option<HpccGroup> {
        let Way { group, lossless, .. } = self.way(frame);
        let ledger = &self.ports[frame.port].ledger;
        lossless.then(|| HpccGroup {
            profile: ledger.profile().groups[group],
            state: ledger.group(group),
            is_xoff: ledger.xoff().contains(group),
            free: self.pools.shared[1].free(),
        })
    }

    /// Returns the rules by which HPCC's simulator would have made another `decision` on the group that was `before`.
    #[must_use]
    pub fn hpcc_rules(&self, before: &HpccGroup, decision: &Decision) -> Vec<HpccRule> {
        let mut rules = Vec::new();
        let resumed = |of_group: bool| {
            let own = |port, group| (port, group) == (decision.frame.port, decision.group);
            decision.transitions.iter().any(|change| !change.xoff && own(change.port, change.group) == of_group)
        };
        if resumed(false) {
            rules.push(HpccRule::XonOwnDeparture);
        }
        if decision.outcome == EventResult::Released {
            let depth = decision.at_queue.bytes + decision.posted;
            let marking = self.admission.wred(decision.queue).map(|wred| wred.probability(depth));
            let differs = decision.marking.is_some_and(|own| Some(own) != marking);
            rules.extend(differs.then_some(HpccRule::EcnAfterDeparture));
            let after = self.hpcc_group(&decision.frame).filter(|_| before.is_xoff);
            let resumes = after.is_some_and(|after| after.resumes()) && !resumed(true);
            rules.extend(resumes.then_some(HpccRule::XonEmptyShare));
        } else {
            rules.extend(resumed(true).then_some(HpccRule::XonOwnDeparture));
            rules.extend(arrival_rules(before, decision, self.hpcc_group(&decision.frame)));
        }
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

/// Compares the decisions on an arrival: the place of the frame, and XOFF of its group, which is `after` it.
fn arrival_rules(before: &HpccGroup, decision: &Decision, after: Option<HpccGroup>) -> Vec<HpccRule> {
    let theirs = before.admit(decision.cells);
    let place = match (decision.outcome, theirs) {
        (EventResult::Reserve, HpccPlace::Dropped) => Some(HpccRule::ReserveRefused),
        (EventResult::Headroom | EventResult::Dropped(_), HpccPlace::Buffer) => Some(HpccRule::SharedBesideHeadroom),
        _ => None,
    };
    let held = before.state.reserve + before.state.shared + decision.cells;
    let shared = held.saturating_sub(before.profile.reserve).saturating_sub(before.state.shared);
    let is_xoff = after.is_some_and(|after| after.is_xoff);
    let is_early = before.is_xoff_after(theirs, shared) && !is_xoff && !before.is_xoff;
    let xoff = is_early.then_some(HpccRule::XoffAtThreshold);
    place.into_iter().chain(xoff).collect()
}

#[cfg(test)]
#[path = "hpcc_tests.rs"]
mod tests;
