//! A policer of copies that no ingress port uses up alone.

use crate::qos::policer::Policer;
use crate::units::Ticks;

/// The most copies by which the port that has most may lead.
const MOST_LEAD: u8 = 64;

/// A policer whose last half is not for the port that has had most of the latest copies.
///
/// So a port that floods passes at the whole rate while the others are quiet, and leaves half of the burst to each
/// frame of theirs. The port is that of the majority vote by Boyer and Moore: a policer for each port would take a
/// hundred times the memory. Several ports that flood are not told from the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct FairPolicer {
    policer: Policer,
    /// The port that has most, and by how many copies.
    port: u8,
    lead: u8,
}

impl FairPolicer {
    /// Creates a policer of `rate` copies a second, and `burst` in a row of several ports, on a clock of `hz` ticks a
    /// second.
    pub fn new(rate: u32, burst: u32, hz: u64) -> Self {
        Self { policer: Policer::new(rate, burst, hz), port: 0, lead: 0 }
    }

    /// Whether a copy of a frame from `ingress` may pass at `now`.
    pub fn passes(&mut self, ingress: u8, now: Ticks) -> bool {
        let has_most = self.lead > 0 && self.port == ingress;
        if has_most && !self.policer.is_half_full(now) || !self.policer.passes(now) {
            return false;
        }
        match self.lead {
            0 => (self.port, self.lead) = (ingress, 1),
            lead if has_most => self.lead = (lead + 1).min(MOST_LEAD),
            _ => self.lead -= 1,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 1_000_000_000;

    #[test]
    fn port_that_floods_passes_at_the_rate_and_leaves_others_half_of_the_burst() {
        for flooding in [0, 9] {
            let mut policer = FairPolicer::new(100, 64, HZ);
            let (mut flooded, mut passed) = (0, 0);
            for step in 0..100_000_u64 {
                let now = Ticks(HZ + step * 100_000);
                flooded += u64::from(policer.passes(flooding, now));
                // Forty a second of two others, and once 25 in a row.
                let others = if step == 50_000 { 25 } else { u64::from(step % 250 == 0) };
                passed += (0..others).filter(|_| policer.passes(3 + (step % 2) as u8, now)).count() as u64;
            }
            assert_eq!(passed, 399 + 25, "of the others");
            assert!((1_000..=1_064).contains(&(flooded + passed)), "{flooded} and {passed} in 10 s");
        }
    }

    #[test]
    fn policer_of_one_copy_a_second_passes_it() {
        let mut policer = FairPolicer::new(1, 1, HZ);
        let passed = (0..50).filter(|tenth| policer.passes(0, Ticks(HZ + tenth * HZ / 10))).count();
        assert_eq!(passed, 5);
    }
}
