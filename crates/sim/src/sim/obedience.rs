//! The rules of docs/simulation.md on peers at XOFF: the switch calls no obedient peer late, and finds those that
//! ignore XOFF. The truth is the scenario's; the switch knows only its configuration.

use super::engine::Engine;
use super::load::PS;
use super::node::Node;
use super::spec::{End, FaultKind, LinkNode, Lost, PortRef, Scenario};
use super::waivers;
use crate::headroom::{HeadroomInput, PICOSECONDS_PER_MM, reaction};
use crate::pfc::HORIZON;
use crate::plan::counters::Counter;
use crate::sets::ClassSet;
use crate::units::Nanos;

/// XOFFs of one priority that a host without PFC was sent, and sent frames in spite of.
#[derive(Debug, Default, Clone, Copy)]
pub struct Ignored {
    /// Arrival of the first XOFF of the pause that stands.
    begun_ps: Option<u64>,
    /// Arrival of its last XOFF.
    since_ps: Option<u64>,
    /// Time from then after which the switch must find a frame late, and after which its poll has judged it.
    patience_ps: u64,
    /// The first frame that the host sent after this time.
    first_ps: Option<u64>,
    /// XOFFs with such a frame, each followed by a refresh in time.
    pub count: u64,
}

impl Ignored {
    /// Sets the time for which frames do not count yet.
    pub fn expect(&mut self, patience_ps: u64) {
        self.patience_ps = patience_ps;
    }

    /// Records that XOFF or XON came at `now`.
    pub fn told(&mut self, is_xoff: bool, now: u64) {
        let is_judged = self.first_ps.is_some_and(|first| first + self.patience_ps <= now);
        self.count += u64::from(is_xoff && is_judged);
        self.begun_ps = self.begun_ps.or(Some(now)).filter(|_| is_xoff);
        (self.since_ps, self.first_ps) = (is_xoff.then_some(now), None);
    }

    /// Records that the host sent a frame of the priority at `now`.
    pub fn sent(&mut self, now: u64) {
        let is_late = self.since_ps.is_some_and(|since| since + self.patience_ps <= now);
        // The switch judges no frame later in a pause. The way to its poll and back takes twice the patience at most.
        let is_judged = self.begun_ps.is_some_and(|begun| now + 2 * self.patience_ps < begun + HORIZON.0 * PS);
        if is_late && is_judged {
            self.first_ps.get_or_insert(now);
        }
    }
}

impl Engine<'_> {
    /// Tells hosts that ignore PFC how long their switch may take to find that.
    pub(super) fn expect_findings(&mut self) {
        for link in &self.scenario.links {
            if let (End::Host(host), End::Port(port)) | (End::Port(port), End::Host(host)) = (link.a, link.b) {
                let switch = &self.scenario.switches[port.switch];
                let longest = switch.reactions(port.port).max().unwrap_or(Nanos(0));
                let patience = longest.0 + 4 * switch.config.switch.poll_gap.0;
                let cable = 2 * link.length.mm * PICOSECONDS_PER_MM;
                self.hosts[host].ignored.iter_mut().for_each(|ignored| ignored.expect(patience * PS + cable));
            }
        }
    }

    /// Checks the answers that each port has measured against what its peer does.
    pub(super) fn check_obedience(&mut self) {
        for (number, link) in self.scenario.links.iter().enumerate() {
            for (end, peer) in [(link.a, link.b), (link.b, link.a)] {
                let End::Port(port) = end else { continue };
                let node = &self.net.nodes[port.switch];
                let Some(answers) =
                    node.fleet.iter().find(|part| part.owns(port.port)).and_then(|part| part.answers(port.port))
                else {
                    continue;
                };
                let name =
                    || format!("{}.{}", self.scenario.switches[port.switch].name, node.spec.ports[port.port].name);
                let late = answers.iter().map(|answer| answer.late.frames).sum::<u64>();
                if late > 0 && self.obeys(number, port, peer, link) {
                    let what = format!("{} has called {late} frames late, and its peer obeys in time", name());
                    return self.net.watch.broken("obedient_peer_cleared", || what);
                }
                let End::Host(host) = peer else { continue };
                for (priority, ignored) in self.hosts[host].ignored.iter().enumerate() {
                    let found = answers[priority].late_pauses;
                    if found < ignored.count && !is_excused(number, port, node, self.scenario) {
                        let what = format!(
                            "{}: its peer ignored {} XOFFs of priority {priority}, and {found} of them were found",
                            name(),
                            ignored.count
                        );
                        return self.net.watch.broken("disobedient_peer_found", || what);
                    }
                }
            }
        }
    }

    /// Whether `peer` surely stops in the time that `port` gives it, and every XOFF reaches it.
    fn obeys(&self, number: usize, port: PortRef, peer: End, link: &LinkNode) -> bool {
        let scenario = self.scenario;
        // A pause that goes on at a reload keeps its deadline.
        let given = scenario.switches[port.switch].reactions(port.port).min().unwrap_or(Nanos(0));
        let input = waivers::input(port, peer, link, scenario);
        if reaction(&HeadroomInput { poll_gap: Nanos(0), ..input }) > given || loses_pfc(number, scenario) {
            return false;
        }
        match peer {
            End::Host(host) => {
                let is_odd = |kind: FaultKind| match kind {
                    FaultKind::Dead { host: of } | FaultKind::Garbage { host: of, .. } => of == host,
                    _ => false,
                };
                scenario.hosts[host].obeys_pfc && !scenario.faults.iter().any(|fault| is_odd(fault.kind))
            }
            End::Port(peer) => {
                let node = &self.net.nodes[peer.switch];
                let ports = scenario.switches[port.switch].plans().map(|plan| &plan.ports[port.port]);
                let generated = ports.map(|port| port.pfc.generated(port.lossless_groups()));
                let generated = generated.fold(ClassSet::EMPTY, |all, some| all | some);
                let storms: u64 = node.counters.ports[peer.port].watchdog_storms.iter().map(Counter::get).sum();
                let stalls = scenario.faults.iter().any(|fault| match fault.kind {
                    FaultKind::Stall { switch, .. } => switch == peer.switch,
                    _ => false,
                });
                let stalls = stalls || scenario.is_ever_shut(peer);
                // XOFF waits in its receive ring behind a backlog.
                let has_backlog = node.counters.ports[peer.port].backlog_highest_frames.get() > 0;
                let is_prompt = storms == 0 && !node.was_late && !stalls && !has_backlog;
                (generated - waivers::obeyed(peer, scenario)).is_empty() && is_prompt
            }
        }
    }
}

/// Whether faults may lose PFC frames on link `number`.
fn loses_pfc(number: usize, scenario: &Scenario) -> bool {
    scenario.faults.iter().any(|fault| match fault.kind {
        FaultKind::Lose { link, what, .. } => link == number && what != Lost::Data,
        _ => false,
    })
}

/// Whether `port` may miss frames that came late: it was late itself, its ring was not drained, or frames were lost.
fn is_excused(number: usize, port: PortRef, node: &Node, scenario: &Scenario) -> bool {
    let counters = &node.counters.ports[port.port];
    let has_backlog = counters.backlog_highest_frames.get() > 0 || node.devices[port.port].missed > 0;
    let has_fault = scenario.faults.iter().any(|fault| match fault.kind {
        FaultKind::Lose { link, .. } | FaultKind::LinkDown { link } => link == number,
        FaultKind::Stall { switch, .. } => switch == port.switch,
        _ => false,
    });
    // A class that becomes lossy ends its pauses.
    let has_changed = scenario.is_ever_shut(port) || !scenario.switches[port.switch].changed_classes().is_empty();
    node.was_late || has_backlog || has_fault || has_changed
}
