//! Paces an lcore on a port by which other lcores send too.

use super::joint_wire::{JointWire, Taken};
use super::shaper::{Pace, Shaper};
use crate::sync::Arc;
use crate::units::{Bytes, Ticks};

/// An lcore's share of a wire, in parts of 2^16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireShare(pub u32);

/// The part of a shaper's slack that all lcores together may lease.
const LEASED: u64 = 8;

/// Paces an lcore like [`Shaper`] does, on a wire that several lcores share.
///
/// The lcores together send no more than the wire carries, and make up no more idle time than one shaper. An lcore
/// takes some more time than it needs from an idle wire, because each access moves a cache line. While frames
/// of several lcores wait, each earns time by its share. An lcore that has none left takes only time that the others
/// have left unused for three quarters of the window, or that would be lost before its next poll.
#[derive(Debug)]
pub struct JointPacer {
    wire: Arc<JointWire>,
    /// Time charged and not taken from the wire yet, below a tick, in parts of 2^16.
    fraction: u64,
    /// Wire time of a byte, in parts of 2^16 of a tick.
    byte_time: u64,
    /// Rate and slack of the port.
    shaper: Shaper,
    /// Ticks of the longest frame.
    longest: u64,
    /// Ticks of idle time that the lcores can make up, without those that they lease.
    window: u64,
    /// Most ticks that this lcore leases.
    most_leased: u64,
    /// Ticks taken from the wire beyond those of sent frames. They end at `lost_at`, and pass whether they are used or
    /// not: frames posted later would stand before the wire without being counted.
    leased: u64,
    lost_at: Ticks,
    /// Time of the wire that this lcore has earned and not used while others wait too, in parts of 2^16 of a tick.
    earned: i64,
    /// The instant up to which time is earned, and the ticks between the last two such instants.
    since: Ticks,
    gap: u64,
    /// Ticks taken for the burst that is being chosen, and for the end of its last frame.
    taken: u64,
    last: u64,
}

impl JointPacer {
    /// Creates the pacer of one of `lcores` lcores for a port with the settings of `shaper`, which sends on `wire`
    /// frames of at most `longest` bytes.
    #[must_use]
    pub fn new(wire: Arc<JointWire>, shaper: &Shaper, longest: u32, lcores: u64) -> Self {
        let slack = shaper.slack();
        let most_leased = slack / LEASED / lcores.max(1);
        Self::with_lease(wire, shaper, longest, slack - most_leased * lcores, most_leased)
    }

    /// Bytes on the wire that lcores have posted and the wire has not sent at `now`, rounded up. Leases of other lcores
    /// count too, and those that have passed since the wire was last free.
    #[inline]
    #[must_use]
    pub fn posted(&self, now: Ticks) -> Bytes {
        let leased = self.leased.min(self.lost_at.since(now));
        self.shaper.bytes_until(self.wire.free_at().saturating_sub(leased), now)
    }

    fn with_lease(wire: Arc<JointWire>, shaper: &Shaper, longest: u32, window: u64, most_leased: u64) -> Self {
        let (byte_time, never) = (shaper.byte_time(), Ticks(0));
        Self {
            wire,
            fraction: 0,
            byte_time,
            shaper: shaper.clone(),
            longest: (Shaper::wire_bytes(longest) * byte_time).div_ceil(1 << 16),
            window,
            most_leased,
            leased: 0,
            lost_at: never,
            earned: (window as i64) << 16,
            since: never,
            gap: 0,
            taken: 0,
            last: 0,
        }
    }

    /// Takes wire time for frames of together `wanted` bytes on the wire. `share` is that of this lcore while frames of
    /// other lcores wait; `None`: none do. Returns `None` if no frame may start. [`JointPacer::settle`] must follow.
    #[inline]
    #[must_use]
    pub fn take(&mut self, wanted: u64, share: Option<WireShare>, now: Ticks) -> Option<Pace> {
        self.leased = self.leased.min(self.lost_at.since(now));
        if self.leased == 0 && self.wire.free_at() < now.0 {
            self.fraction = 0;
        }
        let ticks = (self.fraction + wanted.saturating_mul(self.byte_time)) >> 16;
        let latest = match share {
            None => {
                (self.earned, self.since) = ((self.window as i64) << 16, now);
                now.0 + self.window
            }
            Some(share) => self.latest(share, now),
        };
        self.last = 0;
        if ticks >= self.leased {
            let taken = self.take_more(ticks - self.leased, share.is_none(), latest, now);
            if taken.is_none() && self.leased == 0 {
                return None;
            }
        }
        self.taken = ticks.min(self.leased);
        self.leased -= self.taken;
        Some(Pace::new(self.fraction as i64 - ((self.taken as i64) << 16), self.byte_time))
    }

    /// Takes `missing` ticks from the wire, and a lease if it `may_lease` and the wire is idle. `None` if no frame may
    /// start.
    #[inline]
    fn take_more(&mut self, missing: u64, may_lease: bool, latest: u64, now: Ticks) -> Option<()> {
        let is_idle = self.wire.free_at() + missing + 2 * self.most_leased < now.0 + self.window;
        let lease = if may_lease && is_idle { self.most_leased } else { 0 };
        let Taken { starting, last, until } = self.wire.take(missing + lease, self.longest, now.0, latest)?;
        // The last tick is one at which a frame may be posted. It is no time for frames before that.
        let unused = u64::from(last > 0);
        (self.leased, self.last) = (self.leased + starting - unused, last + unused);
        self.lost_at = Ticks(until);
        Some(())
    }

    /// The last tick of the wire at which a frame may begin, while frames of other lcores wait.
    #[cold]
    fn latest(&mut self, share: WireShare, now: Ticks) -> u64 {
        let ticks = now.since(self.since).min(4 * self.window);
        self.since = now;
        if ticks > 0 {
            self.gap = ticks;
        }
        // Parts of a tick count, or an lcore with a small share would earn nothing in short polls.
        self.earned = (self.earned + (ticks * u64::from(share.0)) as i64).min((self.window as i64) << 16);
        if share.0 == 0 {
            self.earned = self.earned.min(0);
        }
        // Time that would be lost before the next poll is not left to others.
        let left_to_others = self.window.saturating_sub(self.gap.max(self.window / 4));
        now.0 + self.window - if self.earned > 0 { 0 } else { left_to_others }
    }

    /// Settles the time of the burst: `pace`, from [`JointPacer::take`], was charged with its frames.
    #[inline]
    pub fn settle(&mut self, pace: Pace) {
        let (beyond, fraction) = pace.split();
        self.fraction = fraction;
        let used = std::mem::take(&mut self.taken) as i64 + beyond;
        self.earned = (self.earned - (used << 16)).max(-((self.window as i64) << 16));
        // Time that is left stays leased, as far as it may.
        let left = beyond.min(0).unsigned_abs();
        let kept = left.min(self.most_leased.saturating_sub(self.leased));
        self.leased += kept;
        let more = beyond + kept as i64 - std::mem::take(&mut self.last) as i64;
        self.lost_at = Ticks(self.lost_at.0.saturating_add_signed(more));
        self.wire.settle(more);
    }

    /// Gives back the time of `bytes` on the wire, of frames that the device did not take.
    #[cold]
    pub fn give_back(&mut self, bytes: u64) {
        let ticks = ((bytes * self.byte_time) >> 16) as i64;
        self.lost_at = Ticks(self.lost_at.0.saturating_add_signed(-ticks));
        self.wire.settle(-ticks);
        self.earned = (self.earned + (ticks << 16)).min((self.window as i64) << 16);
    }

    /// Charges a frame of `len` bytes that is sent now without pacing.
    pub fn charge(&self, len: u32, now: Ticks) {
        let ticks = (Shaper::wire_bytes(len) * self.byte_time).div_ceil(1 << 16);
        self.wire.charge(ticks, now.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::shaper::MIN_FRAME;
    use crate::units::{BitRate, Nanos, WIRE_OVERHEAD};
    use proptest::prelude::*;

    const HZ: u64 = 2_600_000_000;
    const SLACK: Nanos = Nanos(10_000);
    const LONGEST: u32 = 9216;

    fn shaper(rate: u64) -> Shaper {
        Shaper::new(BitRate(rate), HZ, SLACK)
    }

    fn pacers(rate: u64, count: usize) -> Vec<JointPacer> {
        let wire = Arc::new(JointWire::default());
        (0..count).map(|_| JointPacer::new(wire.clone(), &shaper(rate), LONGEST, count as u64)).collect()
    }

    /// Sends up to `most` frames of `len` bytes, and returns their number.
    fn send(pacer: &mut JointPacer, most: u64, len: u32, share: Option<WireShare>, now: u64) -> u64 {
        let wanted = most * Shaper::wire_bytes(len);
        let Some(mut pace) = pacer.take(wanted, share, Ticks(now)) else { return 0 };
        let mut sent = 0;
        while sent < most && pace.is_free() {
            pace.charge(len);
            sent += 1;
        }
        pacer.settle(pace);
        sent
    }

    /// Polls two lcores, each with endless frames, for a tenth of a second. Returns the frames that each sent.
    fn compete(shares: [u32; 2], gaps: [u64; 2], len: u32) -> [u64; 2] {
        let mut pacers = pacers(10_000_000_000, 2);
        let (mut sent, mut next) = ([0; 2], [HZ, HZ + gaps[1] / 2]);
        loop {
            let lcore = usize::from(next[1] < next[0]);
            let now = next[lcore];
            if now > HZ + HZ / 10 {
                return sent;
            }
            sent[lcore] += send(&mut pacers[lcore], 64, len, Some(WireShare(shares[lcore])), now);
            next[lcore] += gaps[lcore];
        }
    }

    #[test]
    fn lcores_share_a_busy_wire_by_their_shares_however_often_they_poll() {
        let most = HZ as f64 / 10.0 / (1_024.0 * 8.0 * HZ as f64 / 10e9);
        for gaps in [[2_600, 2_600], [2_600, 13_000], [13_000, 5_200]] {
            for shares in [[1 << 15, 1 << 15], [1 << 14, 3 << 14], [3 << 14, 1 << 14]] {
                let sent = compete(shares, gaps, 1_000).map(|frames| frames as f64);
                let [share, total] = [sent[0] / (sent[0] + sent[1]), (sent[0] + sent[1]) / most];
                let wanted = f64::from(shares[0]) / 65_536.0;
                assert!((share - wanted).abs() < 0.06, "{gaps:?} {shares:?}: {share} of the wire");
                assert!((0.98..1.01).contains(&total), "{gaps:?} {shares:?}: {total} of the rate");
            }
        }
    }

    #[test]
    fn small_share_is_earned_in_short_polls() {
        // Four of 65,536 parts of 10G are 0.6 Mb/s: a frame of 88 B on the wire in 1.2 ms.
        let sent = compete([4, (1 << 16) - 4], [1_000, 1_000], 64);
        let (due, window) = (100_000 / 1_154, 10_000 / 70);
        assert!((due..=due + window).contains(&sent[0]), "{sent:?}: {due} are due, and {window} fit the window");
    }

    #[test]
    fn two_lcores_do_not_start_the_last_frame_at_once() {
        let mut pacers = pacers(10_000_000_000, 2);
        let wanted = 1_000 * Shaper::wire_bytes(LONGEST);
        let first = pacers[0].take(wanted, None, Ticks(HZ));
        assert!(first.is_some());
        assert!(pacers[1].take(wanted, None, Ticks(HZ + 100)).is_none(), "the first has the rest of the wire");
        pacers[0].settle(first.unwrap());
        assert!(pacers[1].take(wanted, None, Ticks(HZ + 100)).is_some(), "it sent nothing");
    }

    #[test]
    fn refused_frames_give_their_time_back() {
        let mut pacers = pacers(10_000_000_000, 2);
        let free_at = |pacer: &JointPacer| pacer.wire.free_at();
        let sent = send(&mut pacers[0], 1_000, 1_500, None, HZ);
        let before = free_at(&pacers[0]);
        pacers[0].give_back((sent - 1) * Shaper::wire_bytes(1_500));
        let ticks = (sent - 1) * Shaper::wire_bytes(1_500) * 8 * 26 / 100;
        assert!((before - free_at(&pacers[0])).abs_diff(ticks) < 2, "{sent} frames");
    }

    #[test]
    fn lcore_without_a_share_gets_only_time_that_the_other_leaves() {
        let sent = compete([0, 1 << 16], [2_600, 2_600], 1_000);
        assert!(sent[0] * 50 < sent[1], "strict priority: {sent:?}");
        let mut pacers = pacers(10_000_000_000, 2);
        let frames: u64 =
            (0..1_000).map(|poll| send(&mut pacers[0], 64, 1_000, Some(WireShare(0)), HZ + poll * 2_600)).sum();
        assert!(frames > 1_000 * 2_600 / 2_130 * 9 / 10, "alone it has the wire: {frames}");
    }

    #[test]
    fn lcore_without_a_share_uses_an_idle_wire_however_seldom_it_polls() {
        for gap in [2_600, 7_800, 13_000, 20_800] {
            let mut pacers = pacers(10_000_000_000, 2);
            let polls = 2_600_000 / gap;
            let sent = |poll: u64| send(&mut pacers[0], 64, 1_000, Some(WireShare(0)), HZ + poll * gap);
            let frames: u64 = (0..polls).map(sent).sum();
            assert!(frames > 1_220 * 97 / 100, "{frames} of 1,220 frames in a millisecond, polls each {gap} ticks");
        }
    }

    proptest! {
        /// A single lcore is paced like a shaper, whether its frames fit the taken time or not.
        #[test]
        fn one_lcore_is_paced_as_by_a_shaper(
            rate in 1_000_000_u64..400_000_000_000,
            polls in prop::collection::vec((0_u64..100_000, prop::collection::vec(1_u32..9216, 0..8), 0_u64..80_000), 0..50),
        ) {
            let mut shaper = shaper(rate);
            let mut pacer = JointPacer::with_lease(Arc::default(), &shaper, LONGEST, shaper.slack(), 0);
            let mut now = Ticks(HZ);
            for (gap, lens, wanted) in polls {
                now = Ticks(now.0 + gap);
                let all: u64 = lens.iter().map(|&len| Shaper::wire_bytes(len)).sum();
                let (one, joint) = (shaper.pace(now), pacer.take(all.max(wanted), None, now));
                prop_assert_eq!(one.is_some(), joint.is_some());
                let (Some(mut one), Some(mut joint)) = (one, joint) else { continue };
                let mut is_charged = false;
                for len in lens {
                    prop_assert_eq!(one.is_free(), joint.is_free());
                    if one.is_free() {
                        one.charge(len);
                        joint.charge(len);
                        is_charged = true;
                    }
                }
                if is_charged {
                    shaper.keep(one, now);
                }
                pacer.settle(joint);
            }
        }

        /// Each lcore counts all that stands before the wire.
        #[test]
        fn posted_is_what_the_wire_has_yet_to_send(
            polls in prop::collection::vec(
                (0_u64..10_000, 0_usize..3, 1_u64..64, 60_u32..1500, prop::option::of(0_u32..65_537), 0_u64..9), 1..200),
        ) {
            let mut pacers = pacers(10_000_000_000, 3);
            // The true wire: it sends as long as it has anything.
            let (mut now, mut free_at) = (HZ, 0.0_f64);
            for (gap, lcore, most, len, share, unused) in polls {
                now += gap;
                free_at = free_at.max(now as f64);
                // The frames of a queue that may not leave stay behind.
                let pacer = &mut pacers[lcore];
                let wanted = (most + unused) * Shaper::wire_bytes(len);
                if let Some(mut pace) = pacer.take(wanted, share.map(WireShare), Ticks(now)) {
                    let mut sent = 0;
                    while sent < most && pace.is_free() {
                        pace.charge(len);
                        sent += 1;
                    }
                    pacer.settle(pace);
                    free_at += (sent * Shaper::wire_bytes(len) * pacer.byte_time) as f64 / 65_536.0;
                }
                let stands = free_at - now as f64;
                for pacer in &pacers {
                    let posted = (pacer.posted(Ticks(now)).0 * pacer.byte_time) as f64 / 65_536.0;
                    prop_assert!(posted + 4.0 > stands, "{posted} ticks of {stands} are counted");
                }
            }
        }

        /// All lcores together send no more than the rate and the slack, and each burst's last frame.
        #[test]
        fn joint_pacers_together_keep_the_rate_of_the_wire(
            polls in prop::collection::vec((0_u64..20_000, 0_usize..3, 1_u64..64, 60_u32..1500, prop::option::of(0_u32..65_537)), 1..200),
        ) {
            let rate = 10_000_000_000;
            let mut pacers = pacers(rate, 3);
            let (mut now, mut bytes, mut last) = (HZ, 0, 0);
            for (gap, lcore, most, len, share) in polls {
                now += gap;
                let sent = send(&mut pacers[lcore], most, len, share.map(WireShare), now);
                bytes += sent * u64::from(len.max(MIN_FRAME) + WIRE_OVERHEAD);
                last = last.max(u64::from(len + WIRE_OVERHEAD));
                let ticks = now - HZ + SLACK.0 * HZ / 1_000_000_000;
                let most = (u128::from(ticks) * u128::from(rate) / 8 / u128::from(HZ)) as u64;
                prop_assert!(bytes <= most + last + 8, "{bytes} B on a wire that carries {most} B");
            }
        }
    }
}
