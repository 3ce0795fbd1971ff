//! Receive backlog: frames that wait in the receive ring. A core that cannot keep up loses frames there, before the
//! buffer can hold them. A backlog beyond a mark therefore pauses the lossless senders.

use crate::units::Ticks;

/// Polls in a row that must leave frames behind to count as a backlog, on a device that cannot report how many. A
/// single such poll may only have met a burst.
const FULL_POLLS: u8 = 4;
/// XOFFs in a row after each of which lossless frames still came. The next one ends only when a poll has drained the
/// ring and brought no lossless frame: a peer that ignores XOFF would otherwise be told at every other poll.
const IGNORED_XOFFS: u8 = 8;
/// Polls in a row that bring lossless frames during one XOFF, after which the peer counts as one that ignores it, if
/// they brought more than its rings held. An obedient one needs few until it stops.
const DEAF_POLLS: u8 = 64;
/// Polls in a row without a frame left, after which an XOFF ends even if lossless frames come: other classes of the
/// port must not wait for a class whose sender ignores it.
const DRAINED_POLLS: u8 = 64;

/// The backlog state of one port: whether its receive ring holds more than the core can process.
#[derive(Debug, Clone)]
pub(crate) struct Backlog {
    /// Frames left after a poll that count as a backlog; `None`: no number does.
    mark: Option<u32>,
    is_on: bool,
    /// Polls in a row that left an unknown number of frames.
    full_polls: u8,
    /// The receive rings.
    rings: Rings,
    /// Frames that the last poll has left; `None`: unknown.
    left: Option<usize>,
    /// XOFFs in a row at whose end lossless frames still came, and the lossless frames ever received, by now and when
    /// XOFF began.
    ignored: u8,
    received: u64,
    received_before: u64,
    /// The last poll that was judged, and whether it has brought lossless frames.
    judged: Ticks,
    has_lossless: bool,
    /// Polls in a row that brought lossless frames during this XOFF, and that left no frame.
    deaf_polls: u8,
    drained_polls: u8,
    /// Instant at which the present backlog began, and the total duration of the earlier ones.
    since: Ticks,
    held_ticks: u64,
}

/// Number of the receive rings of a port, and frames that each holds, if that is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rings {
    pub count: usize,
    pub frames: Option<u16>,
}

impl Rings {
    /// Frames of which `count` rings are about to overflow.
    fn full(self, count: usize) -> usize {
        self.frames.map_or(usize::MAX, |frames| usize::from(frames) * count / 4 * 3)
    }

    /// Frames that all rings hold.
    fn all(self) -> u64 {
        u64::from(self.frames.unwrap_or(0)) * self.count as u64
    }
}

impl Backlog {
    /// A backlog that is on from `mark` frames in the receive `rings`.
    pub fn new(mark: Option<u32>, rings: Rings) -> Self {
        Self {
            mark,
            is_on: false,
            full_polls: 0,
            rings,
            left: Some(0),
            ignored: 0,
            received: 0,
            received_before: 0,
            judged: Ticks(u64::MAX),
            has_lossless: false,
            deaf_polls: 0,
            drained_polls: 0,
            since: Ticks(0),
            held_ticks: 0,
        }
    }

    /// Counts as on from `mark` frames from `now` on. Without a mark it ends.
    pub fn set_mark(&mut self, mark: Option<u32>, now: Ticks) {
        if mark.is_none() {
            self.held_ticks = self.held_ticks(now);
            (self.is_on, self.full_polls) = (false, 0);
        }
        self.mark = mark;
    }

    /// Goes on with the time of `before` until `now`.
    pub fn go_on_from(&mut self, before: &Self, now: Ticks) {
        self.held_ticks = before.held_ticks(now);
    }

    /// Whether senders must stop: from the moment the mark is reached until the ring is drained.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a poll that leaves no frames would change the state: XOFF is on, or earlier polls in a row left frames.
    #[inline]
    pub fn is_watching(&self) -> bool {
        self.is_on || self.full_polls != 0
    }

    /// Whether senders must stop, and the last poll has left frames.
    pub fn is_late(&self) -> bool {
        self.is_on && self.left != Some(0)
    }

    /// Frames that the last poll has left; `None`: unknown.
    pub fn left(&self) -> Option<usize> {
        self.left
    }

    /// Whether the peer goes on to send lossless frames although it has XOFF.
    pub fn is_deaf(&self) -> bool {
        self.deaf_polls == DEAF_POLLS && self.received.saturating_sub(self.received_before) > self.rings.all()
    }

    /// Whether the `rings` receive rings that count are about to overflow. They may then lose PFC frames of the peer.
    pub fn is_full(&self, rings: usize) -> bool {
        self.is_late() && self.left.is_some_and(|left| left >= self.rings.full(rings))
    }

    /// Evaluates a poll that took all frames that it could or was allowed to, and left `left` frames; `None`: an
    /// unknown number above zero. `most` frames are a backlog even if the mark is higher. `received` are the lossless
    /// frames that the port has ever received.
    pub fn judge(&mut self, left: Option<usize>, most: u32, received: u64, now: Ticks) {
        let Some(mark) = self.mark else { return };
        // A poll may judge a port again after a further round.
        let is_again = now == self.judged;
        let still_comes = self.received != received || is_again && self.has_lossless;
        let was_on = self.is_on;
        (self.received, self.left, self.judged, self.has_lossless) = (received, left, now, still_comes);
        if !is_again || left != Some(0) {
            self.drained_polls =
                if was_on && left == Some(0) { (self.drained_polls + 1).min(DRAINED_POLLS) } else { 0 };
        }
        match left {
            Some(0) => {
                let is_ignored = self.ignored == IGNORED_XOFFS && still_comes;
                self.is_on &= is_ignored && self.drained_polls < DRAINED_POLLS;
                self.full_polls = 0;
            }
            Some(left) => self.is_on |= left >= mark.min(most) as usize,
            None => {
                self.full_polls = (self.full_polls + 1).min(FULL_POLLS);
                self.is_on |= self.full_polls == FULL_POLLS;
            }
        }
        if !is_again || !still_comes {
            self.deaf_polls = if was_on && still_comes { (self.deaf_polls + 1).min(DEAF_POLLS) } else { 0 };
        }
        if self.is_on && !was_on {
            (self.since, self.received_before) = (now, received);
        }
        if was_on && !self.is_on {
            self.ignored = if still_comes && self.ignored < IGNORED_XOFFS { self.ignored + 1 } else { 0 };
            self.held_ticks += now.since(self.since);
        }
    }

    /// Ticks for which the backlog has made senders stop, up to `now`.
    pub fn held_ticks(&self, now: Ticks) -> u64 {
        self.held_ticks + if self.is_on { now.since(self.since) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(frames: Option<u16>) -> Rings {
        Rings { count: 1, frames }
    }

    #[test]
    fn backlog_is_on_from_its_mark_until_the_ring_is_empty() {
        let mut backlog = Backlog::new(Some(32), ring(Some(1024)));
        for (left, on) in [(31, false), (32, true), (31, true), (1, true), (0, false), (31, false)] {
            backlog.judge(Some(left), u32::MAX, 0, Ticks(0));
            assert_eq!(backlog.is_on(), on, "{left} left");
        }
    }

    #[test]
    fn cut_short_poll_counts_any_leftover_as_backlog() {
        let mut backlog = Backlog::new(Some(32), ring(Some(1024)));
        for (left, on) in [(0, false), (1, true), (0, false)] {
            backlog.judge(Some(left), 1, 0, Ticks(0));
            assert_eq!(backlog.is_on(), on, "{left} left");
        }
        let mut without = Backlog::new(None, ring(None));
        without.judge(Some(1), 1, 0, Ticks(0));
        assert!(!without.is_on());
    }

    #[test]
    fn backlog_without_ring_count_is_on_after_consecutive_polls() {
        let mut backlog = Backlog::new(Some(32), ring(Some(1024)));
        for _ in 0..3 {
            backlog.judge(None, u32::MAX, 0, Ticks(0));
        }
        assert!(!backlog.is_on());
        backlog.judge(Some(0), u32::MAX, 0, Ticks(0));
        for poll in 1..=4 {
            backlog.judge(None, u32::MAX, 0, Ticks(0));
            assert_eq!(backlog.is_on(), poll == 4);
        }
        backlog.judge(Some(0), u32::MAX, 0, Ticks(0));
        assert!(!backlog.is_on());
    }

    #[test]
    fn time_is_counted_from_xoff_to_the_drained_ring() {
        let mut backlog = Backlog::new(Some(32), ring(Some(1024)));
        for (now, left, held) in [(10, 40, 0), (15, 1, 5), (20, 0, 10), (30, 0, 10), (40, 33, 10)] {
            backlog.judge(Some(left), u32::MAX, 0, Ticks(now));
            assert_eq!(backlog.held_ticks(Ticks(now)), held, "at {now}");
        }
        assert_eq!(backlog.held_ticks(Ticks(50)), 20);
    }

    #[test]
    fn ring_is_full_from_three_quarters_of_its_frames() {
        let mut backlog = Backlog::new(Some(32), ring(Some(1024)));
        for (left, is_full) in [(Some(767), false), (Some(768), true), (None, false), (Some(0), false)] {
            backlog.judge(left, u32::MAX, 0, Ticks(0));
            assert_eq!((backlog.is_late(), backlog.is_full(1)), (left != Some(0), is_full), "{left:?}");
        }
    }

    #[test]
    fn backlog_that_fills_one_ring_does_not_fill_two() {
        let mut backlog = Backlog::new(Some(32), Rings { count: 8, frames: Some(1024) });
        backlog.judge(Some(768), u32::MAX, 0, Ticks(0));
        assert_eq!([1, 2, 8].map(|rings| backlog.is_full(rings)), [true, false, false]);
    }

    #[test]
    fn backlog_without_a_mark_is_never_on() {
        let mut backlog = Backlog::new(None, ring(None));
        backlog.judge(Some(100_000), u32::MAX, 0, Ticks(0));
        assert!(!backlog.is_on());
    }

    /// A peer that goes on to send lossless frames has nine XOFFs, of which the last one lasts.
    #[test]
    fn peer_that_ignores_xoff_is_not_told_at_every_poll() {
        for (is_obedient, xoffs) in [(true, 500..=500), (false, 100..=130)] {
            let (mut backlog, mut received, mut begun) = (Backlog::new(Some(32), ring(None)), 0, 0);
            for poll in 0..1000 {
                let was_on = backlog.is_on();
                // An obedient peer sends only while it has no XOFF.
                received += if is_obedient && was_on { 0 } else { 100 };
                let left = if was_on { 0 } else { 100 };
                backlog.judge(Some(left), u32::MAX, received, Ticks(poll));
                begun += u32::from(backlog.is_on() && !was_on);
            }
            assert!(xoffs.contains(&begun), "{begun} of {xoffs:?}");
        }
    }

    #[test]
    fn peer_that_sends_more_than_its_ring_holds_after_xoff_is_deaf() {
        for (frames, deaf_after) in [(None, 64), (Some(1024), 341)] {
            let mut backlog = Backlog::new(Some(32), ring(frames));
            for poll in 0..=deaf_after {
                assert!(!backlog.is_deaf(), "{poll}");
                // Several rounds of a poll count once.
                (0..3).for_each(|round| backlog.judge(Some(100), u32::MAX, 3 * poll + round + 1, Ticks(poll)));
            }
            assert!(backlog.is_deaf());
            backlog.judge(Some(100), u32::MAX, 3 * deaf_after + 3, Ticks(deaf_after + 1));
            assert!(!backlog.is_deaf(), "it has stopped");
        }
    }
}
