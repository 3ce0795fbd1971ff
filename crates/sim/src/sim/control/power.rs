//! PowerTCP (Addanki et al., NSDI 2022, algorithm 1): the window follows power, which in-band telemetry shows. Power is
//! the arrival rate of a hop times the bytes in its queue and the path.

use std::collections::VecDeque;

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

/// Least current, as a share of a hop's rate. A sender whose window was cut below its bytes in flight waits, so a queue
/// may drain without arrivals. Power would then be zero, and all windows would open while the queue is long. The
/// authors' simulator bounds the theta form so; the paper has no bound.
pub const LEAST_CURRENT: f64 = 0.5;

/// The window of both algorithms, and the power that it follows.
#[derive(Debug)]
pub(super) struct PowerWindow {
    gamma: f64,
    rate: BitRate,
    /// tau, the base round-trip time, in picoseconds.
    pub tau_ps: f64,
    frame: f64,
    /// beta, the additive increase, in bytes.
    pub beta: f64,
    /// cwnd, in bytes, and its largest value.
    pub bytes: f64,
    most: f64,
    /// The smoothed normalized power.
    pub power: f64,
}

impl PowerWindow {
    /// A window that fills `path`, of a flow of at most `rate`.
    pub fn new(spec: &PowerSpec, rate: BitRate, path: &Path) -> Self {
        let most = path.bdp_bytes();
        Self {
            gamma: spec.gamma,
            rate,
            tau_ps: path.base_rtt_ps.max(1) as f64,
            frame: path.frame.0 as f64,
            beta: most / spec.flows,
            bytes: most,
            most,
            power: 1.0,
        }
    }

    /// Smooths the power by a sample over `dt_ps`. It counts for at most tau: a longer one would give the old value a
    /// negative weight.
    ///
    /// ```text
    /// smooth = (smooth (tau - dt) + power dt) / tau
    /// ```
    pub fn smooth(&mut self, power: f64, dt_ps: f64) {
        let weight = dt_ps.min(self.tau_ps) / self.tau_ps;
        self.power = self.power * (1.0 - weight) + power * weight;
    }

    /// `updateWindow` of both algorithms, where `old` is `cwnd_old`:
    ///
    /// ```text
    /// cwnd = gamma (cwnd_old / power + beta) + (1 - gamma) cwnd
    /// ```
    pub fn update(&mut self, old: f64) {
        let target = old / self.power + self.beta;
        self.bytes =
            (self.gamma * target + (1.0 - self.gamma) * self.bytes).clamp(self.frame.min(self.most), self.most);
    }

    /// Begins again with a frame, after a timeout.
    pub fn restart(&mut self) {
        self.bytes = self.frame;
    }

    pub fn rate(&self) -> BitRate {
        BitRate(bounded(rate_of(self.bytes, self.tau_ps as u64), 1, self.rate.0) as u64)
    }
}

/// The sender of one flow.
#[derive(Debug)]
pub struct Power {
    window: PowerWindow,
    /// cwnd in the last base round trip, the oldest first.
    past: Past,
    /// The notes of the last ACK; empty before the first.
    last: Hops,
}

/// The windows of the last base round trip, noted eight times in it.
#[derive(Debug)]
struct Past {
    windows: VecDeque<f64>,
    /// Time between two notes and time of the next one.
    every_ps: u64,
    due_ps: u64,
}

impl Past {
    const NOTES: usize = 8;

    fn new(base_rtt_ps: u64, window: f64) -> Self {
        let every_ps = (base_rtt_ps / Self::NOTES as u64).max(1);
        Self { windows: VecDeque::from(vec![window; Self::NOTES]), every_ps, due_ps: 0 }
    }

    /// The window a base round trip ago, where `window` is the present one.
    fn window_at(&mut self, now_ps: u64, window: f64) -> f64 {
        if now_ps >= self.due_ps {
            let missed = ((now_ps - self.due_ps) / self.every_ps + 1).min(Self::NOTES as u64);
            for _ in 0..missed {
                self.windows.pop_front();
                self.windows.push_back(window);
            }
            self.due_ps = now_ps + self.every_ps;
        }
        self.windows[0]
    }

    /// Forgets all windows but `window`.
    fn reset(&mut self, window: f64) {
        self.windows.iter_mut().for_each(|past| *past = window);
    }
}

impl Power {
    /// Begins a flow of at most `rate` on `path`, with a window that fills it.
    #[must_use]
    pub fn new(spec: &PowerSpec, rate: BitRate, path: &Path) -> Self {
        let window = PowerWindow::new(spec, rate, path);
        Self { past: Past::new(path.base_rtt_ps, window.bytes), window, last: Hops::default() }
    }

    /// Algorithm 1, `normPower`; false if the notes do not show it.
    ///
    /// ```text
    /// for each hop i:
    ///     q' = (qlen - prev qlen) / dt,  mu = (txBytes - prev txBytes) / dt
    ///     lambda = q' + mu                   current, at least b / 2
    ///     nu = qlen + b tau                  voltage
    ///     power = lambda nu / (b b tau)
    /// the largest power, with its dt, is smoothed
    /// ```
    fn smooth_power(&mut self, hops: Hops) -> bool {
        let last = std::mem::replace(&mut self.last, hops);
        let (mut most, mut dt_ps) = (-1.0, 0.0);
        let tau = self.window.tau_ps / 1e12;
        for (hop, last) in with_last(&hops, &last) {
            let ns = hop.ns_since(last);
            if ns == 0 {
                continue;
            }
            let (seconds, rate) = (ns as f64 / 1e9, hop.rate().0 as f64 / 8.0);
            let (queue, before) = (hop.queue_bytes() as f64, last.queue_bytes() as f64);
            let current = ((queue - before) + hop.bytes_since(last) as f64) / seconds;
            let current = current.max(rate * LEAST_CURRENT);
            let power = current * (queue + rate * tau) / (rate * rate * tau);
            if power > most {
                (most, dt_ps) = (power, ns as f64 * 1e3);
            }
        }
        if dt_ps == 0.0 {
            return false;
        }
        self.window.smooth(most, dt_ps);
        true
    }
}

impl CongestionControl for Power {
    fn rate(&self) -> BitRate {
        self.window.rate()
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes(self.window.bytes as u64))
    }

    /// Algorithm 1. The paper's `cwnd_old` is that with which the acknowledged frame was sent. Here it is that of a
    /// base round trip ago: its frames arrived at the queue when the note was taken. Both are equal while the queue is
    /// short. In a long queue the acknowledged frame is older than the arrivals that power counts, and windows
    /// oscillate.
    fn acked(&mut self, ack: &Ack) {
        let old = self.past.window_at(ack.now_ps, self.window.bytes);
        if self.smooth_power(ack.hops) {
            self.window.update(old);
        }
    }

    fn lost(&mut self, loss: Loss, _: u64) {
        if loss == Loss::Timeout {
            self.window.restart();
            self.past.reset(self.window.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PATH, ack, noted};
    use super::*;

    #[test]
    fn powertcp_window_follows_algorithm_1() {
        let mut power = Power::new(&PowerSpec::default(), PATH.line, &PATH);
        power.acked(&noted(ack(0, 10_000_000, 1, 126), 0, 0, 0));
        assert_eq!(power.window.bytes, 125_000.0, "the first notes have nothing to compare with");
        // In 10 us the port sent 124,928 B and its queue grew by 62,400 B: current 1.498624, voltage 1.4992.
        power.acked(&noted(ack(0, 10_000_000, 2, 127), 10_000, 124_928, 62_400));
        let expected = (62_400.0 + 124_928.0) / 125_000.0 * (62_400.0 + 125_000.0) / 125_000.0;
        assert!((power.window.power - expected).abs() < 1e-9, "{}", power.window.power);
        let window = 0.9 * (125_000.0 / expected + 12_500.0) + 0.1 * 125_000.0;
        assert!((power.window.bytes - window).abs() < 1e-6, "{}", power.window.bytes);
        // A falling queue lowers power before it is empty: half of tau, 62,464 B sent, 31,200 B fewer queued.
        power.acked(&noted(ack(0, 10_000_000, 3, 128), 15_000, 187_392, 31_200));
        let sample = (62_464.0 - 31_200.0) / 62_500.0 * (31_200.0 + 125_000.0) / 125_000.0;
        assert!((power.window.power - (0.5 * expected + 0.5 * sample)).abs() < 1e-9, "{}", power.window.power);
    }

    #[test]
    fn old_window_is_that_of_a_base_round_trip_ago() {
        let mut past = Past::new(8_000, 100.0);
        assert_eq!(past.window_at(0, 100.0), 100.0);
        // The window falls to 10 at 1 ns.
        let old: Vec<f64> = (1..=9).map(|ns| past.window_at(1000 * ns, 10.0)).collect();
        assert_eq!(old, [[100.0; 7].as_slice(), &[10.0; 2]].concat());
        assert_eq!(past.window_at(1_000_000, 50.0), 50.0, "nothing was acknowledged for long");
    }

    #[test]
    fn queue_that_drains_without_arrivals_does_not_open_the_window() {
        let mut power = Power::new(&PowerSpec::default(), PATH.line, &PATH);
        power.acked(&noted(ack(0, 10_000_000, 1, 126), 0, 0, 1_000_000));
        // In 10 us the port sent 124,928 B, and no byte came.
        power.acked(&noted(ack(0, 10_000_000, 2, 127), 10_000, 124_928, 875_072));
        let voltage = (875_072.0 + 125_000.0) / 125_000.0;
        assert!((power.window.power - voltage / 2.0).abs() < 0.01, "{}", power.window.power);
        assert!(power.window.bytes < 56_000.0, "{}", power.window.bytes);
    }
}
