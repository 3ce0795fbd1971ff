use super::*;
use proptest::prelude::*;

const HALF_GAP: u64 = 10_000;

fn budget() -> PollBudget {
    PollBudget::new(Nanos(20_000), HALF_GAP)
}

/// A core whose polls take 500 ticks, 200 for a forwarded frame and 40 for a shed one.
fn measured() -> PollBudget {
    let mut budget = budget();
    for (forwarded, shed) in [(10, 0), (40, 0), (40, 100), (10, 200), (80, 20), (20, 50)].into_iter().cycle().take(600)
    {
        budget.learn(forwarded, shed, 500 + 200 * u64::from(forwarded) + 40 * u64::from(shed), true);
    }
    budget
}

#[test]
fn poll_budget_learns_the_time_of_forwarded_and_shed_frames() {
    let budget = measured();
    for (forwarded, shed) in [(0, 300), (45, 0), (30, 60)] {
        let (ticks, real) = (budget.expected_ticks(forwarded, shed), 500 + 200 * forwarded + 40 * shed);
        assert!(ticks.abs_diff(real) < real / 8, "{ticks} of {real} for {forwarded} and {shed}");
    }
}

#[test]
fn lossy_frames_get_the_time_that_is_left() {
    let mut budget = measured();
    // 10,000 ticks, without 500, 10 * 200 and 100 * 40: 3,500. A forwarded frame takes 160 more than a shed one.
    let lossy = budget.lossy(Expected { lossy: 100, others: 10 });
    assert!((18..=26).contains(&lossy), "{lossy}");
    assert_eq!(budget.lossy(Expected { lossy: 300, others: 64 }), 4, "a sixteenth of the others");
}

#[test]
fn single_long_poll_counts_as_twice_as_long_and_a_second_one_in_full() {
    let mut budget = measured();
    let usual = budget.expected_ticks(10, 0);
    for was_next in [true, false] {
        let before = budget.expected_ticks(10, 0);
        budget.learn(10, 0, 19_000, was_next);
        assert!(budget.expected_ticks(10, 0).abs_diff(2 * before.max(2_500)) < 100);
        (0..2).for_each(|_| budget.learn(10, 0, usual, true));
    }
    (0..2).for_each(|_| budget.learn(10, 0, 19_000, true));
    assert!(budget.expected_ticks(10, 0) > 12_000, "{budget:?}");
}

#[test]
fn poll_without_frames_shows_that_the_base_is_too_high() {
    let mut budget = budget();
    (0..2).for_each(|_| budget.learn(10, 0, 15_000, true));
    (0..8).for_each(|_| budget.learn(1, 0, 600, true));
    assert!(budget.expected_ticks(0, 0) <= 600 && budget.lossy(Expected { lossy: 4, others: 4 }) >= 4, "{budget:?}");
}

#[test]
fn quickest_poll_decides_which_round_fits_and_ages() {
    let mut quickest = QuickestPoll::new();
    assert!(!quickest.fits(1, 1 << 20), "nothing is known");
    for (frames, ticks) in [(100, 6_000), (100, 60_000), (8, 8), (200, 12_000)] {
        quickest.note(frames, ticks);
    }
    assert!(quickest.fits(100, 6_000) && !quickest.fits(100, 5_999));
    (0..1000).for_each(|_| quickest.forget());
    quickest.note(100, 9_000);
    assert!(quickest.fits(100, 9_000) && !quickest.fits(100, 8_999));
}

#[test]
fn gap_below_a_microsecond_bounds_no_poll() {
    assert!(!PollBudget::new(Nanos(999), 500).is_bounded());
    assert!(PollBudget::new(Nanos(1_000), 500).is_bounded());
}

#[test]
fn fair_share_fills_the_smallest_rows_first() {
    for (counts, most, share) in [
        (vec![10, 10], 20, None),
        (vec![100, 100], 20, Some(10 << 8)),
        (vec![4, 100, 100], 20, Some(8 << 8)),
        (vec![0, 3, 100], 20, Some(17 << 8)),
        (vec![100; 8], 4, Some(128)),
    ] {
        assert_eq!(fair_share(counts.iter().copied(), most), share, "{counts:?}");
    }
}

proptest! {
    /// A share never passes more than it may, and after four passes hardly less.
    #[test]
    fn fair_share_passes_no_more_than_it_may(counts in prop::collection::vec(0_u32..1000, 1..64), most in 1_u64..5000) {
        let sum: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        match fair_share(counts.iter().copied(), most) {
            None => prop_assert!(sum <= most),
            Some(level) => {
                let passed: u64 = counts.iter().map(|&count| (u64::from(count) << 8).min(level.into())).sum();
                prop_assert!(passed <= most << 8);
                prop_assert!(passed * 2 >= (most << 8).min(sum << 8), "{passed} of {most}");
            }
        }
    }

    /// An lcore with time for all frames soon sheds none, whatever terms interruptions have left.
    #[test]
    fn wrong_terms_are_corrected_at_any_load_below_the_capacity(
        wrong in prop::array::uniform3(0_i64..100_000),
        base in 50_u64..2_000,
        forwarded in 40_u64..400,
        load in 1_u64..70,
        part in 0_u64..=10,
        first in 1_u64..50_000,
    ) {
        let mut budget = budget();
        (budget.base, budget.forwarded) = (wrong[0] << SHIFT, wrong[1].max(wrong[2]) << SHIFT);
        budget.shed = wrong[2] << SHIFT;
        let (mut interval, mut shed_late) = (first, 0);
        for poll in 0..400 {
            let frames = interval * load / (100 * forwarded);
            let lossy = frames * part / 10;
            let passed = budget.lossy(Expected { lossy, others: frames - lossy }).min(lossy);
            let shed = lossy - passed;
            let ticks = base + (frames - shed) * forwarded + shed * forwarded / 6;
            budget.learn((frames - shed) as u32, shed as u32, ticks, true);
            shed_late += if poll < 200 { 0 } else { shed };
            interval = ticks;
        }
        prop_assert_eq!(shed_late, 0, "{:?}", budget);
    }

    /// The law of docs/overload.md: whatever the terms and the load, if the load can be shed, polls settle at the time
    /// that they should take.
    #[test]
    fn poll_time_settles_at_its_target_under_any_load(
        base in 50_u64..2_000,
        forwarded in 40_u64..400,
        part in 2_u64..8,
        others in 0_u64..30,
        lossy in 10_u64..400,
        first in 1_u64..20_000,
    ) {
        let shed = forwarded / part;
        // Frames in 10,000 ticks.
        let target = HALF_GAP.max(base + HALF_GAP / 2);
        prop_assume!(base + (others * forwarded + lossy * shed) * target / 10_000 < target * 9 / 10);
        let (mut budget, mut interval) = (budget(), first);
        for poll in 0..200 {
            let [others, lossy] = [others, lossy].map(|frames| frames * interval / 10_000);
            let passed = budget.lossy(Expected { lossy, others }).min(lossy);
            let ticks = base + (others + passed) * forwarded + (lossy - passed) * shed;
            budget.learn((others + passed) as u32, (lossy - passed) as u32, ticks, true);
            interval = ticks;
            // Only an lcore that has not measured its frames is late.
            prop_assert!(poll < 40 || ticks <= HALF_GAP * 2, "poll {poll}: {ticks}");
            prop_assert!(poll < 40 || passed == lossy || ticks * 10 >= target * 6, "poll {poll}: {ticks}");
        }
    }
}
