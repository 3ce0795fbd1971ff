//! What only a start can change, as the configuration writes it.

use super::api::Socket;
use super::exact::Exact;
use super::model::{HostsLcore, IdleConfig, LcoreConfig, MemoryMode};
use crate::hosts::{FlowKind, FlowPattern, FlowSpec, FlowTarget, HostSpec};

/// Where the API is served.
pub(super) fn socket(socket: &Socket) -> String {
    match socket {
        Socket::Usual => "the usual one".to_owned(),
        Socket::Off => "off".to_owned(),
        Socket::At(path) => path.display().to_string(),
    }
}

/// Memory that DPDK takes.
pub(super) fn memory(mode: MemoryMode) -> &'static str {
    match mode {
        MemoryMode::Auto => "auto",
        MemoryMode::Huge => "huge",
        MemoryMode::NoHuge => "nohuge",
    }
}

/// CPUs of the dataplane.
pub(super) fn cpus(lcores: &LcoreConfig) -> String {
    let cpus: Vec<String> = lcores.dataplane.iter().map(u16::to_string).collect();
    if cpus.is_empty() { "chosen".to_owned() } else { format!("[{}]", cpus.join(", ")) }
}

/// Where virtual hosts run.
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

/// One flow as an item of `flows` with every key; of those that go to a host, one of `hosts`.
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

/// The same with what follows from the maps, which a host goes by until it starts anew, and what is rounded to the last
/// unit.
pub(super) fn exact_flow(spec: &FlowSpec, hosts: &[HostSpec]) -> String {
    let phases = match spec.pattern {
        FlowPattern::Steady => String::new(),
        FlowPattern::OnOff { on, off } => format!(", {} on, {} off", on.exact(), off.exact()),
    };
    let FlowSpec { class, priority, rate, .. } = spec;
    format!("{} (class {class}, priority {priority}, {}{phases})", flow(spec, hosts), rate.exact())
}
