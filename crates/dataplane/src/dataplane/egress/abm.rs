//! The measurements of Active Buffer Management: congested queues, and the drain rate of each queue.
//!
//! They are made at the begin of a poll, once in each interval, while some port has frames. Only ports with frames are
//! visited. A drain rate is measured of queues that had frames at both ends of the interval. It counts all bytes on the
//! wire, from the counters of sent frames, so that a packet costs nothing here.

use crossbeam_utils::CachePadded;

use crate::dataplane::port::Port;
use crate::mmu::{AbmSpec, CongestionSums, LimitPart, QueueAdmission};
use crate::plan::counters::{Counter, PortCounters};
use crate::plan::spec::SwitchSpec;
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{BitRate, Bytes, Nanos, Ticks, WIRE_OVERHEAD};

/// The timer of one lcore.
#[derive(Debug)]
pub(crate) struct AbmMeter {
    spec: AbmSpec,
    /// Whether depths are filtered and no drain rates measured.
    reverie: bool,
    cell: Bytes,
    hz: u64,
    /// The interval in ticks.
    interval: u64,
    rates: Box<[BitRate]>,
    congestion: CongestionSums,
    /// Begin of the running interval; `None`: no port had frames at the last poll.
    since: Option<Ticks>,
    /// Queues of each port that had frames at the begin of the interval.
    began: Box<[ClassSet]>,
    /// Ports with a drain rate below one.
    slowed: PortSet,
    /// Bytes on the wire that each queue had sent at the begin of the interval, for the ports of `began`.
    sent: Box<[[u64; CLASSES]]>,
}

/// Bytes that each queue has sent, with preamble, check sequence and gap.
fn sent(counters: &PortCounters) -> [u64; CLASSES] {
    let on_wire = |(bytes, frames): (&Counter, &Counter)| bytes.get() + u64::from(WIRE_OVERHEAD) * frames.get();
    let mut queues = counters.tx_bytes.iter().zip(&counters.tx_frames).map(on_wire);
    std::array::from_fn(|_| queues.next().unwrap_or_default())
}

impl AbmMeter {
    /// Creates the meters of all lcores of `spec`, on a clock of `hz` ticks a second. Without ABM there are none.
    pub fn fleet(spec: &SwitchSpec, hz: u64) -> Vec<Option<Box<Self>>> {
        let meter = |(abm, congestion): (AbmSpec, CongestionSums)| Self {
            spec: abm,
            reverie: spec.reverie,
            cell: spec.buffer.cell,
            hz,
            interval: (u128::from(abm.interval.0) * u128::from(hz) / 1_000_000_000) as u64,
            rates: spec.ports.iter().map(|port| port.rate).collect(),
            congestion,
            since: None,
            began: vec![ClassSet::EMPTY; spec.ports.len()].into(),
            slowed: PortSet::EMPTY,
            sent: vec![[0; CLASSES]; spec.ports.len()].into(),
        };
        let fleet = CongestionSums::fleet(spec.lcores).into_iter();
        fleet.map(|congestion| spec.abm.map(|abm| Box::new(meter((abm, congestion))))).collect()
    }

    /// Measures if it is time. `waiting` has the own ports whose queues hold frames.
    pub fn poll(
        &mut self,
        waiting: PortSet,
        ports: &mut [Port],
        rule: &mut QueueAdmission,
        counters: &[CachePadded<PortCounters>],
        now: Ticks,
    ) {
        let Some(since) = self.since else {
            if !waiting.is_empty() {
                self.begin(waiting, ports, counters, now);
            }
            return;
        };
        if waiting.is_empty() {
            // Frames that come later find an idle lcore, however long it rests until then.
            self.reset(ports, rule);
        } else if now.since(since) >= self.interval {
            self.measure(waiting, ports, rule, counters, now);
            self.begin(waiting, ports, counters, now);
        }
    }

    fn begin(&mut self, waiting: PortSet, ports: &[Port], counters: &[CachePadded<PortCounters>], now: Ticks) {
        self.since = Some(now);
        self.began.fill(ClassSet::EMPTY);
        for port in waiting.iter() {
            let queues = ports[port].queues.iter().enumerate();
            self.began[port] = queues.filter(|(_, queue)| !queue.is_empty()).map(|(index, _)| index).collect();
            self.sent[port] = sent(&counters[port]);
        }
    }

    /// Forgets all measurements.
    pub fn reset(&mut self, ports: &mut [Port], rule: &mut QueueAdmission) {
        for port in self.slowed.iter() {
            ports[port].drains = [LimitPart::ONE; CLASSES];
        }
        (self.since, self.slowed) = (None, PortSet::EMPTY);
        self.publish(&[Bytes(0); CLASSES], rule);
    }

    /// Measures the queues of the ports `waiting`, at the end of an interval.
    fn measure(
        &mut self,
        waiting: PortSet,
        ports: &mut [Port],
        rule: &mut QueueAdmission,
        counters: &[CachePadded<PortCounters>],
        now: Ticks,
    ) {
        let ticks = self.since.map_or(0, |since| now.since(since));
        let elapsed = Nanos((u128::from(ticks) * 1_000_000_000 / u128::from(self.hz)) as u64);
        let mut sums = [Bytes(0); CLASSES];
        let (queues, before) = (rule.abm_queues(), self.slowed);
        self.slowed = PortSet::EMPTY;
        for port in (waiting | before).iter() {
            let (state, could) = (&mut ports[port], self.rates[port].bytes_in(elapsed));
            let began = if self.reverie { ClassSet::EMPTY } else { self.began[port] };
            let after = if began.is_empty() { self.sent[port] } else { sent(&counters[port]) };
            for queue in queues.iter() {
                let depth = self.depth(state, queue, now);
                sums[queue] += self.spec.congestion(depth);
                let sent = Bytes(after[queue] - self.sent[port][queue]);
                // A queue that was empty then had no chance to send all the time.
                state.drains[queue] =
                    if began.contains(queue) { self.spec.drain(depth, sent, could) } else { LimitPart::ONE };
            }
            if state.drains != [LimitPart::ONE; CLASSES] {
                self.slowed.insert(port);
            }
        }
        self.publish(&sums, rule);
    }

    /// Returns the depth by which a queue is congested at `now`. The filters of Reverie are of held cells.
    fn depth(&self, port: &Port, queue: usize, now: Ticks) -> Bytes {
        let held = &port.queues[queue];
        let depth = || held.bytes() + port.posted_of(queue, now);
        port.filters.as_ref().map_or_else(depth, |filters| filters[queue].of(held.cells()).to_bytes(self.cell))
    }

    /// Publishes the congestion of the own ports, and applies that of all ports.
    fn publish(&self, sums: &[Bytes; CLASSES], rule: &mut QueueAdmission) {
        for (queue, sum) in sums.iter().enumerate() {
            self.congestion.publish(queue, *sum);
            rule.set_share(queue, self.spec.share(self.congestion.of(queue)));
        }
    }
}
