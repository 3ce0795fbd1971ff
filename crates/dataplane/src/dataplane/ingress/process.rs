//! The stages of a received burst in order, from its headers to its queues or drops.

use super::forwarder::{Egresses, IngressContext};
use super::parse::{Arrived, ParseContext, parse_burst};
use super::punt::RouteContext;
use super::route::RoutedBurst;
use crate::dataplane::frame::lanes::BurstLanes;
use crate::dataplane::frame::meta::Forwarding;
use crate::dataplane::frame::notes::IngressBurst;
use crate::dataplane::pipeline::Pipeline;
use crate::forward::flow_cache::CacheLookup;
use crate::io::{Packet, Ports};
use crate::plan::drops::DropReason;
use crate::route::ROUTER_PORT;
use crate::sets::{FrameSet, PortSet};

impl<P: Packet> Pipeline<P> {
    /// Processes a burst from the receive ring to its queues or drops. The usual burst asks once whether its port is
    /// special.
    #[inline]
    pub(crate) fn process<I: Ports<Pkt = P>>(&mut self, io: &mut I, burst: &mut IngressBurst<'_, P>) {
        if self.special.contains(burst.port) {
            return self.process_special(io, burst);
        }
        debug_assert!(!self.has_stages(burst.port), "a special port that `follow_special` was not told of");
        let lookup = self.begin_lookups(burst);
        let mut arrived = self.read::<false>(burst, lookup.is_some());
        let egresses = self.bridge(burst, &mut arrived, lookup);
        self.send_on(io, burst, &arrived, egresses);
    }

    /// Does the work of [`Pipeline::process`] for ports with a stage of their own ([`Pipeline::follow_special`]).
    #[inline(never)]
    fn process_special<I: Ports<Pkt = P>>(&mut self, io: &mut I, burst: &mut IngressBurst<'_, P>) {
        let (is_shut, is_idle) = (self.links.shut.contains(burst.port), self.lags.idle.contains(burst.port));
        let is_routed = self.router.as_ref().is_some_and(|router| router.routed().contains(burst.port));
        let lookup = if is_shut || is_idle || is_routed { None } else { self.begin_lookups(burst) };
        let mut arrived = self.read::<true>(burst, lookup.is_some());
        let egresses = if is_shut {
            drop_data(burst, &arrived)
        } else if is_idle {
            self.refuse_data(burst, &arrived)
        } else if is_routed {
            self.route_from_routed(burst, &mut arrived)
        } else {
            self.bridge(burst, &mut arrived, lookup)
        };
        self.finish_samples(&burst.notes.metas);
        self.send_on(io, burst, &arrived, egresses);
    }

    /// Begins the look-ups in the flow cache; `None` while it is bypassed.
    #[inline]
    fn begin_lookups(&mut self, burst: &IngressBurst<'_, P>) -> Option<CacheLookup> {
        self.forwarder.begin(self.lags.bridge_port(burst.port), burst.frames.len())
    }

    /// Reads the headers of a burst and counts it, and obeys its MAC control frames. `uses_cache`: the flow cache is
    /// read for its frames. `SPECIAL`: the port has optional stages.
    #[inline(always)]
    fn read<const SPECIAL: bool>(&mut self, burst: &mut IngressBurst<'_, P>, uses_cache: bool) -> Arrived {
        burst.notes.lanes = BurstLanes::default();
        let Self { ports, forwarder, buffer, isa, .. } = &*self;
        let (port, cache) = (&ports[burst.port], uses_cache.then(|| forwarder.cache.sets()));
        let from = ParseContext { number: burst.port, port, forwarder, cell: buffer.cell, cache, isa: *isa };
        let mut arrived = parse_burst(from, burst.frames, burst.notes);
        if SPECIAL {
            self.note_special(burst, &mut arrived);
        }
        arrived.count(&self.telemetry.counters.ports[burst.port]);
        if !arrived.control.is_empty() {
            self.obey(burst, arrived.control);
        }
        arrived
    }

    /// Finds the egress ports of a burst from a port that bridges.
    #[inline(always)]
    fn bridge(
        &mut self,
        burst: &mut IngressBurst<'_, P>,
        arrived: &mut Arrived,
        lookup: Option<CacheLookup>,
    ) -> Egresses {
        let (port, bridge_port) = (burst.port, self.lags.bridge_port(burst.port));
        let counters = &self.telemetry.counters.lcores[self.lcore];
        let from = IngressContext { port, bridge_port, refusal: None, up: self.lags.up, counters, now: self.now };
        let egresses = self.forwarder.forward(from, burst.notes, burst.frames.len(), arrived.data, lookup);
        if (egresses.ports & self.indirect).is_empty() { egresses } else { self.resolve(burst, arrived, egresses) }
    }

    /// The optional stages of a parsed burst: classes of RoCE's answers, samples, priorities of receive queues.
    #[inline]
    fn note_special(&mut self, burst: &mut IngressBurst<'_, P>, arrived: &mut Arrived) {
        let IngressBurst { port, ref frames, ref mut notes } = *burst;
        if self.ports[port].classifier.has_roce() {
            arrived.classify_roce(&self.ports[port].classifier, &self.telemetry.counters.ports[port], frames, notes);
        }
        if self.sampled.contains(port) {
            self.stage_samples(port, frames, &notes.metas);
        }
        let queues = &mut self.ports[port].rx_queues;
        if queues.is_managed() {
            queues.learn(arrived.data, &notes.metas);
        }
    }

    /// Obeys the MAC control frames of a burst: PFC and PAUSE.
    #[inline(never)]
    fn obey(&mut self, burst: &mut IngressBurst<'_, P>, control: FrameSet) {
        self.alert.insert(burst.port);
        self.control(burst, control);
        self.tell_pauses(burst.port);
    }

    /// Finds the ports behind those of the router and of link aggregation groups.
    #[inline(never)]
    fn resolve(&mut self, burst: &mut IngressBurst<'_, P>, arrived: &mut Arrived, mut egresses: Egresses) -> Egresses {
        // A switch that only bridges may have a device at the router's number.
        if egresses.ports.contains(ROUTER_PORT) && self.router.is_some() {
            egresses = self.route_bridged(burst, arrived, egresses);
        }
        self.resolve_groups(burst, egresses)
    }

    /// Finds the members behind link aggregation groups.
    #[inline]
    fn resolve_groups(&self, burst: &mut IngressBurst<'_, P>, egresses: Egresses) -> Egresses {
        if (egresses.ports & self.lags.heads).is_empty() {
            return egresses;
        }
        self.lags.resolve(burst.frames, burst.notes, egresses)
    }

    /// Drops the data of an idle member of a link aggregation group, or of an output of mirrors: only frames of its
    /// link and MAC control frames are taken. All others are in no VLAN.
    #[cold]
    fn refuse_data(&mut self, burst: &mut IngressBurst<'_, P>, arrived: &Arrived) -> Egresses {
        let (port, metas) = (burst.port, &mut burst.notes.metas);
        for index in arrived.data.iter() {
            metas[index].stations = metas[index].stations.in_vlan(0);
        }
        let (counters, bridge_port) = (&self.telemetry.counters.lcores[self.lcore], self.lags.bridge_port(port));
        let refusal = Some(self.lags.refusal(port));
        let from = IngressContext { port, bridge_port, refusal, up: self.lags.up, counters, now: self.now };
        self.forwarder.forward_uncached(from, metas, arrived.data)
    }

    /// Routes the frames of a routed port to the router, and forwards the few others. Not inlined: the loop over the
    /// frames needs the registers that its caller would keep.
    #[inline(never)]
    fn route_from_routed(&mut self, burst: &mut IngressBurst<'_, P>, arrived: &mut Arrived) -> Egresses {
        let Self { router: Some(router), punter, forwarder, lags, telemetry, lcore, now, .. } = self else {
            unreachable!("only a router has routed ports");
        };
        let (port, now, counters) = (burst.port, *now, &telemetry.counters.lcores[*lcore]);
        let from = RouteContext { port, up: lags.up, forwarder, counters, now };
        let (mut routed, others) = router.route_usual_from_routed(punter, from, burst);
        let others = others & arrived.data;
        if !others.is_empty() {
            let bridge_port = lags.bridge_port(port);
            let from = IngressContext { port, bridge_port, refusal: None, up: lags.up, counters, now };
            router.forward(forwarder, from, &mut burst.notes.metas, others);
            let from = RouteContext { port, up: lags.up, forwarder, counters, now };
            routed = routed.and(router.route_others(punter, from, burst, others));
        }
        arrived.retag(&routed);
        self.resolve_groups(burst, routed.egresses())
    }

    /// Routes the frames of `arrived`, from a port that bridges, that leave by the router's port. Returns the egress
    /// ports of the burst.
    #[inline(never)]
    fn route_bridged(
        &mut self,
        burst: &mut IngressBurst<'_, P>,
        arrived: &mut Arrived,
        forwarded: Egresses,
    ) -> Egresses {
        let Self { router: Some(router), punter, forwarder, lags, telemetry, lcore, now, .. } = self else {
            unreachable!("only a router makes stations behind its port");
        };
        let counters = &telemetry.counters.lcores[*lcore];
        let from = RouteContext { port: burst.port, up: lags.up, forwarder, counters, now: *now };
        let is_shut = router.refuse_shut(&mut burst.notes.metas, arrived.data);
        let is_whole = arrived.data.len() == burst.frames.len() && !is_shut;
        let is_all = is_whole && forwarded.ports == PortSet::only(ROUTER_PORT);
        let (mut routed, others) = if is_all {
            router.route_usual_from_bridged(punter, from, burst)
        } else {
            (RoutedBurst::NONE, arrived.data)
        };
        if !others.is_empty() {
            routed = routed.and(router.route_others(punter, from, burst, others));
        }
        arrived.retag(&routed);
        routed.egresses()
    }

    /// Takes a burst that has its egress ports to its queues or drops.
    #[inline(always)]
    fn send_on<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        burst: &mut IngressBurst<'_, P>,
        arrived: &Arrived,
        egresses: Egresses,
    ) {
        let IngressBurst { port, ref mut frames, ref mut notes } = *burst;
        let demand = self.rewriter.rewrite(&self.ports[port], frames, &mut notes.metas, arrived, egresses);
        self.dispatch(io, burst, &demand);
        self.telemetry.gauges_dirty.insert(port);
    }
}

/// Drops the data of a port that is shut: all frames but those of MAC control.
#[cold]
fn drop_data<P: Packet>(burst: &mut IngressBurst<'_, P>, arrived: &Arrived) -> Egresses {
    for index in arrived.data.iter() {
        burst.notes.metas[index].set_forwarding(Forwarding::Drop(DropReason::AdminDown));
    }
    Egresses { ports: PortSet::EMPTY, are_single: false, are_in_lanes: false }
}
