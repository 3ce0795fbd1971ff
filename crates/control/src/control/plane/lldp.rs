//! LLDP of the control plane: runs the agent of all ports, with frames and time. Probes of loops, and their guard.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use super::Lcores;
use crate::config::{Config, DeviceKind, LoopGuard};
use crate::forward::LagsSpec;
use crate::lldp::probe::identity;
use crate::lldp::{Agent, AgentView, Board, Guard, ProbedPort, Prober, Settings, Stated, System, Timing, stated};
use crate::plan::own_probes::OwnProbes;
use crate::route::{InjectTo, PuntCause, PuntFrame};
use crate::sets::PortSet;
use crate::units::Nanos;
use crate::wire::lldp::Aggregation;

/// Time between two looks at the timers.
const TICK: Nanos = Nanos(50_000_000);
/// Time between two states for observers; an event causes one at once.
const PUBLISH: Nanos = Nanos(500_000_000);
/// The name of the system if the machine has none.
const NO_NAME: &str = "holdfast";
/// Addresses for management that a data unit states at most.
const MOST_ADDRESSES: usize = 4;

/// Probes that are sent in one look, of the 256 frames that an lcore may be given.
const PROBES: usize = 64;

/// The secret of this process, from which the numbers of ports and the seals of probes are made.
static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The agent on its thread.
pub(super) struct LldpThread {
    agent: Agent,
    /// Ports with LLDP.
    ports: PortSet,
    /// Ports that have a link, as the agent knows it.
    up: PortSet,
    board: Arc<Board>,
    prober: Prober,
    /// The probes of `prober`, for the lcores.
    own_probes: Arc<OwnProbes>,
    guard: Guard,
    /// Statements of the ports without the state of their groups, and the identifier of the group of each port.
    stated: Vec<Option<Stated>>,
    groups: Vec<Option<u32>>,
    /// Members of groups that are active, as the agent states it.
    aggregated: PortSet,
    ticked: Nanos,
    published: Nanos,
    has_stopped: bool,
}

/// The settings of LLDP by `config`. Each port has a number of its own in this process: a peer that knows that of one
/// port cannot guess that of another.
pub(in crate::control) fn settings(config: &Config, program: &str) -> Settings {
    let (switch, system) = (&config.switch, system(config, program));
    let ports = config.devices.iter().enumerate();
    let is_guarded = config.lldp.loop_guard != LoopGuard::Off;
    let stated = ports.map(|(port, device)| {
        let mut stated = stated(switch, port, &system, Aggregation::default())
            .filter(|_| device.lldp && !switch.ports[port].is_shut())?;
        stated.pdu.instance = is_guarded.then(|| SECRET.hash_one(port));
        Some(stated)
    });
    let timing = Timing { interval: config.lldp.interval_s, ..Timing::default() };
    Settings {
        stated: stated.collect(),
        timing,
        blocks_loops: config.lldp.loop_guard == LoopGuard::Block,
        probe_interval: config.lldp.loop_probe,
        vlans: switch.ports.iter().map(|port| port.vlan.clone()).collect(),
        probed: probed_ports(config),
    }
}

/// The ports of `config` that send probes: a routed port and an output of mirrors bridge nothing, and a virtual host is
/// no bridge.
fn probed_ports(config: &Config) -> Vec<Option<ProbedPort>> {
    let (ports, outputs) = (config.switch.ports.iter().zip(&config.devices), config.switch.mirror.outputs);
    let probed = ports.enumerate().map(|(index, (port, device))| {
        let bridges = port.bridges() && !outputs.contains(index);
        let may_loop = !matches!(device.kind, DeviceKind::Ring | DeviceKind::Absent) && bridges;
        may_loop.then(|| ProbedPort { mac: port.mac, vlan: port.vlan.clone() })
    });
    probed.collect()
}

/// The system as LLDP states it.
fn system(config: &Config, program: &str) -> System {
    let name = system_name(config);
    let interfaces = config.switch.routing.iter().flat_map(|routing| &routing.interfaces);
    let addresses = interfaces.flat_map(|interface| &interface.addresses).map(ipnet::IpNet::addr);
    let management = addresses.filter(|address| !address.is_loopback()).take(MOST_ADDRESSES).collect();
    System { name, description: program.to_owned(), management }
}

/// Identifiers of groups in LLDP begin here, behind those of ports.
const FIRST_GROUP: u32 = 1000;

/// The identifier of the group of each port.
fn groups(config: &Config) -> Vec<Option<u32>> {
    let groups = &config.switch.lags.groups;
    let group_of = |port| groups.iter().position(|group| group.ports.contains(port));
    let ports = 0..config.switch.ports.len();
    ports.map(|port| group_of(port).map(|group| FIRST_GROUP + group as u32)).collect()
}

/// The name of the switch: that of the configuration, or that of the machine.
pub fn system_name(config: &Config) -> String {
    config.lldp.name.clone().unwrap_or_else(host_name)
}

/// The name of the machine.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { NO_NAME.to_owned() } else { name.trim().to_owned() }
}

/// The statements of ports in `groups`, of which the members `aggregated` are active.
fn with_groups(stated: &[Option<Stated>], groups: &[Option<u32>], aggregated: PortSet) -> Vec<Option<Stated>> {
    let mut all = stated.to_vec();
    for (port, stated) in all.iter_mut().enumerate() {
        let (Some(stated), Some(group)) = (stated, groups[port]) else { continue };
        let is_enabled = aggregated.contains(port);
        let id = if is_enabled { group } else { 0 };
        stated.pdu.dot1.aggregation = Some(Aggregation { is_capable: true, is_enabled, port: id });
    }
    all
}

fn ports(stated: &[Option<Stated>]) -> PortSet {
    (0..stated.len()).filter(|&port| stated[port].is_some()).collect()
}

impl LldpThread {
    /// Creates the agent of `config`. All links are down.
    pub fn new(config: &Config, program: &str) -> Self {
        let Settings { stated, timing, blocks_loops, probe_interval, vlans, probed } = settings(config, program);
        let (ports, groups) = (ports(&stated), groups(config));
        let agent = Agent::new(with_groups(&stated, &groups, PortSet::EMPTY), timing);
        let board = Arc::new(Board::default());
        board.publish(agent.view(Nanos(1)), Vec::new());
        let names = config.switch.ports.iter().map(|port| port.name.clone());
        let guard = Guard::new(names.zip(vlans), config.switch.lags.clone(), blocks_loops);
        let prober = Prober::new(probed, probe_interval, SECRET.clone());
        let own_probes = Arc::new(OwnProbes::new(identity(&SECRET), prober.recent_rounds()));
        Self {
            agent,
            prober,
            own_probes,
            ports,
            up: PortSet::EMPTY,
            board,
            guard,
            stated,
            groups,
            aggregated: PortSet::EMPTY,
            ticked: Nanos(0),
            published: Nanos(0),
            has_stopped: false,
        }
    }

    /// The state for observers.
    pub fn board(&self) -> Arc<Board> {
        self.board.clone()
    }

    /// The own probes, for the lcores.
    pub fn own_probes(&self) -> Arc<OwnProbes> {
        self.own_probes.clone()
    }

    /// Ports with LLDP.
    pub fn ports(&self) -> PortSet {
        self.ports
    }

    /// Takes the ports that have a link.
    pub fn set_links(&mut self, up: PortSet, now: Nanos) {
        for port in ((up - self.up) | (self.up - up)).iter() {
            self.agent.link(port, up.contains(port), now);
        }
        self.up = up;
    }

    /// Takes the active members of link aggregation groups, which the ports state.
    pub fn set_aggregated(&mut self, aggregated: PortSet, now: Nanos) {
        if self.aggregated != aggregated && !self.has_stopped {
            self.aggregated = aggregated;
            self.agent.configure(self.stated_now(), now);
        }
    }

    /// Takes the bridge ports that frames can be forwarded to, and the `active` members of groups. A group sends probes
    /// by its first active member.
    pub fn set_bridge_ports(&mut self, lags: &LagsSpec, bridge_ports: PortSet, active: PortSet) {
        let alone = bridge_ports - lags.members();
        let (mut senders, mut receivers) = (alone, alone);
        for group in lags.groups.iter().filter(|group| bridge_ports.contains(group.head())) {
            let members = group.ports & active;
            receivers |= members;
            members.lowest().into_iter().for_each(|first| senders.insert(first));
        }
        let senders = if self.has_stopped { PortSet::EMPTY } else { senders };
        self.prober.set_ports(senders, receivers);
    }

    /// The statements of the ports with the present state of their groups.
    fn stated_now(&self) -> Vec<Option<Stated>> {
        with_groups(&self.stated, &self.groups, self.aggregated)
    }

    /// Takes a punted frame. Returns false if it is not for the agent.
    pub fn take(&mut self, frame: &PuntFrame, now: Nanos) -> bool {
        if frame.cause == PuntCause::LoopProbe {
            self.prober.received(frame.port.into(), &frame.bytes, now);
            return true;
        }
        let is_ours = frame.cause == PuntCause::Lldp && self.ports.contains(frame.port.into());
        if is_ours {
            self.agent.received(frame.port.into(), &frame.bytes, now);
        }
        is_ours
    }

    /// Acts on the time and on new settings, and publishes the state.
    pub fn tick(&mut self, now: Nanos) {
        if now.0 - self.ticked.0 >= TICK.0 && !self.has_stopped {
            self.ticked = now;
            if let Some(settings) = self.board.take_settings() {
                let Settings { stated, timing, blocks_loops, probe_interval, vlans, probed } = settings;
                self.guard.set_vlans(vlans);
                self.guard.set_blocks(blocks_loops);
                self.prober.set_probed(probed);
                self.prober.set_interval(probe_interval);
                self.ports = ports(&stated);
                self.agent.set_timing(timing);
                self.stated = stated;
                self.agent.configure(self.stated_now(), now);
            }
            self.agent.tick(now);
        }
        self.prober.tick(now);
        // Before the probes of a new round are sent: the lcores drop those of other rounds.
        self.own_probes.set_rounds(self.prober.recent_rounds());
        let mut events = self.agent.take_events();
        events.extend(self.guard.look(self.agent.loops(), self.prober.returned(), now));
        if !events.is_empty() || now.0 - self.published.0 >= PUBLISH.0 {
            self.published = now;
            self.board.publish(self.view(now), events);
        }
    }

    /// The state for observers.
    fn view(&self, now: Nanos) -> AgentView {
        let mut view = self.agent.view(now);
        let blocked = self.guard.blocked();
        let probed = self.prober.ports();
        for port in &mut view.ports {
            (port.is_blocked, port.has_probes) = (blocked.contains(port.port), probed.contains(port.port));
        }
        for returned in self.prober.returned() {
            view.ports[returned.port].loop_with.get_or_insert(returned.from);
        }
        view
    }

    /// Ports that forward nothing because of a loop.
    pub fn blocked(&self) -> PortSet {
        self.guard.blocked()
    }

    /// Ports of the loops for which a port is blocked.
    pub fn looped(&self) -> PortSet {
        self.guard.looped()
    }

    /// Sends the frames of the agent. Returns their number.
    pub fn send(&mut self, lcores: &mut Lcores) -> usize {
        let mut frames = self.agent.take_frames();
        frames.extend(self.prober.take_frames(PROBES));
        for frame in &frames {
            // A frame that finds no buffer is repeated after its interval.
            let _ = lcores.inject(&frame.frame, InjectTo::Link(frame.port as u8), 0);
        }
        frames.len()
    }

    /// Ends LLDP: peers are told by the next frames.
    pub fn stop(&mut self, now: Nanos) {
        self.agent.stop(now);
        self.has_stopped = true;
    }
}
