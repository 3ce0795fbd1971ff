//! Whom the switch drops: a lossy frame goes for want of room only where its group, its queue or the pool has none. Who is
//! not congested is not dropped because another is.

use super::super::decision_log::{Decision, LoggedDecision};
use super::super::drops::DropReason;
use super::super::pipeline::Pipeline;
use super::{Auditor, Check, ensure};
use crate::packet::Packet;
use crate::sets::CLASSES;
use crate::units::Cells;

/// Lossy frames' pool and reserves.
const LOSSY: usize = 0;

impl Auditor {
    /// The drops that were noted since the last check: of each class at each port the first of a poll.
    pub(super) fn check_drops<P: Packet>(&mut self, fleet: &[Pipeline<P>]) -> Check {
        for index in 0..self.ports.len() {
            let part = &fleet[self.ports[index].owner];
            let (noted, before) = (part.telemetry.logged_drops[index], self.ports[index].noted_drops);
            if noted == before {
                continue;
            }
            for class in (0..CLASSES).filter(|&class| noted[class] != before[class]) {
                if let Some(logged) = part.telemetry.counters.decisions[index].last_drops(class).first() {
                    self.check_drop(fleet, part.lcore, logged)?;
                }
            }
            self.ports[index].noted_drops = noted;
        }
        Ok(())
    }

    /// What the lcore knew when it dropped the frame explains it, by the limits of the configuration.
    fn check_drop<P: Packet>(&self, fleet: &[Pipeline<P>], lcore: usize, logged: &LoggedDecision) -> Check {
        let Decision::Dropped(reason) = logged.decision else { return Ok(()) };
        let (wanted, allowed) = match reason {
            DropReason::Threshold => {
                let group = &self.ports[usize::from(logged.ports[0])].profile.groups[usize::from(logged.group)];
                let limit = group.threshold.limit(Cells(logged.free));
                (logged.held[2] + self.beyond_reserves(fleet, logged), limit.0)
            }
            DropReason::PoolEmpty => (self.beyond_reserves(fleet, logged), logged.free),
            // Nothing is free that no queue is guaranteed: then it is not asked how deep this one is.
            DropReason::QueueThreshold if logged.free == 0 => return Ok(()),
            DropReason::QueueThreshold => {
                let queue = usize::from(self.queue_of[usize::from(logged.class)]);
                let limit = self.lcores[lcore].limits[queue].map(|limit| limit.threshold.limit(Cells(logged.free)));
                (logged.depth, limit.map_or(u32::MAX, |limit| limit.0.max(self.reserves[queue])))
            }
            _ => return Ok(()),
        };
        ensure(wanted > allowed, "dropped_without_cause", || {
            let [from, to] = logged.ports.map(|port| &self.ports[usize::from(port)].name);
            format!(
                "a frame of {} cells in class {} from {from} to {to} was dropped, {}, with {wanted} cells of {allowed} allowed \
                 while {} were free",
                logged.cells,
                logged.class,
                reason.label(),
                logged.free
            )
        })
    }

    /// Cells of the frame that neither its group's reserve nor its port's had room for. The port's may have become fuller
    /// since, not emptier: releases are heard before anything is received.
    fn beyond_reserves<P: Packet>(&self, fleet: &[Pipeline<P>], logged: &LoggedDecision) -> u32 {
        let port = usize::from(logged.ports[0]);
        let profile = &self.ports[port].profile;
        let used = fleet[self.ports[port].owner].ports[port].ledger.reserve_used()[LOSSY];
        let group = profile.groups[usize::from(logged.group)].reserve.0.saturating_sub(logged.held[0]);
        logged.cells.saturating_sub(group).saturating_sub(profile.reserve[LOSSY].0.saturating_sub(used.0))
    }
}
