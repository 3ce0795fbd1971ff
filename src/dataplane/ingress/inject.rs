//! Inject: frames of the control plane join the queues like received ones, in a lossy class.

use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::port_classifier::Classification;
use crate::dataplane::pipeline::Pipeline;
use crate::forward::fdb::{Station, StationPair};
use crate::io::{Burst, Packet, Ports};
use crate::route::punt::INJECT_CLASSES;
use crate::route::{InjectFrame, InjectTo};
use crate::sets::{BURST, PortSet};

impl<P: Packet> Pipeline<P> {
    /// Enqueues up to a burst of frames that the control plane sends. Returns their number.
    #[inline]
    pub(crate) fn accept_injected<I: Ports<Pkt = P>>(&mut self, io: &mut I) -> usize {
        let waiting = self.punter.port.as_mut().map_or(0, |port| port.waiting());
        if waiting == 0 { 0 } else { self.inject_burst(io, waiting.min(BURST)) }
    }

    #[cold]
    fn inject_burst<I: Ports<Pkt = P>>(&mut self, io: &mut I, frames: usize) -> usize {
        for _ in 0..frames {
            let Some(frame) = self.punter.port.as_mut().and_then(|port| port.take()) else { break };
            self.inject(io, &frame);
            if let Some(port) = &mut self.punter.port {
                port.give_back(frame);
            }
        }
        self.publish_handoffs();
        frames
    }

    /// Enqueues one frame: a copy at each port by which it leaves.
    fn inject<I: Ports<Pkt = P>>(&mut self, io: &mut I, frame: &InjectFrame) {
        let dst: [u8; 6] = frame.bytes.first_chunk().copied().unwrap_or_default();
        let dst = crate::wire::MacAddr(dst);
        let egresses = match frame.to {
            InjectTo::Link(port) => PortSet::only(port.into()) & self.links.up,
            InjectTo::Port(port) => self.members_of(PortSet::only(port.into())),
            InjectTo::Vlan(vlan) => {
                let members = self.forwarder.vlans.members(vlan);
                let known = self.forwarder.fdb.lookup(Station::new(vlan, dst.to_number()));
                self.members_of(known.map_or(members, |port| members & PortSet::only(port)))
            }
        };
        let egresses = egresses & self.all_ports();
        if egresses.is_empty() {
            self.telemetry.counters.lcores[self.lcore].inject_drops.add(1);
        }
        for egress in egresses.iter() {
            self.inject_at(io, egress, frame, dst);
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
        let Classification { desc, class_bits, .. } = self.inject_class(account);
        let desc = FrameDesc::new(len, self.buffer.cell.cells_of(len), account as u8, 0, 0).with(desc);
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
    fn inject_class(&self, port: usize) -> Classification {
        let classifier = &self.ports[port].classifier;
        let mut classes = INJECT_CLASSES.iter().map(|&class| classifier.of_class(class.into()));
        let lossy = classes.find(|class| !class.class_bits.lossy_queue().is_empty());
        lossy.unwrap_or_else(|| classifier.of_class(0))
    }
}
