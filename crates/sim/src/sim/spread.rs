//! Collects times for quantiles, in bounded memory and without random numbers.

use super::outcome::Spread;

/// A collector of times. It keeps every value while there are few, and every 2^n-th of many.
#[derive(Debug, Clone, Default)]
pub struct Collector {
    spread: Spread,
    kept: Vec<u64>,
    stride: u64,
}

impl Collector {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, ps: u64) {
        let spread = &mut self.spread;
        spread.least_ps = if spread.count == 0 { ps } else { spread.least_ps.min(ps) };
        spread.most_ps = spread.most_ps.max(ps);
        spread.sum_ps = spread.sum_ps.saturating_add(ps);
        let stride = self.stride.max(1);
        if spread.count.is_multiple_of(stride) {
            if self.kept.len() == Spread::KEPT {
                // The values at even indices are those at multiples of twice the stride.
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride = stride * 2;
            }
            if spread.count.is_multiple_of(self.stride.max(1)) {
                self.kept.push(ps);
            }
        }
        spread.count += 1;
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.spread.count
    }

    /// Returns the statistics of the collected values.
    #[must_use]
    pub fn finish(&self) -> Spread {
        let mut kept = self.kept.clone();
        kept.sort_unstable();
        let quantile = |per_cent: usize| kept.get((kept.len() * per_cent).div_ceil(100).saturating_sub(1));
        Spread {
            p50_ps: quantile(50).copied().unwrap_or(0),
            p99_ps: quantile(99).copied().unwrap_or(0),
            ..self.spread.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(values: impl Iterator<Item = u64>) -> Spread {
        let mut collector = Collector::default();
        values.for_each(|value| collector.add(value));
        collector.finish()
    }

    #[test]
    fn spread_of_few_values_is_exact() {
        assert_eq!(collect(std::iter::empty()), Spread::default());
        let spread = collect([5, 1, 4, 2, 3].into_iter());
        assert_eq!((spread.count, spread.sum_ps, spread.least_ps, spread.most_ps), (5, 15, 1, 5));
        assert_eq!((spread.p50_ps, spread.p99_ps, spread.mean_ps()), (3, 5, 3));
    }

    #[test]
    fn spread_of_many_values_has_near_quantiles_and_exact_maximum() {
        let spread = collect((1..=1_000_000).map(|n| n * 7 % 1_000_003));
        assert!(spread.p50_ps.abs_diff(500_000) < 5_000, "{}", spread.p50_ps);
        assert!(spread.p99_ps.abs_diff(990_000) < 2_000, "{}", spread.p99_ps);
        assert_eq!(spread.count, 1_000_000);
        assert_eq!(spread.most_ps, (1..=1_000_000_u64).map(|n| n * 7 % 1_000_003).max().unwrap());
    }
}
