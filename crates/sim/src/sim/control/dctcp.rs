//! DCTCP (Alizadeh et al., SIGCOMM 2010): the window follows the share of marked frames.
//!
//! A flow begins with a full window instead of slow start, and its frames are paced, like in HPCC's comparison.

use super::{Ack, CongestionControl, Loss, Path, bounded, rate_of};
use crate::units::{BitRate, Bytes};

/// Parameters of DCTCP; the default is the paper's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DctcpSpec {
    /// g, the weight of a new share of marked frames (section 3.1: 1/16).
    pub gain: f64,
    /// The window never falls below this many frames.
    pub least_frames: u32,
    /// The window never exceeds this; `None`: the bandwidth-delay product, as in HPCC's comparison. The paper has no
    /// limit.
    pub largest_window: Option<Bytes>,
    /// The window never falls below that of this rate; `None`: only below `least_frames`.
    pub least: Option<BitRate>,
    /// Growth of the rate in a round trip without a cut; `None`: that of a window by one frame.
    pub additive: Option<BitRate>,
}

impl Default for DctcpSpec {
    fn default() -> Self {
        Self { gain: 1.0 / 16.0, least_frames: 1, largest_window: None, least: None, additive: None }
    }
}

/// The sender of one flow.
#[derive(Debug)]
pub struct Dctcp {
    spec: DctcpSpec,
    rate: BitRate,
    base_rtt_ps: u64,
    /// Bytes of a full frame: the maximum segment size.
    frame: f64,
    /// Bytes by which the window grows.
    growth: f64,
    /// cwnd, in bytes, and its largest value.
    window: f64,
    most: f64,
    /// The estimate of the share of marked frames.
    alpha: f64,
    /// Frames acknowledged in this window of data, and those marked among them.
    frames: u32,
    marked: u32,
    /// The ACK beyond this frame ends the window of data.
    ends_at: u64,
    /// The ACK beyond this frame ends the state after a cut, in which no further cut happens.
    cut_until: Option<u64>,
    /// One more than the last frame that was sent, as of the last ACK.
    sent_end: u64,
}

impl Dctcp {
    /// Begins a flow of at most `rate` on `path`.
    #[must_use]
    pub fn new(spec: &DctcpSpec, rate: BitRate, path: &Path) -> Self {
        let full = path.bdp_bytes();
        let most = spec.largest_window.map_or(full, |window| window.0.max(1) as f64);
        let frame = path.frame.0 as f64;
        Self {
            spec: *spec,
            rate,
            base_rtt_ps: path.base_rtt_ps,
            frame,
            growth: spec.additive.map_or(frame, |rate| window_of(rate, path.base_rtt_ps)),
            window: full.min(most),
            most,
            alpha: 1.0,
            frames: 0,
            marked: 0,
            ends_at: 0,
            cut_until: None,
            sent_end: 0,
        }
    }

    fn least(&self) -> f64 {
        let of_rate = self.spec.least.map_or(0.0, |rate| window_of(rate, self.base_rtt_ps));
        (self.frame * f64::from(self.spec.least_frames.max(1))).max(of_rate).min(self.most)
    }

    /// Ends a window of data. Equation 1, where F is the share of its frames that were marked:
    ///
    /// ```text
    /// alpha = (1 - g) alpha + g F
    /// ```
    ///
    /// Without a cut, the window grows (congestion avoidance).
    fn end_window(&mut self, next: u64) {
        let share = f64::from(self.marked) / f64::from(self.frames.max(1));
        self.alpha = (1.0 - self.spec.gain) * self.alpha + self.spec.gain * share;
        (self.frames, self.marked, self.ends_at) = (0, 0, next);
        if self.cut_until.is_none() {
            self.window = (self.window + self.growth).min(self.most);
        }
    }
}

/// Bytes that a flow of `rate` has under way.
fn window_of(rate: BitRate, rtt_ps: u64) -> f64 {
    rate.0 as f64 / 8e12 * rtt_ps as f64
}

impl CongestionControl for Dctcp {
    fn rate(&self) -> BitRate {
        BitRate(bounded(rate_of(self.window, self.base_rtt_ps), 1, self.rate.0) as u64)
    }

    fn window(&self) -> Option<Bytes> {
        Some(Bytes(self.window as u64))
    }

    /// Equation 2, at most once per window of data:
    ///
    /// ```text
    /// cwnd = cwnd (1 - alpha/2)
    /// ```
    fn acked(&mut self, ack: &Ack) {
        self.frames += ack.frames;
        self.marked += ack.marked;
        self.sent_end = self.sent_end.max(ack.next);
        self.cut_until = self.cut_until.filter(|&until| ack.cumulative <= until);
        if ack.cumulative > self.ends_at {
            self.end_window(ack.next);
        }
        if ack.marked > 0 && self.cut_until.is_none() {
            self.window = (self.window * (1.0 - self.alpha / 2.0)).max(self.least());
            self.cut_until = Some(ack.next);
        }
    }

    /// The reaction of TCP (section 3.1): half the window, once for all losses of a window of data. The receiver may
    /// report one gap several times.
    fn lost(&mut self, loss: Loss, _: u64) {
        match loss {
            Loss::Nak if self.cut_until.is_some() => {}
            Loss::Nak => {
                self.window = (self.window / 2.0).max(self.least());
                self.cut_until = Some(self.sent_end);
            }
            Loss::Timeout => self.window = self.least(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PATH, ack};
    use super::*;

    #[test]
    fn marked_window_is_cut_by_half_of_alpha_once() {
        let mut dctcp = Dctcp::new(&DctcpSpec::default(), PATH.line, &PATH);
        assert_eq!((dctcp.window(), dctcp.rate()), (Some(Bytes(125_000)), PATH.line));
        // The first ACK ends an empty window. F = 1, so alpha stays 1, and the window is halved.
        dctcp.acked(&Ack { marked: 1, ..ack(0, 10_000_000, 1, 126) });
        assert_eq!((dctcp.alpha, dctcp.window), (1.0, 62_500.0));
        for frame in 2..=126 {
            dctcp.acked(&Ack { marked: 1, ..ack(0, 10_000_000, frame, 126 + frame) });
        }
        assert_eq!(dctcp.window, 62_500.0, "one cut for the whole window of data");
        // Frame 127 ends it: all were marked, so alpha is 1 still. It is not marked itself.
        dctcp.acked(&ack(0, 10_000_000, 127, 253));
        let alpha = 15.0 / 16.0 + 125.0 / 126.0 / 16.0;
        assert!((dctcp.alpha - alpha).abs() < 1e-12, "{}", dctcp.alpha);
        assert_eq!(dctcp.window, 63_500.0, "no cut in force: one frame more");
    }

    #[test]
    fn alpha_decays_and_the_window_grows_by_a_frame_per_window_of_data() {
        let mut dctcp = Dctcp::new(&DctcpSpec::default(), PATH.line, &PATH);
        dctcp.window = 10_000.0;
        for window in 0..16 {
            dctcp.acked(&ack(0, 10_000_000, 10 * window + 1, 10 * window + 10));
        }
        // Sixteen windows without marks.
        assert!((dctcp.alpha - (15.0_f64 / 16.0).powi(16)).abs() < 1e-12);
        assert_eq!(dctcp.window, 26_000.0);
        dctcp.lost(Loss::Timeout, 0);
        assert_eq!(dctcp.window(), Some(Bytes(1000)));
    }

    #[test]
    fn losses_of_a_window_of_data_halve_the_window_once() {
        let mut dctcp = Dctcp::new(&DctcpSpec::default(), PATH.line, &PATH);
        dctcp.acked(&ack(0, 10_000_000, 10, 135));
        // The sender goes back to frame 10. The receiver reports the gap twice, then another of the same window.
        for gap in [10, 10, 20] {
            dctcp.acked(&ack(0, 10_000_000, gap, gap));
            dctcp.lost(Loss::Nak, 0);
            assert_eq!(dctcp.window, 62_500.0, "gap at {gap}");
        }
        dctcp.acked(&ack(0, 10_000_000, 136, 200));
        let window = dctcp.window;
        dctcp.lost(Loss::Nak, 0);
        assert_eq!(dctcp.window, window / 2.0, "a loss of the next window");
    }

    #[test]
    fn window_may_exceed_the_path_up_to_its_limit() {
        let spec = DctcpSpec { largest_window: Some(Bytes(126_500)), ..DctcpSpec::default() };
        let mut dctcp = Dctcp::new(&spec, PATH.line, &PATH);
        let windows = (0..3).map(|window| {
            dctcp.acked(&ack(0, 10_000_000, 10 * window + 1, 10 * window + 10));
            dctcp.window
        });
        assert_eq!(windows.collect::<Vec<_>>(), [126_000.0, 126_500.0, 126_500.0]);
        assert_eq!(dctcp.rate(), PATH.line);
    }
}
