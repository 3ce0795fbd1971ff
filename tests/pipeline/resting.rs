//! Rest of an idle lcore, on a clock that the tests advance: each rest lasts exactly as long as they set.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use holdfast::dataplane::{Idle, Resting, Work};
use holdfast::io::memory::MemPorts;
use holdfast::plan::{Companion, Counters, LcoreControl};
use holdfast::sets::ClassSet;
use holdfast::units::{Nanos, Ticks};

use crate::harness::*;

const AFTER: u64 = 50_000;
const LONGEST: u64 = 100_000;
/// Delay of the end of every rest, in nanoseconds.
const LATE: u64 = 700;
/// Time between two readings of the clock.
const STEP: u64 = 100;

/// A co-polled peer that has work at each multiple of `period`, or never.
struct Peer {
    period: Option<u64>,
    polled: Arc<Mutex<Vec<u64>>>,
}

impl Peer {
    /// Returns the next instant at which it has work.
    fn due(&self, now: u64) -> u64 {
        self.period.map_or(u64::MAX, |period| now - now % period + period)
    }
}

impl Companion for Peer {
    fn poll(&mut self, now: Ticks) {
        self.polled.lock().unwrap().push(now.0);
    }

    fn fall_silent(&mut self) {}

    fn is_silent_until(&self, now: Ticks, until: Ticks) -> bool {
        until.0 < self.due(now.0)
    }
}

/// The rests and polls of an lcore.
struct Seen {
    /// Start and planned end of each rest.
    rests: Vec<(u64, u64)>,
    polls: Vec<u64>,
    counters: Arc<Counters>,
}

impl Seen {
    fn lengths(&self) -> Vec<u64> {
        // From the poll before the rest, one reading of the clock earlier.
        self.rests.iter().map(|(from, until)| until - (from - STEP)).collect()
    }
}

/// Runs the switch of `bed` for `ns`, alone or with a peer that has work every `period`.
fn run(bed: Bed, period: Option<u64>, ns: u64) -> Seen {
    let (clock, start) = (Arc::new(AtomicU64::new(bed.now)), bed.now);
    let (control, polled) = (Arc::new(LcoreControl::new(1)), Arc::new(Mutex::default()));
    let rests: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
    let (hands, seen) = (clock.clone(), rests.clone());
    let rest = move |_: &MemPorts, until: Ticks| {
        let from = hands.swap(until.0 + LATE - STEP, Relaxed);
        seen.lock().unwrap().push((from, until.0));
    };
    let resting = Resting { idle: Idle::new(Nanos(AFTER), Nanos(LONGEST), HZ), rest: Box::new(rest) };
    let companion = Some(Peer { period, polled: polled.clone() });
    let (pipeline, io, counters) = (bed.switch.into_one(), bed.io, bed.counters);
    let work = Work { resting: Some(resting), ..work(pipeline, io, companion, &control) };
    let look = || {
        let now = clock.fetch_add(STEP, Relaxed) + STEP;
        if now > start + ns {
            control.stop();
        }
        Ticks(now)
    };
    drop(work.run(look));
    let (rests, polls) = (rests.lock().unwrap().clone(), std::mem::take(&mut *polled.lock().unwrap()));
    Seen { rests, polls, counters }
}

#[test]
fn idle_lcore_rests_with_growing_length_and_counts_rests() {
    let bed = Bed::learned(&spec(2));
    let start = bed.now;
    let seen = run(bed, None, 2_000_000);
    assert!(seen.rests[0].0 >= start + AFTER, "{:?}", seen.rests[0]);
    assert_eq!(seen.lengths()[..5], [12_500, 25_000, 50_000, LONGEST, LONGEST]);
    assert!(seen.lengths().iter().all(|length| *length <= LONGEST));
    let lcore = &seen.counters.lcores[0];
    let rests = seen.rests.len() as u64;
    assert!(rests >= 19, "{rests}");
    assert_eq!((lcore.rests.get(), lcore.rest_overshoot[10].get()), (rests, rests), "512 to 1023 ns late");
    assert_eq!((lcore.rest_overshoot_highest_ns.get(), lcore.rest_overshoot_sum_ns.get()), (LATE, rests * LATE));
    let rested: u64 = seen.rests.iter().map(|(from, until)| until + LATE - from).sum();
    assert_eq!(lcore.rested_ns.get(), rested);
    // The longest gap between two polls covers the rest, its delay, and one or two readings of the clock.
    let gap = seen.polls.windows(2).map(|pair| pair[1] - pair[0]).max().expect("polls");
    assert!((LONGEST + LATE + STEP..=LONGEST + LATE + 2 * STEP).contains(&gap), "{gap}");
    assert_eq!(lcore.poll_gap_highest_ns.get(), gap);
}

#[test]
fn lcore_does_not_rest_while_a_received_pause_runs() {
    let mut bed = Bed::learned(&spec(2));
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    let end = bed.now + 3_355_000;
    let seen = run(bed, None, 6_000_000);
    assert!(seen.rests[0].0 >= end, "{:?}, and the pause ends at {end}", seen.rests[0]);
    assert_eq!(seen.counters.ports[1].paused_mask.get(), 0, "its end is told before");
    let paused = seen.counters.ports[1].pfc_rx_paused_ns[LOSSLESS].get();
    assert!((3_355_000..=3_356_500).contains(&paused), "{paused}");
}

#[test]
fn xoff_is_refreshed_in_time_and_lcore_does_not_rest_meanwhile() {
    let mut bed = Bed::blocked(&spec(2));
    bed.fill(32);
    let seen = run(bed, None, 10_000_000);
    assert_eq!(
        seen.counters.ports[0].pfc_tx_xoff[LOSSLESS].get(),
        3,
        "at once, and every 1.68 ms until the pause ends"
    );
    assert!(seen.rests.iter().all(|(from, _)| *from > HZ + 1_000_000 + 3_355_000), "{:?}", seen.rests.first());
    assert!(!seen.rests.is_empty(), "it rests in the end");
}

#[test]
fn lcore_does_not_rest_with_unsent_frames_or_xon() {
    let mut bed = Bed::learned(&spec(2));
    bed.io.set_room(1, Some(0));
    bed.io.inject(0, &frame(0, 1, 0, CELL));
    assert_eq!(run(bed, None, 2_000_000).rests, [], "a frame that its port does not take");
    let mut bed = Bed::new(&spec(2));
    bed.io.set_room(0, Some(0));
    assert_eq!(run(bed, None, 2_000_000).rests, [], "an XON that does not get out");
}

#[test]
fn co_polled_peer_is_polled_on_time_despite_rests() {
    const PERIOD: u64 = 300_000;
    let seen = run(Bed::learned(&spec(2)), Some(PERIOD), 3_000_000);
    assert!(seen.rests.len() > 10, "{:?}", seen.rests);
    for due in (1..9).map(|n| (HZ + 1_000_000).next_multiple_of(PERIOD) + n * PERIOD) {
        let polled = seen.polls.iter().find(|now| **now >= due).expect("it runs longer");
        assert!(polled - due <= 2 * STEP, "due at {due}, polled at {polled}");
    }
    // A peer that always has work.
    assert_eq!(run(Bed::learned(&spec(2)), Some(1), 3_000_000).rests, []);
}
