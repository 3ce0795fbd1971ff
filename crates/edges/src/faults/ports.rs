//! The ports of an lcore with faults on their wires.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::counters::FaultCounters;
use super::hold::Hold;
use super::lcore::{Fate, LcoreFaults};
use super::reorder::Behind;
use super::spec::Toward;
use super::storm;
use super::table::FaultTable;
use crate::io::{Burst, Ports};
use crate::plan::mailbox::Receiver;
use crate::sets::{BURST, CLASSES, ClassSet, FrameSet, PortSet};
use crate::units::Ticks;

/// Receive lanes of a port: one for each queue.
const QUEUES: usize = CLASSES;
/// Most bursts that one call takes from a device, if faults lose or hold their frames: a ring of 4,096 frames.
const MOST_BURSTS: usize = 128;
/// Vector drivers round the number of frames asked for down to a multiple of this.
const VECTOR: usize = 8;

/// The ports `I` with faults. `C` reads the clock of the lcore.
///
/// Frames that the switch has sent are on the wire: their cells are released, even while a fault holds them. Received
/// frames that a fault holds have not arrived: no counter of the switch includes them.
pub struct Faulty<I: Ports, C> {
    io: I,
    clock: C,
    ports: usize,
    tables: Receiver<FaultTable>,
    /// Boxed, because the ports are moved between threads.
    faults: Box<LcoreFaults>,
    hold: Hold<I::Pkt>,
    /// Frames that wait for later ones, by lane.
    behind: Box<[Behind]>,
    /// Whether the faults have ended with the switch.
    is_over: bool,
    /// Scratch memory of a call.
    received: Burst<I::Pkt>,
    sending: Burst<I::Pkt>,
    /// Rows of the counters of `sending`.
    rows: ArrayVec<u8, BURST>,
}

/// The faults of an lcore, and where it counts them.
pub struct LcoreFeed<'a> {
    /// The faults at first.
    pub table: &'a FaultTable,
    /// Brings each later table.
    pub tables: Receiver<FaultTable>,
    /// Counters of all lcores.
    pub counters: Arc<FaultCounters>,
    /// Number of the lcore.
    pub lcore: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The receive queue from which a call takes frames.
#[derive(Debug, Clone, Copy)]
struct RxQueue {
    port: usize,
    /// `None`: all queues of the port, of which it has one.
    number: Option<usize>,
}

/// The place to which a received frame goes.
#[derive(Debug, Clone, Copy)]
struct Destination {
    port: usize,
    lane: usize,
    /// Most frames of the burst.
    most: usize,
}

impl<I: Ports, C: Fn() -> Ticks> Faulty<I, C> {
    /// Creates the ports of an lcore with `faults`. Their table has the classes of all ports of `io`.
    pub fn new(io: I, clock: C, faults: LcoreFeed<'_>) -> Self {
        let LcoreFeed { table, tables, counters, lcore, seed } = faults;
        let ports = table.classes.len();
        let lanes = ports * (QUEUES + 1);
        Self {
            io,
            clock,
            ports,
            tables,
            faults: Box::new(LcoreFaults::new(counters, lcore, seed, table)),
            hold: Hold::new(ports, lanes),
            behind: vec![Behind::default(); lanes].into(),
            is_over: false,
            received: Burst::new(),
            sending: Burst::new(),
            rows: ArrayVec::new(),
        }
    }

    /// The ports without faults.
    #[must_use]
    pub fn plain(&self) -> &I {
        &self.io
    }

    /// The ports behind the faults, to change them.
    pub fn plain_mut(&mut self) -> &mut I {
        &mut self.io
    }

    /// Frees the frames that are still held, which are lost. Returns the ports.
    #[must_use]
    pub fn end(mut self) -> I {
        let mut frames = Burst::new();
        while let Some(ended) = self.hold.take_any() {
            self.faults.count_ended(self.port_of(ended.lane), ended.row);
            frames.push(ended.frame);
            self.io.free(&mut frames);
        }
        self.faults.set_held(0);
        self.io
    }

    fn receive_lane(port: usize, queue: usize) -> usize {
        port * QUEUES + queue
    }

    fn send_lane(&self, port: usize) -> usize {
        self.ports * QUEUES + port
    }

    fn port_of(&self, lane: usize) -> usize {
        lane.checked_sub(self.ports * QUEUES).unwrap_or(lane / QUEUES)
    }

    /// Takes new orders, and makes the frames due whose time has come. Returns the time.
    fn step(&mut self) -> Ticks {
        let now = (self.clock)();
        let (faults, is_over) = (&mut self.faults, self.is_over);
        self.tables.receive(|table| {
            if !is_over {
                faults.apply(table);
            }
        });
        self.hold.step(if is_over { Ticks(u64::MAX) } else { now });
        now
    }

    /// Receives from `queue`.
    fn receive(&mut self, queue: RxQueue, most: usize, out: &mut Burst<I::Pkt>) {
        let (port, now) = (queue.port, self.step());
        let (before, asked) = (out.len(), most.min(BURST));
        let most = most.saturating_add(before).min(out.capacity());
        self.add_storms(port, most, now, out);
        let lane = Self::receive_lane(port, queue.number.unwrap_or(0));
        self.deliver(lane, most, out);
        if out.len() >= most {
            return;
        }
        if out.len() == before && !self.faults.concerns(port, Toward::Switch) {
            return self.receive_plain(queue, asked, out);
        }
        let to = Destination { port, lane, most };
        let mut received = std::mem::take(&mut self.received);
        // A burst that is not full tells the switch that the ring is empty. So each call to the device asks for as many
        // frames as the switch did, and frames that do not fit wait in the lane.
        for _ in 0..MOST_BURSTS {
            self.receive_plain(queue, asked, &mut received);
            let is_last = received.len() < (asked - asked % VECTOR).max(1);
            for packet in received.drain(..) {
                self.take(packet, to, now, out);
            }
            if is_last || out.len() >= most {
                break;
            }
        }
        self.received = received;
    }

    fn receive_plain(&mut self, queue: RxQueue, most: usize, out: &mut Burst<I::Pkt>) {
        match queue.number {
            None => self.io.rx(queue.port, most, out),
            Some(number) => self.io.rx_queue(queue.port, number, most, out),
        }
    }

    /// Adds the PFC frame of storms at `port`, if one is due. Without a buffer the next one follows.
    fn add_storms(&mut self, port: usize, most: usize, now: Ticks, out: &mut Burst<I::Pkt>) {
        if out.len() >= most {
            return;
        }
        let Some((xoff, xon)) = self.faults.storms(port, now) else { return };
        if (xoff | xon).is_empty() {
            return self.faults.commit_storms(port, now);
        }
        if let Some(frame) = self.io.make(&storm::frame(xoff, xon)) {
            self.faults.commit_storms(port, now);
            out.push(frame);
        }
    }

    /// Delivers frames of `lane` that are due, up to `most` in `out`.
    fn deliver(&mut self, lane: usize, most: usize, out: &mut Burst<I::Pkt>) {
        while out.len() < most {
            let Some((frame, _)) = self.hold.pop(lane) else { return };
            out.push(frame);
        }
    }

    /// Takes a received frame to `out`, to the held ones, or to nothing.
    fn take(&mut self, mut packet: I::Pkt, to: Destination, now: Ticks, out: &mut Burst<I::Pkt>) {
        let Destination { port, lane, most } = to;
        let fate = self.faults.judge(&mut packet, port, Toward::Switch, now);
        if fate.is_lost {
            return self.discard(packet);
        }
        let copy = self.copy(&packet, &fate, Toward::Switch);
        for packet in [Some(packet), copy].into_iter().flatten() {
            let Some(packet) = self.try_hold(packet, &fate, lane, Toward::Switch) else { continue };
            if out.len() < most && self.hold.ready(lane) == 0 {
                out.push(packet);
            } else if let Err(packet) = self.hold.append(packet, lane, fate.row.into()) {
                self.lose_for_room(packet, port, fate.row.into());
            }
            self.pass(lane);
            self.deliver(lane, most, out);
        }
    }

    fn discard(&mut self, packet: I::Pkt) {
        let mut burst = Burst::new();
        burst.push(packet);
        self.io.free(&mut burst);
    }

    /// The copy of a frame that a fault duplicates; `None` also without a buffer.
    fn copy(&mut self, packet: &I::Pkt, fate: &Fate, toward: Toward) -> Option<I::Pkt> {
        let slot = fate.copied_by?;
        let copy = self.io.copy(packet);
        self.faults.count(slot, toward, fate.row.into(), copy.is_some());
        copy
    }

    /// Holds a frame if its fate is so; returns it if not, or if there is no room.
    fn try_hold(&mut self, packet: I::Pkt, fate: &Fate, lane: usize, toward: Toward) -> Option<I::Pkt> {
        let Some((due, slot)) = fate.due else { return Some(packet) };
        let (row, is_behind) = (usize::from(fate.row), fate.behind > 0);
        if is_behind && self.behind[lane].is_full() {
            // Frames whose time is over have left.
            self.behind[lane].retain(|ticket| self.hold.is_waiting(ticket));
        }
        let held = if is_behind && self.behind[lane].is_full() {
            Err(packet)
        } else {
            self.hold.delay(packet, lane, row, due)
        };
        self.faults.count(slot, toward, row, held.is_ok());
        match held {
            Ok(ticket) if is_behind => self.behind[lane].push(ticket, fate.behind),
            Ok(_) => {}
            Err(packet) => return Some(packet),
        }
        None
    }

    /// Records that a frame has passed in `lane`: frames that waited for it become due.
    fn pass(&mut self, lane: usize) {
        self.behind[lane].pass();
        while let Some(ticket) = self.behind[lane].take() {
            self.hold.hasten(ticket, lane);
        }
    }

    /// Sends `packets` by the faults of `port`. While frames wait there that its device refused, it takes none.
    fn send(&mut self, port: usize, packets: &mut Burst<I::Pkt>) {
        let lane = self.send_lane(port);
        if !self.flush(port) {
            return;
        }
        let now = (self.clock)();
        for mut packet in std::mem::take(packets) {
            let fate = self.faults.judge(&mut packet, port, Toward::Host, now);
            if fate.is_lost {
                self.discard(packet);
                continue;
            }
            let copy = self.copy(&packet, &fate, Toward::Host);
            for packet in [Some(packet), copy].into_iter().flatten() {
                if let Some(packet) = self.try_hold(packet, &fate, lane, Toward::Host) {
                    self.post(packet, port, fate.row.into());
                    // Frames in the lane are those that the device refused: later ones stay behind them.
                    let has_refused = self.hold.ready(lane) > 0;
                    self.pass(lane);
                    if !has_refused {
                        self.post_due(port);
                    }
                }
            }
        }
        self.send_posted(port);
    }

    /// Moves the frames that have become due to the burst, until the device refuses some.
    fn post_due(&mut self, port: usize) {
        let lane = self.send_lane(port);
        while self.hold.ready(lane) > 0 {
            if self.sending.is_full() && !self.send_posted(port) {
                return;
            }
            if let Some((packet, row)) = self.hold.pop(lane) {
                self.sending.push(packet);
                self.rows.push(row as u8);
            }
        }
    }

    /// Adds a frame to the burst for the device of `port`, or to the frames of its lane if the device has refused them.
    fn post(&mut self, packet: I::Pkt, port: usize, row: usize) {
        let lane = self.send_lane(port);
        if self.sending.is_full() {
            self.send_posted(port);
        }
        if self.hold.ready(lane) == 0 {
            self.sending.push(packet);
            self.rows.push(row as u8);
        } else if let Err(packet) = self.hold.append(packet, lane, row) {
            self.lose_for_room(packet, port, row);
        }
    }

    /// Gives the burst to the device. Frames that it refuses wait in front of those of the lane. Returns whether it has
    /// taken all.
    fn send_posted(&mut self, port: usize) -> bool {
        if !self.sending.is_empty() {
            self.io.tx(port, &mut self.sending);
        }
        let is_taken = self.sending.is_empty();
        self.keep_refused(port);
        is_taken
    }

    /// Sends the frames of `port` that are due. Returns whether the device has taken all of them.
    fn flush(&mut self, port: usize) -> bool {
        let lane = self.send_lane(port);
        while self.hold.ready(lane) > 0 {
            while let Some((packet, row)) = if self.sending.is_full() { None } else { self.hold.pop(lane) } {
                self.sending.push(packet);
                self.rows.push(row as u8);
            }
            if !self.send_posted(port) {
                return false;
            }
        }
        true
    }

    /// Puts the frames that the device refused in front of those that wait.
    fn keep_refused(&mut self, port: usize) {
        let lane = self.send_lane(port);
        while let (Some(packet), Some(row)) = (self.sending.pop(), self.rows.pop()) {
            if let Err(packet) = self.hold.put_back(packet, lane, row.into()) {
                self.lose_for_room(packet, port, row.into());
            }
        }
        self.rows.clear();
    }

    /// Loses a frame for which no room is left. The room suffices for what devices refuse and faults copy.
    fn lose_for_room(&mut self, packet: I::Pkt, port: usize, row: usize) {
        self.faults.count_ended(port, row);
        self.discard(packet);
    }
}

impl<I: Ports, C: Fn() -> Ticks> Ports for Faulty<I, C> {
    type Pkt = I::Pkt;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<I::Pkt>) {
        self.receive(RxQueue { port, number: None }, most, out);
    }

    fn rx_queue(&mut self, port: usize, queue: usize, most: usize, out: &mut Burst<I::Pkt>) {
        self.receive(RxQueue { port, number: Some(queue % QUEUES) }, most, out);
    }

    #[inline]
    fn begin(&mut self, port: usize) {
        self.io.begin(port);
    }

    /// Frames in the rings, and those that are due and were not received yet. Delayed frames have not arrived.
    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        let due: usize = queues.iter().map(|queue| self.hold.ready(Self::receive_lane(port, queue))).sum();
        self.io.backlog(port, queues).map(|backlog| backlog + due)
    }

    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        self.io.time()
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<I::Pkt>) {
        if self.faults.concerns(port, Toward::Host) || self.hold.ready(self.send_lane(port)) > 0 {
            self.send(port, packets);
        } else {
            self.io.tx(port, packets);
        }
    }

    /// Only virtual hosts send by other queues than the lcore's own, and they have no faults.
    fn tx_queue(&mut self, port: usize, queue: usize, packets: &mut Burst<I::Pkt>) {
        self.io.tx_queue(port, queue, packets);
    }

    /// Also sends the frames that are due: the switch calls this once at the end of each poll.
    fn free(&mut self, packets: &mut Burst<I::Pkt>) {
        self.io.free(packets);
        self.step();
        if !self.hold.is_empty() {
            for port in 0..self.ports {
                self.flush(port);
            }
        }
        self.faults.set_held(self.hold.len());
    }

    #[inline]
    fn shed(&mut self, packets: &mut Burst<I::Pkt>, frames: FrameSet) {
        self.io.shed(packets, frames);
    }

    #[inline]
    fn copy(&mut self, packet: &I::Pkt) -> Option<I::Pkt> {
        self.io.copy(packet)
    }

    #[inline]
    fn make(&mut self, frame: &[u8]) -> Option<I::Pkt> {
        self.io.make(frame)
    }

    #[inline]
    fn build(&mut self, frame: &[u8]) -> Option<I::Pkt> {
        self.io.build(frame)
    }

    fn filled(&self) -> PortSet {
        PortSet::ALL
    }

    /// Held frames and storms need polls. Other faults wait for frames.
    fn is_busy(&self, until: Ticks) -> bool {
        !self.hold.is_empty() || self.faults.is_stormy((self.clock)(), until)
    }

    /// Ends the faults: storms send XON, and held frames are due.
    fn settle(&mut self) -> bool {
        if !self.is_over {
            self.is_over = true;
            self.faults.end();
        }
        self.step();
        // A poll without frames need not call `free`.
        for port in 0..self.ports {
            self.flush(port);
        }
        self.faults.set_held(self.hold.len());
        self.hold.is_empty()
    }
}
