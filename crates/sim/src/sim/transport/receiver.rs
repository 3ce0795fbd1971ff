//! The receiver of a reliable flow: it accepts frames in order, and tells the sender what it misses.

use std::collections::VecDeque;

use super::{Recovery, Reply, TransportSpec};
use crate::mutant::{self, Mutant};
use crate::sim::frame::Part;
use crate::sim::load::PS;

/// Most frames that a receiver keeps behind a gap: a bound of memory beyond every window.
const MOST_KEPT: u64 = 1 << 20;

/// The state of the receiver.
#[derive(Debug)]
pub struct Receiver {
    spec: TransportSpec,
    /// Number of the first missing frame.
    expected: u64,
    /// The frames from `expected` on, as far as one has arrived (selective repeat).
    kept: VecDeque<Option<Part>>,
    /// First frame of the message in progress.
    message: u64,
    /// Frames since the last reply, and those marked CE.
    frames: u16,
    marked: u16,
    /// The gap of the last NAK, and the time until which it is not reported again.
    reported: Option<(u64, u64)>,
}

/// A frame that arrives.
#[derive(Debug, Clone, Copy)]
pub struct Arrived {
    /// Number of the frame.
    pub number: u64,
    /// The part of a message that it carries.
    pub part: Part,
    /// Whether it is marked.
    pub is_ce: bool,
    /// Time at which it left the sender.
    pub born_ps: u64,
    /// Time of its arrival.
    pub now_ps: u64,
}

/// The fate of a frame that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It counts as received.
    Accepted,
    /// It was received before.
    Again,
    /// It is discarded, because an earlier frame is missing.
    Discarded,
}

impl Receiver {
    /// Begins a flow of which no frame has arrived.
    #[must_use]
    pub fn new(spec: &TransportSpec) -> Self {
        Self { spec: *spec, expected: 0, kept: VecDeque::new(), message: 0, frames: 0, marked: 0, reported: None }
    }

    /// Handles a frame. Passes the parts that are now complete and in order to `deliver`; `None` says that a message
    /// begins again. Returns what becomes of the frame, and the reply that is due.
    pub fn receive(&mut self, arrived: Arrived, mut deliver: impl FnMut(Option<Part>)) -> (Receipt, Option<Reply>) {
        let Arrived { number, part, is_ce, born_ps, now_ps } = arrived;
        self.frames = self.frames.saturating_add(1);
        self.marked = self.marked.saturating_add(u16::from(is_ce));
        let (receipt, is_due, is_nak) = match number.cmp(&self.expected) {
            // The ACK may have been lost.
            std::cmp::Ordering::Less => (Receipt::Again, true, false),
            std::cmp::Ordering::Equal => {
                let ends = self.advance(part, &mut deliver);
                (Receipt::Accepted, ends || part.asks || u32::from(self.frames) >= self.spec.ack_every, false)
            }
            std::cmp::Ordering::Greater => {
                let receipt = self.keep(number, part);
                let gap_since = self.expected;
                let is_nak = self.reports_gap(now_ps);
                if is_nak && self.spec.recovery == Recovery::GoBack0 && self.expected > self.message {
                    self.expected = self.message;
                    self.reported = self.reported.map(|(_, until)| (gap_since.min(self.message), until));
                    deliver(None);
                }
                // With selective repeat each frame behind a gap tells the sender that it has arrived.
                (receipt, is_nak || self.spec.recovery == Recovery::SelectiveRepeat, is_nak)
            }
        };
        let cumulative = if mutant::is(Mutant::AcknowledgesDiscarded) && receipt == Receipt::Discarded {
            number + 1
        } else {
            self.expected
        };
        let reply = is_due.then(|| Reply {
            cumulative,
            is_nak,
            cause: if receipt == Receipt::Discarded { self.expected.wrapping_sub(1) } else { number },
            frames: std::mem::take(&mut self.frames),
            marked: std::mem::take(&mut self.marked),
            born_ps,
        });
        (receipt, reply)
    }

    /// Accepts the expected frame, and those kept behind it. Returns whether a message ended.
    fn advance(&mut self, part: Part, deliver: &mut impl FnMut(Option<Part>)) -> bool {
        let mut ends = false;
        let mut next = Some(part);
        self.kept.pop_front();
        while let Some(part) = next {
            self.expected += 1;
            if part.end.is_some() {
                (self.message, ends) = (self.expected, true);
            }
            deliver(Some(part));
            next = self.kept.front_mut().and_then(Option::take);
            if next.is_some() {
                self.kept.pop_front();
            }
        }
        ends
    }

    /// Keeps a frame behind a gap, if the flow does.
    fn keep(&mut self, number: u64, part: Part) -> Receipt {
        let place = number - self.expected;
        if self.spec.recovery != Recovery::SelectiveRepeat || place >= MOST_KEPT {
            return Receipt::Discarded;
        }
        let place = place as usize;
        if self.kept.len() <= place {
            self.kept.resize(place + 1, None);
        }
        match self.kept[place].replace(part) {
            None => Receipt::Accepted,
            Some(_) => Receipt::Again,
        }
    }

    /// Whether the gap at `expected` is reported now.
    fn reports_gap(&mut self, now_ps: u64) -> bool {
        let is_known = self.reported.is_some_and(|(gap, until)| gap == self.expected && now_ps < until);
        if !is_known {
            self.reported = Some((self.expected, now_ps + self.spec.nak_interval.0 * PS));
        }
        !is_known
    }
}
