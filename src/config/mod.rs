//! Configuration: turns one YAML file into a checked [`Config`], or into the list of all its errors.
//!
//! `yaml` parses a tree with positions, reads it by key and collects errors. `sections` has a file for each section of
//! the YAML, which checks its values. `checks` has the rules that concern several sections.
//!
//! # Example
//!
//! ```
//! use holdfast::config;
//!
//! let text = r#"ports: [{name: p1, device: "net_tap0", speed: 25G}, {name: p2, device: "net_tap1", speed: 10G}]"#;
//! let config = config::parse("rack.yaml", text).expect("it is valid");
//! assert_eq!(config.switch.ports.len(), 2);
//! let errors = config::parse("rack.yaml", "ports: [{name: p1, device: ring, speed: 25Q}]").unwrap_err();
//! assert!(errors.to_string().contains("rack.yaml:1:"), "{errors}");
//! ```

pub mod checks;
pub(crate) mod error;
pub mod mirror_words;
pub mod model;
pub(crate) mod overrides;
mod restart_only;
mod routing_settings;
pub mod sections;
pub mod settings;
pub mod words;
pub(crate) mod yaml;

use std::path::Path;

pub use error::{ConfigError, ConfigErrors, Place, Subject, Warning};
pub use model::{
    ApiConfig, BufferSummary, Config, DeviceKind, EalConfig, EcnOrder, FaultsConfig, HostsLcore, IdleConfig, IdleWait,
    LacpConfig, LcoreConfig, LldpConfig, LoopGuard, MemoryMode, PortDevice, RouterDefaults,
};
pub use overrides::Overrides;
pub use sections::api::{MAX_SOCKET_PATH, Socket};
pub use sections::faults::{check_syntax as check_fault_syntax, read_request as read_faults};
pub use sections::lcores::MAX_LCORES;
pub use sections::policy::{Pool, Ratio, headroom_sum, policy_name};

use self::checks::{paths, summary};
use self::sections::classes::Class;
use self::sections::ports::{Common, Context, Port};
use self::sections::preset::Preset;
use self::sections::{
    api, buffer, classes, faults, fdb, filter, hosts, lags, lcores, lldp, maps, max_rate, mirrors, ports, queue_policy,
    routing, sflow, storm, stuck, system, watchdog,
};
use self::yaml::count;
use self::yaml::names::Unique;
use self::yaml::read::{Item, Report};
use self::yaml::{Node, Shape};
use crate::dataplane::{PortSpec, QueueSpec, SwitchSpec};
use crate::mmu::{AbmSpec, PortProfile, QueueLimit};
use crate::pfc::{PfcMode, WatchdogSpec};
use crate::qos::StormLimits;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, Cells};

const KEYS: &[&str] = &[
    "preset",
    "ports",
    "buffer",
    "classes",
    "maps",
    "watchdog",
    "stuck_after",
    "storm_control",
    "filter",
    "fdb",
    "lcores",
    "eal",
    "metrics",
    "api",
    "lldp",
    "loop_guard",
    "loop_probe",
    "faults",
    "lags",
    "lag_hash",
    "mirrors",
    "sflow",
    "hosts",
    "routing",
];

/// Reads and checks a file.
///
/// # Errors
/// All errors in the file, or the reason why it cannot be read.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    Overrides::default().load(path)
}

/// Checks a configuration text; `source` stands for the file in errors.
///
/// # Errors
/// All errors in the text.
pub fn parse(source: &str, text: &str) -> Result<Config, ConfigErrors> {
    Overrides::default().parse(source, text)
}

/// The configuration built into the program: an incast over in-process ports.
///
/// # Panics
/// Never: a test parses it.
#[must_use]
pub fn embedded() -> Config {
    match Overrides::default().embedded() {
        Ok(config) => config,
        Err(errors) => panic!("the embedded configuration is invalid: {errors}"),
    }
}

/// Turns `text` into a configuration, or into all errors in it.
fn check(source: &str, text: &str, overrides: &Overrides) -> Result<Config, ConfigErrors> {
    let start = Some(Place { line: 1, column: 1 });
    let root = tree(source, text)?;
    if matches!(root.shape, Shape::Null) {
        let message = "the configuration is empty; write at least `preset: roce` and `ports:`".to_owned();
        return Err(ConfigErrors::one(source, start, message));
    }
    let report = Report::new(source);
    let config = build(&Item::root(&root, &report), overrides);
    let warnings = report.finish()?.iter().map(Warning::to_string).collect();
    match config {
        Some(config) => Ok(Config { warnings, text: text.to_owned(), ..config }),
        // Not reached: every omission reports an error. Still, no user input may cause a panic.
        None => Err(ConfigErrors::one(source, start, "not a configuration".to_owned())),
    }
}

/// Parses `text` into a tree in which every counted item is expanded.
pub(crate) fn tree(source: &str, text: &str) -> Result<Node, ConfigErrors> {
    let written = yaml::parse(source, text)?;
    let report = Report::new(source);
    let root = count::expand(&Item::root(&written, &report));
    // Further errors would concern items that do not exist.
    report.finish().map(|_| root)
}

/// Builds the configuration from `root`; `None`, with errors in its report, if it is invalid. Warnings go to the
/// report.
pub(crate) fn build(root: &Item<'_>, overrides: &Overrides) -> Option<Config> {
    let report = root.report();
    let errors = report.errors();
    let top = root.fields(KEYS)?;
    let preset = top.get("preset").and_then(|item| item.choice(&[("roce", Preset::Roce)])).unwrap_or(Preset::None);
    let classes = classes::read(top.get("classes"), preset);
    let maps = maps::read(top.get("maps"));
    let watchdog = watchdog::read(top.get("watchdog"), preset);
    let lcores = lcores::read(top.get("lcores"), overrides);
    let stuck_after = stuck::of_switch(top.get("stuck_after"));
    let storm_limits = storm::read(top.get("storm_control"), StormLimits::default());
    let checks_l4 = filter::read(top.get("filter"));
    let context = Context { maps: &maps, watchdog, stuck_after, storm_limits, checks_l4, lcores: &lcores, overrides };
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
    let lldp = lldp::read(top.get("lldp"), (top.get("loop_guard"), top.get("loop_probe")));
    lldp::of_ports(&lldp, &mut ports, routing.as_ref().map(|routing| &routing.spec));
    let faults = faults::read(top.get("faults"), &fault_ports(&ports, &classes, &maps));
    let fdb = fdb::read(top.get("fdb"), &mut ports, routing.as_ref());
    let hosts = hosts::read(top.get("hosts"), &ports, &maps.classes, &mut macs, overrides.simulated);
    let buffer = buffer::read(top.get("buffer"), root, overrides);
    maps.check(&classes);
    maps.check_ports(&ports, &classes);
    ports::check_classes(&ports, &classes);
    mirrors.check(top.get("mirrors"), &classes);
    max_rate::check(&ports, &classes, &maps, lcores.config.poll_gap);
    queue_policy::check(buffer.queue_policy.as_ref(), &ports, &classes);
    if routing.is_some() {
        classes::refuse_routed_congestion_points(&classes);
    }
    if report.errors() > errors {
        // The sums would be wrong too, and their errors would add nothing.
        return None;
    }
    paths::check(&ports, &maps, &classes);
    lcores.warn_of_idle(&ports, root);
    let poll_gap = lcores.config.poll_gap;
    let common = Common {
        cell: buffer.cell(),
        poll_gap,
        small_packets: buffer.small_packets,
        has_congestion_points: classes.iter().any(|class| class.settings.qcn.is_some()),
    };
    let plan = buffer::plan(&buffer, &ports, &classes, &maps, &common)?;
    let marks = backlog_marks(&ports, &plan, &lcores, &common);
    // A late poll harms no other port: its frames wait at their sender, or are lossy.
    let guarded: Vec<bool> =
        ports.iter().zip(&plan.ports).map(|(port, profile)| port.pfc.sends_frames() && is_lossless(profile)).collect();
    lcores.check_idle(&ports, &guarded);
    ports::warn_of_lapses(&ports, &guarded, &common);
    let summary = summary::read(&buffer, &plan, &ports, &classes, &maps, &common);

    let (mirror, targets) = mirrors::assemble(mirrors, sflow, overrides.simulated);
    let (routing, router_defaults) = routing.map(|routing| (routing.spec, routing.defaults)).unzip();
    let devices = ports.iter().map(|port| port.device.clone()).collect();
    let abm = buffer.queue_policy.as_ref().map(|(_, spec)| *spec);
    let [_, queues] = maps.used();
    let switch = SwitchSpec {
        queues: std::array::from_fn(|class| {
            let limit = queue_limit(&classes[class], abm, plan.buffer.cell);
            queue_spec(&classes[class], plan.queue_reserves[class], limit)
        }),
        buffer: plan.buffer,
        ports: port_specs(ports, (&classes, queues), (&plan.ports, marks), overrides),
        classes: maps.classes,
        fdb,
        lags: lags.spec,
        poll_gap,
        lcores: lcores.count,
        floods_lossless: false,
        hpcc: crate::mmu::HpccRules::NONE,
        abm,
        reverie: false,
        telemetry_queues: (0..CLASSES).filter(|&class| classes[class].settings.telemetry).collect(),
        congestion_points: std::array::from_fn(|class| classes[class].settings.qcn),
        routing,
        mirror,
    };
    let (source, lcores) = (report.source().to_owned(), lcores.config);
    Some(Config {
        source,
        text: String::new(),
        overrides: Vec::new(),
        switch,
        devices,
        eal,
        lcores,
        metrics,
        api,
        lldp: lldp.config,
        faults,
        mirror: targets,
        lacp: lags.lacp,
        has_lag_seed: lags.has_seed,
        hosts,
        router_defaults: router_defaults.unwrap_or_default(),
        summary,
        warnings: Vec::new(),
    })
}

/// The ports that faults may name, and the priorities of lossless classes.
fn fault_ports<'a>(
    ports: &'a [Port<'_>],
    classes: &[Class<'_>; CLASSES],
    maps: &maps::Maps<'_>,
) -> faults::FaultPorts<'a> {
    let lossless = (0..CLASSES).filter(|&class| classes[class].settings.lossless);
    let priorities = lossless.map(|class| usize::from(maps.classes.tc_to_group[class] & 7)).collect();
    faults::FaultPorts { names: ports.iter().map(|port| port.name.as_str()).collect(), priorities }
}

/// Whether a port has lossless groups.
fn is_lossless(profile: &PortProfile) -> bool {
    profile.groups.iter().any(|group| group.lossless)
}

/// The receive backlog of each port, in frames, from which its peer is stopped; `None`: never.
fn backlog_marks(
    ports: &[Port<'_>],
    plan: &buffer::Plan,
    lcores: &lcores::Lcores<'_>,
    common: &Common,
) -> Vec<Option<u32>> {
    let parts = ports.iter().zip(&plan.ports);
    parts.map(|(port, profile)| lcores.backlog_mark(port, is_lossless(profile), common)).collect()
}

/// The ports as the dataplane takes them.
fn port_specs(
    ports: Vec<Port<'_>>,
    (classes, queues): (&[Class<'_>; CLASSES], ClassSet),
    (profiles, marks): (&[PortProfile], Vec<Option<u32>>),
    overrides: &Overrides,
) -> Vec<PortSpec> {
    let watchdogs = watchdog::of_ports(&ports);
    let parts = ports.into_iter().zip(profiles).zip(watchdogs).zip(marks);
    let specs = parts.map(|(((port, profile), watchdog), mark)| {
        let max_rates = max_rate::of_port(&port, classes, queues);
        let port = PortSpec { max_rates, ..port_spec(port, *profile, watchdog, mark) };
        if overrides.pfc == Some(PfcMode::Off) { without_pfc(port) } else { port }
    });
    specs.collect()
}

fn port_spec(
    port: Port<'_>,
    buffer: PortProfile,
    watchdog: Option<WatchdogSpec>,
    backlog_mark: Option<u32>,
) -> PortSpec {
    PortSpec {
        name: port.name,
        mac: port.mac,
        rate: port.rate,
        mtu: port.mtu,
        checks_l4: port.checks_l4,
        trust: port.trust,
        port_class: port.class,
        marks: port.marks,
        rewrite: port.rewrite,
        vlan: port.vlan,
        max_rates: [None; CLASSES],
        pfc: port.pfc,
        watchdog,
        stuck_after: port.stuck_after,
        storm_limits: port.storm_limits,
        fdb_limit: port.fdb_limit.unwrap_or(u32::MAX),
        buffer,
        backlog_mark,
        ring_frames: Some(port.device.rx_descriptors),
        rx_queues: port.device.queues,
        tx_queues: port.device.tx_queues,
        lcore: port.lcore,
    }
}

fn without_pfc(port: PortSpec) -> PortSpec {
    PortSpec { pfc: PfcMode::Off, watchdog: None, backlog_mark: None, ..port }
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
