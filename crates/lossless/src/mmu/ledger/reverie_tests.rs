//! Lossless groups that decide as Reverie: cases worked out by hand, and random traces against a naive model.

use std::sync::Arc;

use proptest::prelude::*;

use super::tests::alpha;
use super::*;
use crate::mmu::{AbmSpec, SharedPool, Threshold};
use crate::units::Bytes;

const CELL: Bytes = Bytes(208);

fn group(lossless: bool, threshold: Threshold, reserve: u32) -> GroupProfile {
    GroupProfile {
        lossless,
        reserve: Cells(reserve),
        threshold,
        xon_offset: Cells(10),
        xon_floor: Cells(4),
        headroom: Cells(if lossless { 200 } else { 0 }),
    }
}

/// Ledgers of a switch with one pool.
struct Bed {
    ledgers: Vec<PortLedger>,
    pools: Pools,
    groups: Arc<ReverieGroups>,
}

impl Bed {
    fn new(ports: usize, profile: &PortProfile, size: u32, congested: u64) -> Self {
        let spec = AbmSpec { congested: Bytes(congested), ..AbmSpec::USUAL };
        let groups = ReverieGroups::new(spec, CELL);
        let pool = SharedPool::new(Cells(size));
        let shared = [Lease::exact(pool.clone()), Lease::exact(pool)];
        let mut ledgers = vec![PortLedger::new(profile); ports];
        ledgers.iter_mut().for_each(|ledger| ledger.follow_reverie(groups.clone()));
        Self { ledgers, pools: Pools { shared, headroom: ExactPool::new(Cells(0)) }, groups }
    }

    fn admit(&mut self, port: usize, group: usize, cells: u32) -> Admission {
        self.ledgers[port].admit_emulated(group, Cells(cells), &mut self.pools)
    }

    fn depart(&mut self, port: usize, group: usize, cells: u32, frames: u32) {
        self.ledgers[port].depart(group, Cells(cells), frames, &mut self.pools);
    }

    fn poll(&mut self, port: usize) -> bool {
        self.ledgers[port].reevaluate_xoff(&self.pools)
    }

    fn filtered(&self, port: usize, group: usize) -> u32 {
        self.ledgers[port].filtered(group).expect("a filtered group").0.0
    }

    /// Lets the filter of a group rise to its share.
    fn settle(&mut self, port: usize, group: usize) {
        for _ in 0..3_000 {
            assert_eq!(self.admit(port, group, 1), Admission::Shared);
            self.depart(port, group, 1, 1);
        }
    }
}

/// All groups are lossless with alpha 1, and without a reserve.
fn lossless() -> PortProfile {
    PortProfile::independent([group(true, alpha(0), 0); CLASSES])
}

/// Dynamic Threshold would pause the group at 500 of 1,000 cells. The filter follows 1/128 of the share per frame.
#[test]
fn burst_fills_the_whole_pool_before_xoff_and_xon_waits_for_the_filtered_share() {
    let mut it = Bed::new(1, &lossless(), 1_000, 20 << 10);
    for frame in 0..100 {
        assert_eq!(it.admit(0, 3, 10), Admission::Shared, "frame {frame}");
    }
    assert!(it.ledgers[0].xoff().is_empty());
    assert_eq!(it.admit(0, 3, 10), Admission::Headroom, "the pool has no cell");
    assert!(it.ledgers[0].xoff().contains(3));
    // The first frame frees the headroom. Then 10 cells are freed per frame, and the filter rises by less.
    for (frame, filtered) in [7, 15, 23, 30, 37, 44, 51].into_iter().enumerate() {
        it.depart(0, 3, 10, 1);
        assert_eq!(it.filtered(0, 3), filtered);
        assert!(!it.poll(0), "{filtered} cells and an offset of 10 exceed {} free", 10 * frame);
    }
    it.depart(0, 3, 10, 1);
    assert_eq!(it.filtered(0, 3), 58);
    assert!(it.poll(0) && it.ledgers[0].xoff().is_empty(), "68 of 70 cells");
}

/// Both ports have a settled share of 200 cells, so n is two and the limit is half of the free cells.
#[test]
fn congested_groups_of_other_ports_divide_the_limit() {
    let mut it = Bed::new(2, &lossless(), 1_000, 20 << 10);
    for port in 0..2 {
        assert_eq!(it.admit(port, 3, 200), Admission::Shared);
        it.settle(port, 3);
        assert_eq!(it.filtered(port, 3), 200);
    }
    assert_eq!(it.groups.congestion(3), Bytes(40 << 10));
    assert_eq!(it.admit(0, 3, 101), Admission::Headroom, "301 of 300 cells");
    assert_eq!(it.admit(1, 3, 100), Admission::Shared, "300 of 300");
    assert_eq!(it.admit(0, 4, 500), Admission::Shared, "n of another group number is one");
    it.depart(0, 3, 301, 4);
    assert_eq!((it.filtered(0, 3), it.groups.congestion(3)), (0, Bytes(20 << 10)));
}

#[test]
fn reserve_holds_frames_of_a_paused_group() {
    let mut it = Bed::new(1, &PortProfile::independent([group(true, alpha(0), 20); CLASSES]), 100, 20 << 10);
    assert_eq!(it.admit(0, 4, 120), Admission::Shared, "100 beyond the reserve");
    assert_eq!(it.admit(0, 3, 21), Admission::Headroom);
    assert_eq!(it.admit(0, 3, 20), Admission::Reserve);
    it.depart(0, 3, 21, 1);
    assert!(!it.poll(0), "no room for the offset: pool and reserve are full");
    it.depart(0, 3, 10, 1);
    assert!(!it.poll(0), "a share of zero is below the floor, but floor and offset need 14 cells");
    it.depart(0, 3, 4, 1);
    assert!(it.poll(0), "14 cells of the reserve are free");
}

#[test]
fn lossless_frames_leave_the_reserves_of_lossy_queues() {
    let mut it = Bed::new(1, &PortProfile::independent([group(true, alpha(3), 0); CLASSES]), 100, 20 << 10);
    it.groups.set_kept(Cells(50));
    assert_eq!(it.admit(0, 3, 51), Admission::Headroom, "far below the limit of 400");
    assert_eq!(it.admit(0, 4, 50), Admission::Shared);
    it.groups.set_kept(Cells(0));
    assert_eq!(it.admit(0, 4, 50), Admission::Shared);
}

#[test]
fn static_thresholds_are_not_filtered() {
    let profile = PortProfile::independent([group(true, Threshold::Static(Cells(30)), 0); CLASSES]);
    let mut it = Bed::new(1, &profile, 1_000, 20 << 10);
    assert_eq!(it.admit(0, 3, 30), Admission::Shared);
    assert_eq!(it.admit(0, 3, 1), Admission::Headroom);
    it.depart(0, 3, 11, 1);
    assert!(it.poll(0), "20 of 30 cells, which is below by the offset");
}

/// Cells of lossy and lossless groups, in plain numbers.
#[derive(Debug, Default, Clone, Copy)]
struct Held {
    reserve: i64,
    shared: i64,
    headroom: i64,
    /// 128 times the filtered share.
    filter: i64,
    is_off: bool,
}

impl Held {
    fn filtered(&self) -> i64 {
        self.shared.min(self.filter / 128)
    }

    fn release(&mut self, cells: i64) {
        let headroom = self.headroom.min(cells);
        let shared = self.shared.min(cells - headroom);
        self.headroom -= headroom;
        self.shared -= shared;
        self.reserve -= cells - headroom - shared;
    }
}

const PORTS: usize = 3;
const SIZE: u32 = 300;
const CONGESTED: u64 = 3_000;

/// A switch of [`PORTS`] ports: lossy group 0, filtered groups 3 and 4, and group 5 with a static threshold.
struct Model {
    groups: [[Held; CLASSES]; PORTS],
    profile: PortProfile,
    kept: i64,
}

impl Model {
    fn free(&self) -> i64 {
        i64::from(SIZE) - self.groups.iter().flatten().map(|held| held.shared).sum::<i64>()
    }

    /// Returns the share that counts, its limit, and the cells that a frame may take.
    fn terms(&self, port: usize, group: usize) -> (i64, i64, i64) {
        let held = &self.groups[port][group];
        let profile = &self.profile.groups[group];
        let free = if profile.lossless { (self.free() - self.kept).max(0) } else { self.free() };
        let exponent = match profile.threshold {
            Threshold::Static(cells) => return (held.shared, i64::from(cells.0), free),
            Threshold::Dynamic(alpha) => i32::from(alpha.exponent()),
        };
        let whole = (free as f64 * f64::from(exponent).exp2()).floor() as i64;
        if !profile.lossless {
            return (held.shared, whole, free);
        }
        let of_port = |port: &[Held; CLASSES]| (port[group].filtered() * CELL.0 as i64).min(CONGESTED as i64);
        let congestion: i64 = self.groups.iter().map(of_port).sum();
        let part = (((CONGESTED as i64) << 16) / congestion.max(1)).min(1 << 16);
        (held.filtered(), (whole * part) >> 16, free)
    }

    fn admit(&mut self, port: usize, group: usize, cells: i64) -> Admission {
        let profile = self.profile.groups[group];
        let (share, limit, free) = self.terms(port, group);
        let held = &mut self.groups[port][group];
        let reserve = (i64::from(profile.reserve.0) - held.reserve).min(cells);
        let beyond = cells - reserve;
        let is_within = (held.headroom == 0) && share + beyond <= limit;
        if beyond == 0 || is_within && beyond <= free {
            held.reserve += reserve;
            held.shared += beyond;
            return if beyond == 0 { Admission::Reserve } else { Admission::Shared };
        }
        if !profile.lossless {
            return Admission::Refused(if is_within { Refusal::PoolEmpty } else { Refusal::Threshold });
        }
        held.is_off = true;
        if held.headroom + cells > i64::from(profile.headroom.0) {
            return Admission::Refused(Refusal::HeadroomFull);
        }
        held.headroom += cells;
        Admission::Headroom
    }

    fn depart(&mut self, port: usize, group: usize, cells: i64, frames: i64) {
        let held = &mut self.groups[port][group];
        for frame in 0..frames {
            held.release(cells * (frame + 1) / frames - cells * frame / frames);
            held.filter = (held.filter - held.filter / 128 + held.shared).min(128 * held.shared);
        }
    }

    fn poll(&mut self, port: usize) {
        for group in 3..=5 {
            let (share, limit, free) = self.terms(port, group);
            let profile = &self.profile.groups[group];
            let (offset, floor) = (i64::from(profile.xon_offset.0), i64::from(profile.xon_floor.0));
            let held = &mut self.groups[port][group];
            let free_reserve = i64::from(profile.reserve.0) - held.reserve;
            let is_below = share + offset <= limit || share <= floor && share + floor + offset <= limit + free_reserve;
            let is_empty = held.reserve + held.shared == 0;
            if held.headroom == 0 && (is_below && offset <= free + free_reserve || is_empty) {
                held.is_off = false;
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Arrive {
        port: usize,
        group: usize,
        cells: u32,
    },
    /// So many of the oldest frames leave.
    Depart {
        port: usize,
        group: usize,
        frames: usize,
    },
    Poll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let group = || prop::sample::select(vec![0_usize, 3, 3, 4, 5]);
    let arrive = (0..PORTS, group(), 1_u32..12).prop_map(|(port, group, cells)| Step::Arrive { port, group, cells });
    let depart = (0..PORTS, group(), 1_usize..4).prop_map(|(port, group, frames)| Step::Depart { port, group, frames });
    prop::collection::vec(prop_oneof![6 => arrive, 3 => depart, 1 => Just(Step::Poll)], 1..600)
}

fn profile() -> PortProfile {
    let mut groups = [group(false, alpha(3), 2); CLASSES];
    groups[3] = group(true, alpha(0), 6);
    groups[4] = group(true, alpha(-2), 0);
    groups[5] = group(true, Threshold::Static(Cells(40)), 3);
    (3..=5).for_each(|index| groups[index].headroom = Cells(30));
    PortProfile::independent(groups)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn groups_of_reverie_agree_with_the_naive_model(steps in steps(), kept in 0_u32..40) {
        let mut it = Bed::new(PORTS, &profile(), SIZE, CONGESTED);
        it.groups.set_kept(Cells(kept));
        let mut model = Model { groups: Default::default(), profile: profile(), kept: kept.into() };
        let mut queued: Vec<[Vec<u32>; CLASSES]> = vec![Default::default(); PORTS];
        for step in steps {
            match step {
                Step::Arrive { port, group, cells } => {
                    let admission = it.admit(port, group, cells);
                    prop_assert_eq!(admission, model.admit(port, group, cells.into()));
                    if !matches!(admission, Admission::Refused(_)) {
                        queued[port][group].push(cells);
                    }
                }
                Step::Depart { port, group, frames } => {
                    let frames = frames.min(queued[port][group].len());
                    let cells: u32 = queued[port][group].drain(..frames).sum();
                    if frames == 0 {
                        continue;
                    }
                    it.depart(port, group, cells, frames as u32);
                    model.depart(port, group, cells.into(), frames as i64);
                }
                Step::Poll => (0..PORTS).for_each(|port| {
                    it.poll(port);
                    model.poll(port);
                }),
            }
            for (port, ledger) in it.ledgers.iter().enumerate() {
                for group in [0, 3, 4, 5] {
                    let (state, held) = (ledger.group(group), &model.groups[port][group]);
                    let counts = [state.reserve, state.shared, state.headroom].map(|cells| i64::from(cells.0));
                    prop_assert_eq!(counts, [held.reserve, held.shared, held.headroom]);
                    prop_assert_eq!(ledger.xoff().contains(group), held.is_off);
                }
                prop_assert_eq!(i64::from(ledger.filtered(3).unwrap().0.0), model.groups[port][3].filtered());
            }
            prop_assert_eq!(i64::from(it.pools.shared[0].free().0), model.free());
        }
    }
}
