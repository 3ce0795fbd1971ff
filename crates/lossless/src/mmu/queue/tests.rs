//! Queue admission against a naive restatement, and the short path against the rule.

use proptest::prelude::*;

use super::*;
use crate::mmu::Threshold;
use crate::units::{Alpha, Probability};

/// The admission rule without optimization, in wide integers: the verdict on one frame. `share` is `1/n` of ABM.
fn naive(
    profile: &QueueProfile,
    share: LimitPart,
    frame: QueueRequest,
    depth: QueueDepth,
    pool: LossyPool,
) -> QueueVerdict {
    let after = u128::from(depth.cells.0) + u128::from(frame.cells.0);
    let is_within_reserve = after <= u128::from(profile.reserve.0);
    if frame.must_accept || is_within_reserve {
        return QueueVerdict::Accept;
    }
    let unreserved = i128::from(pool.free.0) - i128::from(pool.reserved.0);
    if let Some(limit) = profile.limit {
        let part = |limit: u128, part: LimitPart| limit * u128::from(part.raw()) / 65_536;
        let is_taken = unreserved >= 0 && {
            let whole = u128::from(limit.threshold.limit(Cells(unreserved as u32)).0);
            after <= if limit.abm { part(part(whole, share), depth.drain) } else { whole }
        };
        if !is_taken {
            return QueueVerdict::OverLimit;
        }
    }
    match profile.wred {
        Some(wred) if frame.droppable => QueueVerdict::Draw(wred.probability(depth.bytes)),
        _ => QueueVerdict::Accept,
    }
}

fn profile() -> impl Strategy<Value = QueueProfile> {
    let limit = prop::option::of(prop_oneof![
        (0_u32..3000).prop_map(|cells| Threshold::Static(Cells(cells))),
        (-4_i8..4).prop_map(|log2| Threshold::Dynamic(Alpha::from_exponent(log2).expect("in range"))),
    ]);
    let wred = prop::option::of((0_u64..50_000, 0_u64..50_000).prop_map(|(kmin, more)| {
        WredProfile::new(Bytes(kmin), Bytes(kmin + more), Probability::ONE).expect("a profile")
    }));
    let abm = any::<bool>();
    (prop_oneof![Just(0), 0_u32..40], limit, wred, abm).prop_map(|(reserve, threshold, wred, abm)| QueueProfile {
        reserve: Cells(reserve),
        limit: threshold.map(|threshold| QueueLimit { threshold, abm }),
        wred,
    })
}

fn request() -> impl Strategy<Value = QueueRequest> {
    (1_u32..40, prop::bool::weighted(0.2), any::<bool>()).prop_map(|(cells, must_accept, droppable)| QueueRequest {
        cells: Cells(cells),
        must_accept,
        droppable,
    })
}

fn pool() -> impl Strategy<Value = LossyPool> {
    (0_u32..2000, 0_u32..200).prop_map(|(free, reserved)| LossyPool { free: Cells(free), reserved: Cells(reserved) })
}

fn part() -> impl Strategy<Value = LimitPart> {
    prop_oneof![Just(LimitPart::ONE), (0_u64..=100).prop_map(|part| LimitPart::of_ratio(Bytes(part), Bytes(100)))]
}

fn rule(profile: QueueProfile) -> QueueAdmission {
    QueueAdmission::new([profile; CLASSES])
}

fn rule_with_share(profile: QueueProfile, share: LimitPart) -> QueueAdmission {
    let mut rule = rule(profile);
    rule.set_share(3, share);
    rule
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn judge_agrees_with_the_naive_rule(
        (profile, share) in (profile(), part()), frame in request(), cells in 0_u32..3000, bytes in 0_u64..60_000,
        drain in part(), pool in pool(),
    ) {
        let depth = QueueDepth { cells: Cells(cells), bytes: Bytes(bytes), drain };
        let rule = rule_with_share(profile, share);
        prop_assert_eq!(rule.judge(3, frame, depth, pool), naive(&profile, share, frame, depth, pool));
    }

    #[test]
    fn explain_has_the_limit_that_judge_applies(
        profile in profile(), cells in 0_u32..3000, (share, drain) in (part(), part()), pool in pool(),
    ) {
        let frame = QueueRequest { cells: Cells(1), must_accept: false, droppable: false };
        let depth = QueueDepth { cells: Cells(cells), bytes: Bytes(0), drain };
        let rule = rule_with_share(profile, share);
        let refused = rule.judge(3, frame, depth, pool) == QueueVerdict::OverLimit;
        let limit = rule.explain(3, drain, pool).limit;
        prop_assert_eq!(refused, limit.is_some_and(|limit| cells + 1 > limit.0));
    }

    /// A burst that the short path takes is taken frame by frame in any order, charged one by one.
    #[test]
    fn admit_burst_takes_only_what_admit_takes(
        (profile, share, drain) in (profile(), part(), part()), frames in prop::collection::vec(request(), 1..32),
        depth in 0_u32..500, pool in pool(),
    ) {
        let rule = rule_with_share(profile, share);
        let cells = |lossy_only: bool| {
            frames.iter().filter(|frame| !lossy_only || !frame.must_accept).map(|frame| frame.cells).sum::<Cells>()
        };
        let queues = if cells(true) > Cells(0) { ClassSet::only(3) } else { ClassSet::EMPTY };
        let burst = BurstRequest { lossy: cells(true), all: cells(false), queues, crosses: false };
        let draws = || frames.iter().any(|frame| !frame.must_accept && rule.needs_wred_draw(3, frame.droppable));
        if !rule.admit_burst(burst, pool, draws, |_| Cells(depth), |_| drain) {
            return Ok(());
        }
        let (mut depth, mut pool) = (QueueDepth { cells: Cells(depth), bytes: Bytes(0), drain }, pool);
        for frame in frames {
            if !frame.must_accept {
                pool.free -= frame.cells;
            }
            let taken = rule.admit(3, frame, depth, pool, || Bytes(0), || panic!("no draw is needed"));
            prop_assert_eq!(taken, Ok(()));
            depth.cells += frame.cells;
        }
    }
}

#[test]
fn admit_burst_takes_up_to_the_limit_and_no_cell_more() {
    let limit = Some(Threshold::Dynamic(Alpha::from_exponent(0).expect("in range")).into());
    let one = |_| LimitPart::ONE;
    let rule = rule(QueueProfile { limit, ..QueueProfile::default() });
    let pool = |free| LossyPool { free: Cells(free), reserved: Cells(0) };
    let burst = BurstRequest { lossy: Cells(20), all: Cells(30), queues: ClassSet::only(3), crosses: false };
    // Alpha 1: the queue may be as deep as the pool is free after all frames are charged.
    assert!(rule.admit_burst(burst, pool(60), || false, |_| Cells(10), one));
    assert!(
        !rule.admit_burst(burst, pool(59), || false, |_| Cells(10), one)
            && !rule.admit_burst(burst, pool(60), || false, |_| Cells(11), one)
    );
    assert!(!rule.admit_burst(
        BurstRequest { crosses: true, ..burst },
        LossyPool { reserved: Cells(1), ..pool(90) },
        || false,
        |_| Cells(0),
        one
    ));
    let wred = WredProfile::new(Bytes(0), Bytes(1000), Probability::ONE);
    let early = QueueAdmission::new([QueueProfile { limit, wred, ..QueueProfile::default() }; CLASSES]);
    assert!(
        early.admit_burst(burst, pool(60), || false, |_| Cells(10), one)
            && !early.admit_burst(burst, pool(60), || true, |_| Cells(10), one)
    );
}

/// Alpha 1 and 1,200 free cells: the whole limit is 1,200. With n = 3 it is 400, and at half the rate 200.
#[test]
fn abm_divides_the_limit_by_congested_queues_and_multiplies_it_by_the_drain_rate() {
    let threshold = Threshold::Dynamic(Alpha::from_exponent(0).expect("in range"));
    let limit = Some(QueueLimit { threshold, abm: true });
    let half = LimitPart::of_ratio(Bytes(1), Bytes(2));
    let third = AbmSpec::USUAL.share(Bytes(3 * AbmSpec::USUAL.congested.0));
    let rule = rule_with_share(QueueProfile { limit, ..QueueProfile::default() }, third);
    let pool = LossyPool { free: Cells(1_200), reserved: Cells(0) };
    let frame = QueueRequest { cells: Cells(1), must_accept: false, droppable: false };
    let judge = |queue, cells, drain| {
        let depth = QueueDepth { cells: Cells(cells), bytes: Bytes(0), drain };
        rule.judge(queue, frame, depth, pool) == QueueVerdict::Accept
    };
    assert!(judge(3, 398, LimitPart::ONE) && !judge(3, 399, LimitPart::ONE), "a third, less the rounding");
    assert!(judge(3, 198, half) && !judge(3, 199, half));
    assert!(judge(4, 1_199, LimitPart::ONE) && !judge(4, 1_200, LimitPart::ONE), "no queue 4 is congested");
    assert_eq!(rule.explain(3, half, pool).limit, Some(Cells(199)));
    let request = QueueRequest { must_accept: true, ..frame };
    let depth = QueueDepth { cells: Cells(9_000), bytes: Bytes(0), drain: half };
    assert_eq!(rule.judge(3, request, depth, pool), QueueVerdict::Accept, "a lossless frame has no limit here");
    assert_eq!(rule.abm_queues(), ClassSet::ALL);
}

#[test]
fn draw_decides_by_the_probability_at_the_depth() {
    let wred = WredProfile::new(Bytes(0), Bytes(1000), Probability::ONE).unwrap();
    let rule = rule(QueueProfile { wred: Some(wred), ..QueueProfile::default() });
    let frame = QueueRequest { cells: Cells(1), must_accept: false, droppable: true };
    let depth = QueueDepth { cells: Cells(2), bytes: Bytes(500), drain: LimitPart::ONE };
    let pool = LossyPool { free: Cells(10), reserved: Cells(0) };
    let half = wred.probability(Bytes(500)) as u32;
    assert_eq!(rule.admit(0, frame, depth, pool, || Bytes(0), || half - 1), Err(QueueRefusal::Wred));
    assert_eq!(rule.admit(0, frame, depth, pool, || Bytes(0), || half), Ok(()));
    let short = QueueDepth { bytes: Bytes(300), ..depth };
    assert_eq!(rule.admit(0, frame, short, pool, || Bytes(0), || half - 1), Ok(()));
    assert_eq!(rule.admit(0, frame, short, pool, || Bytes(200), || half - 1), Err(QueueRefusal::Wred), "posted bytes");
    let undroppable = QueueRequest { droppable: false, ..frame };
    assert_eq!(rule.admit(0, undroppable, depth, pool, || Bytes(0), || 0), Ok(()));
}

#[test]
fn reserve_is_kept_free_for_its_queue() {
    let reserves = [Cells(0), Cells(0), Cells(0), Cells(0), Cells(0), Cells(10), Cells(0), Cells(0)];
    let [one, other]: [QueueReserves; 2] = QueueReserves::fleet(reserves, &[0, 1], 2).try_into().unwrap();
    assert_eq!((one.unused(), one.unused_here()), (Cells(20), Cells(10)));
    one.update(0, 5, Cells(0), Cells(4));
    assert_eq!((other.unused(), other.depth(0, 5)), (Cells(16), Cells(4)));
    assert!(other.covers(0, 5, Cells(6)) && !other.covers(0, 5, Cells(7)) && !other.covers(0, 4, Cells(1)));
    // Beyond the reserve, further cells use none of it.
    one.update(0, 5, Cells(4), Cells(40));
    assert_eq!(other.unused(), Cells(10));
    assert!(other.may_cross(0, 3, Cells(1), Cells(10)) && !other.may_cross(0, 3, Cells(1), Cells(9)));
    assert!(one.may_cross(1, 5, Cells(10), Cells(0)), "within the reserve of its queue");
}
