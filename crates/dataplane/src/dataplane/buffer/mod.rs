//! The buffer as one lcore sees it: admission of frames to priority groups, and the release of their cells.
//!
//! Admission has a short path for bursts in which no frame can be refused, [`Buffer::admit_burst`], and a path for
//! single frames, [`Buffer::admit`]. Both reach the same state, to the cell and to the watermark.

pub(crate) mod pauses;
mod reverie;
pub(crate) mod trash;

use std::sync::Arc;

use self::reverie::Reverie;
use super::port::Port;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::fast_path::{self, FastPath};
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::rewrite::BurstDemand;
use crate::io::Packet;
use crate::mmu::{
    Admission, BurstRequest, ExactPool, GroupState, Lease, LossyPool, Pools, QueueAdmission, QueueReserves, SharedPool,
    Tallies, TallyWriter,
};
use crate::plan::spec::SwitchSpec;
use crate::sets::{BURST, CLASSES, ClassSet, PortSet};
use crate::units::{CellSize, Cells};

/// One lcore's part of the shared buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub cell: CellSize,
    /// This lcore's leases of the pools.
    pub pools: Pools,
    pub reserves: QueueReserves,
    /// Cells that have left the switch, by the lcore that released them.
    pub tallies: Arc<Tallies>,
    /// This lcore's part of the tallies.
    pub releases: TallyWriter,
    /// Own ports with groups that hold cells.
    pub holding: PortSet,
    /// State of a simulated switch that decides as Reverie; `None` in the product.
    reverie: Option<Box<Reverie>>,
}

/// A lossy group and the lossy pool before a frame was admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    group: GroupState,
    pool_highest: Cells,
}

impl Buffer {
    /// Creates the parts of all lcores for the buffer of `spec`.
    pub fn fleet(spec: &SwitchSpec) -> Vec<Self> {
        let pools = shared_pools(spec);
        let lease = if spec.reverie { Lease::exact } else { Lease::new };
        let headroom = ExactPool::with_room(spec.buffer.headroom, spec.buffer.total);
        let tallies = Arc::new(Tallies::new(usize::from(spec.lcores), spec.ports.len()));
        let part = |(lcore, reserves)| Self {
            cell: CellSize::new(spec.buffer.cell),
            pools: Pools { shared: pools.each_ref().map(|pool| lease(pool.clone())), headroom: headroom.clone() },
            reserves,
            releases: tallies.writer(lcore),
            tallies: tallies.clone(),
            holding: PortSet::EMPTY,
            reverie: Reverie::of(spec),
        };
        spec.queue_reserves().into_iter().enumerate().map(part).collect()
    }

    /// The lossy pool as queue admission sees it.
    #[inline]
    pub fn lossy_pool(&self) -> LossyPool {
        LossyPool { free: self.pools.shared[0].free(), reserved: self.reserves.unused() }
    }

    /// Gives the ledgers of own ports the cells that were released since the last poll. Returns the ports that held
    /// cells before.
    #[inline]
    pub fn collect_releases<P: Packet>(&mut self, ports: &mut [Port]) -> PortSet {
        if P::EMULATES {
            self.set_kept();
        }
        let held = self.holding;
        for port in held.iter() {
            let state = &mut ports[port];
            for group in state.holding.iter() {
                let released = self.tallies.released(port, group);
                let cells = released - state.released[group];
                if cells == 0 {
                    continue;
                }
                state.released[group] = released;
                if P::EMULATES && state.ledger.emulates() {
                    let frames = self.reverie.as_mut().map_or(1, |reverie| reverie.take(port, group));
                    state.ledger.depart(group, Cells(cells as u32), frames, &mut self.pools);
                } else {
                    state.ledger.release(group, Cells(cells as u32), &mut self.pools);
                }
                if released == state.admitted[group] {
                    state.holding.remove(group);
                }
            }
            if state.holding.is_empty() {
                self.holding.remove(port);
            }
        }
        held
    }

    /// Admits all frames of `demand`, which came by ingress `port`, if [`Buffer::admit`] and their queues on this lcore
    /// would accept each of them and no group would become XOFF. Otherwise admits none. Returns whether they are
    /// admitted. `sends` has the ports by which this lcore sends.
    ///
    /// Always inline, at two calls: a call of its own costs 145 instructions a burst.
    #[inline(always)]
    pub fn admit_burst<P: Packet>(
        &mut self,
        ports: &mut [Port],
        port: usize,
        sends: PortSet,
        rule: &QueueAdmission,
        metas: &[Meta; BURST],
        demand: &BurstDemand,
    ) -> bool {
        let groups = demand.groups();
        let lossy = groups - ports[port].lossless;
        let crosses = !(demand.egresses - sends).is_empty();
        // The other lcore must accept a frame within its group's reserve. Only frame by frame is it known which frames
        // these are.
        let has_reserve = || lossy.iter().any(|group| ports[port].ledger.has_free_reserve(group));
        if !lossy.is_empty()
            && (crosses && has_reserve() || !self.queues_take(ports, crosses, rule, metas, demand, lossy))
            || !self.admit_groups::<P>(port, &mut ports[port], &demand.cells, groups)
        {
            return false;
        }
        if !groups.is_empty() {
            fast_path::hit(FastPath::Admitted);
        }
        true
    }

    /// Admits `cells` of each of the `groups` of a port, in any frames, if [`Buffer::admit`] would accept each of them
    /// and no group would become XOFF. Otherwise admits none. Returns whether they are admitted.
    #[inline(always)]
    pub fn admit_groups<P: Packet>(
        &mut self,
        port: usize,
        state: &mut Port,
        cells: &[Cells; CLASSES],
        groups: ClassSet,
    ) -> bool {
        // The short path knows the switch's own rules only.
        if P::EMULATES && state.ledger.emulates() {
            return false;
        }
        if !state.ledger.admit_burst(cells, groups, &mut self.pools) {
            return false;
        }
        if !(state.ledger.xoff() & groups).is_empty() {
            fast_path::hit(FastPath::WhileXoff);
        }
        for group in groups.iter() {
            state.admitted[group] += u64::from(cells[group].0);
        }
        state.holding |= groups;
        self.holding |= PortSet::only_if(!groups.is_empty(), port);
        true
    }

    /// Whether every frame of `demand` in one of the groups `lossy` is sure to fit its queue. `crosses` if some of them
    /// leave by ports of other lcores.
    #[inline(always)]
    fn queues_take(
        &self,
        ports: &[Port],
        crosses: bool,
        rule: &QueueAdmission,
        metas: &[Meta; BURST],
        demand: &BurstDemand,
        lossy: ClassSet,
    ) -> bool {
        let wanted = lossy.iter().map(|group| demand.cells[group]).sum();
        let all = demand.cells.iter().copied().sum();
        let request = BurstRequest { lossy: wanted, all, queues: demand.lossy_queues, crosses };
        let draws = || {
            let needs_draw = |meta: &Meta| rule.needs_wred_draw(meta.desc.queue(), meta.is_droppable());
            demand.sent.iter().any(|index| !metas[index].is_lossless() & needs_draw(&metas[index]))
        };
        // Iterates by port and queue instead of by frame: there are fewer of them.
        let deepest = |queue: usize| {
            demand
                .egresses
                .iter()
                .map(|egress| ports[egress].queues[queue].cells() + ports[egress].elsewhere(queue).cells)
                .max()
                .unwrap_or_default()
        };
        let slowest =
            |queue: usize| demand.egresses.iter().map(|egress| ports[egress].drains[queue]).min().unwrap_or_default();
        rule.admit_burst(request, self.lossy_pool(), draws, deepest, slowest)
    }

    /// Charges a frame from ingress port `port` to `egress` to its priority group. A lossy frame that its group refuses
    /// is still admitted within the reserve of its queue.
    #[inline]
    pub fn admit<P: Packet>(&mut self, port: usize, state: &mut Port, egress: usize, meta: &Meta) -> Admission {
        let (group, queue) = (usize::from(meta.desc.group()), meta.desc.queue());
        let cells = meta.desc.cells();
        let mut admission = if P::EMULATES && state.ledger.emulates() {
            self.set_kept();
            state.ledger.admit_emulated(group, cells, &mut self.pools)
        } else {
            state.ledger.admit(group, cells, &mut self.pools)
        };
        if let Admission::Refused(_) = admission {
            if meta.is_lossless() || !self.reserves.covers(egress, queue, cells) {
                return admission;
            }
            admission = state.ledger.admit_guaranteed(group, cells, &mut self.pools);
            if let Admission::Refused(_) = admission {
                return admission;
            }
        }
        state.admitted[group] += u64::from(cells.0);
        state.holding.insert(group);
        self.holding.insert(port);
        admission
    }

    /// The state to which [`Buffer::undo`] returns if the queue of a lossy frame refuses it.
    #[inline]
    pub fn before(&self, state: &Port, group: usize) -> Before {
        Before { group: state.ledger.group(group), pool_highest: self.pools.shared[0].used_highest() }
    }

    /// Undoes the admission of a frame of ingress port `state`, so that the next frame of the burst finds its cells.
    #[cold]
    pub fn undo(&mut self, state: &mut Port, desc: FrameDesc, before: Before) {
        let (_, group, cells) = desc.charge();
        state.ledger.undo(group, &before.group, before.pool_highest, &mut self.pools);
        state.admitted[group] -= u64::from(cells.0);
        if state.admitted[group] == state.released[group] {
            state.holding.remove(group);
        }
    }

    /// Releases the cells of a frame that will not be sent; its ingress port may belong to any lcore.
    pub fn uncharge(&mut self, desc: FrameDesc) {
        let (ingress, group, cells) = desc.charge();
        self.releases.release(ingress, group, cells);
    }
}

/// Creates the shared pools, lossy and lossless; Reverie has one for both.
fn shared_pools(spec: &SwitchSpec) -> [Arc<SharedPool>; 2] {
    let [lossy, lossless] = [spec.buffer.lossy_shared, spec.buffer.lossless_shared];
    if !spec.reverie {
        return [lossy, lossless].map(|size| SharedPool::with_room(size, spec.buffer.total));
    }
    assert!(lossy == lossless && spec.lcores == 1, "one pool, which one lcore uses");
    let pool = SharedPool::new(lossy);
    [pool.clone(), pool]
}
