//! The settings of a running switch one by one, and the differences to another configuration.
//!
//! Settings are compared after parsing, not as written: `preset: roce` and the same keys written out are equal.

use std::collections::BTreeMap;
use std::fmt;

use super::mirror_words;
use super::model::{Config, PortDevice};
use super::restart_only;
use super::routing_settings;
use super::words;
use crate::config::sections::device::chooses_queues;
use crate::config::yaml::exact::Exact;
use crate::mmu::{GroupProfile, Threshold};
use crate::plan::{PortSpec, SwitchSpec};
use crate::qos::{FloodKind, only_class};
use crate::sets::CLASSES;
use crate::units::{Cells, Nanos};

/// One setting that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Names of the ports that it concerns; empty: the whole switch.
    pub ports: Vec<String>,
    /// The setting, by its key in the configuration.
    pub key: String,
    /// The value that runs; `None` if there is no such setting.
    pub before: Option<String>,
    /// The value in the other configuration; `None` if there is no such setting.
    pub after: Option<String>,
    /// Whether it can change while the switch runs.
    pub is_live: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        let ports = if self.ports.is_empty() { String::new() } else { format!("{}: ", self.ports.join(", ")) };
        write!(f, "{ports}{}: {} -> {}", self.key, value(&self.before), value(&self.after))
    }
}

/// Settings by their port (`None`: the switch) and key.
type Settings = BTreeMap<(Option<String>, String), Setting>;

/// The value of a setting. Settings are equal if their exact values are; the text for people may be rounded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    text: String,
    exact: String,
    is_live: bool,
}

/// The differences between the running configuration and another one. A difference that is equal on several ports is
/// listed once.
#[must_use]
pub fn differences(running: &Config, wanted: &Config) -> Vec<Difference> {
    let (before, after) = (settings(running), settings(wanted));
    let places: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let mut found: Vec<Difference> = Vec::new();
    for place in places {
        let (old, new) = (before.get(place), after.get(place));
        if old.map(|setting| &setting.exact) == new.map(|setting| &setting.exact) {
            continue;
        }
        let is_seen = old.map(|setting| &setting.text) != new.map(|setting| &setting.text);
        let value = |setting: Option<&Setting>| {
            setting.map(|setting| if is_seen { &setting.text } else { &setting.exact }.clone())
        };
        let difference = Difference {
            ports: place.0.iter().cloned().collect(),
            key: place.1.clone(),
            before: value(old),
            after: value(new),
            is_live: old.into_iter().chain(new).all(|setting| setting.is_live),
        };
        let is_same = |other: &&mut Difference| {
            let same =
                |difference: &Difference| (difference.key.clone(), difference.before.clone(), difference.after.clone());
            !difference.ports.is_empty() && !other.ports.is_empty() && same(other) == same(&difference)
        };
        match found.iter_mut().find(is_same) {
            Some(other) => other.ports.extend(difference.ports),
            None => found.push(difference),
        }
    }
    found
}

/// A number that changes with any setting and with nothing else (64-bit FNV-1a over all of them). Neither wording nor
/// the address that a device brings along affects it.
#[must_use]
pub fn fingerprint(config: &Config) -> u64 {
    let own = |name: &String| {
        let mut ports = config.switch.ports.iter().zip(&config.devices);
        ports.any(|(port, device)| port.name == *name && !device.has_mac)
    };
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for ((port, key), setting) in settings(config) {
        if key == "mac" && port.as_ref().is_some_and(own) {
            continue;
        }
        // A zero byte, which no text contains, separates the parts.
        for part in [port.as_deref().unwrap_or_default(), &key, &setting.exact] {
            for byte in part.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    hash
}

fn settings(config: &Config) -> Settings {
    let mut list = List { settings: Settings::new(), port: None };
    of_program(config, &mut list);
    of_switch(&config.switch, &mut list);
    let routing = config.switch.routing.iter();
    let routing = routing.flat_map(|routing| routing_settings::of(routing, &config.router_defaults));
    for (is_live, key, value) in routing {
        list.put(is_live, key, value.clone(), value);
    }
    for (index, (port, device)) in config.switch.ports.iter().zip(&config.devices).enumerate() {
        list.port = Some(port.name.clone());
        of_port(port, device, &config.switch, &mut list);
        for (queue, maximum) in port.live.max_rates.iter().enumerate() {
            let of = class_or(&config.switch.classes.tc_to_queue, queue, "queue");
            let value = maximum.map_or("off".to_owned(), |maximum| words::max_rate(&maximum));
            // A joint port has no maximum rate, and gets one owner with its first one.
            let is_live = port.is_limited() || !config.switch.may_be_joint(index);
            list.live_if_rounded(is_live, format!("{of}.max_rate"), value, *maximum);
        }
    }
    list.settings
}

/// The collected settings; while `port` is set, added settings belong to that port.
struct List {
    settings: Settings,
    port: Option<String>,
}

impl List {
    fn put(&mut self, is_live: bool, key: impl Into<String>, text: String, exact: String) {
        self.settings.insert((self.port.clone(), key.into()), Setting { text, exact, is_live });
    }

    /// Adds a setting that can change at run time and whose text is exact.
    fn live(&mut self, key: impl Into<String>, value: impl fmt::Display) {
        self.live_if(true, key, value);
    }

    /// Adds a setting that can change at run time if `is_live`.
    fn live_if(&mut self, is_live: bool, key: impl Into<String>, value: impl fmt::Display) {
        self.put(is_live, key, value.to_string(), value.to_string());
    }

    /// Adds a setting that can change at run time and whose text is rounded.
    fn live_rounded(&mut self, key: impl Into<String>, text: impl fmt::Display, exact: impl Exact) {
        self.put(true, key, text.to_string(), exact.exact());
    }

    /// Adds a setting that can change at run time if `is_live`, and whose text is rounded.
    fn live_if_rounded(&mut self, is_live: bool, key: impl Into<String>, text: impl fmt::Display, exact: impl Exact) {
        self.put(is_live, key, text.to_string(), exact.exact());
    }

    fn fixed(&mut self, key: impl Into<String>, value: impl fmt::Display) {
        self.put(false, key, value.to_string(), value.to_string());
    }

    fn fixed_rounded(&mut self, key: impl Into<String>, text: impl fmt::Display, exact: impl Exact) {
        self.put(false, key, text.to_string(), exact.exact());
    }
}

/// Adds the settings that need a restart: processes, memory, hosts.
fn of_program(config: &Config, list: &mut List) {
    let names: Vec<&str> = config.switch.ports.iter().map(|port| port.name.as_str()).collect();
    list.fixed("ports", names.join(", "));
    list.fixed("metrics", config.metrics.map_or("off".to_owned(), |address| address.to_string()));
    let api = &config.api;
    list.fixed("api.socket", restart_only::socket(&api.socket));
    list.fixed("api.group", api.group.clone().unwrap_or_else(|| "none".to_owned()));
    list.fixed("api.writes", api.writes);
    list.fixed("lags", restart_only::lags(config));
    list.fixed("lag_hash", restart_only::lag_hash(config));
    list.live("loop_guard", config.lldp.loop_guard.word());
    list.live("loop_probe", config.lldp.loop_probe.map_or("off".to_owned(), |interval| interval.to_string()));
    list.live("lldp.name", config.lldp.name.as_deref().unwrap_or("host name"));
    list.live("lldp.interval", format!("{}s", config.lldp.interval_s));
    of_faults(config, list);
    of_mirrors(config, list);
    list.fixed("eal.memory", restart_only::memory(config.eal.memory));
    list.fixed("eal.args", config.eal.args.join(" "));
    let lcores = &config.lcores;
    list.fixed_rounded("lcores.poll_gap", lcores.poll_gap, lcores.poll_gap);
    list.fixed("buffer.small_packets", config.summary.small_packets);
    list.fixed_rounded("lcores.poll_delay", lcores.poll_delay, lcores.poll_delay);
    list.fixed("lcores.count", config.switch.lcores);
    list.fixed("lcores.dataplane", restart_only::cpus(lcores));
    list.fixed("lcores.control", lcores.control.map_or("chosen".to_owned(), |cpu| cpu.to_string()));
    list.fixed("lcores.hosts", restart_only::hosts_lcore(lcores.hosts));
    list.fixed_rounded(
        "lcores.idle",
        lcores.idle.map_or("poll".to_owned(), |idle| restart_only::idle(&idle)),
        lcores.idle,
    );
    of_hosts(config, list);
}

/// Adds each fault on one line, as the configuration writes it.
fn of_faults(config: &Config, list: &mut List) {
    let Some(faults) = &config.faults else { return list.fixed("faults", "off") };
    list.fixed("faults", "allowed");
    list.fixed("faults.seed", faults.seed);
    for (index, fault) in faults.list.iter().enumerate() {
        let port = config.switch.ports.get(fault.port).map_or("none", |port| port.name.as_str());
        list.live(format!("faults.list[{index}]"), fault.text(port));
    }
}

/// Adds each mirror and the agent of sFlow on one line, as the configuration writes them. Their ports need a restart.
fn of_mirrors(config: &Config, list: &mut List) {
    let outputs = config.switch.mirror.outputs.iter().map(|port| config.switch.ports[port].name.as_str());
    let outputs: Vec<&str> = outputs.collect();
    list.fixed("ports of mirrors", if outputs.is_empty() { "none".to_owned() } else { outputs.join(", ") });
    for (key, text, exact) in mirror_words::settings(config) {
        list.put(true, key, text, exact);
    }
}

/// Adds each host and each flow on one line, as the configuration writes them.
fn of_hosts(config: &Config, list: &mut List) {
    for host in &config.hosts {
        let port = config.switch.ports.get(host.port).map_or("none", |port| port.name.as_str());
        let pfc = if host.obeys_pfc { "obey" } else { "ignore" };
        let text = format!("{{port: {port}, mac: {}, ip: {}, pfc: {pfc}}}", host.mac, host.ip);
        list.fixed(format!("hosts.{}", host.name), text);
        for (index, flow) in host.flows.iter().enumerate() {
            let (text, exact) =
                (restart_only::flow(flow, &config.hosts), restart_only::exact_flow(flow, &config.hosts));
            list.put(false, format!("hosts.{}.flows[{index}]", host.name), text, exact);
        }
    }
}

fn of_switch(switch: &SwitchSpec, list: &mut List) {
    let plan = &switch.buffer;
    list.fixed_rounded("buffer.cell", plan.cell, plan.cell);
    list.fixed("buffer.headroom.policy", plan.policy.label());
    list.fixed_rounded("buffer.queue_policy", words::queue_policy(switch.abm.as_ref()), switch.abm);
    let parts = [
        ("buffer.size", plan.total),
        ("reserves together", plan.reserves),
        ("headroom together", plan.headroom),
        ("buffer.shared", plan.lossless_shared),
        ("buffer.lossy", plan.lossy_shared),
    ];
    for (key, cells) in parts {
        list.fixed_rounded(key, cells.to_bytes(plan.cell), cells);
    }
    let maps = [
        ("maps.tc_to_group", &switch.classes.tc_to_group),
        ("maps.tc_to_queue", &switch.classes.tc_to_queue),
        ("maps.pfc_to_queue", &switch.classes.pfc_to_queue),
    ];
    for (key, map) in maps {
        for (from, to) in map.iter().enumerate() {
            list.fixed(format!("{key}.{from}"), to);
        }
    }
    list.fixed("fdb.capacity", switch.fdb.capacity);
    list.fixed_rounded("fdb.ageing", switch.fdb.ageing, switch.fdb.ageing);
    for entry in &switch.fdb.entries {
        let port = switch.ports.get(usize::from(entry.port)).map_or("none", |port| port.name.as_str());
        list.fixed(format!("fdb.static.{} in VLAN {}", entry.mac, entry.vlan), format!("port {port}"));
    }
    for (index, queue) in switch.queues.iter().enumerate() {
        let of = class_or(&switch.classes.tc_to_queue, index, "queue");
        list.live(format!("{of}.scheduler"), words::discipline(queue.discipline));
        let ecn = queue.wred.map_or("off".to_owned(), |wred| words::ecn(&wred));
        list.live_rounded(format!("{of}.ecn"), ecn, queue.wred);
        list.fixed(format!("{of}.telemetry"), if switch.telemetry_queues.contains(index) { "hpcc" } else { "off" });
        let point = switch.congestion_points[index].map_or("off".to_owned(), |point| words::congestion_point(&point));
        list.fixed_rounded(format!("{of}.qcn"), point, switch.congestion_points[index]);
        list.fixed_rounded(format!("{of}.queue_reserve"), queue.reserve.to_bytes(plan.cell), queue.reserve);
        if let Some(limit) = queue.limit {
            let (key, value) = threshold(limit.threshold, switch);
            list.live_rounded(format!("{of}.queue_{key}"), value, limit.threshold);
        }
    }
}

fn of_port(port: &PortSpec, device: &PortDevice, switch: &SwitchSpec, list: &mut List) {
    list.fixed("device", &device.kind);
    list.fixed("queues", device.queues);
    list.fixed("tx_queues", device.tx_queues);
    if matches!(device.kind, crate::config::model::DeviceKind::Vhost(_)) {
        list.fixed("socket", &device.socket);
    }
    list.fixed("mac", port.mac);
    list.fixed_rounded("speed", port.rate, port.rate);
    list.fixed("mtu", port.mtu);
    list.fixed_rounded("cable", device.cable, device.cable);
    let response = device.peer_response.map_or("by speed".to_owned(), |time| time.to_string());
    list.fixed_rounded("peer_response", response, device.peer_response);
    list.fixed("descriptors", format!("{} rx, {} tx", device.rx_descriptors, device.tx_descriptors));
    list.fixed("filter.l4_length", port.checks_l4);
    list.fixed("vlan", words::vlans(&port.vlan));
    list.fixed("pfc", port.pfc.label());
    list.fixed("pfc_proven", device.pfc_proven);
    list.fixed("lcore", port.lcore);
    list.live("lldp", if device.lldp { "on" } else { "off" });
    list.fixed("backlog_mark", port.backlog_mark.map_or("off".to_owned(), |mark| mark.to_string()));
    // Flow rules by these marks stay in the device.
    let is_live = device.queues == 1 || !chooses_queues(&device.kind);
    list.live_if(is_live, "trust", port.live.trust.label());
    list.live_if(is_live, "class", port.live.port_class);
    let tables = [("maps.dscp", &port.live.marks.dscp_to_tc[..]), ("maps.pcp", &port.live.marks.pcp_to_tc[..])];
    for (key, table) in tables {
        for (mark, class) in table.iter().enumerate() {
            list.live_if(is_live, format!("{key}.{mark}"), class);
        }
    }
    for (key, class) in port.live.marks.roce.entries() {
        list.live(format!("maps.roce.{key}"), class.map_or("off".to_owned(), |class| class.to_string()));
    }
    for (key, table) in [("rewrite.dscp", port.live.rewrite.dscp), ("rewrite.pcp", port.live.rewrite.pcp)] {
        for (class, mark) in table.iter().enumerate() {
            list.live(format!("{key}.{class}"), mark.map_or("kept".to_owned(), |mark| mark.to_string()));
        }
    }
    let watchdog = port.live.watchdog.map_or("off".to_owned(), |spec| words::watchdog(&spec));
    list.live_rounded("watchdog", watchdog, port.live.watchdog);
    let stuck_after = port.live.stuck_after.map_or("off".to_owned(), |limit| limit.to_string());
    list.live_rounded("stuck_after", stuck_after, port.live.stuck_after.unwrap_or(Nanos(0)));
    for (kind, key) in FloodKind::TABLE {
        let limit = port.live.storm_limits[kind as usize].map_or("off".to_owned(), |rate| rate.to_string());
        list.live(format!("storm_control.{key}"), limit);
    }
    list.fixed("fdb_limit", port.fdb_limit);
    let size = |cells: Cells| cells.to_bytes(switch.buffer.cell);
    for (kind, cells) in ["lossy", "lossless"].into_iter().zip(port.buffer.reserve) {
        list.fixed_rounded(format!("reserve.{kind}"), size(cells), cells);
    }
    list.fixed_rounded("insurance", size(port.buffer.insurance), port.buffer.insurance);
    for (group, profile) in port.buffer.groups.iter().enumerate() {
        of_group(&class_or(&switch.classes.tc_to_group, group, "group"), profile, switch, list);
    }
}

fn of_group(of: &str, profile: &GroupProfile, switch: &SwitchSpec, list: &mut List) {
    let size = |cells: Cells| cells.to_bytes(switch.buffer.cell);
    list.fixed(format!("{of}.lossless"), profile.lossless);
    list.fixed_rounded(format!("{of}.reserve"), size(profile.reserve), profile.reserve);
    list.fixed_rounded(format!("{of}.headroom"), size(profile.headroom), profile.headroom);
    let (key, value) = threshold(profile.threshold, switch);
    list.live_rounded(format!("{of}.{key}"), value, profile.threshold);
    list.live_rounded(format!("{of}.xon_offset"), size(profile.xon_offset), profile.xon_offset);
    list.live_rounded(format!("{of}.xon_floor"), size(profile.xon_floor), profile.xon_floor);
}

/// The key, `alpha` or `limit`, and its value.
fn threshold(threshold: Threshold, switch: &SwitchSpec) -> (&'static str, String) {
    match threshold {
        Threshold::Dynamic(alpha) => ("alpha", alpha.to_string()),
        Threshold::Static(cells) => ("limit", cells.to_bytes(switch.buffer.cell).to_string()),
    }
}

/// `classes.3` if only that class is mapped to `target`, otherwise kind and number of `target`.
fn class_or(map: &[u8; CLASSES], target: usize, kind: &str) -> String {
    only_class(map, target).map_or_else(|| format!("{kind} {target}"), |class| format!("classes.{class}"))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
