//! Decides which of the selected frames a fault hits: all, a random share, or one in N, each with bursts.

use super::spec::Share;

/// Millionths of a whole.
const MILLION: u64 = 1_000_000;

/// Random numbers of one fault on one lcore (splitmix64, Steele and others 2014).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Draws(u64);

impl Draws {
    /// The numbers of `fault` on `lcore` by the seed of the configuration.
    #[must_use]
    pub fn new(seed: u64, fault: u64, lcore: usize) -> Self {
        let mut draws = Self(seed);
        draws.0 ^= draws.draw().wrapping_add(fault.wrapping_mul(0xd134_2543_de82_ef95));
        draws.0 ^= draws.draw().wrapping_add((lcore as u64).wrapping_mul(0x9e6c_63d0_876a_a6d5));
        draws
    }

    /// The next 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A random number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

/// The progress of one fault on one lcore.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Selected frames since the last beginning of a burst by count.
    since: u32,
    /// Frames of the current burst that are still to come.
    left: u32,
    /// Random numbers, also for the bit that a corruption inverts.
    pub draws: Draws,
}

impl Rule {
    /// A rule that has seen no frame.
    #[must_use]
    pub fn new(draws: Draws) -> Self {
        Self { since: 0, left: 0, draws }
    }

    /// Sees the next selected frame; returns whether it is hit.
    ///
    /// By count, the Nth frame begins the first burst, and each further Nth frame the next one.
    pub fn hits(&mut self, share: Share, burst: u32) -> bool {
        let begins = match share {
            Share::All => return true,
            Share::OneIn(count) => {
                self.since += 1;
                let begins = self.since >= count;
                self.since = if begins { 0 } else { self.since };
                begins
            }
            // No draw within a burst, so that a burst has its length and no more.
            Share::Chance(_) if self.left > 0 => false,
            Share::Chance(share) => self.draws.below(MILLION) < u64::from(share),
        };
        if begins {
            self.left = burst.max(1);
        }
        let is_hit = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_hit
    }
}
