//! Settings that only a restart can change, as the configuration writes them.

use super::model::{Config, HostsLcore, IdleConfig, LcoreConfig, MemoryMode};
use crate::config::sections::api::Socket;
use crate::config::yaml::exact::Exact;
use crate::hosts::{FlowKind, FlowPattern, FlowSpec, FlowTarget, HostSpec};

/// The link aggregation groups, each with every key.
pub(super) fn lags(config: &Config) -> String {
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
pub(super) fn lag_hash(config: &Config) -> String {
    let lags = &config.switch.lags;
    let seed = if config.has_lag_seed { lags.hash_seed.to_string() } else { "chosen".to_owned() };
    format!("{{seed: {seed}, symmetric: {}}}", lags.is_symmetric)
}

/// The socket of the API.
pub(super) fn socket(socket: &Socket) -> String {
    match socket {
        Socket::Usual => "the usual one".to_owned(),
        Socket::Off => "off".to_owned(),
        Socket::At(path) => path.display().to_string(),
    }
}

/// The memory that DPDK uses.
pub(super) fn memory(mode: MemoryMode) -> &'static str {
    match mode {
        MemoryMode::Auto => "auto",
        MemoryMode::Huge => "huge",
        MemoryMode::NoHuge => "nohuge",
    }
}

/// The CPUs of the dataplane.
pub(super) fn cpus(lcores: &LcoreConfig) -> String {
    let cpus: Vec<String> = lcores.dataplane.iter().map(u16::to_string).collect();
    if cpus.is_empty() { "chosen".to_owned() } else { format!("[{}]", cpus.join(", ")) }
}

/// The lcore on which virtual hosts run.
pub(super) fn hosts_lcore(hosts: HostsLcore) -> String {
    match hosts {
        HostsLcore::WithSwitch => "with-switch".to_owned(),
        HostsLcore::Own(None) => "own".to_owned(),
        HostsLcore::Own(Some(cpu)) => cpu.to_string(),
    }
}

/// How lcores rest.
pub(super) fn idle(idle: &IdleConfig) -> String {
    let IdleConfig { after, longest, wake, lossless, .. } = idle;
    let wait = idle.wait.label();
    format!("{{wait: {wait}, after: {after}, longest: {longest}, wake: {wake}, lossless: {lossless}}}")
}

/// One flow as an item of `flows` with every key; `hosts` resolves the names of target hosts.
pub(super) fn flow(flow: &FlowSpec, hosts: &[HostSpec]) -> String {
    let to = match flow.to {
        FlowTarget::Host(index) => hosts.get(index).map_or_else(|| index.to_string(), |host| host.name.clone()),
        FlowTarget::Station { mac, ip } => format!("{{mac: {mac}, ip: {ip}}}"),
    };
    let kind = match flow.kind {
        FlowKind::Roce => "roce",
        FlowKind::Udp => "udp",
    };
    let vlan = flow.vlan.map_or_else(String::new, |vlan| format!(", pcp: {}, vlan: {vlan}", flow.pcp));
    let pattern = match flow.pattern {
        FlowPattern::Steady => "steady".to_owned(),
        FlowPattern::OnOff { on, off } => format!("{{on: {on}, off: {off}}}"),
    };
    let FlowSpec { rate, frame_len, dscp, ecn, .. } = flow;
    format!(
        "{{to: {to}, kind: {kind}, rate: {rate}, frame: {frame_len}, dscp: {dscp}{vlan}, ecn: {ecn}, pattern: {pattern}}}"
    )
}

/// The text of [`flow`] with exact values, and with the class and priority from the maps, which a host uses until it
/// restarts.
pub(super) fn exact_flow(spec: &FlowSpec, hosts: &[HostSpec]) -> String {
    let phases = match spec.pattern {
        FlowPattern::Steady => String::new(),
        FlowPattern::OnOff { on, off } => format!(", {} on, {} off", on.exact(), off.exact()),
    };
    let FlowSpec { class, priority, rate, .. } = spec;
    format!("{} (class {class}, priority {priority}, {}{phases})", flow(spec, hosts), rate.exact())
}
