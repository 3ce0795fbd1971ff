//! Invariants of the simulation (listed in docs/simulation.md), checked after each step of a switch and at the end of a
//! run.

use super::engine::Engine;
use super::flow::Messages;
use super::load::PS;
use super::net::Net;
use super::node::Node;
use super::outcome::Ending;
use super::spec::{FaultKind, Learning, PortRef, Scenario};
use super::waivers::{self, Waiver};
use crate::plan::drops::DropReason;
use crate::sets::ClassSet;

/// State of the checks of switches' steps.
#[derive(Debug)]
pub struct Steps {
    /// Steps checked.
    pub done: u64,
    /// Lossless frames dropped for lack of buffer, by switch, as of the last check.
    lossless_dropped: Vec<u64>,
    /// Classes that promised to lose nothing at the last check, by switch.
    lossless: Vec<ClassSet>,
}

/// Counters of hosts that exist only for the checks.
#[derive(Debug, Default)]
pub struct Checks {
    /// Whether frames of a flow may arrive late or twice: stations move, or frames are flooded. Routed flows may be
    /// late only after a change of routes.
    pub may_disorder: bool,
    /// CNPs that hosts sent. This and the next seven counters count frames of hosts that belong to no flow.
    pub cnps_sent: u64,
    pub cnps_received: u64,
    pub acks_sent: u64,
    pub acks_received: u64,
    pub announcements_sent: u64,
    pub announcements_received: u64,
    pub garbage_sent: u64,
    pub garbage_received: u64,
    /// Messages of QCN that hosts received. Switches count those that they sent.
    pub cnms_received: u64,
}

impl Steps {
    /// Returns the state of the checks before the first step of `scenario`.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let lossless = scenario.switches.iter().map(|switch| switch.config.switch.lossless_classes());
        Self { done: 0, lossless_dropped: vec![0; scenario.switches.len()], lossless: lossless.collect() }
    }
}

impl Checks {
    /// Returns the checks of `scenario` before its first event.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let floods = scenario.learning == Learning::Frames || scenario.hosts.iter().any(|host| !host.known);
        let flaps = scenario
            .faults
            .iter()
            .any(|fault| matches!(fault.kind, FaultKind::LinkDown { .. } | FaultKind::Shut { .. }))
            || scenario.switches.iter().any(|switch| !switch.taken_out().is_empty());
        Self { may_disorder: floods || flaps && scenario.routed.is_none(), ..Self::default() }
    }
}

impl Net<'_> {
    /// Checks the invariants of `switch` after one of its steps.
    pub(super) fn check(&mut self, switch: usize) {
        self.steps.done += 1;
        let (name, node) = (&self.scenario.switches[switch].name, &mut self.nodes[switch]);
        if let Some(broken) = node.misdivided.take() {
            self.watch.broken(broken.invariant, || format!("switch {name}: {}", broken.what));
        }
        if let Err(broken) = node.auditor.check(&node.fleet) {
            self.watch.broken(broken.invariant, || format!("switch {name}: {}", broken.what));
        }
        if let Some((port, queue)) = node.disobeyed.take() {
            let port = &node.spec.ports[port].name;
            self.watch.broken("paused_queue_silent", || {
                format!("{name}.{port} sent from queue {queue}, which its peer had paused")
            });
        }
        if node.auditor.is_deep()
            && let Some((port, busy, known)) = node.hidden_depth(self.now, &self.wires)
        {
            let port = &node.spec.ports[port].name;
            self.watch.broken("depth_counts_posted", || {
                format!("the wire of {name}.{port} is busy for {busy} ps, and depths count {known} ps of it")
            });
        }
        self.check_lateness(switch);
        self.check_lossless(switch);
    }

    /// Waives the lossless guarantee once a switch polls later than its headroom was computed for.
    fn check_lateness(&mut self, switch: usize) {
        let node = &mut self.nodes[switch];
        let longest = node.lcores.iter().map(|lcore| lcore.gap_highest_ps).max().unwrap_or(0);
        if longest > node.gap_allowed_ps && !node.was_late {
            node.was_late = true;
            let (longest, allowed) = (longest / PS, node.gap_allowed_ps / PS);
            let name = &self.scenario.switches[switch].name;
            let what =
                format!("{name} polled {longest} ns after its previous poll; headroom is computed for {allowed} ns");
            self.waive(switch, Waiver { switches: waivers::around(switch, self.scenario), what });
        }
    }

    /// Checks that no lossless frame is dropped for lack of buffer, nor lost in a full receive ring. Switches that a
    /// waiver covers are exempt.
    fn check_lossless(&mut self, switch: usize) {
        if self.nodes[switch].is_waived {
            return;
        }
        let node = &self.nodes[switch];
        if node.course.promised != self.steps.lossless[switch] {
            // Drops before are those of another kind.
            self.steps.lossless[switch] = node.course.promised;
            self.steps.lossless_dropped[switch] = lossless_drops(node, node.course.promised);
        }
        // A sum over all counters of a switch takes as long as a poll.
        if node.auditor.has_new_drops() {
            let dropped = lossless_drops(node, self.steps.lossless[switch]);
            if dropped > self.steps.lossless_dropped[switch] {
                self.steps.lossless_dropped[switch] = dropped;
                let (name, drops) =
                    (&self.scenario.switches[switch].name, describe_drops(node, self.steps.lossless[switch]));
                self.watch.broken("lossless_kept", || format!("switch {name} dropped lossless frames: {drops}"));
            }
        }
        if !std::mem::take(&mut self.nodes[switch].has_missed) {
            return;
        }
        let missed = self.nodes[switch].devices.iter().position(|device| device.first_missed.is_some());
        if let Some(port) = missed
            && let Some((flow, others)) = self.nodes[switch].devices[port].first_missed.take()
        {
            // Other rings may have missed frames too.
            self.nodes[switch].has_missed = true;
            if let Some(waiver) = waivers::of_full_ring(PortRef { switch, port }, others, self.scenario) {
                return self.waive(switch, waiver);
            }
            let flow = self.scenario.flows.get(flow as usize).map_or("of a workload", |flow| &flow.name);
            let port = &self.nodes[switch].spec.ports[port].name;
            let name = &self.scenario.switches[switch].name;
            self.watch.broken("lossless_kept", || {
                format!("the receive ring of {name}.{port} had no room for a lossless frame of flow {flow}")
            });
        }
    }
}

impl Engine<'_> {
    /// Checks the end of a run: nothing is held anywhere, and every frame is accounted for.
    pub(super) fn check_end(&mut self, ending: Ending) {
        self.check_accounts();
        self.check_obedience();
        let is_quiet =
            self.net.under_way() == 0 && !self.net.watch.is_anyone_held(self.net.now) && !self.is_any_host_pausing();
        if ending != Ending::Drained && !is_quiet {
            return;
        }
        if ending == Ending::Drained {
            self.check_messages();
        }
        // A switch that is not idle although nothing is left to do has lost count of its cells. A switch that had no
        // time to collect the releases of departed frames is exempt.
        let has_rested = |node: &Node| ending == Ending::Drained || node.has_heard_all(self.net.now);
        let nodes = self.net.nodes.iter().zip(&self.scenario.switches).filter(|(node, _)| has_rested(node));
        for (node, switch) in nodes {
            if let Err(broken) = node.auditor.check_idle(&node.fleet) {
                self.net.watch.broken(broken.invariant, || format!("switch {}, idle: {}", switch.name, broken.what));
            }
        }
        let taken = self.net.pool.taken();
        let discarded: usize = self.net.nodes.iter().map(Node::discarded_frames).sum();
        if taken != discarded as u64 {
            self.net.watch.broken("buffers_returned", || {
                format!("{taken} frame buffers were not returned, and {discarded} frames wait to be discarded")
            });
        }
    }

    /// Checks that each message of a reliable flow was received once and acknowledged, unless the flow failed or one of
    /// its hosts is dead.
    fn check_messages(&mut self) {
        // Flows that have ended had delivered all their messages.
        for flow in self.flows.live().filter(|flow| !self.is_cut_off(&flow.spec)) {
            let Some(counts) = flow.message_counts() else { continue };
            let Messages { begun, received, acknowledged } = counts;
            if !counts.are_equal() {
                let name = flow.spec.name.clone();
                let what = || {
                    format!(
                        "flow {name} began {begun} messages, of which {received} arrived and {acknowledged} were acknowledged"
                    )
                };
                return self.net.watch.broken("messages_delivered", what);
            }
        }
    }

    /// Checks that every frame that a host sent, and every flooded copy, has an end. It was received, dropped with a
    /// reason, missed by a ring, lost on a wire by a fault, or it is still under way.
    fn check_accounts(&mut self) {
        let sum = |values: &mut dyn Iterator<Item = u64>| values.sum::<u64>();
        let flows = || self.flows.counts().chain(self.workloads.sums());
        let data = sum(&mut flows().map(|flow| flow.sent_frames));
        let copies = sum(&mut self.net.nodes.iter().map(|node| node.copies));
        let made = data + copies + self.checks.cnps_sent + self.checks.acks_sent;
        let cnms = sum(&mut self.net.nodes.iter().map(cnms_sent));
        let made = made + self.checks.announcements_sent + self.checks.garbage_sent + cnms;
        let received = sum(&mut flows().map(|flow| flow.received_frames));
        let foreign = sum(&mut self.hosts.iter().map(|host| host.outcome.foreign_frames));
        let arrived = received + foreign + self.checks.cnps_received + self.checks.acks_received;
        let arrived = arrived + self.checks.announcements_received + self.checks.cnms_received;
        let arrived = arrived + self.checks.garbage_received + self.buried;
        let full = sum(&mut self.hosts.iter().map(|host| host.outcome.receive_dropped_frames));
        let twice = sum(&mut flows().map(|flow| flow.duplicate_frames + flow.discarded_frames));
        let arrived = arrived + full + twice;
        let dropped = sum(&mut self.net.nodes.iter().map(all_drops));
        let missed = sum(&mut self.net.nodes.iter().flat_map(|node| &node.devices).map(|device| device.missed_data));
        let lost = sum(&mut self.net.wires.iter().map(|wire| wire.lost[0]));
        let under_way = self.net.under_way() - self.net.pfc_under_way();
        let ended = arrived + dropped + missed + lost + under_way;
        if made != ended {
            self.net.watch.broken("frames_accounted", || {
                format!(
                    "{made} frames were created, and {ended} are accounted for: {arrived} received, {dropped} dropped, \
                     {missed} missed by rings, {lost} lost on wires, {under_way} under way"
                )
            });
        }
    }
}

/// Sums the lossless frames that a switch dropped for lack of buffer.
fn lossless_drops(node: &Node, lossless: ClassSet) -> u64 {
    let mut sum = 0;
    for port in (0..node.spec.ports.len()).flat_map(|port| node.counters.of_port(port)) {
        for class in lossless.iter() {
            for (reason, ..) in DropReason::TABLE {
                if reason.is_congestion() {
                    sum += port.drops[class][*reason as usize].get();
                }
            }
        }
    }
    sum
}

fn describe_drops(node: &Node, lossless: ClassSet) -> String {
    let mut drops = Vec::new();
    for (port, spec) in node.spec.ports.iter().enumerate() {
        for class in lossless.iter() {
            for (reason, label, _) in DropReason::TABLE.iter().filter(|(reason, ..)| reason.is_congestion()) {
                let count = node.counters.sum(port, |counters| &counters.drops[class][*reason as usize]);
                if count > 0 {
                    drops.push(format!("{count} at {} in class {class}, {label}", spec.name));
                }
            }
        }
    }
    drops.join("; ")
}

/// Sums the messages of QCN that a switch sent.
fn cnms_sent(node: &Node) -> u64 {
    node.counters.ports.iter().map(|port| port.cnms_sent.get()).sum()
}

/// Sums all frames that a switch dropped. A flooded copy that found no buffer counts as dropped, although no copy was
/// made.
fn all_drops(node: &Node) -> u64 {
    let ports = (0..node.spec.ports.len()).flat_map(|port| node.counters.of_port(port));
    ports.flat_map(|port| port.drops.iter().flatten()).map(|count| count.get()).sum()
}
