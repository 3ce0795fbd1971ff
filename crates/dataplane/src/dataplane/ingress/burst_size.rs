//! The frames of a full burst: more on an lcore that is quick.
//!
//! A larger burst costs fewer instructions a frame. It also delays the other ports, and headroom assumes that an lcore
//! polls each port once in `lcores.poll_gap`. So a burst has [`BURST`] frames only if the poll before was so quick that
//! a poll with full bursts of all ports would take half of the gap. The other half is for frames that take longer. No
//! poll with frames fits a gap below a microsecond, so such a gap bounds nothing.

use crate::headroom::SHORTEST_GAP;
use crate::sets::{BURST, LEAST_BURST};
use crate::units::Nanos;

/// The size of the bursts of one lcore.
#[derive(Debug)]
pub(crate) struct BurstSize {
    frames: usize,
    /// Frames that a poll moves if the bursts of all ports are full and large.
    full_poll: u64,
    /// Ticks that such a poll may take; `None`: the poll gap bounds nothing.
    most_ticks: Option<u64>,
}

impl BurstSize {
    /// The first size, for an lcore that polls `ports` ports. A frame is moved two times, or three times if `crosses`:
    /// other lcores hand frames over. `half_gap` is half of `poll_gap` in ticks.
    pub fn new(ports: usize, crosses: bool, poll_gap: Nanos, half_gap: u64) -> Self {
        let most_ticks = (poll_gap >= SHORTEST_GAP).then_some(half_gap);
        let full_poll = (ports * BURST) as u64 * if crosses { 3 } else { 2 };
        Self { frames: if most_ticks.is_some() { LEAST_BURST } else { BURST }, full_poll, most_ticks }
    }

    /// Frames of a full burst.
    #[inline]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Frames that a poll sends at a port beyond those that it may receive there. If the poll gap bounds nothing, it
    /// leaves no time for further bursts, and a standing queue would never drain.
    #[inline]
    pub fn sent_beyond(&self) -> usize {
        if self.most_ticks.is_some() { 0 } else { BURST }
    }

    /// Adapts the size to a poll that received, accepted from other lcores and sent `moved` frames in all, and took
    /// `ticks` ticks with the time until the next one.
    #[inline]
    pub fn adapt(&mut self, moved: usize, ticks: u64) {
        let Some(most) = self.most_ticks else { return };
        let is_quick = self.full_poll * ticks.min(u32::MAX.into()) <= most.saturating_mul(moved as u64);
        // The time of a poll with few frames says little about frames.
        self.frames = if is_quick && moved >= LEAST_BURST { BURST } else { LEAST_BURST };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a burst after a poll of four ports that moved `moved` frames in `ticks` of a gap of 20,000.
    fn after(moved: usize, ticks: u64, crosses: bool) -> usize {
        let mut size = BurstSize::new(4, crosses, Nanos(20_000), 10_000);
        assert_eq!(size.frames(), LEAST_BURST);
        size.adapt(moved, ticks);
        size.frames()
    }

    #[test]
    fn burst_is_large_if_full_polls_fit_half_of_the_gap() {
        // A full poll receives and sends 256 frames: as long as this one, or eight times as long.
        assert_eq!([after(512, 10_000, false), after(512, 10_001, false)], [BURST, LEAST_BURST]);
        assert_eq!([after(64, 1_250, false), after(64, 1_251, false)], [BURST, LEAST_BURST]);
        assert_eq!(after(512, u64::MAX, false), LEAST_BURST);
        // It accepts another 256.
        assert_eq!([after(768, 10_000, true), after(768, 10_001, true)], [BURST, LEAST_BURST]);
    }

    #[test]
    fn burst_is_small_after_a_poll_with_few_frames() {
        let mut size = BurstSize::new(4, false, Nanos(20_000), 10_000);
        for (moved, frames) in [(LEAST_BURST, BURST), (LEAST_BURST - 1, LEAST_BURST), (0, LEAST_BURST)] {
            size.adapt(moved, 1);
            assert_eq!(size.frames(), frames, "{moved} frames");
        }
    }

    #[test]
    fn gap_below_a_microsecond_bounds_no_burst() {
        for (gap, frames) in [(0, BURST), (999, BURST), (1_000, LEAST_BURST)] {
            let mut size = BurstSize::new(4, false, Nanos(gap), gap / 2);
            size.adapt(512, 1_000_000);
            assert_eq!(size.frames(), frames, "{gap} ns");
            assert_eq!(size.sent_beyond() > 0, gap < 1_000, "{gap} ns");
        }
    }
}
