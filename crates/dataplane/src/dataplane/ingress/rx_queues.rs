//! The receive queues of a port: which of them a poll may receive from, in which order, and what they carry.
//!
//! A NIC may spread received frames over several queues; a guest sends by several queues of its virtual device. The
//! switch does not know which classes a queue carries, so it learns this from the frames. It uses the knowledge twice:
//!
//! - **Order.** Queues with lossless classes come first. On an lcore that sheds, the others bring no more frames than
//!   may pass, so that further ones are lost in front of the switch and cost it nothing.
//! - **`pfc: queue`.** The device at the other end keeps frames of a queue that is not polled, and its sender waits.
//!   So a queue is polled only while each lossless group that it carries is XON. No frame is in flight: headroom holds
//!   the burst that caused XOFF. Meanwhile every other queue brings few frames at a time, since it may turn out to
//!   carry the group too. A guest with one queue carries all classes in it, so any XOFF stops them all.

use crate::dataplane::frame::meta::Meta;
use crate::headroom::UNKNOWN_QUEUE_FRAMES;
use crate::io::{Burst, Ports};
use crate::sets::{BURST, CLASSES, ClassSet, FrameSet, LEAST_BURST};
use crate::units::{Nanos, Ticks};

/// Room of a burst that queues with lossless classes leave to the others. Without it, a sender that is always faster
/// than the lcore would starve them.
const LOSSY_SHARE: usize = 8;

/// A queue carries a class for at least this long after its last frame of that class, and for at most twice this long.
const MEMORY: Nanos = Nanos(1_000_000_000);

/// Bit of a mask for frames of groups that are not lossless.
pub(crate) const CARRIES_LOSSY: u16 = 1 << CLASSES;

/// Frames by kind that were received from one queue in a period.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Carried {
    /// Lossless priority groups.
    lossless: ClassSet,
    /// Whether there were frames of other groups.
    lossy: bool,
}

/// The receive queues of one port.
#[derive(Debug)]
pub(crate) struct RxQueues {
    /// Whether the port has several queues, or stops its only one. A field, because every poll of a port asks.
    is_managed: bool,
    /// All queues of the port.
    all: ClassSet,
    /// Whether XOFF of a group stops the queues that carry it.
    is_stopped_by_xoff: bool,
    /// Lossless groups of the port.
    lossless_groups: ClassSet,
    /// Frames in the present period and in the one before, by queue.
    young: [Carried; CLASSES],
    old: [Carried; CLASSES],
    /// Queues that carry lossless groups.
    lossless: ClassSet,
    /// Queues among these that the device fills with lossless frames by its flow rules.
    steered: ClassSet,
    /// Whether no other queue has lossless frames or PFC, so that it may overflow.
    is_complete: bool,
    /// Whether such frames may be in any queue, because the device has not taken all rules.
    is_mixed: bool,
    /// Whether the queues whose frames count as receive backlog were empty after the last receive call.
    is_drained: bool,
    /// Frames that the other queues may still bring in this poll.
    others_left: usize,
    /// End of the present period, and its length in ticks.
    period_end: Ticks,
    period: u64,
    /// Frames that each queue may bring in the present receive call.
    most: usize,
    /// Queue that each kind of queue (others, lossless) begins with in the next burst.
    next: [usize; 2],
    /// The queue of each frame in the burst that was received last.
    queue_of: [u8; LEAST_BURST],
    /// Frames of that burst.
    burst: usize,
}

/// The conditions of one receive call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions {
    /// Groups at XOFF.
    pub xoff: ClassSet,
    /// Whether the lcore is too slow for all frames.
    pub is_late: bool,
}

impl RxQueues {
    /// Creates the state of `count` queues on a clock of `hz` ticks per second. `is_stopped_by_xoff` is whether the
    /// port has `pfc: queue`.
    pub fn new(count: usize, is_stopped_by_xoff: bool, lossless_groups: ClassSet, hz: u64) -> Self {
        assert!((1..=CLASSES).contains(&count), "a port has one to eight receive queues");
        let period = (u128::from(MEMORY.0) * u128::from(hz) / 1_000_000_000) as u64;
        Self {
            is_managed: is_stopped_by_xoff || count > 1,
            all: (0..count).collect(),
            is_stopped_by_xoff,
            lossless_groups,
            young: Default::default(),
            old: Default::default(),
            lossless: ClassSet::EMPTY,
            steered: ClassSet::EMPTY,
            is_complete: false,
            is_mixed: false,
            is_drained: false,
            others_left: usize::MAX,
            period_end: Ticks(0),
            period,
            most: LEAST_BURST,
            next: [0; 2],
            queue_of: [0; LEAST_BURST],
            burst: 0,
        }
    }

    /// Whether bursts need [`RxQueues::receive`] and [`RxQueues::learn`]. Otherwise the port has one queue, which is
    /// always polled.
    #[inline]
    pub fn is_managed(&self) -> bool {
        self.is_managed
    }

    /// Declares that the device puts lossless frames into `queues`. They count as lossless even while they are empty.
    /// `is_complete` is whether it puts all of them there, and PFC.
    pub fn steer(&mut self, queues: ClassSet, is_complete: bool) {
        (self.steered, self.is_complete, self.is_mixed) = (queues & self.all, is_complete, !is_complete);
        self.lossless |= self.steered;
    }

    /// Begins a poll in which queues without lossless groups may bring `most` frames, if these have nothing else.
    pub fn begin_poll(&mut self, most: usize) {
        self.others_left = if self.is_complete { most } else { usize::MAX };
    }

    /// Records that a poll receives nothing from the queues, so that frames in them are left.
    pub fn skip_poll(&mut self) {
        self.is_drained = false;
    }

    /// Whether queues without lossless groups have brought all frames that they may in this poll.
    pub fn is_cut(&self) -> bool {
        // Vector drivers give none if they are asked for fewer than eight.
        self.is_complete && self.others_left < 8
    }

    /// Whether the queues of [`RxQueues::backlogged`] were empty at their last receive call.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Lossless groups that `queue` carries.
    #[inline]
    pub fn carried(&self, queue: usize) -> ClassSet {
        self.young[queue].lossless | self.old[queue].lossless
    }

    /// The kinds of frames that each queue carries, as masks: its lossless groups, and [`CARRIES_LOSSY`].
    pub fn carried_masks(&self) -> [u16; CLASSES] {
        std::array::from_fn(|queue| {
            let lossy = self.young[queue].lossy || self.old[queue].lossy;
            u16::from(self.carried(queue).bits()) | if lossy { CARRIES_LOSSY } else { 0 }
        })
    }

    /// Queues that are not polled while the groups `xoff` are XOFF.
    pub fn stopped(&self, xoff: ClassSet) -> ClassSet {
        if !self.is_stopped_by_xoff || xoff.is_empty() {
            return ClassSet::EMPTY;
        }
        self.all.iter().filter(|&queue| !(self.carried(queue) & xoff).is_empty()).collect()
    }

    /// Queues whose frames count as receive backlog: those with lossless classes, or all if none is known or any may
    /// have them. Frames of others may be lost in front of the switch, so they do not pause lossless senders.
    pub fn backlogged(&self) -> ClassSet {
        if self.lossless.is_empty() || self.is_mixed { self.all } else { self.lossless }
    }

    /// Receives a burst of `port` from the queues that may be polled. If the burst is not full, these queues are empty,
    /// unless a group is XOFF with `pfc: queue`, or queues without lossless groups have brought all that they may.
    pub fn receive<I: Ports>(
        &mut self,
        io: &mut I,
        port: usize,
        now: Ticks,
        conditions: Conditions,
        burst: &mut Burst<I::Pkt>,
    ) {
        debug_assert!(burst.is_empty(), "a burst of its own");
        if now >= self.period_end {
            self.age(conditions.xoff, now);
        }
        let open = self.all - self.stopped(conditions.xoff);
        self.most =
            if self.is_stopped_by_xoff && !conditions.xoff.is_empty() { UNKNOWN_QUEUE_FRAMES } else { LEAST_BURST };
        let (lossless, others) = (open & self.lossless, open - self.lossless);
        let is_shared = !conditions.is_late && !others.is_empty();
        let share = if is_shared { LEAST_BURST - LOSSY_SHARE } else { LEAST_BURST };
        let mut lossless_drained = self.take(io, port, 1, lossless, share, burst);
        let before = burst.len();
        let others_drained =
            self.take(io, port, 0, others, before.saturating_add(self.others_left).min(LEAST_BURST), burst);
        self.others_left -= burst.len() - before;
        let is_cut = before == share;
        if is_shared && is_cut && self.most == LEAST_BURST {
            // The others left room.
            lossless_drained = self.take(io, port, 1, lossless, LEAST_BURST, burst);
        }
        self.is_drained = lossless_drained && (others_drained || self.backlogged() != self.all);
        self.burst = burst.len();
    }

    /// Receives from `queues` until `burst` has `until` frames. `kind` selects the queue to begin with: the one after
    /// that which filled the last burst. Returns whether all these queues are empty now.
    fn take<I: Ports>(
        &mut self,
        io: &mut I,
        port: usize,
        kind: usize,
        queues: ClassSet,
        until: usize,
        burst: &mut Burst<I::Pkt>,
    ) -> bool {
        let (begin, mut is_drained) = (self.next[kind], true);
        let later: ClassSet = queues.iter().filter(|&queue| queue >= begin).collect();
        for queue in later.iter().chain((queues - later).iter()) {
            let before = burst.len();
            if before >= until {
                return false;
            }
            let asked = (until - before).min(self.most);
            io.rx_queue(port, queue, asked, burst);
            // Vector drivers round the number asked for down to a multiple of 4 or 8.
            is_drained &= burst.len() - before < asked & !7;
            self.queue_of[before..burst.len()].fill(queue as u8);
            if burst.len() >= until {
                self.next[kind] = (queue + 1) % CLASSES;
            }
        }
        is_drained
    }

    /// Whether XOFF stops queues, so that frames wait at their sender and are no backlog.
    pub fn keeps_frames(&self) -> bool {
        self.is_stopped_by_xoff
    }

    /// All queues of the port.
    pub fn all(&self) -> ClassSet {
        self.all
    }

    /// Forgets the queues of `frames`, which were removed from the last burst.
    pub fn remove(&mut self, frames: FrameSet) {
        let mut kept = 0;
        for index in (0..self.burst).filter(|&index| !frames.contains(index)) {
            self.queue_of[kept] = self.queue_of[index];
            kept += 1;
        }
        self.burst = kept;
    }

    /// Learns from the data `frames` of the last burst which groups its queues carry.
    pub fn learn(&mut self, frames: FrameSet, metas: &[Meta; BURST]) {
        self.learn_groups(frames, |index| usize::from(metas[index].desc.group()));
    }

    fn learn_groups(&mut self, frames: FrameSet, group_of: impl Fn(usize) -> usize) {
        for index in frames.iter().take_while(|&index| index < self.burst) {
            let (queue, group) = (usize::from(self.queue_of[index]), group_of(index));
            if self.lossless_groups.contains(group) {
                self.young[queue].lossless.insert(group);
                self.lossless.insert(queue);
            } else {
                self.young[queue].lossy = true;
            }
        }
    }

    /// Begins a new period. A stopped queue sends nothing, so it still carries the groups that stop it.
    fn age(&mut self, xoff: ClassSet, now: Ticks) {
        self.period_end = Ticks(now.0.saturating_add(self.period));
        for queue in self.all.iter() {
            let held = self.carried(queue) & xoff;
            self.old[queue] = std::mem::take(&mut self.young[queue]);
            self.young[queue].lossless = held;
        }
        let carry = self.all.iter().filter(|&queue| !self.carried(queue).is_empty());
        self.lossless = carry.collect::<ClassSet>() | self.steered;
    }
}

#[cfg(test)]
#[path = "rx_queues_tests.rs"]
mod tests;
