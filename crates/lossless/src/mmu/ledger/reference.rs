//! A naive reference of the rules in docs/buffer.md. Every cell of the switch is an entry in a list that names its
//! place, every sum is counted anew, and thresholds are fractions. Also random switches and traces for the tests.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::mmu::{BufferPlan, SharedPool, Threshold};
use crate::units::{Alpha, Bytes};

/// The place of one cell, in the order in which cells leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Headroom,
    Shared,
    PortReserve,
    Reserve,
}

#[derive(Debug, Clone)]
pub struct Reference {
    ports: Vec<PortProfile>,
    sizes: [i64; 2],
    headroom_size: i64,
    /// Per port and group, one entry for each cell.
    cells: Vec<[Vec<Place>; CLASSES]>,
    group_off: Vec<[bool; CLASSES]>,
    /// Cells of the last frame that was refused because the headroom pool was empty; reset at XON.
    refused: Vec<[i64; CLASSES]>,
    port_off: Vec<bool>,
}

/// A limit as a fraction: `cells` may be `times * free / 128 + fixed` at most.
#[derive(Clone, Copy)]
struct Limit {
    times: i64,
    fixed: i64,
}

impl Limit {
    fn of(threshold: Threshold) -> Self {
        match threshold {
            Threshold::Static(cells) => Self { times: 0, fixed: i64::from(cells.0) },
            Threshold::Dynamic(alpha) => Self { times: 1 << (7 + alpha.exponent()), fixed: 0 },
        }
    }

    fn allows(self, cells: i64, free: i64) -> bool {
        128 * cells <= self.times * free + 128 * self.fixed
    }
}

impl Reference {
    pub fn new(spec: &Switch) -> Self {
        let ports = spec.ports.len();
        Self {
            ports: spec.ports.clone(),
            sizes: spec.sizes.map(i64::from),
            headroom_size: i64::from(spec.headroom_size),
            cells: vec![Default::default(); ports],
            group_off: vec![[false; CLASSES]; ports],
            refused: vec![[0; CLASSES]; ports],
            port_off: vec![false; ports],
        }
    }

    pub fn count(&self, port: usize, group: usize, place: Place) -> i64 {
        self.cells[port][group].iter().filter(|&&cell| cell == place).count() as i64
    }

    /// Cells at `place` of a port's groups of one kind.
    pub fn count_kind(&self, port: usize, lossless: bool, place: Place) -> i64 {
        let of_kind = (0..CLASSES).filter(|&group| self.ports[port].groups[group].lossless == lossless);
        of_kind.map(|group| self.count(port, group, place)).sum()
    }

    pub fn free(&self, lossless: bool) -> i64 {
        let used = |port| self.count_kind(port, lossless, Place::Shared);
        self.sizes[usize::from(lossless)] - (0..self.ports.len()).map(used).sum::<i64>()
    }

    pub fn headroom_pool_used(&self) -> i64 {
        (0..self.ports.len()).map(|port| self.count_kind(port, true, Place::Headroom)).sum()
    }

    pub fn is_xoff(&self, port: usize, group: usize) -> bool {
        self.group_off[port][group] || self.port_off[port] && self.ports[port].groups[group].lossless
    }

    pub fn is_port_xoff(&self, port: usize) -> bool {
        self.port_off[port]
    }

    /// The place of each cell of a packet if it stayed out of the headroom.
    fn places(&self, port: usize, group: usize, cells: u32) -> Vec<Place> {
        let (profile, lossless) = (&self.ports[port], self.ports[port].groups[group].lossless);
        let mut own = self.count(port, group, Place::Reserve);
        let mut of_port = self.count_kind(port, lossless, Place::PortReserve);
        let mut place = || {
            if own < i64::from(profile.groups[group].reserve.0) {
                own += 1;
                Place::Reserve
            } else if of_port < i64::from(profile.reserve[usize::from(lossless)].0) {
                of_port += 1;
                Place::PortReserve
            } else {
                Place::Shared
            }
        };
        (0..cells).map(|_| place()).collect()
    }

    pub fn admit(&mut self, port: usize, group: usize, cells: u32, guaranteed: bool) -> Admission {
        let profile = self.ports[port].groups[group];
        let places = self.places(port, group, cells);
        let fresh = places.iter().filter(|&&place| place == Place::Shared).count() as i64;
        if fresh == 0 {
            let own = places.iter().all(|&place| place == Place::Reserve);
            self.cells[port][group].extend(places);
            return if own { Admission::Reserve } else { Admission::PortReserve };
        }
        let within = guaranteed || self.is_within(port, group, fresh);
        if within && fresh <= self.free(profile.lossless) {
            self.cells[port][group].extend(places);
            return Admission::Shared;
        }
        match profile.lossless {
            true => self.admit_to_headroom(port, group, cells),
            false if within => Admission::Refused(Refusal::PoolEmpty),
            false => Admission::Refused(Refusal::Threshold),
        }
    }

    /// Whether the group's share may grow by `fresh` cells. Pauses the group if Dynamic and Shared Headroom requires
    /// it.
    fn is_within(&mut self, port: usize, group: usize, fresh: i64) -> bool {
        let (switch, profile) = (self.ports[port].policy, self.ports[port].groups[group]);
        let free = self.free(profile.lossless);
        let share = self.count(port, group, Place::Shared) + fresh;
        if !profile.lossless || switch != HeadroomPolicy::Dynamic {
            let empty = self.count(port, group, Place::Headroom) == 0;
            return empty && Limit::of(profile.threshold).allows(share, free);
        }
        let pardoned = i64::from(profile.xon_floor.0) + i64::from(profile.xon_offset.0);
        let eta = i64::from(profile.headroom.0);
        if share > pardoned && !Limit::of(profile.threshold).allows(share + eta, free) {
            self.group_off[port][group] = true;
        }
        let total = self.count_kind(port, true, Place::Shared) + fresh;
        !self.port_off[port] && self.port_limit(port).allows(total, free)
    }

    fn port_limit(&self, port: usize) -> Limit {
        let lossless = self.ports[port].groups.iter().filter(|group| group.lossless);
        let limits: Vec<_> = lossless.map(|group| Limit::of(group.threshold)).collect();
        Limit { times: limits.iter().map(|l| l.times).sum(), fixed: limits.iter().map(|l| l.fixed).sum() }
    }

    fn admit_to_headroom(&mut self, port: usize, group: usize, cells: u32) -> Admission {
        let profile = &self.ports[port];
        let after = |held: i64| held + i64::from(cells);
        let own = after(self.count(port, group, Place::Headroom)) <= i64::from(profile.groups[group].headroom.0);
        let refusal = match profile.policy {
            HeadroomPolicy::Independent => (!own).then_some(Refusal::HeadroomFull),
            HeadroomPolicy::SharedPool if !own => Some(Refusal::HeadroomFull),
            HeadroomPolicy::SharedPool => {
                (after(self.headroom_pool_used()) > self.headroom_size).then_some(Refusal::HeadroomPoolEmpty)
            }
            HeadroomPolicy::Dynamic => {
                let insurance = after(self.count_kind(port, true, Place::Headroom));
                (insurance > i64::from(profile.insurance.0)).then_some(Refusal::HeadroomFull)
            }
        };
        match profile.policy {
            HeadroomPolicy::Dynamic => self.port_off[port] = true,
            _ => self.group_off[port][group] = true,
        }
        if let Some(refusal) = refusal {
            if refusal == Refusal::HeadroomPoolEmpty {
                self.refused[port][group] = i64::from(cells);
            }
            return Admission::Refused(refusal);
        }
        self.cells[port][group].extend((0..cells).map(|_| Place::Headroom));
        Admission::Headroom
    }

    pub fn release(&mut self, port: usize, group: usize, cells: u32) {
        let held = &mut self.cells[port][group];
        held.sort();
        held.drain(..cells as usize);
    }

    pub fn reevaluate_xoff(&mut self, port: usize) {
        let profile = self.ports[port];
        let lossless = || profile.groups.iter().filter(|group| group.lossless);
        let free = self.free(true);
        let total = self.count_kind(port, true, Place::Shared);
        let offset: i64 = lossless().map(|group| i64::from(group.xon_offset.0)).sum();
        let floor: i64 = lossless().map(|group| i64::from(group.xon_floor.0)).sum();
        let limit = self.port_limit(port);
        let reserves: i64 = (0..CLASSES)
            .filter(|&index| profile.groups[index].lossless)
            .map(|index| i64::from(profile.groups[index].reserve.0) - self.count(port, index, Place::Reserve))
            .sum();
        let idle = (0..CLASSES).all(|index| !profile.groups[index].lossless || self.cells[port][index].is_empty());
        let has_room = limit.allows(total + floor + offset - reserves, free);
        let below = idle || limit.allows(total + offset, free) || total <= floor && has_room;
        if self.count_kind(port, true, Place::Headroom) == 0 && below {
            self.port_off[port] = false;
        }
        for (index, group) in profile.groups.iter().enumerate() {
            let dynamic = profile.policy == HeadroomPolicy::Dynamic;
            let eta = if dynamic { i64::from(group.headroom.0) } else { 0 };
            let (offset, floor) = (i64::from(group.xon_offset.0), i64::from(group.xon_floor.0));
            let share = self.count(port, index, Place::Shared);
            let reserve = i64::from(group.reserve.0) - self.count(port, index, Place::Reserve);
            let limit = Limit::of(group.threshold);
            let has_room = dynamic || limit.allows(share + floor + offset - reserve, free);
            let below = limit.allows(share + eta + offset, free) || share <= floor && has_room;
            // The part of the refused frame beyond the free reserve must have room in the pool.
            let beyond = (self.refused[port][index] - reserve).max(0);
            let fits = beyond == 0 || beyond <= free && limit.allows(share + beyond, free);
            if self.count(port, index, Place::Headroom) == 0 && (below && fits || self.cells[port][index].is_empty()) {
                self.group_off[port][index] = false;
                self.refused[port][index] = 0;
            }
        }
    }
}

/// A random switch: its ports, pools (lossy, lossless) and headroom pool.
#[derive(Debug, Clone)]
pub struct Switch {
    pub ports: Vec<PortProfile>,
    pub sizes: [u32; 2],
    pub headroom_size: u32,
}

impl Switch {
    /// The leases of `lcores` lcores from the pools of this switch.
    pub fn pools(&self, lcores: usize) -> Vec<Pools> {
        // With room to grow.
        let shared = self.sizes.map(|size| SharedPool::with_room(Cells(size), Cells(10_000)));
        let headroom = ExactPool::with_room(Cells(self.headroom_size), Cells(10_000));
        let hands =
            || Pools { shared: shared.each_ref().map(|pool| Lease::new(pool.clone())), headroom: headroom.clone() };
        (0..lcores).map(|_| hands()).collect()
    }

    /// The sizes of the pools.
    pub fn plan(&self) -> BufferPlan {
        let [lossy_shared, lossless_shared] = self.sizes.map(Cells);
        let (cell, none) = (Bytes(208), Cells(0));
        let (headroom, policy) = (Cells(self.headroom_size), self.ports[0].policy);
        BufferPlan { cell, total: none, reserves: none, headroom, policy, lossless_shared, lossy_shared }
    }

    /// Cells of all parts of the buffer.
    pub fn total(&self) -> u64 {
        let own: u64 = self.ports.iter().map(PortProfile::own_cells).sum();
        own + self.sizes.map(u64::from).iter().sum::<u64>() + u64::from(self.headroom_size)
    }

    pub fn ledgers(&self) -> Vec<PortLedger> {
        self.ports.iter().map(PortLedger::new).collect()
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    /// `guaranteed`: if the frame is lossy and refused, its queue is below its reserve.
    Arrive { port: usize, group: usize, cells: u32, guaranteed: bool },
    /// One of the packets that the group holds leaves.
    Depart { port: usize, group: usize, which: prop::sample::Index },
    /// Re-evaluates each port.
    Poll,
    /// Clears the watermarks.
    Clear,
}

fn group(headroom: Range<u32>) -> impl Strategy<Value = GroupProfile> {
    let threshold = prop_oneof![
        (-7_i8..=3).prop_map(|n| Threshold::Dynamic(Alpha::from_exponent(n).unwrap())),
        (0_u32..100).prop_map(|cells| Threshold::Static(Cells(cells))),
    ];
    (prop::bool::weighted(0.7), 0_u32..12, threshold, 0_u32..10, 0_u32..10, headroom).prop_map(
        |(lossless, reserve, threshold, offset, floor, headroom)| GroupProfile {
            lossless,
            reserve: Cells(reserve),
            threshold,
            xon_offset: Cells(offset),
            xon_floor: Cells(floor),
            headroom: Cells(if lossless { headroom } else { 0 }),
        },
    )
}

fn port(policy: HeadroomPolicy, headroom: Range<u32>) -> impl Strategy<Value = PortProfile> {
    let groups = prop::array::uniform8(group(headroom.clone()));
    (groups, prop::array::uniform2(0_u32..20), headroom).prop_map(move |(groups, reserve, insurance)| PortProfile {
        groups,
        reserve: reserve.map(Cells),
        policy,
        insurance: Cells(if policy == HeadroomPolicy::Dynamic { insurance } else { 0 }),
    })
}

/// Switches of this policy, with etas and insurance in the range `headroom`.
pub fn switch(policy: HeadroomPolicy, ports: usize, headroom: Range<u32>) -> impl Strategy<Value = Switch> {
    (prop::collection::vec(port(policy, headroom), ports), prop::array::uniform2(0_u32..300), 0_u32..120)
        .prop_map(|(ports, sizes, headroom_size)| Switch { ports, sizes, headroom_size })
}

/// Traces of packets of at most `most` cells.
pub fn steps(ports: usize, most: u32) -> impl Strategy<Value = Vec<Step>> {
    let cells = prop_oneof![4 => 1_u32..6, 1 => 1..=most];
    let step = prop_oneof![
        12 => (0..ports, 0..CLASSES, cells, any::<bool>())
            .prop_map(|(port, group, cells, guaranteed)| Step::Arrive { port, group, cells, guaranteed }),
        7 => (0..ports, 0..CLASSES, any::<prop::sample::Index>())
            .prop_map(|(port, group, which)| Step::Depart { port, group, which }),
        3 => Just(Step::Poll),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 1..400)
}
