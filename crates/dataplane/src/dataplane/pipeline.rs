//! The pipeline of one lcore: it holds the owners of all stages' state. docs/architecture.md shows the stages in order.

use std::sync::Arc;

use super::buffer::Buffer;
use super::egress::Egress;
use super::port::Port;
use super::telemetry::Telemetry;
use crate::dataplane::buffer::pauses::PauseState;
use crate::dataplane::buffer::trash::Trash;
use crate::dataplane::egress::abm::AbmMeter;
use crate::dataplane::egress::congestion::CongestionPoints;
use crate::dataplane::egress::joint::JointPorts;
use crate::dataplane::egress::lag_drain::LagDrain;
use crate::dataplane::egress::links::Links;
use crate::dataplane::egress::queue::Queue;
use crate::dataplane::egress::slack::PollSlack;
use crate::dataplane::handoff::mesh::Mesh;
use crate::dataplane::ingress::burst_size::BurstSize;
use crate::dataplane::ingress::forwarder::Forwarder;
use crate::dataplane::ingress::lags::Lags;
use crate::dataplane::ingress::poll_budget::PollBudget;
use crate::dataplane::ingress::punt::Punter;
use crate::dataplane::ingress::rewrite::Rewriter;
use crate::dataplane::ingress::round_start::RoundStart;
use crate::dataplane::ingress::route::Router;
use crate::dataplane::ingress::shed::Shedder;
use crate::dataplane::mirror::lcore::Mirror;
use crate::forward::fdb::{Learned, Station};
use crate::io::{Burst, Packet};
use crate::isa::Isa;
use crate::mmu::{Lease, QueueAdmission};
use crate::plan::counters::Counters;
use crate::plan::exception::ExceptionPort;
use crate::plan::own_probes::OwnProbes;
use crate::plan::spec::SwitchSpec;
use crate::route::{ROUTER_PORT, RouteTable};
use crate::sets::{CLASSES, ClassSet, MAX_PORTS, PortSet};
use crate::units::Ticks;
use crate::wire::MacAddr;

/// The switch as one lcore runs it: its ports, and the owners of the stages' state.
#[derive(Debug)]
pub struct Pipeline<P> {
    /// Number of this lcore among the dataplane lcores.
    pub(crate) lcore: usize,
    /// The ports that this lcore owns: it receives from them.
    pub(crate) own: PortSet,
    /// The ports by which it sends: its own, and all joint ones.
    pub(crate) sends: PortSet,
    /// All ports. Joint ports of other lcores have only an egress side here, others only their settings.
    pub(crate) ports: Box<[Port]>,
    pub(crate) links: Links,
    /// Link aggregation groups.
    pub(crate) lags: Lags,
    /// Own ports whose bursts have optional stages: see [`Pipeline::follow_special`].
    pub(crate) special: PortSet,
    /// Ports behind which others stand: that of the router, and heads of link aggregation groups.
    pub(crate) indirect: PortSet,
    pub(crate) lag_drain: LagDrain,
    pub(crate) forwarder: Forwarder,
    /// `None`: the switch only bridges.
    pub(crate) router: Option<Box<Router>>,
    pub(crate) punter: Punter,
    pub(crate) mirror: Mirror,
    /// Ports whose received frames are sampled.
    pub(crate) sampled: PortSet,
    pub(crate) rewriter: Rewriter,
    pub(crate) buffer: Buffer,
    /// The admission rule of the queues.
    pub(crate) queue_rule: QueueAdmission,
    /// Measures for the rule; `None`: it is not ABM.
    pub(crate) abm: Option<Box<AbmMeter>>,
    pub(crate) egress: Egress<P>,
    /// How far ahead of the wires frames are posted.
    pub(crate) slack: PollSlack,
    /// Congestion points of QCN; `None`: no queue is one.
    pub(crate) congestion: Option<Box<CongestionPoints>>,
    pub(crate) joint: JointPorts,
    pub(crate) mesh: Mesh<P>,
    pub(crate) pauses: PauseState,
    /// Ports that a poll visits even if they have no frames: their PFC or their backlog may have work. All, if the
    /// device cannot tell which ports have frames ([`crate::io::Ports::KNOWS_FILLED`]).
    pub(crate) alert: PortSet,
    /// Drops lossy frames when the lcore has more frames than time.
    pub(crate) shedder: Shedder,
    /// The state of the poll when it last sent frames between rounds.
    pub(crate) round_start: RoundStart,
    pub(crate) telemetry: Telemetry,
    /// Instant of the present poll.
    pub(crate) now: Ticks,
    /// Frames that the poll before received, accepted from other lcores and sent.
    pub(crate) moved: usize,
    pub(crate) burst_size: BurstSize,
    /// Dropped frames whose buffers are freed together.
    pub(crate) trash: Trash<P>,
    /// The form in which loops over bursts run.
    pub(crate) isa: Isa,
}

impl<P: Packet> Pipeline<P> {
    /// Creates a switch by `spec` that one lcore runs, on a clock of `hz` ticks a second. All links are up, all queues
    /// empty.
    ///
    /// # Panics
    /// Under the conditions of [`Pipeline::fleet`], and on a spec for several lcores.
    #[must_use]
    pub fn new(spec: &SwitchSpec, counters: Arc<Counters>, hz: u64, seed: u32) -> Self {
        let mut fleet = Self::fleet(spec, &counters, hz, seed);
        assert!(fleet.len() == 1, "a switch with several lcores needs a fleet");
        fleet.remove(0)
    }

    /// Creates a switch by `spec` in as many parts as `spec` has lcores, in their order. Each part is for one thread.
    ///
    /// # Panics
    /// On a spec that the configuration would have refused: too many ports, an lcore that does not exist, or maps
    /// beyond eight classes.
    #[must_use]
    pub fn fleet(spec: &SwitchSpec, counters: &Arc<Counters>, hz: u64, seed: u32) -> Vec<Self> {
        let (ports, lcores) = (spec.ports.len(), usize::from(spec.lcores));
        assert!(ports <= MAX_PORTS && ports == counters.ports.len(), "one counter set per port, within the port mask");
        assert!(lcores > 0 && lcores == counters.lcores.len(), "each lcore needs counters, and there must be one");
        assert!(spec.ports.iter().all(|port| usize::from(port.lcore) < lcores), "a port is on a missing lcore");
        assert!(spec.routing.is_none() || ports < MAX_PORTS, "the router needs a port number");
        assert!(spec.classes.is_valid(), "a class map beyond eight classes");
        assert!(P::EMULATES || spec.hpcc.is_empty() && !spec.reverie, "only simulated switches decide by other rules");
        let has_guests = counters.guests.len() == lcores;
        assert!(spec.joint_ports().is_empty() || has_guests, "joint ports need the counters of `Counters::of`");
        let parts = Mesh::fleet(spec).into_iter().zip(Forwarder::fleet(spec, hz)).zip(Buffer::fleet(spec));
        let parts = parts.zip(JointPorts::fleet(spec, hz)).zip(AbmMeter::fleet(spec, hz));
        let parts = parts.zip(CongestionPoints::fleet(spec, seed)).enumerate();
        parts
            .map(|(lcore, (((((mesh, forwarder), buffer), (joint, sides)), abm), congestion))| {
                let own = owned_by(lcore, spec);
                let telemetry = Telemetry::new(counters.clone(), lcore, own, hz, spec.poll_gap);
                // Each lcore needs its own seed; otherwise all would mark the same frames.
                let seed = seed.wrapping_add((lcore as u32).wrapping_mul(0x9e37_79b9));
                let port = |(port, side)| Port::new(port, spec, side, hz);
                let (lags, router) = (Lags::new(spec), Router::new(spec));
                let mut ports: Box<[Port]> = sides.into_iter().enumerate().map(port).collect();
                buffer.emulate(&mut ports);
                let least_frames = own.iter().map(|port| ports[port].most_frames()).min().unwrap_or(0);
                let half_gap = telemetry.clock.half_gap();
                let mut pipeline = Self {
                    burst_size: BurstSize::new(own.len(), lcores > 1, spec.poll_gap, half_gap),
                    lcore,
                    own,
                    sends: own | joint.ports,
                    ports,
                    links: Links::new(spec.ports.len(), spec.routing.is_some()),
                    special: PortSet::EMPTY,
                    indirect: lags.heads | router.as_ref().map_or(PortSet::EMPTY, |_| PortSet::only(ROUTER_PORT)),
                    lags,
                    lag_drain: LagDrain::new(),
                    forwarder,
                    router,
                    punter: Punter::new(spec, lcore, hz),
                    mirror: Mirror::new(&spec.mirror, counters.clone(), lcore, hz, !seed),
                    sampled: PortSet::EMPTY,
                    rewriter: Rewriter::new(spec),
                    buffer,
                    queue_rule: QueueAdmission::new(spec.queues.map(|queue| queue.admission())),
                    abm,
                    egress: Egress::new(spec, seed, hz),
                    slack: PollSlack::new(spec.poll_gap, hz),
                    congestion,
                    joint,
                    mesh,
                    pauses: PauseState::default(),
                    alert: PortSet::ALL,
                    shedder: Shedder::new(PollBudget::new(spec.poll_gap, half_gap), least_frames, hz),
                    round_start: RoundStart::default(),
                    telemetry,
                    now: Ticks(0),
                    moved: 0,
                    trash: Trash { frames: Burst::new() },
                    isa: Isa::detect(),
                };
                pipeline.set_shut(spec.shut_ports(), Ticks(0));
                pipeline.follow_special();
                pipeline
            })
            .collect()
    }

    /// Sets all watermarks to the present values.
    pub fn clear_watermarks(&mut self) {
        for port in self.sends.iter() {
            let state = &mut self.ports[port];
            state.ledger.clear_watermarks();
            state.queues.iter_mut().for_each(Queue::clear_watermark);
            self.telemetry.written(port).backlog_highest_frames.set(0);
        }
        self.buffer.pools.shared.iter_mut().for_each(Lease::clear_watermark);
        self.buffer.pools.headroom.reset_highest();
        let counters = &self.telemetry.counters.lcores[self.lcore];
        counters.handoff_highest_frames.set(0);
        counters.poll_gap_highest_ns.set(0);
        self.telemetry.gauges_dirty |= self.sends;
    }

    /// Learns a station in the forwarding database, as if it had sent a frame.
    pub fn learn(&mut self, vlan: u16, mac: MacAddr, port: usize, now: Ticks) -> Learned {
        self.forwarder.fdb.set_time(now);
        self.forwarder.learn(Station::new(vlan, mac.to_number()), port)
    }

    /// Replaces the routing tables. The caller keeps the table before until this returns.
    pub fn set_routes(&mut self, table: &Arc<RouteTable>) {
        if let Some(router) = &mut self.router {
            router.set_table(table);
            self.punter.routes = Some(table.clone());
        }
    }

    /// Declares that flow rules of the device of `port` put lossless frames into the receive queues `queues`. These are
    /// preferred from the first frame on. With `is_complete` no other queue has lossless frames or PFC. An lcore that
    /// sheds then leaves lossy frames in the device.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn steer(&mut self, port: usize, queues: ClassSet, is_complete: bool) {
        self.ports[port].rx_queues.steer(queues, is_complete);
    }

    /// Attaches the control plane: it gets this lcore's punted frames, and its frames leave here.
    pub fn attach_exceptions(&mut self, port: ExceptionPort) {
        self.punter.port = Some(port);
    }

    /// Declares that the control plane sends these probes of loops: they end at this switch.
    pub fn recognize_probes(&mut self, probes: Arc<OwnProbes>) {
        self.punter.probes = Some(probes);
    }

    /// Number of this lcore among the dataplane lcores.
    #[must_use]
    pub fn number(&self) -> usize {
        self.lcore
    }

    /// All ports of the switch.
    #[must_use]
    pub fn all_ports(&self) -> PortSet {
        PortSet::first(self.ports.len())
    }

    /// Cells held, by the ledgers of this lcore's ports: zero in an idle switch.
    #[must_use]
    pub fn held_cells(&self) -> u64 {
        let groups = self.own.iter().flat_map(|port| (0..CLASSES).map(move |group| (port, group)));
        groups.map(|(port, group)| u64::from(self.ports[port].ledger.group(group).held().0)).sum()
    }

    /// Frames that wait in queues.
    #[must_use]
    pub fn held_frames(&self) -> usize {
        self.egress.slab.held() as usize
    }
}

/// The ports that belong to lcore `lcore`.
fn owned_by(lcore: usize, spec: &SwitchSpec) -> PortSet {
    (0..spec.ports.len()).filter(|&port| usize::from(spec.ports[port].lcore) == lcore).collect()
}
