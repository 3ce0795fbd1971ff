//! The fabric that a seed determines.
//!
//! Each seed first draws a mood: size, speed, scarcity, and whether the switches can guarantee lossless service. Moods
//! make fabrics differ from each other, instead of all being average.

mod faults;
mod later;
mod net;
mod switch;
mod traffic;
mod workloads;

use super::draft::Draft;
use crate::sim::rng::Rng;

/// Stream of random numbers, distinct from those of the run.
const STREAM: u64 = 1 << 50;

/// Random numbers, with helpers for common draws.
pub(super) struct DrawRng(Rng);

impl DrawRng {
    /// Returns true with a probability of `of_hundred` percent.
    fn percent(&mut self, of_hundred: u64) -> bool {
        self.0.below(100) < of_hundred
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.between(low, high)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        *self.0.pick(choices)
    }

    /// Returns a number from `low` to `high`, with equal probability for each power of two.
    fn spread(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low.max(1)).max(1).ilog2();
        let low = low << self.0.between(0, doublings.into());
        self.0.between(low, (2 * low).min(high))
    }

    /// Draws a value with a probability of `of_hundred` percent, otherwise `None`.
    fn maybe<T>(&mut self, of_hundred: u64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.percent(of_hundred).then(|| draw(self))
    }
}

/// The character of a fabric.
#[derive(Debug, Clone, Copy)]
struct Mood {
    /// Whether lossless service must stay guaranteed: no draw may cause a waiver.
    promises: bool,
    /// Rates of hosts' links, in Mbit/s.
    rates: [u64; 2],
    mtu: u16,
    /// Whether the watchdog is on, which takes 10 ms to detect a storm.
    watches: bool,
    /// Whether frames take time, so that a load may overload a core.
    is_busy: bool,
    /// Whether senders are paused for a long time.
    is_stuck: bool,
}

fn mood(rng: &mut DrawRng) -> Mood {
    let rates = [1_000, 10_000, 10_000, 25_000, 25_000, 40_000, 100_000, 100_000, 100_000, 400_000, 400_000];
    let first = rng.pick(&rates);
    let second = if rng.percent(60) { first } else { rng.pick(&rates) };
    let is_stuck = rng.percent(20);
    Mood {
        promises: rng.percent(60),
        rates: if is_stuck && rng.percent(60) { [400_000, first.max(100_000)] } else { [first, second] },
        mtu: if rng.percent(75) { 1500 } else { 9216 },
        watches: rng.percent(3),
        is_busy: rng.percent(25),
        is_stuck,
    }
}

/// Returns the fabric of `seed`, without the sizes of its buffers.
#[must_use]
pub fn draft(seed: u64) -> Draft {
    let mut rng = DrawRng(Rng::new(seed, STREAM));
    let mood = mood(&mut rng);
    let mut draft = net::draw(&mut rng, &mood, seed);
    switch::draw(&mut rng, &mood, &mut draft);
    traffic::draw(&mut rng, &mood, &mut draft);
    faults::draw(&mut rng, &mood, &mut draft);
    later::draw(&mood, &mut draft);
    draft
}
