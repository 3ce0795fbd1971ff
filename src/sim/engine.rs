//! The event loop: handles events in order of time, and checks every invariant after each step of a switch.

use super::checks::Checks;
use super::events::{Event, Events};
use super::flows::Flows;
use super::frame::{FrameKind, Pool};
use super::held::HeldFlow;
use super::host::Host;
use super::launch::Workloads;
use super::load::PS;
use super::monitor::Monitor;
use super::node::{self, Node};
use super::outcome::{Ending, Outcome, Violation};
use super::queues::QueueLengths;
use super::recording::{MOST_RECORDED, Recording};
use super::rng::Rng;
use super::sampler::Sampler;
use super::spec::{End, FlowNode, Learning, LinkNode, Scenario};
use super::waivers::Waiver;
use super::watch::Watch;
use super::wire::{Arrivals, Wire};
use super::{faults, finish, routes, waivers};
use crate::sets::ClassSet;
use crate::verify::record::Tape;

/// Stream of random numbers of faults on wires.
const FAULT_STREAM: u64 = 1;
/// Time between two checks for expired pauses.
const LOOK_PS: u64 = 10_000 * PS;

/// The state of a whole simulated run.
#[derive(Debug)]
pub struct Engine<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) events: Events,
    pub(super) now: u64,
    pub(super) handled: u64,
    pub(super) wires: Vec<Wire>,
    pub(super) arrivals: Arrivals,
    pub(super) pool: Pool,
    pub(super) nodes: Vec<Node>,
    pub(super) hosts: Vec<Host>,
    pub(super) flows: Flows<'a>,
    pub(super) watch: Watch,
    pub(super) checks: Checks,
    pub(super) sampler: Sampler,
    /// Lengths of queues; `None`: they are not sampled.
    pub(super) queues: Option<QueueLengths>,
    pub(super) monitor: Option<Monitor<'a>>,
    pub(super) workloads: Workloads<'a>,
    pub(super) faults: Rng,
    /// State of each switch when hosts stopped sending.
    pub(super) at_stop: Vec<finish::AtStop>,
    pub(super) waivers: Vec<Waiver>,
    /// Receive backlogs on the paths of lossless flows.
    pub(super) held: Vec<Option<HeldFlow>>,
    /// Frames that reached a dead host; PFC frames do not count.
    pub(super) buried: u64,
    /// Time of the last change of routes; `None`: they are those of the start.
    pub(super) rerouted_ps: Option<u64>,
    used: Vec<usize>,
    pub(super) duration_ps: u64,
    deadline_ps: u64,
}

/// Runs a scenario to its end. `progress` receives the elapsed network time, in thousandths of the time for which hosts
/// send.
#[must_use]
pub fn run(scenario: &Scenario, progress: &mut dyn FnMut(u64)) -> Outcome {
    run_prepared(scenario, |_| {}, progress)
}

/// Runs a scenario like [`run`], after `prepare` has changed the engine in ways that no scenario can express.
pub(super) fn run_prepared(
    scenario: &Scenario,
    prepare: impl FnOnce(&mut Engine<'_>),
    progress: &mut dyn FnMut(u64),
) -> Outcome {
    let mut engine = Engine::new(scenario);
    prepare(&mut engine);
    let (ending, violation) = engine.go(progress);
    finish::outcome(engine, ending, violation)
}

/// Runs a scenario like [`run`], and records the frames that switch number `switch` received and sent.
///
/// # Panics
/// If there is no such switch.
#[must_use]
pub fn run_recorded(scenario: &Scenario, switch: usize, progress: &mut dyn FnMut(u64)) -> (Outcome, Recording) {
    let mut engine = Engine::new(scenario);
    engine.nodes[switch].tape = Some(Tape::new(MOST_RECORDED));
    let (ending, violation) = engine.go(progress);
    let recording = Recording::take(&mut engine.nodes[switch]);
    (finish::outcome(engine, ending, violation), recording)
}

impl<'a> Engine<'a> {
    /// Returns the engine of `scenario` before any event.
    #[must_use]
    fn new(scenario: &'a Scenario) -> Self {
        let wires =
            scenario.links.iter().flat_map(|link| [link.b, link.a].map(|to| Wire::new(to, link.rate, link.length)));
        let duration_ps = scenario.duration.0 * PS;
        let mut engine = Self {
            scenario,
            events: Events::default(),
            now: 0,
            handled: 0,
            wires: wires.collect(),
            arrivals: Arrivals::new(scenario.switches.iter().map(|switch| switch.config.switch.ports.len())),
            pool: Pool::default(),
            nodes: Vec::new(),
            hosts: Vec::new(),
            flows: Flows::new(scenario),
            watch: Watch::new(scenario),
            checks: Checks::new(scenario),
            sampler: Sampler::new(scenario, scenario.sample.0.max(1) * PS),
            queues: (scenario.queues.0 > 0).then(QueueLengths::default),
            monitor: Monitor::new(scenario),
            workloads: Workloads::new(scenario),
            faults: Rng::new(scenario.seed, FAULT_STREAM),
            at_stop: Vec::new(),
            waivers: waivers::waivers(scenario),
            held: Vec::new(),
            buried: 0,
            rerouted_ps: None,
            used: Vec::new(),
            duration_ps,
            deadline_ps: duration_ps + scenario.drain.0 * PS,
        };
        engine.build();
        engine
    }

    fn build(&mut self) {
        let entries = match self.scenario.learning {
            Learning::Routes => routes::entries(self.scenario),
            Learning::Frames => vec![Vec::new(); self.scenario.switches.len()],
        };
        for (number, (switch, entries)) in self.scenario.switches.iter().zip(entries).enumerate() {
            let mut spec = switch.config.switch.clone();
            spec.floods_lossless = switch.floods_lossless;
            spec.fdb.entries.extend(entries);
            spec.fdb.capacity = spec.fdb.capacity.max(8 * spec.fdb.entries.len() as u32);
            self.nodes.push(Node::new(number, switch, spec, self.scenario.seed));
        }
        self.connect();
        for (switch, node) in self.nodes.iter_mut().enumerate() {
            for port in 0..node.devices.len() {
                if node.devices[port].wires.is_none() {
                    node.set_link(port, false);
                }
            }
            for lcore in 0..node.lcores.len() {
                let at = node.first_poll();
                self.events.at(at, Event::PollIn { switch: switch as u32, lcore: lcore as u32 });
            }
        }
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            self.events.at(fault.at.0 * PS, Event::Fault(number as u32));
            if let Some(until) = fault.until {
                self.events.at(until.0 * PS, Event::Fault(number as u32));
            }
        }
        if self.scenario.sample.0 > 0 {
            self.events.at(0, Event::Sample);
        }
        if self.queues.is_some() {
            self.events.at(0, Event::SampleQueues);
        }
        self.pool.count_flows(self.scenario.flows.len());
        self.watch_backlogs();
        self.events.at(LOOK_PS, Event::Look);
        self.events.at(self.duration_ps, Event::Stop);
        self.events.at(self.deadline_ps.max(self.duration_ps + 1), Event::Deadline);
        (0..self.hosts.len()).for_each(|host| self.wake(host, 0));
        self.begin_monitor();
        self.begin_workloads();
    }

    /// Attaches each cable to both its ends.
    fn connect(&mut self) {
        let mut hosts: Vec<Option<Host>> = (0..self.scenario.hosts.len()).map(|_| None).collect();
        for (number, link) in self.scenario.links.iter().enumerate() {
            for (end, wires) in [(link.a, (2 * number, 2 * number + 1)), (link.b, (2 * number + 1, 2 * number))] {
                match end {
                    End::Port(port) => self.nodes[port.switch].devices[port.port].wires = Some(wires),
                    End::Host(host) => hosts[host] = Some(self.host(host, link, wires)),
                }
            }
        }
        self.hosts = hosts.into_iter().map(|host| host.expect("the scenario gives every host a cable")).collect();
        for (number, flow) in self.scenario.flows.iter().enumerate() {
            self.hosts[flow.from].waiting.push((flow.start.0 * PS, number as u32));
        }
        self.hosts.iter_mut().for_each(|host| host.waiting.sort_unstable_by(|a, b| b.cmp(a)));
        if self.scenario.learning == Learning::Frames {
            (0..self.hosts.len()).for_each(|host| self.announce(host));
        }
    }

    fn host(&self, number: usize, link: &LinkNode, wires: (usize, usize)) -> Host {
        let lossless = if let End::Port(port) = link.a {
            self.scenario.switches[port.switch].config.switch.ports[port.port].lossless_groups()
        } else {
            ClassSet::EMPTY
        };
        let spec = &self.scenario.hosts[number];
        Host::new(spec, wires, link.rate, lossless)
    }

    /// Handles events until every frame has arrived, or a limit is reached.
    fn go(&mut self, progress: &mut dyn FnMut(u64)) -> (Ending, Option<Violation>) {
        while let Some((at, event)) = self.events.next() {
            debug_assert!(at >= self.now, "time does not go back");
            self.now = at;
            self.handled += u64::from(event.is_counted());
            if event == Event::Look || event == Event::Deadline {
                self.settle();
                self.count_all_polls();
            }
            if self.handled >= self.scenario.most_events {
                self.count_all_polls();
                return (Ending::TooManyEvents, None);
            }
            if event == Event::Look || event == Event::Deadline {
                progress((at.min(self.duration_ps) * 1000).checked_div(self.duration_ps).unwrap_or(1000));
                if at > self.duration_ps && self.is_over() {
                    return self.end(Ending::Drained);
                }
                if event == Event::Deadline {
                    let frames = self.under_way();
                    return self.end(Ending::Undrained { frames });
                }
            }
            self.handle(event);
            if self.watch.violation.is_some() {
                self.count_all_polls();
                return (Ending::Violated, self.watch.violation_at(self.now, self.handled));
            }
        }
        unreachable!("lcores never stop polling");
    }

    /// Makes the checks at the end of a run.
    fn end(&mut self, ending: Ending) -> (Ending, Option<Violation>) {
        self.check_end(ending);
        match self.watch.violation_at(self.now, self.handled) {
            Some(violation) => (Ending::Violated, Some(violation)),
            None => (ending, None),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::PollIn { switch, lcore } => self.poll_in(switch as usize, lcore as usize),
            Event::PollOut { switch, lcore } => self.poll_out(switch as usize, lcore as usize),
            Event::HostSend(host) => self.host_send(host as usize),
            Event::HostReceive(host) => self.host_receive(host as usize),
            Event::HostHear(host) => {
                self.hosts[host as usize].understand(self.now);
                self.wake(host as usize, self.now);
            }
            Event::FlowTimer(flow) => self.flow_timer(flow as usize),
            Event::FlowSpan(flow) => self.flow_span(flow as usize),
            Event::Reroute => self.reroute(),
            Event::Fault(fault) => faults::change(self, fault as usize),
            Event::RestEnd(switch) => self.rest_end(switch as usize),
            Event::Sample => {
                self.sampler.sample(&self.nodes, &mut self.flows);
                self.events.at(self.now + self.scenario.sample.0 * PS, Event::Sample);
            }
            Event::Monitor => self.monitor_queues(),
            Event::SampleQueues => self.sample_queues(),
            Event::Arrival(workload) => self.workload_arrival(workload as usize),
            Event::Look => {
                self.watch.look(self.now);
                self.events.at(self.now + LOOK_PS, Event::Look);
            }
            Event::Stop => self.at_stop = finish::at_stop(&self.nodes),
            Event::Deadline => {}
        }
    }

    fn poll_in(&mut self, switch: usize, lcore: usize) {
        let until = self.nodes[switch].lcores[lcore].stalled_until;
        if until > self.now {
            self.events.at(until, Event::PollIn { switch: switch as u32, lcore: lcore as u32 });
            return;
        }
        let out = self.with_node(switch, |node, now, world| node.poll_in(lcore, now, world));
        if out > self.now {
            self.check(switch);
            self.events.at(out, Event::PollOut { switch: switch as u32, lcore: lcore as u32 });
        } else {
            self.poll_out(switch, lcore);
        }
    }

    fn poll_out(&mut self, switch: usize, lcore: usize) {
        let (next, rests) = self.with_node(switch, |node, now, world| node.poll_out(lcore, now, world));
        self.watch_gap(switch, next - self.nodes[switch].lcores[lcore].began_ps);
        self.check(switch);
        if rests {
            self.begin_rest(switch, next);
        } else {
            self.events.at(next, Event::PollIn { switch: switch as u32, lcore: lcore as u32 });
        }
    }

    /// Records that the next poll comes `gap` after the last one, if that exceeds half the life of a pause. No pause
    /// can then be refreshed in time. The waivers state whether the switch guarantees anything with such gaps.
    fn watch_gap(&mut self, switch: usize, gap: u64) {
        if gap > node::SHORTEST_HALF_LIFE_PS {
            let wires = self.nodes[switch].devices.iter().filter_map(|device| device.wires);
            wires.for_each(|(out, _)| self.watch.polled_late(out, gap));
        }
    }

    /// Calls `work` on a switch, then schedules the reception of the frames that it sent to hosts.
    fn with_node<R>(&mut self, switch: usize, work: impl FnOnce(&mut Node, u64, &mut node::World<'_>) -> R) -> R {
        let mut world = node::World {
            wires: &mut self.wires,
            arrivals: &mut self.arrivals,
            pool: &mut self.pool,
            watch: &mut self.watch,
            faults: &mut self.faults,
            used: &mut self.used,
        };
        let result = work(&mut self.nodes[switch], self.now, &mut world);
        // The list is taken for the loop, and returned with its memory.
        let mut used = std::mem::take(&mut self.used);
        used.drain(..).for_each(|wire| self.frame_sent(wire));
        self.used = used;
        result
    }

    /// Moves every frame that has arrived by now into its receive ring.
    pub(super) fn settle(&mut self) {
        for switch in 0..self.nodes.len() {
            self.with_node(switch, |node, now, world| node.settle(now, world));
        }
    }

    /// Counts the frames in switches, on wires and in receive rings.
    pub(super) fn under_way(&self) -> u64 {
        let flying: usize = self.wires.iter().map(Wire::flying).sum();
        let held: usize = self.nodes.iter().map(Node::held_frames).sum();
        (flying + held) as u64
    }

    /// Counts the PFC frames among those under way: in receive rings and on wires.
    pub(super) fn pfc_under_way(&self) -> u64 {
        let wires: usize = self.wires.iter().map(Wire::flying_pfc).sum();
        let rings = self.nodes.iter().flat_map(|node| &node.devices).flat_map(|device| &device.ring);
        (wires + rings.filter(|packet| packet.cargo.kind == FrameKind::Pfc).count()) as u64
    }

    /// Whether any host currently sends XOFF.
    pub(super) fn is_any_host_pausing(&self) -> bool {
        self.hosts.iter().any(|host| !host.generator.xoff().is_empty())
    }

    /// Whether the sender or the receiver of a flow is dead: frames in flight are then repeated for ever.
    pub(super) fn is_cut_off(&self, flow: &FlowNode) -> bool {
        self.hosts[flow.from].is_dead || self.hosts[flow.to].is_dead
    }

    /// Whether every frame has arrived, no transmitter is paused, and the switches are idle.
    fn is_over(&self) -> bool {
        self.under_way() == 0
            && !self.watch.is_anyone_held(self.now)
            && self.hosts.iter().all(|host| host.has_replied() || host.is_dead || !self.wires[host.wires.0].is_up)
            && self.flows.are_settled(|flow| self.is_cut_off(flow))
            && self.nodes.iter().all(Node::is_idle)
    }
}
