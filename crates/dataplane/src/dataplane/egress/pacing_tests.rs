//! The data that pacing posts ahead of a PFC frame, plus the time for which the frame that causes it waited unseen.
//! These are the rows `poll gap` and `transmit ring` of headroom, which are proven as a sum.

use proptest::prelude::*;

use crate::headroom::PACING_SLACK;
use crate::qos::shaper::{MIN_FRAME, Shaper};
use crate::units::{BitRate, Nanos, Ticks, WIRE_OVERHEAD};

/// Ticks are picoseconds, so that rounding hides nothing.
const HZ: u64 = 1_000_000_000_000;
/// Picoseconds in a nanosecond.
const PS: u64 = 1000;

/// One poll: its length, and the number of frames that wait to be sent. `visit` and `send` are the points at which it
/// reads the receive ring and at which it sends, in thousandths of the length.
#[derive(Debug, Clone, Copy)]
struct Poll {
    length_ps: u64,
    visit: u64,
    send: u64,
    waiting: u64,
    /// PFC frames that leave at the visit, outside of pacing.
    pfc: u8,
}

fn poll(longest_ps: u64) -> impl Strategy<Value = Poll> {
    let length = prop_oneof![Just(longest_ps), 0..=longest_ps];
    let part = || prop_oneof![Just(0), Just(1000), 0_u64..=1000];
    let (waiting, pfc) = (prop_oneof![Just(u64::MAX), Just(0), 0_u64..200], prop_oneof![Just(0_u8), Just(1), 0_u8..4]);
    (length, part(), part(), waiting, pfc).prop_map(|(length_ps, visit, send, waiting, pfc)| {
        let (visit, send) = (visit.min(send), visit.max(send));
        Poll { length_ps, visit, send, waiting, pfc }
    })
}

/// Worst cases over a run of polls, in picoseconds. `gap` is the longest poll or time between two visits. `ahead` is
/// the most data ahead at a visit. `unheard` is the largest sum of that data and the time since the previous visit.
#[derive(Debug, Default)]
struct Worst {
    gap: u64,
    ahead: u64,
    unheard: u64,
}

/// Polls a port of `rate` that sends frames of `frame` bytes. Pacing counts from the instant at which each poll begins;
/// the wire counts from the instant at which the poll sends.
fn run(rate: BitRate, frame: u32, polls: &[Poll]) -> Worst {
    let mut shaper = Shaper::new(rate, HZ, PACING_SLACK);
    let [frame_ps, pfc_ps] = [frame, MIN_FRAME].map(|len| u64::from(len + WIRE_OVERHEAD) * 8 * HZ / rate.0);
    let mut worst = Worst::default();
    // Starts a second in, so that the port was idle before.
    let (mut begin, mut wire_free) = (HZ, 0_u64);
    let mut last_visit: Option<u64> = None;
    for poll in polls {
        // Polls are long enough for the wire to carry their PFC frames.
        let length = poll.length_ps.max(u64::from(poll.pfc) * pfc_ps);
        let (visit, send) = (begin + length * poll.visit / 1000, begin + length * poll.send / 1000);
        if let Some(last) = last_visit.replace(visit) {
            let ahead = wire_free.saturating_sub(visit);
            worst.gap = worst.gap.max(visit - last);
            worst.ahead = worst.ahead.max(ahead);
            worst.unheard = worst.unheard.max(visit - last + ahead);
        }
        for _ in 0..poll.pfc {
            shaper.charge(MIN_FRAME, Ticks(begin));
            wire_free = wire_free.max(visit) + pfc_ps;
        }
        let mut left = poll.waiting;
        while left > 0 && shaper.is_free(Ticks(begin)) {
            shaper.charge(frame, Ticks(begin));
            wire_free = wire_free.max(send) + frame_ps;
            left -= 1;
        }
        worst.gap = worst.gap.max(length);
        begin += length;
    }
    worst
}

proptest! {
    #[test]
    fn pfc_delay_is_at_most_the_poll_gap_the_slack_and_begun_frames(
        polls in (0_u64..=40_000).prop_flat_map(|gap_ns| prop::collection::vec(poll(gap_ns * PS), 2..60)),
        rate in prop_oneof![Just(10), Just(25), Just(100), Just(400)],
        frame in prop_oneof![Just(60_u32), Just(1514), 60_u32..=9238],
    ) {
        let worst = run(BitRate(rate * 1_000_000_000), frame, &polls);
        // The row `our frame ahead` covers the frame that is posted at the last instant. PFC frames sent just now are
        // ahead of the next one too.
        let begun = u64::from(frame + WIRE_OVERHEAD + 3 * (MIN_FRAME + WIRE_OVERHEAD)) * 8 * HZ / (rate * 1_000_000_000);
        let bound = worst.gap + PACING_SLACK.0 * PS + begun;
        prop_assert!(worst.unheard <= bound, "{} of {bound} ps", worst.unheard);
    }
}

#[test]
fn late_sending_poll_leaves_more_than_the_slack_ahead_of_pfc() {
    // The first poll, of 8 us, sends at its end the data that idle time has earned. Later polls of one microsecond send
    // at once.
    let late = Poll { length_ps: 8_000 * PS, visit: 0, send: 1000, waiting: u64::MAX, pfc: 0 };
    let quick = Poll { length_ps: 1_000 * PS, send: 0, ..late };
    let worst = run(BitRate(10_000_000_000), 1226, &[late, quick, quick, quick]);
    let micros = |ps: u64| (ps + 500_000) / 1_000_000;
    assert_eq!(micros(worst.ahead), 18, "the slack, the gap of the late poll, and a frame, less the microsecond since");
    assert_eq!(micros(worst.unheard), 19);
    assert!(worst.ahead > PACING_SLACK.0 * PS + Nanos(1_000).0 * PS, "more than the slack and a frame");
}
