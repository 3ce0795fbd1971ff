//! Settings that may change while the switch runs, and how an lcore applies them: at the end of a poll, between two
//! bursts. Every frame, pause and count stays in place.
//!
//! The control thread makes a [`LiveConfig`] from the running and the wanted plan, with everything precomputed that an
//! lcore would have to work out. It sends each lcore its own copy by a [`mod@crate::plan::mailbox`]. The
//! lcore copies or swaps the settings and returns the box: it neither allocates nor frees.
//!
//! Lcores take the settings at different polls. A frame is bound to the settings of the lcore that received it: if that
//! lcore had the former ones, the frame leaves by its former VLAN, with the tag of that.

use std::sync::Arc;

use crate::dataplane::ingress::forwarder;
use crate::dataplane::ingress::port_classifier::PortClassifier;
use crate::dataplane::ingress::rewrite::EgressView;
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::smaller_mtu;
use crate::dataplane::replacement::{Replacement, backlog_mark};
use crate::forward::{StaticChange, VlanTable};
use crate::io::{Packet, Ports};
use crate::mmu::{BufferPools, Lease, Pools, PortProfile};
use crate::plan::drops::DropReason;
use crate::plan::mirror::MirrorSpec;
use crate::plan::spec::{PortLive, QueueSpec, SwitchSpec};
use crate::qos::QueueDiscipline;
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{Nanos, Ticks};

/// Changes of static entries that one message makes. Each touches two cache lines.
const STATICS_EACH: usize = 32;

/// Settings of a switch that may change while it runs:
///
/// - which ports are shut, and the VLANs of ports that bridge;
/// - the class of received frames, and the marks of sent ones;
/// - which classes are lossless, and when a receive backlog pauses them;
/// - thresholds and XON levels of groups, and the sizes of all parts of the buffer;
/// - limits, ECN, shares and, at ports that are not joint, maximum rates of queues;
/// - watchdogs, the time after which ports are stuck, and limits of flooded frames;
/// - the sessions of mirrors, but not their outputs;
/// - static entries of the forwarding database;
/// - routes, neighbours and addresses of the router, which its control plane applies;
/// - while a port is out: its address, MTU, rate, PFC mode and device ([`SwitchSpec::replaced_by`]). A port is out when
///   it is shut and holds no frames: [`LiveConfig::leaving`] waits for that;
/// - the check of transport headers, and the most stations of a port.
///
/// All other settings determine the switch's memory, or the start parameters of devices.
///
/// A part of the buffer that becomes smaller may hold frames still. So sizes change in two steps: first all parts that
/// shrink give up their cells, which may take several messages ([`LiveConfig::again`]), then the others grow. A group
/// becomes lossless when it has all its parts, and lossy as soon as the lossy pool has room for its cells. Static
/// entries change a few with each message.
#[derive(Debug, Clone)]
pub struct LiveConfig {
    ports: Box<[PortLiveConfig]>,
    queues: [QueueSpec; CLASSES],
    mirror: MirrorSpec,
    /// The VLANs of all ports; `None`: they stay. Those of an lcore before it took these, once it has.
    vlans: Option<VlanTable>,
    /// Ports that forward nothing.
    shut: PortSet,
    /// Ports that are to be without frames when the change is done.
    leaving: PortSet,
    /// Changes of static entries, and the number of those that the lcore has made.
    statics: Arc<[StaticChange]>,
    statics_made: usize,
    step: Step,
    /// Own ports of the lcore that took it whose parts of the buffer are not as this step wants them, or that are to
    /// leave and hold frames.
    pending: PortSet,
}

/// The part of the change that a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// All settings, and the parts of the buffer that shrink.
    First,
    /// The parts of the buffer that shrink.
    Shrink,
    /// The parts of the buffer that grow: all others have given up their cells.
    Grow,
}

#[derive(Debug, Clone)]
struct PortLiveConfig {
    live: PortLive,
    classifier: PortClassifier,
    egress_view: EgressView,
    buffer: PortProfile,
    /// Time that the peer has to stop at XOFF.
    reaction: Nanos,
    /// Queues of lossless classes, which obey pauses.
    lossless_queues: ClassSet,
    backlog_mark: Option<u32>,
    smaller_mtu: PortSet,
    checks_l4: bool,
    /// Most stations that are learned at the port.
    fdb_limit: u32,
    /// The state that a port takes which is out; `None`: it stays.
    replacement: Option<Replacement>,
    /// Ticks per second of the clock.
    hz: u64,
}

impl LiveConfig {
    /// Creates the change from the plan `running` to the plan `wanted`, on a clock of `hz` ticks a second. `None` if
    /// the two differ in settings that cannot change while the switch runs, or if a port must be out for the change and
    /// is not shut in both plans.
    #[must_use]
    pub fn between(running: &SwitchSpec, wanted: &SwitchSpec, hz: u64) -> Option<Self> {
        let modes = |spec: &SwitchSpec| spec.ports.iter().map(|port| port.vlan.clone()).collect::<Vec<_>>();
        let replaced = running.replaced_by(wanted);
        let are_out = (replaced - (running.shut_ports() & wanted.shut_ports())).is_empty();
        let port = |port| PortLiveConfig::new(port, wanted, replaced.contains(port), hz);
        (are_out && running.with_live_of(wanted) == *wanted).then(|| Self {
            ports: (0..wanted.ports.len()).map(port).collect(),
            queues: wanted.queues,
            mirror: wanted.mirror.clone(),
            shut: wanted.shut_ports(),
            leaving: PortSet::EMPTY,
            vlans: (modes(running) != modes(wanted)).then(|| forwarder::vlans(wanted)),
            statics: StaticChange::between(&running.fdb, &wanted.fdb).into(),
            statics_made: 0,
            step: Step::First,
            pending: PortSet::EMPTY,
        })
    }

    /// This change, which is done only when `ports`, which it shuts, are without frames.
    #[must_use]
    pub fn leaving(self, ports: PortSet) -> Self {
        Self { leaving: ports & self.shut, ..self }
    }

    /// The next message of this change, which the lcore has taken: parts of the buffer that shrink try again, or with
    /// `may_grow` the others grow.
    pub fn again(&mut self, may_grow: bool) {
        (self.step, self.pending) = (if may_grow { Step::Grow } else { Step::Shrink }, PortSet::EMPTY);
    }

    /// The changes of static entries.
    #[must_use]
    pub fn statics(&self) -> &[StaticChange] {
        &self.statics
    }

    /// Whether the lcore that took it has made all changes of static entries.
    #[must_use]
    pub fn has_all_statics(&self) -> bool {
        self.statics_made == self.statics.len()
    }

    /// Own ports of the lcore that took it with frames in parts of the buffer that shrink.
    #[must_use]
    pub fn pending(&self) -> PortSet {
        self.pending
    }
}

impl PortLiveConfig {
    fn new(number: usize, switch: &SwitchSpec, is_replaced: bool, hz: u64) -> Self {
        let spec = &switch.ports[number];
        // Each is part of the classifier, or applied below, or nothing to an lcore: the compiler names a new one.
        let PortLive {
            is_enabled: _,
            description: _,
            trust: _,
            port_class: _,
            marks: _,
            rewrite: _,
            max_rates: _,
            flood_limits: _,
            watchdog: _,
            stuck_after: _,
        } = &spec.live;
        Self {
            live: spec.live.clone(),
            classifier: PortClassifier::new(number, spec, &switch.classes),
            egress_view: EgressView::new(spec),
            buffer: spec.buffer,
            reaction: spec.reaction,
            lossless_queues: switch.lossless_queues(spec),
            backlog_mark: backlog_mark(spec),
            smaller_mtu: smaller_mtu(switch, number),
            checks_l4: spec.checks_l4,
            fdb_limit: spec.fdb_limit,
            replacement: is_replaced.then(|| Replacement::new(number, switch, true, hz)),
            hz,
        }
    }
}

impl<P: Packet> Pipeline<P> {
    /// The pools of the buffer, which the control thread divides anew. All lcores of a switch have the same.
    #[must_use]
    pub fn pools(&self) -> BufferPools {
        let Pools { shared, headroom } = &self.buffer.pools;
        let shared = shared.each_ref().map(|lease| lease.pool().clone());
        BufferPools { shared, headroom: headroom.clone(), reserves: self.buffer.reserves.clone() }
    }

    /// Sends XON for the pauses of own ports that `live_config` shuts. A frame that a device does not take is not sent
    /// again: its peer goes on when its pause runs out.
    #[cold]
    pub fn resume_before_shut<I: Ports<Pkt = P>>(&mut self, io: &mut I, live_config: &LiveConfig, now: Ticks) {
        if live_config.step != Step::First {
            return;
        }
        for port in (live_config.shut & self.own & self.links.up).iter() {
            self.ports[port].pfc.set_xoff(ClassSet::EMPTY);
            self.send_pfc(io, port, now);
        }
    }

    /// Applies `live_config`, which was made for this switch. Queued frames keep their class and marks. A group above
    /// its new threshold turns XOFF with its next frame; a group below its new XON level gets XON in the next poll.
    /// The tables that the switch had until now are in `live_config` afterwards: it is for one lcore.
    #[cold]
    pub fn apply(&mut self, live_config: &mut LiveConfig) {
        if live_config.step == Step::First {
            self.apply_settings(live_config);
        }
        self.apply_statics(live_config);
        let may_grow = live_config.step == Step::Grow;
        for port in self.own.iter() {
            let wanted = &live_config.ports[port].buffer;
            let (ledger, promised) = (&mut self.ports[port].ledger, self.buffer.reserves.unused());
            let is_done = ledger.resize(wanted, may_grow, promised, &mut self.buffer.pools);
            if ledger.lossless() != self.ports[port].lossless {
                self.follow_lossless(port, live_config.ports[port].backlog_mark);
            }
            let is_left = !live_config.leaving.contains(port) || self.is_vacant(port);
            live_config.pending.set(port, !is_done || !is_left);
        }
        // A pool that shrinks finds the cells that this lcore keeps for later.
        self.buffer.pools.shared.iter_mut().for_each(Lease::flush);
    }

    /// Follows the lossless groups of own `port`, some of which have become lossless or lossy: frames get their kind
    /// from now on, and the peer is told all states.
    fn follow_lossless(&mut self, port: usize, backlog_mark: Option<u32>) {
        let state = &mut self.ports[port];
        state.lossless = state.ledger.lossless();
        state.classifier.set_lossless(state.lossless);
        state.pfc.set_lossless_groups(state.lossless);
        state.pfc.announce();
        self.set_backlog_mark(port, backlog_mark);
        self.update_pfc(port);
    }

    /// Sets the mark of own `port`'s receive backlog, which only lossless groups have.
    fn set_backlog_mark(&mut self, port: usize, mark: Option<u32>) {
        let state = &mut self.ports[port];
        state.backlog.set_mark(mark.filter(|_| !state.lossless.is_empty()), self.now);
        self.pauses.backlogged.set(port, state.backlog.is_on());
    }

    fn apply_settings(&mut self, live_config: &mut LiveConfig) {
        if let Some(vlans) = &mut live_config.vlans {
            self.forwarder.swap_vlans(vlans);
        }
        self.queue_rule.set_profiles(live_config.queues.map(|queue| queue.admission()));
        let disciplines = live_config.queues.map(|queue| queue.discipline);
        for (port, live_config) in live_config.ports.iter_mut().enumerate() {
            (self.ports[port].smaller_mtu, self.ports[port].checks_l4) =
                (live_config.smaller_mtu, live_config.checks_l4);
            self.forwarder.fdb.set_limit(port, live_config.fdb_limit);
            if let Some(replacement) = &mut live_config.replacement {
                self.replace(port, replacement);
            }
            // For all ports, because frames of this lcore leave by the ports of others too.
            self.rewriter.set(port, live_config.egress_view, live_config.live.rewrite);
            if self.own.contains(port) {
                self.apply_to_own(port, live_config);
            }
            if self.sends.contains(port) {
                self.apply_to_egress(port, live_config, disciplines);
            }
        }
        self.set_shut(live_config.shut, self.now);
        self.set_mirror(&live_config.mirror);
        self.telemetry.gauges_dirty |= self.sends;
        self.alert = PortSet::ALL;
        if let Some(abm) = &mut self.abm {
            abm.reset(&mut self.ports, &mut self.queue_rule);
        }
        self.follow_special();
    }

    /// Makes the next changes of static entries. The control thread has checked that each entry finds a place.
    fn apply_statics(&mut self, live_config: &mut LiveConfig) {
        let left = &live_config.statics[live_config.statics_made..];
        for change in left.iter().take(STATICS_EACH) {
            let is_made = self.forwarder.fdb.set_static(*change);
            debug_assert!(is_made, "no place for the static entry of {:?}", change.station);
        }
        live_config.statics_made += left.len().min(STATICS_EACH);
    }

    fn apply_to_egress(&mut self, port: usize, live_config: &PortLiveConfig, disciplines: [QueueDiscipline; CLASSES]) {
        let state = &mut self.ports[port];
        state.scheduler.set_disciplines(disciplines);
        state.set_max_rates(&live_config.live.max_rates, live_config.hz);
        state.progress.set_limit(live_config.live.stuck_after, live_config.hz);
        self.links.refusing.set(port, state.is_refusing());
        if live_config.live.stuck_after.is_none() {
            self.release_stuck(port);
        }
    }

    fn apply_to_own(&mut self, port: usize, live_config: &mut PortLiveConfig) {
        self.set_backlog_mark(port, live_config.backlog_mark);
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        let before = state.pfc.dropping();
        self.forwarder.flood_control.set(port, &live_config.live.flood_limits);
        std::mem::swap(&mut state.classifier, &mut live_config.classifier);
        state.classifier.set_lossless(state.lossless);
        state.ledger.set_groups(&live_config.buffer.groups);
        state.pfc.set_lossless_groups(state.lossless);
        state.pfc.set_reaction(live_config.reaction, live_config.hz);
        let unobserved = state.pfc.set_lossless_queues(live_config.lossless_queues);
        for queue in (unobserved | state.pfc.set_watchdog(live_config.live.watchdog, live_config.hz)).iter() {
            counters.watchdog_restores[queue].add(1);
        }
        counters.watchdog_mask.set(u64::from(state.pfc.storm().bits()));
        // A storm that drops from now on also discards the waiting frames, as at its begin; one that stops dropping
        // keeps them.
        let now = state.pfc.dropping();
        state.schedule_discard(now - before, DropReason::Watchdog);
        state.cancel_discard(before - now, DropReason::Watchdog);
        self.update_pfc(port);
        self.tell_pauses(port);
        self.pauses.watch_at = Ticks(0);
    }
}
