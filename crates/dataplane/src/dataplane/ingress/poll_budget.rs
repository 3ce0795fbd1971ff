//! The time of polls, and the lossy frames for which a poll has time.
//!
//! A poll takes a time that is linear in its frames: `base + forwarded * f + shed * s`. The lcore measures the three
//! terms: after each poll whose time they miss, they move half of the way to the nearest terms that match it
//! (projection algorithm; Goodwin, Ramadge and Caines 1980). A poll forwards all lossless frames and sheds lossy ones,
//! except for as many as fit the time that is left of its budget.
//!
//! This is stable, with `l` lossless and `y` lossy frames a second, of which a poll forwards `K`:
//! - If its frames came in the time `P`, it takes `base + (f l + s y) P + (f - s) K`. The choice of `K` makes that the
//!   target whatever `P` was. If even `K = 0` takes longer, `P` shrinks by the factor `f l + s y` a poll, which is
//!   below 1 for any load that can be shed.
//! - If `f - s` is taken to be `g` times too small, each poll multiplies the deviation by `(1 - g) (f l + s y)`. At any
//!   load that can be shed it decays for `0 < g < 2`.

use crate::headroom::SHORTEST_GAP;
use crate::sets::LEAST_BURST;
use crate::units::Nanos;

/// Fraction bits of the terms.
const SHIFT: u32 = 8;
/// Weight of the base in the projection, as if it were the time of this many frames.
const BASE_FRAMES: i64 = 8;
/// Polls with fewer frames tell little about the time of a frame.
const LEAST_FRAMES: u32 = 8;
/// Polls in a row that may forward no frame, after which the time of one shrinks.
const UNMEASURED_POLLS: u8 = 8;
/// The part of the frames that cannot be shed that lossy frames may always have beside them. If those alone overload
/// the lcore, their senders do not obey or are about to stop, and shedding all others would not help.
pub(crate) const LOSSY_PART: u64 = 16;

/// Frames that a poll is expected to receive.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub lossy: u64,
    /// Lossless frames and MAC control, which cannot be shed.
    pub others: u64,
}

/// The measured time of polls of one lcore, and their budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollBudget {
    /// Half of the poll gap in ticks; zero if it bounds nothing.
    half_gap: u64,
    /// Ticks of a poll without frames, of a forwarded frame with its transmission, and of a shed frame; in parts of
    /// 2^[`SHIFT`].
    base: i64,
    forwarded: i64,
    shed: i64,
    /// Whether the last poll took twice as long as the terms explain.
    is_odd: bool,
    /// Polls in a row that might forward nothing.
    unmeasured: u8,
}

impl PollBudget {
    /// Creates the budget of an lcore of which nothing is measured yet. `half_gap` is half of `poll_gap` in ticks.
    pub fn new(poll_gap: Nanos, half_gap: u64) -> Self {
        let half_gap = if poll_gap < SHORTEST_GAP { 0 } else { half_gap };
        Self { half_gap, base: 0, forwarded: 0, shed: 0, is_odd: false, unmeasured: 0 }
    }

    /// The poll gap in ticks; zero if it bounds nothing.
    pub fn gap(&self) -> u64 {
        2 * self.half_gap
    }

    /// Whether the poll gap bounds polls.
    pub fn is_bounded(&self) -> bool {
        self.half_gap > 0
    }

    /// Ticks that a poll with its transmissions should take: half of the gap. An lcore that polls rarely by itself gets
    /// a quarter of the gap beyond that.
    fn target(&self) -> u64 {
        self.half_gap.max((self.base >> SHIFT) as u64 + self.half_gap / 2)
    }

    /// Ticks that a poll with these frames takes.
    fn expected_ticks(&self, forwarded: u64, shed: u64) -> u64 {
        ((self.base + forwarded as i64 * self.forwarded + shed as i64 * self.shed) >> SHIFT) as u64
    }

    /// Corrects the terms by a poll that took `ticks`: they move half of the way to the nearest ones that match.
    /// Interrupts and the machine make polls longer, so a poll that took twice as long counts as twice as long, unless
    /// the poll before, `was_next`, did too; then as twice the gap.
    pub fn learn(&mut self, forwarded: u32, shed: u32, ticks: u64, was_next: bool) {
        let explained = self.expected_ticks(forwarded.into(), shed.into());
        let was_odd = std::mem::replace(&mut self.is_odd, ticks > 2 * explained);
        let most = if was_odd && was_next { 4 * self.half_gap } else { 2 * explained.max(self.half_gap / 4) };
        let ticks = ticks.min(most) as i64;
        let error = ticks - explained as i64;
        if error.abs() < ticks / 16 || (error > 0 && forwarded + shed < LEAST_FRAMES) {
            return;
        }
        let [forwarded, shed] = [forwarded, shed].map(i64::from);
        let norm = BASE_FRAMES * BASE_FRAMES + forwarded * forwarded + shed * shed;
        let part = if self.is_odd { 1 } else { 2 };
        let step = |weight: i64| (error << SHIFT) * weight / (part * norm);
        self.base = (self.base + step(BASE_FRAMES * BASE_FRAMES)).max(0);
        self.shed = (self.shed + step(shed)).max(0);
        self.forwarded = (self.forwarded + step(forwarded)).max(self.shed);
        self.bound(forwarded as u64, shed as u64, (explained as i64 + error / part) as u64);
    }

    /// Scales the terms down if they explain more than `ticks` for the frames of a poll, because some of them are zero.
    fn bound(&mut self, forwarded: u64, shed: u64, ticks: u64) {
        let explained = self.expected_ticks(forwarded, shed);
        if explained > ticks {
            let scaled = |term: i64| term * ticks as i64 / explained as i64;
            (self.base, self.forwarded, self.shed) = (scaled(self.base), scaled(self.forwarded), scaled(self.shed));
        }
    }

    /// Lossy frames that a poll with these frames may forward. Its others are forwarded, all further lossy ones shed.
    pub fn lossy(&mut self, expected: Expected) -> u64 {
        let must = self.base + expected.others as i64 * self.forwarded + expected.lossy as i64 * self.shed;
        let left = ((self.target() << SHIFT) as i64 - must).max(0);
        // At least a quarter: a wrong measurement must not make forwarded frames nearly free.
        let each = (self.forwarded - self.shed).max(self.forwarded / 4).max(1);
        let lossy = (left / each) as u64;
        self.unmeasured = if lossy + expected.others > 0 { 0 } else { self.unmeasured.saturating_add(1) };
        if self.unmeasured >= UNMEASURED_POLLS {
            // A time that is too high lets no frame pass, and no other poll would correct it.
            self.forwarded = (self.forwarded - self.forwarded / 16).max(self.shed);
        }
        lossy.max(expected.others / LOSSY_PART)
    }

    /// Ticks in which `forwarded` received frames are sent: about half of their time.
    pub fn owed_ticks(&self, forwarded: u32) -> u64 {
        (u64::from(forwarded) * self.forwarded as u64) >> (SHIFT + 1)
    }
}

/// The poll without shedding that took the shortest time for each frame. An lcore that sheds looks at each frame twice
/// and forwards smaller bursts, so its frames take longer. The shortest time counts, because the machine makes polls
/// longer.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuickestPoll {
    frames: u32,
    ticks: u32,
}

impl QuickestPoll {
    pub fn new() -> Self {
        Self { frames: 0, ticks: 1 }
    }

    /// Notes a poll of `ticks` with `frames` frames.
    #[inline]
    pub fn note(&mut self, frames: u32, ticks: u64) {
        let ticks = ticks.min(u32::MAX.into()) as u32;
        if frames >= LEAST_BURST as u32 && u64::from(ticks) * u64::from(self.frames) <= self.ticks_of(frames) {
            (self.frames, self.ticks) = (frames, ticks);
        }
    }

    /// Ticks of `frames` frames, times the frames of the quickest poll.
    fn ticks_of(self, frames: u32) -> u64 {
        u64::from(frames) * u64::from(self.ticks)
    }

    /// Makes it a little slower, so that it is forgotten by and by.
    pub fn forget(&mut self) {
        self.ticks = self.ticks.saturating_add(self.ticks / 256 + 1);
    }

    /// Whether `frames` frames are likely to fit into `ticks`. Nothing is, before a poll has been noted.
    pub fn fits(self, frames: u32, ticks: u64) -> bool {
        self.frames > 0 && self.ticks_of(frames) <= ticks.min(u32::MAX.into()) * u64::from(self.frames)
    }
}

/// Returns the largest allowance, in parts of 2^8 of a frame, with which rows of `counts` frames pass at most `most`
/// frames in total (max-min fair shares); `None` if all rows together have no more.
pub(crate) fn fair_share<C: Iterator<Item = u32> + Clone>(counts: C, most: u64) -> Option<u32> {
    let mut level = 0;
    // Each pass sets rows aside that have less than the level. A further pass would only raise it.
    for _ in 0..4 {
        let (rows, small) = counts
            .clone()
            .map(|count| u64::from(count) << 8)
            .fold((0, 0), |(rows, small), count| if count > level { (rows + 1, small) } else { (rows, small + count) });
        if rows == 0 {
            return None;
        }
        let next = (most << 8).saturating_sub(small) / rows;
        if next <= level {
            break;
        }
        level = next;
    }
    Some(level.min(1 << 24) as u32)
}

#[cfg(test)]
#[path = "poll_budget_tests.rs"]
mod tests;
