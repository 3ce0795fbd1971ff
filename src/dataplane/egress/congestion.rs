//! Congestion points of QCN: they sample the frames that join a queue, and send messages to the sources of these frames
//! (802.1Q clauses 30 to 33).
//!
//! Frames join queues in the first half of a poll and leave them in the second. So all frames that have joined since the
//! last look are at the end of their queue when transmission begins. Their bytes are compared with the interval of the
//! next sample there, once a poll and queue. Only where a sample is due are the frames looked at. Enqueueing costs
//! nothing.
//!
//! A message leaves by the port where the sampled frame came in. It bypasses the queues and pauses of that port, as PFC
//! frames do. If another lcore owns the port, the message crosses in a ring. A message that finds no room is lost, which
//! QCN tolerates.

use crate::dataplane::egress::queue::QueuePlace;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::handoff::ring::{Consumer, Producer, lcore_pairs, ring};
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::dataplane::spec::SwitchSpec;
use crate::io::{Burst, Packet, Ports};
use crate::qos::qcn::{CongestionPoint, Sample};
use crate::qos::wred::XorShift;
use crate::sets::{CLASSES, ClassSet, MAX_PORTS};
use crate::units::Ticks;
use crate::wire::cnm::{self, Cnm, Envelope, MOST_FRAME, Sampled};

/// Priority of messages with a VLAN tag (cnmTransmitPriority, clause 32.2).
const PRIORITY: u16 = 6;
/// Messages that may wait in a ring between two lcores.
const RING: usize = 64;
/// Sampling must not follow the random numbers of WRED.
const SEED: u32 = 0x51c0_51c0;

/// The congestion points of one lcore.
#[derive(Debug)]
pub(crate) struct Congestion {
    /// Queues that are congestion points, the same at each port.
    queues: ClassSet,
    /// By port and queue.
    points: Box<[[Option<Watched>; CLASSES]]>,
    rng: XorShift,
    /// Rings to and from the other lcores, by their numbers; `None` at the number of this one.
    peers: Vec<Option<Peer>>,
    /// The lcore that owns each port.
    owners: [u8; MAX_PORTS],
}

/// A congestion point, and the end of its queue at the last look.
#[derive(Debug, Clone)]
struct Watched {
    point: CongestionPoint,
    end: QueuePlace,
}

/// The rings to and from another lcore.
struct Peer {
    to: Producer<Notice>,
    from: Consumer<Notice>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").finish_non_exhaustive()
    }
}

/// A message that is ready to leave.
#[derive(Debug, Clone, Copy)]
struct Notice {
    port: u8,
    len: u8,
    frame: [u8; MOST_FRAME],
}

const _: () = assert!(MOST_FRAME <= u8::MAX as usize, "the length fits its field");

impl Congestion {
    /// Creates the congestion points of all lcores of `spec`; `None` each if no queue is one. `seed` is the switch's.
    pub fn fleet(spec: &SwitchSpec, seed: u32) -> Vec<Option<Box<Self>>> {
        let lcores = usize::from(spec.lcores);
        if !spec.has_congestion_points() {
            return (0..lcores).map(|_| None).collect();
        }
        let watched = |queue: usize| {
            let point = spec.congestion_points[queue].as_ref()?;
            Some(Watched { point: CongestionPoint::new(point), end: QueuePlace::START })
        };
        let of = |lcore: usize| Self {
            queues: (0..CLASSES).filter(|&queue| spec.congestion_points[queue].is_some()).collect(),
            points: spec.ports.iter().map(|_| std::array::from_fn(watched)).collect(),
            rng: XorShift::new(seed ^ SEED.rotate_left(lcore as u32)),
            peers: (0..lcores).map(|_| None).collect(),
            owners: std::array::from_fn(|port| spec.ports.get(port).map_or(0, |port| port.lcore)),
        };
        let mut fleet: Vec<Self> = (0..lcores).map(of).collect();
        for (one, other) in lcore_pairs(lcores) {
            let ((there, received), (back, returned)) = (ring(RING), ring(RING));
            fleet[one].peers[other] = Some(Peer { to: there, from: returned });
            fleet[other].peers[one] = Some(Peer { to: back, from: received });
        }
        fleet.into_iter().map(|congestion| Some(Box::new(congestion))).collect()
    }

    /// Whether no message of another lcore waits.
    pub fn is_at_rest(&mut self) -> bool {
        self.peers.iter_mut().flatten().all(|peer| peer.from.refresh() == 0)
    }

    /// Moves the ends of the queues of port `number` behind their last frames.
    fn note_ends(&mut self, number: usize, port: &Port) {
        for queue in self.queues.iter() {
            if let Some(watched) = &mut self.points[number][queue] {
                watched.end = port.queues[queue].end_place();
            }
        }
    }

    /// Hands a message to the lcore that owns its port. A full ring loses it.
    fn push_to_lcore(&mut self, notice: Notice) {
        let owner = usize::from(self.owners[usize::from(notice.port) % MAX_PORTS]);
        if let Some(peer) = self.peers.get_mut(owner).and_then(Option::as_mut) {
            let _ = peer.to.push(notice);
        }
    }
}

impl<P: Packet> Pipeline<P> {
    /// Does the work of [`Pipeline::transmit_all`] in a switch with congestion points.
    #[inline(never)]
    pub(crate) fn transmit_sampled<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> usize {
        let Some(mut congestion) = self.congestion.take() else { return self.transmit_all(io, now) };
        for peer in congestion.peers.iter_mut().flatten() {
            for _ in 0..peer.from.refresh() {
                let Some(notice) = peer.from.pop() else { break };
                self.send_notice(io, &notice, now);
            }
            peer.from.release();
        }
        let ports = self.egress.waiting;
        for port in ports.iter() {
            for queue in (self.ports[port].waiting & congestion.queues).iter() {
                self.sample(io, &mut congestion, (port, queue), now);
            }
        }
        for peer in congestion.peers.iter_mut().flatten() {
            peer.to.publish();
        }
        let sent = self.transmit_all(io, now);
        for port in ports.iter() {
            congestion.note_ends(port, &self.ports[port]);
        }
        self.congestion = Some(congestion);
        sent
    }

    /// Samples the frames that have joined `queue` of `port` since the last look, if a sample is due.
    fn sample<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        congestion: &mut Congestion,
        (port, queue): (usize, usize),
        now: Ticks,
    ) {
        let Some(watched) = &mut congestion.points[port][queue] else { return };
        let joined = self.ports[port].queues[queue].bytes().0.saturating_sub(watched.end.bytes().0);
        if watched.point.pass(joined) {
            return;
        }
        let Watched { mut point, mut end } = watched.clone();
        loop {
            let before = end.bytes();
            let Some((packet, desc)) = self.ports[port].queues[queue].frame_behind(&self.egress.slab, &mut end) else {
                break;
            };
            if point.pass(desc.frame_len().into()) {
                continue;
            }
            let sample = point.sample(before, congestion.rng.roll());
            if sample.feedback == 0 {
                continue;
            }
            let Some(notice) = self.notice(packet, desc, (port, queue), sample) else { continue };
            self.telemetry.counters.ports[port].cnms_made[queue].add(1);
            if self.own.contains(notice.port.into()) {
                self.send_notice(io, &notice, now);
            } else {
                congestion.push_to_lcore(notice);
            }
        }
        congestion.points[port][queue] = Some(Watched { point, end });
    }

    /// The message to the source of a frame that was sampled in `queue` of `port`. `None` for a frame without a source,
    /// and for messages: they cause no further ones.
    fn notice(&self, packet: &P, desc: FrameDesc, (port, queue): (usize, usize), sample: Sample) -> Option<Notice> {
        let sampled = Sampled::read(packet.bytes())?;
        if sampled.is_notification() || sampled.src.is_group() {
            return None;
        }
        let (vlans, ingress) = (&self.forwarder.vlans, usize::from(desc.ingress()));
        let vlan = vlans.ingress(port, sampled.tci.map(|tci| tci & 0xfff))?;
        let tci = vlans.leaves_tagged(ingress, vlan).then_some(PRIORITY << 13 | vlan);
        let mac = self.ports[port].mac;
        let mut point = [0; 8];
        point[..6].copy_from_slice(&mac.0);
        point[7] = queue as u8;
        let cnm = Cnm {
            feedback: sample.feedback,
            point,
            offset: cnm::in_units(sample.offset),
            delta: cnm::in_units(sample.delta),
            priority: desc.class(),
            dst: sampled.dst,
            msdu: sampled.msdu,
        };
        let mut frame = [0; MOST_FRAME];
        let len = cnm.write(&Envelope { dst: sampled.src, src: mac, tci, flow: sampled.flow }, &mut frame);
        Some(Notice { port: ingress as u8, len: len as u8, frame })
    }

    /// Sends a message by a port of this lcore. It is lost without a link, a buffer or room in the device.
    fn send_notice<I: Ports<Pkt = P>>(&mut self, io: &mut I, notice: &Notice, now: Ticks) {
        let (port, len) = (usize::from(notice.port), usize::from(notice.len));
        if !self.links.up.contains(port) || self.ports[port].progress.is_stuck() {
            return;
        }
        let Some(packet) = io.make(&notice.frame[..len]) else { return };
        let mut one = Burst::new();
        one.push(packet);
        io.tx(port, &mut one);
        if !one.is_empty() {
            return io.free(&mut one);
        }
        self.ports[port].charge_control(u32::from(notice.len), now);
        self.telemetry.counters.ports[port].cnms_sent.add(1);
        self.telemetry.gauges_dirty.insert(port);
    }
}
