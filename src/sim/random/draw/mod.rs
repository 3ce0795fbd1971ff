//! A fabric by a seed.
//!
//! Each seed has a mood first: how large, how fast, how scarce, whether the switches can promise to lose nothing. So that
//! fabrics differ from each other, rather than all being a little of everything.

mod faults;
mod later;
mod net;
mod switch;
mod traffic;

use super::draft::Draft;
use crate::sim::rng::Rng;

/// Stream of random numbers: the run's own are others.
const STREAM: u64 = 1 << 50;

/// Dice, in words.
pub(super) struct Dice(Rng);

impl Dice {
    /// Whether something happens that does so often.
    fn percent(&mut self, of_hundred: u64) -> bool {
        self.0.below(100) < of_hundred
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.between(low, high)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        *self.0.pick(choices)
    }

    /// From `low` to `high`, each power of two as often as the next.
    fn spread(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low.max(1)).max(1).ilog2();
        let low = low << self.0.between(0, doublings.into());
        self.0.between(low, (2 * low).min(high))
    }

    /// Something so often, or nothing.
    fn maybe<T>(&mut self, of_hundred: u64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.percent(of_hundred).then(|| draw(self))
    }
}

/// What a fabric is like.
#[derive(Debug, Clone, Copy)]
struct Mood {
    /// Nothing is drawn that takes the promise away.
    promises: bool,
    /// Rates of hosts' links, Mbit/s.
    rates: [u64; 2],
    mtu: u16,
    /// The watchdog is on, which takes 10 ms to find anything.
    watches: bool,
    /// Cores that a load may be too much for.
    is_busy: bool,
    /// Something holds senders for a long time.
    is_stuck: bool,
}

fn mood(dice: &mut Dice) -> Mood {
    let rates = [1_000, 10_000, 10_000, 25_000, 25_000, 40_000, 100_000, 100_000, 100_000, 400_000, 400_000];
    let first = dice.pick(&rates);
    let second = if dice.percent(60) { first } else { dice.pick(&rates) };
    let is_stuck = dice.percent(20);
    Mood {
        promises: dice.percent(60),
        rates: if is_stuck && dice.percent(60) { [400_000, first.max(100_000)] } else { [first, second] },
        mtu: if dice.percent(75) { 1500 } else { 9216 },
        watches: dice.percent(3),
        is_busy: dice.percent(25),
        is_stuck,
    }
}

/// The fabric of `seed`, without the sizes of its buffers.
#[must_use]
pub fn draft(seed: u64) -> Draft {
    let mut dice = Dice(Rng::new(seed, STREAM));
    let mood = mood(&mut dice);
    let mut draft = net::draw(&mut dice, &mood, seed);
    switch::draw(&mut dice, &mood, &mut draft);
    traffic::draw(&mut dice, &mood, &mut draft);
    faults::draw(&mut dice, &mood, &mut draft);
    later::draw(&mood, &mut draft);
    draft
}
