//! The event loop: handles events in order of time, and checks every invariant after each step of a switch.

use super::barrier::Exchange;
use super::checks::Checks;
use super::events::{Event, Turn};
use super::flows::Flows;
use super::host::Host;
use super::launch::Workloads;
use super::load::PS;
use super::monitor::Monitor;
use super::net::{Net, Share};
use super::node::Node;
use super::outcome::{Ending, Outcome, Violation};
use super::parts::Parts;
use super::queues::QueueLengths;
use super::recording::{MOST_RECORDED, Recording};
use super::sampler::Sampler;
use super::spec::{self, FlowNode, Learning, LinkNode, Scenario};
use super::threads::{Crew, Teams};
use super::waivers::Waiver;
use super::{faults, finish, routes, waivers};
use crate::sets::ClassSet;
use crate::verify::record::Tape;

/// Time between two checks for expired pauses.
pub(super) const LOOK_PS: u64 = 10_000 * PS;
/// Time between the steps of a new division of a buffer.
const DIVIDE_PS: u64 = 10_000 * PS;

/// The end of a run: how it ended, and the violated invariant if there is one.
type End = (Ending, Option<Violation>);

/// The state of a whole simulated run.
#[derive(Debug)]
pub struct Engine<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) net: Net<'a>,
    pub(super) hosts: Vec<Host>,
    pub(super) flows: Flows<'a>,
    pub(super) checks: Checks,
    pub(super) sampler: Sampler,
    /// Lengths of queues; `None`: they are not sampled.
    pub(super) queues: Option<QueueLengths>,
    pub(super) monitor: Option<Monitor<'a>>,
    pub(super) workloads: Workloads<'a>,
    /// State of each switch when hosts stopped sending.
    pub(super) at_stop: Vec<finish::AtStop>,
    pub(super) waivers: Vec<Waiver>,
    /// Frames that reached a dead host; PFC frames do not count.
    pub(super) buried: u64,
    /// Time of the last change of routes; `None`: they are those of the start.
    pub(super) rerouted_ps: Option<u64>,
    pub(super) duration_ps: u64,
    deadline_ps: u64,
    /// The last look after the hosts' time to send at which no frame was under way.
    pub(super) last_empty_ps: Option<u64>,
}

/// Runs a scenario to its end. `progress` receives the elapsed network time, in thousandths of the time for which hosts
/// send.
#[must_use]
pub fn run(scenario: &Scenario, progress: &mut dyn FnMut(u64)) -> Outcome {
    run_prepared(scenario, |_| {}, progress)
}

/// Runs a scenario like [`run`], with at most `threads` threads. The outcome is that of one thread.
#[must_use]
pub fn run_on(threads: usize, scenario: &Scenario, progress: &mut dyn FnMut(u64)) -> Outcome {
    let parts = Parts::new(scenario);
    let Some(teams) = Teams::new(scenario, &parts, threads) else { return run(scenario, progress) };
    let exchange = Exchange::new(teams.threads());
    let mut engine = Engine::new(scenario, parts.clone());
    let (ending, violation) = std::thread::scope(|scope| {
        let _guard = exchange.guard();
        let crew = Crew::start(scope, scenario, &parts, &teams, &exchange);
        engine.go(Some(crew), progress)
    });
    finish::outcome(engine, ending, violation)
}

/// Runs a scenario like [`run`], after `prepare` has changed the engine in ways that no scenario can express.
pub(super) fn run_prepared(
    scenario: &Scenario,
    prepare: impl FnOnce(&mut Engine<'_>),
    progress: &mut dyn FnMut(u64),
) -> Outcome {
    run_in(Parts::new(scenario), scenario, prepare, progress)
}

/// Runs a scenario like [`run_prepared`], in these parts.
pub(super) fn run_in(
    parts: Parts,
    scenario: &Scenario,
    prepare: impl FnOnce(&mut Engine<'_>),
    progress: &mut dyn FnMut(u64),
) -> Outcome {
    let mut engine = Engine::new(scenario, parts);
    prepare(&mut engine);
    let (ending, violation) = engine.go(None, progress);
    finish::outcome(engine, ending, violation)
}

/// Runs a scenario like [`run`], and records the frames that switch number `switch` received and sent.
///
/// # Panics
/// If there is no such switch.
#[must_use]
pub fn run_recorded(scenario: &Scenario, switch: usize, progress: &mut dyn FnMut(u64)) -> (Outcome, Recording) {
    let mut engine = Engine::new(scenario, Parts::new(scenario));
    engine.net.nodes[switch].tape = Some(Tape::new(MOST_RECORDED));
    let (ending, violation) = engine.go(None, progress);
    let recording = Recording::take(&mut engine.net.nodes[switch]);
    (finish::outcome(engine, ending, violation), recording)
}

impl<'a> Share<'a> for Engine<'a> {
    fn net(&mut self) -> &mut Net<'a> {
        &mut self.net
    }

    #[inline]
    fn handle_event(&mut self, event: Event) {
        if !self.net.handle(event) {
            self.handle(event);
        }
    }
}

impl<'a> Engine<'a> {
    /// Returns the engine of `scenario` before any event. Its network is handled in these parts.
    #[must_use]
    fn new(scenario: &'a Scenario, parts: Parts) -> Self {
        let duration_ps = scenario.duration.0 * PS;
        let mut engine = Self {
            scenario,
            net: Net::new(scenario, parts),
            hosts: Vec::new(),
            flows: Flows::new(scenario),
            checks: Checks::new(scenario),
            sampler: Sampler::new(scenario, scenario.sample.0.max(1) * PS),
            queues: (scenario.queues.0 > 0).then(QueueLengths::default),
            monitor: Monitor::new(scenario),
            workloads: Workloads::new(scenario),
            at_stop: Vec::new(),
            waivers: waivers::waivers(scenario),
            buried: 0,
            rerouted_ps: None,
            duration_ps,
            deadline_ps: duration_ps + scenario.drain.0 * PS,
            last_empty_ps: None,
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
            self.net.nodes.push(Node::new(number, switch, spec, self.scenario.seed));
        }
        self.connect();
        for (switch, node) in self.net.nodes.iter_mut().enumerate() {
            for port in 0..node.devices.len() {
                if node.devices[port].wires.is_none() {
                    node.set_link(port, false);
                }
            }
            for lcore in 0..node.lcores.len() {
                let at = node.first_poll();
                self.net.events.at(at, Event::PollIn { switch: switch as u32, lcore: lcore as u32 });
            }
        }
        for (switch, node) in self.scenario.switches.iter().enumerate() {
            for (number, reload) in node.reloads.iter().enumerate() {
                let event = Event::Reload { switch: switch as u32, number: number as u32 };
                self.net.events.at(reload.at.0 * PS, event);
            }
        }
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            self.net.events.at(fault.at.0 * PS, Event::Fault(number as u32));
            if let Some(until) = fault.until {
                self.net.events.at(until.0 * PS, Event::Fault(number as u32));
            }
        }
        if self.scenario.sample.0 > 0 {
            self.net.events.at(0, Event::Sample);
        }
        if self.queues.is_some() {
            self.net.events.at(0, Event::SampleQueues);
        }
        self.net.pool.count_flows(self.scenario.flows.len());
        for waiver in &self.waivers {
            waiver.switches.iter().for_each(|switch| self.net.nodes[*switch].is_waived = true);
        }
        self.watch_backlogs();
        self.net.events.at(LOOK_PS, Event::Look);
        self.net.events.at(self.duration_ps, Event::Stop);
        self.net.events.at(self.deadline_ps.max(self.duration_ps + 1), Event::Deadline);
        (0..self.hosts.len()).for_each(|host| self.wake(host, 0));
        self.begin_monitor();
        self.begin_workloads();
        self.expect_findings();
    }

    /// Attaches each cable to both its ends.
    fn connect(&mut self) {
        let mut hosts: Vec<Option<Host>> = (0..self.scenario.hosts.len()).map(|_| None).collect();
        for (number, link) in self.scenario.links.iter().enumerate() {
            for (end, wires) in [(link.a, (2 * number, 2 * number + 1)), (link.b, (2 * number + 1, 2 * number))] {
                match end {
                    spec::End::Port(port) => self.net.nodes[port.switch].devices[port.port].wires = Some(wires),
                    spec::End::Host(host) => hosts[host] = Some(self.host(host, link, wires)),
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
        let lossless = if let spec::End::Port(port) = link.a {
            self.scenario.switches[port.switch].config.switch.ports[port.port].lossless_groups()
        } else {
            ClassSet::EMPTY
        };
        let spec = &self.scenario.hosts[number];
        Host::new(spec, wires, link.rate, lossless)
    }

    /// Handles events until every frame has arrived, or a limit is reached. `crew` has the other threads, if any.
    fn go(&mut self, mut crew: Option<Crew<'a, '_>>, progress: &mut dyn FnMut(u64)) -> End {
        while let Some(turn) = self.net.events.turn(&self.net.parts) {
            let end = match (turn, &mut crew) {
                (Turn::One(at, event), _) => self.step(at, event, progress).or_else(|| {
                    self.net.is_broken(usize::MAX);
                    self.limit()
                }),
                (Turn::Window(until), None) if self.net.parts.len() == 1 => self.strict_window(until, progress),
                (Turn::Window(until), None) => {
                    self.window(until);
                    self.limit()
                }
                (Turn::Window(_), Some(crew)) => {
                    self.cross_together(crew);
                    self.limit()
                }
            };
            if let Some(end) = end {
                return end;
            }
        }
        unreachable!("lcores never stop polling");
    }

    /// Handles the events of the only part before `until`, up to a limit. Returns the end of the run, if it ends.
    fn strict_window(&mut self, until: u64, progress: &mut dyn FnMut(u64)) -> Option<End> {
        while let Some((at, event)) = self.net.events.next_before(0, until) {
            let end = self.step(at, event, progress);
            if end.is_some() {
                return end;
            }
            if self.net.is_broken(0) || self.has_too_many_events() {
                return self.limit();
            }
        }
        None
    }

    /// Returns the end of the run if an invariant was violated, or if there were too many events.
    fn limit(&mut self) -> Option<End> {
        if let Some((at_ps, _, invariant, what)) = self.net.violation.take() {
            self.net.count_all_polls();
            return Some((Ending::Violated, Some(Violation { invariant, at_ps, event: self.net.handled, what })));
        }
        self.has_too_many_events().then(|| {
            self.net.count_all_polls();
            (Ending::TooManyEvents, None)
        })
    }

    fn has_too_many_events(&self) -> bool {
        self.net.handled >= self.scenario.most_events
    }

    /// Handles an event. Returns the end of the run, if it ends.
    #[inline]
    fn step(&mut self, at: u64, event: Event, progress: &mut dyn FnMut(u64)) -> Option<End> {
        self.net.begin(at, event);
        if event == Event::Look || event == Event::Deadline {
            return self.look(event, progress);
        }
        self.handle_event(event);
        None
    }

    /// Looks at the whole network. Returns the end of the run, if it ends.
    fn look(&mut self, event: Event, progress: &mut dyn FnMut(u64)) -> Option<End> {
        let at = self.net.now;
        self.net.settle();
        self.net.count_all_polls();
        self.net.watch.absorb();
        self.workloads.count_recent();
        for flow in self.net.pool.settle() {
            self.end_flow(flow as usize, at);
        }
        if self.has_too_many_events() {
            return self.limit();
        }
        progress((at.min(self.duration_ps) * 1000).checked_div(self.duration_ps).unwrap_or(1000));
        if at > self.duration_ps {
            let frames = self.net.under_way();
            if frames == 0 {
                self.last_empty_ps = Some(at);
                if self.is_over() {
                    return Some(self.end(Ending::Drained));
                }
            }
            if event == Event::Deadline {
                return Some(self.end(Ending::Undrained { frames }));
            }
        }
        self.net.watch.look(at);
        self.net.events.at(at + LOOK_PS, Event::Look);
        self.net.is_broken(usize::MAX);
        self.limit()
    }

    /// Schedules a step of the new division of the buffer of `switch`, which has taken other settings.
    pub(super) fn divide_soon(&mut self, switch: usize) {
        self.net.events.at(self.net.now + DIVIDE_PS, Event::Divide(switch as u32));
    }

    /// Makes the checks at the end of a run.
    fn end(&mut self, ending: Ending) -> End {
        self.check_end(ending);
        self.net.is_broken(usize::MAX);
        self.limit().filter(|(_, violation)| violation.is_some()).unwrap_or((ending, None))
    }

    /// Handles an event that concerns more than switches.
    fn handle(&mut self, event: Event) {
        match event {
            Event::HostSend(host) => self.host_send(host as usize),
            Event::HostReceive(host) => self.host_receive(host as usize),
            Event::HostHear(host) => {
                self.hosts[host as usize].understand(self.net.now);
                self.wake(host as usize, self.net.now);
            }
            Event::FlowTimer { flow, .. } => self.flow_timer(flow as usize),
            Event::Reroute => self.reroute(),
            Event::Fault(fault) => faults::change(self, fault as usize),
            Event::Reload { switch, number } => {
                let reload = &self.scenario.switches[switch as usize].reloads[number as usize];
                self.net.wake_switch(switch as usize);
                self.net.nodes[switch as usize].reload(&reload.switch);
                self.divide_soon(switch as usize);
            }
            Event::Divide(switch) => {
                self.net.wake_switch(switch as usize);
                if !self.net.nodes[switch as usize].divide() {
                    self.divide_soon(switch as usize);
                }
            }
            Event::Sample => {
                self.net.count_all_polls();
                self.sampler.sample(&self.net.nodes, &mut self.flows, self.net.now);
                self.net.events.at(self.net.now + self.scenario.sample.0 * PS, Event::Sample);
            }
            Event::Monitor => self.monitor_queues(),
            Event::SampleQueues => self.sample_queues(),
            Event::Arrival(workload) => self.workload_arrival(workload as usize),
            Event::Stop => {
                self.net.count_all_polls();
                self.at_stop = finish::at_stop(&self.net.nodes);
            }
            Event::PollIn { .. }
            | Event::PollOut { .. }
            | Event::RestEnd(_)
            | Event::FlowSpan { .. }
            | Event::Look
            | Event::Deadline => unreachable!("handled before"),
        }
    }

    /// Whether any host currently sends XOFF.
    pub(super) fn is_any_host_pausing(&self) -> bool {
        self.hosts.iter().any(|host| !host.generator.xoff().is_empty())
    }

    /// Whether the sender or the receiver of a flow is dead: frames in flight are then repeated for ever.
    pub(super) fn is_cut_off(&self, flow: &FlowNode) -> bool {
        self.hosts[flow.from].is_dead || self.hosts[flow.to].is_dead
    }

    /// Whether the network, which has no frame under way, has nothing else to do: no transmitter is paused, hosts have
    /// nothing to send, and the switches are idle.
    fn is_over(&self) -> bool {
        !self.net.watch.is_anyone_held(self.net.now)
            && self.hosts.iter().all(|host| host.has_replied() || host.is_dead || !self.net.wires[host.wires.0].is_up)
            && self.flows.are_settled(|flow| self.is_cut_off(flow))
            && self.net.nodes.iter().all(Node::is_idle)
    }
}
