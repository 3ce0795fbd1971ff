//! From the tree of a file to the configuration: sections are read, checked together, and planned.

use super::checks::{max_rates, paths, summary};
use super::keys::Key;
use super::model::{ApiConfig, BufferSummary, Config, DeviceKind, EalConfig, FaultsConfig};
use super::overrides::Overrides;
use super::sections::buffer::{Buffer, Plan};
use super::sections::draft::{Class, Common, Lcores, Port, Sflow};
use super::sections::lags::Lags;
use super::sections::lldp::Lldp;
use super::sections::maps::Maps;
use super::sections::mirrors::Mirrors;
use super::sections::ports::Context;
use super::sections::preset::Preset;
use super::sections::routing::Routing;
use super::sections::{
    api, buffer, classes, faults, fdb, filter, hosts, lags, lcores, lldp, maps, mirrors, nic, ports, queue_policy,
    routing, sflow, storm_control, stuck, system, watchdog,
};
use super::yaml::names::Unique;
use super::yaml::read::{Fields, Item};
use crate::forward::FdbSpec;
use crate::headroom::reaction_over;
use crate::hosts::HostSpec;
use crate::mmu::{AbmSpec, HpccRules, PortProfile, QueueLimit};
use crate::pfc::PfcMode;
use crate::plan::{PortLive, PortSpec, QueueSpec, SwitchSpec};
use crate::qos::FloodLimits;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, Cells, Nanos};
use std::net::SocketAddr;

pub(super) const KEYS: &[Key] = &[
    Key::new("preset", "none", "", "`roce`"),
    Key::new("ports", "required", "", "1 to 64"),
    Key::new("buffer", "12 MiB", "", "packet buffer and its division"),
    Key::new("classes", "the preset's", "", "settings by class, 0 to 7"),
    Key::new("maps", "class = DSCP / 8", "", "marks to classes, classes to groups and queues"),
    Key::new("watchdog", "the preset's", "", "for peers that never resume"),
    Key::new("stuck_after", "`500ms`", "", "for devices that take no frames"),
    Key::new("storm_control", "`off`", "", "[limits](#storm_control) of flooded frames"),
    Key::new("filter", "", "", "[checks](#filter) of bridged frames"),
    Key::new("fdb", "", "", "forwarding database"),
    Key::new("lcores", "", "", "polling threads: CPUs, poll gap, backlog, rests"),
    Key::new("eal", "", "", "memory and arguments of DPDK"),
    Key::new(
        "metrics",
        "`127.0.0.1:9464`",
        "",
        "address of `/metrics` (port 0: any free), or `off`; `--metrics` overrides it",
    ),
    Key::new("api", "on", "", "Unix socket of the [API](api.md)"),
    Key::new("lldp", "on", "", "[neighbours](#lldp)"),
    Key::new("loop_guard", "`block`", "", "answer to [loops](lldp.md#loops): `block`, `alert` or `off`"),
    Key::new(
        "loop_probe",
        "`1s`; `off` with `lldp: off`",
        "",
        "time between two [probes](lldp.md#probes) of loops at a port: `100ms` to `60s`, or `off`",
    ),
    Key::new("faults", "`off`", "", "[fault injection](#faults): `allowed`, `off`, a list, or a mapping"),
    Key::new("lags", "none", "", "[link aggregation groups](lag.md)"),
    Key::new("lag_hash", "", "", "[choice of members](lag.md#flows)"),
    Key::new("mirrors", "none", "", "[copies of frames](#mirrors) to ports and files"),
    Key::new("sflow", "`off`", "", "[agent of sFlow](#sflow): a mapping, or `off`"),
    Key::new("hosts", "none", "", "virtual hosts on `ring` ports"),
    Key::new("routing", "none", "", "[router](#routing)"),
];

/// The sections of a file, each with its values checked.
struct Sections<'a> {
    classes: [Class<'a>; CLASSES],
    maps: Maps<'a>,
    lcores: Lcores<'a>,
    ports: Vec<Port<'a>>,
    lags: Lags,
    mirrors: Mirrors,
    sflow: Option<Sflow>,
    routing: Option<Routing<'a>>,
    eal: EalConfig,
    metrics: Option<SocketAddr>,
    api: ApiConfig,
    lldp: Lldp,
    faults: Option<FaultsConfig>,
    fdb: FdbSpec,
    hosts: Vec<HostSpec>,
    buffer: Buffer<'a>,
}

/// Memory and limits that follow from all sections.
struct Planned {
    plan: Plan,
    /// Time that the peer of each port has to stop at XOFF.
    reactions: Vec<Nanos>,
    /// The receive backlog of each port, in frames, from which its peer is stopped; `None`: never.
    marks: Vec<Option<u32>>,
    summary: BufferSummary,
}

/// Builds the configuration from `root`; `None`, with errors in its report, if it is invalid. Warnings go to the
/// report.
pub fn build(root: &Item<'_>, overrides: &Overrides) -> Option<Config> {
    let report = root.report();
    let errors = report.errors();
    let top = root.fields(KEYS)?;
    let sections = Sections::read(root, &top, overrides);
    sections.check(&top);
    if report.errors() > errors {
        // The sums would be wrong too, and their errors would add nothing.
        return None;
    }
    let planned = sections.plan(root, overrides)?;
    Some(sections.assemble(planned, report.source(), overrides))
}

impl<'a> Sections<'a> {
    /// Reads the sections of `top`. A section may complete the ports that were read before.
    fn read(root: &Item<'a>, top: &Fields<'a>, overrides: &Overrides) -> Self {
        let preset = top.get("preset").and_then(|item| item.choice(&[("roce", Preset::Roce)])).unwrap_or(Preset::None);
        let classes = classes::read(top.get("classes"), preset);
        let maps = maps::read(top.get("maps"));
        let watchdog = watchdog::read(top.get("watchdog"), preset);
        let lcores = lcores::read(top.get("lcores"), overrides);
        let stuck_after = stuck::of_switch(top.get("stuck_after"));
        let flood_limits = storm_control::read(top.get("storm_control"), FloodLimits::default());
        let checks_l4 = filter::read(top.get("filter"));
        let context =
            Context { maps: &maps, watchdog, stuck_after, flood_limits, checks_l4, lcores: &lcores, overrides };
        let mut macs = Unique::new("MAC address");
        let ports = top.required("ports", "ports: [{name: p1, device: ring, speed: 10G}]");
        let mut ports = ports::read(ports, &mut macs, &context);
        let lags = lags::read(top.get("lags"), top.get("lag_hash"), &mut ports, overrides);
        let mirrors = mirrors::read(top.get("mirrors"), &mut ports);
        let sflow = sflow::read(top.get("sflow"), &ports);
        let routing = routing::read(top.get("routing"), &mut ports, &mut macs);
        let eal = system::read_eal(top.get("eal"));
        let metrics = system::read_metrics(top.get("metrics"));
        let api = api::read(top.get("api"));
        let lldp = lldp::read(top.get("lldp"), top.get("loop_guard"), top.get("loop_probe"));
        lldp::of_ports(&lldp, &mut ports, routing.as_ref().map(|routing| &routing.spec));
        let faults = faults::read(top.get("faults"), &fault_ports(&ports, &classes, &maps));
        let fdb = fdb::read(top.get("fdb"), &mut ports, routing.as_ref());
        let hosts = hosts::read(top.get("hosts"), &ports, &maps.classes, &mut macs, overrides.simulated);
        let buffer = buffer::read(top.get("buffer"), root, overrides);
        Self {
            classes,
            maps,
            lcores,
            ports,
            lags,
            mirrors,
            sflow,
            routing,
            eal,
            metrics,
            api,
            lldp,
            faults,
            fdb,
            hosts,
            buffer,
        }
    }

    /// Checks the rules between sections.
    fn check(&self, top: &Fields<'a>) {
        let Self { classes, maps, lcores, ports, buffer, .. } = self;
        maps.check(classes);
        maps.check_ports(ports, classes);
        ports::check_classes(ports, classes);
        nic::check(ports, classes, maps, self.faults.is_some());
        ports::check_absent(ports);
        self.mirrors.check(top.get("mirrors"), classes);
        max_rates::check(ports, classes, maps, lcores.config.poll_gap);
        queue_policy::check(buffer.queue_policy.as_ref(), ports, classes);
        if self.routing.is_some() {
            classes::refuse_routed_congestion_points(classes);
        }
    }

    /// Divides the buffer, and checks what depends on the division. `None`, with errors in the report of `root`, if it
    /// cannot be divided.
    fn plan(&self, root: &Item<'a>, overrides: &Overrides) -> Option<Planned> {
        let Self { classes, maps, lcores, ports, buffer, .. } = self;
        paths::check(ports, maps, classes);
        lcores.warn_of_idle(ports, root);
        let common = Common {
            cell: buffer.cell(),
            poll_gap: lcores.config.poll_gap,
            small_packets: buffer.small_packets,
            has_congestion_points: classes.iter().any(|class| class.settings.qcn.is_some()),
        };
        let plan = buffer::plan(buffer, ports, classes, maps, &common)?;
        let marks = backlog_marks(ports, &plan, lcores, &common);
        // A late poll harms no other port: its frames wait at their sender, or are lossy.
        let is_guarded = |port: &Port<'_>, profile| port.pfc.sends_frames() && is_lossless(profile);
        let guarded: Vec<bool> =
            ports.iter().zip(&plan.ports).map(|(port, profile)| is_guarded(port, profile)).collect();
        lcores.check_idle(ports, &guarded);
        ports::warn_of_lapses(ports, &guarded, &common);
        let summary = summary::read(buffer, &plan, ports, classes, maps, &common);
        let reactions = ports.iter().map(|port| reaction_of(port, &common, overrides.simulated)).collect();
        Some(Planned { plan, reactions, marks, summary })
    }

    /// The configuration of the file `source`.
    fn assemble(self, planned: Planned, source: &str, overrides: &Overrides) -> Config {
        let devices = self.ports.iter().map(|port| port.device.clone()).collect();
        let (mirror, targets) = mirrors::assemble(self.mirrors, self.sflow, overrides.simulated);
        let (routing, router_defaults) = self.routing.map(|routing| (routing.spec, routing.defaults)).unzip();
        let abm = self.buffer.queue_policy.as_ref().map(|(_, spec)| *spec);
        let (classes, [_, queues]) = (&self.classes, self.maps.used());
        let mut ports = port_specs(self.ports, classes, queues, &planned);
        let Planned { plan, summary, .. } = planned;
        if overrides.pfc == Some(PfcMode::Off) {
            ports = ports.into_iter().map(without_pfc).collect();
        }
        let switch = SwitchSpec {
            queues: std::array::from_fn(|class| {
                let limit = queue_limit(&classes[class], abm, plan.buffer.cell);
                queue_spec(&classes[class], plan.queue_reserves[class], limit)
            }),
            buffer: plan.buffer,
            ports,
            classes: self.maps.classes,
            fdb: self.fdb,
            lags: self.lags.spec,
            poll_gap: self.lcores.config.poll_gap,
            lcores: self.lcores.count,
            floods_lossless: false,
            hpcc: HpccRules::NONE,
            abm,
            reverie: false,
            telemetry_queues: (0..CLASSES).filter(|&class| classes[class].settings.telemetry).collect(),
            congestion_points: std::array::from_fn(|class| classes[class].settings.qcn),
            routing,
            mirror,
        };
        Config {
            source: source.to_owned(),
            text: String::new(),
            overrides: Vec::new(),
            switch,
            devices,
            eal: self.eal,
            lcores: self.lcores.config,
            metrics: self.metrics,
            api: self.api,
            lldp: self.lldp.config,
            faults: self.faults,
            mirror: targets,
            lacp: self.lags.lacp,
            has_lag_seed: self.lags.has_seed,
            hosts: self.hosts,
            router_defaults: router_defaults.unwrap_or_default(),
            summary,
            warnings: Vec::new(),
        }
    }
}

/// The ports that faults may name, and the priorities of lossless classes.
fn fault_ports<'a>(ports: &'a [Port<'_>], classes: &[Class<'_>; CLASSES], maps: &Maps<'_>) -> faults::FaultPorts<'a> {
    let lossless = (0..CLASSES).filter(|&class| classes[class].settings.lossless);
    let priorities = lossless.map(|class| usize::from(maps.classes.tc_to_group[class] & 7)).collect();
    faults::FaultPorts { names: ports.iter().map(|port| port.name.as_str()).collect(), priorities }
}

/// Whether a port has lossless groups.
fn is_lossless(profile: &PortProfile) -> bool {
    profile.groups.iter().any(|group| group.lossless)
}

/// See [`Planned::marks`].
fn backlog_marks(ports: &[Port<'_>], plan: &Plan, lcores: &Lcores<'_>, common: &Common) -> Vec<Option<u32>> {
    let parts = ports.iter().zip(&plan.ports);
    parts.map(|(port, profile)| lcores.backlog_mark(port, is_lossless(profile), common)).collect()
}

/// Time that the peer of `port` has to stop at XOFF.
fn reaction_of(port: &Port<'_>, common: &Common, simulated: bool) -> Nanos {
    let is_wire = simulated || matches!(port.device.kind, DeviceKind::Pci(_));
    reaction_over(&port.headroom_input(common), is_wire)
}

/// The ports as the dataplane takes them.
fn port_specs(
    ports: Vec<Port<'_>>,
    classes: &[Class<'_>; CLASSES],
    queues: ClassSet,
    planned: &Planned,
) -> Vec<PortSpec> {
    let watchdogs = watchdog::of_ports(&ports);
    let parts = ports.into_iter().zip(watchdogs).enumerate();
    let specs = parts.map(|(index, (mut port, watchdog))| {
        port.live.max_rates = max_rates::of_port(&port, classes, queues);
        port.live.watchdog = watchdog;
        port_spec(port, index, planned)
    });
    specs.collect()
}

/// Port number `index` as it is planned.
fn port_spec(port: Port<'_>, index: usize, planned: &Planned) -> PortSpec {
    PortSpec {
        name: port.name,
        mac: port.mac,
        rate: port.rate,
        mtu: port.mtu,
        checks_l4: port.checks_l4,
        vlan: port.vlan,
        pfc: port.pfc,
        reaction: planned.reactions[index],
        fdb_limit: port.fdb_limit.unwrap_or(u32::MAX),
        buffer: planned.plan.ports[index],
        backlog_mark: planned.marks[index],
        ring_frames: Some(port.device.rx_descriptors),
        is_absent: port.device.kind == DeviceKind::Absent,
        rx_queues: port.device.queues,
        tx_queues: port.device.tx_queues,
        lcore: port.lcore,
        live: port.live,
    }
}

fn without_pfc(port: PortSpec) -> PortSpec {
    let live = PortLive { watchdog: None, ..port.live };
    PortSpec { pfc: PfcMode::Off, backlog_mark: None, live, ..port }
}

/// The limit of the queue of a lossy class.
fn queue_limit(class: &Class<'_>, abm: Option<AbmSpec>, cell: Bytes) -> Option<QueueLimit> {
    let threshold = class.settings.queue_limit.threshold(cell);
    let limit = QueueLimit { threshold, abm: abm.is_some() && queue_policy::is_limited(class) };
    (!class.settings.lossless).then_some(limit)
}

fn queue_spec(class: &Class<'_>, reserve: Cells, limit: Option<QueueLimit>) -> QueueSpec {
    let settings = &class.settings;
    QueueSpec { discipline: settings.scheduler, wred: settings.wred, limit, reserve }
}
