//! Random numbers of the simulator: equal on every machine and independent of other crates.

/// xoshiro256** (Blackman & Vigna 2018), seeded by splitmix64 as its authors advise.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

impl Rng {
    /// Returns the generator of `seed` for the purpose `stream`. Streams are independent, so a fault that draws more
    /// often does not change the draws of hosts.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut state = seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95);
        Self(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// Returns 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "the generator never ends, so its values need no `Option`")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Returns a number below `bound`; zero if `bound` is zero. Lemire's multiplication has a bias of at most bound /
    /// 2^64, which is negligible.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number from `low` to `high`, both included; `low` if `high` is smaller.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Returns true with a probability of `per_million` in a million.
    #[inline]
    pub fn chance(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < u64::from(per_million)
    }

    /// Returns one of `choices`.
    ///
    /// # Panics
    /// If `choices` is empty.
    #[inline]
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// Draws a time from an exponential distribution with this mean. It uses integers (von Neumann's comparison
    /// method), because implementations of logarithms differ in the last bit.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0_u64;
        loop {
            // If a falling run has odd length, its first number is the fraction. Otherwise one more unit has passed.
            let first = self.next();
            let (mut last, mut length) = (first, 1_u32);
            loop {
                let next = self.next();
                if next > last {
                    break;
                }
                last = next;
                length += 1;
            }
            if length % 2 == 1 {
                let fraction = ((u128::from(first) * u128::from(mean)) >> 64) as u64;
                return whole.saturating_mul(mean).saturating_add(fraction);
            }
            whole += 1;
        }
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rng_matches_the_xoshiro256_reference_output() {
        // xoshiro256** from the state 1, 2, 3, 4, as the reference implementation prints it.
        let mut rng = Rng([1, 2, 3, 4]);
        let first: [u64; 4] = std::array::from_fn(|_| rng.next());
        assert_eq!(first, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn streams_of_a_seed_differ_and_seeds_do() {
        let first = |seed, stream| Rng::new(seed, stream).next();
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
    }

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_them() {
        let mut rng = Rng::new(7, 0);
        let mut seen = [0_u32; 6];
        for _ in 0..6000 {
            seen[rng.between(2, 7) as usize - 2] += 1;
        }
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.between(5, 4), 5);
        assert_eq!((0..1000).filter(|_| rng.chance(1_000_000)).count(), 1000);
    }

    #[test]
    fn exponential_times_have_their_mean_and_their_spread() {
        let mut rng = Rng::new(3, 0);
        let times: Vec<u64> = (0..100_000).map(|_| rng.exponential(1_000_000)).collect();
        let mean = times.iter().sum::<u64>() / 100_000;
        assert!((985_000..1_015_000).contains(&mean), "{mean}");
        // In an exponential distribution, a share of e^-1 exceeds the mean, and e^-3 exceeds three times the mean.
        let above = |limit| times.iter().filter(|&&time| time > limit).count();
        assert!((36_300..37_300).contains(&above(1_000_000)), "{}", above(1_000_000));
        assert!((4_700..5_260).contains(&above(3_000_000)), "{}", above(3_000_000));
    }
}
