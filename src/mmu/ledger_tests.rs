//! The ledger against a plain reference, over random arrivals and departures of many groups on two pools.

use proptest::prelude::*;

use super::*;
use crate::mmu::{SharedPool, Threshold};
use crate::units::Alpha;

const GROUPS: usize = 6;

/// The rules of docs/architecture.md once more, in the plainest words: three counts a group, sums taken afresh, the
/// threshold as a fraction instead of a shift.
#[derive(Debug, Clone)]
struct Reference {
    profiles: Vec<GroupProfile>,
    pool_size: [i64; 2],
    reserve: Vec<i64>,
    shared: Vec<i64>,
    headroom: Vec<i64>,
    off: Vec<bool>,
}

impl Reference {
    fn new(profiles: &[GroupProfile], pool_size: [i64; 2]) -> Self {
        let zeros = vec![0; profiles.len()];
        Self {
            profiles: profiles.to_vec(),
            pool_size,
            reserve: zeros.clone(),
            shared: zeros.clone(),
            headroom: zeros,
            off: vec![false; profiles.len()],
        }
    }

    fn free(&self, lossless: bool) -> i64 {
        let of_pool = (0..self.profiles.len()).filter(|&g| self.profiles[g].lossless == lossless);
        self.pool_size[usize::from(lossless)] - of_pool.map(|g| self.shared[g]).sum::<i64>()
    }

    /// Whether a share of `share` cells is within the threshold.
    fn within(&self, group: usize, share: i64) -> bool {
        match self.profiles[group].threshold {
            Threshold::Static(cells) => share <= i64::from(cells.0),
            Threshold::Dynamic(alpha) => {
                let free = self.free(self.profiles[group].lossless);
                let (times, over) = match alpha.exponent() {
                    n if n >= 0 => (1 << n, 1),
                    n => (1, 1 << -n),
                };
                share * over <= times * free
            }
        }
    }

    fn admit(&mut self, group: usize, cells: i64) -> Admission {
        let profile = self.profiles[group];
        let held = self.reserve[group] + self.shared[group];
        let guarantee = i64::from(profile.reserve.0);
        if held + cells <= guarantee {
            self.reserve[group] += cells;
            return Admission::Reserve;
        }
        let into_reserve = (guarantee - held).max(0);
        let into_shared = cells - into_reserve;
        let within = self.headroom[group] == 0 && self.within(group, self.shared[group] + into_shared);
        if within && self.free(profile.lossless) >= into_shared {
            self.reserve[group] += into_reserve;
            self.shared[group] += into_shared;
            return Admission::Shared;
        }
        if !profile.lossless {
            return Admission::Refused(if within { Refusal::PoolEmpty } else { Refusal::Threshold });
        }
        self.off[group] = true;
        if self.headroom[group] + cells > i64::from(profile.headroom.0) {
            return Admission::Refused(Refusal::HeadroomFull);
        }
        self.headroom[group] += cells;
        Admission::Headroom
    }

    fn release(&mut self, group: usize, mut cells: i64) {
        for place in [&mut self.headroom[group], &mut self.shared[group], &mut self.reserve[group]] {
            let taken = cells.min(*place);
            *place -= taken;
            cells -= taken;
        }
        assert_eq!(cells, 0);
    }

    fn judge(&mut self, group: usize) -> bool {
        let profile = self.profiles[group];
        let below_threshold = self.within(group, self.shared[group] + i64::from(profile.xon_offset.0));
        let below_floor = self.shared[group] <= i64::from(profile.xon_floor.0);
        let empty = self.shared[group] == 0;
        let resume = self.off[group] && self.headroom[group] == 0 && (below_threshold || below_floor || empty);
        if resume {
            self.off[group] = false;
        }
        resume
    }
}

#[derive(Debug, Clone)]
enum Step {
    Arrive { group: usize, cells: u32 },
    Depart { group: usize },
    Poll,
}

fn profile() -> impl Strategy<Value = GroupProfile> {
    let threshold = prop_oneof![
        (-7_i8..=3).prop_map(|n| Threshold::Dynamic(Alpha::from_exponent(n).unwrap())),
        (0_u32..200).prop_map(|cells| Threshold::Static(Cells(cells))),
    ];
    (any::<bool>(), 0_u32..20, threshold, 0_u32..10, 0_u32..10, 0_u32..60).prop_map(
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

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..GROUPS, 1_u32..9).prop_map(|(group, cells)| Step::Arrive { group, cells }),
        4 => (0..GROUPS).prop_map(|group| Step::Depart { group }),
        1 => Just(Step::Poll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_does_what_the_reference_does(
        profiles in prop::collection::vec(profile(), GROUPS),
        sizes in prop::array::uniform2(0_u32..300),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let pools = sizes.map(|size| SharedPool::new(Cells(size)));
        let mut leases = [Lease::new(pools[0].clone()), Lease::new(pools[1].clone())];
        let mut ledgers: Vec<_> = profiles.iter().map(|&profile| Ledger::new(profile)).collect();
        let mut reference = Reference::new(&profiles, sizes.map(i64::from));
        let mut held: Vec<Vec<u32>> = vec![Vec::new(); GROUPS];
        for step in steps {
            match step {
                Step::Arrive { group, cells } => {
                    let lease = &mut leases[usize::from(profiles[group].lossless)];
                    let was_off = ledgers[group].is_xoff();
                    let admission = ledgers[group].admit(Cells(cells), lease);
                    prop_assert_eq!(admission, reference.admit(group, i64::from(cells)));
                    match admission {
                        Admission::Refused(_) => {}
                        _ => held[group].push(cells),
                    }
                    // The state machine: only headroom and refusals of a lossless group turn it off, nothing here on.
                    let pauses = matches!(admission, Admission::Headroom | Admission::Refused(_));
                    prop_assert_eq!(ledgers[group].is_xoff(), was_off || profiles[group].lossless && pauses);
                }
                Step::Depart { group } => {
                    if let Some(cells) = held[group].pop() {
                        ledgers[group].release(Cells(cells), &mut leases[usize::from(profiles[group].lossless)]);
                        reference.release(group, i64::from(cells));
                    }
                }
                Step::Poll => {
                    for group in 0..GROUPS {
                        let free = leases[usize::from(profiles[group].lossless)].free();
                        let resumed = ledgers[group].judge(free) == Judgement::Resume;
                        prop_assert_eq!(resumed, reference.judge(group));
                    }
                }
            }
            let mut used = [0; 2];
            for group in 0..GROUPS {
                let ledger = &ledgers[group];
                let cells: u32 = held[group].iter().sum();
                prop_assert_eq!(ledger.used().0 + ledger.headroom().0, cells, "conservation");
                prop_assert_eq!(i64::from(ledger.shared().0), reference.shared[group]);
                prop_assert_eq!(i64::from(ledger.headroom().0), reference.headroom[group]);
                prop_assert_eq!(ledger.is_xoff(), reference.off[group]);
                prop_assert!(ledger.headroom() <= profiles[group].headroom, "headroom limit");
                prop_assert!(profiles[group].lossless || !ledger.is_xoff(), "a lossy group never pauses");
                used[usize::from(profiles[group].lossless)] += ledger.shared().0;
            }
            for kind in 0..2 {
                prop_assert_eq!(leases[kind].used().0, used[kind], "the pool holds what its groups hold");
                prop_assert!(used[kind] <= sizes[kind], "pool limit");
                prop_assert_eq!(leases[kind].free().0, sizes[kind] - used[kind]);
            }
        }
        for group in 0..GROUPS {
            for cells in held[group].drain(..) {
                ledgers[group].release(Cells(cells), &mut leases[usize::from(profiles[group].lossless)]);
            }
            // Reserve or not, whatever the threshold: an empty group goes on.
            let free = leases[usize::from(profiles[group].lossless)].free();
            let _ = ledgers[group].judge(free);
            prop_assert!(!ledgers[group].is_xoff() && ledgers[group].used().0 == 0);
        }
        for (lease, pool) in leases.iter_mut().zip(&pools) {
            lease.flush();
            prop_assert_eq!(pool.leased(), Cells(0));
        }
    }
}

fn lossless(alpha: i8, headroom: u32) -> GroupProfile {
    GroupProfile {
        lossless: true,
        reserve: Cells(0),
        threshold: Threshold::Dynamic(Alpha::from_exponent(alpha).unwrap()),
        xon_offset: Cells(0),
        xon_floor: Cells(0),
        headroom: Cells(headroom),
    }
}

/// Choudhury & Hahne 1998: n saturated queues get alpha*B/(1+alpha*n) each, and B/(1+alpha*n) stays free.
#[test]
fn saturated_groups_share_as_the_theory_says_to_the_cell() {
    for (alpha, groups, size) in [(-1, 4, 1200), (0, 1, 1000), (0, 3, 4000), (1, 2, 5000), (3, 4, 33_000), (-3, 8, 800)]
    {
        let pool = SharedPool::new(Cells(size));
        let mut lease = Lease::new(pool);
        let mut ledgers = vec![Ledger::new(lossless(alpha, 0)); groups as usize];
        let mut admitted = true;
        while std::mem::take(&mut admitted) {
            for ledger in &mut ledgers {
                admitted |= ledger.admit(Cells(1), &mut lease) == Admission::Shared;
            }
        }
        let factor = 2_f64.powi(alpha.into());
        let each = factor * f64::from(size) / (1.0 + factor * f64::from(groups));
        for ledger in &ledgers {
            assert_eq!(f64::from(ledger.shared().0), each, "alpha 2^{alpha}, {groups} groups of {size}");
        }
        assert_eq!(f64::from(lease.free().0), f64::from(size) / (1.0 + factor * f64::from(groups)));
    }
}

#[test]
fn xoff_exactly_beyond_reserve_and_shared() {
    let profile = GroupProfile { reserve: Cells(10), threshold: Threshold::Static(Cells(20)), ..lossless(0, 5) };
    let mut lease = Lease::new(SharedPool::new(Cells(1000)));
    let mut ledger = Ledger::new(profile);
    for cell in 1..=30 {
        let place = if cell <= 10 { Admission::Reserve } else { Admission::Shared };
        assert_eq!(ledger.admit(Cells(1), &mut lease), place);
        assert!(!ledger.is_xoff());
    }
    for _ in 0..5 {
        assert_eq!(ledger.admit(Cells(1), &mut lease), Admission::Headroom);
        assert!(ledger.is_xoff());
    }
    assert_eq!(ledger.admit(Cells(1), &mut lease), Admission::Refused(Refusal::HeadroomFull));
    assert_eq!((ledger.used(), ledger.headroom()), (Cells(30), Cells(5)));
}

/// The fault of known models: a packet larger than what is left of the headroom dropped without ever pausing.
#[test]
fn a_drop_pauses_too() {
    let mut lease = Lease::new(SharedPool::new(Cells(0)));
    let mut ledger = Ledger::new(lossless(0, 3));
    assert_eq!(ledger.admit(Cells(4), &mut lease), Admission::Refused(Refusal::HeadroomFull));
    assert!(ledger.is_xoff());
}

#[test]
#[should_panic(expected = "released more cells than it held")]
fn releasing_what_is_not_held_is_a_bug_seen() {
    let mut lease = Lease::new(SharedPool::new(Cells(10)));
    Ledger::new(lossless(0, 3)).release(Cells(1), &mut lease);
}
