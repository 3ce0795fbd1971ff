//! The world: events in their order, each to whom it concerns, and every rule checked after each step of a switch.

use super::checks::Checks;
use super::events::{Event, Events};
use super::flow::Flow;
use super::frame::{Cargo, Kind, Pool, SimPacket};
use super::host::Host;
use super::load::PS;
use super::node::{self, Node};
use super::outcome::{Ending, Outcome, Violation};
use super::recording::{MOST_RECORDED, Recording};
use super::rng::Rng;
use super::sampler::Sampler;
use super::spec::{End, Learning, LinkNode, Scenario};
use super::waivers::Waiver;
use super::watch::Watch;
use super::wire::Wire;
use super::{faults, finish, routes, waivers};
use crate::dataplane::record::Tape;
use crate::packet::Packet;
use crate::wire::mac_control::{self, MacControl, PfcFrame};

/// Streams of random numbers.
const FAULT_STREAM: u64 = 1;
/// No pause has run out at half of its life by then, at any speed.
const SHORTEST_HALF_LIFE_PS: u64 = 20_000 * PS;
/// Time between two looks at what runs out by itself.
const LOOK_PS: u64 = 10_000 * PS;

/// Everything there is.
#[derive(Debug)]
pub struct Engine<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) events: Events,
    pub(super) now: u64,
    pub(super) handled: u64,
    pub(super) wires: Vec<Wire>,
    pub(super) pool: Pool,
    pub(super) nodes: Vec<Node>,
    pub(super) hosts: Vec<Host>,
    pub(super) flows: Vec<Flow>,
    pub(super) watch: Watch,
    pub(super) checks: Checks,
    pub(super) sampler: Sampler,
    pub(super) faults: Rng,
    /// What the switches held when hosts fell silent.
    pub(super) at_stop: Vec<finish::AtStop>,
    pub(super) waivers: Vec<Waiver>,
    /// Frames that reached a dead host.
    pub(super) buried: u64,
    used: Vec<usize>,
    duration_ps: u64,
    deadline_ps: u64,
}

/// Runs a scenario to its end. `progress` hears now and then of the network time that has gone by, in parts of a thousand
/// of the time for which hosts send.
#[must_use]
pub fn run(scenario: &Scenario, progress: &mut dyn FnMut(u64)) -> Outcome {
    run_prepared(scenario, |_| {}, progress)
}

/// As [`run`], of a world that `prepare` has made worse than a scenario can say.
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

/// As [`run`], and what switch number `switch` received and sent is written down.
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
    /// The world of `scenario` before anything has happened.
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
            pool: Pool::default(),
            nodes: Vec::new(),
            hosts: Vec::new(),
            flows: (0..scenario.flows.len()).map(|number| Flow::new(number, scenario)).collect(),
            watch: Watch::new(scenario),
            checks: Checks::new(scenario),
            sampler: Sampler::new(scenario, scenario.sample.0.max(1) * PS),
            faults: Rng::new(scenario.seed, FAULT_STREAM),
            at_stop: Vec::new(),
            waivers: waivers::waivers(scenario),
            buried: 0,
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
        self.events.at(LOOK_PS, Event::Look);
        self.events.at(self.duration_ps, Event::Stop);
        self.events.at(self.deadline_ps.max(self.duration_ps + 1), Event::Deadline);
        (0..self.hosts.len()).for_each(|host| self.wake(host, 0));
    }

    /// Cables to both their ends.
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
        if self.scenario.learning == Learning::Frames {
            (0..self.hosts.len()).for_each(|host| self.announce(host));
        }
    }

    fn host(&self, number: usize, link: &LinkNode, wires: (usize, usize)) -> Host {
        let flows = self.scenario.flows.iter().enumerate().filter(|(_, flow)| flow.from == number);
        let lossless = if let End::Port(port) = link.a {
            self.scenario.switches[port.switch].config.switch.ports[port.port].lossless_groups()
        } else {
            0
        };
        let spec = &self.scenario.hosts[number];
        Host::new(spec, wires, flows.map(|(flow, _)| flow).collect(), link.rate, lossless)
    }

    /// Until all has arrived, or a bound is met.
    fn go(&mut self, progress: &mut dyn FnMut(u64)) -> (Ending, Option<Violation>) {
        while let Some((at, event)) = self.events.next() {
            debug_assert!(at >= self.now, "time does not go back");
            self.now = at;
            // Whether somebody looks must not show.
            self.handled += u64::from(event != Event::Sample);
            if self.handled >= self.scenario.most_events {
                return (Ending::TooManyEvents, None);
            }
            if event == Event::Look || event == Event::Deadline {
                self.settle();
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
            if let Some(violation) = self.watch.violation_at(self.now, self.handled) {
                return (Ending::Violated, Some(violation));
            }
        }
        unreachable!("lcores poll on and on");
    }

    /// The last checks.
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
            Event::Fault(fault) => faults::change(self, fault as usize),
            Event::Sample => {
                self.sampler.sample(&self.nodes, &mut self.flows);
                self.events.at(self.now + self.scenario.sample.0 * PS, Event::Sample);
            }
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
        let next = self.with_node(switch, |node, now, world| node.poll_out(lcore, now, world));
        self.watch_gap(switch, next - self.nodes[switch].lcores[lcore].began_ps);
        self.check(switch);
        self.events.at(next, Event::PollIn { switch: switch as u32, lcore: lcore as u32 });
    }

    /// The next poll comes `gap` after the last one: where that is longer than half the life of a pause, none can be
    /// refreshed in time. Whether the switch promises anything with such gaps, the waivers say.
    fn watch_gap(&mut self, switch: usize, gap: u64) {
        if gap > SHORTEST_HALF_LIFE_PS {
            let wires = self.nodes[switch].devices.iter().filter_map(|device| device.wires);
            wires.for_each(|(out, _)| self.watch.polled_late(out, gap));
        }
    }

    /// Lets a switch do something, and the hosts expect what it has sent them.
    fn with_node<R>(&mut self, switch: usize, work: impl FnOnce(&mut Node, u64, &mut node::World<'_>) -> R) -> R {
        let mut world = node::World {
            wires: &mut self.wires,
            pool: &mut self.pool,
            watch: &mut self.watch,
            faults: &mut self.faults,
            used: &mut self.used,
        };
        let result = work(&mut self.nodes[switch], self.now, &mut world);
        for wire in std::mem::take(&mut self.used).drain(..) {
            if let End::Host(host) = self.wires[wire].to {
                self.expect(host);
            }
        }
        result
    }

    /// The host has an event for the next frame that arrives.
    fn expect(&mut self, host: usize) {
        let state = &mut self.hosts[host];
        // A cut may have taken what was expected, and something shorter be on its way since.
        if let Some(at) = self.wires[state.wires.1].next_arrival()
            && at < state.expects_at
        {
            state.expects_at = at;
            self.events.at(at, Event::HostReceive(host as u32));
        }
    }

    /// Everything that has arrived by now is in a receive ring.
    pub(super) fn settle(&mut self) {
        for switch in 0..self.nodes.len() {
            self.with_node(switch, |node, now, world| node.settle(now, world));
        }
    }

    /// The link of `host` goes up or down.
    pub(super) fn host_link(&mut self, host: usize, is_up: bool) {
        let now = self.now;
        if is_up {
            self.hosts[host].link_up(now);
            // Switches forget where it is with its link.
            if self.scenario.learning == Learning::Frames {
                self.announce(host);
            }
            self.wake(host, now);
        } else {
            self.hosts[host].link_down(now);
        }
    }

    /// The host says who it is before anything else, in every VLAN that it sends or is sent to in.
    fn announce(&mut self, host: usize) {
        if !self.scenario.hosts[host].known {
            return;
        }
        let mine = self.scenario.flows.iter().filter(|flow| flow.from == host || flow.to == host);
        let mut vlans: Vec<Option<u16>> = mine.map(|flow| flow.tag.map(|(vlan, _)| vlan)).collect();
        vlans.sort_unstable();
        vlans.dedup();
        vlans.into_iter().for_each(|vlan| self.hosts[host].announce_in(vlan));
    }

    /// The host looks for something to send at `at`, if not before.
    pub(super) fn wake(&mut self, host: usize, at: u64) {
        let state = &mut self.hosts[host];
        if at < state.wake_at {
            state.wake_at = at;
            self.events.at(at, Event::HostSend(host as u32));
        }
    }

    fn host_receive(&mut self, host: usize) {
        if self.hosts[host].expects_at != self.now {
            return;
        }
        self.hosts[host].expects_at = u64::MAX;
        let wire = self.hosts[host].wires.1;
        while let Some((at, packet)) = self.wires[wire].arrived(self.now) {
            let pfc = pfc_of(&packet);
            if let Some(frame) = &pfc {
                // Also what nobody listens to has been said in time.
                self.watch.heard(wire, frame, at);
            }
            if self.hosts[host].is_dead {
                self.buried += u64::from(packet.cargo.kind != Kind::Pfc);
            } else {
                self.arrive(host, &packet, pfc, at);
            }
            self.pool.free(packet);
        }
        self.expect(host);
    }

    fn arrive(&mut self, host: usize, packet: &SimPacket, pfc: Option<PfcFrame>, at: u64) {
        match packet.cargo.kind {
            Kind::Pfc => {
                if let Some(frame) = pfc {
                    let understood = self.hosts[host].hear(frame, at);
                    self.events.at(understood, Event::HostHear(host as u32));
                }
            }
            Kind::Data if self.flows[packet.cargo.flow as usize].spec.to == host => self.accept(host, packet, at),
            Kind::Cnp if self.flows[packet.cargo.flow as usize].spec.from == host => {
                self.checks.cnps_received += 1;
                let flow = &mut self.flows[packet.cargo.flow as usize];
                if let Some(sender) = &mut flow.sender {
                    sender.cnp(at);
                }
                self.set_timer(packet.cargo.flow as usize);
            }
            Kind::Announcement => self.checks.announcements_received += 1,
            Kind::Data | Kind::Cnp => self.hosts[host].outcome.foreign_frames += 1,
        }
    }

    /// A frame of a flow reaches whom it is for.
    fn accept(&mut self, host: usize, packet: &SimPacket, at: u64) {
        let number = packet.cargo.flow as usize;
        if !self.hosts[host].fill(packet.len(), self.flows[number].spec.lossless, at) {
            return;
        }
        let flow = &mut self.flows[number];
        match flow.arrive(&packet.cargo, packet.len(), packet.is_ce(), at) {
            Ok(false) => {}
            Ok(true) => {
                self.hosts[host].cnps.push_back(number);
                self.wake(host, at);
            }
            Err(_) if self.checks.may_disorder => {}
            Err(_) => {
                let (name, sequence) = (flow.spec.name.clone(), packet.cargo.sequence);
                self.watch.broken("frames_in_order", || format!("frame {sequence} of flow {name} came late or twice"));
            }
        }
        if self.hosts[host].generator.xoff() != 0 {
            self.wake(host, at);
        }
    }

    fn flow_timer(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        if flow.timer_at != self.now {
            return;
        }
        flow.timer_at = u64::MAX;
        if let Some(sender) = &mut flow.sender {
            sender.timer(self.now);
        }
        self.set_timer(number);
    }

    fn set_timer(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        let Some(at) = flow.sender.as_ref().and_then(super::dcqcn::Sender::next_timer) else { return };
        let at = at.max(self.now + 1);
        if at < flow.timer_at {
            flow.timer_at = at;
            self.events.at(at, Event::FlowTimer(number as u32));
        }
    }

    /// The host sends a frame, if its link is free and there is one, and says when it wants to look again.
    fn host_send(&mut self, host: usize) {
        let (now, state) = (self.now, &mut self.hosts[host]);
        if state.wake_at != now {
            return;
        }
        state.wake_at = u64::MAX;
        let wire = state.wires.0;
        // Without a carrier a NIC keeps what it has. Whoever ends that wakes it.
        if state.is_dead || !self.wires[wire].is_up {
            return;
        }
        let free_at = self.wires[wire].free_at();
        if free_at > now {
            return self.wake(host, free_at);
        }
        state.judge(now);
        let pfc_wake = match self.next_frame(host) {
            Ok(packet) => {
                self.wires[wire].send(packet, now, &mut self.pool, &mut self.faults);
                Some(self.wires[wire].free_at())
            }
            Err(at) => (at < u64::MAX).then_some(at),
        };
        let wakes = [pfc_wake, self.hosts[host].pfc_wake(now)];
        if let Some(at) = wakes.into_iter().flatten().min() {
            self.wake(host, at.max(now + 1));
        }
    }

    /// The frame that `host` sends now, or when there may be one.
    fn next_frame(&mut self, host: usize) -> Result<SimPacket, u64> {
        let (now, state) = (self.now, &mut self.hosts[host]);
        if let Some(frame) = state.pfc_due(now) {
            let bytes = frame.emit(state.spec.mac);
            return Ok(self.pool.make(&bytes, bytes.len(), Cargo::of(Kind::Pfc)));
        }
        if let Some(bytes) = state.announcements.pop_front() {
            self.checks.announcements_sent += 1;
            return Ok(self.pool.make(&bytes, bytes.len(), Cargo::of(Kind::Announcement)));
        }
        // Answers to congestion go before what causes it, and in a class of their own.
        let cnp_paused = |number: &usize| state.paused_until(self.flows[*number].cnp_priority, now);
        let cnp_until = state.cnps.front().and_then(cnp_paused);
        if cnp_until.is_none()
            && let Some(number) = state.cnps.pop_front()
        {
            self.checks.cnps_sent += 1;
            let flow = &mut self.flows[number];
            let cargo = Cargo { flow: number as u32, born_ps: now, ..Cargo::of(Kind::Cnp) };
            let len = flow.cnp_header.least_frame().max(CNP_LEN);
            return Ok(self.pool.make(flow.cnp_header.for_len(len), usize::from(len), cargo));
        }
        let (mut again, count) = (cnp_until.unwrap_or(u64::MAX), state.flows.len());
        for step in 0..count {
            let place = (state.turn + step) % count;
            let number = state.flows[place];
            let flow = &mut self.flows[number];
            if let Some(until) = state.paused_until(usize::from(flow.spec.priority), now) {
                again = again.min(until);
                continue;
            }
            match flow.ready(now) {
                Ok(()) => {
                    state.turn = (place + 1) % count;
                    return Ok(self.data_frame(number));
                }
                Err(at) => again = again.min(at),
            }
        }
        Err(again)
    }

    /// The next frame of a flow, which leaves now.
    fn data_frame(&mut self, number: usize) -> SimPacket {
        let (now, flow) = (self.now, &mut self.flows[number]);
        let least = flow.header.least_frame();
        let (len, message) = flow.demand.take(flow.next_len, least);
        let cargo = Cargo { kind: Kind::Data, flow: number as u32, sequence: flow.sequence, born_ps: now, message };
        flow.sequence += 1;
        flow.outcome.sent_frames += 1;
        flow.outcome.sent_bytes += u64::from(len);
        flow.next_len = flow.spec.frames.draw(least, &mut flow.rng);
        let bits = (u64::from(len.max(60)) + u64::from(crate::qos::shaper::WIRE_OVERHEAD)) * 8;
        flow.next_ps = flow.next_ps.max(now) + (bits * 1_000_000_000_000).div_ceil(flow.rate());
        let packet = self.pool.make(flow.header.for_len(len), usize::from(len), cargo);
        if let Some(sender) = &mut flow.sender {
            sender.sent(u64::from(len), now);
            self.set_timer(number);
        }
        packet
    }

    /// Frames in switches, on wires, and in receive rings.
    pub(super) fn under_way(&self) -> u64 {
        let flying: usize = self.wires.iter().map(Wire::flying).sum();
        let held: usize = self.nodes.iter().map(Node::held_frames).sum();
        (flying + held) as u64
    }

    /// PFC frames among them: in rings and on wires.
    pub(super) fn pfc_under_way(&self) -> u64 {
        let wires: usize = self.wires.iter().map(Wire::flying_pfc).sum();
        let rings = self.nodes.iter().flat_map(|node| &node.devices).flat_map(|device| &device.ring);
        (wires + rings.filter(|packet| packet.cargo.kind == Kind::Pfc).count()) as u64
    }

    /// Whether a host says XOFF.
    pub(super) fn is_any_host_pausing(&self) -> bool {
        self.hosts.iter().any(|host| host.generator.xoff() != 0)
    }

    /// Whether all has arrived, nobody is held, and the switches are idle.
    fn is_over(&self) -> bool {
        self.under_way() == 0
            && !self.watch.is_anyone_held(self.now)
            && self.hosts.iter().all(|host| host.cnps.is_empty() || host.is_dead || !self.wires[host.wires.0].is_up)
            && self.nodes.iter().all(Node::is_idle)
    }
}

/// What a PFC frame says.
fn pfc_of(packet: &SimPacket) -> Option<PfcFrame> {
    if packet.cargo.kind != Kind::Pfc {
        return None;
    }
    match mac_control::parse(packet.bytes()) {
        Some(MacControl::Pfc(frame)) => Some(frame),
        _ => None,
    }
}

/// Bytes of a CNP without the frame check sequence: Ethernet, IPv4, UDP, BTH, 16 reserved (InfiniBand annex A17).
const CNP_LEN: u16 = 14 + 20 + 8 + 12 + 16;
