//! Rules on counts: admitted cells are released or held, and no limit is exceeded.

use super::{Auditor, Check, Look, ensure, queues};
use crate::dataplane::pipeline::Pipeline;
use crate::io::Packet;
use crate::mmu::{GroupState, HeadroomPolicy};
use crate::sets::{CLASSES, PortSet};
use crate::units::Cells;

const CONSERVED: &str = "cells_conserved";
const UNDERESTIMATED: &str = "never_underestimated";
const HEADROOM: &str = "headroom_limit";
const SHARED: &str = "shared_limit";

impl Look<'_> {
    pub(crate) fn check_counts<P: Packet>(&self, fleet: &[Pipeline<P>], port: usize) -> Check {
        let mut headroom = 0;
        let (mut port_reserve, mut shared) = ([0; 2], [0; 2]);
        for group in self.groups.iter() {
            let state = self.port.ledger.group(group);
            let kind = usize::from(self.audited.profile.groups[group].lossless);
            port_reserve[kind] += state.port_reserve.0;
            shared[kind] += state.shared.0;
            headroom += state.headroom.0;
            self.check_conserved(group, &state)?;
            self.check_believed(fleet, port, group, &state)?;
            self.check_limits(group, &state)?;
        }
        self.check_sums(port_reserve, shared, headroom)
    }

    /// Checks that the ledger holds exactly the cells that were admitted and not released.
    fn check_conserved(&self, group: usize, state: &GroupState) -> Check {
        let (admitted, released) = (self.port.admitted[group], self.port.released[group]);
        let held = state.held().0;
        ensure(admitted.checked_sub(released) == Some(u64::from(held)), CONSERVED, || {
            let name = &self.audited.name;
            format!("{name} group {group}: {admitted} cells admitted and {released} released, and {held} held")
        })?;
        ensure(self.port.holding.contains(group) == (held > 0), CONSERVED, || {
            let name = &self.audited.name;
            format!("{name} group {group}: {held} cells held, which contradicts the mask of groups that hold cells")
        })
    }

    /// Checks that the ledger never underestimates: it has collected no release that was not published, and none was
    /// published that was not made. It has also collected all releases that were published when its lcore last ended a
    /// poll.
    fn check_believed<P: Packet>(&self, fleet: &[Pipeline<P>], port: usize, group: usize, state: &GroupState) -> Check {
        let (admitted, collected) = (self.port.admitted[group], self.port.released[group]);
        let published = fleet[0].buffer.tallies.released(port, group);
        let made: u64 = fleet.iter().map(|part| part.buffer.releases.written(port, group)).sum();
        ensure(collected <= published && published <= made && made <= admitted, UNDERESTIMATED, || {
            let (name, held) = (&self.audited.name, state.held().0);
            format!(
                "{name} group {group}: {collected} released cells are collected, {published} published, {made} made, \
                 {admitted} were admitted, and {held} are counted as held"
            )
        })?;
        let before = self.audited.seen.published[group];
        ensure(!self.has_polled || collected >= before, "releases_collected", || {
            let name = &self.audited.name;
            format!(
                "{name} group {group}: {before} released cells were published one poll ago, and {collected} are collected"
            )
        })
    }

    fn check_limits(&self, group: usize, state: &GroupState) -> Check {
        let profile = &self.audited.profile.groups[group];
        let (headroom, limit) = (state.headroom, if profile.lossless { profile.headroom } else { Cells(0) });
        let is_own = !profile.lossless || self.audited.profile.policy != HeadroomPolicy::Dynamic;
        ensure(!is_own || headroom <= limit, HEADROOM, || {
            let name = &self.audited.name;
            format!("{name} group {group}: {} cells in a headroom of {}", headroom.0, limit.0)
        })?;
        ensure(state.reserve <= profile.reserve, SHARED, || {
            let name = &self.audited.name;
            format!("{name} group {group}: {} cells in a reserve of {}", state.reserve.0, profile.reserve.0)
        })
    }

    /// Checks that the port's own counts are the sums of its groups' counts, and within its limits.
    fn check_sums(&self, port_reserve: [u32; 2], shared: [u32; 2], headroom: u32) -> Check {
        let (ledger, profile, name) = (&self.port.ledger, &self.audited.profile, &self.audited.name);
        let is_dynamic = profile.policy == HeadroomPolicy::Dynamic;
        let insurance = if is_dynamic { headroom } else { 0 };
        let sums = (port_reserve.map(Cells), shared.map(Cells), Cells(insurance));
        let counted = (ledger.reserve_used(), ledger.shared(), ledger.insurance_used());
        ensure(counted == sums, CONSERVED, || {
            format!("{name}: port reserve, shared and insurance are {counted:?}, and the sums of its groups {sums:?}")
        })?;
        ensure(!is_dynamic || insurance <= profile.insurance.0, HEADROOM, || {
            format!("{name}: {insurance} cells in an insurance of {}", profile.insurance.0)
        })?;
        let within = (0..2).all(|kind| port_reserve[kind] <= profile.reserve[kind].0);
        ensure(within, SHARED, || format!("{name}: {port_reserve:?} cells in port reserves of {:?}", profile.reserve))
    }
}

impl Auditor {
    /// Checks that the counts of the pools match the ledgers, and that no pool lends more cells than it has.
    pub(crate) fn check_pools<P: Packet>(&self, fleet: &[Pipeline<P>], busy: PortSet) -> Check {
        let mut leased = [0; 2];
        for (kind, leased) in leased.iter_mut().enumerate() {
            for part in fleet {
                let held: u32 = (part.own & busy).iter().map(|port| part.ports[port].ledger.shared()[kind].0).sum();
                let (used, spare) = (part.buffer.pools.shared[kind].used().0, part.buffer.pools.shared[kind].spare().0);
                *leased += u64::from(used) + u64::from(spare);
                ensure(used == held, CONSERVED, || {
                    let lcore = part.lcore;
                    format!(
                        "lcore {lcore}: its ledgers hold {held} cells of shared pool {kind}, and its lease counts {used}"
                    )
                })?;
            }
        }
        for kind in 0..2 {
            let leased = if self.has_one_pool { leased[0] + leased[1] } else { leased[kind] };
            let (pool, size) = (fleet[0].buffer.pools.shared[kind].pool().leased().0, self.shared[kind].0);
            ensure(u64::from(pool) == leased, CONSERVED, || {
                format!(
                    "{pool} cells of shared pool {kind} are leased, and lcores have {leased} of them, used and spare"
                )
            })?;
            ensure(pool <= size, SHARED, || format!("{pool} cells are leased of shared pool {kind} of {size}"))?;
        }
        let (used, size) = (fleet[0].buffer.pools.headroom.used().0, self.headroom.0);
        let held = match self.policy {
            HeadroomPolicy::SharedPool => self.headroom_held(fleet, busy),
            HeadroomPolicy::Independent | HeadroomPolicy::Dynamic => 0,
        };
        ensure(used == held, CONSERVED, || {
            format!("groups hold {held} cells of the headroom pool, which counts {used}")
        })?;
        ensure(used <= size, HEADROOM, || format!("{used} cells are used of the headroom pool of {size}"))
    }

    /// Checks that the congestion by which Reverie limits lossless groups is the sum over their filtered shares.
    pub(crate) fn check_congestion<P: Packet>(&self, fleet: &[Pipeline<P>]) -> Check {
        let Some(groups) = fleet[0].buffer.reverie_groups() else { return Ok(()) };
        for group in 0..CLASSES {
            let ledgers = fleet[0].ports.iter().map(|port| &port.ledger);
            let filtered = ledgers.filter_map(|ledger| ledger.filtered(group)).map(|(filtered, _)| filtered);
            let (sum, counted) = (filtered.map(|share| groups.congestion_of(share)).sum(), groups.congestion(group));
            ensure(counted == sum, CONSERVED, || {
                format!("group {group}: a congestion of {counted} is counted, and its filtered shares have {sum}")
            })?;
        }
        Ok(())
    }

    fn headroom_held<P: Packet>(&self, fleet: &[Pipeline<P>], busy: PortSet) -> u32 {
        let ledgers = busy.iter().map(|port| &fleet[self.ports[port].owner].ports[port].ledger);
        ledgers.map(|ledger| (0..CLASSES).map(|group| ledger.group(group).headroom.0).sum::<u32>()).sum()
    }

    /// Checks that the cells that the whole switch admitted and did not release are in queues and between lcores. A
    /// frame between lcores has at least one cell, and at most those of the longest frame.
    pub(crate) fn check_whole<P: Packet>(&self, fleet: &[Pipeline<P>], busy: PortSet) -> Check {
        let charged = |port: usize, group: usize| {
            let made: u64 = fleet.iter().map(|part| part.buffer.releases.written(port, group)).sum();
            fleet[self.ports[port].owner].ports[port].admitted[group].wrapping_sub(made)
        };
        let groups = |port: usize| fleet[self.ports[port].owner].ports[port].holding.iter();
        let held: u64 =
            busy.iter().flat_map(|port| groups(port).map(move |group| (port, group))).map(|(p, g)| charged(p, g)).sum();
        let queued: u64 = fleet.iter().map(queues::cells_queued).sum();
        let frames = Pipeline::crossing_frames(fleet) as u64;
        let is_right = queued + frames <= held && held <= queued + frames * u64::from(self.most);
        ensure(is_right, UNDERESTIMATED, || {
            format!("{queued} cells wait in queues and {frames} frames between lcores, and {held} cells are charged")
        })
    }
}
