//! The limit on all lossless groups of a port together (port level of Dynamic and Shared Headroom): the sum of their
//! limits.

use crate::mmu::{GroupProfile, PortProfile, Threshold};
use crate::units::Cells;

/// Fractional bits of the sum of alphas: the smallest alpha is 2^-7.
const FRACTION: i8 = 7;

/// X_poff, and the level at which the port may resume. The sums over the lossless groups are computed once, so that a
/// packet costs one multiplication for any number of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mmu) struct PortThreshold {
    /// Sum of the dynamic thresholds' alphas, in parts of 2^7.
    alphas: u64,
    /// Sum of the static thresholds; saturates, as the limit does.
    cells: Cells,
    /// Sum of the groups' XON offsets.
    xon_offset: Cells,
    /// Sum of the groups' XON floors.
    xon_floor: Cells,
}

impl PortThreshold {
    /// Creates the threshold for the lossless groups of `profile`.
    pub(in crate::mmu) fn new(profile: &PortProfile) -> Self {
        let nothing = Self { alphas: 0, cells: Cells(0), xon_offset: Cells(0), xon_floor: Cells(0) };
        profile.groups.iter().filter(|group| group.lossless).fold(nothing, Self::with)
    }

    fn with(mut self, group: &GroupProfile) -> Self {
        match group.threshold {
            Threshold::Dynamic(alpha) => self.alphas += 1 << (alpha.exponent() + FRACTION),
            Threshold::Static(cells) => self.cells = self.cells.saturating_add(cells),
        }
        self.xon_offset = self.xon_offset.saturating_add(group.xon_offset);
        self.xon_floor = self.xon_floor.saturating_add(group.xon_floor);
        self
    }

    /// The most cells that the groups together may hold of the pool while it has `free` free cells. Rounded down once,
    /// not per group.
    #[inline]
    pub(in crate::mmu) fn limit(self, free: Cells) -> Cells {
        // At most 8 * 2^10 * 2^32: no overflow.
        let limit = ((self.alphas * u64::from(free.0)) >> FRACTION) + u64::from(self.cells.0);
        Cells(u32::try_from(limit).unwrap_or(u32::MAX))
    }

    /// Whether a paused port that holds `shared` cells of the pool may resume. `free_reserves` is the sum of its
    /// groups' free reserve cells, and the pool has `free` free cells.
    pub(in crate::mmu) fn may_resume(self, shared: Cells, free_reserves: Cells, free: Cells) -> bool {
        // With 64 bits the sums cannot overflow.
        let cells = |count: Cells| u64::from(count.0);
        let (shared, limit, free_reserves) = (cells(shared), cells(self.limit(free)), cells(free_reserves));
        let (offset, floor) = (cells(self.xon_offset), cells(self.xon_floor));
        shared + offset <= limit || shared <= floor && shared + floor + offset <= limit + free_reserves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Alpha;

    fn group(lossless: bool, threshold: Threshold) -> GroupProfile {
        GroupProfile {
            lossless,
            reserve: Cells(0),
            threshold,
            xon_offset: Cells(3),
            xon_floor: Cells(2),
            headroom: Cells(0),
        }
    }

    fn alpha(exponent: i8) -> Threshold {
        Threshold::Dynamic(Alpha::from_exponent(exponent).unwrap())
    }

    #[test]
    fn port_limit_of_equal_groups_is_their_number_times_the_threshold() {
        let port = PortThreshold::new(&PortProfile::independent([group(true, alpha(-4)); 8]));
        assert_eq!(port.limit(Cells(1600)), Cells(8 * 100));
        assert!(port.may_resume(Cells(800 - 8 * 3), Cells(0), Cells(1600)));
        assert!(!port.may_resume(Cells(800 - 8 * 3 + 1), Cells(0), Cells(1600)));
        // The offsets exceed the limit of 8, so the floors decide: the reserves must have room for both.
        assert!(port.may_resume(Cells(8 * 2), Cells(8 * (2 + 3 + 1)), Cells(16)));
        assert!(!port.may_resume(Cells(8 * 2), Cells(8 * (2 + 3 + 1) - 1), Cells(16)));
    }

    #[test]
    fn port_limit_is_the_sum_over_lossless_groups() {
        let mut groups = [group(false, alpha(3)); 8];
        groups[1] = group(true, alpha(-1));
        groups[3] = group(true, alpha(1));
        groups[4] = group(true, Threshold::Static(Cells(7)));
        let port = PortThreshold::new(&PortProfile::independent(groups));
        assert_eq!(port.limit(Cells(101)), Cells(50 + 202 + 7));
        assert_eq!(port.limit(Cells(0)), Cells(7));
    }

    #[test]
    fn port_limit_saturates_at_the_largest_count() {
        let port = PortThreshold::new(&PortProfile::independent([group(true, alpha(3)); 8]));
        assert_eq!(port.limit(Cells(u32::MAX)), Cells(u32::MAX));
        let port = PortThreshold::new(&PortProfile::independent([group(true, Threshold::Static(Cells(u32::MAX))); 8]));
        assert_eq!(port.limit(Cells(u32::MAX)), Cells(u32::MAX));
    }
}
