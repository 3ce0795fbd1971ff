//! Translates the inputs to a scenario.
//!
//! Switches, hosts and links become the text of a scenario, which the reader of scenarios checks. Flows are added to
//! the result, because there may be more than a text may have.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::config::{CcMode, Ecn, FASTEST, Settings};
use super::flows::FlowLine;
use super::path::BaseTimes;
use super::sizes::{self, Given};
use super::topology::Topology;
use super::{Inputs, MmuSizes, Prepared, qlen, traffic, windows};
use crate::config::error::{ConfigError, ConfigErrors, Subject, Warning};
use crate::config::model::EcnOrder;
use crate::mmu::HpccRules;
use crate::sets::MAX_PORTS;
use crate::sim::scenario::{self, Options, mmu};
use crate::sim::spec::Scenario;
use crate::units::{BitRate, Bytes, Nanos};
use crate::wire::inband;

/// Bytes of a packet that are not payload: Ethernet, IPv4, UDP, BTH, invariant CRC.
const HEADERS: u64 = 14 + 20 + 8 + 12 + 4;
/// Headers of a packet in HPCC's simulator.
const PUBLISHED_HEADERS: u64 = 48;
/// Preamble, check sequence and gap of a frame on the wire.
const WIRE_OVERHEAD: u64 = 24;
/// Time from the beginning of the scenario to the first flow, in nanoseconds.
pub(super) const LEAD_NS: u64 = 10_000;
/// Time between two polls of a switch. ns-3's switches do not poll; with 100 ns, batches in queues make HPCC unfair.
const POLL: &str = "10ns";
/// The shortest time after the start of the last flow, if the end that is asked for comes before.
const LEAST_DRAIN_NS: u64 = 1_000;
pub(super) const MOST_DRAIN_NS: u64 = 10_000_000_000;
/// Buffer beyond that of HPCC's simulator with which its switches pass the check of Holdfast's headroom.
const SPARE_MIB: u64 = 4096;
/// Nanoseconds of a metre of cable.
const NS_PER_M: f64 = 5.0;

/// Translates `inputs`.
pub fn prepare(inputs: Inputs, seed: Option<u64>, mmu: (HpccRules, MmuSizes)) -> Result<Prepared, ConfigErrors> {
    let Inputs { settings, topology, flows, base, warnings, .. } = inputs;
    let destinations: HashSet<usize> = flows.iter().map(|flow| flow.dst).collect();
    let times = BaseTimes::new(&topology, &destinations, settings.payload_bytes);
    let too_long = check_paths(&settings, &flows, &times)?;
    let plan = Plan::new(&settings, &topology, &flows, mmu.1)?;
    let outside = windows::check(&settings, &topology, &flows)?;
    let epoch_ns = flows.first().map_or(0, |flow| flow.start_ns.saturating_sub(LEAD_NS));
    let parse = |sizing: Sizing| {
        let text = plan.text(epoch_ns, seed, sizing);
        scenario::parse(&settings.source, &text, None, &Options::default()).map_err(without_places)
    };
    let cell_bytes = mmu.1.cell_bytes(settings.buffer_mib + SPARE_MIB);
    let own = Sizing { buffer_mib: settings.buffer_mib, cell_bytes };
    // A buffer that is too small for Holdfast's headroom may be large enough for that of HPCC's simulator.
    let mut scenarios = match (parse(own), mmu.1) {
        (Err(_), MmuSizes::Hpcc) => parse(Sizing { buffer_mib: own.buffer_mib + SPARE_MIB, ..own })?,
        (parsed, _) => parsed?,
    };
    let (_, mut scenario) = scenarios.remove(0);
    scenario.warnings.iter_mut().for_each(in_words_of_hpcc);
    plan.give_rules(&mut scenario, mmu.0, mmu.1)?;
    scenario.most_events = u64::MAX;
    scenario.warnings.splice(0..0, warnings.into_iter().chain(plan.warnings.clone()).chain(too_long).chain(outside));
    traffic::add_flows(&mut scenario, &plan, epoch_ns, &times);
    scenario.monitor = (!settings.qlen.is_empty()).then(|| qlen::monitor(&settings, epoch_ns));
    Ok(Prepared {
        fct: base.join(&settings.fct),
        pfc: base.join(&settings.pfc),
        qlen: (!settings.qlen.is_empty()).then(|| base.join(&settings.qlen)),
        payload_bytes: settings.payload_bytes,
        hosts: plan.hosts.clone(),
        switches: plan.switches.clone(),
        scenario,
        times,
        epoch_ns,
        flows,
    })
}

/// Removes places from errors of the scenario's text, which no user sees.
fn without_places(errors: ConfigErrors) -> ConfigErrors {
    ConfigErrors::new(errors.iter().map(|error| ConfigError { place: None, ..error.clone() }).collect())
}

/// Says a warning about the scenario's text in the words of the configuration, and without the place in that text.
fn in_words_of_hpcc(warning: &mut Warning) {
    warning.note.place = None;
    if let Subject::LateEcn(EcnOrder { class, kmin, xoff }, ports) = warning.subject {
        warning.note.message = format!(
            "ECN of class {class} starts to mark at {kmin} (KMIN_MAP), but with {ports} ports it is sure to mark before \
             XOFF only below {xoff}; lower KMIN_MAP or raise BUFFER_SIZE"
        );
    }
}

/// Checks that a path leads from the source of each flow to its destination. Returns a warning if notes of telemetry
/// have no room for the switches of one.
fn check_paths(settings: &Settings, flows: &[FlowLine], times: &BaseTimes) -> Result<Option<Warning>, ConfigErrors> {
    let mut most = 0;
    for FlowLine { src, dst, .. } in flows {
        let Some(base) = times.of(*src, *dst) else {
            let message = format!("no links lead from {src} to {dst}; write them in {}", settings.topology);
            return Err(ConfigErrors::one(&settings.flows, None, message));
        };
        most = most.max(base.switches);
    }
    let is_long = settings.cc_mode == CcMode::Hpcc && most > inband::HOPS;
    Ok(is_long.then(|| {
        let message =
            format!("a flow passes {most} switches, and notes of {} fit a packet; nothing slows it down", inband::HOPS);
        Warning::of_text(&settings.topology, None, message)
    }))
}

/// The buffer that the text of a scenario states.
#[derive(Debug, Clone, Copy)]
struct Sizing {
    buffer_mib: u64,
    cell_bytes: u64,
}

/// The nodes of the scenario, and the ports of its switches.
pub(super) struct Plan<'a> {
    pub settings: &'a Settings,
    pub topology: &'a Topology,
    pub flows: &'a [FlowLine],
    pub sizes: MmuSizes,
    pub hosts: Vec<usize>,
    pub switches: Vec<usize>,
    /// By switch, its links with the node at the other end, in the order of ports.
    pub ports: HashMap<usize, Vec<(usize, usize)>>,
    warnings: Vec<Warning>,
}

impl<'a> Plan<'a> {
    fn new(
        settings: &'a Settings,
        topology: &'a Topology,
        flows: &'a [FlowLine],
        sizes: MmuSizes,
    ) -> Result<Self, ConfigErrors> {
        let used: HashSet<usize> = flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
        let mut plan = Self {
            settings,
            topology,
            flows,
            sizes,
            hosts: Vec::new(),
            switches: (0..topology.is_switch.len()).filter(|&node| topology.is_switch[node]).collect(),
            ports: HashMap::new(),
            warnings: Vec::new(),
        };
        plan.connect(&|_| true);
        if plan.ports.values().any(|ports| ports.len() > MAX_PORTS) {
            // Idle hosts change nothing but the sum of headrooms.
            plan.connect(&|node| used.contains(&node));
            let left_out = topology.hosts().count() - plan.hosts.len();
            let message =
                format!("a switch has more than {MAX_PORTS} ports; {left_out} hosts without flows are left out");
            plan.warnings.push(Warning::of_text(&settings.topology, None, message));
        }
        plan.check_ecn()?;
        let large = plan.ports.iter().filter(|(_, ports)| ports.len() > MAX_PORTS).map(|(node, _)| *node).min();
        match large {
            None => Ok(plan),
            Some(node) => Err(plan.error(format!(
                "switch {node} has {} links; a switch has at most {MAX_PORTS} ports",
                plan.ports[&node].len()
            ))),
        }
    }

    /// Checks that the thresholds of each switch are known, as HPCC's simulator does.
    fn check_ecn(&self) -> Result<(), ConfigErrors> {
        if !self.settings.ecn_enabled {
            return Ok(());
        }
        match self.rates().find(|&rate| self.ecn(rate).is_none()) {
            None => Ok(()),
            Some(rate) => {
                let message = format!(
                    "there are ports of {rate} bit/s, and KMIN_MAP, KMAX_MAP or PMAX_MAP has no entry for them; write one"
                );
                Err(ConfigErrors::one(&self.settings.source, None, message))
            }
        }
    }

    fn error(&self, message: String) -> ConfigErrors {
        ConfigErrors::one(&self.settings.topology, None, message)
    }

    /// Sets hosts and ports, with the hosts that `is_in` selects.
    fn connect(&mut self, is_in: &dyn Fn(usize) -> bool) {
        let linked: HashSet<usize> = self.topology.links.iter().flat_map(|link| link.ends).collect();
        self.hosts = self.topology.hosts().filter(|&host| is_in(host) && linked.contains(&host)).collect();
        self.ports = self.switches.iter().map(|&switch| (switch, Vec::new())).collect();
        for (number, link) in self.topology.links.iter().enumerate() {
            let is_there = |node: usize| self.topology.is_switch[node] || is_in(node);
            let [a, b] = link.ends;
            if !is_there(a) || !is_there(b) {
                continue;
            }
            for (own, other) in [(a, b), (b, a)] {
                if let Some(ports) = self.ports.get_mut(&own) {
                    ports.push((number, other));
                }
            }
        }
    }

    /// The name of the port of switch `node` at link number `link`.
    fn port(&self, node: usize, link: usize) -> String {
        let place = self.ports[&node].iter().position(|(number, _)| *number == link);
        format!("s{node}.p{}", place.map_or(0, |place| place + 1))
    }

    /// The text of the scenario, without flows.
    fn text(&self, epoch_ns: u64, seed: Option<u64>, sizing: Sizing) -> String {
        let last = self.flows.last().map_or(0, |flow| flow.start_ns);
        let duration = last - epoch_ns + 1_000;
        let stop = (self.settings.stop_seconds * 1e9) as u64;
        let drain = stop.saturating_sub(epoch_ns + duration).clamp(LEAST_DRAIN_NS, MOST_DRAIN_NS);
        let mut text = format!("seed: {}\nduration: {duration}ns\ndrain: {drain}ns\nname: hpcc\n", seed.unwrap_or(1));
        if self.switches.len() > 1 {
            text += "forwarding: routed\n";
        }
        text += "switches:\n";
        self.switches.iter().for_each(|&switch| self.write_switch(&mut text, switch, sizing));
        text += "hosts:\n";
        let (mut hosts, mut links, mut faults) = (HashMap::new(), String::new(), String::new());
        for (number, link) in self.topology.links.iter().enumerate() {
            let ([a, b], length) = (link.ends, metres(link.delay_ns));
            let is_in = |node: usize| self.topology.is_switch[node] || self.hosts.contains(&node);
            if !is_in(a) || !is_in(b) {
                continue;
            }
            let end = match [a, b].map(|node| self.topology.is_switch[node]) {
                [true, true] => {
                    let [a, b] = [a, b].map(|node| self.port(node, number));
                    let _ = writeln!(links, "  - {{a: {a}, b: {b}, length: {length}}}");
                    a
                }
                [false, true] => self.host(&mut hosts, a, b, number, &length),
                [true, false] => self.host(&mut hosts, b, a, number, &length),
                [false, false] => continue,
            };
            let loss = if link.loss > 0.0 { link.loss } else { self.settings.error_rate };
            if loss > 0.0 {
                let chance = (loss * 100.0).clamp(0.0001, 100.0);
                let _ = writeln!(faults, "  - {{at: 0ns, lose: {end}, what: any, chance: {chance:.4}%}}");
            }
            if let Some((us, x, y)) = self.settings.link_down
                && (link.ends == [x, y] || link.ends == [y, x])
            {
                let at = (2_000_000_000 + us * 1000).saturating_sub(epoch_ns);
                let _ = writeln!(faults, "  - {{at: {at}ns, down: {end}}}");
            }
        }
        for host in &self.hosts {
            text += hosts.get(host).map_or("", String::as_str);
        }
        if !links.is_empty() {
            let _ = write!(text, "links:\n{links}");
        }
        if !faults.is_empty() {
            let _ = write!(text, "faults:\n{faults}");
        }
        text
    }

    /// Adds the line of `host` at a port of `switch`. Returns the port.
    fn host(
        &self,
        hosts: &mut HashMap<usize, String>,
        host: usize,
        switch: usize,
        link: usize,
        length: &str,
    ) -> String {
        let port = self.port(switch, link);
        hosts.insert(host, format!("  - {{name: h{host}, at: {port}, length: {length}}}\n"));
        port
    }

    fn write_switch(&self, text: &mut String, switch: usize, sizing: Sizing) {
        let ports = &self.ports[&switch];
        let mtu = (self.settings.payload_bytes + HEADERS + inband::LEN as u64).clamp(1500, 9216);
        let _ = writeln!(text, "  - name: s{switch}\n    poll: {{every: {POLL}}}\n    config:\n      preset: roce");
        let Sizing { buffer_mib, cell_bytes } = sizing;
        let _ = writeln!(text, "      buffer: {{size: {buffer_mib}MiB, cell: {cell_bytes}B, lossy: 5%}}");
        let _ = writeln!(text, "      lcores: {{poll_gap: 1us}}\n      classes:");
        let groups: HashSet<u8> = self.flows.iter().map(|flow| flow.group).chain([3]).collect();
        let ecn = self.ecn_of(switch).map_or("off".to_owned(), |ecn| {
            let (kmin, kmax, pmax) = (ecn.kmin_kb, ecn.kmax_kb, ecn.pmax * 100.0);
            format!("{{kmin: {kmin}kB, kmax: {kmax}kB, pmax: {pmax:.2}%}}")
        });
        let telemetry = if self.settings.cc_mode == CcMode::Hpcc { "hpcc" } else { "off" };
        for group in (0..8).filter(|group| groups.contains(group)) {
            let _ =
                writeln!(text, "        {group}: {{lossless: true, alpha: 1/8, ecn: {ecn}, telemetry: {telemetry}}}");
        }
        text.push_str("      ports:\n");
        for (place, (link, _)) in ports.iter().enumerate() {
            let link = &self.topology.links[*link];
            let (speed, cable) = (self.wire_rate(link.rate).0 / 1000, metres(link.delay_ns));
            let _ = writeln!(text, "        - {{name: p{}, speed: {speed}k, cable: {cable}, mtu: {mtu}}}", place + 1);
        }
    }

    /// Gives the switches the `rules` and sizes of HPCC's simulator, if there are any rules. Hosts then obey pauses at
    /// once, as there: its headroom has no room for the response of real ones.
    fn give_rules(&self, scenario: &mut Scenario, rules: HpccRules, sizes: MmuSizes) -> Result<(), ConfigErrors> {
        if sizes == MmuSizes::Holdfast {
            scenario.switches.iter_mut().for_each(|switch| mmu::follow(&mut switch.config.switch, rules));
            return Ok(());
        }
        let Some(nic) = sizes::nic_rate(self.topology).filter(|_| !rules.is_empty()) else { return Ok(()) };
        for (number, switch) in self.switches.iter().zip(&mut scenario.switches) {
            let links: Vec<_> = self.ports[number].iter().map(|(link, _)| self.topology.links[*link]).collect();
            let buffer = Bytes(self.settings.buffer_mib << 20);
            let applied = sizes::apply(&mut switch.config.switch, &links, Given { nic, buffer }, rules);
            applied.map_err(|message| self.error(format!("switch {number}: {message}")))?;
        }
        scenario.hosts.iter_mut().for_each(|host| host.response = Some(Nanos(0)));
        Ok(())
    }

    /// The rate of a link of `rate`. With the sizes of HPCC's simulator it carries as many packets a second as there,
    /// where their headers are smaller and a wire has no preamble and no gap.
    pub fn wire_rate(&self, rate: BitRate) -> BitRate {
        if self.sizes == MmuSizes::Holdfast {
            return rate;
        }
        let settings = self.settings;
        let there = settings.payload_bytes + PUBLISHED_HEADERS + settings.cc_mode.published_notes();
        let here = settings.payload_bytes + overhead(settings) + WIRE_OVERHEAD;
        let rate = (u128::from(rate.0) * u128::from(here) / u128::from(there)) as u64;
        // The fastest port that a switch has.
        BitRate(rate.min(FASTEST.0))
    }

    /// The thresholds of a switch: those of its slowest ports, because a queue has the same on every port.
    fn ecn_of(&self, switch: usize) -> Option<Ecn> {
        self.slowest(switch).and_then(|rate| self.ecn(rate)).filter(|_| self.settings.ecn_enabled)
    }

    /// The rate of the link of each host: it has one.
    pub fn host_rates(&self) -> HashMap<usize, BitRate> {
        self.topology.links.iter().flat_map(|link| link.ends.map(|end| (end, link.rate))).collect()
    }

    /// The rates of the ports of all switches.
    fn rates(&self) -> impl Iterator<Item = u64> + '_ {
        let ports = self.switches.iter().flat_map(|switch| &self.ports[switch]);
        ports.map(|(link, _)| self.topology.links[*link].rate.0)
    }

    /// The rate of the slowest port of a switch.
    fn slowest(&self, switch: usize) -> Option<u64> {
        self.ports[&switch].iter().map(|(link, _)| self.topology.links[*link].rate.0).min()
    }

    /// The thresholds of ports of `rate`.
    fn ecn(&self, rate: u64) -> Option<Ecn> {
        self.settings.ecn.iter().find(|ecn| ecn.rate == rate).copied()
    }
}

/// Writes a delay as the length of a cable.
fn metres(delay_ns: f64) -> String {
    format!("{:.0}cm", delay_ns / NS_PER_M * 100.0)
}

/// Bytes of a packet that are not payload.
pub(super) fn overhead(settings: &Settings) -> u64 {
    HEADERS + if settings.cc_mode == CcMode::Hpcc { inband::LEN as u64 } else { 0 }
}
