//! A burst admitted together, beside the same burst frame by frame: the same state to the cell and the watermark.

use proptest::prelude::*;

use super::reference::{Step, Switch, steps, switch};
use super::tests::{alpha, group, pools};
use super::*;

const PORTS: usize = 3;
const LARGEST: u32 = 40;

/// Frames of one burst: group and cells.
type Frames = Vec<(usize, u32)>;

fn one_by_one(ledger: &mut PortLedger, frames: &Frames, pools: &mut Pools) -> Vec<Admission> {
    frames.iter().map(|&(group, cells)| ledger.admit(group, Cells(cells), pools)).collect()
}

fn together(ledger: &mut PortLedger, frames: &Frames, pools: &mut Pools) -> bool {
    let (mut cells, mut groups) = ([0; CLASSES], 0);
    for &(group, frame) in frames {
        cells[group] += frame;
        groups |= 1 << group;
    }
    ledger.admit_all(&cells, groups, pools)
}

fn state(ledgers: &[PortLedger], pools: &Pools) -> String {
    let pools = pools.shared.each_ref().map(|pool| (pool.used(), pool.free(), pool.used_highest()));
    format!("{ledgers:?} {pools:?}")
}

/// Bursts arrive at two switches, which take them each in its way; what each holds leaves both.
fn the_same(switch: &Switch, steps: &[Step], bursts: &[(usize, Frames)]) -> Result<(), TestCaseError> {
    let (mut one, mut one_pools) = (switch.ledgers(), switch.pools(1).remove(0));
    let (mut other, mut other_pools) = (switch.ledgers(), switch.pools(1).remove(0));
    let mut bursts = bursts.iter();
    for step in steps {
        if let Some((port, frames)) = bursts.next() {
            let before = state(&other, &other_pools);
            if together(&mut other[*port], frames, &mut other_pools) {
                let admissions = one_by_one(&mut one[*port], frames, &mut one_pools);
                let is_plain = |admission: &Admission| {
                    matches!(admission, Admission::Reserve | Admission::PortReserve | Admission::Shared)
                };
                prop_assert!(admissions.iter().all(is_plain), "{:?} of {:?}", admissions, frames);
            } else {
                prop_assert_eq!(&state(&other, &other_pools), &before, "refused together, and yet something changed");
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
                one.iter_mut().for_each(|ledger| _ = ledger.judge(&one_pools));
                other.iter_mut().for_each(|ledger| _ = ledger.judge(&other_pools));
            }
            Step::Clear => one.iter_mut().chain(&mut other).for_each(PortLedger::clear_watermarks),
            Step::Arrive { .. } => {}
        }
        prop_assert_eq!(state(&one, &one_pools), state(&other, &other_pools));
    }
    Ok(())
}

fn bursts() -> impl Strategy<Value = Vec<(usize, Frames)>> {
    let frames = prop::collection::vec((0..CLASSES, 1..=LARGEST / 4), 1..32);
    prop::collection::vec((0..PORTS, frames), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn independent(switch in switch(HeadroomPolicy::Independent, PORTS, 0..60), steps in steps(PORTS, LARGEST), bursts in bursts()) {
        the_same(&switch, &steps, &bursts)?;
    }

    #[test]
    fn shared_pool(switch in switch(HeadroomPolicy::SharedPool, PORTS, 0..60), steps in steps(PORTS, LARGEST), bursts in bursts()) {
        the_same(&switch, &steps, &bursts)?;
    }

    #[test]
    fn dynamic(switch in switch(HeadroomPolicy::Dynamic, PORTS, 0..60), steps in steps(PORTS, LARGEST), bursts in bursts()) {
        the_same(&switch, &steps, &bursts)?;
    }
}

#[test]
fn a_burst_is_admitted_together_until_its_limit_is_near() {
    // Alpha 1 of 100 cells: frame by frame up to 50 fit.
    let mut groups = [group(false, alpha(0), 0); CLASSES];
    groups[3] = group(true, alpha(0), 40);
    let profile = PortProfile::independent(groups);
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(100, 100, 0));
    assert!(together(&mut ledger, &vec![(3, 10), (0, 20), (3, 10)], &mut pools));
    assert_eq!((ledger.group(3).shared, ledger.group(0).shared), (Cells(20), Cells(20)));
    assert!(together(&mut ledger, &vec![(3, 30)], &mut pools), "50 of 100, and 50 are free then");
    assert!(!together(&mut ledger, &vec![(3, 1)], &mut pools));
    assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Headroom);
    assert!(!together(&mut ledger, &vec![(0, 1), (3, 1)], &mut pools), "the group is XOFF");
    assert!(together(&mut ledger, &vec![(0, 1)], &mut pools), "the other is not");
}
