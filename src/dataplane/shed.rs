//! Load shedding: a core with more frames than time drops lossy ones at the receive ring, so that lossless ones go on.
//!
//! Lossy senders do not stop. A flood of small lossy frames keeps a receive ring full; the backlog rule would then hold the
//! lossless classes of its port for as long as the flood lasts. A lcore that stays late therefore gives each port and lossy
//! class an allowance of frames a poll, and drops the frames beyond it by the bytes that decide their class. The allowance
//! follows the load: it shrinks while polls are late and grows while they are in time. A port or class that sends less than
//! its allowance loses nothing, so floods get equal shares of the time that is left.
//!
//! The unit is the receive ring. A port with one receive queue for each class would need no shedding: its lossy queues
//! could be polled less often.

use super::drops::DropReason;
use super::evidence::Refused;
use super::ingress::Frames;
use super::lanes::Lanes;
use super::meta::Kind;
use super::pipeline::{Pipeline, bits};
use crate::mutant::{self, Mutant};
use crate::packet::{Burst, MAX_PORTS, Packet, Ports};
use crate::qos::CLASSES;
use crate::units::Ticks;
use crate::wire::{Purpose, glance, glance_usual};

/// Late polls in a row from which on frames are shed. Fewer may be a stall, which the rings and XOFF cover.
const LATE_POLLS: u8 = 4;
/// Polls in a row that shed nothing, in time, after which the lcore looks at no frame twice.
const CALM_POLLS: u8 = 64;
/// The first allowance, and the bounds of those that follow, in frames a poll of one class of one port.
const FIRST_ALLOWANCE: u16 = 64;
const LEAST_ALLOWANCE: u16 = 1;
const MOST_ALLOWANCE: u16 = 4096;
/// Frames of ARP, neighbour discovery and bridge protocols that a port may always pass in a poll.
const NETWORK_ALLOWANCE: u16 = 4;
/// Polls in a row that leave a backlog, after which the allowance is the least there is: until shedding begins, and three
/// quarterings. What passes then in a poll at one port.
pub(super) const SETTLING_POLLS: u64 = LATE_POLLS as u64 + 4;
pub(super) const LEAST_PASSED: u64 = CLASSES as u64 * LEAST_ALLOWANCE as u64 + NETWORK_ALLOWANCE as u64;
/// Rows of what may pass at a port: one for each class, and one for network control.
const NETWORK: usize = CLASSES;
const ROWS: usize = CLASSES + 1;
/// Rounds that a poll may have while it sheds, where no clock bounds it.
pub(super) const MOST_ROUNDS: u64 = 256;

/// How much of the load one lcore sheds.
#[derive(Debug)]
pub(super) struct Shedder {
    is_on: bool,
    /// Frames that a lossy class of a port may pass in one poll.
    allowance: u16,
    /// Polls in a row: late ones while it is off, calm ones while it is on.
    polls: u8,
    /// Frames shed in this poll.
    shed: u32,
    /// Frames that passed in this poll, by port, and class or [`NETWORK`].
    passed: Box<[[u16; ROWS]; MAX_PORTS]>,
}

impl Default for Shedder {
    fn default() -> Self {
        Self { is_on: false, allowance: FIRST_ALLOWANCE, polls: 0, shed: 0, passed: Box::new([[0; ROWS]; MAX_PORTS]) }
    }
}

impl Shedder {
    /// Whether lossy frames are being counted, and dropped beyond their allowance.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The next poll begins, of the ports `own`.
    #[inline]
    pub fn begin(&mut self, own: u64) {
        if self.is_on {
            self.shed = 0;
            bits(own).for_each(|port| self.passed[port] = [0; ROWS]);
        }
    }

    /// Frames that may still pass in this poll at `port`, by row.
    #[inline]
    fn left(&self, port: usize) -> [u16; ROWS] {
        let passed = &self.passed[port % MAX_PORTS];
        std::array::from_fn(|row| {
            let most = if row == NETWORK { self.allowance.max(NETWORK_ALLOWANCE) } else { self.allowance };
            most.saturating_sub(passed[row])
        })
    }

    /// So many frames are `left` to pass at `port`, of those that `were`.
    #[inline]
    fn pass(&mut self, port: usize, were: &[u16; ROWS], left: &[u16; ROWS]) {
        let passed = &mut self.passed[port % MAX_PORTS];
        passed.iter_mut().zip(were.iter().zip(left)).for_each(|(passed, (were, left))| *passed += were - left);
    }

    /// A poll has received what it may. It `is_late` if it left a backlog at a port with lossless classes, and `is_slow` if it
    /// took more than three quarters of the time in which it must receive.
    #[inline]
    pub fn end(&mut self, is_late: bool, is_slow: bool) {
        if self.is_on {
            self.adapt(is_late, is_slow);
        } else if is_late || self.polls != 0 {
            self.wait(is_late);
        }
    }

    #[inline(never)]
    fn wait(&mut self, is_late: bool) {
        self.polls = if is_late { self.polls.saturating_add(1) } else { 0 };
        if self.polls >= LATE_POLLS && !mutant::is(Mutant::NeverSheds) {
            (self.is_on, self.polls) = (true, 0);
        }
    }

    /// Less at once when it was too much, more by and by when it was not: the classes that flood converge on equal shares
    /// (Chiu and Jain 1989). The decrease at three quarters comes before the backlog would stop lossless senders.
    #[inline(never)]
    fn adapt(&mut self, is_late: bool, is_slow: bool) {
        let allowance = self.allowance;
        self.allowance = match (is_late, is_slow) {
            (true, _) => allowance / 4,
            (false, true) => allowance - allowance.div_ceil(8),
            (false, false) => allowance + allowance.div_ceil(16),
        }
        .clamp(LEAST_ALLOWANCE, MOST_ALLOWANCE);
        self.polls = if self.shed == 0 && !is_late { self.polls + 1 } else { 0 };
        if self.polls == CALM_POLLS {
            (self.is_on, self.polls, self.allowance) = (false, 0, FIRST_ALLOWANCE);
        }
    }
}

/// Frames and bytes of one class that are shed of a burst: frames in the upper half, bytes in the lower.
#[derive(Debug, Default, Clone, Copy)]
struct Shed(u64);

impl Shed {
    #[inline]
    fn add(&mut self, len: usize) {
        self.0 += 1 << 32 | len as u64;
    }

    fn frames(self) -> u64 {
        self.0 >> 32
    }

    fn bytes(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }
}

/// Class and row of a frame that is not usual; `None` for MAC control, which always passes.
#[inline(never)]
fn row_of(lanes: &Lanes, frame: &[u8]) -> Option<(Kind, usize)> {
    let glance = glance(frame);
    let kind = lanes.of(glance.dscp, glance.pcp).kind;
    match glance.purpose {
        Purpose::MacControl => None,
        Purpose::Network => Some((kind, NETWORK)),
        Purpose::Data => Some((kind, usize::from(kind.class()))),
    }
}

impl<P: Packet> Pipeline<P> {
    /// Drops the lossy frames of `burst`, which came by `port`, that are beyond what their class may pass in this poll, and
    /// returns how many. No other stage sees them.
    #[inline(never)]
    pub(super) fn shed<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, burst: &mut Burst<P>) -> usize {
        let lanes = &self.ports[port].lanes;
        let were = self.shedder.left(port);
        let (mut frames, mut sums, mut left): (Frames, _, _) = (0, [Shed::default(); CLASSES], were);
        for (index, packet) in burst.iter().enumerate() {
            let (kind, row) = match glance_usual(packet.bytes()) {
                Some(dscp) => {
                    let kind = lanes.of_ip(dscp, false, 0).kind;
                    (kind, usize::from(kind.class()))
                }
                None => match row_of(lanes, packet.bytes()) {
                    Some(found) => found,
                    None => continue,
                },
            };
            let left = &mut left[row % ROWS];
            if kind.lossy() == 0 {
                continue;
            }
            if *left > 0 {
                *left -= 1;
                continue;
            }
            frames |= 1 << index;
            sums[usize::from(kind.class())].add(packet.len());
        }
        self.shedder.pass(port, &were, &left);
        let shed = frames.count_ones();
        if shed != 0 {
            self.shedder.shed += shed;
            self.touched |= 1 << port;
            self.count_shed(port, &sums);
            io.shed(burst, frames);
        }
        shed as usize
    }

    /// Counts what was shed at `port`, by class, and notes it for `why-dropped`. No stage has looked where the frames go.
    fn count_shed(&mut self, port: usize, sums: &[Shed; CLASSES]) {
        for (class, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.0 != 0) {
            let counters = &self.counters.ports[port];
            counters.rx_frames[class].add(sum.frames());
            counters.rx_bytes[class].add(sum.bytes());
            counters.drops[class][DropReason::Shed as usize].add(sum.frames());
            let tag = self.ports[port].lanes.of_class(class).tag;
            let frame =
                Refused { ports: [port as u8; 2], class: class as u8, group: tag.group(), cells: 0, queue: None };
            self.note_drop(port, frame, DropReason::Shed);
        }
    }

    /// The poll that began at `now` has received: the next allowance follows from how it went.
    #[inline]
    pub(super) fn end_shedding<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        let is_late = self.backlogged != 0;
        let is_slow = self.shedder.is_on
            && io.time().is_some_and(|time| time.since(now) > self.clock.half_gap() - self.clock.half_gap() / 4);
        self.shedder.end(is_late, is_slow);
    }
}
