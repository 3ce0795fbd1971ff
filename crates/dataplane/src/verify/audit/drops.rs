//! Rules on drops: a lossy frame is dropped for lack of room only if its group, its queue or the pool has none. A frame
//! without congestion of its own is never dropped because of another's.

use super::{Auditor, Check, ensure};
use crate::dataplane::pipeline::Pipeline;
use crate::io::Packet;
use crate::plan::decision_log::{LoggedDecision, LoggedEvent};
use crate::plan::drops::DropReason;
use crate::sets::CLASSES;
use crate::units::Cells;

/// Index of the pool and the reserves of lossy frames.
const LOSSY: usize = 0;

impl Auditor {
    /// Checks the drops that were logged since the last check: the first of each poll, for each class at each port.
    pub(crate) fn check_drops<P: Packet>(&mut self, fleet: &[Pipeline<P>], is_deep: bool) -> Check {
        let changes = fleet.iter().map(|part| part.telemetry.logged_drops_changes).sum();
        self.has_new_drops = is_deep || changes != self.drop_changes;
        self.drop_changes = changes;
        if !self.has_new_drops {
            return Ok(());
        }
        for (index, part) in (0..self.ports.len()).flat_map(|port| fleet.iter().map(move |part| (port, part))) {
            if !part.sends.contains(index) {
                continue;
            }
            let (noted, before) = (part.telemetry.logged_drops[index], self.ports[index].noted_drops[part.lcore]);
            if noted == before {
                continue;
            }
            for class in (0..CLASSES).filter(|&class| noted[class] != before[class]) {
                if let Some(logged) = part.telemetry.log_of(index).last_drops(class).first() {
                    self.check_drop(fleet, part.lcore, logged)?;
                }
            }
            self.ports[index].noted_drops[part.lcore] = noted;
        }
        Ok(())
    }

    /// Checks that the values in the log explain the drop, by the limits of the configuration.
    fn check_drop<P: Packet>(&self, fleet: &[Pipeline<P>], lcore: usize, logged: &LoggedDecision) -> Check {
        let LoggedEvent::Dropped(reason) = logged.decision else { return Ok(()) };
        let (wanted, allowed) = match reason {
            DropReason::Threshold => {
                let group = &self.ports[usize::from(logged.ports[0])].profile.groups[usize::from(logged.group)];
                let limit = group.threshold.limit(logged.free);
                (logged.held[2] + self.beyond_reserves(fleet, logged), limit)
            }
            DropReason::PoolEmpty => (self.beyond_reserves(fleet, logged), logged.free),
            // If no unreserved cell is free, the depth of the queue does not matter.
            DropReason::QueueThreshold if logged.free == Cells(0) => return Ok(()),
            DropReason::QueueThreshold => {
                let queue = usize::from(self.queue_of[usize::from(logged.class)]);
                let limit = self.lcores[lcore].limits[queue].map(|limit| {
                    let whole = limit.threshold.limit(logged.free);
                    // The log has the part of the whole limit that ABM measured.
                    if limit.abm { whole.min(logged.queue_limit) } else { whole }
                });
                (logged.depth, limit.map_or(Cells(u32::MAX), |limit| limit.max(Cells(self.reserves[queue]))))
            }
            _ => return Ok(()),
        };
        let (wanted, allowed) = (wanted.0, allowed.0);
        ensure(wanted > allowed, "dropped_without_cause", || {
            let [from, to] = logged.ports.map(|port| &self.ports[usize::from(port)].name);
            format!(
                "a frame of {} cells in class {} from {from} to {to} was dropped, {}, with {wanted} cells of {allowed} allowed \
                 while {} were free",
                logged.cells.0,
                logged.class,
                reason.label(),
                logged.free.0
            )
        })
    }

    /// Returns the cells of the frame that fitted neither its group's reserve nor its port's. The port's reserve may
    /// have become fuller since, but not emptier: releases are collected before frames are received.
    fn beyond_reserves<P: Packet>(&self, fleet: &[Pipeline<P>], logged: &LoggedDecision) -> Cells {
        let port = usize::from(logged.ports[0]);
        let profile = &self.ports[port].profile;
        let used = fleet[self.ports[port].owner].ports[port].ledger.reserve_used()[LOSSY];
        let group = profile.groups[usize::from(logged.group)].reserve.saturating_sub(logged.held[0]);
        logged.cells.saturating_sub(group).saturating_sub(profile.reserve[LOSSY].saturating_sub(used))
    }
}
