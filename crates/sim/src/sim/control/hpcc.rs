//! HPCC (Li et al., SIGCOMM 2019): the window follows the bytes in flight at the most loaded hop, which in-band
//! telemetry shows.

use super::{Ack, CongestionControl, Loss, Path, bounded, rate_of, with_last};
use crate::units::{BitRate, Bytes};
use crate::wire::inband::Hops;

/// Parameters of HPCC; the default is the paper's (section 3.3 and 5.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HpccSpec {
    /// eta, the target utilization.
    pub target: f64,
    /// maxStage, additive increases before a multiplicative one.
    pub most_stages: u32,
    /// W_AI, the additive increase, in bytes; `None`: a window of the path times (1 - eta), over [`HpccSpec::flows`].
    pub additive: Option<Bytes>,
    /// N, the number of flows that a path expects.
    pub flows: f64,
}

impl Default for HpccSpec {
    fn default() -> Self {
        Self { target: 0.95, most_stages: 5, additive: None, flows: 100.0 }
    }
}

/// The sender of one flow.
#[derive(Debug)]
pub struct Hpcc {
    spec: HpccSpec,
    rate: BitRate,
    /// T, the base round-trip time, in picoseconds.
    base_ps: f64,
    frame: f64,
    additive: f64,
    /// W, the window, and W_c, the reference window, in bytes. Their largest value.
    window: f64,
    reference: f64,
    most: f64,
    /// U, the smoothed utilization of the most loaded hop.
    utilization: f64,
    stage: u32,
    /// L, the notes of the last ACK; empty before the first.
    last: Hops,
    /// The ACK beyond this frame updates the reference window.
    ends_at: u64,
}

impl Hpcc {
    /// Begins a flow of at most `rate` on `path`, with a window that fills it.
    #[must_use]
    pub fn new(spec: &HpccSpec, rate: BitRate, path: &Path) -> Self {
        let most = path.bdp_bytes();
        let additive = spec.additive.map_or(most * (1.0 - spec.target) / spec.flows, |bytes| bytes.0 as f64);
        Self {
            spec: *spec,
            rate,
            base_ps: path.base_rtt_ps.max(1) as f64,
            frame: path.frame.0 as f64,
            additive,
            window: most,
            reference: most,
            most,
            utilization: 1.0,
            stage: 0,
            last: Hops::default(),
            ends_at: 0,
        }
    }

    /// Algorithm 1, `MeasureInflight`; false if the notes do not show it.
    ///
    /// ```text
    /// for each hop i:
    ///     txRate = (ack.L[i].txBytes - L[i].txBytes) / (ack.L[i].ts - L[i].ts)
    ///     u' = min(ack.L[i].qlen, L[i].qlen) / (B T) + txRate / B
    ///     if u' > u: u = u', tau = ack.L[i].ts - L[i].ts
    /// tau = min(tau, T)
    /// U = (1 - tau/T) U + tau/T u
    /// ```
    fn measure(&mut self, hops: Hops) -> bool {
        let last = std::mem::replace(&mut self.last, hops);
        let (mut most, mut tau_ps) = (-1.0, 0.0);
        for (hop, last) in with_last(&hops, &last) {
            let (ns, bytes) = (hop.ns_since(last), hop.bytes_since(last));
            if ns == 0 {
                continue;
            }
            let byte_rate = hop.rate().0 as f64 / 8.0;
            let sent = bytes as f64 * 1e9 / ns as f64 / byte_rate;
            let queue = hop.queue_bytes().min(last.queue_bytes()) as f64;
            let utilization = queue / (byte_rate * self.base_ps / 1e12) + sent;
            if utilization > most {
                (most, tau_ps) = (utilization, ns as f64 * 1e3);
            }
        }
        if tau_ps == 0.0 {
            return false;
        }
        let weight = tau_ps.min(self.base_ps) / self.base_ps;
        self.utilization = (1.0 - weight) * self.utilization + weight * most;
        true
    }

    /// Algorithm 1, `ComputeWind`. With `updates`, the result becomes the reference.
    ///
    /// ```text
    /// if U >= eta or incStage >= maxStage:
    ///     W = W_c / (U / eta) + W_AI,  if updates: incStage = 0, W_c = W
    /// else:
    ///     W = W_c + W_AI,              if updates: incStage = incStage + 1, W_c = W
    /// ```
    fn compute(&mut self, updates: bool) {
        let is_loaded = self.utilization >= self.spec.target || self.stage >= self.spec.most_stages;
        let window = if is_loaded {
            self.reference / (self.utilization / self.spec.target).max(1e-6) + self.additive
        } else {
            self.reference + self.additive
        };
        self.window = window.clamp(self.frame.min(self.most), self.most);
        if updates {
            self.stage = if is_loaded { 0 } else { self.stage + 1 };
            self.reference = self.window;
        }
    }
}

impl CongestionControl for Hpcc {
    /// R = W / T.
    fn rate(&self) -> BitRate {
        BitRate(bounded(rate_of(self.window, self.base_ps as u64), 1, self.rate.0) as u64)
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes(self.window as u64))
    }

    /// Algorithm 1, `NewAck`: each ACK changes the window, and the first of a round trip the reference too.
    fn acked(&mut self, ack: &Ack) {
        if !self.measure(ack.hops) {
            return;
        }
        let updates = ack.cumulative > self.ends_at;
        self.compute(updates);
        if updates {
            self.ends_at = ack.next;
        }
    }

    /// The paper has no rule for lost frames. After a timeout nothing is known about the path.
    fn lost(&mut self, loss: Loss, _: u64) {
        if loss == Loss::Timeout {
            (self.window, self.reference) = (self.frame, self.frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PATH, ack, noted};
    use super::*;

    fn hpcc() -> Hpcc {
        Hpcc::new(&HpccSpec { additive: Some(Bytes(800)), ..HpccSpec::default() }, PATH.line, &PATH)
    }

    #[test]
    fn hpcc_window_follows_algorithm_1() {
        let mut hpcc = hpcc();
        // The first notes have nothing to compare with.
        hpcc.acked(&noted(ack(0, 10_000_000, 1, 126), 0, 0, 0));
        assert_eq!((hpcc.window, hpcc.utilization), (125_000.0, 1.0));
        // 10 us later, with 12.5 kB/us sent and 62.4 kB queued both times: u = 0.4992 + 1 of 100 Gbit/s.
        hpcc.acked(&noted(ack(0, 10_000_000, 2, 127), 10_000, 124_928, 62_400));
        // Only the shorter queue counts: the first was empty.
        let sent = 124_928.0 / 125_000.0;
        assert!((hpcc.utilization - sent).abs() < 1e-9, "{}", hpcc.utilization);
        let window = 125_000.0 / (sent / 0.95) + 800.0;
        assert!((hpcc.window - window).abs() < 1e-6 && hpcc.reference == hpcc.window, "{}", hpcc.window);
        // Half of T later, within the round trip: U = 0.5 U + 0.5 (62,400 / 125,000 + 1), and W_c stays.
        let (before, reference) = (hpcc.utilization, hpcc.reference);
        hpcc.acked(&noted(ack(0, 10_000_000, 3, 128), 15_000, 124_928 + 62_464, 62_400));
        let utilization = 0.5 * before + 0.5 * (62_400.0 / 125_000.0 + 62_464.0 / 62_500.0);
        assert!((hpcc.utilization - utilization).abs() < 1e-9, "{} {utilization}", hpcc.utilization);
        assert_eq!(hpcc.reference, reference);
        assert!((hpcc.window - (reference / (utilization / 0.95) + 800.0)).abs() < 1e-6);
    }

    #[test]
    fn hpcc_on_an_idle_path_adds_five_times_then_multiplies() {
        let mut hpcc = hpcc();
        (hpcc.window, hpcc.reference, hpcc.utilization) = (10_000.0, 10_000.0, 0.4);
        hpcc.acked(&noted(ack(0, 10_000_000, 1, 2), 0, 0, 0));
        let windows: Vec<f64> = (1..=6)
            .map(|step| {
                // 51,200 B in 10 us: 40.96 % of the rate.
                hpcc.acked(&noted(ack(0, 10_000_000, 2 * step + 1, 2 * step + 2), 10_000 * step, 51_200 * step, 0));
                hpcc.window
            })
            .collect();
        assert_eq!(windows[..5], [10_800.0, 11_600.0, 12_400.0, 13_200.0, 14_000.0]);
        assert!((windows[5] - (14_000.0 / (0.4096 / 0.95) + 800.0)).abs() < 1e-6, "{windows:?}");
    }

    #[test]
    fn notes_of_another_path_or_time_change_nothing() {
        let mut hpcc = hpcc();
        hpcc.acked(&ack(0, 10_000_000, 1, 126));
        hpcc.acked(&noted(ack(0, 10_000_000, 2, 127), 0, 0, 0));
        hpcc.acked(&noted(ack(0, 10_000_000, 3, 128), 0, 1280, 80_000));
        assert_eq!((hpcc.window, hpcc.utilization), (125_000.0, 1.0));
        hpcc.lost(Loss::Timeout, 0);
        assert_eq!((hpcc.window(), hpcc.rate()), (Some(Bytes(1000)), BitRate(800_000_000)));
    }
}
