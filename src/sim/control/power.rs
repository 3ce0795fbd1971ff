//! PowerTCP (Addanki et al., NSDI 2022, algorithm 1): the window follows power, which in-band telemetry shows. Power is
//! the arrival rate of a hop times the bytes in its queue and the path.

use super::{Ack, CongestionControl, Loss, Path, bounded, rate_of, with_last};
use crate::units::{BitRate, Bytes};
use crate::wire::inband::Hops;

/// Parameters of PowerTCP and of its theta form; the default is the paper's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerSpec {
    /// gamma, the weight of a new window (section 4.1: 0.9).
    pub gamma: f64,
    /// N, the number of flows that a host expects: beta is the bandwidth-delay product over N (section 4.1).
    pub flows: f64,
}

impl Default for PowerSpec {
    fn default() -> Self {
        Self { gamma: 0.9, flows: 10.0 }
    }
}

/// The sender of one flow.
#[derive(Debug)]
pub struct Power {
    gamma: f64,
    rate: BitRate,
    /// tau, the base round-trip time, in picoseconds.
    tau_ps: f64,
    frame: f64,
    /// beta, the additive increase, in bytes.
    beta: f64,
    /// cwnd, in bytes, and its largest value.
    window: f64,
    most: f64,
    /// cwnd when the frames that are acknowledged now were sent, a round trip ago, and that of the present ones.
    old: f64,
    current: f64,
    /// The smoothed normalized power.
    power: f64,
    /// The notes of the last ACK; empty before the first.
    last: Hops,
    /// The ACK beyond this frame ends a round trip.
    ends_at: u64,
}

impl Power {
    /// Begins a flow of at most `rate` on `path`, with a window that fills it.
    #[must_use]
    pub fn new(spec: &PowerSpec, rate: BitRate, path: &Path) -> Self {
        let most = path.bdp_bytes();
        Self {
            gamma: spec.gamma,
            rate,
            tau_ps: path.base_rtt_ps.max(1) as f64,
            frame: path.frame.0 as f64,
            beta: most / spec.flows,
            window: most,
            most,
            old: most,
            current: most,
            power: 1.0,
            last: Hops::default(),
            ends_at: 0,
        }
    }

    /// Algorithm 1, `normPower`; false if the notes do not show it.
    ///
    /// ```text
    /// for each hop i:
    ///     q' = (qlen - prev qlen) / dt,  mu = (txBytes - prev txBytes) / dt
    ///     lambda = q' + mu                   current
    ///     nu = qlen + b tau                  voltage
    ///     power = lambda nu / (b b tau)
    /// the largest power, with its dt:
    /// smooth = (smooth (tau - dt) + power dt) / tau
    /// ```
    fn smooth_power(&mut self, hops: Hops) -> bool {
        let last = std::mem::replace(&mut self.last, hops);
        let (mut most, mut dt_ps) = (-1.0, 0.0);
        let tau = self.tau_ps / 1e12;
        for (hop, last) in with_last(&hops, &last) {
            let ns = hop.ns_since(last);
            if ns == 0 {
                continue;
            }
            let (seconds, rate) = (ns as f64 / 1e9, hop.rate().0 as f64 / 8.0);
            let (queue, before) = (hop.queue_bytes() as f64, last.queue_bytes() as f64);
            let current = ((queue - before) / seconds + hop.bytes_since(last) as f64 / seconds).max(0.0);
            let power = current * (queue + rate * tau) / (rate * rate * tau);
            if power > most {
                (most, dt_ps) = (power, ns as f64 * 1e3);
            }
        }
        if dt_ps == 0.0 {
            return false;
        }
        let weight = dt_ps.min(self.tau_ps) / self.tau_ps;
        self.power = self.power * (1.0 - weight) + most * weight;
        true
    }
}

impl CongestionControl for Power {
    fn rate(&self) -> BitRate {
        BitRate(bounded(rate_of(self.window, self.tau_ps as u64), 1, self.rate.0) as u64)
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes(self.window as u64))
    }

    /// Algorithm 1, `updateWindow`, with the window of a round trip ago:
    ///
    /// ```text
    /// cwnd = gamma (cwnd_old / power + beta) + (1 - gamma) cwnd
    /// ```
    fn acked(&mut self, ack: &Ack) {
        if !self.smooth_power(ack.hops) {
            return;
        }
        let target = self.old / self.power.max(1e-6) + self.beta;
        self.window =
            (self.gamma * target + (1.0 - self.gamma) * self.window).clamp(self.frame.min(self.most), self.most);
        if ack.cumulative > self.ends_at {
            self.ends_at = ack.next;
            (self.old, self.current) = (self.current, self.window);
        }
    }

    fn lost(&mut self, loss: Loss, _: u64) {
        if loss == Loss::Timeout {
            (self.window, self.old, self.current) = (self.frame, self.frame, self.frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PATH, ack, noted};
    use super::*;

    #[test]
    fn window_follows_algorithm_1() {
        let mut power = Power::new(&PowerSpec::default(), PATH.line, &PATH);
        power.acked(&noted(ack(0, 10_000_000, 1, 126), 0, 0, 0));
        assert_eq!(power.window, 125_000.0, "the first notes have nothing to compare with");
        // In 10 us the port sent 124,928 B and its queue grew by 62,400 B: current 1.498624, voltage 1.4992.
        power.acked(&noted(ack(0, 10_000_000, 2, 127), 10_000, 124_928, 62_400));
        let expected = (62_400.0 + 124_928.0) / 125_000.0 * (62_400.0 + 125_000.0) / 125_000.0;
        assert!((power.power - expected).abs() < 1e-9, "{}", power.power);
        let window = 0.9 * (125_000.0 / expected + 12_500.0) + 0.1 * 125_000.0;
        assert!((power.window - window).abs() < 1e-6, "{}", power.window);
        // A falling queue lowers power before it is empty: half of tau, 62,464 B sent, 31,200 B fewer queued.
        power.acked(&noted(ack(0, 10_000_000, 3, 128), 15_000, 187_392, 31_200));
        let sample = (62_464.0 - 31_200.0) / 62_500.0 * (31_200.0 + 125_000.0) / 125_000.0;
        assert!((power.power - (0.5 * expected + 0.5 * sample)).abs() < 1e-9, "{}", power.power);
        // Frames acknowledged after the next round trip were sent with the window at the end of this one.
        assert_eq!(power.old, 125_000.0);
        power.acked(&noted(ack(0, 10_000_000, 200, 300), 16_000, 199_936, 31_200));
        assert!((power.old - window).abs() < 1e-6, "{}", power.old);
    }
}
