//! A core that the machine takes away now and then, as one without isolation, and that has time for all frames.

use proptest::prelude::*;

use crate::harness::{LOSSLESS_DSCP, frame};
use crate::shed::{Bed, FRAME_NS};

/// Longest time in which frames come while the core is away: a receive ring would overflow.
const RING_NS: u64 = 100_000;
/// Time between two interruptions.
const PERIOD_NS: u64 = 4_000_000;

const INTERRUPTIONS: u64 = 4;

/// Frames that come at `load` percent of what the core can forward.
struct Arrivals {
    frame_ns: u64,
    /// Time until which they have come.
    until: u64,
    number: u64,
}

impl Arrivals {
    fn new(load: u64, now: u64) -> Self {
        Self { frame_ns: 2 * FRAME_NS * 100 / load, until: now, number: 0 }
    }

    /// The next frame and its port. Every other one is lossless.
    fn next(&mut self) -> (usize, Vec<u8>) {
        self.number += 1;
        let dscp = if self.number.is_multiple_of(2) { LOSSLESS_DSCP } else { 0 };
        let port = (self.number / 2 % 4) as usize;
        (port, frame(port, port ^ 1, dscp, 60))
    }

    /// Injects what has come.
    fn come(&mut self, bed: &mut Bed) {
        self.until = self.until.max(bed.io.now.saturating_sub(RING_NS));
        while self.until + self.frame_ns <= bed.io.now {
            self.until += self.frame_ns;
            let (port, frame) = self.next();
            bed.inject(port, 1, &frame);
        }
    }
}

/// Lossy frames shed and received, if the core is away for `away_ns` again and again, in turn between two polls and
/// within one.
fn shed_of_received(load: u64, away_ns: u64, phase: u64) -> (u64, u64) {
    let mut bed = Bed::sized(4, |_| {});
    let mut arrivals = Arrivals::new(load, bed.io.now);
    for number in 0..INTERRUPTIONS {
        let end = bed.io.now + PERIOD_NS + (number * phase) % PERIOD_NS;
        if number % 2 == 0 {
            bed.io.now += away_ns;
        } else {
            (bed.io.away_at, bed.io.away_ns) = (end - PERIOD_NS / 2, away_ns);
            let frames = RING_NS.min(away_ns) / arrivals.frame_ns;
            bed.io.meanwhile = (0..frames).map(|_| arrivals.next()).collect();
        }
        while bed.io.now < end {
            arrivals.come(&mut bed);
            let began = bed.io.now;
            bed.poll();
            // They have come already.
            arrivals.until += if bed.io.now - began > away_ns { bed.io.now - began } else { 0 };
        }
    }
    ((0..4).map(|port| bed.shed(port, 0)).sum(), arrivals.number / 2)
}

#[test]
fn interrupted_core_with_spare_time_sheds_nothing_at_low_load() {
    for load in [3, 10, 30] {
        for away_ns in [30_000, 100_000, 1_000_000, 5_000_000] {
            let (shed, received) = shed_of_received(load, away_ns, 7_919);
            assert_eq!(shed, 0, "load {load} %, away for {away_ns} ns: of {received}");
        }
    }
}

/// Frames of a burst beyond the first round look like those for which there is no time.
#[test]
fn burst_in_an_interrupted_poll_is_not_shed() {
    let mut bed = Bed::sized(4, |_| {});
    let lossy = frame(0, 1, 0, 60);
    for away_ns in [8_000, 12_000, 16_000] {
        for _ in 0..100 {
            bed.inject(0, 12, &lossy);
            bed.poll();
        }
        (bed.io.away_at, bed.io.away_ns) = (bed.io.now, away_ns);
        bed.inject(0, 60, &lossy);
        bed.poll();
        bed.poll();
        assert_eq!(bed.shed(0, 0), 0, "away for {away_ns} ns");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// An interruption costs next to nothing at any load that leaves half of the time to catch up.
    #[test]
    fn interrupted_core_with_spare_time_sheds_at_most_one_percent(
        load in 1_u64..50,
        away_ns in 5_000_u64..6_000_000,
        phase in 1_u64..PERIOD_NS,
    ) {
        let (shed, received) = shed_of_received(load, away_ns, phase);
        prop_assert!(shed * 100 <= received, "{shed} of {received} shed");
    }
}
