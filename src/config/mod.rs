//! Configuration: one YAML file to a [`Config`] that is known to be right, or to every reason why it is not.
//!
//! `yaml` makes a tree with places, `read` reads it by key and collects what is wrong, one module for each part of the
//! file says what is right, and `buffer` proves that the sums fit.

mod buffer;
mod classes;
mod error;
mod hosts;
pub mod model;
mod names;
mod ports;
mod preset;
mod range;
mod read;
mod system;
mod yaml;

use std::path::Path;

pub use error::{ConfigError, ConfigErrors, Place};
pub use model::{Config, DeviceKind, EalConfig, LcoreConfig, MemoryMode, PortDevice};

use self::classes::Class;
use self::names::Unique;
use self::ports::Port;
use self::preset::Preset;
use self::read::{Item, Report};
use self::yaml::{Node, Shape};
use crate::dataplane::{PortSpec, QueueSpec, SwitchSpec};
use crate::mmu::{GroupProfile, HeadroomPolicy, PortProfile, QueueLimit, Threshold};
use crate::pfc::PfcMode;
use crate::qos::{CLASSES, MarkMap, Rewrite};
use crate::units::Cells;

const KEYS: &[&str] = &["preset", "ports", "buffer", "classes", "maps", "fdb", "lcores", "eal", "metrics", "hosts"];

/// No configuration of 64 ports comes near it.
const LARGEST_FILE: usize = 1 << 20;

const EMBEDDED_SOURCE: &str = "<embedded>";

/// Reads and checks a file.
///
/// # Errors
/// All that is wrong with it, or that it cannot be read.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    let source = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        let remedy = if path.is_dir() { "name a file" } else { "check the path and its permissions" };
        ConfigErrors::one(&source, None, format!("cannot be read: {}; {remedy}", reason(&error)))
    })?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let place = place_after(&bytes[..error.valid_up_to()]);
        ConfigErrors::one(&source, Some(place), "not UTF-8 text; save the file as UTF-8".to_owned())
    })?;
    parse(&source, text)
}

/// Checks a configuration that is at hand; `source` stands for the file in errors.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(source: &str, text: &str) -> Result<Config, ConfigErrors> {
    let start = Some(Place { line: 1, column: 1 });
    if text.len() > LARGEST_FILE {
        let message = format!("{} bytes are more than a configuration needs; write at most 1MiB", text.len());
        return Err(ConfigErrors::one(source, start, message));
    }
    let root = yaml::parse(source, text)?;
    if matches!(root.shape, Shape::Null) {
        let message = "there is nothing in it; write at least `preset: roce` and `ports:`".to_owned();
        return Err(ConfigErrors::one(source, start, message));
    }
    let report = Report::new(source);
    let config = build(source, &root, &report);
    let warnings = report.finish()?;
    match config {
        Some(config) => Ok(Config { warnings, ..config }),
        // Not reached: nothing is left out without an error. Yet no user's input may be a reason to panic.
        None => Err(ConfigErrors::one(source, start, "not a configuration".to_owned())),
    }
}

/// The configuration inside the program: an incast over in-process ports.
///
/// # Panics
/// Never: a test parses it.
#[must_use]
pub fn embedded() -> Config {
    match parse(EMBEDDED_SOURCE, include_str!("../../conf/incast.yaml")) {
        Ok(config) => config,
        Err(errors) => panic!("the embedded configuration is wrong: {errors}"),
    }
}

/// An error of the operating system without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

fn place_after(valid: &[u8]) -> Place {
    let text = String::from_utf8_lossy(valid);
    let last = text.rsplit('\n').next().unwrap_or_default();
    let line = 1 + text.matches('\n').count();
    Place { line: line as u64, column: 1 + last.chars().count() as u64 }
}

fn build(source: &str, root: &Node, report: &Report) -> Option<Config> {
    let root = Item::root(root, report);
    let top = root.fields(KEYS)?;
    let preset = top.get("preset").and_then(|item| item.choice(&[("roce", Preset::Roce)])).unwrap_or(Preset::None);
    let classes = classes::read(top.get("classes"), preset);
    let (marks, maps) = classes::read_maps(top.get("maps"), &classes);
    let mut macs = Unique::new("MAC address");
    let ports = ports::read(top.required("ports", "ports: [{name: p1, device: ring, speed: 10G}]"), &mut macs);
    let lcores = system::read_lcores(top.get("lcores"));
    let eal = system::read_eal(top.get("eal"));
    let metrics = system::read_metrics(top.get("metrics"));
    let fdb = system::read_fdb(top.get("fdb"), &ports);
    let hosts = hosts::read(top.get("hosts"), &ports, &marks, &mut macs);
    let buffer = buffer::read(top.get("buffer"), &root);
    ports::check_classes(&ports, &classes);
    if report.has_errors() {
        // The sums would be wrong too, and say nothing new.
        return None;
    }
    let (plan, groups) = buffer::plan(&buffer, &ports, &classes, lcores.poll_gap)?;
    let devices = ports.iter().map(|port| port.device.clone()).collect();
    let ports = ports
        .into_iter()
        .zip(groups)
        .map(|(port, groups)| PortSpec { marks: marks.clone(), ..port_spec(port, groups) })
        .collect();
    let queues = std::array::from_fn(|class| queue_spec(&classes[class]));
    let switch = SwitchSpec { ports, buffer: plan, classes: maps, queues, fdb, poll_gap: lcores.poll_gap, lcores: 1 };
    let source = source.to_owned();
    Some(Config { source, switch, devices, eal, lcores, metrics, hosts, warnings: Vec::new() })
}

fn port_spec(port: Port<'_>, groups: [GroupProfile; CLASSES]) -> PortSpec {
    PortSpec {
        name: port.name,
        mac: port.mac,
        rate: port.rate,
        mtu: port.mtu,
        trust: port.trust,
        port_class: port.class,
        vlan: port.vlan,
        marks: MarkMap::identity(),
        rewrite: Rewrite::default(),
        pfc: if port.pfc { PfcMode::Symmetric } else { PfcMode::Off },
        watchdog: None,
        buffer: PortProfile {
            groups,
            reserve: [Cells(0); 2],
            policy: HeadroomPolicy::Independent,
            insurance: Cells(0),
        },
        backlog_mark: None,
        lcore: 0,
    }
}

fn queue_spec(class: &Class<'_>) -> QueueSpec {
    let settings = &class.settings;
    QueueSpec {
        discipline: settings.scheduler,
        wred: settings.wred,
        limit: (!settings.lossless).then_some(QueueLimit { threshold: Threshold::Dynamic(settings.queue_alpha) }),
        reserve: Cells(0),
    }
}
