//! The ledger against the reference, over whole traces of many ports and classes, and single rules by hand.

use proptest::prelude::*;

use super::reference::{Place, Reference, Step, Switch, steps, switch};
use super::*;
use crate::mmu::{SharedPool, Threshold};
use crate::units::Alpha;

const PORTS: usize = 3;
const LARGEST: u32 = 40;

/// A switch on one lcore, with its reference and the packets that it holds.
struct World {
    switch: Switch,
    ledgers: Vec<PortLedger>,
    pools: Pools,
    reference: Reference,
    held: Vec<[Vec<u32>; CLASSES]>,
    /// Watermarks since the last `Clear`: per group the cells used, shared and in headroom, and per port the insurance.
    highest: Vec<([[i64; 3]; CLASSES], i64)>,
}

impl World {
    fn new(switch: &Switch) -> Self {
        let ports = switch.ports.len();
        Self {
            ledgers: switch.ledgers(),
            pools: switch.pools(1).remove(0),
            reference: Reference::new(switch),
            held: vec![Default::default(); ports],
            highest: vec![Default::default(); ports],
            switch: switch.clone(),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Arrive { port, group, cells, guaranteed } => self.arrive(port, group, cells, guaranteed)?,
            Step::Depart { port, group, which } => self.depart(port, group, which),
            Step::Poll => self.poll()?,
            Step::Clear => {
                self.ledgers.iter_mut().for_each(PortLedger::clear_watermarks);
                self.highest.fill(Default::default());
            }
        }
        self.check()
    }

    fn arrive(&mut self, port: usize, group: usize, cells: u32, guaranteed: bool) -> Result<(), TestCaseError> {
        let lossless = self.switch.ports[port].groups[group].lossless;
        let guaranteed = guaranteed && !lossless;
        let ledger = &mut self.ledgers[port];
        let (before, was_off) = (ledger.group(group), ledger.xoff());
        let mut admission = ledger.admit(group, Cells(cells), &mut self.pools);
        let mut expected = self.reference.admit(port, group, cells, false);
        prop_assert_eq!(admission, expected);
        if guaranteed && matches!(admission, Admission::Refused(_)) {
            admission = ledger.admit_guaranteed(group, Cells(cells), &mut self.pools);
            expected = self.reference.admit(port, group, cells, true);
            prop_assert_eq!(admission, expected);
        }
        if !matches!(admission, Admission::Refused(_)) {
            self.held[port][group].push(cells);
        }
        let policy = self.switch.ports[port].policy;
        if lossless && matches!(admission, Admission::Headroom | Admission::Refused(_)) {
            prop_assert!(ledger.xoff().contains(group), "headroom and drops pause");
            prop_assert!(!admission.is_guaranteed());
        }
        if policy != HeadroomPolicy::Dynamic {
            let others = !ClassSet::only(group);
            prop_assert_eq!(ledger.xoff() & others, was_off & others, "no other group is paused");
        }
        if policy == HeadroomPolicy::Independent && admission == Admission::Refused(Refusal::HeadroomFull) {
            let eta = self.switch.ports[port].groups[group].headroom.0;
            prop_assert!(before.headroom.0 + cells > eta, "its headroom was spent by another");
        }
        Ok(())
    }

    fn depart(&mut self, port: usize, group: usize, which: prop::sample::Index) {
        let held = &mut self.held[port][group];
        if !held.is_empty() {
            let cells = held.swap_remove(which.index(held.len()));
            self.ledgers[port].release(group, Cells(cells), &mut self.pools);
            self.reference.release(port, group, cells);
        }
    }

    fn poll(&mut self) -> Result<(), TestCaseError> {
        for port in 0..self.ledgers.len() {
            let before = self.ledgers[port].xoff();
            let changed = self.ledgers[port].reevaluate_xoff(&self.pools);
            prop_assert_eq!(changed, self.ledgers[port].xoff() != before);
            self.reference.reevaluate_xoff(port);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        for port in 0..self.ledgers.len() {
            for group in 0..CLASSES {
                self.check_group(port, group)?;
            }
            self.check_port(port)?;
        }
        for kind in 0..2 {
            let used: u32 = self.ledgers.iter().map(|ledger| ledger.shared()[kind].0).sum();
            let (lease, size) = (&self.pools.shared[kind], self.switch.sizes[kind]);
            prop_assert_eq!(lease.used().0, used, "the pool holds what its groups hold");
            prop_assert!(used <= size, "pool limit");
            prop_assert_eq!(i64::from(lease.free().0), self.reference.free(kind == LOSSLESS));
        }
        let pooled = self.switch.ports[0].policy == HeadroomPolicy::SharedPool;
        let expected = if pooled { self.reference.headroom_pool_used() } else { 0 };
        prop_assert_eq!(i64::from(self.pools.headroom.used().0), expected);
        prop_assert!(self.pools.headroom.highest() <= self.pools.headroom.size());
        Ok(())
    }

    fn check_group(&mut self, port: usize, group: usize) -> Result<(), TestCaseError> {
        let (ledger, profile) = (&self.ledgers[port], &self.switch.ports[port].groups[group]);
        let state = ledger.group(group);
        let places = [Place::Reserve, Place::PortReserve, Place::Shared, Place::Headroom];
        let expected = places.map(|place| self.reference.count(port, group, place));
        let counts = [state.reserve, state.port_reserve, state.shared, state.headroom];
        prop_assert_eq!(counts.map(|cells| i64::from(cells.0)), expected, "port {} group {}", port, group);
        prop_assert_eq!(state.held().0, self.held[port][group].iter().sum::<u32>(), "conservation");
        prop_assert!(state.reserve <= profile.reserve);
        if self.switch.ports[port].policy != HeadroomPolicy::Dynamic {
            prop_assert!(state.headroom <= profile.headroom, "headroom limit");
        }
        let xoff = ledger.xoff().contains(group);
        prop_assert_eq!(xoff, self.reference.is_xoff(port, group));
        prop_assert!(
            profile.lossless || !xoff && state.headroom.0 == 0,
            "a lossy group neither pauses nor has headroom"
        );

        let highest = &mut self.highest[port].0[group];
        let now = [expected[0] + expected[1] + expected[2], expected[2], expected[3]];
        *highest = std::array::from_fn(|index| highest[index].max(now[index]));
        let watermarks = [state.used_highest, state.shared_highest, state.headroom_highest];
        prop_assert_eq!(watermarks.map(|cells| i64::from(cells.0)), *highest);
        Ok(())
    }

    fn check_port(&mut self, port: usize) -> Result<(), TestCaseError> {
        let (ledger, profile) = (&self.ledgers[port], &self.switch.ports[port]);
        for kind in 0..2 {
            let used = i64::from(ledger.reserve_used()[kind].0);
            prop_assert_eq!(used, self.reference.count_kind(port, kind == LOSSLESS, Place::PortReserve));
            prop_assert!(ledger.reserve_used()[kind] <= profile.reserve[kind], "port reserve");
            let shared = self.reference.count_kind(port, kind == LOSSLESS, Place::Shared);
            prop_assert_eq!(i64::from(ledger.shared()[kind].0), shared);
        }
        prop_assert_eq!(ledger.is_port_xoff(), self.reference.is_port_xoff(port));
        let dynamic = profile.policy == HeadroomPolicy::Dynamic;
        let insurance = if dynamic { self.reference.count_kind(port, true, Place::Headroom) } else { 0 };
        prop_assert_eq!(i64::from(ledger.insurance_used().0), insurance);
        prop_assert!(ledger.insurance_used() <= profile.insurance, "insurance");
        prop_assert!(dynamic || !ledger.is_port_xoff());
        let highest = &mut self.highest[port].1;
        *highest = insurance.max(*highest);
        prop_assert_eq!(i64::from(ledger.insurance_highest().0), *highest);
        Ok(())
    }

    /// Releases all packets: at any thresholds, no group stays paused and no cell is missing.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        for port in 0..self.ledgers.len() {
            for group in 0..CLASSES {
                for cells in std::mem::take(&mut self.held[port][group]) {
                    self.ledgers[port].release(group, Cells(cells), &mut self.pools);
                }
                prop_assert_eq!(self.ledgers[port].group(group).held(), Cells(0));
            }
        }
        for ledger in &mut self.ledgers {
            ledger.reevaluate_xoff(&self.pools);
            prop_assert_eq!((ledger.xoff(), ledger.is_port_xoff()), (ClassSet::EMPTY, false), "no endless pause");
            prop_assert_eq!(ledger.reserve_used(), [Cells(0); 2]);
        }
        prop_assert_eq!(self.pools.headroom.used(), Cells(0));
        for (lease, size) in self.pools.shared.iter_mut().zip(self.switch.sizes) {
            lease.flush();
            prop_assert_eq!((lease.used(), lease.free()), (Cells(0), Cells(size)));
        }
        Ok(())
    }
}

fn whole_trace(switch: &Switch, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new(switch);
    for step in steps {
        world.step(step)?;
    }
    world.drain()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn independent_headroom_agrees_with_the_reference(
        switch in switch(HeadroomPolicy::Independent, PORTS, 0..60),
        steps in steps(PORTS, LARGEST),
    ) {
        whole_trace(&switch, &steps)?;
    }

    #[test]
    fn shared_pool_agrees_with_the_reference(
        switch in switch(HeadroomPolicy::SharedPool, PORTS, 0..60),
        steps in steps(PORTS, LARGEST),
    ) {
        whole_trace(&switch, &steps)?;
    }

    #[test]
    fn dynamic_headroom_agrees_with_the_reference(
        switch in switch(HeadroomPolicy::Dynamic, PORTS, 0..60),
        steps in steps(PORTS, LARGEST),
    ) {
        whole_trace(&switch, &steps)?;
    }
}

/// A group without a reserve or hysteresis.
pub(super) fn group(lossless: bool, threshold: Threshold, headroom: u32) -> GroupProfile {
    GroupProfile {
        lossless,
        reserve: Cells(0),
        threshold,
        xon_offset: Cells(0),
        xon_floor: Cells(0),
        headroom: Cells(headroom),
    }
}

pub(super) fn alpha(exponent: i8) -> Threshold {
    Threshold::Dynamic(Alpha::from_exponent(exponent).unwrap())
}

pub(super) fn pools(lossy: u32, lossless: u32, headroom: u32) -> Pools {
    let shared = [lossy, lossless].map(|size| Lease::new(SharedPool::new(Cells(size))));
    Pools { shared, headroom: ExactPool::new(Cells(headroom)) }
}

/// The admissions of `count` packets of one cell each.
fn fill(ledger: &mut PortLedger, group: usize, count: usize, pools: &mut Pools) -> Vec<Admission> {
    (0..count).map(|_| ledger.admit(group, Cells(1), pools)).collect()
}

#[test]
fn xoff_exactly_beyond_reserve_and_shared() {
    let group = GroupProfile { reserve: Cells(10), ..group(true, Threshold::Static(Cells(20)), 5) };
    let profile = PortProfile { reserve: [Cells(0), Cells(3)], ..PortProfile::independent([group; CLASSES]) };
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 1000, 0));
    assert_eq!(fill(&mut ledger, 3, 10, &mut pools), [Admission::Reserve; 10]);
    assert_eq!(fill(&mut ledger, 3, 3, &mut pools), [Admission::PortReserve; 3]);
    assert_eq!(fill(&mut ledger, 3, 20, &mut pools), [Admission::Shared; 20]);
    assert_eq!(ledger.xoff(), ClassSet::EMPTY);
    assert_eq!(fill(&mut ledger, 3, 1, &mut pools), [Admission::Headroom]);
    assert_eq!(ledger.xoff(), ClassSet::only(3));
    assert_eq!(fill(&mut ledger, 3, 4, &mut pools), [Admission::Headroom; 4]);
    assert_eq!(fill(&mut ledger, 3, 1, &mut pools), [Admission::Refused(Refusal::HeadroomFull)]);
    let state = ledger.group(3);
    assert_eq!((state.used(), state.headroom, state.held()), (Cells(33), Cells(5), Cells(38)));
    // The group's own reserve and headroom are not available to another group; the port's reserve was.
    assert_eq!(fill(&mut ledger, 4, 10, &mut pools), [Admission::Reserve; 10]);
    assert_eq!(fill(&mut ledger, 4, 1, &mut pools), [Admission::Shared]);
}

#[test]
fn packet_is_split_over_reserves_and_shared_cells() {
    let group = GroupProfile { reserve: Cells(4), ..group(false, Threshold::Static(Cells(2)), 0) };
    let profile = PortProfile { reserve: [Cells(3), Cells(9)], ..PortProfile::independent([group; CLASSES]) };
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(100, 100, 0));
    assert_eq!(ledger.admit(0, Cells(3), &mut pools), Admission::Reserve);
    assert_eq!(ledger.admit(0, Cells(3), &mut pools), Admission::PortReserve);
    assert_eq!(ledger.admit(0, Cells(3), &mut pools), Admission::Shared);
    let state = ledger.group(0);
    assert_eq!((state.reserve, state.port_reserve, state.shared), (Cells(4), Cells(3), Cells(2)));
    assert_eq!(pools.shared[0].used(), Cells(2));
    // The shared cells leave first, then the port's reserve.
    ledger.release(0, Cells(4), &mut pools);
    let state = ledger.group(0);
    assert_eq!((state.reserve, state.port_reserve, state.shared), (Cells(4), Cells(1), Cells(0)));
}

#[test]
fn a_queues_guarantee_overrules_the_threshold_and_not_the_pool() {
    let profile = PortProfile::independent([group(false, Threshold::Static(Cells(2)), 0); CLASSES]);
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(5, 0, 0));
    assert_eq!(ledger.admit(0, Cells(3), &mut pools), Admission::Refused(Refusal::Threshold));
    assert_eq!(ledger.admit_guaranteed(0, Cells(3), &mut pools), Admission::Shared);
    assert_eq!(ledger.admit_guaranteed(0, Cells(3), &mut pools), Admission::Refused(Refusal::PoolEmpty));
    assert_eq!((ledger.group(0).shared, ledger.xoff()), (Cells(3), ClassSet::EMPTY));
}

#[test]
fn the_headroom_pool_has_its_own_reason_to_refuse() {
    let profile = PortProfile {
        policy: HeadroomPolicy::SharedPool,
        ..PortProfile::independent([group(true, Threshold::Static(Cells(0)), 6); CLASSES])
    };
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 0, 10));
    assert_eq!(ledger.admit(0, Cells(6), &mut pools), Admission::Headroom);
    assert_eq!(ledger.admit(0, Cells(1), &mut pools), Admission::Refused(Refusal::HeadroomFull));
    assert_eq!(ledger.admit(1, Cells(5), &mut pools), Admission::Refused(Refusal::HeadroomPoolEmpty));
    assert_eq!(ledger.xoff(), ClassSet::from_bits(0b11), "a drop pauses too");
    assert_eq!(ledger.admit(1, Cells(4), &mut pools), Admission::Headroom);
    assert_eq!((pools.headroom.used(), pools.headroom.highest()), (Cells(10), Cells(10)));
}

/// A fault of known models: a packet larger than the free headroom is dropped and never causes a pause.
#[test]
fn drop_in_a_lossless_group_turns_it_xoff() {
    for policy in [HeadroomPolicy::Independent, HeadroomPolicy::SharedPool, HeadroomPolicy::Dynamic] {
        let groups = PortProfile::independent([group(true, alpha(0), 3); CLASSES]);
        let profile = PortProfile { policy, insurance: Cells(3), ..groups };
        let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 0, 3));
        assert_eq!(ledger.admit(0, Cells(4), &mut pools), Admission::Refused(Refusal::HeadroomFull));
        assert!(ledger.xoff().contains(0));
    }
}

#[test]
#[should_panic(expected = "released more cells than it held")]
fn release_beyond_the_held_cells_panics() {
    let profile = PortProfile::independent([group(true, alpha(0), 3); CLASSES]);
    PortLedger::new(&profile).release(0, Cells(1), &mut pools(0, 10, 0));
}
