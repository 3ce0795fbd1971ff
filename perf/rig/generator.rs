//! The ports of a switch under test: a [`Link`] at each, with real mbufs between them.

use std::collections::VecDeque;
use std::marker::PhantomData;

use holdfast::dpdk::{Mbuf, Mempool};
use holdfast::io::{Burst, Packet, Ports};
use holdfast::sets::{BURST, ClassSet};
use holdfast::units::Ticks;
use holdfast::wire::mac_control::{self, MacControl, PfcFrame};

use super::frames::{Parcel, Writer};
use super::link::Link;
use super::watch::Watch;
use super::{Arrival, Flow};

/// The frames left in a receive ring, as the switch learns them.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    pub frames: usize,
    /// Whether the switch had no time to receive them.
    pub is_cut_short: bool,
}

/// Receives the events at the ports with their times. Its work counts as work of the generator.
pub trait Observer {
    /// The switch decides on the frame `arrival` next, in a burst that it took before. `flow` is `None` for a PFC
    /// frame.
    #[inline]
    fn received(&mut self, arrival: Arrival, flow: Option<Flow>) {
        let _ = (arrival, flow);
    }

    /// The switch polled `port` at `now`, and no frame was left there if it `is_drained`.
    #[inline]
    fn visited(&mut self, port: usize, is_drained: bool, now: u64, watch: &Watch) {
        let _ = (port, is_drained, now, watch);
    }

    /// The switch learned at `now` how many frames are `left` at `port`.
    #[inline]
    fn asked(&mut self, port: usize, left: Left, link: &Link, now: u64) {
        let _ = (port, left, link, now);
    }

    /// `port` was given a frame to send at `now`; its burst occupies the wire until `until`. `arrival` and `flow` are
    /// those at ingress.
    #[inline]
    fn sent(&mut self, port: usize, arrival: Arrival, flow: Flow, [now, until]: [u64; 2], watch: &Watch) {
        let _ = (port, arrival, flow, now, until, watch);
    }

    /// `port` was given a PFC frame at `now`, behind `ahead` ticks of data on its wire.
    #[inline]
    fn pfc(&mut self, port: usize, frame: &PfcFrame, now: u64, ahead: u64, watch: &Watch) {
        let _ = (port, frame, now, ahead, watch);
    }
}

/// Observes no events.
impl Observer for () {}

/// Ports whose peers are [`Link`]s.
pub struct Generator<K, O> {
    /// The peers.
    pub links: Vec<Link>,
    /// The observer of the events.
    pub observer: O,
    /// The clock, which detects thefts.
    pub watch: Watch,
    /// Ticks spent in the generator, not in the switch.
    pub own_ticks: u64,
    /// Data frames that the switch sent, by port.
    pub sent: Vec<u64>,
    /// PFC frames with XOFF that the switch sent, refreshes included.
    pub xoffs: u64,
    /// Times that no buffer was free for a frame. It must be zero, otherwise the run measures the pool.
    pub starved: u64,
    writer: Writer,
    idle: Vec<Mbuf>,
    control: Mempool,
    /// The time in ticks until which each port's wire is busy.
    wires: Vec<u64>,
    /// Received frames on which the switch has not begun to work, and (`bursts`) their number by burst.
    taken: VecDeque<(Arrival, Option<Flow>)>,
    bursts: VecDeque<usize>,
    /// The PFC frame that was made last and is not sent yet. The switch sends a frame as soon as it is made.
    made: Option<PfcFrame>,
    /// Whether the switch has asked for the time and has received nothing since: if it then asks for a backlog, it ends
    /// its poll for want of time.
    has_asked_time: bool,
    parcels: PhantomData<K>,
}

impl<K: Parcel, O: Observer> Generator<K, O> {
    /// Creates ports with the peers `links`, the buffers `idle`, and the pool `control` for PFC frames.
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
            has_asked_time: false,
            parcels: PhantomData,
        }
    }

    /// Returns the buffers that are not in the switch, and the observer.
    pub fn into_parts(self) -> (Vec<Mbuf>, O) {
        (self.idle, self.observer)
    }

    /// Data frames that the switch sent by all ports.
    pub fn sent_frames(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Frames lost because a receive ring was full.
    pub fn missed(&self) -> u64 {
        self.links.iter().map(|link| link.missed).sum()
    }

    #[inline]
    fn write(&mut self, mut mbuf: Mbuf, port: usize, arrival: Arrival) -> K {
        let link = self.links[port].spec();
        if let Some(frame) = mbuf.bytes_mut().first_chunk_mut() {
            if let Some(xoff) = arrival.as_pfc() {
                let class = link.pause.map_or(0, |pause| pause.class);
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

    /// Reads the clock. If time was stolen, the peers first stand still for that time, like the core.
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

    /// Stops the peers for the stolen time. Otherwise they would fill the rings while no poll could run, and the run
    /// would measure the machine's sleep instead of the switch.
    #[cold]
    fn freeze(&mut self, ticks: u64) {
        self.links.iter_mut().for_each(|link| link.freeze(ticks));
    }

    #[cold]
    fn send_pfc(&mut self, port: usize, frame: &PfcFrame, packets: &mut Burst<K>, now: u64) {
        assert!(packets.len() == 1 && packets[0].len() == mac_control::FRAME_LEN, "one PFC frame, as it was made");
        // A PFC frame passes the queues of the switch, but not the frames that the device already has.
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
    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<K>) {
        let now = self.enter();
        self.has_asked_time = false;
        self.links[port].advance(now);
        let until = out.capacity().min(out.len() + most);
        while out.len() < until {
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
        self.observer.visited(port, out.len() < most, now, &self.watch);
        self.leave(now);
    }

    /// Begins work on a burst. The switch takes bursts one ahead, so its decisions and their time begin here.
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
    fn backlog(&mut self, port: usize, _: ClassSet) -> Option<usize> {
        let now = self.enter();
        let left = Left { frames: self.links[port].waiting(), is_cut_short: self.has_asked_time };
        self.observer.asked(port, left, &self.links[port], now);
        self.leave(now);
        Some(left.frames)
    }

    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        let now = self.enter();
        self.has_asked_time = true;
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
        // No frame is flooded: all stations are known.
        None
    }

    fn make(&mut self, frame: &[u8]) -> Option<K> {
        let Some(MacControl::Pfc(pfc)) = mac_control::parse(frame) else { return None };
        let mbuf = self.control.alloc_with(frame)?;
        self.made = Some(pfc);
        Some(K::wrap(mbuf, Arrival::default()))
    }
}

const _: () = assert!(BURST == 64, "docs/performance.md says so");
