//! Tests of DCQCN: the equations against values computed by hand, the bounds as properties, and fairness between flows.

use proptest::prelude::*;

use super::*;
use crate::sim::rng::Rng;

const US: u64 = 1_000_000;
const LINE: BitRate = BitRate(40_000_000_000);

fn spec() -> DcqcnSpec {
    DcqcnSpec::default()
}

/// Returns the rate after each of `times` timer calls, each made when it is due.
fn rates(sender: &mut Sender, times: usize) -> Vec<u64> {
    let mut next = || {
        sender.timer(sender.next_timer().unwrap());
        sender.rate().0
    };
    (0..times).map(|_| next()).collect()
}

#[test]
fn sender_begins_at_line_rate_without_a_timer() {
    let mut sender = Sender::new(&spec(), LINE, 7);
    assert_eq!((sender.rate(), sender.alpha_millionths(), sender.next_timer()), (LINE, 1_000_000, None));
    sender.sent(1 << 40, 8);
    sender.timer(9 * US);
    assert_eq!((sender.rate(), sender.alpha_millionths()), (LINE, 1_000_000));
}

#[test]
fn cnp_cuts_the_rate_by_half_of_alpha() {
    let mut sender = Sender::new(&spec(), LINE, 0);
    sender.notified(US);
    // alpha = 1 cuts the rate by half. alpha stays 1: 255/256 + 1/256.
    assert_eq!((sender.rate().0, sender.alpha_millionths()), (20_000_000_000, 1_000_000));
    assert_eq!(sender.next_timer(), Some(56 * US));
    sender.notified(2 * US);
    assert_eq!(sender.rate().0, 10_000_000_000);
    // One K later alpha = 255/256. A CNP then cuts by 255/512 and raises alpha to (255/256)^2 + 1/256 = 65281/65536.
    sender.decay(57 * US);
    assert_eq!(sender.alpha_millionths(), 996_093);
    sender.notified(57 * US);
    assert_eq!(sender.rate().0, 10_000_000_000 * 257 / 512);
    assert_eq!(sender.alpha_millionths(), 996_109, "65281/65536");
}

#[test]
fn fast_recovery_halves_the_gap_then_it_adds() {
    let mut sender = Sender::new(&spec(), LINE, 0);
    sender.notified(0);
    sender.notified(0);
    // RT 20G, RC 10G; alpha and rate have the same period here, so each call does both.
    let fast = rates(&mut sender, 5);
    assert_eq!(fast, [15_000_000_000, 17_500_000_000, 18_750_000_000, 19_375_000_000, 19_687_500_000]);
    // RT is 20.04G, then 20.08G.
    assert_eq!(rates(&mut sender, 2), [19_863_750_000, 19_971_875_000]);
    assert_eq!(sender.next_timer(), Some(8 * 55 * US));
    assert_eq!(sender.alpha_millionths(), 972_974, "(255/256)^7");
}

#[test]
fn byte_counter_increases_the_rate_and_a_cnp_resets_it() {
    let mut sender = Sender::new(&spec(), LINE, 0);
    sender.notified(0);
    sender.sent(9_999_999, US);
    assert_eq!(sender.rate().0, 20_000_000_000);
    sender.sent(1, US);
    assert_eq!(sender.rate().0, 30_000_000_000);
    sender.sent(40_000_000, US);
    assert_eq!(sender.rate().0, 39_375_000_000, "five rounds of fast recovery");
    sender.sent(9_000_000, US);
    sender.notified(2 * US);
    sender.sent(9_999_999, 2 * US);
    assert_eq!((sender.byte_rounds, sender.rate().0), (0, 19_687_500_000), "the counter began at zero again");
}

#[test]
fn hyper_increase_wants_both_counters_beyond_f() {
    let mut sender = Sender::new(&spec(), LINE, 0);
    (0..4).for_each(|_| sender.notified(0));
    rates(&mut sender, 5);
    let target = |sender: &Sender| sender.target;
    assert_eq!(target(&sender), 5_000_000_000);
    rates(&mut sender, 2);
    assert_eq!(target(&sender), 5_080_000_000, "T = 7, BC = 0: additive");
    sender.sent(50_000_000, sender.increase_due - 1);
    assert_eq!(target(&sender), 5_280_000_000, "T = 7, BC = 1 to 5: additive");
    sender.sent(10_000_000, sender.increase_due - 1);
    assert_eq!(target(&sender), 5_680_000_000, "T = 7, BC = 6: hyper, i = 1");
    sender.sent(10_000_000, sender.increase_due - 1);
    assert_eq!(target(&sender), 6_480_000_000, "T = 7, BC = 7: hyper, i = 2");
}

#[test]
fn sender_back_at_line_rate_stops_timers_and_alpha_decays_on() {
    let mut sender = Sender::new(&spec(), BitRate(1_000_000_000), 0);
    sender.notified(0);
    let mut calls = 0;
    while let Some(due) = sender.next_timer() {
        sender.timer(due);
        calls += 1;
    }
    assert_eq!((sender.rate().0, calls), (1_000_000_000, 29), "2^29 is more than the half that was cut");
    sender.notified(1000 * 55 * US);
    // (255/256)^1000 = 0.01997: a cut of 0.998 %.
    assert_eq!(sender.rate().0 / 10_000, 99_001);
}

#[test]
fn late_timer_call_applies_all_due_steps() {
    let (mut late, mut prompt) = (Sender::new(&spec(), LINE, 0), Sender::new(&spec(), LINE, 0));
    late.notified(0);
    prompt.notified(0);
    rates(&mut prompt, 12);
    late.timer(12 * 55 * US);
    assert_eq!(late, prompt);
}

#[test]
fn receiver_sends_at_most_one_cnp_per_interval() {
    let mut receiver = NotificationPoint::new(50_000 * 1000);
    let answered: Vec<u64> = (0..200).filter(|us| us % 3 == 0 && receiver.marked(us * US)).collect();
    assert_eq!(answered, [0, 51, 102, 153]);
}

proptest! {
    #[test]
    fn dcqcn_rate_stays_between_its_bounds(
        line in 1_u64..500_000_000_000,
        least in 1_u64..200_000_000,
        g_shift in 0_u8..40,
        steps in prop::collection::vec((0_u8..4, 0_u64..200_000_000), 1..200),
    ) {
        let spec = DcqcnSpec { least: BitRate(least), g_shift, ..spec() };
        let mut sender = Sender::new(&spec, BitRate(line), 0);
        let mut now = 0;
        for (what, amount) in steps {
            now += amount;
            match what {
                0 => sender.notified(now),
                1 => sender.sent(amount, now),
                _ => {
                    sender.timer(now);
                    prop_assert!(sender.next_timer().is_none_or(|due| due > now), "a call leaves nothing due");
                }
            }
            prop_assert!((least.min(line)..=line).contains(&sender.rate().0));
            prop_assert!(sender.current <= sender.target && sender.target <= line && sender.alpha <= ONE);
        }
    }
}

/// Runs two flows over one link of their own rate, in steps of a microsecond. Returns the bytes that each sent in the
/// second half.
fn share(seed: u64, head_start_us: u64, all_us: u64) -> [u64; 2] {
    let (kmin, kmax) = (100_000, 400_000);
    let mut rng = Rng::new(seed, 0);
    let mut senders = [0; 2].map(|_| Sender::new(&spec(), LINE, 0));
    let mut receivers = [0; 2].map(|_| NotificationPoint::new(50_000 * 1000));
    let (mut queue, mut sent) = (0_u64, [0_u64; 2]);
    for us in 0..all_us {
        let now = us * US;
        for flow in 0..2 {
            if flow == 1 && us < head_start_us {
                continue;
            }
            if senders[flow].next_timer().is_some_and(|due| due <= now) {
                senders[flow].timer(now);
            }
            let bytes = senders[flow].rate().0 / 8_000_000;
            senders[flow].sent(bytes, now);
            queue += bytes;
            sent[flow] += if us >= all_us / 2 { bytes } else { 0 };
            // Packets of 1000 bytes. The probability of a mark rises to 1 % as the queue grows from kmin to kmax; from
            // kmax on, every packet is marked.
            let depth = queue.clamp(kmin, kmax) - kmin;
            let chance = if queue >= kmax { 1_000_000 } else { (10_000 * depth / (kmax - kmin)) as u32 };
            let marked = (0..bytes / 1000).any(|_| rng.chance(chance));
            if marked && receivers[flow].marked(now) {
                senders[flow].notified(now);
            }
        }
        queue = queue.saturating_sub(LINE.0 / 8_000_000);
    }
    sent
}

#[test]
fn two_senders_come_to_share_a_link() {
    for seed in 0..3 {
        let [first, second] = share(seed, 2_000, 200_000);
        let all = LINE.0 / 8 / 10;
        assert!((first + second) * 100 / all >= 90, "the link is in use: {first} + {second} of {all}");
        assert!(first.abs_diff(second) * 100 / (first + second) <= 10, "and shared: {first}, {second}");
    }
}
