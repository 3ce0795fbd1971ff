//! A burst admitted at once compared with the same burst frame by frame: equal states, to the cell and to the
//! watermark.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::reference::{Step, Switch, steps, switch};
use super::tests::{alpha, group, pools};
use super::*;
use crate::mmu::Threshold;

const PORTS: usize = 3;
const LARGEST: u32 = 40;

/// Frames of one burst: pairs of group and cells.
type Frames = Vec<(usize, u32)>;

fn one_by_one(ledger: &mut PortLedger, frames: &Frames, pools: &mut Pools) -> Vec<Admission> {
    frames.iter().map(|&(group, cells)| ledger.admit(group, Cells(cells), pools)).collect()
}

fn together(ledger: &mut PortLedger, frames: &Frames, pools: &mut Pools) -> bool {
    let (mut cells, mut groups) = ([Cells(0); CLASSES], ClassSet::EMPTY);
    for &(group, frame) in frames {
        cells[group] += Cells(frame);
        groups.insert(group);
    }
    ledger.admit_burst(&cells, groups, pools)
}

fn state(ledgers: &[PortLedger], pools: &Pools) -> String {
    let shared = pools.shared.each_ref().map(|pool| (pool.used(), pool.free(), pool.used_highest()));
    let headroom = (pools.headroom.used(), pools.headroom.highest());
    format!("{ledgers:?} {shared:?} {headroom:?}")
}

/// Bursts arrive at two switches; one admits frame by frame, the other at once if it can. Both release the same cells.
///
/// Returns the number of bursts that were admitted at once, and the number of these with frames in headroom.
fn the_same(switch: &Switch, steps: &[Step], bursts: &[(usize, Frames)]) -> Result<[usize; 2], TestCaseError> {
    let (mut one, mut one_pools) = (switch.ledgers(), switch.pools(1).remove(0));
    let (mut other, mut other_pools) = (switch.ledgers(), switch.pools(1).remove(0));
    let (mut bursts, mut admitted) = (bursts.iter(), [0; 2]);
    for step in steps {
        if let Some((port, frames)) = bursts.next() {
            let before = state(&other, &other_pools);
            if together(&mut other[*port], frames, &mut other_pools) {
                let xoff = one[*port].xoff();
                let admissions = one_by_one(&mut one[*port], frames, &mut one_pools);
                let is_admitted = |admission: &Admission| !matches!(admission, Admission::Refused(_));
                prop_assert!(admissions.iter().all(is_admitted), "{:?} of {:?}", admissions, frames);
                prop_assert_eq!(one[*port].xoff(), xoff, "no XOFF state changes");
                admitted[0] += 1;
                admitted[1] += usize::from(admissions.contains(&Admission::Headroom));
            } else {
                prop_assert_eq!(&state(&other, &other_pools), &before, "a refused burst changes nothing");
                one_by_one(&mut one[*port], frames, &mut one_pools);
                one_by_one(&mut other[*port], frames, &mut other_pools);
            }
        }
        match *step {
            Step::Depart { port, group, .. } => {
                let held = one[port].group(group).held();
                one[port].release(group, held, &mut one_pools);
                other[port].release(group, held, &mut other_pools);
            }
            Step::Poll => {
                one.iter_mut().for_each(|ledger| _ = ledger.reevaluate_xoff(&one_pools));
                other.iter_mut().for_each(|ledger| _ = ledger.reevaluate_xoff(&other_pools));
            }
            Step::Clear => one.iter_mut().chain(&mut other).for_each(PortLedger::clear_watermarks),
            Step::Arrive { .. } => {}
        }
        prop_assert_eq!(state(&one, &one_pools), state(&other, &other_pools));
    }
    Ok(admitted)
}

fn bursts() -> impl Strategy<Value = Vec<(usize, Frames)>> {
    let frames = prop::collection::vec((0..CLASSES, 1..=4_u32), 1..32);
    prop::collection::vec((0..PORTS, frames), 1..60)
}

/// Random switches of `policy`: some of their bursts must be admitted at once and some must not.
fn many(policy: HeadroomPolicy) {
    let mut runner = TestRunner::new(ProptestConfig { cases: 200, ..ProptestConfig::default() });
    let (admitted, offered) = (Cell::new([0; 2]), Cell::new(0));
    // Pools that have room for a burst.
    let roomy = |mut switch: Switch| {
        switch.sizes = switch.sizes.map(|size| 8 * size);
        switch
    };
    let strategy = (switch(policy, PORTS, 0..60).prop_map(roomy), steps(PORTS, LARGEST), bursts());
    let result = runner.run(&strategy, |(switch, steps, bursts)| {
        let [all, in_headroom] = the_same(&switch, &steps, &bursts)?;
        admitted.set([admitted.get()[0] + all, admitted.get()[1] + in_headroom]);
        offered.set(offered.get() + bursts.len().min(steps.len()));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let ([admitted, in_headroom], offered) = (admitted.get(), offered.get());
    assert!(admitted * 20 > offered && admitted * 20 < offered * 19, "{admitted} of {offered} together");
    let least = if policy == HeadroomPolicy::Dynamic { 0..=0 } else { offered / 200..=offered };
    assert!(least.contains(&in_headroom), "{in_headroom} of {offered} in headroom");
}

#[test]
fn admit_burst_equals_admit_with_independent_headroom() {
    many(HeadroomPolicy::Independent);
}

#[test]
fn admit_burst_equals_admit_with_a_headroom_pool() {
    many(HeadroomPolicy::SharedPool);
}

#[test]
fn admit_burst_equals_admit_with_dynamic_headroom() {
    many(HeadroomPolicy::Dynamic);
}

#[test]
fn a_burst_is_admitted_together_until_its_limit_is_near() {
    // Alpha 1 of 100 cells: frame by frame, up to 50 cells fit.
    let mut groups = [group(false, alpha(0), 0); CLASSES];
    groups[3] = group(true, alpha(0), 40);
    let profile = PortProfile::independent(groups);
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(100, 100, 0));
    assert!(together(&mut ledger, &vec![(3, 10), (0, 20), (3, 10)], &mut pools));
    assert_eq!((ledger.group(3).shared, ledger.group(0).shared), (Cells(20), Cells(20)));
    assert!(together(&mut ledger, &vec![(3, 30)], &mut pools), "50 of 100, and 50 are free then");
    assert!(!together(&mut ledger, &vec![(3, 1)], &mut pools));
    assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Headroom);
    assert!(together(&mut ledger, &vec![(0, 1)], &mut pools), "the other is not XOFF");
    assert!(together(&mut ledger, &vec![(3, 9), (0, 1), (3, 30)], &mut pools), "40 have room in headroom");
    assert_eq!((ledger.group(3).headroom, ledger.group(3).headroom_highest), (Cells(40), Cells(40)));
    assert!(!together(&mut ledger, &vec![(0, 1), (3, 1)], &mut pools), "headroom is full");
    ledger.release(3, Cells(40), &mut pools);
    assert!(!together(&mut ledger, &vec![(3, 1)], &mut pools), "nothing is in headroom, and it is XOFF");
}

/// With dynamic headroom a group turns XOFF while its port still takes cells of the pool.
#[test]
fn burst_of_a_group_at_xoff_uses_the_pool_up_to_the_limit_of_its_port() {
    let mut groups = [group(false, alpha(0), 0); CLASSES];
    groups[3] = group(true, alpha(0), 20);
    let groups = PortProfile::independent(groups);
    let profile = PortProfile { policy: HeadroomPolicy::Dynamic, insurance: Cells(10), ..groups };
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(100, 100, 0));
    (0..40).for_each(|_| assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Shared));
    assert!(!together(&mut ledger, &vec![(3, 1)], &mut pools), "41 cells, and XOFF is beyond 60 free less 20");
    assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Shared);
    assert_eq!((ledger.groups_xoff(), ledger.is_port_xoff()), (ClassSet::only(3), false));
    assert!(!together(&mut ledger, &vec![(3, 1), (3, 9)], &mut pools), "51 cells, and 49 are free then");
    assert!(together(&mut ledger, &vec![(3, 1), (3, 8)], &mut pools));
    assert_eq!((ledger.group(3).shared, ledger.insurance_used()), (Cells(50), Cells(0)));
    assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Headroom);
    assert!(!together(&mut ledger, &vec![(3, 1)], &mut pools), "the port is XOFF");
}

/// A frame that fits the reserve goes there even at XOFF, so a burst with it is not entirely in headroom.
#[test]
fn burst_with_a_frame_for_the_reserve_is_not_admitted_to_headroom() {
    let mut groups = [group(false, alpha(0), 0); CLASSES];
    groups[3] = GroupProfile { reserve: Cells(3), ..group(true, Threshold::Static(Cells(0)), 40) };
    let (mut ledger, mut pools) = (PortLedger::new(&PortProfile::independent(groups)), pools(100, 100, 0));
    assert_eq!(ledger.admit(3, Cells(2), &mut pools), Admission::Reserve);
    assert_eq!(ledger.admit(3, Cells(2), &mut pools), Admission::Headroom, "the reserve has one");
    assert!(!together(&mut ledger, &vec![(3, 1), (3, 2)], &mut pools));
    assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Reserve);
    assert!(together(&mut ledger, &vec![(3, 1), (3, 2)], &mut pools));
    assert_eq!(ledger.group(3).headroom, Cells(5));
}
