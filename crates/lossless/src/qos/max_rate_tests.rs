//! Rate, burst and held time of queues with a maximum rate.

use proptest::prelude::*;

use super::*;
use crate::qos::shaper::MIN_FRAME;

const HZ: u64 = 1_000_000_000;

fn shapers(rate: u64, burst: u64) -> QueueShapers {
    QueueShapers::new(&only(3, rate, burst), HZ)
}

/// A maximum rate of one queue.
fn only(queue: usize, rate: u64, burst: u64) -> [Option<MaxRate>; CLASSES] {
    std::array::from_fn(|at| (at == queue).then_some(MaxRate { rate: BitRate(rate), burst: Bytes(burst) }))
}

/// Sends frames of `len` bytes of queue 3 while it may, at most `most`. Returns their bytes on the wire.
fn send(shapers: &mut QueueShapers, len: u32, most: usize, now: u64) -> u64 {
    let Some(mut pace) = shapers.pace(3, Ticks(now)) else { return 0 };
    let mut sent = 0;
    while sent < most && pace.is_free() {
        pace.charge(len);
        sent += 1;
    }
    shapers.keep(3, pace, Ticks(now));
    sent as u64 * Shaper::wire_bytes(len)
}

proptest! {
    /// A token bucket: in every window a queue sends at most its rate, its burst and a frame. A queue that always has
    /// frames sends no less than its rate if no gap between polls exceeds the burst.
    #[test]
    fn rate_and_burst_bound_every_window(
        rate in 1_000_000_u64..100_000_000_000,
        burst in 100_u64..200_000,
        polls in prop::collection::vec((0_u64..200_000, 0_usize..100, MIN_FRAME..9600), 1..60),
        is_greedy: bool,
    ) {
        let mut shapers = shapers(rate, burst);
        let (mut now, mut sent) = (HZ, Vec::new());
        let mut is_timely = true;
        for (gap, most, len) in polls {
            is_timely &= u128::from(gap) * u128::from(rate) <= u128::from(burst) * 8 * 1_000_000_000;
            now += gap;
            sent.push((now, send(&mut shapers, len, if is_greedy { usize::MAX } else { most }, now)));
        }
        for (index, &(from, _)) in sent.iter().enumerate() {
            let mut bytes = 0;
            for &(to, more) in &sent[index..] {
                bytes += more;
                let due = u128::from(rate) * u128::from(to - from) / 8_000_000_000;
                let most = due + u128::from(burst) + 9600 + 24 + 2;
                prop_assert!(u128::from(bytes) <= most, "{bytes} of {most} in {} ns", to - from);
                // One ten-thousandth covers the rounding of a byte's time to parts of a tick.
                if is_greedy && is_timely {
                    let least = due.saturating_sub(9600 + 24 + 2 + due / 10_000);
                    prop_assert!(u128::from(bytes) >= least, "{bytes} of {least}");
                }
            }
        }
    }
}

#[test]
fn queue_without_a_maximum_has_no_pace_and_is_never_exhausted() {
    let mut shapers = shapers(1_000_000, 100);
    assert!(send(&mut shapers, 1000, 9, HZ) > 0);
    assert_eq!(shapers.exhausted(ClassSet::ALL, Ticks(HZ)), ClassSet::only(3));
    assert!(shapers.pace(4, Ticks(HZ)).is_none() && shapers.limited() == ClassSet::only(3));
}

#[test]
fn new_rate_keeps_the_debt_and_removed_maximum_ends_it() {
    // 1226 bytes and 24 on the wire take 10 us at 1 Gb/s.
    let mut shapers = shapers(1_000_000_000, 100);
    assert_eq!(send(&mut shapers, 1226, 1, HZ), 1250);
    let free = |shapers: &QueueShapers, now: u64| shapers.exhausted(ClassSet::only(3), Ticks(HZ + now)).is_empty();
    shapers.set(&only(3, 2_000_000_000, 100), HZ);
    assert!(!free(&shapers, 9_000) && free(&shapers, 10_000), "charged by the rate before");
    assert_eq!(send(&mut shapers, 1226, 1, HZ + 10_000), 1250);
    assert!(!free(&shapers, 14_000) && free(&shapers, 15_000), "charged by the new rate");
    shapers.set(&[None; CLASSES], HZ);
    assert!(free(&shapers, 14_000) && shapers.limited().is_empty());
}

#[test]
fn maximum_rate_with_a_new_burst_keeps_the_debt() {
    // Another burst of 125 kB at 1 Mb/s would take a second.
    let mut slow = shapers(1_000_000, 125_000);
    assert_eq!(send(&mut slow, 1226, 1000, HZ), 101 * 1250);
    slow.set(&only(3, 10_000_000_000, 20_000), HZ);
    assert_eq!([9_000_000, 11_000_000].map(|later| send(&mut slow, 1226, 1, HZ + later)), [0, 1250]);
    // Nor does a longer slack grant a burst that was used up.
    let mut fast = shapers(10_000_000_000, 20_000);
    assert_eq!(send(&mut fast, 1226, 1000, HZ), 17 * 1250);
    fast.set(&only(3, 10_000_000, 20_000), HZ);
    assert_eq!(send(&mut fast, 1226, 1000, HZ + 10_000), 1250);
}

#[test]
fn frames_that_the_device_refused_are_given_back() {
    let mut shapers = shapers(1_000_000_000, 100);
    // The burst of 100 bytes is used up by the first frame.
    assert_eq!(send(&mut shapers, 1226, 1, HZ), 1250);
    shapers.give_back(3, 1250);
    assert_eq!(send(&mut shapers, 1226, 1, HZ), 1250);
    assert_eq!(send(&mut shapers, 1226, 1, HZ), 0);
}

#[test]
fn held_time_ends_with_the_credit_and_not_with_the_poll() {
    let mut shapers = shapers(1_000_000_000, 1250);
    assert_eq!(send(&mut shapers, 1226, 2, HZ), 2500);
    shapers.note_held(ClassSet::only(3), Ticks(HZ));
    assert_eq!(shapers.count_held(Ticks(HZ + 4_000)), ClassSet::only(3));
    assert_eq!(shapers.held_time(3), Nanos(4_000));
    shapers.note_held(ClassSet::only(3), Ticks(HZ + 4_000));
    assert_eq!(shapers.count_held(Ticks(HZ + 50_000)), ClassSet::only(3));
    assert_eq!(shapers.held_time(3), Nanos(10_000), "two frames, less the burst of one");
    assert_eq!(shapers.count_held(Ticks(HZ + 60_000)), ClassSet::EMPTY);
}

#[test]
fn usual_burst_covers_a_poll_and_two_rounds() {
    let burst = |discipline| MaxRate::usual_burst(BitRate(8_000_000_000), Nanos(10_000), discipline, Bytes(1522));
    assert_eq!(burst(QueueDiscipline::Strict), Bytes(10_000 + 2 * 1522));
    assert_eq!(burst(QueueDiscipline::Dwrr { weight: 4 }), Bytes(10_000 + 2 * (4 * 512 + 1522)));
}

/// Bytes that queue 3 sends in 10 ms of polls 10 us apart, in parts of those at its rate.
fn reached(burst: u64) -> f64 {
    let (rate, mut sent) = (2_000_000_000_u64, 0);
    let mut shapers = shapers(rate, burst);
    for poll in 1..=1_000 {
        sent += send(&mut shapers, 1522, usize::MAX, HZ + poll * 10_000);
    }
    sent as f64 / (rate / 800) as f64
}

#[test]
fn least_burst_reaches_the_rate_and_half_a_gap_does_not() {
    let least = MaxRate::least_burst(BitRate(2_000_000_000), Nanos(10_000), QueueDiscipline::Strict, Bytes(1522));
    assert_eq!(least, Bytes(2_500 + 1522 + 24));
    assert!((0.99..1.01).contains(&reached(least.0)), "{}", reached(least.0));
    assert!(reached(500) < 0.9, "{}", reached(500));
}
