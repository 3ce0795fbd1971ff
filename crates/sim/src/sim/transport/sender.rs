//! The sender of a reliable flow: it keeps the frames in flight, and sends again what was lost.

use std::collections::VecDeque;

use super::{Recovery, Reply, TransportSpec};
use crate::sim::control::Loss;
use crate::sim::frame::Part;
use crate::sim::load::PS;

/// Time after which frames count as lost unless another is given, and the least round trips of an empty path.
const DEFAULT_TIMEOUT_PS: u64 = 1_000_000 * PS;
const LEAST_ROUND_TRIPS: u64 = 4;

/// A frame of a flow: its number, its length and its place in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Number of the frame in its flow.
    pub number: u64,
    /// Bytes without the frame check sequence.
    pub len: u16,
    /// Place in a message.
    pub part: Part,
}

/// A frame that was sent and may have to be sent again.
#[derive(Debug, Clone, Copy)]
struct Sent {
    len: u16,
    part: Part,
    /// Whether the receiver has it, although an earlier frame is missing (selective repeat).
    has_arrived: bool,
}

/// The state of the sender.
#[derive(Debug)]
pub struct Sender {
    spec: TransportSpec,
    /// Frames that were sent, from number `first` on. Those of a message that may begin again are kept until all of it
    /// has arrived.
    sent: VecDeque<Sent>,
    first: u64,
    /// Number of the first frame that is not acknowledged.
    unacked: u64,
    /// Number of the next frame; below the end of `sent` it is a retransmission.
    next: u64,
    /// Bytes of frames in flight.
    flying: u64,
    /// One more than the highest frame that arrived out of order, as far as known (selective repeat).
    arrived_end: u64,
    /// The last frame that was sent when a loss was found: until it is acknowledged, frames that count as lost are sent
    /// again. Below `repeated` all of them have been (selective repeat).
    recovers_until: Option<u64>,
    repeated: u64,
    /// Time at which frames in flight count as lost; `u64::MAX`: none is.
    timeout_ps: u64,
    /// Timeouts and NAKs in a row without progress.
    timeouts: u32,
    /// Time without progress after which frames in flight count as lost.
    after_ps: u64,
    /// Whether the flow has failed: it sends no further frame.
    has_failed: bool,
    /// Bytes that the last reply took out of flight.
    acked_bytes: u64,
}

/// A message of which every frame is acknowledged: the time in picoseconds at which it was ready to send.
pub type Completed = u64;

impl Sender {
    /// Begins a flow of which no frame has been sent, on an empty path with a round-trip time of `base_rtt_ps`.
    #[must_use]
    pub fn new(spec: &TransportSpec, base_rtt_ps: u64) -> Self {
        let shortest = DEFAULT_TIMEOUT_PS.max(LEAST_ROUND_TRIPS * base_rtt_ps);
        Self {
            spec: *spec,
            after_ps: spec.timeout.map_or(shortest, |timeout| timeout.0 * PS),
            sent: VecDeque::new(),
            first: 0,
            unacked: 0,
            next: 0,
            flying: 0,
            arrived_end: 0,
            recovers_until: None,
            repeated: 0,
            timeout_ps: u64::MAX,
            timeouts: 0,
            has_failed: false,
            acked_bytes: 0,
        }
    }

    /// Number of the next frame.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that the last reply took out of flight.
    #[must_use]
    pub fn acked_bytes(&self) -> u64 {
        self.acked_bytes
    }

    /// Whether the flow has failed: too many timeouts without progress.
    #[inline]
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether every frame that was sent is acknowledged.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether the next frame is a retransmission.
    #[inline]
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.next < self.end()
    }

    /// Whether a frame may leave within a window of `window` bytes and that of the transport. A flow with nothing in
    /// flight may always send one, and frames that are sent alone again count as in flight already.
    #[inline]
    #[must_use]
    pub fn has_room(&self, window: Option<u64>) -> bool {
        let most = window.unwrap_or(u64::MAX).min(self.spec.window.map_or(u64::MAX, |window| window.0));
        let counted = self.flying.saturating_sub(self.spec.uncounted.0 * (self.next - self.unacked));
        counted < most || self.flying == 0 || self.spec.recovery == Recovery::SelectiveRepeat && self.repeats()
    }

    /// Sends the next frame again at `now_ps`; `None` if the next frame is a new one.
    pub fn repeat(&mut self, now_ps: u64) -> Option<Frame> {
        let sent = *self.sent.get((self.next - self.first) as usize)?;
        let frame = Frame { number: self.next, len: sent.len, part: sent.part };
        // With selective repeat, frames count as in flight until they have arrived, so they are counted once.
        if self.spec.recovery != Recovery::SelectiveRepeat {
            self.flying += u64::from(sent.len);
        }
        self.next += 1;
        self.repeated = self.repeated.max(self.next);
        self.skip_arrived();
        self.watch(now_ps);
        Some(frame)
    }

    /// Sends a new frame of `len` bytes at `now_ps`. Returns its number.
    pub fn send(&mut self, len: u16, part: Part, now_ps: u64) -> u64 {
        debug_assert!(!self.repeats(), "frames to be repeated come first");
        let number = self.next;
        self.sent.push_back(Sent { len, part, has_arrived: false });
        self.flying += u64::from(len);
        self.next += 1;
        self.watch(now_ps);
        number
    }

    /// Handles a reply. Calls `complete` for each message of which every frame is now acknowledged. Returns the
    /// loss that the reply shows.
    pub fn reply(&mut self, reply: &Reply, now_ps: u64, complete: impl FnMut(Completed)) -> Option<Loss> {
        let (before, flying) = (self.unacked, self.flying);
        self.acknowledge(reply.cumulative.min(self.end()), complete);
        if self.spec.recovery == Recovery::SelectiveRepeat {
            self.note_arrived(reply.cause);
        }
        self.acked_bytes = flying - self.flying;
        let is_lost = reply.is_nak && self.unacked < self.end();
        if self.unacked > before {
            (self.timeouts, self.timeout_ps) = (0, u64::MAX);
        } else if is_lost && self.spec.recovery != Recovery::GoBack0 {
            // With go-back-0 every loss is one without progress, which is its fault and not an error.
            self.retry();
        }
        if !is_lost {
            self.watch(now_ps);
            return None;
        }
        if !self.has_failed {
            self.timeout_ps = u64::MAX;
            self.go_back(reply.cumulative);
        }
        Some(Loss::Nak)
    }

    /// Time at which [`Sender::timer`] is due; `None`: no frame is in flight.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<u64> {
        (self.timeout_ps < u64::MAX).then_some(self.timeout_ps)
    }

    /// Runs the timer. Returns the loss if frames now count as lost.
    pub fn timer(&mut self, now_ps: u64) -> Option<Loss> {
        if self.timeout_ps > now_ps {
            return None;
        }
        self.timeout_ps = u64::MAX;
        // While all frames wait to be sent again, for pacing or a pause, their loss is known. The timer runs again when
        // one leaves.
        if self.unacked >= self.end() || self.flying == 0 {
            return None;
        }
        self.retry();
        if self.has_failed {
            return Some(Loss::Timeout);
        }
        if self.spec.recovery == Recovery::SelectiveRepeat {
            // All that has not arrived counts as lost.
            self.arrived_end = self.end();
        }
        self.go_back(self.unacked);
        Some(Loss::Timeout)
    }

    /// One more than the last frame that was sent.
    #[inline]
    fn end(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// Starts the timer, if it does not run and a frame is in flight.
    #[inline]
    fn watch(&mut self, now_ps: u64) {
        if self.timeout_ps == u64::MAX && self.flying > 0 && self.unacked < self.end() {
            self.timeout_ps = now_ps + self.after_ps;
        }
    }

    /// Counts a retry without progress. After too many the flow fails.
    fn retry(&mut self) {
        self.timeouts += 1;
        if self.timeouts > self.spec.retries {
            self.fail();
        }
    }

    /// Gives the flow up, with all frames in flight.
    fn fail(&mut self) {
        self.has_failed = true;
        let end = self.end();
        self.sent.clear();
        (self.first, self.unacked, self.next, self.flying) = (end, end, end, 0);
    }

    /// Removes the frames before `cumulative`.
    fn acknowledge(&mut self, cumulative: u64, mut complete: impl FnMut(Completed)) {
        while self.unacked < cumulative {
            let sent = self.sent[(self.unacked - self.first) as usize];
            // After a step back, frames from `next` on do not count as in flight.
            let counts = match self.spec.recovery {
                Recovery::SelectiveRepeat => !sent.has_arrived,
                Recovery::GoBackN | Recovery::GoBack0 => self.unacked < self.next,
            };
            self.flying -= if counts { u64::from(sent.len) } else { 0 };
            self.unacked += 1;
            if let Some((_, born_ps)) = sent.part.end {
                complete(born_ps);
            }
            if self.spec.recovery != Recovery::GoBack0 || sent.part.end.is_some() {
                self.sent.drain(..(self.unacked - self.first) as usize);
                self.first = self.unacked;
            }
        }
        self.next = self.next.max(self.unacked);
        self.recovers_until = self.recovers_until.filter(|&until| self.unacked < until);
    }

    /// Notes that frame `number` has arrived behind a gap.
    fn note_arrived(&mut self, number: u64) {
        if number < self.unacked || number >= self.end() {
            return;
        }
        let sent = &mut self.sent[(number - self.first) as usize];
        if !std::mem::replace(&mut sent.has_arrived, true) {
            self.flying -= u64::from(sent.len);
        }
        self.arrived_end = self.arrived_end.max(number + 1);
        if self.recovers_until.is_some() && self.repeated < self.arrived_end {
            self.next = self.repeated.max(self.unacked);
        }
        self.skip_arrived();
    }

    /// Goes on to the next frame that counts as lost. A frame counts as lost if a later one has arrived. Behind the
    /// last of these, new frames follow.
    fn skip_arrived(&mut self) {
        if self.spec.recovery != Recovery::SelectiveRepeat {
            return;
        }
        while self.next < self.end() {
            let has_arrived = self.sent[(self.next - self.first) as usize].has_arrived;
            if self.next >= self.arrived_end {
                (self.repeated, self.next) = (self.next, self.end());
            } else if has_arrived {
                self.next += 1;
            } else {
                break;
            }
        }
    }

    /// Goes back to frame `number`, or to the beginning of its message.
    fn go_back(&mut self, number: u64) {
        match self.spec.recovery {
            Recovery::GoBackN => (self.next, self.flying) = (self.unacked, 0),
            Recovery::GoBack0 => {
                // Every frame of the message in progress is kept, and the receiver begins it again too.
                (self.unacked, self.next, self.flying) = (self.first, self.first, 0);
            }
            Recovery::SelectiveRepeat => {
                self.next = number.max(self.unacked);
                (self.recovers_until, self.repeated) = (Some(self.end()), self.next);
                self.skip_arrived();
            }
        }
    }
}
