//! The filtered depth by which Reverie limits a lossy queue, and a lossless group by its share of the pool (Addanki et
//! al., NSDI 2024), written from its description.
//!
//! A depth that rises counts slowly, so that a burst may pass the limit for a while. A depth that falls counts at once.
//! Only simulated switches use it.

use crate::units::Cells;

/// Part of the difference by which each departure moves the filter: 2^-7. The artefact keeps 99 % of the old value.
const SHIFT: u32 = 7;

/// The filtered depth of one queue, or share of one group. It changes when a frame departs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DepthFilter {
    /// In parts of 2^-7 of a cell.
    value: u64,
}

impl DepthFilter {
    /// Moves the filter to `depth`, which the queue has after a frame departed.
    pub fn depart(&mut self, depth: Cells) {
        let depth = u64::from(depth.0);
        let moved = self.value - (self.value >> SHIFT) + depth;
        self.value = moved.min(depth << SHIFT);
    }

    /// Returns the filtered depth of a queue of `depth`, rounded down: never more than `depth`.
    #[must_use]
    pub fn of(&self, depth: Cells) -> Cells {
        depth.min(Cells((self.value >> SHIFT) as u32))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A queue stays at 1,280 cells: each departure adds 1/128 of what is missing.
    #[test]
    fn rising_depth_counts_slowly_and_a_falling_one_at_once() {
        let (mut filter, deep) = (DepthFilter::default(), Cells(1_280));
        assert_eq!(filter.of(deep), Cells(0));
        let mut after = |departures: usize, depth: Cells| {
            (0..departures).for_each(|_| filter.depart(depth));
            filter.of(depth)
        };
        assert_eq!(after(1, deep), Cells(10));
        assert_eq!(after(1, deep), Cells(19), "10 + 1,270/128");
        assert_eq!(after(126, deep), Cells(811), "1,280 * (1 - (127/128)^128) is 810.9");
        assert_eq!(after(1, Cells(100)), Cells(100));
        assert_eq!(after(1, Cells(0)), Cells(0));
        assert_eq!(after(1, deep), Cells(10));
    }

    proptest! {
        /// The filter is that of real numbers, less at most one cell for its rounding.
        #[test]
        fn depth_filter_agrees_with_real_numbers(depths in prop::collection::vec(0_u32..50_000, 1..400)) {
            let (mut filter, mut real) = (DepthFilter::default(), 0.0_f64);
            for depth in depths {
                filter.depart(Cells(depth));
                let depth = f64::from(depth);
                real = (real + (depth - real) / 128.0).min(depth);
                let value = f64::from(filter.of(Cells(depth as u32)).0);
                prop_assert!(value <= real + 1.0 && value >= real - 2.0, "{value} and {real}");
            }
        }
    }
}
