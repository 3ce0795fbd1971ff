//! Ingress: passes a received burst through parse, control, forward and rewrite to admission.

pub(crate) mod backlog;
mod control;
mod dispatch;
pub(crate) mod forwarder;
mod parse;
pub(crate) mod port_classifier;
pub(crate) mod rewrite;
mod rounds;
pub(crate) mod scratch;
pub(crate) mod shed;

use super::pipeline::Pipeline;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::forwarder::Ingress;
use crate::dataplane::ingress::parse::parse_burst;
use crate::io::{Burst, Packet, Ports};
use crate::sets::{BURST, FrameSet};
use crate::units::Ticks;

impl<P: Packet> Pipeline<P> {
    /// Processes a burst of `port` from the receive ring to its queues or drops.
    #[inline]
    pub(crate) fn process<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        port: usize,
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        now: Ticks,
    ) {
        let lookup = self.forwarder.begin(port, burst.len());
        let state = &self.ports[port];
        let arrived = parse_burst((port, state), &self.forwarder, self.buffer.cell, burst, metas, lookup.is_some());
        arrived.count(&self.telemetry.counters.ports[port]);
        if !arrived.control.is_empty() {
            self.control(port, burst, metas, arrived.control, now);
        }
        let from = Ingress { port, up: self.links.up, counters: &self.telemetry.counters.lcores[self.lcore] };
        let egresses = self.forwarder.forward(from, metas, (burst.len(), arrived.data), lookup);
        let demand = self.rewriter.rewrite(&self.ports[port], burst, metas, &arrived, egresses);
        self.dispatch(io, port, burst, metas, &demand);
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Consumes the MAC control frames of a burst.
    #[cold]
    fn control(&mut self, port: usize, burst: &Burst<P>, metas: &mut [Meta; BURST], control: FrameSet, now: Ticks) {
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        for index in control.iter() {
            let (meta, is_up) = (&mut metas[index], self.links.up.contains(port));
            meta.verdict = state.receive_control((burst[index].bytes(), meta.class_bits.tags()), is_up, counters, now);
        }
    }
}
