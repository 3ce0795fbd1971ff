//! Theta-PowerTCP (Addanki et al., NSDI 2022, algorithm 2): the window follows the power of the round-trip time. It
//! needs no help of switches.

use super::power::{LEAST_CURRENT, PowerSpec, PowerWindow};
use super::{Ack, CongestionControl, Loss, Path};
use crate::units::{BitRate, Bytes};

/// The sender of one flow.
#[derive(Debug)]
pub struct Theta {
    window: PowerWindow,
    /// Round-trip time of the last ACK and its arrival; `None` before the first.
    last_ps: Option<(u64, u64)>,
    /// The ACK beyond this frame updates the window.
    ends_at: u64,
}

impl Theta {
    /// Begins a flow of at most `rate` on `path`, with a window that fills it.
    #[must_use]
    pub fn new(spec: &PowerSpec, rate: BitRate, path: &Path) -> Self {
        Self { window: PowerWindow::new(spec, rate, path), last_ps: None, ends_at: 0 }
    }

    /// Algorithm 2, `normPower`:
    ///
    /// ```text
    /// theta' = (RTT - prevRTT) / dt
    /// power  = (theta' + 1) RTT / tau,  theta' + 1 at least 1/2
    /// ```
    fn smooth_power(&mut self, ack: &Ack) {
        let Some((rtt_ps, at_ps)) = self.last_ps.replace((ack.rtt_ps, ack.now_ps)) else { return };
        let dt = ack.now_ps.saturating_sub(at_ps) as f64;
        if dt == 0.0 {
            return;
        }
        let gradient = (ack.rtt_ps as f64 - rtt_ps as f64) / dt;
        let power = (gradient + 1.0).max(LEAST_CURRENT) * ack.rtt_ps as f64 / self.window.tau_ps;
        self.window.smooth(power, dt);
    }
}

impl CongestionControl for Theta {
    fn rate(&self) -> BitRate {
        self.window.rate()
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes(self.window.bytes as u64))
    }

    /// Algorithm 2 updates the window once a round trip. So `cwnd_old`, of the time when the acknowledged frame left,
    /// is the present one.
    fn acked(&mut self, ack: &Ack) {
        self.smooth_power(ack);
        if ack.cumulative > self.ends_at {
            self.ends_at = ack.next;
            self.window.update(self.window.bytes);
        }
    }

    fn lost(&mut self, loss: Loss, _: u64) {
        if loss == Loss::Timeout {
            self.window.restart();
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
        assert_eq!((theta.window.bytes, theta.window.beta), (125_000.0, 12_500.0));
        // In 10 us, the round-trip time rises from 10 to 20 us: power is (1 + 1) 2 = 4.
        theta.acked(&ack(10_000_000, 20_000_000, 127, 200));
        let expected = 0.9 * (125_000.0 / 4.0 + 12_500.0) + 0.1 * 125_000.0;
        assert!((theta.window.bytes - expected).abs() < 1e-6, "{}", theta.window.bytes);
        // Within a round trip only power changes: half of tau later, the time is stable at 20 us, so power is 2.
        theta.acked(&ack(15_000_000, 20_000_000, 150, 210));
        assert!((theta.window.bytes - expected).abs() < 1e-6 && (theta.window.power - 3.0).abs() < 1e-9);
    }

    #[test]
    fn round_trip_time_that_falls_fast_does_not_open_the_window() {
        let mut theta = Theta::new(&PowerSpec::default(), PATH.line, &PATH);
        theta.acked(&ack(0, 100_000_000, 1, 126));
        // Without arrivals the time falls by 10 us in 10 us. Power is half of 90 us / 10 us.
        theta.acked(&ack(10_000_000, 90_000_000, 127, 200));
        assert!((theta.window.power - 4.5).abs() < 1e-9, "{}", theta.window.power);
        let expected = 0.9 * (125_000.0 / 4.5 + 12_500.0) + 0.1 * 125_000.0;
        assert!((theta.window.bytes - expected).abs() < 1e-6, "{}", theta.window.bytes);
    }

    #[test]
    fn rate_is_the_window_over_the_base_round_trip() {
        let mut theta = Theta::new(&PowerSpec::default(), PATH.line, &PATH);
        theta.window.bytes = 50_000.0;
        assert_eq!(theta.rate(), BitRate(40_000_000_000));
        theta.lost(Loss::Timeout, 0);
        assert_eq!(theta.window(), Some(Bytes(1000)));
    }
}
