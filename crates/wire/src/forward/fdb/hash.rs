//! The hash of the database, which names the two buckets of a station.
//!
//! Each is a product with a multiplier, whose high bits depend on all bits of the station. For a random multiplier two
//! stations share a bucket as rarely as by chance (Dietzfelbinger et al., "A reliable randomized algorithm for the
//! closest-pair problem", 1997). So a host that does not know the multipliers cannot choose addresses that share
//! buckets.

use super::Station;

/// The golden ratio, whose multiples are spread most evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const OTHER: u64 = 0xd6e8_feb8_6659_fd93;

/// Distances of addresses that cards of a rack may have. Stations at such distances must not crowd in a few buckets.
const STRIDES: [u64; 6] = [1, 2, 3, 4, 16, 256];
/// The first partial quotients of the continued fraction of a multiple, and the most that each may be: with a large one
/// its multiples come close to each other.
const QUOTIENTS: usize = 10;
const MOST_QUOTIENT: u128 = 10;
/// Candidates for a multiplier, of which one in some hundreds is taken.
const CANDIDATES: u64 = 10_000;

/// The multipliers of one run of a switch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash {
    first: u64,
    second: u64,
}

impl Hash {
    /// The hash of `seed`; zero: that of simulations, which is the same in each run.
    pub fn new(seed: u64) -> Self {
        if seed == 0 {
            return Self { first: GOLDEN, second: OTHER };
        }
        let multiplier = |number: u64| mix(seed.wrapping_add(number.wrapping_mul(GOLDEN))) | 1;
        let first = (1..CANDIDATES).map(multiplier).find(|candidate| spreads(*candidate)).unwrap_or(GOLDEN);
        Self { first, second: multiplier(CANDIDATES) }
    }

    /// The hash of the first bucket of a station.
    #[inline]
    pub fn first(self, key: u64) -> u64 {
        key.wrapping_mul(self.first)
    }

    /// The hash of the second bucket.
    #[inline]
    pub fn second(self, key: u64) -> u64 {
        (self.first(key).rotate_left(29) ^ key).wrapping_mul(self.second)
    }
}

/// Whether `multiplier` spreads stations of one VLAN at each of [`STRIDES`].
fn spreads(multiplier: u64) -> bool {
    STRIDES.iter().all(|stride| is_spread(Station::new(0, *stride).to_number().wrapping_mul(multiplier)))
}

/// Whether the multiples of `step` are spread evenly over the numbers of 64 bits.
fn is_spread(step: u64) -> bool {
    let (mut large, mut small) = (1_u128 << u64::BITS, u128::from(step));
    (0..QUOTIENTS).all(|_| {
        let quotient = large.checked_div(small).unwrap_or(u128::MAX);
        (large, small) = (small, large.checked_rem(small).unwrap_or(0));
        quotient <= MOST_QUOTIENT
    })
}

/// The mixing of SplitMix64 (Steele et al., "Fast splittable pseudorandom number generators", 2014).
fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multipliers_differ_by_seed_and_are_odd_and_spread() {
        assert!(is_spread(GOLDEN) && [1, u64::MAX, u64::MAX / 3].iter().all(|step| !is_spread(*step)));
        let hashes: Vec<Hash> = (1..200).map(Hash::new).collect();
        assert!(hashes.iter().all(|hash| spreads(hash.first) && hash.first % 2 == 1 && hash.second % 2 == 1));
        let mut multipliers: Vec<u64> = hashes.iter().flat_map(|hash| [hash.first, hash.second]).collect();
        multipliers.sort_unstable();
        multipliers.dedup();
        assert_eq!(multipliers.len(), 2 * hashes.len());
    }
}
