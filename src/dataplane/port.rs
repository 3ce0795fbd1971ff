//! Everything one port is: plain memory of the lcore that owns it.

use super::backlog::Backlog;
use super::counters::{Counter, PortCounters};
use super::drops::DropReason;
use super::port_classifier::PortClassifier;
use super::queue::Queue;
use super::spec::{PortSpec, SwitchSpec};
use super::stuck::Progress;
use crate::mmu::PortLedger;
use crate::mmu::headroom::{PACING_SLACK, bursts_per_poll};
use crate::pfc::{Generator, PauseTimers, PriorityMap, Watchdog, WatchdogSpec};
use crate::qos::{Scheduler, Shaper};
use crate::sets::{BURST, CLASSES, PortSet, indices};
use crate::units::Ticks;
use crate::wire::MacAddr;
use crate::wire::mac_control::PfcFrame;

/// One port of the switch.
#[derive(Debug)]
pub(super) struct Port {
    pub mac: MacAddr,
    pub mtu: u32,
    /// Ports that send no packets as long as this one takes.
    pub smaller_mtu: PortSet,
    /// Where what comes in by it goes.
    pub classifier: PortClassifier,
    /// Priority groups that are lossless here.
    pub lossless: u8,
    /// Priorities that PFC frames are sent for.
    pub generated: u8,
    /// Priorities that received PFC frames are obeyed for, and the queues that these stop.
    pub obeyed: u8,
    obeying: u8,
    /// From the priorities of received PFC frames to queues.
    pub priorities: PriorityMap,

    /// Ingress: what its frames hold of the buffer.
    pub ledger: PortLedger,
    /// Cells ever admitted, by group.
    pub admitted: [u64; CLASSES],
    /// Of these, the cells whose release the ledger has seen.
    pub released: [u64; CLASSES],
    /// Groups that hold cells.
    pub holding: u8,
    pub generator: Generator,
    pub backlog: Backlog,

    /// Egress: the queues and what lets them send.
    pub queues: [Queue; CLASSES],
    /// Queues that are not empty.
    pub waiting: u8,
    /// Frames at the head of queues that are to be discarded, why, and which queues have any: no poll discards a whole
    /// queue, since the others would wait for it longer than any headroom allows for.
    pub discard: [(u32, DropReason); CLASSES],
    pub discarding: u8,
    pub scheduler: Scheduler,
    pub shaper: Shaper,
    pub timers: PauseTimers,
    pub watchdog: Option<Watchdog>,
    /// Whether the device takes what it is offered.
    pub progress: Progress,
    /// Pauses received during the last poll, whose time is counted from the next one on: the instant of a poll is older
    /// than the frames that arrive while it runs, and a pause must not end early.
    pub arrived: PfcFrame,
    /// Bursts that a poll may take, and sends at least if there are as many: what can have arrived in the longest poll gap that
    /// headroom allows for.
    pub bursts: u32,
    /// Frames of full ones that it has had in this poll, less those that were shed.
    pub taken: u32,
}

impl Port {
    pub fn new(spec: &PortSpec, switch: &SwitchSpec, hz: u64) -> Self {
        let lossless = spec.lossless_groups();
        let priorities = PriorityMap::new(switch.classes.pfc_to_queue);
        let obeyed = Self::obeyed(spec, switch, &priorities);
        let obeying = priorities.queues(obeyed);
        Self {
            mac: spec.mac,
            mtu: u32::from(spec.mtu),
            smaller_mtu: (0..switch.ports.len()).filter(|&port| switch.ports[port].mtu < spec.mtu).collect(),
            classifier: PortClassifier::new(spec, &switch.classes),
            lossless,
            generated: spec.pfc.generated(lossless),
            obeyed,
            obeying,
            priorities,
            ledger: PortLedger::new(&spec.buffer),
            admitted: [0; CLASSES],
            released: [0; CLASSES],
            holding: 0,
            generator: Generator::new(spec.rate, hz),
            backlog: Backlog::new(spec.backlog_mark.filter(|_| spec.pfc.is_on() && lossless != 0)),
            queues: Default::default(),
            waiting: 0,
            discard: [(0, DropReason::Shutdown); CLASSES],
            discarding: 0,
            scheduler: Scheduler::new(switch.queues.map(|queue| queue.discipline)),
            shaper: Shaper::new(spec.rate, hz, PACING_SLACK),
            timers: PauseTimers::with_map(spec.rate, hz, priorities),
            watchdog: Self::new_watchdog(spec, switch, hz).map(|(_, watchdog)| watchdog),
            progress: Progress::new(spec.stuck_after, hz),
            arrived: PfcFrame::default(),
            bursts: bursts_per_poll(spec.rate, spec.mtu, switch.poll_gap),
            taken: 0,
        }
    }

    /// Priorities whose pauses the port by `spec` obeys.
    fn obeyed(spec: &PortSpec, switch: &SwitchSpec, priorities: &PriorityMap) -> u8 {
        spec.pfc.obeyed(switch.lossless_queues(spec), priorities)
    }

    /// Who watches the port by `spec`, if anybody does, and by what.
    pub fn new_watchdog(spec: &PortSpec, switch: &SwitchSpec, hz: u64) -> Option<(WatchdogSpec, Watchdog)> {
        let watchdog = spec.watchdog.filter(|_| spec.pfc.is_on())?;
        let priorities = PriorityMap::new(switch.classes.pfc_to_queue);
        Some((watchdog, Watchdog::new(watchdog, priorities.queues(Self::obeyed(spec, switch, &priorities)), hz)))
    }

    /// Pauses that arrived during the last poll begin at `now`; until then they were obeyed already.
    #[inline]
    pub fn start_pauses(&mut self, now: Ticks) {
        if self.arrived.enabled != 0 {
            self.timers.receive(&self.arrived, now);
            self.arrived = PfcFrame::default();
        }
    }

    /// A PFC frame has come: what of it is obeyed is so from now on, and its time is counted from the next poll on.
    pub fn receive_pause(&mut self, frame: &PfcFrame, now: Ticks) {
        self.timers.receive(frame, now);
        self.arrived.enabled |= frame.enabled;
        for (priority, quanta) in frame.quanta.iter().enumerate() {
            if frame.enabled >> priority & 1 == 1 {
                self.arrived.quanta[priority] = *quanta;
            }
        }
    }

    /// All that waits in `queues` is to be discarded for `reason`; what comes after it is not.
    pub fn schedule_discard(&mut self, queues: u8, reason: DropReason) {
        for queue in (0..CLASSES).filter(|queue| (self.waiting & queues) >> queue & 1 == 1) {
            self.discard[queue] = (self.queues[queue].frames(), reason);
            self.discarding |= 1 << queue;
        }
    }

    /// What of `queues` is left to be discarded for `reason` is not to be.
    pub fn cancel_discard(&mut self, queues: u8, reason: DropReason) {
        for queue in (0..CLASSES).filter(|&queue| queues >> queue & 1 == 1) {
            if self.discard[queue].1 == reason {
                self.discard[queue].0 = 0;
                self.discarding &= !(1 << queue);
            }
        }
    }

    /// Counts `discarded` frames off what `queue` is to discard.
    pub fn finish_discard(&mut self, queue: usize, discarded: u32) {
        self.discard[queue].0 -= discarded;
        if self.queues[queue].is_empty() {
            self.discard[queue].0 = 0;
            self.waiting &= !(1 << queue);
            self.scheduler.emptied(queue);
        }
        if self.discard[queue].0 == 0 {
            self.discarding &= !(1 << queue);
        }
    }

    /// Lets the watchdog look at the queues if it is time. Returns whether it did.
    #[inline]
    pub fn watch(&mut self, counters: &PortCounters, now: Ticks) -> bool {
        let is_due = self.watchdog.as_ref().is_some_and(|watchdog| watchdog.is_due(now));
        if is_due {
            self.look(counters, now);
        }
        is_due
    }

    #[cold]
    fn look(&mut self, counters: &PortCounters, now: Ticks) {
        let Some(watchdog) = &mut self.watchdog else { return };
        let sent = counters.tx_frames.each_ref().map(Counter::get);
        let paused = self.timers.paused_queue_ticks(now);
        let events = watchdog.tick(now, self.waiting, &sent, &paused);
        let (storm, dropping) = (watchdog.storm(), watchdog.dropping());
        for queue in indices(events.detected) {
            counters.watchdog_storms[queue].add(1);
        }
        for queue in indices(events.restored) {
            counters.watchdog_restores[queue].add(1);
        }
        counters.watchdog_mask.set(u64::from(storm));
        self.schedule_discard(events.detected & dropping, DropReason::Watchdog);
    }

    /// Queues that may not send at `now`: paused, unless the watchdog has had enough of it.
    #[inline]
    pub fn stopped_queues(&mut self, now: Ticks) -> u8 {
        let paused = self.timers.paused_queues(now) & self.obeying;
        match &self.watchdog {
            Some(watchdog) if paused != 0 => paused & !watchdog.ignoring(),
            _ => paused,
        }
    }

    /// As [`Port::stopped_queues`], for who only looks: between two polls a pause that arrived in the last one lasts.
    pub fn stopped_queues_at(&self, now: Ticks) -> u8 {
        let paused = self.timers.paused_at(now) | self.timers.paused_at(Ticks(0)) & self.arrived.enabled;
        self.priorities.queues(paused) & self.obeying & !self.ignoring()
    }

    /// Queues whose pauses the watchdog ignores.
    pub fn ignoring(&self) -> u8 {
        self.watchdog.as_ref().map_or(0, Watchdog::ignoring)
    }

    /// Whether a poll may take more of it: it has had no more frames of full bursts than it may.
    #[inline]
    pub fn may_take_more(&self) -> bool {
        self.taken < self.most_frames()
    }

    /// Frames of full bursts that a poll may take of it.
    #[inline]
    pub fn most_frames(&self) -> u32 {
        self.bursts * BURST as u32
    }

    /// Groups whose senders are to stop: the buffer says so, or the receive ring.
    #[inline]
    pub fn wants_xoff(&self) -> u8 {
        self.ledger.xoff() | if self.backlog.is_on() { self.lossless } else { 0 }
    }

    /// Queues whose frames the watchdog discards.
    #[inline]
    pub fn dropping(&self) -> u8 {
        self.watchdog.as_ref().map_or(0, Watchdog::dropping)
    }

    /// Whether some of its queues refuse frames that the buffer has admitted.
    #[inline]
    pub fn is_refusing(&self) -> bool {
        self.dropping() != 0 || self.progress.is_stuck()
    }

    /// Whether `queue` takes no frame, since the port is stuck: each queue may have one, as a probe. A probe may wait for the end
    /// of a pause, so other queues have theirs.
    #[inline]
    pub fn is_closed(&self, queue: usize) -> bool {
        self.progress.is_closed() || self.progress.is_stuck() && self.waiting >> queue & 1 == 1
    }
}
