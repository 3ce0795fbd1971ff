//! The auditor: checks the invariants of a switch between two polls.
//!
//! The rules are derived from docs/buffer.md and docs/pfc.md, not from the code that they check. They read the state of
//! all lcores of a switch at once, which is impossible while lcores run in parallel. The simulator runs them in turn,
//! in one thread. docs/simulation.md explains each invariant and its limits.

mod counts;
mod drops;
mod joint;
mod moves;
mod queues;
mod starved;
#[cfg(test)]
mod tests;

use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::io::Packet;
use crate::mmu::{GroupState, HeadroomPolicy, HpccRules, PortProfile, QueueLimit};
use crate::plan::spec::SwitchSpec;
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::Cells;

/// Every check of this number is a deep one, which also walks the queues and examines idle ports. It takes a time for
/// each port, so switches of more than [`FEW_PORTS`] have fewer in proportion: the mean time of a check is bounded.
const DEEP: u64 = 64;
const FEW_PORTS: u64 = 4;

/// Bytes that a frame may have beyond its port's MTU: Ethernet header, two tags, and one tag that the switch inserts.
const HEADERS: u64 = 26;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// A sentence with the place and the numbers.
    pub what: String,
}

type Check = Result<(), Broken>;

/// Returns [`Broken`] with the text of `what` if `holds` is false.
#[inline]
fn ensure(holds: bool, invariant: &'static str, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Broken { invariant, what: what() }) }
}

/// The most cells of a frame of a switch with `spec`.
fn longest_frame(spec: &SwitchSpec) -> u32 {
    let longest = spec.ports.iter().map(|port| u64::from(port.mtu)).max().unwrap_or(0) + HEADERS;
    longest.div_ceil(spec.buffer.cell.0.max(1)) as u32
}

/// Checks a switch after each step of any of its lcores.
#[derive(Debug)]
pub struct Auditor {
    ports: Vec<Audited>,
    /// Sizes of the shared pools, lossy and lossless.
    shared: [Cells; 2],
    /// Whether both are one pool.
    has_one_pool: bool,
    headroom: Cells,
    /// All cells of the buffer.
    total: Cells,
    policy: HeadroomPolicy,
    /// Cells reserved for each queue of a port.
    reserves: [u32; CLASSES],
    /// Queue of each traffic class.
    queue_of: [u8; CLASSES],
    /// Maximum number of cells of a frame.
    most: u32,
    lcores: Vec<Lcore>,
    checks: u64,
    /// Number of checks of which one is deep.
    deep_every: u64,
    /// Changes of the logged drops as of the last check, and whether that was deep or found new ones.
    drop_changes: u64,
    has_new_drops: bool,
    /// Ports that were not idle at the last check.
    busy: PortSet,
    /// Ports whose own backlog paused their lossless classes at the last check.
    held: PortSet,
}

/// The constants of a port, and its state at the last check.
#[derive(Debug)]
struct Audited {
    name: String,
    owner: usize,
    profile: PortProfile,
    /// The settings that the last change wants. Groups that become lossless or lossy take theirs when they do.
    wanted: PortProfile,
    /// Rules of HPCC's simulator, whose exceptions from invariants are waived.
    hpcc: HpccRules,
    /// With Reverie, the most cells of the pool that may stay free for lossy queues below their reserve; else zero.
    kept: Cells,
    seen: Seen,
    /// The groups at the last check, less the releases that the ledger has collected since. The poll made its decisions
    /// from this state.
    collected: [GroupState; CLASSES],
    counters: [u64; 5],
    /// By lcore, the poll of the last logged drop of each class that was checked.
    noted_drops: Vec<[u64; CLASSES]>,
    held: starved::HeldByBacklog,
}

#[derive(Debug, Default)]
struct Seen {
    groups: [GroupState; CLASSES],
    released: [u64; CLASSES],
    /// Released cells that were published at the end of the owner's last poll.
    published: [u64; CLASSES],
    groups_off: ClassSet,
    is_port_off: bool,
    /// Groups that the next check must examine, because they held cells or were XOFF.
    busy: ClassSet,
}

/// The state of an lcore at the last check.
#[derive(Debug, Default, Clone, Copy)]
struct Lcore {
    /// Free cells of the lossless pool, as this lcore sees it: at the last check, and after it collected releases.
    free: Cells,
    free_collected: Cells,
    polls: u64,
    has_polled: bool,
    /// Limits of its queues.
    limits: [Option<QueueLimit>; CLASSES],
    passed: starved::PassedWhileHeld,
}

/// One port with the values that the rules need.
struct Look<'a> {
    audited: &'a Audited,
    port: &'a Port,
    /// Groups that may not be idle.
    groups: ClassSet,
    /// Free cells of the lossless pool: when the lcore judged the paused groups, and now.
    free_then: Cells,
    free: Cells,
    /// Free cells of the headroom pool.
    headroom_free: Cells,
    /// Maximum number of cells of a frame.
    most: u32,
    /// Whether a poll of its lcore has ended since the last check.
    has_polled: bool,
}

impl Auditor {
    /// Creates an auditor for a switch with `spec` that has not started.
    #[must_use]
    pub fn new(spec: &SwitchSpec) -> Self {
        let reserves: Cells = spec.queues.iter().map(|queue| queue.reserve).sum();
        let kept = if spec.reverie { Cells(reserves.0.saturating_mul(spec.ports.len() as u32)) } else { Cells(0) };
        let audited = |index: usize| {
            let port = &spec.ports[index];
            Audited {
                name: port.name.clone(),
                owner: usize::from(port.lcore),
                profile: port.buffer,
                wanted: port.buffer,
                hpcc: spec.hpcc,
                kept,
                seen: Seen::default(),
                collected: [GroupState::default(); CLASSES],
                counters: [0; 5],
                noted_drops: vec![[u64::MAX; CLASSES]; usize::from(spec.lcores)],
                held: starved::HeldByBacklog::default(),
            }
        };
        let limits = spec.queues.map(|queue| queue.limit);
        let lcore = Lcore { free: spec.buffer.lossless_shared, limits, ..Lcore::default() };
        Self {
            ports: (0..spec.ports.len()).map(audited).collect(),
            shared: [spec.buffer.lossy_shared, spec.buffer.lossless_shared],
            has_one_pool: spec.reverie,
            headroom: spec.buffer.headroom,
            total: spec.buffer.total,
            policy: spec.buffer.policy,
            reserves: spec.queues.map(|queue| queue.reserve.0),
            queue_of: spec.classes.tc_to_queue,
            most: longest_frame(spec),
            lcores: vec![lcore; usize::from(spec.lcores)],
            checks: 0,
            deep_every: DEEP * (spec.ports.len() as u64).div_ceil(FEW_PORTS).max(1),
            drop_changes: 0,
            has_new_drops: false,
            busy: PortSet::EMPTY,
            held: PortSet::EMPTY,
        }
    }

    /// Whether the last check was a deep one, or found drops that the one before it had not.
    #[must_use]
    pub fn has_new_drops(&self) -> bool {
        self.has_new_drops
    }

    /// Whether the last check was a deep one.
    #[must_use]
    pub fn is_deep(&self) -> bool {
        self.checks.is_multiple_of(self.deep_every)
    }

    /// Sets the thresholds of `spec` for the ports of lcore `lcore`, which has applied them ([`Pipeline::apply`]).
    /// [`Auditor::resized`] must follow.
    pub fn tuned(&mut self, lcore: usize, spec: &SwitchSpec) {
        for (audited, port) in self.ports.iter_mut().zip(&spec.ports).filter(|(audited, _)| audited.owner == lcore) {
            audited.wanted = port.buffer;
        }
        self.most = self.most.max(longest_frame(spec));
        self.lcores[lcore].limits = spec.queues.map(|queue| queue.limit);
    }

    /// Takes the sizes that the parts of the buffer have now, after a step of a new division and before the next poll.
    ///
    /// # Errors
    /// Returns an error if all parts together are larger than the buffer.
    pub fn resized<P: Packet>(&mut self, fleet: &[Pipeline<P>]) -> Check {
        let pools = fleet[0].pools();
        self.shared = pools.shared.each_ref().map(|pool| pool.size());
        self.headroom = pools.headroom.size();
        for (index, audited) in self.ports.iter_mut().enumerate() {
            let state = &fleet[audited.owner].ports[index];
            let ledger = &state.ledger;
            let was = audited.profile;
            for (group, now) in ledger.profile().groups.iter().enumerate() {
                let (profile, wanted) = (&mut audited.profile.groups[group], audited.wanted.groups[group]);
                *profile = if now.lossless == wanted.lossless { wanted } else { *profile };
                (profile.reserve, profile.headroom) = (now.reserve, now.headroom);
                if profile.lossless != was.groups[group].lossless {
                    let has_all =
                        profile.headroom >= wanted.headroom && ledger.profile().insurance >= audited.wanted.insurance;
                    ensure(has_all || !profile.lossless, "promised_with_headroom", || {
                        let name = &audited.name;
                        format!(
                            "{name} group {group}: lossless with {} of {} cells",
                            profile.headroom.0, wanted.headroom.0
                        )
                    })?;
                    // Counts of its classes change their kind.
                    self.lcores[audited.owner].passed = starved::PassedWhileHeld::default();
                }
            }
            (audited.profile.reserve, audited.profile.insurance) =
                (ledger.profile().reserve, ledger.profile().insurance);
            // Cells of a reserve may have become shared ones. A group of another kind has moved all but its reserve.
            for (group, seen) in audited.seen.groups.iter_mut().enumerate() {
                let now = ledger.group(group);
                // The lcore may have collected releases since the last check.
                let gone = state.released[group] - audited.seen.released[group];
                let mut before = *seen;
                moves::collect(&mut before, gone);
                let is_same = if audited.profile.groups[group].lossless == was.groups[group].lossless {
                    (before.used(), before.headroom) == (now.used(), now.headroom) && before.shared <= now.shared
                } else {
                    before.held() == now.held() && now.reserve <= before.reserve && now.headroom == Cells(0)
                };
                ensure(is_same, "cells_conserved", || {
                    let name = &audited.name;
                    format!("{name} group {group}: {before:?} before its parts were resized, and {now:?} after")
                })?;
                (*seen, audited.seen.released[group]) = (now, state.released[group]);
            }
        }
        for (lcore, part) in self.lcores.iter_mut().zip(fleet) {
            lcore.free = part.buffer.pools.shared[1].free();
        }
        self.check_division(fleet)
    }

    /// Checks that the parts of the buffer are together no larger than it.
    fn check_division<P: Packet>(&self, fleet: &[Pipeline<P>]) -> Check {
        let ledgers = self.ports.iter().enumerate().map(|(index, port)| &fleet[port.owner].ports[index].ledger);
        let own: u64 = ledgers.map(|ledger| ledger.profile().own_cells()).sum();
        let pools: u64 =
            self.shared.iter().take(if self.has_one_pool { 1 } else { 2 }).map(|size| u64::from(size.0)).sum();
        let headroom = if self.policy == HeadroomPolicy::SharedPool { self.headroom.0 } else { 0 };
        let (all, total) = (own + pools + u64::from(headroom), self.total.0);
        ensure(all <= u64::from(total), "division_fits", || {
            format!("{own} cells of ports, {pools} of shared pools and {headroom} of headroom in a buffer of {total}")
        })
    }

    /// Checks the switch of all these lcores, in their order. Call it after each poll or half poll of any of them,
    /// since some rules compare with the previous check.
    ///
    /// # Errors
    /// Returns the first invariant that does not hold.
    pub fn check<P: Packet>(&mut self, fleet: &[Pipeline<P>]) -> Check {
        self.checks += 1;
        let is_deep = self.checks.is_multiple_of(self.deep_every);
        let busy = if is_deep { PortSet::ALL } else { self.busy } | busy(fleet);
        let busy = busy & PortSet::first(self.ports.len());
        self.collect(fleet, busy);
        for port in busy.iter() {
            let look = self.look(fleet, port, is_deep);
            look.check_counts(fleet, port)?;
            look.check_moves()?;
            look.check_telling(&fleet[self.ports[port].owner], port)?;
        }
        self.check_joint(fleet)?;
        self.check_drops(fleet, is_deep)?;
        self.check_starved(fleet)?;
        self.check_pools(fleet, busy)?;
        self.check_whole(fleet, busy)?;
        if is_deep {
            self.check_queues(fleet)?;
            self.check_congestion(fleet)?;
            self.check_counters(fleet)?;
        }
        self.remember(fleet, busy);
        Ok(())
    }

    /// Checks that the switch holds no frames and pauses no peer, after traffic has ended and all frames have left.
    ///
    /// # Errors
    /// Returns the remaining frames, cells or pauses, or the first invariant that does not hold.
    pub fn check_idle<P: Packet>(&self, fleet: &[Pipeline<P>]) -> Check {
        self.check_queues(fleet)?;
        for (index, audited) in self.ports.iter().enumerate() {
            let port = &fleet[audited.owner].ports[index];
            let held = (0..CLASSES).map(|group| port.ledger.group(group).held().0).sum::<u32>();
            let parts = fleet.iter().filter(|part| part.sends.contains(index));
            let queued: u32 = parts.flat_map(|part| &part.ports[index].queues).map(|queue| queue.frames()).sum();
            let off = port.wants_xoff() | port.pfc.xoff();
            ensure((held, queued) == (0, 0) && off.is_empty(), "idle", || {
                let (name, off) = (&audited.name, off.bits());
                format!(
                    "{name}: {held} cells and {queued} frames are held and groups {off:#010b} are XOFF in an idle switch"
                )
            })?;
        }
        let rings = Pipeline::crossing_frames(fleet);
        let used = [0, 1].map(|kind| fleet.iter().map(|part| part.buffer.pools.shared[kind].used().0).sum::<u32>());
        let headroom = fleet.first().map_or(0, |part| part.buffer.pools.headroom.used().0);
        ensure((rings, used, headroom) == (0, [0; 2], 0), "idle", || {
            format!(
                "{rings} frames between lcores, {used:?} cells of the pools and {headroom} of headroom in an idle switch"
            )
        })
    }

    /// Applies the releases that the ledgers have collected since the last check, by the rules.
    fn collect<P: Packet>(&mut self, fleet: &[Pipeline<P>], busy: PortSet) {
        for (lcore, part) in self.lcores.iter_mut().zip(fleet) {
            lcore.free_collected = lcore.free;
            lcore.has_polled = part.telemetry.counters.lcores[part.lcore].polls.get() != lcore.polls;
        }
        for port in busy.iter() {
            let audited = &mut self.ports[port];
            let state = &fleet[audited.owner].ports[port];
            audited.collected = audited.seen.groups;
            for group in audited.seen.busy.iter() {
                let cells = state.released[group].saturating_sub(audited.seen.released[group]);
                let (before, after) = (audited.seen.groups[group], &mut audited.collected[group]);
                moves::collect(after, cells);
                if self.has_one_pool || audited.profile.groups[group].lossless {
                    self.lcores[audited.owner].free_collected.0 += before.shared.0 - after.shared.0;
                }
            }
        }
    }

    fn look<'a, P: Packet>(&'a self, fleet: &'a [Pipeline<P>], port: usize, all: bool) -> Look<'a> {
        let audited = &self.ports[port];
        let part = &fleet[audited.owner];
        let state = &part.ports[port];
        Look {
            audited,
            port: state,
            groups: if all { ClassSet::ALL } else { state.holding | state.ledger.xoff() | audited.seen.busy },
            free_then: self.lcores[audited.owner].free_collected,
            free: part.buffer.pools.shared[1].free(),
            headroom_free: part.buffer.pools.headroom.free(),
            most: self.most,
            has_polled: self.lcores[audited.owner].has_polled,
        }
    }

    fn remember<P: Packet>(&mut self, fleet: &[Pipeline<P>], busy: PortSet) {
        self.busy = PortSet::EMPTY;
        for port in busy.iter() {
            let Audited { owner, seen, .. } = &mut self.ports[port];
            let (part, state) = (&fleet[*owner], &fleet[*owner].ports[port]);
            for group in (state.holding | seen.busy).iter() {
                seen.groups[group] = state.ledger.group(group);
                seen.released[group] = state.released[group];
                if self.lcores[*owner].has_polled {
                    seen.published[group] = part.buffer.tallies.released(port, group);
                }
            }
            seen.groups_off = state.ledger.groups_xoff();
            seen.is_port_off = state.ledger.is_port_xoff();
            seen.busy = state.holding | state.ledger.xoff();
            self.busy |= PortSet::only_if(!seen.busy.is_empty(), port);
        }
        for (lcore, part) in self.lcores.iter_mut().zip(fleet) {
            lcore.free = part.buffer.pools.shared[1].free();
            lcore.polls = part.telemetry.counters.lcores[part.lcore].polls.get();
        }
    }
}

/// Returns the ports that hold cells or pause their peer. A switch says which ports these may be; deep checks look at
/// all.
fn busy<P: Packet>(fleet: &[Pipeline<P>]) -> PortSet {
    let is_active = |port: &Port| !port.pfc.xoff().is_empty();
    let active =
        |part: &Pipeline<P>| (part.own & part.alert).iter().filter(|&port| is_active(&part.ports[port])).collect();
    fleet.iter().fold(PortSet::EMPTY, |all, part| all | part.buffer.holding | part.pauses.xoff | active(part))
}
