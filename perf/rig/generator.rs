//! The ports of a switch under test: a [`Link`] at each, real mbufs between them.

use std::collections::VecDeque;
use std::marker::PhantomData;

use holdfast::dpdk::{Mbuf, Mempool};
use holdfast::packet::{Burst, Packet, Ports};
use holdfast::sets::BURST;
use holdfast::units::Ticks;
use holdfast::wire::mac_control::{self, MacControl, PfcFrame};

use super::frames::{Parcel, Writer};
use super::link::Link;
use super::watch::Watch;
use super::{Arrival, Flow};

/// Who wants to know what passes the ports, and when. What it does costs as what the generator does.
pub trait Observer {
    /// `arrival` of `flow` is what the switch decides on next, in a burst that it took before; `flow` is `None` for a PFC frame.
    #[inline]
    fn received(&mut self, arrival: Arrival, flow: Option<Flow>) {
        let _ = (arrival, flow);
    }

    /// `port` was asked for frames at `now` and has handed out `frames`.
    #[inline]
    fn visited(&mut self, port: usize, frames: usize, now: u64, watch: &Watch) {
        let _ = (port, frames, now, watch);
    }

    /// The switch was told at `now` that `left` frames wait at `port`.
    #[inline]
    fn asked(&mut self, port: usize, left: usize, link: &Link, now: u64) {
        let _ = (port, left, link, now);
    }

    /// A frame that came as `arrival` and `flow` say is handed out by `port` at `now`; its burst is on the wire until `until`.
    #[inline]
    fn sent(&mut self, port: usize, arrival: Arrival, flow: Flow, [now, until]: [u64; 2], watch: &Watch) {
        let _ = (port, arrival, flow, now, until, watch);
    }

    /// A PFC frame is handed out by `port` at `now`, behind `ahead` ticks of data on its wire.
    #[inline]
    fn pfc(&mut self, port: usize, frame: &PfcFrame, now: u64, ahead: u64, watch: &Watch) {
        let _ = (port, frame, now, ahead, watch);
    }
}

/// Nobody looks.
impl Observer for () {}

/// Ports whose peers are [`Link`]s.
pub struct Generator<K, O> {
    /// The peers.
    pub links: Vec<Link>,
    /// Who looks on.
    pub observer: O,
    /// The clock.
    pub watch: Watch,
    /// Ticks spent in here, and not in the switch.
    pub own_ticks: u64,
    /// Data frames handed out, by port.
    pub sent: Vec<u64>,
    /// PFC frames with XOFF handed out, refreshes included.
    pub xoffs: u64,
    /// Times that there was no buffer for a frame: zero, or what was measured is the pool.
    pub starved: u64,
    writer: Writer,
    idle: Vec<Mbuf>,
    control: Mempool,
    /// Until when each port's wire has something to send, in ticks.
    wires: Vec<u64>,
    /// Frames handed out that work has not begun on, and how many of them each burst has.
    taken: VecDeque<(Arrival, Option<Flow>)>,
    bursts: VecDeque<usize>,
    /// The PFC frame that was made last, and is not sent yet. The switch sends what it has made at once.
    made: Option<PfcFrame>,
    parcels: PhantomData<K>,
}

impl<K: Parcel, O: Observer> Generator<K, O> {
    /// `links`, buffers as many as there are `idle` and a pool for PFC frames.
    pub fn new(links: Vec<Link>, idle: Vec<Mbuf>, control: Mempool, watch: Watch, observer: O) -> Self {
        let frame_len = links.iter().map(|link| link.spec().frame_len).max().unwrap_or(64);
        let ports = links.len();
        Self {
            links,
            observer,
            watch,
            own_ticks: 0,
            sent: vec![0; ports],
            xoffs: 0,
            starved: 0,
            writer: Writer::new(frame_len),
            idle,
            control,
            wires: vec![0; ports],
            taken: VecDeque::with_capacity(4 * BURST),
            bursts: VecDeque::with_capacity(4),
            made: None,
            parcels: PhantomData,
        }
    }

    /// The buffers that are not in the switch, and who looked on.
    pub fn into_parts(self) -> (Vec<Mbuf>, O) {
        (self.idle, self.observer)
    }

    /// Data frames handed out by all ports.
    pub fn sent_frames(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Frames that found a receive ring full.
    pub fn missed(&self) -> u64 {
        self.links.iter().map(|link| link.missed).sum()
    }

    #[inline]
    fn write(&mut self, mut mbuf: Mbuf, port: usize, arrival: Arrival) -> K {
        let link = self.links[port].spec();
        if let Some(frame) = mbuf.bytes_mut().first_chunk_mut() {
            if let Some(xoff) = arrival.as_pfc() {
                let class = link.storm.map_or(0, |storm| storm.class);
                Writer::write_pfc(frame, port, class, xoff);
                self.taken.push_back((arrival, None));
            } else {
                let flow = link.flows[arrival.flow()];
                self.writer.write(frame, port, flow);
                self.taken.push_back((arrival, Some(flow)));
            }
        }
        K::wrap(mbuf, arrival)
    }

    /// What time it is, for the peers too: before they hear or send anything, they have slept as long as the core.
    #[inline]
    fn enter(&mut self) -> u64 {
        let now = self.watch.look();
        let stolen = self.watch.take_stolen();
        if stolen > 0 {
            self.freeze(stolen);
        }
        now
    }

    #[inline]
    fn leave(&mut self, since: u64) {
        self.own_ticks += self.watch.look() - since;
    }

    /// The core was away, and the peers with it. Had they gone on, rings would be full of what nobody could receive, and
    /// the run would show how long the machine slept and not what the switch does.
    #[cold]
    fn freeze(&mut self, ticks: u64) {
        self.links.iter_mut().for_each(|link| link.freeze(ticks));
    }

    #[cold]
    fn send_pfc(&mut self, port: usize, frame: &PfcFrame, packets: &mut Burst<K>, now: u64) {
        assert!(packets.len() == 1 && packets[0].len() == mac_control::FRAME_LEN, "one PFC frame, as it was made");
        // It passes the switch's queues, but not what is with the device already.
        let begins = self.wires[port].max(now);
        self.links[port].hear(frame, begins);
        self.xoffs += u64::from(frame.quanta.iter().any(|quanta| quanta.0 > 0));
        self.observer.pfc(port, frame, now, begins - now, &self.watch);
        packets.drain(..).for_each(|packet| packet.unwrap().free());
    }
}

impl<K: Parcel, O: Observer> Ports for Generator<K, O> {
    type Pkt = K;

    #[inline]
    fn rx(&mut self, port: usize, out: &mut Burst<K>) {
        let now = self.enter();
        self.links[port].advance(now);
        while !out.is_full() {
            let Some(arrival) = self.links[port].take(now) else { break };
            let Some(mbuf) = self.idle.pop() else {
                self.starved += 1;
                break;
            };
            let packet = self.write(mbuf, port, arrival);
            out.push(packet);
        }
        if !out.is_empty() {
            self.bursts.push_back(out.len());
        }
        self.observer.visited(port, out.len(), now, &self.watch);
        self.leave(now);
    }

    /// The switch takes bursts one ahead: what it decides on, and when, begins here.
    #[inline]
    fn begin(&mut self, _: usize) {
        let now = self.enter();
        let frames = self.bursts.pop_front().unwrap_or(0);
        for (arrival, flow) in self.taken.drain(..frames) {
            self.observer.received(arrival, flow);
        }
        self.leave(now);
    }

    #[inline]
    fn backlog(&mut self, port: usize) -> Option<usize> {
        let now = self.enter();
        let left = self.links[port].waiting();
        self.observer.asked(port, left, &self.links[port], now);
        self.leave(now);
        Some(left)
    }

    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        let now = self.enter();
        self.leave(now);
        Some(Ticks(now))
    }

    #[inline]
    fn tx(&mut self, port: usize, packets: &mut Burst<K>) {
        let now = self.enter();
        if let Some(frame) = self.made.take() {
            self.send_pfc(port, &frame, packets, now);
        } else {
            let frames = packets.len() as u64;
            self.sent[port] += frames;
            let until = self.wires[port].max(now) + frames * self.links[port].wire_ticks;
            self.wires[port] = until;
            for packet in packets.drain(..) {
                if let Some(arrival) = packet.arrival() {
                    let flow = self.links[arrival.port()].spec().flows[arrival.flow()];
                    self.observer.sent(port, arrival, flow, [now, until], &self.watch);
                }
                self.idle.push(packet.unwrap());
            }
        }
        self.leave(now);
    }

    #[inline]
    fn free(&mut self, packets: &mut Burst<K>) {
        self.idle.extend(packets.drain(..).map(K::unwrap));
    }

    fn copy(&mut self, _: &K) -> Option<K> {
        // Nothing is flooded: all stations are known.
        None
    }

    fn make(&mut self, frame: &[u8]) -> Option<K> {
        let Some(MacControl::Pfc(pfc)) = mac_control::parse(frame) else { return None };
        let mbuf = self.control.alloc_with(frame)?;
        self.made = Some(pfc);
        Some(K::wrap(mbuf, Arrival::default()))
    }
}

const _: () = assert!(BURST == 32, "docs/performance-reaction.md says so");
