//! The traffic that a flow has to send, and when: patterns, messages, frame lengths.

use super::frame::Part;
use super::rng::Rng;
use super::spec::{FrameSizes, Load, MessageSize};

/// IMIX frame lengths without the frame check sequence, for a draw from twelve.
const IMIX: [u16; 12] = [60, 60, 60, 60, 60, 60, 60, 572, 572, 572, 572, 1496];

/// Picoseconds in a nanosecond.
pub const PS: u64 = 1_000;

impl FrameSizes {
    /// Draws the length of the next frame, at least `least`.
    #[inline]
    pub fn draw(self, least: u16, rng: &mut Rng) -> u16 {
        let len = match self {
            FrameSizes::Fixed(len) => len,
            FrameSizes::Uniform(low, high) => rng.between(low.into(), high.into()) as u16,
            FrameSizes::Imix => *rng.pick(&IMIX),
        };
        len.max(least)
    }
}

impl MessageSize {
    /// Draws the size of the next message, in bytes.
    pub fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            MessageSize::Fixed(bytes) => bytes.0.max(1),
            MessageSize::Uniform(low, high) => rng.between(low.0.max(1), high.0.max(1)),
            MessageSize::Known(distribution) => distribution.cdf().draw(rng),
        }
    }
}

/// The message being sent.
#[derive(Debug, Clone, Copy)]
struct Message {
    born_ps: u64,
    left: u64,
    frames: u32,
}

/// The traffic to be sent over time. A waiting message is only a time: its size is drawn when its turn comes.
#[derive(Debug)]
pub struct Demand {
    load: Load,
    start_ps: u64,
    stop_ps: u64,
    current: Option<Message>,
    next_message_ps: u64,
    /// Messages whose sending has begun.
    pub made: u64,
}

impl Demand {
    /// Returns the demand of a flow that sends from `start_ps` until `stop_ps`.
    #[must_use]
    pub fn new(load: Load, start_ps: u64, stop_ps: u64) -> Self {
        Self { load, start_ps, stop_ps, current: None, next_message_ps: start_ps, made: 0 }
    }

    /// Whether there is data to send at `now`. The error is the time from which there may be some: `u64::MAX` for
    /// never.
    #[inline]
    pub fn ready(&mut self, now: u64, rng: &mut Rng) -> Result<(), u64> {
        if now < self.start_ps {
            return Err(self.start_ps);
        }
        if now >= self.stop_ps {
            return Err(u64::MAX);
        }
        match self.load {
            Load::Steady => Ok(()),
            Load::OnOff { on, off } => {
                let (on, off) = (on.0 * PS, off.0 * PS);
                let phase = (now - self.start_ps) % (on + off).max(1);
                if phase < on { Ok(()) } else { Err(now + (on + off - phase)) }
            }
            Load::Messages { .. } if self.current.is_some() => Ok(()),
            Load::Messages { size, every, poisson, count } => {
                if count.is_some_and(|count| self.made >= u64::from(count)) {
                    return Err(u64::MAX);
                }
                if self.next_message_ps > now {
                    return Err(self.next_message_ps);
                }
                self.current = Some(Message { born_ps: self.next_message_ps, left: size.draw(rng), frames: 0 });
                self.made += 1;
                let gap = if poisson { rng.exponential(every.0 * PS) } else { every.0 * PS };
                self.next_message_ps = self.next_message_ps.saturating_add(gap.max(1));
                Ok(())
            }
        }
    }

    /// Does the work of [`Demand::ready`] for a reliable flow, which completes a message that it has begun even after
    /// its end. Messages of a given number are also begun then, if they were due before.
    #[inline]
    pub fn ready_to_end(&mut self, now: u64, rng: &mut Rng) -> Result<(), u64> {
        if self.current.is_some() {
            return Ok(());
        }
        match self.load {
            Load::Messages { count: Some(_), .. } if now >= self.stop_ps && self.next_message_ps < self.stop_ps => {
                self.ready(self.stop_ps - 1, rng)
            }
            _ => self.ready(now, rng),
        }
    }

    /// Whether a message of a given number is due before the end and has not begun.
    #[inline]
    #[must_use]
    pub fn is_due(&self) -> bool {
        let Load::Messages { count: Some(count), .. } = self.load else { return false };
        self.next_message_ps < self.stop_ps && self.made < u64::from(count)
    }

    /// Whether there will never be data to send after `now`.
    #[inline]
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        match self.load {
            Load::Messages { count, .. } => {
                let is_last = count.is_some_and(|count| self.made >= u64::from(count));
                self.current.is_none() && (is_last || now >= self.stop_ps && !self.is_due())
            }
            Load::Steady | Load::OnOff { .. } => now >= self.stop_ps,
        }
    }

    /// Whether there will be data to send at `at`, as far as known now.
    #[inline]
    #[must_use]
    pub fn has_data_at(&self, at: u64) -> bool {
        match self.load {
            Load::Messages { .. } => self.current.is_some(),
            Load::Steady => at < self.stop_ps,
            Load::OnOff { on, off } => {
                at < self.stop_ps && at.saturating_sub(self.start_ps) % ((on.0 + off.0) * PS).max(1) < on.0 * PS
            }
        }
    }

    /// Whether a message has begun and not all of it was taken.
    #[inline]
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.current.is_some()
    }

    /// Takes a frame of at most `len` bytes. Returns its length and its place in a message.
    #[inline]
    pub fn take(&mut self, len: u16, least: u16) -> (u16, Part) {
        let Some(message) = &mut self.current else { return (len, Part::default()) };
        let number = self.made;
        message.frames += 1;
        if message.left > u64::from(len) {
            message.left -= u64::from(len);
            return (len, Part { number, asks: false, end: None });
        }
        let (len, end) = ((message.left as u16).max(least), Some((message.frames, message.born_ps)));
        self.current = None;
        (len, Part { number, asks: false, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Nanos};

    #[test]
    fn last_frame_of_a_message_carries_its_remainder() {
        let mut rng = Rng::new(1, 1);
        let size = MessageSize::Fixed(Bytes(2500));
        let load = Load::Messages { size, every: Nanos(10), poisson: false, count: Some(2) };
        let mut demand = Demand::new(load, 5_000, 100_000);
        assert_eq!(demand.ready(0, &mut rng), Err(5_000));
        assert_eq!(demand.ready(5_000, &mut rng), Ok(()));
        let part = |number, end| Part { number, asks: false, end };
        assert_eq!([demand.take(1000, 60), demand.take(1000, 60)], [(1000, part(1, None)); 2]);
        assert_eq!(demand.take(1000, 60), (500, part(1, Some((3, 5_000)))));
        assert_eq!(demand.ready(6_000, &mut rng), Err(15_000));
        assert_eq!(demand.ready(15_000, &mut rng), Ok(()));
        assert_eq!(demand.take(2490, 60), (2490, part(2, None)));
        assert_eq!(demand.take(2490, 60), (60, part(2, Some((2, 15_000)))), "never shorter than a frame");
        assert_eq!(demand.ready(16_000, &mut rng), Err(u64::MAX));
    }

    #[test]
    fn on_off_demand_follows_its_phases_until_its_end() {
        let mut rng = Rng::new(1, 1);
        let mut demand = Demand::new(Load::OnOff { on: Nanos(3), off: Nanos(7) }, 1_000, 50_000);
        let ready = [1_000, 3_999, 4_000, 10_999, 11_000].map(|now| demand.ready(now, &mut rng));
        assert_eq!(ready, [Ok(()), Ok(()), Err(11_000), Err(11_000), Ok(())]);
        assert_eq!(demand.ready(50_000, &mut rng), Err(u64::MAX));
    }

    #[test]
    fn imix_draws_frame_lengths_in_their_shares() {
        let mut rng = Rng::new(5, 0);
        let lens: Vec<u16> = (0..12_000).map(|_| FrameSizes::Imix.draw(60, &mut rng)).collect();
        let count = |len| lens.iter().filter(|drawn| **drawn == len).count();
        assert!(count(60).abs_diff(7_000) < 200 && count(572).abs_diff(4_000) < 200 && count(1496) > 850);
    }
}
