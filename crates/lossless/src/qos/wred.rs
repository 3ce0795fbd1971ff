//! WRED on the instantaneous depth of a queue (RFC 3168 for the codepoints, SONiC and DCQCN for the shape of the
//! profile).

use crate::units::{Bytes, Probability};

/// The probability of one, in parts of 2^32.
pub const CERTAIN: u64 = 1 << 32;

/// A WRED profile. Between `kmin` and `kmax` the probability rises from zero to `pmax`; from `kmax` on it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WredProfile {
    /// Depth up to which no packet is marked or dropped.
    pub kmin: Bytes,
    /// Depth from which every packet is marked or dropped. If it equals `kmin`, only deeper queues are.
    pub kmax: Bytes,
    /// Probability just below `kmax`.
    pub pmax: Probability,
    /// pmax / (kmax - kmin) in parts of 2^48 per byte, so that the packet path multiplies and never divides.
    slope: u64,
}

/// The verdict of WRED on one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WredVerdict {
    /// The packet stays unchanged.
    Pass,
    /// The packet is marked if it is ECN-capable, or dropped if it is not and its class is lossy.
    Congested,
}

impl WredProfile {
    /// Creates a profile. Returns `None` if `kmax < kmin`, `kmax` needs more than 32 bits, or `pmax` is more than one.
    #[must_use]
    pub fn new(kmin: Bytes, kmax: Bytes, pmax: Probability) -> Option<Self> {
        if kmax < kmin || pmax > Probability::ONE || kmax.0 > u64::from(u32::MAX) {
            return None;
        }
        let slope = (u64::from(pmax.0) << 32).checked_div(kmax.0 - kmin.0).unwrap_or(0);
        Some(Self { kmin, kmax, pmax, slope })
    }

    /// Returns the probability at `depth`, in parts of 2^32.
    #[inline]
    #[must_use]
    pub fn probability(&self, depth: Bytes) -> u64 {
        if depth.0 >= self.kmax.0 && depth.0 > self.kmin.0 {
            CERTAIN
        } else {
            // `depth` is at most `kmax`, so the product is at most pmax in parts of 2^48.
            (depth.0.saturating_sub(self.kmin.0) * self.slope) >> 16
        }
    }

    /// Judges a packet at `depth`. Calls `draw` for a uniformly random number only if the probability is between zero
    /// and one. So the packets of short and of very long queues can leave in runs, without a judgement of each.
    ///
    /// RFC 3168 section 5: "If so, then instead of dropping the packet, the router MAY instead set the CE codepoint in
    /// the IP header." The code deviates from section 5.1, "the CE codepoint should not be set by a router based on
    /// the instantaneous queue size", because DCQCN needs marks by that size.
    #[inline]
    #[must_use]
    pub fn judge(&self, depth: Bytes, draw: impl FnOnce() -> u32) -> WredVerdict {
        let probability = self.probability(depth);
        let is_congested = probability > 0 && (probability == CERTAIN || u64::from(draw()) < probability);
        if is_congested { WredVerdict::Congested } else { WredVerdict::Pass }
    }
}

/// Marsaglia's xorshift32, the random numbers of WRED, one generator per lcore. Its quality suffices for marking, at a
/// few cycles per number.
#[derive(Debug, Clone)]
pub struct XorShift(u32);

impl XorShift {
    /// Creates a generator from `seed`. Zero would yield only zeros and is replaced.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self(if seed == 0 { 0x9e37_79b9 } else { seed })
    }

    /// Returns the next 32 random bits.
    #[inline]
    pub fn roll(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(kmin: u64, kmax: u64, pmax: &str) -> WredProfile {
        WredProfile::new(Bytes(kmin), Bytes(kmax), pmax.parse().unwrap()).unwrap()
    }

    #[test]
    fn wred_marks_nothing_below_kmin_and_everything_from_kmax() {
        let wred = profile(1000, 2000, "5%");
        for draw in [0, 1, u32::MAX] {
            assert_eq!(wred.judge(Bytes(1000), || draw), WredVerdict::Pass);
            assert_eq!(wred.judge(Bytes(2000), || draw), WredVerdict::Congested);
        }
    }

    #[test]
    fn a_step_profile_marks_above_its_step_only() {
        let wred = profile(1000, 1000, "100%");
        assert_eq!(wred.judge(Bytes(1000), || 0), WredVerdict::Pass);
        assert_eq!(wred.judge(Bytes(1001), || u32::MAX), WredVerdict::Congested);
    }

    #[test]
    fn a_packet_whose_verdict_is_certain_draws_no_number() {
        let wred = profile(1000, 2000, "5%");
        assert_eq!(wred.judge(Bytes(1000), || panic!("a draw")), WredVerdict::Pass);
        assert_eq!(wred.judge(Bytes(2000), || panic!("a draw")), WredVerdict::Congested);
        assert_eq!(wred.judge(Bytes(1001), || 0), WredVerdict::Congested);
    }

    #[test]
    fn marking_rate_between_kmin_and_kmax_is_linear() {
        let wred = profile(0, 100_000, "10%");
        let mut rng = XorShift::new(7);
        let rolls = 1_000_000;
        let marked = (0..rolls).filter(|_| wred.judge(Bytes(50_000), || rng.roll()) == WredVerdict::Congested).count();
        let share = marked as f64 / f64::from(rolls);
        assert!((0.048..0.052).contains(&share), "half way up to 10 % is 5 %, got {share}");
    }

    #[test]
    fn marking_probability_of_a_wide_profile_is_linear() {
        let wred = profile(1_000_000, 60_000_000, "1%");
        let half_way = wred.probability(Bytes(30_500_000)) as f64 / (1_u64 << 32) as f64;
        assert!((0.00499..0.00501).contains(&half_way), "{half_way}");
    }

    #[test]
    fn wred_profile_with_impossible_thresholds_is_refused() {
        assert!(WredProfile::new(Bytes(2), Bytes(1), Probability::ONE).is_none());
        assert!(WredProfile::new(Bytes(1), Bytes(2), Probability(70_000)).is_none());
        assert!(WredProfile::new(Bytes(1), Bytes(1 << 40), Probability::ONE).is_none());
    }
}
