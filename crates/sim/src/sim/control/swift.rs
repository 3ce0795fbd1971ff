//! Swift (Kumar et al., SIGCOMM 2020): the window follows the end-to-end delay and a target that scales.
//!
//! The host's part of the delay is zero here: hosts receive at once. So there is one window, that of the fabric.

use super::{Ack, CongestionControl, Loss, Path, bounded, rate_of};
use crate::units::{BitRate, Bytes, Nanos};

/// Parameters of Swift. The paper gives no numbers for a network of any speed; those of the default are common in
/// comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwiftSpec {
    /// The target of a path without switches and a large window; `None`: the base round-trip time and 10 %.
    pub base_target: Option<Nanos>,
    /// Added to the target for each switch.
    pub per_hop: Nanos,
    /// Most that flow scaling adds to the target.
    pub scaling: Nanos,
    /// Windows, in frames, between which flow scaling changes the target.
    pub scaling_least_frames: f64,
    /// See [`SwiftSpec::scaling_least_frames`].
    pub scaling_most_frames: f64,
    /// ai, the additive increase in frames a round trip.
    pub additive_frames: f64,
    /// beta, the factor of decreases.
    pub beta: f64,
    /// max_mdf, the largest decrease at once.
    pub largest_decrease: f64,
    /// The window never falls below this many frames.
    pub least_frames: f64,
    /// Timeouts in a row after which the window becomes the least.
    pub reset_after: u32,
}

impl Default for SwiftSpec {
    fn default() -> Self {
        Self {
            base_target: None,
            per_hop: Nanos(500),
            scaling: Nanos(10_000),
            scaling_least_frames: 0.1,
            scaling_most_frames: 100.0,
            additive_frames: 1.0,
            beta: 0.8,
            largest_decrease: 0.5,
            least_frames: 0.01,
            reset_after: 5,
        }
    }
}

/// The sender of one flow. Windows are in frames, as in the paper.
#[derive(Debug)]
pub struct Swift {
    spec: SwiftSpec,
    rate: BitRate,
    frame: f64,
    /// Target without flow scaling, in picoseconds.
    target_ps: f64,
    /// alpha and beta of flow scaling, in picoseconds.
    scaling: (f64, f64),
    window: f64,
    most: f64,
    /// The last round-trip time.
    rtt_ps: u64,
    last_decrease_ps: Option<u64>,
    /// Timeouts in a row.
    timeouts: u32,
}

impl Swift {
    /// Begins a flow of at most `rate` on `path`, with a window that fills it.
    #[must_use]
    pub fn new(spec: &SwiftSpec, rate: BitRate, path: &Path) -> Self {
        let base_ps = spec.base_target.map_or(path.base_rtt_ps as f64 * 1.1, |base| base.0 as f64 * 1e3);
        let frame = path.frame.0.max(1) as f64;
        let window = (path.bdp_bytes() / frame).max(1.0);
        // Section 3.5: alpha = fs_range / (1/sqrt(fs_min_cwnd) - 1/sqrt(fs_max_cwnd)), beta = -alpha/sqrt(fs_max_cwnd).
        let [least, most] = [spec.scaling_least_frames, spec.scaling_most_frames].map(|frames| 1.0 / frames.sqrt());
        let alpha = spec.scaling.0 as f64 * 1e3 / (least - most);
        Self {
            spec: *spec,
            rate,
            frame,
            target_ps: base_ps + f64::from(path.switches) * spec.per_hop.0 as f64 * 1e3,
            scaling: (alpha, -alpha * most),
            window,
            most: window,
            rtt_ps: path.base_rtt_ps,
            last_decrease_ps: None,
            timeouts: 0,
        }
    }

    /// The target delay. Section 3.5:
    ///
    /// ```text
    /// target = base_target + #hops h + max(0, min(alpha / sqrt(cwnd) + beta, fs_range))
    /// ```
    fn target_ps(&self) -> f64 {
        let (alpha, beta) = self.scaling;
        self.target_ps + (alpha / self.window.sqrt() + beta).clamp(0.0, self.spec.scaling.0 as f64 * 1e3)
    }

    /// Whether a round trip has passed since the last decrease.
    fn can_decrease(&self, now_ps: u64) -> bool {
        self.last_decrease_ps.is_none_or(|last| now_ps.saturating_sub(last) >= self.rtt_ps)
    }

    /// Sets the window within its limits, and notes a decrease.
    fn set(&mut self, window: f64, now_ps: u64) {
        let window = window.clamp(self.spec.least_frames.min(self.most), self.most);
        if window < self.window {
            self.last_decrease_ps = Some(now_ps);
        }
        self.window = window;
    }
}

impl CongestionControl for Swift {
    /// With less than a frame in flight, frames are paced by `rtt / cwnd` (algorithm 1, line 27).
    fn rate(&self) -> BitRate {
        BitRate(bounded(rate_of(self.window * self.frame, self.rtt_ps), 1, self.rate.0) as u64)
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes((self.window.max(1.0) * self.frame) as u64))
    }

    /// Algorithm 1, on an ACK:
    ///
    /// ```text
    /// if delay < target:   cwnd = cwnd + ai / cwnd num_acked     (cwnd >= 1)
    ///                      cwnd = cwnd + ai num_acked            (cwnd < 1)
    /// else if can_decrease:
    ///     cwnd = cwnd max(1 - beta (delay - target) / delay, 1 - max_mdf)
    /// ```
    fn acked(&mut self, ack: &Ack) {
        self.timeouts = 0;
        let (delay, target) = (ack.rtt_ps.max(1) as f64, self.target_ps());
        let can_decrease = self.can_decrease(ack.now_ps);
        self.rtt_ps = ack.rtt_ps;
        if delay < target {
            let acked = ack.bytes as f64 / self.frame * self.spec.additive_frames;
            let more = if self.window >= 1.0 { acked / self.window } else { acked };
            self.set(self.window + more, ack.now_ps);
        } else if can_decrease {
            let factor = 1.0 - self.spec.beta * (delay - target) / delay;
            self.set(self.window * factor.max(1.0 - self.spec.largest_decrease), ack.now_ps);
        }
    }

    /// Algorithm 1, on a retransmission timeout and on fast recovery.
    fn lost(&mut self, loss: Loss, now_ps: u64) {
        self.timeouts += u32::from(loss == Loss::Timeout);
        if self.timeouts >= self.spec.reset_after {
            self.set(self.spec.least_frames, now_ps);
        } else if self.can_decrease(now_ps) {
            self.set(self.window * (1.0 - self.spec.largest_decrease), now_ps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PATH, ack};
    use super::*;

    fn swift() -> Swift {
        Swift::new(&SwiftSpec { scaling: Nanos(0), ..SwiftSpec::default() }, PATH.line, &PATH)
    }

    #[test]
    fn window_grows_by_a_frame_a_round_trip_below_the_target() {
        let mut swift = swift();
        assert_eq!(swift.window, 125.0);
        swift.window = 10.0;
        (1..=10).for_each(|frame| swift.acked(&ack(0, 12_000_000, frame, frame + 10)));
        // The target is 11 us and 3 times 0.5 us. Each ACK adds a tenth of a frame or a little less.
        assert!((swift.window - 10.96).abs() < 0.01, "{}", swift.window);
        swift.window = 0.5;
        swift.acked(&ack(0, 12_000_000, 11, 12));
        assert_eq!(swift.window, 1.5, "below one frame, each frame adds one");
    }

    #[test]
    fn window_falls_with_the_excess_delay_once_a_round_trip() {
        let mut swift = swift();
        // 12.5 of 25 us are in excess: the window falls by 0.8 times a half.
        swift.acked(&ack(0, 25_000_000, 1, 2));
        assert!((swift.window - 75.0).abs() < 1e-9, "{}", swift.window);
        swift.acked(&ack(24_999_999, 25_000_000, 2, 3));
        assert!((swift.window - 75.0).abs() < 1e-9, "not before a round trip has passed");
        swift.acked(&ack(25_000_000, 10_000_000_000, 3, 4));
        assert!((swift.window - 37.5).abs() < 1e-9, "at most a half at once");
    }

    #[test]
    fn flow_scaling_raises_the_target_of_small_windows() {
        let mut swift = Swift::new(&SwiftSpec::default(), PATH.line, &PATH);
        let target_us = |swift: &Swift| (swift.target_ps() / 1e4).round() / 100.0;
        assert_eq!(target_us(&swift), 12.5, "125 frames are beyond the range");
        swift.window = 0.1;
        assert_eq!(target_us(&swift), 22.5);
        swift.window = 0.01;
        assert_eq!(target_us(&swift), 22.5, "never more than the range");
        swift.window = 1.0;
        // alpha = 10 us / (3.1623 - 0.1) = 3.2655 us, beta = -0.32655 us.
        assert_eq!(target_us(&swift), 15.44);
    }

    #[test]
    fn timeouts_in_a_row_reset_the_window() {
        let mut swift = swift();
        for timeout in 0..5 {
            swift.lost(Loss::Timeout, timeout * 100_000_000);
        }
        assert_eq!(swift.window, 0.01);
        // A hundredth of a frame a round trip: 1000 B in 1 ms.
        assert_eq!((swift.rate(), swift.window()), (BitRate(8_000_000), Some(Bytes(1000))));
    }
}
