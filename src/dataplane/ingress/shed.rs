//! Load shedding: a core with more frames than time drops lossy frames at the receive ring, so that lossless ones get
//! through.
//!
//! Lossy senders do not stop. A flood of small lossy frames keeps a receive ring full; the backlog rule would then hold
//! the lossless classes of its port for as long as the flood lasts. An lcore that does not catch up therefore gives
//! each port and lossy class an allowance of frames per poll. It drops the frames beyond it by the bytes that decide
//! their class. The allowance follows the load: it shrinks while polls are late and grows while they are in time. A
//! port or class that sends less than its allowance loses nothing, so floods get equal shares of the remaining time.
//!
//! Shedding helps only against lossy frames. The allowance grows again while few of them pass beside frames that cannot
//! be shed. So a host that ignores PFC takes nothing from lossy traffic.
//!
//! The unit is the receive ring. Queues without lossless frames bring no more frames than may pass. Further ones are
//! lost in the device and are not shed.

use super::port_classifier::PortClassifier;
use crate::dataplane::frame::class_bits::ClassBits;
use crate::io::{Burst, Packet};
use crate::mutant::{self, Mutant};
use crate::sets::{CLASSES, FrameSet, MAX_PORTS, PortSet};
use crate::units::Bytes;
use crate::wire::{Purpose, glance, glance_roce, glance_usual};

/// Polls in a row, in time and without shed frames, after which shedding ends and no frame is parsed twice.
const CALM_POLLS: u8 = 64;
/// The first allowance, and the bounds of later ones, in frames per poll of one class of one port.
const FIRST_ALLOWANCE: u16 = 64;
const LEAST_ALLOWANCE: u16 = 1;
const MOST_ALLOWANCE: u16 = 4096;
/// A poll that is near its bounds and leaves no backlog does not reduce the allowance below this. If each poll takes
/// most of the poll gap regardless of the frames received, a smaller allowance would not help. A smaller one grows by
/// one frame in [`SLOW_POLLS`] such polls.
const SLOW_ALLOWANCE: u16 = 8;
const SLOW_POLLS: u8 = 64;
/// Divisor of the frames that cannot be shed: if no more lossy frames than the quotient pass, further shedding would
/// not help.
const SMALL_PART: u32 = 8;
/// Frames of each network row that a port may always pass in a poll: ARP and neighbour discovery, and bridge protocols.
const NETWORK_ALLOWANCE: u16 = 4;
/// Polls in a row with a backlog that does not shrink, after which the allowance is at its minimum: the time until the
/// backlog is stalled, plus three divisions by four. [`LEAST_PASSED`] is the number of frames that then pass per poll
/// at one port.
pub(crate) const SETTLING_POLLS: u64 = 9;
pub(crate) const LEAST_PASSED: u64 = CLASSES as u64 * LEAST_ALLOWANCE as u64 + 2 * NETWORK_ALLOWANCE as u64;
/// Rows of the frames that may pass at a port: one for each class, one for network control, one for bridge protocols.
const NETWORK: usize = CLASSES;
const BRIDGE: usize = CLASSES + 1;
const ROWS: usize = CLASSES + 2;
/// Rounds that a poll may have while it sheds, if no clock bounds it.
pub(crate) const MOST_ROUNDS: u64 = 256;

/// The load of one poll.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollLoad {
    /// Whether it left a backlog at a port with lossless classes.
    pub is_late: bool,
    /// Whether it took more than three quarters of the time in which it must receive.
    pub is_slow: bool,
}

/// Frames of one poll that the shedder has inspected.
#[derive(Debug, Default, Clone, Copy)]
struct Looked {
    shed: u32,
    /// Lossy frames that passed.
    lossy: u32,
    /// Frames that cannot be shed.
    others: u32,
    /// Whether a port received more than three quarters of the frames that it may in a poll.
    is_full: bool,
    /// Whether lossy frames were left in receive queues of their own.
    is_cut: bool,
}

impl Looked {
    /// Whether the poll would have had notably less work without the lossy frames that passed.
    fn has_share(self) -> bool {
        self.lossy > self.others / SMALL_PART
    }
}

/// The shedding state of one lcore.
#[derive(Debug)]
pub(crate) struct Shedder {
    is_on: bool,
    /// Frames that a lossy class of a port may pass in one poll.
    allowance: u16,
    /// Calm polls in a row, and slow polls at a small allowance.
    calm_polls: u8,
    slow_polls: u8,
    looked: Looked,
    /// Frames that passed in this poll, by port and by class, [`NETWORK`] or [`BRIDGE`].
    passed: Box<[[u16; ROWS]; MAX_PORTS]>,
}

impl Default for Shedder {
    fn default() -> Self {
        Self {
            is_on: false,
            allowance: FIRST_ALLOWANCE,
            calm_polls: 0,
            slow_polls: 0,
            looked: Looked::default(),
            passed: Box::new([[0; ROWS]; MAX_PORTS]),
        }
    }
}

impl Shedder {
    /// Whether shedding is on: lossy frames are counted, and dropped beyond their allowance.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins the next poll, of the ports `own`.
    #[inline]
    pub fn begin(&mut self, own: PortSet) {
        if self.is_on {
            self.looked = Looked::default();
            own.iter().for_each(|port| self.passed[port] = [0; ROWS]);
        }
    }

    /// Frames that may still pass in this poll at `port`, by row.
    #[inline]
    fn left(&self, port: usize) -> [u16; ROWS] {
        let passed = &self.passed[port % MAX_PORTS];
        std::array::from_fn(|row| {
            let most = if row < NETWORK { self.allowance } else { self.allowance.max(NETWORK_ALLOWANCE) };
            most.saturating_sub(passed[row])
        })
    }

    /// Frames of queues without lossless groups that a port may receive in this poll: a class's allowance, and network
    /// control.
    #[inline]
    pub fn most_passed(&self) -> usize {
        usize::from(self.allowance + 2 * NETWORK_ALLOWANCE)
    }

    /// Records that frames of such queues may be left, because they brought [`Shedder::most_passed`].
    #[inline]
    pub fn leave(&mut self) {
        self.looked.is_cut = true;
    }

    /// Counts the frames that passed at `port`, as the difference between the allowances `were` and `left`, and the
    /// `others` that cannot be shed.
    #[inline]
    fn pass(&mut self, port: usize, were: &[u16; ROWS], left: &[u16; ROWS], others: u32) {
        let passed = &mut self.passed[port % MAX_PORTS];
        for (passed, (were, left)) in passed.iter_mut().zip(were.iter().zip(left)) {
            *passed += were - left;
            self.looked.lossy += u32::from(were - left);
        }
        self.looked.others += others;
    }

    /// Chooses the lossy frames of `burst`, received by `port`, beyond the allowance of their class in this poll.
    /// Returns them, and their sums by class.
    #[inline(never)]
    pub fn choose(
        &mut self,
        port: usize,
        classifier: &PortClassifier,
        burst: &Burst<impl Packet>,
    ) -> (FrameSet, [Shed; CLASSES]) {
        let were = self.left(port);
        let (mut frames, mut sums, mut left): (FrameSet, _, _) = (FrameSet::EMPTY, [Shed::default(); CLASSES], were);
        // The class of an ACK or CNP may not depend on its DSCP.
        let (mut others, has_roce) = (0, classifier.has_roce());
        for (index, packet) in burst.iter().enumerate() {
            let usual = if has_roce { None } else { glance_usual(packet.bytes()) };
            let (class_bits, row) = match usual {
                Some(dscp) => {
                    let class_bits = classifier.of_ip(dscp, false, 0).class_bits;
                    (class_bits, usize::from(class_bits.class()))
                }
                None => match row_of(classifier, packet.bytes()) {
                    Some(found) => found,
                    None => {
                        others += 1;
                        continue;
                    }
                },
            };
            let left = &mut left[row % ROWS];
            if class_bits.lossy_queue().is_empty() {
                others += 1;
                continue;
            }
            if *left > 0 {
                *left -= 1;
                continue;
            }
            frames.insert(index);
            sums[usize::from(class_bits.class())].add(packet.len());
        }
        self.pass(port, &were, &left, others);
        self.looked.shed += frames.len() as u32;
        (frames, sums)
    }

    /// Records that a port received `taken` frames of full bursts in this poll, of at most `most`.
    #[inline]
    pub fn take(&mut self, taken: u32, most: u32) {
        self.looked.is_full |= u64::from(taken) * 4 > u64::from(most) * 3;
    }

    /// Begins to shed, because a backlog does not shrink.
    pub fn start(&mut self) {
        if !mutant::is(Mutant::NeverSheds) {
            (self.is_on, self.calm_polls, self.looked) = (true, 0, Looked::default());
        }
    }

    /// Adapts the allowance after a poll has received all that it may. It decreases at once if it was too much, and
    /// increases gradually if not: classes that flood converge on equal shares (Chiu and Jain 1989). A poll near its
    /// bounds, of time or frames, causes a decrease before a backlog would pause lossless senders.
    pub fn adapt(&mut self, load: PollLoad) {
        let (allowance, has_share) = (self.allowance, self.looked.has_share());
        let is_near = load.is_slow || self.looked.is_full;
        self.allowance = match (load.is_late, is_near) {
            (true, _) if has_share => allowance / 4,
            (true, _) => Self::more(allowance).min(allowance.max(FIRST_ALLOWANCE)),
            (false, true) if has_share => self.less(),
            (false, _) => Self::more(allowance),
        }
        .clamp(LEAST_ALLOWANCE, MOST_ALLOWANCE);
        let is_calm = self.looked.shed == 0 && !self.looked.is_cut && !load.is_late;
        self.calm_polls = if is_calm { self.calm_polls + 1 } else { 0 };
        if self.calm_polls == CALM_POLLS {
            (self.is_on, self.calm_polls, self.allowance) = (false, 0, FIRST_ALLOWANCE);
        }
    }

    fn more(allowance: u16) -> u16 {
        allowance + allowance.div_ceil(16)
    }

    /// The allowance after a poll that was near its bounds.
    fn less(&mut self) -> u16 {
        if self.allowance > SLOW_ALLOWANCE {
            return (self.allowance - self.allowance.div_ceil(8)).max(SLOW_ALLOWANCE);
        }
        self.slow_polls = (self.slow_polls + 1) % SLOW_POLLS;
        (self.allowance + u16::from(self.slow_polls == 0)).min(SLOW_ALLOWANCE)
    }
}

/// Frames and bytes of one class that are shed in a burst: frames in the upper half, bytes in the lower.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shed(u64);

impl Shed {
    #[inline]
    fn add(&mut self, len: usize) {
        self.0 += 1 << 32 | len as u64;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn frames(self) -> u64 {
        self.0 >> 32
    }

    pub fn bytes(self) -> Bytes {
        Bytes(self.0 & u64::from(u32::MAX))
    }
}

/// Class of a frame that is shed.
pub(crate) fn class_of(classifier: &PortClassifier, frame: &[u8]) -> u8 {
    row_of(classifier, frame).map_or(0, |(class_bits, _)| class_bits.class())
}

/// Class and row of a frame that is not usual; `None` for MAC control from the link peer, which always passes.
#[inline(never)]
fn row_of(classifier: &PortClassifier, frame: &[u8]) -> Option<(ClassBits, usize)> {
    let glance = glance(frame);
    let is_data = glance.purpose == Purpose::Data;
    let kind = if is_data && classifier.has_roce() { glance_roce(frame) } else { None };
    let of_marks = || classifier.of(glance.dscp, glance.pcp);
    let class_bits = kind.and_then(|kind| classifier.of_roce(kind)).unwrap_or_else(of_marks).class_bits;
    match glance.purpose {
        Purpose::MacControl => None,
        Purpose::Network => Some((class_bits, NETWORK)),
        Purpose::Bridge => Some((class_bits, BRIDGE)),
        Purpose::Data => Some((class_bits, usize::from(class_bits.class()))),
    }
}
