//! Settings that may change while the switch runs, and how an lcore applies them: at the end of a poll, between two
//! bursts. Every frame, pause and count stays in place.
//!
//! The control thread makes a [`LiveConfig`] from the running and the wanted plan, with everything precomputed that an
//! lcore would have to work out. It sends each lcore its own copy by a [`mod@crate::plan::mailbox`]. The
//! lcore copies the settings and returns the box: it neither allocates nor frees.

use crate::dataplane::ingress::port_classifier::PortClassifier;
use crate::dataplane::ingress::rewrite::EgressView;
use crate::dataplane::pipeline::Pipeline;
use crate::io::Packet;
use crate::mmu::GroupProfile;
use crate::pfc::WatchdogSpec;
use crate::plan::drops::DropReason;
use crate::plan::mirror::MirrorSpec;
use crate::plan::spec::{QueueSpec, SwitchSpec};
use crate::qos::{MaxRate, QueueDiscipline, Rewrite, StormLimits};
use crate::sets::{CLASSES, PortSet};
use crate::units::{Nanos, Ticks};

/// Settings of a switch that may change while it runs:
///
/// - the class of received frames, and the marks of sent ones;
/// - thresholds and XON levels of groups;
/// - limits, ECN, shares and, at ports that are not joint, maximum rates of queues;
/// - watchdogs, the time after which ports are stuck, and limits of flooded frames;
/// - the sessions of mirrors, but not their outputs;
/// - routes, neighbours and addresses of the router, which its control plane applies.
///
/// All other settings determine the switch's memory, its headroom, or the start parameters of devices.
#[derive(Debug, Clone)]
pub struct LiveConfig {
    ports: Box<[PortLiveConfig]>,
    queues: [QueueSpec; CLASSES],
    mirror: MirrorSpec,
}

#[derive(Debug, Clone)]
struct PortLiveConfig {
    classifier: PortClassifier,
    rewrite: Rewrite,
    egress_view: EgressView,
    groups: [GroupProfile; CLASSES],
    watchdog: Option<WatchdogSpec>,
    stuck_after: Option<Nanos>,
    max_rates: [Option<MaxRate>; CLASSES],
    storm_limits: StormLimits,
    /// Ticks per second of the clock.
    hz: u64,
}

impl LiveConfig {
    /// Creates the change from the plan `running` to the plan `wanted`, on a clock of `hz` ticks a second. `None` if
    /// the two differ in settings that cannot change while the switch runs.
    #[must_use]
    pub fn between(running: &SwitchSpec, wanted: &SwitchSpec, hz: u64) -> Option<Self> {
        (overlaid(running, wanted) == *wanted).then(|| Self {
            ports: (0..wanted.ports.len()).map(|port| PortLiveConfig::new(port, wanted, hz)).collect(),
            queues: wanted.queues,
            mirror: wanted.mirror.clone(),
        })
    }
}

/// `running` with all settings of `wanted` that may change.
fn overlaid(running: &SwitchSpec, wanted: &SwitchSpec) -> SwitchSpec {
    let mut spec = running.clone();
    for (index, (port, new)) in spec.ports.iter_mut().zip(&wanted.ports).enumerate() {
        // A joint port would get an owner with its first maximum rate, and lose it with the last one.
        if !running.may_be_joint(index) || port.is_limited() == new.is_limited() {
            port.max_rates = new.max_rates;
        }
        (port.trust, port.port_class, port.marks) = (new.trust, new.port_class, new.marks.clone());
        (port.rewrite, port.watchdog, port.stuck_after) = (new.rewrite, new.watchdog, new.stuck_after);
        port.storm_limits = new.storm_limits;
        for (group, new) in port.buffer.groups.iter_mut().zip(&new.buffer.groups) {
            (group.threshold, group.xon_offset, group.xon_floor) = (new.threshold, new.xon_offset, new.xon_floor);
        }
    }
    for (queue, new) in spec.queues.iter_mut().zip(&wanted.queues) {
        (queue.discipline, queue.wred, queue.limit) = (new.discipline, new.wred, new.limit);
    }
    spec.mirror = MirrorSpec { outputs: running.mirror.outputs, ..wanted.mirror.clone() };
    if let (Some(routing), Some(new)) = (&mut spec.routing, &wanted.routing) {
        (routing.routes, routing.neighbours) = (new.routes.clone(), new.neighbours.clone());
        for (interface, new) in routing.interfaces.iter_mut().zip(&new.interfaces) {
            interface.addresses = new.addresses.clone();
        }
    }
    spec
}

impl PortLiveConfig {
    fn new(number: usize, switch: &SwitchSpec, hz: u64) -> Self {
        let spec = &switch.ports[number];
        Self {
            classifier: PortClassifier::new(number, spec, &switch.classes),
            rewrite: spec.rewrite,
            egress_view: EgressView::new(spec),
            groups: spec.buffer.groups,
            watchdog: spec.watchdog,
            stuck_after: spec.stuck_after,
            max_rates: spec.max_rates,
            storm_limits: spec.storm_limits,
            hz,
        }
    }
}

impl<P: Packet> Pipeline<P> {
    /// Applies `live_config`, which was made for this switch. Queued frames keep their class and marks. A group above
    /// its new threshold turns XOFF with its next frame; a group below its new XON level gets XON in the next poll.
    #[cold]
    pub fn apply(&mut self, live_config: &LiveConfig) {
        self.queue_rule.set_profiles(live_config.queues.map(|queue| queue.admission()));
        let disciplines = live_config.queues.map(|queue| queue.discipline);
        for (port, live_config) in live_config.ports.iter().enumerate() {
            // For all ports, because frames of this lcore leave by the ports of others too.
            self.rewriter.set(port, live_config.egress_view, live_config.rewrite);
            if self.own.contains(port) {
                self.apply_to_own(port, live_config);
            }
            if self.sends.contains(port) {
                self.apply_to_egress(port, live_config, disciplines);
            }
        }
        self.set_mirror(&live_config.mirror);
        self.telemetry.gauges_dirty |= self.sends;
        self.alert = PortSet::ALL;
        if let Some(abm) = &mut self.abm {
            abm.reset(&mut self.ports, &mut self.queue_rule);
        }
        self.follow_special();
    }

    fn apply_to_egress(&mut self, port: usize, live_config: &PortLiveConfig, disciplines: [QueueDiscipline; CLASSES]) {
        let state = &mut self.ports[port];
        state.scheduler.set_disciplines(disciplines);
        state.set_max_rates(&live_config.max_rates, live_config.hz);
        state.progress.set_limit(live_config.stuck_after, live_config.hz);
        self.links.refusing.set(port, state.is_refusing());
        if live_config.stuck_after.is_none() {
            self.release_stuck(port);
        }
    }

    fn apply_to_own(&mut self, port: usize, live_config: &PortLiveConfig) {
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        let before = state.pfc.dropping();
        self.forwarder.storm.set(port, &live_config.storm_limits);
        state.classifier = live_config.classifier.clone();
        state.ledger.set_groups(&live_config.groups);
        for queue in state.pfc.set_watchdog(live_config.watchdog, live_config.hz).iter() {
            counters.watchdog_restores[queue].add(1);
        }
        counters.watchdog_mask.set(u64::from(state.pfc.storm().bits()));
        // A storm that drops from now on also discards the waiting frames, as at its begin; one that stops dropping
        // keeps them.
        let now = state.pfc.dropping();
        state.schedule_discard(now - before, DropReason::Watchdog);
        state.cancel_discard(before - now, DropReason::Watchdog);
        self.tell_pauses(port);
        self.pauses.watch_at = Ticks(0);
    }
}
