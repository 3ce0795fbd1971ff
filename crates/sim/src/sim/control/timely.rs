//! TIMELY (Mittal et al., SIGCOMM 2015): the rate follows the gradient of the round-trip time.

use super::{Ack, CongestionControl, bounded};
use crate::units::{BitRate, Bytes, Nanos};

/// Parameters of TIMELY. Those that the paper does not give are of Zhu et al. (CoNEXT 2016, footnote 4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimelySpec {
    /// alpha, the weight of a new difference of round-trip times (CoNEXT 2016: 0.875).
    pub weight: f64,
    /// beta, the factor of decreases (section 5.1: 0.8).
    pub beta: f64,
    /// delta, the additive step (section 5.1: 10 Mbit/s).
    pub additive: BitRate,
    /// T_low: below it the rate only increases (section 5.1: 50 us).
    pub low: Nanos,
    /// T_high: above it the rate only decreases (section 5.1: 500 us).
    pub high: Nanos,
    /// minRTT, by which gradients are normalized (CoNEXT 2016: 20 us).
    pub least_rtt: Nanos,
    /// Completions in a row with a gradient of zero or less, after which increases are fivefold (section 4.3: N = 5).
    pub hyper_after: u32,
    /// The step of these increases; `None`: five additive ones (section 4.3).
    pub hyper: Option<BitRate>,
    /// Whether increases below T_low count and are hyperactive too, as in HPCC's simulator.
    pub hyper_below_low: bool,
    /// The rate never falls below this.
    pub least: BitRate,
    /// Bytes of a segment, of which each has one completion (section 5: 16 kB to 64 kB); `None`: those of a round trip,
    /// as in HPCC's comparison.
    pub segment: Option<Bytes>,
    /// Rate at which a flow begins; `None`: its highest. The paper begins slower if the host has flows.
    pub initial: Option<BitRate>,
}

impl Default for TimelySpec {
    fn default() -> Self {
        Self {
            weight: 0.875,
            beta: 0.8,
            additive: BitRate(10_000_000),
            low: Nanos(50_000),
            high: Nanos(500_000),
            least_rtt: Nanos(20_000),
            hyper_after: 5,
            hyper: None,
            hyper_below_low: false,
            least: BitRate(10_000_000),
            segment: None,
            initial: None,
        }
    }
}

/// Additive steps of a hyperactive increase (section 4.3: N = 5).
const HYPER_STEPS: f64 = 5.0;

/// The sender of one flow.
#[derive(Debug)]
pub struct Timely {
    spec: TimelySpec,
    most: u64,
    least_rtt_ps: f64,
    /// The rate, in bit/s.
    rate: f64,
    /// The last round-trip time; `None` before the first.
    last_ps: Option<u64>,
    /// rtt_diff, the smoothed difference of round-trip times, in picoseconds.
    diff_ps: f64,
    /// Completions in a row with a gradient of zero or less.
    steps: u32,
    /// The ACK beyond this frame completes a segment of a round trip.
    ends_at: u64,
    /// Bytes that were acknowledged since the last completion.
    acked_bytes: u64,
}

impl Timely {
    /// Begins a flow of at most `rate`.
    #[must_use]
    pub fn new(spec: &TimelySpec, rate: BitRate) -> Self {
        let least_rtt_ps = spec.least_rtt.0.max(1) as f64 * 1e3;
        Self {
            spec: *spec,
            most: rate.0,
            least_rtt_ps,
            rate: spec.initial.unwrap_or(rate).0.min(rate.0) as f64,
            last_ps: None,
            diff_ps: 0.0,
            steps: 0,
            ends_at: 0,
            acked_bytes: 0,
        }
    }

    /// Handles the round-trip time of a segment. Algorithm 1:
    ///
    /// ```text
    /// new_rtt_diff = new_rtt - prev_rtt
    /// rtt_diff = (1 - alpha) rtt_diff + alpha new_rtt_diff
    /// normalized_gradient = rtt_diff / minRTT
    /// if new_rtt < T_low:            rate = rate + delta
    /// else if new_rtt > T_high:      rate = rate (1 - beta (1 - T_high / new_rtt))
    /// else if normalized_gradient <= 0:  rate = rate + N delta
    /// else:                          rate = rate (1 - beta normalized_gradient)
    /// ```
    fn complete(&mut self, rtt_ps: u64) {
        let Some(last) = self.last_ps.replace(rtt_ps) else { return };
        let spec = &self.spec;
        let diff = rtt_ps as f64 - last as f64;
        self.diff_ps = (1.0 - spec.weight) * self.diff_ps + spec.weight * diff;
        let gradient = self.diff_ps / self.least_rtt_ps;
        let (low, high) = (spec.low.0 * 1000, spec.high.0 * 1000);
        let step = spec.additive.0 as f64;
        let hyper = spec.hyper.map_or(HYPER_STEPS * step, |hyper| hyper.0 as f64);
        let rate = if rtt_ps < low && !spec.hyper_below_low {
            self.rate + step
        } else if rtt_ps > high {
            self.steps = 0;
            self.rate * (1.0 - spec.beta * (1.0 - high as f64 / rtt_ps as f64))
        } else if gradient <= 0.0 || rtt_ps < low {
            self.steps = self.steps.saturating_add(1);
            self.rate + if self.steps >= spec.hyper_after { hyper } else { step }
        } else {
            self.steps = 0;
            self.rate * (1.0 - spec.beta * gradient)
        };
        self.rate = bounded(rate, spec.least.0, self.most);
    }
}

impl CongestionControl for Timely {
    fn rate(&self) -> BitRate {
        BitRate(self.rate as u64)
    }

    /// The last ACK of a segment completes it. Without a size, a segment is what was in flight when the last one was
    /// completed, so there is one completion a round trip.
    fn acked(&mut self, ack: &Ack) {
        self.acked_bytes += ack.bytes;
        let is_complete = match self.spec.segment {
            Some(segment) => self.acked_bytes >= segment.0,
            None => ack.cumulative > self.ends_at,
        };
        if is_complete {
            (self.ends_at, self.acked_bytes) = (ack.next, 0);
            self.complete(ack.rtt_ps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PATH, ack};
    use super::*;

    /// The rate in Mbit/s after completions with these round-trip times in microseconds.
    fn rates(from_mbps: u64, rtts_us: &[u64]) -> Vec<u64> {
        let mut timely = Timely::new(&TimelySpec::default(), PATH.line);
        timely.rate = from_mbps as f64 * 1e6;
        let mut frame = 0;
        let rates = rtts_us.iter().map(|rtt| {
            frame += 10;
            timely.acked(&ack(0, rtt * 1_000_000, frame, frame + 9));
            timely.rate().0 / 1_000_000
        });
        rates.collect()
    }

    #[test]
    fn timely_rate_follows_algorithm_1() {
        // Below T_low: 10 Mbit/s more each. The first completion has no predecessor.
        assert_eq!(rates(1000, &[20, 30, 40]), [1000, 1010, 1020]);
        // Above T_high: by 0.8 (1 - 500/1000) = 0.4.
        assert_eq!(rates(1000, &[1000, 1000]), [1000, 600]);
        // In between, a fall: 1 step, and from the fifth on 5 steps.
        assert_eq!(rates(1000, &[200, 190, 180, 170, 160, 150, 140]), [1000, 1010, 1020, 1030, 1040, 1090, 1140]);
        // A rise by 2 us: the gradient is 1.75 us / 20 us, so the rate falls by 0.8 * 0.0875 = 7 %.
        assert_eq!(rates(1000, &[100, 102]), [1000, 930]);
        // A steep rise would make the rate negative.
        assert_eq!(rates(1000, &[100, 300]), [1000, 10]);
    }

    #[test]
    fn flow_begins_at_its_initial_rate() {
        let begin = |initial| Timely::new(&TimelySpec { initial, ..TimelySpec::default() }, PATH.line).rate();
        assert_eq!(begin(None), PATH.line);
        assert_eq!(begin(Some(BitRate(7_000_000_000))), BitRate(7_000_000_000));
        assert_eq!(begin(Some(BitRate(400_000_000_000))), PATH.line, "never above the flow's rate");
    }

    #[test]
    fn timely_without_segment_updates_its_rate_once_a_round_trip() {
        let mut timely = Timely::new(&TimelySpec::default(), PATH.line);
        timely.rate = 1e9;
        for frame in 1..=40 {
            timely.acked(&ack(0, 20_000_000, frame, frame + 10));
        }
        // Frames 1, 12, 23 and 34 complete a segment; the first has no predecessor.
        assert_eq!(timely.rate(), BitRate(1_030_000_000));
    }

    #[test]
    fn timely_with_segment_updates_its_rate_once_a_segment() {
        let spec = TimelySpec { segment: Some(Bytes(16_000)), ..TimelySpec::default() };
        let mut timely = Timely::new(&spec, PATH.line);
        timely.rate = 1e9;
        // Each ACK is for 1000 bytes: frames 16, 32 and 48 complete a segment; the first has no predecessor.
        for frame in 1..=63 {
            timely.acked(&ack(0, 20_000_000, frame, frame + 10));
        }
        assert_eq!(timely.rate(), BitRate(1_020_000_000));
    }
}
