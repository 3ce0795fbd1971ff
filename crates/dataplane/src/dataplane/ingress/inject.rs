//! Inject: frames of the control plane, and copies for outputs of mirrors, join the queues like received ones, in a
//! lossy class.

use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::port_classifier::Classification;
use crate::dataplane::pipeline::Pipeline;
use crate::forward::fdb::{Station, StationPair};
use crate::io::{Burst, Packet, Ports};
use crate::plan::exception::{Buffered, ExceptionPort};
use crate::route::punt::INJECT_CLASSES;
use crate::route::{InjectFrame, InjectTo};
use crate::sets::{BURST, PortSet};

/// Copies that a poll sends, at most: of the longest frames they take some microseconds. XOFF must not wait.
const POLL_COPIES: usize = 4;

impl<P: Packet> Pipeline<P> {
    /// Enqueues up to a burst of frames that the control plane sends, and some copies for outputs of mirrors. Returns
    /// their number.
    #[inline]
    pub(crate) fn accept_injected<I: Ports<Pkt = P>>(&mut self, io: &mut I) -> usize {
        let waiting = self.punter.port.as_mut().map_or(0, |port| port.waiting());
        let copies = self.mirror.sender().map_or(0, |channel| channel.waiting());
        if waiting + copies == 0 {
            return 0;
        }
        self.inject_burst(io, waiting.min(BURST), false, |pipeline| pipeline.punter.port.as_mut())
            + self.inject_burst(io, copies.min(POLL_COPIES), true, |pipeline| pipeline.mirror.sender())
    }

    /// Enqueues `frames` frames of a channel, which are copies or frames of the control plane. Returns their number.
    #[cold]
    fn inject_burst<I: Ports<Pkt = P>, F: Buffered>(
        &mut self,
        io: &mut I,
        frames: usize,
        are_copies: bool,
        channel: impl Fn(&mut Self) -> Option<&mut ExceptionPort<F>>,
    ) -> usize {
        for _ in 0..frames {
            let Some(frame) = channel(self).and_then(ExceptionPort::take) else { break };
            self.inject(io, &frame, are_copies);
            if let Some(channel) = channel(self) {
                channel.give_back(frame);
            }
        }
        self.publish_handoffs();
        frames
    }

    /// Enqueues one frame: a copy at each port by which it leaves.
    fn inject<I: Ports<Pkt = P>>(&mut self, io: &mut I, frame: &InjectFrame, is_copy: bool) {
        let dst: [u8; 6] = frame.bytes.first_chunk().copied().unwrap_or_default();
        let dst = crate::wire::MacAddr(dst);
        let egresses = match frame.to {
            InjectTo::Link(port) => PortSet::only(port.into()) & self.links.up,
            InjectTo::Port(port) => self.members_of(PortSet::only(port.into())),
            InjectTo::Vlan(vlan) => {
                let members = self.forwarder.vlans.members(vlan);
                let known = self.forwarder.fdb.lookup(Station::new(vlan, dst.to_number()));
                // A port that left the VLAN may still be known.
                let known = known.map(PortSet::only).filter(|port| !(*port & members).is_empty());
                self.members_of(known.unwrap_or(members))
            }
        };
        let egresses = egresses & self.all_ports();
        if egresses.is_empty() {
            self.telemetry.counters.lcores[self.lcore].inject_drops.add(1);
        }
        for egress in egresses.iter() {
            self.inject_at(io, egress, frame, is_copy, dst);
        }
    }

    /// The ports by which frames of the switch itself leave to the bridge ports `ports`.
    fn members_of(&self, ports: PortSet) -> PortSet {
        (ports & self.lags.up).iter().filter_map(|port| self.lags.first_member(port)).collect()
    }

    /// Enqueues a frame at `egress`. It is charged to the port itself, or to a port of this lcore if another owns it.
    fn inject_at<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        egress: usize,
        frame: &InjectFrame,
        is_copy: bool,
        dst: crate::wire::MacAddr,
    ) {
        let counters = &self.telemetry.counters.lcores[self.lcore];
        let account = if self.own.contains(egress) { Some(egress) } else { self.own.lowest() };
        let (Some(account), Some(packet)) = (account, io.build(&frame.bytes)) else {
            return counters.inject_drops.add(1);
        };
        counters.injected_frames.add(1);
        let len = frame.bytes.len().min(usize::from(u16::MAX)) as u16;
        if self.egress.closed.contains(egress) && matches!(frame.to, InjectTo::Link(_)) {
            return self.inject_past_queues(io, egress, packet);
        }
        let Classification { desc, class_bits, .. } = self.inject_class(account, is_copy);
        let desc = FrameDesc::new(len, self.buffer.cell.cells_of(len), account as u8, 0, 0).with(desc).owned();
        let desc = desc.reshaped(len, desc.cells(), crate::wire::Usual::L3_OFFSET);
        let stations = StationPair::new(frame.vlan, dst.to_number(), dst.to_number());
        let meta = Meta { stations, desc, class_bits, ..Meta::EMPTY };
        match frame.to {
            InjectTo::Link(_) => self.send(io, account, egress, packet, &meta),
            InjectTo::Port(_) | InjectTo::Vlan(_) => self.send_copy(io, account, egress, packet, meta),
        }
    }

    /// Sends a frame of the link of a closed member: LACP must not wait for the end of its opening.
    #[cold]
    fn inject_past_queues<I: Ports<Pkt = P>>(&mut self, io: &mut I, egress: usize, packet: P) {
        let (now, len) = (self.now, packet.bytes().len() as u32);
        let mut one = Burst::new();
        one.push(packet);
        io.tx(egress, &mut one);
        // A data unit that finds no room is repeated.
        io.free(&mut one);
        self.ports[egress].charge_control(len, now);
    }

    /// The class of injected frames at `port`: a lossy one, so that they can neither hold nor be held by PFC's senders.
    /// Copies take the last one, so that they do not hold up frames of the link at an output.
    fn inject_class(&self, port: usize, are_copies: bool) -> Classification {
        let classifier = &self.ports[port].classifier;
        let lossy = |class: &u8| {
            let class = classifier.of_class((*class).into());
            (!class.class_bits.lossy_queue().is_empty()).then_some(class)
        };
        let mut classes = INJECT_CLASSES.iter();
        let lossy = if are_copies { classes.rev().find_map(lossy) } else { classes.find_map(lossy) };
        lossy.unwrap_or_else(|| classifier.of_class(0))
    }
}
