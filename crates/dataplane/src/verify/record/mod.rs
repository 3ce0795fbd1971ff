//! Records the frames that the pipeline received and sent, in the order of its actions. A wrapper around its ports does
//! this, so that a replay can decide the real events again (docs/replay.md).
//!
//! A poll receives first and then sends, and its ledgers collect releases at the beginning of the next poll. Bursts are
//! received one ahead, so arrivals are recorded when work on their burst begins, and departures when they are sent.

mod trace;

pub use trace::{HEADER, SentPfc, Stations, Step, Traced, why_not, write_csv};

use std::borrow::BorrowMut;
use std::collections::VecDeque;

use arrayvec::ArrayVec;

use crate::io::{Burst, Packet, Ports};
use crate::sets::{BURST, ClassSet, FrameSet};
use crate::units::Ticks;
use crate::wire::mac_control::{self, MacControl};
use crate::wire::parse::L3;
use crate::wire::{MacAddr, parse};

/// The properties of a frame that do not depend on forwarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
    /// TCI of the outermost tag.
    pub tci: Option<u16>,
    /// DSCP and ECN; `None` without IP.
    pub traffic_class: Option<u8>,
    /// Bytes without the frame check sequence.
    pub bytes: u16,
}

/// An event at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A data frame was received.
    Arrived(Seen),
    /// The driver took a data frame.
    Left(Seen),
    /// The driver refused a data frame of this many bytes. Its wire time stays charged.
    Refused(u16),
    /// The driver took a PFC frame.
    Pfc {
        /// Priorities that the frame enables.
        named: ClassSet,
        /// Enabled priorities with XOFF.
        stopped: ClassSet,
    },
}

/// One entry of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happened {
    /// Time of the event, on the clock that the recorder was given.
    pub time_ns: u64,
    /// Beginning of its poll, by the clock of the pipeline.
    pub poll: Ticks,
    /// Port of the event.
    pub port: u8,
    /// The event.
    pub what: What,
}

/// The time of an event, as in [`Happened`].
#[derive(Debug, Clone, Copy)]
struct Instant {
    time_ns: u64,
    poll: Ticks,
}

/// A look of a test: the length of the record, the digest of the pipeline's state, and the poll that has received.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Clone, Copy)]
pub struct TapeLook {
    /// Length of the record.
    pub at: usize,
    /// Digest of the pipeline's state.
    pub digest: u64,
    /// The poll that has received.
    pub poll: Ticks,
}

/// A record in memory. When it is full, recording stops, so that it is always a complete beginning.
#[derive(Debug, Default)]
pub struct Tape {
    happened: Vec<Happened>,
    most: usize,
    is_cut: bool,
    /// The looks of a test.
    #[cfg(any(test, feature = "testing"))]
    pub looks: Vec<TapeLook>,
}

impl Tape {
    /// Creates a record for at most `most` events.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Returns all events, in order.
    #[must_use]
    pub fn happened(&self) -> &[Happened] {
        &self.happened
    }

    /// Whether events were left out because the record was full.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn push(&mut self, at: Instant, port: usize, what: Option<What>) {
        let Instant { time_ns, poll } = at;
        let Some(what) = what else { return };
        self.is_cut |= self.happened.len() == self.most;
        if !self.is_cut {
            self.happened.push(Happened { time_ns, poll, port: port as u8, what });
        }
    }

    /// Returns a copy without one event.
    #[cfg(any(test, feature = "testing"))]
    pub fn without(&self, index: usize) -> Self {
        let others = self.happened.iter().enumerate().filter(|(number, _)| *number != index);
        let happened = others.map(|(_, happened)| *happened).collect();
        let earlier = |look: &TapeLook| TapeLook { at: look.at - usize::from(look.at > index), ..*look };
        let looks = self.looks.iter().map(earlier).collect();
        Self { happened, most: self.most, is_cut: self.is_cut, looks }
    }

    /// Adds the digest of the pipeline's state after all recorded events and the arrivals of `poll`.
    #[cfg(any(test, feature = "testing"))]
    pub fn look(&mut self, digest: u64, poll: Ticks) {
        if !self.is_cut {
            self.looks.push(TapeLook { at: self.happened.len(), digest, poll });
        }
    }
}

/// Ports whose traffic is recorded. Ports without this wrapper have no cost.
#[derive(Debug)]
pub struct Recorder<I, T, C> {
    /// The ports.
    pub io: I,
    /// The record, owned or borrowed.
    pub tape: T,
    /// Clock in nanoseconds, read once per burst.
    pub clock: C,
    /// Beginning of the present poll.
    pub poll: Ticks,
    /// Bursts received but not begun yet: the port, and the events to record.
    taken: VecDeque<(usize, ArrayVec<Option<What>, BURST>)>,
}

impl<I, T, C> Recorder<I, T, C> {
    /// Creates a recorder that records the events at `io` on `tape`, with times from `clock`, in a poll that began at
    /// `poll`.
    pub fn new(io: I, tape: T, clock: C, poll: Ticks) -> Self {
        Self { io, tape, clock, poll, taken: VecDeque::new() }
    }
}

impl<I: Ports, T, C> Recorder<I, T, C> {
    /// Remembers the frames that `receive` adds to `out`. A burst may come from several queues of `port` in turn.
    fn take(&mut self, port: usize, out: &mut Burst<I::Pkt>, receive: impl FnOnce(&mut I, &mut Burst<I::Pkt>)) {
        let before = out.len();
        receive(&mut self.io, out);
        if out.len() == before {
            return;
        }
        let arrived = out[before..].iter().map(|packet| seen(packet).map(What::Arrived));
        match self.taken.back_mut() {
            Some((taken, burst)) if *taken == port && before > 0 => burst.extend(arrived),
            _ => self.taken.push_back((port, arrived.collect())),
        }
    }
}

impl<I: Ports, T: BorrowMut<Tape>, C: FnMut() -> u64> Recorder<I, T, C> {
    /// Passes `packets` to the device by `send`, and records those that it takes.
    fn give(&mut self, port: usize, packets: &mut Burst<I::Pkt>, send: impl FnOnce(&mut I, &mut Burst<I::Pkt>)) {
        // Before the frames are gone: the driver removes those that it accepts.
        let what: ArrayVec<Option<What>, BURST> =
            packets.iter().map(|packet| pfc_sent(packet).or_else(|| seen(packet).map(What::Left))).collect();
        send(&mut self.io, packets);
        let taken = what.len() - packets.len();
        if what.is_empty() {
            return;
        }
        let (time_ns, poll, tape) = ((self.clock)(), self.poll, self.tape.borrow_mut());
        for (index, what) in what.into_iter().enumerate() {
            let what = match what {
                Some(What::Left(seen)) if index >= taken => Some(What::Refused(seen.bytes)),
                what => what.filter(|_| index < taken),
            };
            tape.push(Instant { time_ns, poll }, port, what);
        }
    }
}

impl<I: Ports, T: BorrowMut<Tape>, C: FnMut() -> u64> Ports for Recorder<I, T, C> {
    type Pkt = I::Pkt;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<I::Pkt>) {
        self.take(port, out, |io, out| io.rx(port, most, out));
    }

    fn rx_queue(&mut self, port: usize, queue: usize, most: usize, out: &mut Burst<I::Pkt>) {
        self.take(port, out, |io, out| io.rx_queue(port, queue, most, out));
    }

    fn begin(&mut self, port: usize) {
        self.io.begin(port);
        let Some((taken, arrived)) = self.taken.pop_front() else { return };
        debug_assert_eq!(taken, port, "bursts are processed in the order in which they were taken");
        let (time_ns, poll, tape) = ((self.clock)(), self.poll, self.tape.borrow_mut());
        arrived.into_iter().for_each(|what| tape.push(Instant { time_ns, poll }, port, what));
    }

    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        self.io.backlog(port, queues)
    }

    fn time(&mut self) -> Option<Ticks> {
        self.io.time()
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<I::Pkt>) {
        self.give(port, packets, |io, packets| io.tx(port, packets));
    }

    fn tx_queue(&mut self, port: usize, queue: usize, packets: &mut Burst<I::Pkt>) {
        self.give(port, packets, |io, packets| io.tx_queue(port, queue, packets));
    }

    fn free(&mut self, packets: &mut Burst<I::Pkt>) {
        self.io.free(packets);
    }

    /// Discards shed frames without a record, because they never reach the buffer.
    fn shed(&mut self, packets: &mut Burst<I::Pkt>, frames: FrameSet) {
        if let Some((_, arrived)) = self.taken.front_mut() {
            let mut index = 0;
            arrived.retain(|_| {
                index += 1;
                !frames.contains(index - 1)
            });
        }
        self.io.shed(packets, frames);
    }

    fn copy(&mut self, packet: &I::Pkt) -> Option<I::Pkt> {
        self.io.copy(packet)
    }

    fn make(&mut self, frame: &[u8]) -> Option<I::Pkt> {
        self.io.make(frame)
    }
}

/// Describes a data frame. Returns `None` for MAC control and malformed frames, which never reach the buffer.
fn seen(packet: &impl Packet) -> Option<Seen> {
    let headers = parse(packet.bytes()).ok().filter(|headers| headers.ethertype != mac_control::ETHERTYPE)?;
    let traffic_class = (headers.l3 != L3::Other).then_some(headers.traffic_class);
    let bytes = u16::try_from(packet.len()).ok()?;
    Some(Seen { dst: headers.dst, src: headers.src, tci: headers.tci, traffic_class, bytes })
}

fn pfc_sent(packet: &impl Packet) -> Option<What> {
    if packet.bytes().get(12..14)? != mac_control::ETHERTYPE.to_be_bytes() {
        return None;
    }
    let Some(MacControl::Pfc(frame)) = mac_control::parse(packet.bytes()) else { return None };
    let stopped = frame.enabled.iter().filter(|&priority| frame.quanta[priority].0 > 0).collect();
    Some(What::Pfc { named: frame.enabled, stopped })
}

#[cfg(test)]
mod tests;
