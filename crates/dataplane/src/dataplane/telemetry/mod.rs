//! Telemetry: the values that one lcore publishes for observers. Counters are published at once, gauges every
//! `GAUGE_POLLS` polls, poll gaps at every poll.

pub(crate) mod log;

use std::sync::Arc;

use super::buffer::Buffer;
use super::port::Port;
use crate::pfc::{Answers, Observed};
use crate::plan::counters::{Counters, GAP_BUCKETS, LcoreCounters, PortCounters, UNCLASSIFIED};
use crate::plan::decision_log::DecisionLog;
use crate::plan::drops::DropReason;
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{Nanos, Ticks};

/// Polls between two updates of the gauges of a busy switch. Watermarks miss nothing, because the ledgers maintain
/// them.
const GAUGE_POLLS: u64 = 64;

/// Measures the time between polls: the switch's own term in every headroom.
#[derive(Debug)]
pub(crate) struct PollClock {
    last: Option<Ticks>,
    polls: u64,
    /// Nanoseconds in a tick, in parts of 2^32.
    tick_ns: u64,
    /// Half of the poll gap in the headroom formula, in ticks.
    half_gap: u64,
}

impl PollClock {
    pub fn new(hz: u64, poll_gap: Nanos) -> Self {
        let half_gap = (u128::from(poll_gap.0) * u128::from(hz) / 2_000_000_000) as u64;
        Self { last: None, polls: 0, tick_ns: (1_000_000_000_u64 << 32) / hz.max(1), half_gap }
    }

    /// Half of the poll gap in the headroom formula, in ticks.
    #[inline]
    pub fn half_gap(&self) -> u64 {
        self.half_gap
    }

    #[inline]
    pub fn poll(&mut self, counters: &LcoreCounters, now: Ticks, moved: usize) {
        self.polls += 1;
        counters.polls.set(self.polls);
        if moved > 0 {
            counters.busy_polls.add(1);
        }
        if let Some(last) = self.last.replace(now) {
            // A gap is capped at 2^32 - 1 ticks, about a second: a longer one is an outage, whose exact length adds
            // nothing.
            let Nanos(ns) = self.nanos(now.since(last).min(u64::from(u32::MAX)));
            let bucket = (64 - ns.leading_zeros() as usize).min(GAP_BUCKETS - 1);
            counters.poll_gap[bucket].add(1);
            counters.poll_gap_sum_ns.add(ns);
            counters.poll_gap_highest_ns.raise(ns);
        }
    }

    /// Number of polls so far.
    #[inline]
    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// Instant at which the last completed poll began, by this lcore's clock.
    pub fn last(&self) -> Nanos {
        self.nanos(self.last.map_or(0, |last| last.0))
    }

    /// Converts `ticks` to a time span.
    #[inline]
    pub fn nanos(&self, ticks: u64) -> Nanos {
        Nanos(((u128::from(ticks) * u128::from(self.tick_ns)) >> 32) as u64)
    }

    #[inline]
    pub fn is_gauge_time(&self) -> bool {
        self.polls.is_multiple_of(GAUGE_POLLS)
    }
}

/// The values that one lcore publishes for observers.
#[derive(Debug)]
pub(crate) struct Telemetry {
    lcore: usize,
    own: PortSet,
    pub counters: Arc<Counters>,
    pub clock: PollClock,
    /// Ports whose gauges are out of date.
    pub gauges_dirty: PortSet,
    /// Ports with a running pause, whose duration the gauges must follow.
    pub running_pauses: PortSet,
    /// The poll in which the last drop of each port and class was logged.
    pub logged_drops: Box<[[u64; CLASSES]]>,
    /// Number of changes of `logged_drops`.
    pub logged_drops_changes: u64,
}

impl Telemetry {
    /// Creates the telemetry of `lcore`, which owns the ports `own`.
    pub fn new(counters: Arc<Counters>, lcore: usize, own: PortSet, hz: u64, poll_gap: Nanos) -> Self {
        let clock = PollClock::new(hz, poll_gap);
        let logged_drops = counters.ports.iter().map(|_| [u64::MAX; CLASSES]).collect();
        Self {
            lcore,
            own,
            counters,
            clock,
            gauges_dirty: own,
            running_pauses: PortSet::EMPTY,
            logged_drops,
            logged_drops_changes: 0,
        }
    }

    /// Counts a dropped frame at `port`; `None`: the frame has no class.
    #[inline]
    pub fn count_drop(&self, port: usize, class: Option<u8>, reason: DropReason) {
        let row = class.map_or(UNCLASSIFIED, usize::from);
        self.written(port).drops[row][reason as usize].add(1);
    }

    /// The counters of `port` that this lcore writes: those of its owner, or its own as a guest that sends by the port.
    #[inline]
    pub fn written(&self, port: usize) -> &PortCounters {
        if self.own.contains(port) {
            &self.counters.ports[port]
        } else {
            &self.counters.guests[self.lcore][port].counters
        }
    }

    /// The log of decisions at `port` that this lcore writes.
    #[cold]
    pub fn log_of(&self, port: usize) -> &DecisionLog {
        if self.own.contains(port) {
            &self.counters.decisions[port]
        } else {
            &self.counters.guests[self.lcore][port].decisions
        }
    }
}

impl Telemetry {
    /// Publishes the gauges of the `ports` that changed.
    pub fn publish_ports(&mut self, ports: &mut [Port], now: Ticks) {
        if self.clock.is_gauge_time() {
            self.gauges_dirty |= self.running_pauses;
        }
        for port in std::mem::take(&mut self.gauges_dirty).iter() {
            let (state, counters) = (&mut ports[port], self.written(port));
            for (index, queue) in state.queues.iter().enumerate() {
                counters.queue_cells[index].set(u64::from(queue.cells().0));
                counters.queue_highest_cells[index].set(u64::from(queue.cells_highest().0));
            }
            if !self.own.contains(port) {
                continue;
            }
            for group in 0..CLASSES {
                let held = state.ledger.group(group);
                counters.group_used_cells[group].set(u64::from(held.used().0));
                counters.group_shared_cells[group].set(u64::from(held.shared.0));
                counters.group_headroom_cells[group].set(u64::from(held.headroom.0));
                counters.group_used_highest_cells[group].set(u64::from(held.used_highest.0));
                counters.group_shared_highest_cells[group].set(u64::from(held.shared_highest.0));
                counters.group_headroom_highest_cells[group].set(u64::from(held.headroom_highest.0));
            }
            for (gauge, used) in counters.reserve_used_cells.iter().zip(state.ledger.reserve_used()) {
                gauge.set(u64::from(used.0));
            }
            counters.insurance_cells.set(u64::from(state.ledger.insurance_used().0));
            counters.insurance_highest_cells.set(u64::from(state.ledger.insurance_highest().0));
            counters.port_xoff.set(u64::from(state.ledger.is_port_xoff()));
            let xoff = state.pfc.xoff();
            counters.xoff_mask.set(u64::from(xoff.bits()));
            for (gauge, ticks) in counters.pfc_tx_paused_ns.iter().zip(state.pfc.sent_ticks(now)) {
                gauge.set(self.clock.nanos(ticks).0);
            }
            for (gauge, ticks) in counters.pfc_rx_paused_ns.iter().zip(state.pfc.received_ticks(now)) {
                gauge.set(self.clock.nanos(ticks).0);
            }
            if let Some(answers) = state.pfc.take_answers() {
                self.publish_answers(counters, answers);
            }
            counters.backlog_held_ns.set(self.clock.nanos(state.backlog.held_ticks(now)).0);
            if state.rx_queues.is_managed() {
                for (gauge, carried) in counters.rx_queue_carries.iter().zip(state.rx_queues.carried_masks()) {
                    gauge.set(u64::from(carried));
                }
            }
            // A running pause is published again later, because its duration and its end change the gauges.
            let paused = state.pfc.paused(now);
            counters.paused_mask.set(u64::from(paused.bits()));
            self.running_pauses.set(port, !paused.is_empty() || !xoff.is_empty() || state.backlog.is_on());
        }
    }

    /// Publishes the answers of a peer to XOFF.
    #[cold]
    fn publish_answers(&self, counters: &PortCounters, answers: &[Answers; CLASSES]) {
        let (mut obeyed, mut disobeyed) = (ClassSet::EMPTY, ClassSet::EMPTY);
        for (priority, answer) in answers.iter().enumerate() {
            counters.pfc_stops[priority].set(answer.stops);
            counters.pfc_late_pauses[priority].set(answer.late_pauses);
            counters.pfc_late_frames[priority].set(answer.late.frames);
            counters.pfc_late_bytes[priority].set(answer.late.bytes);
            for (bucket, times) in counters.pfc_response[priority].iter().zip(answer.times) {
                bucket.set(times);
            }
            counters.pfc_response_sum_ns[priority].set(self.clock.nanos(answer.ticks).0);
            obeyed.set(priority, answer.observed() == Observed::Obeys);
            disobeyed.set(priority, answer.observed() == Observed::Disobeys);
        }
        counters.pfc_obeyed_mask.set(u64::from(obeyed.bits()));
        counters.pfc_disobeyed_mask.set(u64::from(disobeyed.bits()));
    }

    /// Publishes the gauges of an lcore: its buffer, the number of frames in its queues and of stations in its
    /// database.
    pub fn publish_lcore(&self, lcore: usize, buffer: &Buffer, frames: u32, stations: usize, now: Ticks) {
        let lcore = &self.counters.lcores[lcore];
        for (pool, (gauge, highest)) in buffer.pools.shared.iter().zip([
            (&lcore.lossy_used_cells, &lcore.lossy_used_highest_cells),
            (&lcore.lossless_used_cells, &lcore.lossless_used_highest_cells),
        ]) {
            gauge.set(u64::from(pool.used().0));
            highest.set(u64::from(pool.used_highest().0));
        }
        lcore.headroom_pool_used_cells.set(u64::from(buffer.pools.headroom.used().0));
        lcore.headroom_pool_highest_cells.set(u64::from(buffer.pools.headroom.highest().0));
        lcore.clock_ns.set(self.clock.nanos(now.0).0);
        lcore.held_frames.set(u64::from(frames));
        lcore.fdb_entries.set(stations as u64);
    }
}
