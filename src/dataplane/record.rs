//! What the pipeline received and sent, in the order in which it acted: a wrapper around its ports, so that what really
//! happened can be decided again by a replay (docs/replay.md).
//!
//! A poll receives first and sends after, and its ledgers hear of what has left when the next poll begins. Bursts are taken
//! one ahead, so the order of the trace is that in which work on bursts begins, and of the calls that send.

mod trace;

pub use trace::{HEADER, Stations, Step, Telling, Traced, why_not, write_csv};

use std::borrow::BorrowMut;
use std::collections::VecDeque;

use arrayvec::ArrayVec;

use crate::packet::{Burst, Packet, Ports};
use crate::sets::{BURST, FrameSet};
use crate::units::Ticks;
use crate::wire::mac_control::{self, MacControl};
use crate::wire::parse::L3;
use crate::wire::{MacAddr, parse};

/// What is known of a frame without asking who forwards it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// TCI of the outermost tag.
    pub tci: Option<u16>,
    /// DSCP and ECN, where there is IP.
    pub traffic_class: Option<u8>,
    /// Bytes without the frame check sequence.
    pub bytes: u16,
}

/// What happened at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A data frame was received.
    Arrived(Seen),
    /// The driver took a data frame.
    Left(Seen),
    /// The driver took a PFC frame.
    Told {
        /// Priorities that it names.
        named: u8,
        /// Of them, those that are to stop.
        stopped: u8,
    },
}

/// One line of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happened {
    /// When, on whatever clock the recorder was given.
    pub time_ns: u64,
    /// Where.
    pub port: u8,
    /// What.
    pub what: What,
}

/// A record in memory. When it is full nothing more is recorded, so that it is always the beginning of the truth.
#[derive(Debug, Default)]
pub struct Tape {
    happened: Vec<Happened>,
    most: usize,
    is_cut: bool,
    /// How much had been recorded when a test looked at the pipeline, and what it saw.
    #[cfg(test)]
    pub(crate) looks: Vec<(usize, u64)>,
}

impl Tape {
    /// For at most so many frames.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// All of it, in order.
    #[must_use]
    pub fn happened(&self) -> &[Happened] {
        &self.happened
    }

    /// Whether more has happened than it had room for.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn push(&mut self, time_ns: u64, port: usize, what: Option<What>) {
        let Some(what) = what else { return };
        self.is_cut |= self.happened.len() == self.most;
        if !self.is_cut {
            self.happened.push(Happened { time_ns, port: port as u8, what });
        }
    }

    /// The same but for one thing that happened.
    #[cfg(test)]
    pub(crate) fn without(&self, index: usize) -> Self {
        let others = self.happened.iter().enumerate().filter(|(number, _)| *number != index);
        let happened = others.map(|(_, happened)| *happened).collect();
        let looks = self.looks.iter().map(|&(at, digest)| (at - usize::from(at > index), digest)).collect();
        Self { happened, most: self.most, is_cut: self.is_cut, looks }
    }

    /// What the pipeline looks like after all that has been recorded.
    #[cfg(test)]
    pub(crate) fn look(&mut self, digest: u64) {
        if !self.is_cut {
            self.looks.push((self.happened.len(), digest));
        }
    }
}

/// Ports whose traffic is recorded. Ports that are not wrapped do not pay for it.
#[derive(Debug)]
pub struct Recorder<I, T, C> {
    /// The ports.
    pub io: I,
    /// The record: one's own, or one that is lent.
    pub tape: T,
    /// Nanoseconds, read once a burst.
    pub clock: C,
    /// Bursts that were taken and not begun yet: of which port, and what is to be recorded.
    taken: VecDeque<(usize, ArrayVec<Option<What>, BURST>)>,
}

impl<I, T, C> Recorder<I, T, C> {
    /// Records what happens at `io` on `tape`, by `clock`.
    pub fn new(io: I, tape: T, clock: C) -> Self {
        Self { io, tape, clock, taken: VecDeque::new() }
    }
}

impl<I: Ports, T: BorrowMut<Tape>, C: FnMut() -> u64> Ports for Recorder<I, T, C> {
    type Pkt = I::Pkt;

    fn rx(&mut self, port: usize, out: &mut Burst<I::Pkt>) {
        let before = out.len();
        self.io.rx(port, out);
        if out.len() > before {
            let arrived = out[before..].iter().map(|packet| seen(packet).map(What::Arrived)).collect();
            self.taken.push_back((port, arrived));
        }
    }

    fn begin(&mut self, port: usize) {
        self.io.begin(port);
        let Some((taken, arrived)) = self.taken.pop_front() else { return };
        debug_assert_eq!(taken, port, "bursts are worked on in the order in which they were taken");
        let (now, tape) = ((self.clock)(), self.tape.borrow_mut());
        arrived.into_iter().for_each(|what| tape.push(now, port, what));
    }

    fn backlog(&mut self, port: usize) -> Option<usize> {
        self.io.backlog(port)
    }

    fn time(&mut self) -> Option<Ticks> {
        self.io.time()
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<I::Pkt>) {
        // Before they are gone, and only those that will be.
        let what: ArrayVec<Option<What>, BURST> =
            packets.iter().map(|packet| told(packet).or_else(|| seen(packet).map(What::Left))).collect();
        self.io.tx(port, packets);
        let taken = what.len() - packets.len();
        if taken == 0 {
            return;
        }
        let (now, tape) = ((self.clock)(), self.tape.borrow_mut());
        for what in what.into_iter().take(taken) {
            tape.push(now, port, what);
        }
    }

    fn free(&mut self, packets: &mut Burst<I::Pkt>) {
        self.io.free(packets);
    }

    /// Shed frames reach no buffer: they are not recorded.
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

/// A data frame; `None` for MAC control and for what is malformed, neither of which reaches the buffer.
fn seen(packet: &impl Packet) -> Option<Seen> {
    let headers = parse(packet.bytes()).ok().filter(|headers| headers.ethertype != mac_control::ETHERTYPE)?;
    let traffic_class = (headers.l3 != L3::Other).then_some(headers.traffic_class);
    let bytes = u16::try_from(packet.len()).ok()?;
    Some(Seen { dst: headers.dst, src: headers.src, tci: headers.tci, traffic_class, bytes })
}

fn told(packet: &impl Packet) -> Option<What> {
    if packet.bytes().get(12..14)? != mac_control::ETHERTYPE.to_be_bytes() {
        return None;
    }
    let Some(MacControl::Pfc(frame)) = mac_control::parse(packet.bytes()) else { return None };
    let stops = |priority: &usize| frame.enabled >> priority & 1 == 1 && frame.quanta[*priority].0 > 0;
    let stopped = (0..frame.quanta.len()).filter(stops).fold(0, |mask, priority| mask | 1 << priority);
    Some(What::Told { named: frame.enabled, stopped })
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
