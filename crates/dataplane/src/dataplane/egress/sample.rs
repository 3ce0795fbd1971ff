//! Samples frames that join congestion points of QCN, and sends messages to their sources.
//!
//! Frames join queues in the first half of a poll and leave them in the second. So all frames that have joined since
//! the last look are at the end of their queue when transmission begins. Their bytes are compared with the interval of
//! the next sample there, once a poll and queue. Frames are looked at only where a sample is due. Enqueueing costs
//! nothing.
//!
//! A message leaves by the port where the sampled frame came in, past the queues of that port. A few may leave by a
//! port in a poll. One that finds no room, or whose priority is paused, is lost, which QCN tolerates.

use super::congestion::{CongestionPoints, Notice, Watched};
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::pipeline::Pipeline;
use crate::io::{Burst, Packet, Ports};
use crate::qos::qcn::{self, Sample};
use crate::sets::PortSet;
use crate::units::Ticks;
use crate::wire::cnm::{self, Cnm, Envelope, MOST_FRAME, Sampled};

/// Priority of messages with a VLAN tag (cnmTransmitPriority, clause 32.2).
const PRIORITY: u16 = 6;

const _: () = assert!(cnm::MOST_FEEDBACK == qcn::MOST_FEEDBACK, "feedback fits its field of a message");

impl<P: Packet> Pipeline<P> {
    /// Sends the messages that other lcores have made, and samples the frames that have joined congestion points since
    /// the last poll. [`Pipeline::note_ends`] follows transmission.
    #[inline(never)]
    pub(crate) fn sample_all<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) {
        // Taken for this call: messages leave by the whole pipeline.
        let Some(mut congestion) = self.congestion.take() else { return };
        congestion.begin();
        let mut peers = std::mem::take(&mut congestion.peers);
        for peer in peers.iter_mut().flatten() {
            for _ in 0..peer.from.refresh() {
                let Some(notice) = peer.from.pop() else { break };
                if congestion.may_send(notice.port) {
                    self.send_notice(io, &notice, now);
                }
            }
            peer.from.release();
        }
        congestion.peers = peers;
        for port in self.egress.waiting.iter() {
            for queue in (self.ports[port].waiting & congestion.queues).iter() {
                self.sample(io, &mut congestion, port, queue, now);
            }
        }
        for peer in congestion.peers.iter_mut().flatten() {
            peer.to.publish();
        }
        self.congestion = Some(congestion);
    }

    /// Takes note of the ends of the queues of `ports`, which have sent: what joins next is behind them.
    #[inline(never)]
    pub(crate) fn note_ends(&mut self, ports: PortSet) {
        let Some(congestion) = &mut self.congestion else { return };
        for port in ports.iter() {
            congestion.note_ends(port, &self.ports[port]);
        }
    }

    /// Samples the frames that have joined `queue` of `port` since the last look, if a sample is due.
    fn sample<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        congestion: &mut CongestionPoints,
        port: usize,
        queue: usize,
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
            let sample = point.sample(before + self.ports[port].posted(now), congestion.rng.roll());
            if sample.feedback == 0 {
                continue;
            }
            let Some(notice) = self.notice(packet, desc, port, queue, sample) else { continue };
            let is_own = self.own.contains(notice.port.into());
            if is_own && !congestion.may_send(notice.port) {
                continue;
            }
            self.telemetry.counters.ports[port].cnms_made[queue].add(1);
            if is_own {
                self.send_notice(io, &notice, now);
            } else {
                congestion.push_to_lcore(self.mesh.owner(notice.port), notice);
            }
        }
        congestion.points[port][queue] = Some(Watched { point, end });
    }

    /// The message to the source of a frame that was sampled in `queue` of `port`. `None` for a frame without a source,
    /// and for messages: they cause no further ones.
    fn notice(&self, packet: &P, desc: FrameDesc, port: usize, queue: usize, sample: Sample) -> Option<Notice> {
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
        Some(Notice { port: ingress as u8, len: len as u8, frame, is_tagged: tci.is_some() })
    }

    /// Sends a message by a port of this lcore. It is lost without a link, a buffer or room in the device, and while
    /// the peer pauses its priority (IEEE 802.1Q clause 36: only MAC control is not paused).
    fn send_notice<I: Ports<Pkt = P>>(&mut self, io: &mut I, notice: &Notice, now: Ticks) {
        let (port, len) = (usize::from(notice.port), usize::from(notice.len));
        if !self.links.up.contains(port) || self.ports[port].progress.is_stuck() {
            return;
        }
        if notice.is_tagged && self.ports[port].pfc.paused(now).contains(usize::from(PRIORITY)) {
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
