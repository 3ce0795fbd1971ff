//! One virtual host: receives and checks frames, obeys pauses, and sends its flows.

use std::collections::BTreeSet;
use std::ops::Range;

use arrayvec::ArrayVec;

use super::counters::{FlowTally, HostCounters, HostTally};
use super::flow::Flow;
use super::frame::{self, Arrival, Station};
use super::sequence::Order;
use super::spec::HostSpec;
use crate::io::{Burst, Packet, Ports};
use crate::pfc::PauseTimers;
use crate::qos::Shaper;
use crate::sets::{BURST, CLASSES, ClassSet};
use crate::units::{Nanos, Ticks};
use crate::wire::mac_control::{self, MacControl};

/// Frames passed to the transmit ring at once.
const CHUNK: usize = 8;
/// Maximum number of chunks per poll, a bound on its work. Small frames on a fast link may fill more than this in the
/// link's slack.
const CHUNKS: usize = 8;
/// Maximum number of bursts received per poll: whole receive rings of the usual sizes.
const RX_BURSTS: usize = 64;
/// Upper limit of the time that a link or flow makes up for after a late poll.
const SLACK: Nanos = Nanos(10_000);
/// Lower limit of that time: polls are not closer than this.
const LEAST_SLACK: Nanos = Nanos(2_000);
/// Frames that a link or flow makes up for, within those limits.
const SLACK_FRAMES: u64 = 8;

/// A virtual host.
#[derive(Debug)]
pub(super) struct Host {
    /// Index of its port among the host ports.
    port: usize,
    link: Shaper,
    timers: PauseTimers,
    obeys_pfc: bool,
    /// Number of its transmit queues.
    queues: usize,
    /// Whether these keep the frames that the switch does not receive.
    keeps_frames: bool,
    /// Whether the host loses frames when its transmit ring is full, like a wire into a full receive ring, instead of
    /// waiting.
    wire_loses: bool,
    /// Numbers of its flows.
    flows: Range<usize>,
    /// The flow that is considered first in the next send.
    turn: usize,
    announcements: Vec<Box<[u8]>>,
    /// Number of announcements of this round that were sent.
    announced: usize,
    announce_at: Ticks,
    /// The time of the last poll, and the priorities paused then.
    before: (Ticks, ClassSet),
}

/// The state before a frame was made, to restore if the transmit ring does not take the frame.
struct Undo {
    flow: usize,
    pacer: Shaper,
    link: Shaper,
    turn: usize,
}

impl Host {
    /// Creates the host at host port `port` with the flows numbered `flows`. It announces itself in each of `vlans`.
    pub fn new(port: usize, spec: &HostSpec, flows: Range<usize>, vlans: &BTreeSet<Option<u16>>, hz: u64) -> Self {
        let largest = spec.flows.iter().map(|flow| u64::from(flow.frame_len)).max().unwrap_or(0);
        let who = Station { mac: spec.mac, ip: spec.ip };
        Self {
            port,
            link: Shaper::new(spec.rate, hz, slack(largest, spec.rate.0)),
            timers: PauseTimers::new(spec.rate, hz),
            obeys_pfc: spec.obeys_pfc,
            queues: usize::from(spec.queues).clamp(1, CLASSES),
            keeps_frames: spec.keeps_frames,
            wire_loses: false,
            turn: flows.start,
            flows,
            announcements: vlans.iter().map(|vlan| frame::announcement(who, *vlan)).collect(),
            announced: 0,
            announce_at: Ticks(0),
            before: (Ticks(0), ClassSet::EMPTY),
        }
    }

    /// Puts the host on a wire, unless its queues keep frames.
    pub fn connect_wire(&mut self) {
        self.wire_loses = !self.keeps_frames;
    }

    /// The transmit queue of a priority.
    fn queue_of(&self, priority: usize) -> usize {
        priority.min(self.queues - 1)
    }

    /// The priorities that leave by transmit queue `queue`.
    fn priorities_of(&self, queue: usize) -> ClassSet {
        (0..CLASSES).filter(|&priority| self.queue_of(priority) == queue).collect()
    }

    /// Receives at most [`RX_BURSTS`] bursts and returns their buffers to the pool. Returns true if more frames may
    /// wait.
    pub fn receive<P: Ports>(&mut self, io: &mut P, flows: &mut [Flow], counters: &HostCounters, now: Ticks) -> bool {
        let mut burst = Burst::new();
        for _ in 0..RX_BURSTS {
            io.rx(self.port, BURST, &mut burst);
            let count = burst.len();
            for packet in &burst {
                self.arrive(packet.bytes(), flows, counters, now);
            }
            io.free(&mut burst);
            if count < BURST {
                return false;
            }
        }
        true
    }

    #[inline]
    fn arrive(&mut self, bytes: &[u8], flows: &mut [Flow], counters: &HostCounters, now: Ticks) {
        let tally = &counters.hosts[self.port];
        match Arrival::of(bytes) {
            Arrival::Udp(packet) => {
                let number = packet.flow().filter(|number| *number < flows.len());
                if let Some(number) = number {
                    let flow = &mut flows[number];
                    if flow.to == Some(self.port) && flow.template.is_between(&packet) {
                        tally.rx_frames[flow.class].add(1);
                        tally.rx_bytes[flow.class].add(bytes.len() as u64);
                        return accept(flow, &packet, bytes.len(), &counters.flows[number], now);
                    }
                }
                tally.foreign_frames.add(1);
            }
            Arrival::MacControl => match mac_control::parse(bytes) {
                Some(MacControl::Pfc(pfc)) if mac_control::is_to_link_peer(bytes) => {
                    tally.pfc_rx_frames.add(1);
                    self.timers.receive(&pfc, now);
                }
                _ => tally.foreign_frames.add(1),
            },
            Arrival::Arp => tally.arp_rx_frames.add(1),
            Arrival::Other => tally.foreign_frames.add(1),
        }
    }

    /// Returns the priorities that the host must not send now, and adds the paused time since the previous poll to its
    /// counters.
    pub fn paused(&mut self, tally: &HostTally, now: Ticks) -> ClassSet {
        let (then, before) = self.before;
        for class in before.iter() {
            tally.paused_ticks[class].add(now.since(then));
        }
        let paused = self.timers.paused(now);
        self.before = (now, paused);
        if self.obeys_pfc { paused } else { ClassSet::EMPTY }
    }

    /// Whether the host neither sends nor counts paused time from `now` to `until`, given that flows begin at `start`.
    pub fn is_silent_until(&self, flows: &[Flow], start: Ticks, now: Ticks, until: Ticks) -> bool {
        let is_quiet = until < start || self.flows.clone().all(|flow| flows[flow].is_silent_until(until));
        self.timers.paused_at(now).is_empty() && until < self.announce_at && is_quiet
    }

    /// Sends the remaining announcements of this round. Returns true once the first round is complete.
    pub fn announce<P: Ports>(&mut self, io: &mut P, tally: &HostTally, period: u64, now: Ticks) -> bool {
        let first = self.announce_at == Ticks(0);
        if !first && now < self.announce_at {
            return true;
        }
        while let Some(announcement) = self.announcements.get(self.announced) {
            let mut burst: Burst<P::Pkt> = io.make(announcement).into_iter().collect();
            io.tx(self.port, &mut burst);
            if !burst.is_empty() {
                io.free(&mut burst);
                tally.tx_waits.add(1);
                return !first;
            }
            self.link.charge(announcement.len() as u32, now);
            tally.announced_frames.add(1);
            self.announced += 1;
        }
        self.announced = 0;
        self.announce_at = Ticks(now.0.saturating_add(period.max(1)));
        true
    }

    /// Sends the due frames of priorities that are not `paused`, as far as link and transmit rings allow. A full ring
    /// stops its own priorities.
    pub fn send<P: Ports>(
        &mut self,
        io: &mut P,
        flows: &mut [Flow],
        counters: &HostCounters,
        mut paused: ClassSet,
        now: Ticks,
    ) {
        for _ in 0..CHUNKS {
            let mut batch = Burst::new();
            let mut undo = ArrayVec::<Undo, CHUNK>::new();
            if !self.fill(io, flows, paused, now, &mut batch, &mut undo) {
                counters.hosts[self.port].buffer_waits.add(1);
            }
            if batch.is_empty() {
                return;
            }
            // With several queues, the frames of another one may be due.
            let is_last = undo.len() < CHUNK && self.queues == 1;
            let queue = self.queue_of(flows[undo[0].flow].priority);
            io.tx_queue(self.port, queue, &mut batch);
            if !batch.is_empty() && self.wire_loses {
                counters.hosts[self.port].lost_frames.add(batch.len() as u64);
                io.free(&mut batch);
            }
            if !batch.is_empty() {
                counters.hosts[self.port].tx_waits.add(1);
                self.take_back(flows, undo.drain(undo.len() - batch.len()..));
                io.free(&mut batch);
                paused |= self.priorities_of(queue);
            }
            self.count_sent(flows, counters, &undo);
            if is_last {
                return;
            }
        }
    }

    /// Makes the next frames of one transmit queue, and charges each to its flow and the link. Returns false if no
    /// buffer was available for a frame.
    #[inline]
    fn fill<P: Ports>(
        &mut self,
        io: &mut P,
        flows: &mut [Flow],
        mut paused: ClassSet,
        now: Ticks,
        batch: &mut Burst<P::Pkt>,
        undo: &mut ArrayVec<Undo, CHUNK>,
    ) -> bool {
        while !undo.is_full() && self.link.is_free(now) {
            let Some(number) = self.next_due(flows, paused, now) else { return true };
            let flow = &mut flows[number];
            if self.queues > 1 && undo.is_empty() {
                paused |= !self.priorities_of(self.queue_of(flow.priority));
            }
            let Some(mut packet) = io.make(flow.template.bytes()) else { return false };
            flow.template.stamp(packet.bytes_mut(), flow.sequence, now);
            batch.push(packet);
            undo.push(Undo { flow: number, pacer: flow.pacer.clone(), link: self.link.clone(), turn: self.turn });
            flow.sequence += 1;
            flow.pacer.charge(flow.template.frame_len(), now);
            self.link.charge(flow.template.frame_len(), now);
            self.turn = if number + 1 == self.flows.end { self.flows.start } else { number + 1 };
        }
        true
    }

    /// Returns the first flow that may send, in a circle from `turn`.
    #[inline]
    fn next_due(&self, flows: &mut [Flow], paused: ClassSet, now: Ticks) -> Option<usize> {
        (self.turn..self.flows.end).chain(self.flows.start..self.turn).find(|&flow| flows[flow].is_due(paused, now))
    }

    #[inline]
    fn count_sent(&self, flows: &[Flow], counters: &HostCounters, sent: &[Undo]) {
        let tally = &counters.hosts[self.port];
        for frame in sent {
            let flow = &flows[frame.flow];
            let len = u64::from(flow.template.frame_len());
            tally.tx_frames[flow.class].add(1);
            tally.tx_bytes[flow.class].add(len);
            counters.flows[frame.flow].sent_frames.add(1);
            counters.flows[frame.flow].sent_bytes.add(len);
        }
    }

    /// Restores the state before the frames that the full transmit ring refused. They lose neither sequence numbers nor
    /// pacing credit.
    #[cold]
    fn take_back(&mut self, flows: &mut [Flow], refused: impl DoubleEndedIterator<Item = Undo>) {
        for undo in refused.rev() {
            let flow = &mut flows[undo.flow];
            flow.sequence -= 1;
            flow.pacer = undo.pacer;
            self.link = undo.link;
            self.turn = undo.turn;
        }
    }
}

/// Checks a frame of `flow` at its receiver and counts it.
#[inline]
fn accept(flow: &mut Flow, packet: &frame::Ipv4Udp<'_>, len: usize, tally: &FlowTally, now: Ticks) {
    let Some(mark) = flow.template.verify(packet) else {
        return tally.corrupt_frames.add(1);
    };
    match flow.window.receive(mark.sequence) {
        Order::Duplicate => return tally.duplicate_frames.add(1),
        Order::Late => tally.late_frames.add(1),
        Order::Ahead => {}
    }
    tally.received_frames.add(1);
    tally.received_bytes.add(len as u64);
    tally.ce_frames.add(u64::from(mark.ce));
    tally.record_latency(now.since(mark.sent));
}

/// Returns how late a poll may be without loss of throughput: the time of eight frames, within 2 to 10 us. This is also
/// the burst that a host sends after a late poll.
pub(super) fn slack(frame_len: u64, rate: u64) -> Nanos {
    let bits = SLACK_FRAMES * 8 * (frame_len + u64::from(crate::units::WIRE_OVERHEAD));
    Nanos((bits * 1_000_000_000 / rate.max(1)).clamp(LEAST_SLACK.0, SLACK.0))
}
