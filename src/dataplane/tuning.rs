//! What may change of a switch while it runs, and how an lcore takes it over: at a poll's edge, between two bursts, with
//! every frame, pause and count where it was.
//!
//! The control thread makes a [`Tuning`] from the plan that runs and the one that is wanted, with everything that an lcore
//! would have to work out, and gives each lcore one of its own ([`super::mailbox`]). The lcore copies and gives the box back: it
//! neither allocates nor frees.

use super::drops::DropReason;
use super::pipeline::Pipeline;
use super::port::Port;
use super::port_classifier::PortClassifier;
use super::rewrite::EgressView;
use super::spec::{PortSpec, QueueSpec, SwitchSpec};
use crate::mmu::{GroupProfile, QueueAdmission};
use crate::packet::Packet;
use crate::pfc::{Watchdog, WatchdogSpec};
use crate::qos::{QueueDiscipline, Rewrite};
use crate::sets::{CLASSES, indices};
use crate::units::Nanos;

/// Settings of a switch that may change while it runs: which class a frame is of, what it is marked with, thresholds and
/// XON levels of groups, limits, ECN and shares of queues, watchdogs, when ports are stuck. All others are the memory of the
/// switch, its headroom, or what devices were started with.
#[derive(Debug, Clone)]
pub struct Tuning {
    ports: Box<[PortTuning]>,
    queues: [QueueSpec; CLASSES],
}

#[derive(Debug, Clone)]
struct PortTuning {
    classifier: PortClassifier,
    rewrite: Rewrite,
    egress_view: EgressView,
    groups: [GroupProfile; CLASSES],
    watchdog: Option<(WatchdogSpec, Watchdog)>,
    /// With the ticks in a second.
    stuck_after: (Option<Nanos>, u64),
}

impl Tuning {
    /// What makes a switch by `running` one by `wanted`, on a clock of `hz` ticks a second. `None` if the two differ in
    /// what cannot change while it runs.
    #[must_use]
    pub fn between(running: &SwitchSpec, wanted: &SwitchSpec, hz: u64) -> Option<Self> {
        (overlaid(running, wanted) == *wanted).then(|| Self {
            ports: wanted.ports.iter().map(|port| PortTuning::new(port, wanted, hz)).collect(),
            queues: wanted.queues,
        })
    }
}

/// `running` with everything of `wanted` that may change.
fn overlaid(running: &SwitchSpec, wanted: &SwitchSpec) -> SwitchSpec {
    let mut spec = running.clone();
    for (port, new) in spec.ports.iter_mut().zip(&wanted.ports) {
        (port.trust, port.port_class, port.marks) = (new.trust, new.port_class, new.marks.clone());
        (port.rewrite, port.watchdog, port.stuck_after) = (new.rewrite, new.watchdog, new.stuck_after);
        for (group, new) in port.buffer.groups.iter_mut().zip(&new.buffer.groups) {
            (group.threshold, group.xon_offset, group.xon_floor) = (new.threshold, new.xon_offset, new.xon_floor);
        }
    }
    for (queue, new) in spec.queues.iter_mut().zip(&wanted.queues) {
        (queue.discipline, queue.wred, queue.limit) = (new.discipline, new.wred, new.limit);
    }
    spec
}

impl PortTuning {
    fn new(spec: &PortSpec, switch: &SwitchSpec, hz: u64) -> Self {
        Self {
            classifier: PortClassifier::new(spec, &switch.classes),
            rewrite: spec.rewrite,
            egress_view: EgressView::new(spec),
            groups: spec.buffer.groups,
            watchdog: Port::new_watchdog(spec, switch, hz),
            stuck_after: (spec.stuck_after, hz),
        }
    }
}

impl<P: Packet> Pipeline<P> {
    /// Goes on by `tuning`, which was made for this switch. What has been queued keeps its class and its marks; a group that
    /// is above its new threshold is XOFF with its next frame, one below its new XON level gets XON in the next poll.
    #[cold]
    pub fn tune(&mut self, tuning: &Tuning) {
        self.queue_rule = QueueAdmission::new(tuning.queues.map(|queue| queue.admission()));
        let disciplines = tuning.queues.map(|queue| queue.discipline);
        for (port, tuning) in tuning.ports.iter().enumerate() {
            // Frames of this lcore leave by the ports of others too.
            self.rewriter.set(port, tuning.egress_view, tuning.rewrite);
            if self.own.contains(port) {
                self.tune_port(port, tuning, disciplines);
            }
        }
        self.telemetry.gauges_dirty |= self.own;
    }

    fn tune_port(&mut self, port: usize, tuning: &PortTuning, disciplines: [QueueDiscipline; CLASSES]) {
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        let before = state.dropping();
        state.classifier = tuning.classifier.clone();
        state.ledger.set_groups(&tuning.groups);
        state.scheduler.set_disciplines(disciplines);
        match (&mut state.watchdog, &tuning.watchdog) {
            (Some(watchdog), Some((spec, _))) => watchdog.set_spec(*spec),
            (watchdog, fresh) => {
                // With nobody to watch, its storms are over.
                for queue in indices(watchdog.as_ref().map_or(0, Watchdog::storm)) {
                    counters.watchdog_restores[queue].add(1);
                }
                counters.watchdog_mask.set(0);
                *watchdog = fresh.as_ref().map(|(_, fresh)| fresh.clone());
            }
        }
        // A storm that drops from now on drops what waits, as it does at its begin; one that does not lets it be.
        let now = state.dropping();
        state.schedule_discard(now & !before, DropReason::Watchdog);
        state.cancel_discard(before & !now, DropReason::Watchdog);
        state.progress.set_limit(tuning.stuck_after.0, tuning.stuck_after.1);
        self.links.refusing.set(port, state.is_refusing());
        if tuning.stuck_after.0.is_none() {
            self.release_stuck(port);
        }
    }
}
