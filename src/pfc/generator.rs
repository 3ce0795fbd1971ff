//! Pauses sent: XOFF at once, again at half its life while it must last, XON at once; priorities merge into one frame.

use super::quantum_ticks;
use crate::qos::CLASSES;
use crate::units::{BitRate, Quanta, Ticks};
use crate::wire::mac_control::PfcFrame;

/// What one port has told its peer, and what it must tell it next.
#[derive(Debug, Clone)]
pub struct Generator {
    /// Priorities that must not send.
    xoff: u8,
    /// Priorities whose state the peer has not been told.
    untold: u8,
    /// When what was told must be said again.
    refresh_at: Ticks,
    /// Half the life of an XOFF, in ticks.
    half_life: u64,
}

impl Generator {
    /// A port of `rate` on a clock of `hz` ticks a second, with nobody paused.
    #[must_use]
    pub fn new(rate: BitRate, hz: u64) -> Self {
        let half_life = ((u64::from(u16::MAX) * quantum_ticks(rate, hz)) >> 16) / 2;
        Self { xoff: 0, untold: 0, refresh_at: Ticks(0), half_life: half_life.max(1) }
    }

    /// `priority` must not send, or may again. Saying what is so already changes nothing.
    #[inline]
    pub fn set(&mut self, priority: usize, xoff: bool) {
        let bit = 1 << (priority % CLASSES);
        if (self.xoff & bit != 0) != xoff {
            self.xoff ^= bit;
            // Off and on again before a frame left: the peer must still hear the last word.
            self.untold |= bit;
        }
    }

    /// Priorities that must not send, as a mask.
    #[inline]
    #[must_use]
    pub fn xoff(&self) -> u8 {
        self.xoff
    }

    /// The frame to send now, if one is due. It stays due until [`Generator::sent`].
    #[inline]
    #[must_use]
    pub fn due(&self, now: Ticks) -> Option<PfcFrame> {
        let refresh = self.xoff != 0 && self.refresh_at <= now;
        if self.untold == 0 && !refresh { None } else { Some(self.frame(refresh)) }
    }

    #[cold]
    fn frame(&self, refresh: bool) -> PfcFrame {
        let enabled = self.untold | if refresh { self.xoff } else { 0 };
        let mut frame = PfcFrame { enabled, ..PfcFrame::default() };
        for (priority, quanta) in frame.quanta.iter_mut().enumerate() {
            if (enabled & self.xoff) >> priority & 1 == 1 {
                *quanta = Quanta(u16::MAX);
            }
        }
        frame
    }

    /// `frame`, which was due, has left at `now`.
    pub fn sent(&mut self, frame: &PfcFrame, now: Ticks) {
        self.untold &= !frame.enabled;
        // The oldest XOFF still standing decides when to refresh: a frame that named them all restarts the time, one
        // for a single priority starts it only if that is the only one.
        if frame.enabled & self.xoff == self.xoff {
            self.refresh_at = Ticks(now.0.saturating_add(self.half_life));
        }
    }

    /// The link is up again: the peer has forgotten everything.
    pub fn repeat(&mut self) {
        self.untold |= self.xoff;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PS: u64 = 1_000_000_000_000;

    fn generator() -> Generator {
        Generator::new(BitRate(100_000_000_000), PS)
    }

    /// Takes the frame due at `now` as sent.
    fn send(generator: &mut Generator, now: u64) -> Option<(u8, u8)> {
        let frame = generator.due(Ticks(now))?;
        generator.sent(&frame, Ticks(now));
        let off = (0..8).filter(|&p| frame.quanta[p] == Quanta(u16::MAX)).map(|p| 1 << p).sum();
        Some((frame.enabled, off))
    }

    #[test]
    fn xoff_refresh_xon() {
        let mut generator = generator();
        assert_eq!(send(&mut generator, 0), None);
        generator.set(3, true);
        assert_eq!(send(&mut generator, 10), Some((0b1000, 0b1000)));
        assert_eq!(send(&mut generator, 11), None);
        // 65535 quanta at 100G last 335.5 us: again after 167.8 us, not before.
        assert_eq!(send(&mut generator, 167_000_000), None);
        assert_eq!(send(&mut generator, 168_000_000), Some((0b1000, 0b1000)));
        generator.set(3, false);
        assert_eq!(send(&mut generator, 168_000_001), Some((0b1000, 0)));
        assert_eq!(send(&mut generator, PS), None, "nothing is refreshed once nobody is paused");
    }

    #[test]
    fn priorities_merge() {
        let mut generator = generator();
        generator.set(3, true);
        generator.set(4, true);
        assert_eq!(send(&mut generator, 0), Some((0b1_1000, 0b1_1000)));
        generator.set(3, false);
        assert_eq!(send(&mut generator, 1), Some((0b1000, 0)), "XON of 3 says nothing of 4");
    }

    #[test]
    fn no_xoff_is_refreshed_late_because_another_was_sent() {
        let mut generator = generator();
        generator.set(3, true);
        assert_eq!(send(&mut generator, 0), Some((0b1000, 0b1000)));
        generator.set(4, true);
        assert_eq!(send(&mut generator, 150_000_000), Some((0b1_0000, 0b1_0000)));
        assert_eq!(send(&mut generator, 168_000_000), Some((0b1_1000, 0b1_1000)), "3 is due by its own age");
    }

    #[test]
    fn a_frame_that_did_not_leave_stays_due() {
        let mut generator = generator();
        generator.set(3, true);
        assert!(generator.due(Ticks(0)).is_some());
        assert!(generator.due(Ticks(1)).is_some());
        generator.set(3, false);
        assert_eq!(send(&mut generator, 2), Some((0b1000, 0)), "the last word wins");
    }

    #[test]
    fn a_new_link_is_told_again() {
        let mut generator = generator();
        generator.set(3, true);
        send(&mut generator, 0);
        generator.repeat();
        assert_eq!(send(&mut generator, 1), Some((0b1000, 0b1000)));
    }
}
