//! Settings of the program: its addresses, threads and memory, groups of links, LLDP, faults, mirrors and hosts.

use super::row::{Row, Settings, live, restart};
use super::value::{Precision, Value};
use super::{list_or_none, or_none, or_off};
use crate::config::mirror_words;
use crate::config::model::{Config, HostsLcore, LcoreConfig, MemoryMode};
use crate::config::sections::api::Socket;
use crate::hosts::{FlowKind, FlowPattern, FlowSpec, FlowTarget, HostSpec};

fn rows() -> Vec<Row<Config>> {
    vec![
        restart("ports", |config, _| {
            Some(config.switch.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", "))
        }),
        restart("metrics", |config, _| Some(or_off(config.metrics))),
        restart("api.socket", |config, _| Some(socket(&config.api.socket))),
        restart("api.group", |config, _| Some(or_none(config.api.group.as_ref()))),
        restart("api.readers", |config, _| Some(list_or_none(&config.api.readers))),
        restart("api.admins", |config, _| Some(list_or_none(&config.api.admins))),
        restart("api.writes", |config, _| Some(config.api.writes.to_string())),
        restart("lags", |config, _| Some(lags(config))),
        restart("lag_hash", |config, _| Some(lag_hash(config))),
        live("loop_guard", |config, _| Some(config.lldp.loop_guard.word().to_owned())),
        live("loop_probe", |config, precision| Some(config.lldp.loop_probe.text(precision))),
        live("lldp.name", |config, _| Some(config.lldp.name.as_deref().unwrap_or("host name").to_owned())),
        live("lldp.interval", |config, _| Some(format!("{}s", config.lldp.interval_s))),
        restart("faults", |config, _| Some(if config.faults.is_some() { "allowed" } else { "off" }.to_owned())),
        restart("faults.seed", |config, _| Some(config.faults.as_ref()?.seed.to_string())),
        restart("ports of mirrors", |config, _| Some(outputs(config))),
        restart("eal.memory", |config, _| Some(memory(config.eal.memory).to_owned())),
        restart("eal.args", |config, _| Some(config.eal.args.join(" "))),
        restart("buffer.small_packets", |config, _| Some(config.summary.small_packets.to_string())),
        restart("lcores.poll_gap", |config, precision| Some(config.lcores.poll_gap.text(precision))),
        restart("lcores.poll_delay", |config, precision| Some(config.lcores.poll_delay.text(precision))),
        restart("lcores.count", |config, _| Some(config.switch.lcores.to_string())),
        restart("lcores.dataplane", |config, _| Some(cpus(&config.lcores))),
        restart("lcores.control", |config, _| {
            Some(config.lcores.control.map_or("chosen".to_owned(), |cpu| cpu.to_string()))
        }),
        restart("lcores.hosts", |config, _| Some(hosts_lcore(config.lcores.hosts))),
        restart("lcores.idle", |config, precision| {
            Some(config.lcores.idle.as_ref().map_or("poll".to_owned(), |idle| idle.text(precision)))
        }),
    ]
}

/// Adds the settings of the program.
pub(super) fn add(config: &Config, settings: &mut Settings) {
    settings.add(None, "", &rows(), config);
    add_faults(config, settings);
    mirror_words::add(config, settings);
    add_hosts(config, settings);
}

/// Adds each fault on one line, as the configuration writes it.
fn add_faults(config: &Config, settings: &mut Settings) {
    for (index, fault) in config.faults.iter().flat_map(|faults| &faults.list).enumerate() {
        let port = config.switch.ports.get(fault.port).map_or("none", |port| port.name.as_str());
        settings.put(None, format!("faults.list[{index}]"), true, |_| fault.text(port));
    }
}

/// Adds each host and each flow on one line, as the configuration writes them.
fn add_hosts(config: &Config, settings: &mut Settings) {
    for host in &config.hosts {
        let port = config.switch.ports.get(host.port).map_or("none", |port| port.name.as_str());
        let pfc = if host.obeys_pfc { "obey" } else { "ignore" };
        let text = |_| format!("{{port: {port}, mac: {}, ip: {}, pfc: {pfc}}}", host.mac, host.ip);
        settings.put(None, format!("hosts.{}", host.name), false, text);
        for (index, spec) in host.flows.iter().enumerate() {
            let text = |precision| flow(spec, &config.hosts, precision);
            settings.put(None, format!("hosts.{}.flows[{index}]", host.name), false, text);
        }
    }
}

/// The ports that send copies.
fn outputs(config: &Config) -> String {
    let outputs = config.switch.mirror.outputs.iter().map(|port| config.switch.ports[port].name.as_str());
    let outputs: Vec<&str> = outputs.collect();
    if outputs.is_empty() { "none".to_owned() } else { outputs.join(", ") }
}

/// The link aggregation groups, each with every key.
fn lags(config: &Config) -> String {
    let groups = config.switch.lags.groups.iter().zip(&config.lacp).map(|(group, lacp)| {
        let names: Vec<&str> = group.ports.iter().map(|port| config.switch.ports[port].name.as_str()).collect();
        let lacp = match lacp {
            None => "lacp: off".to_owned(),
            Some(lacp) => {
                let (mode, rate) = (["passive", "active"], ["slow", "fast"]);
                format!("lacp: {}, rate: {}", mode[usize::from(lacp.is_active)], rate[usize::from(lacp.is_fast)])
            }
        };
        format!("{{name: {}, ports: [{}], {lacp}, min_links: {}}}", group.name, names.join(", "), group.min_links)
    });
    format!("[{}]", groups.collect::<Vec<_>>().join(", "))
}

/// The hash of link aggregation groups.
fn lag_hash(config: &Config) -> String {
    let lags = &config.switch.lags;
    let seed = if config.has_lag_seed { lags.hash_seed.to_string() } else { "chosen".to_owned() };
    format!("{{seed: {seed}, symmetric: {}}}", lags.is_symmetric)
}

/// The socket of the API.
fn socket(socket: &Socket) -> String {
    match socket {
        Socket::Usual => "the usual one".to_owned(),
        Socket::Off => "off".to_owned(),
        Socket::At(path) => path.display().to_string(),
    }
}

/// The memory that DPDK uses.
fn memory(mode: MemoryMode) -> &'static str {
    match mode {
        MemoryMode::Auto => "auto",
        MemoryMode::Huge => "huge",
        MemoryMode::NoHuge => "nohuge",
    }
}

/// The CPUs of the dataplane.
fn cpus(lcores: &LcoreConfig) -> String {
    let cpus: Vec<String> = lcores.dataplane.iter().map(u16::to_string).collect();
    if cpus.is_empty() { "chosen".to_owned() } else { format!("[{}]", cpus.join(", ")) }
}

/// The lcore on which virtual hosts run.
fn hosts_lcore(hosts: HostsLcore) -> String {
    match hosts {
        HostsLcore::WithSwitch => "with-switch".to_owned(),
        HostsLcore::Own(None) => "own".to_owned(),
        HostsLcore::Own(Some(cpu)) => cpu.to_string(),
    }
}

/// One flow as an item of `flows` with every key; `hosts` resolves the names of target hosts. Exact are also the class
/// and priority from the maps, which a host uses until it restarts.
fn flow(flow: &FlowSpec, hosts: &[HostSpec], precision: Precision) -> String {
    let to = match flow.to {
        FlowTarget::Host(index) => hosts.get(index).map_or_else(|| index.to_string(), |host| host.name.clone()),
        FlowTarget::Station { mac, ip } => format!("{{mac: {mac}, ip: {ip}}}"),
    };
    let kind = match flow.kind {
        FlowKind::Roce => "roce",
        FlowKind::Udp => "udp",
    };
    let vlan = flow.vlan.map_or_else(String::new, |vlan| format!(", pcp: {}, vlan: {vlan}", flow.pcp));
    let (pattern, phases) = match flow.pattern {
        FlowPattern::Steady => ("steady".to_owned(), String::new()),
        FlowPattern::OnOff { on, off } => (
            format!("{{on: {on}, off: {off}}}"),
            format!(", {} on, {} off", on.text(Precision::Exact), off.text(Precision::Exact)),
        ),
    };
    let FlowSpec { rate, frame_len, dscp, ecn, class, priority, .. } = flow;
    let exact = match precision {
        Precision::Rounded => String::new(),
        Precision::Exact => {
            format!(" (class {class}, priority {priority}, {}{phases})", rate.text(Precision::Exact))
        }
    };
    format!(
        "{{to: {to}, kind: {kind}, rate: {rate}, frame: {frame_len}, dscp: {dscp}{vlan}, ecn: {ecn}, pattern: \
         {pattern}}}{exact}"
    )
}
