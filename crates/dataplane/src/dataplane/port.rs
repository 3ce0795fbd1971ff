//! The state of one port: plain memory of the lcore that owns it.

use crate::dataplane::egress::joint::side::JointSide;
use crate::dataplane::egress::queue::Queue;
use crate::dataplane::egress::stuck::Progress;
use crate::dataplane::ingress::backlog::Backlog;
use crate::dataplane::ingress::port_classifier::PortClassifier;
use crate::dataplane::ingress::rx_queues::RxQueues;
use crate::dataplane::replacement::Replacement;
use crate::mmu::{DepthFilter, LimitPart, PortLedger};
use crate::pfc::{JudgedPoll, PfcMode, PortPfc, Received};
use crate::plan::counters::{Counters, PortCounters};
use crate::plan::drops::DropReason;
use crate::plan::spec::SwitchSpec;
use crate::qos::{MaxRate, QueueShapers, Scheduler, Shaper};
use crate::sets::{CLASSES, ClassSet, LEAST_BURST, PortSet};
use crate::units::{Bytes, Ticks};
use crate::wire::MacAddr;

/// The classes of each group.
fn classes_of(groups: &[u8; CLASSES]) -> [ClassSet; CLASSES] {
    std::array::from_fn(|group| (0..CLASSES).filter(|&class| usize::from(groups[class] & 7) == group).collect())
}

/// Ports of `switch` with a smaller MTU than `port`.
pub(crate) fn smaller_mtu(switch: &SwitchSpec, port: usize) -> PortSet {
    (0..switch.ports.len()).filter(|&other| switch.ports[other].mtu < switch.ports[port].mtu).collect()
}

/// One port of the switch.
#[derive(Debug)]
pub(crate) struct Port {
    pub mac: MacAddr,
    pub mtu: Bytes,
    /// Whether frames whose transport header has a defect are dropped, bridged ones too.
    pub checks_l4: bool,
    /// Ports with a smaller MTU than this one.
    pub smaller_mtu: PortSet,
    /// Class, group and queue of the frames received here.
    pub classifier: PortClassifier,
    /// Priority groups that are lossless here.
    pub lossless: ClassSet,
    /// PFC in both directions.
    pub pfc: PortPfc,

    /// Ingress: the buffer cells that frames received here hold.
    pub ledger: PortLedger,
    /// Cells ever admitted, by group.
    pub admitted: [u64; CLASSES],
    /// Admitted cells whose release the ledger has seen, by group.
    pub released: [u64; CLASSES],
    /// Groups that hold cells.
    pub holding: ClassSet,
    pub backlog: Backlog,
    /// Whether a poll has left frames in the receive ring since the last look at the peer ([`Port::judge_peer`]).
    pub left_frames: bool,
    /// Classes of each group.
    pub classes_of: [ClassSet; CLASSES],
    pub rx_queues: RxQueues,

    /// Egress: the queues, and below the state that controls their sending.
    pub queues: [Queue; CLASSES],
    /// Queues that are not empty.
    pub waiting: ClassSet,
    /// With ABM, the drain rate of each queue.
    pub drains: [LimitPart; CLASSES],
    /// With Reverie, the filtered depth of each queue.
    pub filters: Option<Box<[DepthFilter; CLASSES]>>,
    /// Frames at the head of each queue that must be discarded, with the reason, and the queues that have any. No poll
    /// discards a whole queue, because the other ports would wait for longer than any headroom allows.
    pub discard: [(u32, DropReason); CLASSES],
    pub discarding: ClassSet,
    pub scheduler: Scheduler,
    pub shaper: Shaper,
    /// Queues of the frames that were posted since the wire was last free.
    pub posted_queues: ClassSet,
    /// Queues that have a maximum rate, and their shapers. A port that has any is not a joint one.
    pub limited: ClassSet,
    pub max_rates: Box<QueueShapers>,
    /// The state that other lcores share; `None`: only the owner sends by the port.
    pub joint: Option<Box<JointSide>>,
    /// Whether the device takes the frames that it is offered.
    pub progress: Progress,
    /// Whether the device took all frames of the last burst.
    pub takes_all: bool,
    /// Bursts that a poll may receive if time does not bound it; it also sends at least as many if there are frames.
    /// They cover all frames that can arrive in the longest poll gap of the headroom formula.
    pub bursts: u32,
    /// Frames of full bursts received in this poll, minus those that were shed.
    pub taken: u32,
}

impl Port {
    /// Creates port `number` of `switch`, on a clock of `hz` ticks a second.
    pub fn new(number: usize, switch: &SwitchSpec, joint: Option<Box<JointSide>>, hz: u64) -> Self {
        let spec = &switch.ports[number];
        let lossless = spec.lossless_groups();
        // Only the owner of a joint port hears its pauses.
        let is_owner = joint.as_ref().is_none_or(|joint| joint.is_owner());
        let Replacement { mac, mtu, pfc, backlog, shaper, bursts, .. } = Replacement::new(number, switch, is_owner, hz);
        let max_rates = Box::new(QueueShapers::new(&spec.live.max_rates, hz));
        Self {
            mac,
            mtu,
            checks_l4: spec.checks_l4,
            smaller_mtu: smaller_mtu(switch, number),
            classifier: PortClassifier::new(number, spec, &switch.classes),
            lossless,
            pfc,
            ledger: PortLedger::new(&spec.buffer).with_hpcc(switch.hpcc),
            admitted: [0; CLASSES],
            released: [0; CLASSES],
            holding: ClassSet::EMPTY,
            backlog,
            left_frames: false,
            classes_of: classes_of(&switch.classes.tc_to_group),
            rx_queues: RxQueues::new(spec.rx_queues.into(), spec.pfc == PfcMode::Queue, lossless, hz),
            queues: Default::default(),
            waiting: ClassSet::EMPTY,
            drains: [LimitPart::ONE; CLASSES],
            filters: switch.reverie.then(Box::default),
            discard: [(0, DropReason::Shutdown); CLASSES],
            discarding: ClassSet::EMPTY,
            scheduler: Scheduler::new(switch.queues.map(|queue| queue.discipline)),
            shaper,
            limited: max_rates.limited(),
            max_rates,
            joint,
            progress: Progress::new(spec.live.stuck_after, hz),
            posted_queues: ClassSet::EMPTY,
            takes_all: true,
            bursts,
            taken: 0,
        }
    }

    /// Judges the frames that the last poll received while the peer was paused. Returns whether a pause goes on.
    pub fn judge_peer(&mut self, counters: &PortCounters, now: Ticks) -> bool {
        let is_empty = !self.rx_queues.is_managed() || self.rx_queues.is_drained();
        let poll = JudgedPoll {
            is_drained: is_empty && !std::mem::take(&mut self.left_frames),
            takes_frames: self.takes_all && !self.progress.is_stuck(),
        };
        let classes = &self.classes_of;
        self.pfc.judge_peer(now, poll, |group| {
            classes[group].iter().fold(Received::default(), |sum, class| Received {
                frames: sum.frames + counters.rx_frames[class].get(),
                bytes: sum.bytes + counters.rx_bytes[class].get(),
            })
        });
        self.pfc.is_judging()
    }

    /// Sets the maximum rates of the queues.
    pub fn set_max_rates(&mut self, maxima: &[Option<MaxRate>; CLASSES], hz: u64) {
        self.max_rates.set(maxima, hz);
        self.limited = self.max_rates.limited();
    }

    /// Schedules the discard, for `reason`, of all frames that wait in `queues` now. Frames that come later are kept.
    pub fn schedule_discard(&mut self, queues: ClassSet, reason: DropReason) {
        for queue in (self.waiting & queues).iter() {
            self.discard[queue] = (self.queues[queue].frames(), reason);
            self.discarding.insert(queue);
        }
    }

    /// Cancels the discard of the remaining frames in `queues`, if it was scheduled for `reason`.
    pub fn cancel_discard(&mut self, queues: ClassSet, reason: DropReason) {
        for queue in queues.iter() {
            if self.discard[queue].1 == reason {
                self.discard[queue].0 = 0;
                self.discarding.remove(queue);
            }
        }
    }

    /// Subtracts `discarded` frames from those that `queue` must discard.
    pub fn finish_discard(&mut self, queue: usize, discarded: u32) {
        self.discard[queue].0 -= discarded;
        if self.queues[queue].is_empty() {
            self.discard[queue].0 = 0;
            self.waiting.remove(queue);
            self.scheduler.emptied(queue);
        }
        if self.discard[queue].0 == 0 {
            self.discarding.remove(queue);
        }
    }

    /// Runs the watchdog's check of the queues if it is due. Returns whether it ran.
    #[inline]
    pub fn watch(&mut self, number: usize, counters: &Counters, now: Ticks) -> bool {
        let is_due = self.pfc.is_check_due(now);
        if is_due {
            self.look(number, counters, now);
        }
        is_due
    }

    #[cold]
    fn look(&mut self, number: usize, counters: &Counters, now: Ticks) {
        let sent = std::array::from_fn(|queue| counters.sum(number, |port| &port.tx_frames[queue]));
        let events = self.pfc.check(now, self.waiting | self.waiting_elsewhere(), &sent);
        let counters = &counters.ports[number];
        for queue in events.detected.iter() {
            counters.watchdog_storms[queue].add(1);
        }
        for queue in events.restored.iter() {
            counters.watchdog_restores[queue].add(1);
        }
        counters.watchdog_mask.set(u64::from(self.pfc.storm().bits()));
        self.schedule_discard(events.detected & self.pfc.dropping(), DropReason::Watchdog);
    }

    /// Whether a poll may receive more from the port: its frames of full bursts are still below the limit.
    #[inline]
    pub fn may_take_more(&self) -> bool {
        self.taken < self.most_frames()
    }

    /// Frames of full bursts that a poll may receive from the port.
    #[inline]
    pub fn most_frames(&self) -> u32 {
        self.bursts * LEAST_BURST as u32
    }

    /// Groups whose senders must stop, because of the buffer or the receive ring.
    #[inline]
    pub fn wants_xoff(&self) -> ClassSet {
        self.ledger.xoff() | if self.backlog.is_on() { self.lossless } else { ClassSet::EMPTY }
    }

    /// Whether some of the port's queues refuse frames that the buffer has admitted.
    #[inline]
    pub fn is_refusing(&self) -> bool {
        !self.dropping().is_empty() || self.progress.is_stuck()
    }

    /// Whether `queue` accepts no frame because the port is stuck. Each queue may hold one frame as a probe: a probe
    /// may have to wait for the end of a pause, so the other queues get their own.
    #[inline]
    pub fn is_closed(&self, queue: usize) -> bool {
        self.progress.is_closed() || self.progress.is_stuck() && self.waiting.contains(queue)
    }

    /// The reason for which `queue` accepts no frame, if any: the watchdog discards its frames, the port is stuck or it
    /// is down, for the reason `down`.
    #[inline]
    pub fn refusal(&self, queue: usize, down: Option<DropReason>) -> Option<DropReason> {
        if self.dropping().contains(queue) {
            return Some(DropReason::Watchdog);
        }
        if self.is_closed(queue) {
            return Some(DropReason::EgressStuck);
        }
        // The port may have gone down while the frame was in the ring between lcores.
        down
    }
}
