//! Theta-PowerTCP (Addanki et al., NSDI 2022, algorithm 2): the window follows the power of the round-trip time. It
//! needs no help of switches.

use super::power::{LEAST_CURRENT, PowerSpec};
use super::{Ack, CongestionControl, Loss, Path, bounded, rate_of};
use crate::units::{BitRate, Bytes};

/// The sender of one flow.
#[derive(Debug)]
pub struct Theta {
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
    /// The smoothed normalized power.
    power: f64,
    /// Round-trip time of the last ACK and its arrival; `None` before the first.
    last_ps: Option<(u64, u64)>,
    /// The ACK beyond this frame updates the window.
    ends_at: u64,
}

impl Theta {
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
            power: 1.0,
            last_ps: None,
            ends_at: 0,
        }
    }

    /// Algorithm 2, `normPower`:
    ///
    /// ```text
    /// theta' = (RTT - prevRTT) / dt
    /// power  = (theta' + 1) RTT / tau,  theta' + 1 at least 1/2
    /// smooth = (smooth (tau - dt) + power dt) / tau
    /// ```
    ///
    /// A sample counts for at most tau: a longer one would give the old value a negative weight.
    fn smooth_power(&mut self, ack: &Ack) {
        let Some((rtt_ps, at_ps)) = self.last_ps.replace((ack.rtt_ps, ack.now_ps)) else { return };
        let dt = ack.now_ps.saturating_sub(at_ps) as f64;
        if dt == 0.0 {
            return;
        }
        let gradient = (ack.rtt_ps as f64 - rtt_ps as f64) / dt;
        let power = (gradient + 1.0).max(LEAST_CURRENT) * ack.rtt_ps as f64 / self.tau_ps;
        let weight = dt.min(self.tau_ps) / self.tau_ps;
        self.power = self.power * (1.0 - weight) + power * weight;
    }
}

impl CongestionControl for Theta {
    fn rate(&self) -> BitRate {
        BitRate(bounded(rate_of(self.window, self.tau_ps as u64), 1, self.rate.0) as u64)
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes(self.window as u64))
    }

    /// Algorithm 2, `updateWindow`, once a round trip. So `cwnd_old`, of the time when the acknowledged frame left, is
    /// the present one:
    ///
    /// ```text
    /// cwnd = gamma (cwnd_old / power + beta) + (1 - gamma) cwnd
    /// ```
    fn acked(&mut self, ack: &Ack) {
        self.smooth_power(ack);
        if ack.cumulative <= self.ends_at {
            return;
        }
        self.ends_at = ack.next;
        let target = self.window / self.power + self.beta;
        self.window =
            (self.gamma * target + (1.0 - self.gamma) * self.window).clamp(self.frame.min(self.most), self.most);
    }

    fn lost(&mut self, loss: Loss, _: u64) {
        if loss == Loss::Timeout {
            self.window = self.frame;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PATH, ack};
    use super::*;

    #[test]
    fn theta_powertcp_window_follows_algorithm_2() {
        let mut theta = Theta::new(&PowerSpec::default(), PATH.line, &PATH);
        theta.acked(&ack(0, 10_000_000, 1, 126));
        // Power is 1: the window would grow by beta, but it fills the path already.
        assert_eq!((theta.window, theta.beta), (125_000.0, 12_500.0));
        // In 10 us, the round-trip time rises from 10 to 20 us: power is (1 + 1) 2 = 4.
        theta.acked(&ack(10_000_000, 20_000_000, 127, 200));
        let expected = 0.9 * (125_000.0 / 4.0 + 12_500.0) + 0.1 * 125_000.0;
        assert!((theta.window - expected).abs() < 1e-6, "{}", theta.window);
        // Within a round trip only power changes: half of tau later, the time is stable at 20 us, so power is 2.
        theta.acked(&ack(15_000_000, 20_000_000, 150, 210));
        assert!((theta.window - expected).abs() < 1e-6 && (theta.power - 3.0).abs() < 1e-9);
    }

    #[test]
    fn round_trip_time_that_falls_fast_does_not_open_the_window() {
        let mut theta = Theta::new(&PowerSpec::default(), PATH.line, &PATH);
        theta.acked(&ack(0, 100_000_000, 1, 126));
        // Without arrivals the time falls by 10 us in 10 us. Power is half of 90 us / 10 us.
        theta.acked(&ack(10_000_000, 90_000_000, 127, 200));
        assert!((theta.power - 4.5).abs() < 1e-9, "{}", theta.power);
        let expected = 0.9 * (125_000.0 / 4.5 + 12_500.0) + 0.1 * 125_000.0;
        assert!((theta.window - expected).abs() < 1e-6, "{}", theta.window);
    }

    #[test]
    fn rate_is_the_window_over_the_base_round_trip() {
        let mut theta = Theta::new(&PowerSpec::default(), PATH.line, &PATH);
        theta.window = 50_000.0;
        assert_eq!(theta.rate(), BitRate(40_000_000_000));
        theta.lost(Loss::Timeout, 0);
        assert_eq!(theta.window(), Some(Bytes(1000)));
    }
}
