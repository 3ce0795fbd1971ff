//! Paces a port to its link rate, in integer arithmetic.

use crate::units::{BitRate, Bytes, Nanos, Ticks, WIRE_OVERHEAD};

/// Shorter frames are padded on the wire (IEEE 802.3 minimum, without the frame check sequence).
pub const MIN_FRAME: u32 = 60;

/// Upper limit of the slack in ticks, several minutes. With 16 bits of fraction below, it still fits 63 bits.
const MOST_SLACK: u64 = 1 << 40;

/// Upper limit of the wire time of a byte, so that the time of a burst of the longest frames fits 63 bits. A link this
/// slow carries fewer than 30 bytes a second on a clock of a gigahertz.
const MOST_BYTE_TIME: u64 = 1 << 41;

/// Paces a port like its link, by a clock of its wire: each frame takes its wire time, and idle time is lost. A frame
/// may be posted up to `slack` before the wire is free, so that polls up to `slack` apart keep the wire busy.
#[derive(Debug, Clone)]
pub struct Shaper {
    /// The time at which the wire has sent all that is posted, in whole ticks. It may lie behind `now`.
    free_at: u64,
    /// Fraction of `free_at`, in parts of 2^16 of a tick.
    fraction: u64,
    /// Wire time of a byte, in parts of 2^16 of a tick.
    byte_time: u64,
    /// Bytes on the wire in a tick, in parts of 2^32.
    tick_bytes: u64,
    /// Ticks before `free_at` at which the next frame may be posted.
    slack: u64,
}

impl Shaper {
    /// Creates a shaper of `rate` on a clock of `hz` ticks per second that posts frames up to `slack` ahead.
    #[must_use]
    pub fn new(rate: BitRate, hz: u64, slack: Nanos) -> Self {
        // Rounded up: a port paced faster than its wire would slowly fill the ring behind it.
        let byte_time = ((u128::from(hz) * 8) << 16).div_ceil(u128::from(rate.0.max(1)));
        let byte_time = byte_time.clamp(1, MOST_BYTE_TIME.into()) as u64;
        let slack = (u128::from(slack.0) * u128::from(hz) / 1_000_000_000).min(MOST_SLACK.into()) as u64;
        Self { free_at: 0, fraction: 0, byte_time, tick_bytes: (1_u64 << 48).div_ceil(byte_time), slack }
    }

    /// Creates a shaper of `rate` that sends up to `burst` bytes on the wire at once after it was idle. One more frame
    /// may start at the last instant.
    #[must_use]
    pub(super) fn with_burst(rate: BitRate, hz: u64, burst: Bytes) -> Self {
        let shaper = Self::new(rate, hz, Nanos(0));
        let slack = (u128::from(burst.0) * u128::from(shaper.byte_time)) >> 16;
        Self { slack: slack.min(MOST_SLACK.into()) as u64, ..shaper }
    }

    /// Takes rate and slack of `other`. Frames that were charged before stay charged by the rate before, and the next
    /// one may start when it might have.
    pub(super) fn set_rate(&mut self, other: &Self) {
        self.free_at = (self.free_at + other.slack).saturating_sub(self.slack);
        (self.byte_time, self.tick_bytes, self.slack) = (other.byte_time, other.tick_bytes, other.slack);
    }

    /// Posts frames up to `slack` ticks ahead from now on.
    pub fn set_slack(&mut self, slack: u64) {
        self.slack = slack.min(MOST_SLACK);
    }

    /// The time at which a frame may be posted, in whole ticks.
    pub(super) fn starts_at(&self) -> Ticks {
        Ticks(self.free_at.saturating_sub(self.slack))
    }

    /// Bytes on the wire that are posted and not sent at `now`, rounded up.
    #[inline]
    #[must_use]
    pub fn posted(&self, now: Ticks) -> Bytes {
        self.bytes_until(self.free_at, now)
    }

    /// Bytes that the wire carries from `now` until `free_at`, rounded up; at most 4 GB.
    #[inline]
    pub(super) fn bytes_until(&self, free_at: u64, now: Ticks) -> Bytes {
        if free_at <= now.0 {
            return Bytes(0);
        }
        Bytes(((free_at - now.0).saturating_mul(self.tick_bytes) >> 32) + 1)
    }

    /// Gives back the time of `bytes` on the wire that were charged and not sent.
    #[cold]
    pub(super) fn give_back(&mut self, bytes: u64) {
        let charged = u128::from(self.free_at) << 16 | u128::from(self.fraction);
        let left = charged.saturating_sub(u128::from(bytes) * u128::from(self.byte_time));
        (self.free_at, self.fraction) = ((left >> 16) as u64, (left & 0xffff) as u64);
    }

    /// Whether a frame may be posted now.
    #[inline]
    #[must_use]
    pub fn is_free(&self, now: Ticks) -> bool {
        self.free_at <= now.0 + self.slack
    }

    /// Charges a frame of `len` bytes that is posted now.
    #[inline]
    pub fn charge(&mut self, len: u32, now: Ticks) {
        if self.free_at < now.0 {
            (self.free_at, self.fraction) = (now.0, 0);
        }
        let time = self.fraction + u64::from(len.max(MIN_FRAME) + WIRE_OVERHEAD) * self.byte_time;
        self.free_at += time >> 16;
        self.fraction = time & 0xffff;
    }

    /// Returns the state of the shaper at `now`, to pace a burst. Returns `None` if no frame may start.
    #[inline]
    #[must_use]
    pub fn pace(&self, now: Ticks) -> Option<Pace> {
        let latest = now.0 + self.slack;
        let behind = latest.checked_sub(self.free_at)?;
        let (behind, fraction) = if behind > self.slack { (self.slack, 0) } else { (behind, self.fraction) };
        Some(Pace { ahead: fraction as i64 - ((behind as i64) << 16), byte_time: self.byte_time as i64 })
    }

    /// Stores `pace`, to which the frames sent at `now` were charged.
    #[inline]
    pub fn keep(&mut self, pace: Pace, now: Ticks) {
        // Rounded down, so that the fraction is never negative.
        self.free_at = (now.0 + self.slack).wrapping_add_signed(pace.ahead >> 16);
        self.fraction = (pace.ahead & 0xffff) as u64;
    }

    /// Bytes that a frame of `len` bytes occupies on the wire.
    #[inline]
    #[must_use]
    pub fn wire_bytes(len: u32) -> u64 {
        u64::from(len.max(MIN_FRAME) + WIRE_OVERHEAD)
    }

    /// The wire time of a byte in parts of 2^16 of a tick.
    pub(super) fn byte_time(&self) -> u64 {
        self.byte_time
    }

    /// The slack in ticks.
    #[must_use]
    pub fn slack(&self) -> u64 {
        self.slack
    }

    /// Returns the bytes of frames that may be posted at one instant after a long idle time: the burst of this shaper.
    #[must_use]
    pub fn burst(&self) -> Bytes {
        Bytes((u128::from(self.slack) * (1 << 16) / u128::from(self.byte_time.max(1))) as u64)
    }
}

/// A shaper at one instant, while a burst is chosen. It computes the sums of [`Shaper::charge`] in two registers.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time from the instant until a frame may be posted, in parts of 2^16 of a tick; negative if it may be already.
    ahead: i64,
    byte_time: i64,
}

impl Pace {
    /// A wire that takes frames in `ahead` parts of 2^16 of a tick, whose bytes take `byte_time` of these parts each.
    #[inline]
    pub(super) fn new(ahead: i64, byte_time: u64) -> Self {
        Self { ahead, byte_time: byte_time as i64 }
    }

    /// The time until the wire takes frames: whole ticks, rounded down, and the fraction in parts of 2^16.
    #[inline]
    pub(super) fn split(self) -> (i64, u64) {
        (self.ahead >> 16, (self.ahead & 0xffff) as u64)
    }

    /// Whether a frame may start.
    #[inline]
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.ahead < 1 << 16
    }

    /// Charges a frame of `len` bytes that starts.
    #[inline]
    pub fn charge(&mut self, len: u32) {
        self.ahead += i64::from(len.max(MIN_FRAME) + WIRE_OVERHEAD) * self.byte_time;
    }

    /// The pace after a run of `frames` frames of together `bytes`, the last of `last` bytes; `None` if one of them may
    /// not start. No frame of the run is shorter than [`MIN_FRAME`], and the run is at most a burst.
    #[inline]
    #[must_use]
    pub fn after_run(self, frames: u32, bytes: Bytes, last: u32) -> Option<Self> {
        let last = i64::from(last + WIRE_OVERHEAD) * self.byte_time;
        let ahead = self.ahead + (bytes.0 as i64 + i64::from(frames * WIRE_OVERHEAD)) * self.byte_time;
        // The frames before the last start earlier than it does.
        (ahead - last < 1 << 16).then_some(Self { ahead, ..self })
    }
}

/// The limits on the frames of a burst at one instant: the wire of the port, and maybe a maximum rate.
pub trait Pacing: Copy {
    /// Whether a frame may start.
    fn is_free(&self) -> bool;

    /// Charges a frame of `len` bytes that starts.
    fn charge(&mut self, len: u32);

    /// The limits after a run, like [`Pace::after_run`].
    fn after_run(self, frames: u32, bytes: Bytes, last: u32) -> Option<Self>;
}

impl Pacing for Pace {
    #[inline]
    fn is_free(&self) -> bool {
        Self::is_free(self)
    }

    #[inline]
    fn charge(&mut self, len: u32) {
        Self::charge(self, len);
    }

    #[inline]
    fn after_run(self, frames: u32, bytes: Bytes, last: u32) -> Option<Self> {
        Self::after_run(self, frames, bytes, last)
    }
}

/// The pace of a port, and of the queue whose frames are chosen: a frame may start if both permit it.
#[derive(Debug, Clone, Copy)]
pub struct LimitedPace {
    /// The wire of the port.
    pub port: Pace,
    /// The maximum rate of the queue.
    pub queue: Pace,
}

impl Pacing for LimitedPace {
    fn is_free(&self) -> bool {
        self.port.is_free() && self.queue.is_free()
    }

    fn charge(&mut self, len: u32) {
        self.port.charge(len);
        self.queue.charge(len);
    }

    fn after_run(self, frames: u32, bytes: Bytes, last: u32) -> Option<Self> {
        let (port, queue) = (self.port.after_run(frames, bytes, last)?, self.queue.after_run(frames, bytes, last)?);
        Some(Self { port, queue })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HZ: u64 = 2_600_000_000;

    #[test]
    fn a_saturated_port_sends_at_its_rate() {
        for (rate, len) in [(10_000_000_000, 1500), (25_000_000_000, 64), (400_000_000_000, 9216), (10_000_000, 60)] {
            let mut shaper = Shaper::new(BitRate(rate), HZ, Nanos(10_000));
            let (mut now, mut sent) = (HZ, 0_u64);
            let end = now + HZ / 10;
            while now < end {
                while shaper.is_free(Ticks(now)) {
                    shaper.charge(len, Ticks(now));
                    sent += u64::from(len + WIRE_OVERHEAD) * 8;
                }
                now += 1_000;
            }
            let ratio = sent as f64 / (rate as f64 / 10.0);
            assert!((0.999..1.03).contains(&ratio), "{rate} b/s at {len} B: {ratio}");
        }
    }

    #[test]
    fn idle_shaper_earns_no_more_than_the_slack() {
        let mut shaper = Shaper::new(BitRate(10_000_000_000), HZ, Nanos(10_000));
        let now = Ticks(100 * HZ);
        let mut frames = 0;
        while shaper.is_free(now) {
            shaper.charge(1226, now);
            frames += 1;
        }
        assert_eq!(frames, 11, "10 us are ten frames of a microsecond, and one more starts at the last instant");
        assert!((12_499..=12_500).contains(&shaper.burst().0), "{}", shaper.burst());
    }

    #[test]
    fn shaper_sends_after_fifty_years_of_uptime() {
        let mut shaper = Shaper::new(BitRate(100_000_000_000), HZ, Nanos(10_000));
        let now = Ticks(HZ * 3600 * 24 * 365 * 50);
        shaper.charge(64, now);
        assert!(shaper.is_free(now));
    }

    proptest! {
        #[test]
        fn a_burst_is_paced_as_its_frames_are(
            rate in 1_000_000_u64..400_000_000_000,
            slack in 0_u64..100_000,
            polls in prop::collection::vec((0_u64..200_000, prop::collection::vec(1_u32..9216, 0..8)), 0..50),
        ) {
            let mut one_by_one = Shaper::new(BitRate(rate), HZ, Nanos(slack));
            let mut paced = one_by_one.clone();
            let mut now = Ticks(0);
            for (gap, lens) in polls {
                now = Ticks(now.0 + gap);
                let pace = paced.pace(now);
                prop_assert_eq!(pace.is_some(), one_by_one.is_free(now));
                let Some(mut pace) = pace else { continue };
                let mut is_charged = false;
                let mut run = lens.iter().map(|&len| len.max(MIN_FRAME));
                let whole = pace.after_run(lens.len() as u32, Bytes(run.clone().sum::<u32>().into()), run.next_back().unwrap_or(0));
                let mut paced_run = Some(pace);
                for len in lens.iter().map(|&len| len.max(MIN_FRAME)) {
                    paced_run = paced_run.filter(Pace::is_free);
                    paced_run.iter_mut().for_each(|pace| pace.charge(len));
                }
                if !lens.is_empty() {
                    prop_assert_eq!(whole.map(|pace| pace.ahead), paced_run.map(|pace| pace.ahead));
                }
                for len in lens {
                    if !pace.is_free() {
                        break;
                    }
                    prop_assert!(one_by_one.is_free(now));
                    one_by_one.charge(len, now);
                    pace.charge(len);
                    is_charged = true;
                }
                prop_assert_eq!(pace.is_free(), one_by_one.is_free(now));
                if is_charged {
                    paced.keep(pace, now);
                    prop_assert_eq!((paced.free_at, paced.fraction), (one_by_one.free_at, one_by_one.fraction));
                }
            }
        }
    }
}
