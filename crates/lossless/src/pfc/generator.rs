//! Generates pauses. XOFF and XON are due at once, and XOFF again at half its life while it lasts. Several priorities
//! share one frame.

use super::held::HeldTime;
use super::quantum_ticks;
use crate::mutant::{self, Mutant};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Quanta, Ticks};
use crate::wire::mac_control::PfcFrame;

/// The PFC state that one port has sent to its peer, and the changes to send next.
#[derive(Debug, Clone)]
pub struct Generator {
    /// Priorities at XOFF.
    xoff: ClassSet,
    /// Priorities whose state has changed and was not sent yet.
    unsent: ClassSet,
    /// Time at which the XOFFs must be sent again.
    refresh_at: Ticks,
    /// Half the life of an XOFF, in ticks.
    half_life: u64,
    /// Time for which each priority of the peer was paused.
    held: HeldTime,
}

impl Generator {
    /// Goes on with the times of `before`, which holds no priority.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        self.held = before.held.clone();
    }

    /// Creates a generator for a port of `rate` on a clock of `hz` ticks per second, with no priority paused.
    #[must_use]
    pub fn new(rate: BitRate, hz: u64) -> Self {
        let half_life = ((u64::from(u16::MAX) * quantum_ticks(rate, hz)) >> 16) / 2;
        Self {
            xoff: ClassSet::EMPTY,
            unsent: ClassSet::EMPTY,
            refresh_at: Ticks(0),
            half_life: half_life.max(1),
            held: HeldTime::default(),
        }
    }

    /// Creates a generator whose frames are not sent, so that XOFF lasts until XON without refresh.
    #[must_use]
    pub fn without_refresh() -> Self {
        Self { half_life: u64::MAX, ..Self::new(BitRate(1), 1) }
    }

    /// Sets the priorities in `xoff` to XOFF and all others to XON. Setting the current state again changes nothing.
    #[inline]
    pub fn set_all(&mut self, xoff: ClassSet) {
        // `|=`: if a priority changed and changed back before a frame left, the peer must still receive the final
        // state.
        self.unsent |= self.xoff ^ xoff;
        self.xoff = xoff;
    }

    /// Returns the priorities at XOFF.
    #[inline]
    #[must_use]
    pub fn xoff(&self) -> ClassSet {
        self.xoff
    }

    /// Returns the frame to send now, if one is due. It stays due until [`Generator::sent`].
    #[inline]
    #[must_use]
    pub fn due(&self, now: Ticks) -> Option<PfcFrame> {
        let refresh = !self.xoff.is_empty() && self.refresh_at <= now && !mutant::is(Mutant::NoRefresh);
        if self.unsent.is_empty() && !refresh { None } else { Some(self.frame(refresh)) }
    }

    /// Builds the frame. IEEE 802.1Q clause 36, in substance: one frame carries a time for each priority in its vector,
    /// and time 0 ends a pause.
    #[cold]
    fn frame(&self, refresh: bool) -> PfcFrame {
        let enabled = self.unsent | if refresh { self.xoff } else { ClassSet::EMPTY };
        let mut frame = PfcFrame { enabled, ..PfcFrame::default() };
        for priority in (enabled & self.xoff).iter() {
            frame.quanta[priority] = Quanta(u16::MAX);
        }
        frame
    }

    /// Records that `frame`, which was due, has left at `now`.
    pub fn sent(&mut self, frame: &PfcFrame, now: Ticks) {
        self.unsent -= frame.enabled;
        // The oldest XOFF determines the next refresh. Only a frame that contains all current XOFFs restarts the
        // interval.
        if frame.enabled & self.xoff == self.xoff {
            self.refresh_at = Ticks(now.0.saturating_add(self.half_life));
        }
        let told_off = xoff_of(frame);
        self.held.begin(told_off, now);
        self.held.end(frame.enabled - told_off, now);
    }

    /// Returns the total ticks, up to `now`, for which this port has paused its peer, by priority. A pause lasts from
    /// the XOFF that left to the XON that left. The totals never decrease.
    #[must_use]
    pub fn paused_ticks(&self, now: Ticks) -> [u64; CLASSES] {
        self.held.ticks(|_| now)
    }

    /// Records that the link went down at `now`. The next peer is paused only from the next XOFF on.
    pub fn link_down(&mut self, now: Ticks) {
        self.held.end(ClassSet::ALL, now);
    }

    /// Repeats the state after the link came up: the peer may be another one, or may have been paused by a switch that
    /// died. The next frame has XOFF for every paused priority, and XON for the others in `priorities`.
    pub fn repeat(&mut self, priorities: ClassSet) {
        self.unsent |= self.xoff | priorities;
    }
}

/// Returns the priorities with XOFF in `frame`.
fn xoff_of(frame: &PfcFrame) -> ClassSet {
    frame.enabled.iter().filter(|&priority| frame.quanta[priority].0 > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PS: u64 = 1_000_000_000_000;

    fn generator() -> Generator {
        Generator::new(BitRate(100_000_000_000), PS)
    }

    /// Sets `priority` to XOFF or XON.
    fn set_one(generator: &mut Generator, priority: usize, is_xoff: bool) {
        let mut xoff = generator.xoff();
        xoff.set(priority, is_xoff);
        generator.set_all(xoff);
    }

    fn set(bits: u8) -> ClassSet {
        ClassSet::from_bits(bits)
    }

    /// Sends the frame that is due at `now`. Returns its enabled priorities and those with XOFF, as bits.
    fn send(generator: &mut Generator, now: u64) -> Option<(u8, u8)> {
        let frame = generator.due(Ticks(now))?;
        generator.sent(&frame, Ticks(now));
        let off: ClassSet = (0..8).filter(|&p| frame.quanta[p] == Quanta(u16::MAX)).collect();
        Some((frame.enabled.bits(), off.bits()))
    }

    #[test]
    fn generator_sends_xoff_then_refresh_then_xon() {
        let mut generator = generator();
        assert_eq!(send(&mut generator, 0), None);
        set_one(&mut generator, 3, true);
        assert_eq!(send(&mut generator, 10), Some((0b1000, 0b1000)));
        assert_eq!(send(&mut generator, 11), None);
        // 65535 quanta at 100G last 335.5 us: the refresh is due after 167.8 us.
        assert_eq!(send(&mut generator, 167_000_000), None);
        assert_eq!(send(&mut generator, 168_000_000), Some((0b1000, 0b1000)));
        set_one(&mut generator, 3, false);
        assert_eq!(send(&mut generator, 168_000_001), Some((0b1000, 0)));
        assert_eq!(send(&mut generator, PS), None, "nothing is refreshed once no priority is paused");
    }

    #[test]
    fn pfc_frame_states_all_changed_priorities_at_once() {
        let mut generator = generator();
        set_one(&mut generator, 3, true);
        set_one(&mut generator, 4, true);
        assert_eq!(send(&mut generator, 0), Some((0b1_1000, 0b1_1000)));
        set_one(&mut generator, 3, false);
        assert_eq!(send(&mut generator, 1), Some((0b1000, 0)), "XON of 3 leaves out 4");
    }

    #[test]
    fn no_xoff_is_refreshed_late_because_another_was_sent() {
        let mut generator = generator();
        set_one(&mut generator, 3, true);
        assert_eq!(send(&mut generator, 0), Some((0b1000, 0b1000)));
        set_one(&mut generator, 4, true);
        assert_eq!(send(&mut generator, 150_000_000), Some((0b1_0000, 0b1_0000)));
        assert_eq!(send(&mut generator, 168_000_000), Some((0b1_1000, 0b1_1000)), "3 is due by its own age");
    }

    #[test]
    fn a_frame_that_did_not_leave_stays_due() {
        let mut generator = generator();
        set_one(&mut generator, 3, true);
        assert!(generator.due(Ticks(0)).is_some());
        assert!(generator.due(Ticks(1)).is_some());
        set_one(&mut generator, 3, false);
        assert_eq!(send(&mut generator, 2), Some((0b1000, 0)), "the last state wins");
    }

    #[test]
    fn xoff_is_repeated_on_a_new_link() {
        let mut generator = generator();
        set_one(&mut generator, 3, true);
        send(&mut generator, 0);
        generator.repeat(ClassSet::EMPTY);
        assert_eq!(send(&mut generator, 1), Some((0b1000, 0b1000)));
    }

    #[test]
    fn xon_is_sent_once_on_a_new_link_for_priorities_not_xoff() {
        let mut generator = generator();
        generator.repeat(set(0b1_1000));
        assert_eq!(send(&mut generator, 0), Some((0b1_1000, 0)));
        assert_eq!(send(&mut generator, PS), None, "once is enough");
        assert_eq!(generator.paused_ticks(Ticks(PS)), [0; 8]);
        set_one(&mut generator, 3, true);
        generator.repeat(set(0b1_1000));
        assert_eq!(send(&mut generator, PS + 1), Some((0b1_1000, 0b1000)), "no XON for a priority that is XOFF");
    }

    #[test]
    fn set_all_announces_only_changed_priorities() {
        let mut generator = generator();
        generator.set_all(set(0b1_1000));
        assert_eq!(send(&mut generator, 0), Some((0b1_1000, 0b1_1000)));
        generator.set_all(set(0b11_0000));
        assert_eq!(generator.xoff(), set(0b11_0000));
        assert_eq!(send(&mut generator, 1), Some((0b10_1000, 0b10_0000)), "only the changed priorities");
        generator.set_all(set(0b11_0000));
        assert_eq!(send(&mut generator, 2), None);
    }

    #[test]
    fn xoff_withdrawn_before_it_was_sent_is_announced_as_xon() {
        let mut generator = generator();
        generator.set_all(set(0b1000));
        generator.set_all(ClassSet::EMPTY);
        assert_eq!(send(&mut generator, 0), Some((0b1000, 0)));
        assert_eq!(generator.paused_ticks(Ticks(100)), [0; 8], "the peer was never held");
    }

    #[test]
    fn paused_time_runs_from_sent_xoff_to_sent_xon() {
        let mut generator = generator();
        generator.set_all(set(0b1000));
        assert_eq!(generator.paused_ticks(Ticks(10)), [0; 8], "the peer has no XOFF yet");
        send(&mut generator, 10);
        send(&mut generator, 168_000_010).expect("a refresh");
        generator.set_all(ClassSet::EMPTY);
        let held = |generator: &Generator, now| generator.paused_ticks(Ticks(now))[3];
        assert_eq!(held(&generator, 200_000_000), 199_999_990, "the peer has no XON yet");
        send(&mut generator, 200_000_010);
        assert_eq!(held(&generator, PS), 200_000_000);
    }

    #[test]
    fn paused_time_excludes_the_time_without_link() {
        let mut generator = generator();
        generator.set_all(set(0b1000));
        send(&mut generator, 0);
        generator.link_down(Ticks(1000));
        generator.repeat(ClassSet::EMPTY);
        assert_eq!(generator.paused_ticks(Ticks(5000))[3], 1000);
        send(&mut generator, 5000);
        assert_eq!(generator.paused_ticks(Ticks(5010))[3], 1010);
    }

    proptest! {
        #[test]
        fn frame_lists_the_state_of_priorities_changed_since_the_last(
            steps in prop::collection::vec((any::<u8>(), any::<bool>()), 1..50),
        ) {
            let mut generator = generator();
            let (mut xoff, mut unsent) = ([false; 8], [false; 8]);
            for (now, (mask, sends)) in steps.into_iter().enumerate() {
                generator.set_all(set(mask));
                for priority in 0..8 {
                    let wanted = set(mask).contains(priority);
                    unsent[priority] |= xoff[priority] != wanted;
                    xoff[priority] = wanted;
                }
                prop_assert_eq!(generator.xoff(), set(mask));
                if sends {
                    let named = (0..8).filter(|&priority| unsent[priority]).collect::<ClassSet>().bits();
                    let expected = (named != 0).then_some((named, named & mask));
                    prop_assert_eq!(send(&mut generator, now as u64), expected);
                    unsent = [false; 8];
                }
            }
        }
    }
}
