//! `eal:` and `metrics:` of the configuration, and names of ports.

use std::net::{Ipv4Addr, SocketAddr};

use super::draft::Port;
use crate::config::keys::Key;
use crate::config::model::{EalConfig, MemoryMode};
use crate::config::yaml::names;
use crate::config::yaml::read::Item;

pub const EAL_KEYS: &[Key] = &[
    Key::new("memory", "`auto`", "", "`auto`: hugepages if a port is a PCI device; `huge`; `nohuge`"),
    Key::new("args", "none", "", "more DPDK arguments, one per item: `[\"--log-level=pmd.net:notice\"]`"),
];

/// Port 9464 is the default of OpenTelemetry for Prometheus exporters without a port of their own.
const DEFAULT_METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// EAL arguments that other keys determine, with the remedy.
const OWNED_EAL_ARGS: &[(&[&str], &str)] = &[
    (&["-l", "-c", "--lcores", "--main-lcore"], "choose CPUs with `lcores`"),
    (&["-a", "--allow", "--vdev", "--no-pci"], "name devices with `device` of each port"),
    (&["--no-huge", "--in-memory", "-m", "--socket-mem"], "choose memory with `eal.memory`"),
    (&["--file-prefix", "--no-shconf", "--proc-type", "--no-telemetry"], "remove it, because Holdfast sets it"),
];

/// Index of the port that `item` names, as [`port_by_name`], unless it forwards nothing.
pub fn forwarding_port(item: &Item<'_>, ports: &[Port<'_>]) -> Option<usize> {
    let index = port_by_name(item, ports)?;
    if ports[index].is_output {
        return item.refuse(format!("port `{}` sends copies only (`mirrors`); write another port", item.shown()));
    }
    Some(index)
}

/// Index of the port that `item` names; of the first member if it names a link aggregation group.
pub fn port_by_name(item: &Item<'_>, ports: &[Port<'_>]) -> Option<usize> {
    let name = item.shown();
    let names = |port: &Port<'_>| port.lag.as_ref().map_or(port.name.clone(), |(group, _)| group.clone());
    let mut groups: Vec<String> = ports.iter().map(names).collect();
    let index = groups.iter().position(|known| *known == name);
    if let Some((group, _)) = ports.iter().find(|port| port.name == name).and_then(|port| port.lag.as_ref()) {
        return item.refuse(format!("port `{name}` is a member of `{group}`; write `{group}`"));
    }
    groups.dedup();
    let known: Vec<&str> = groups.iter().map(String::as_str).collect();
    index.or_else(|| item.refuse(format!("there is no port `{name}`; {}", names::suggest(&name, &known))))
}

/// Reads `eal:`.
pub fn read_eal(item: Option<Item<'_>>) -> EalConfig {
    let fields = item.and_then(|item| item.fields(EAL_KEYS));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let modes = [("auto", MemoryMode::Auto), ("huge", MemoryMode::Huge), ("nohuge", MemoryMode::NoHuge)];
    let memory = get("memory").and_then(|item| item.choice(&modes)).unwrap_or(MemoryMode::Auto);
    let items = get("args").and_then(|item| item.list("e.g. [\"--log-level=8\"]")).unwrap_or_default();
    let args = items.iter().filter_map(read_eal_arg).collect();
    EalConfig { memory, args }
}

fn read_eal_arg(item: &Item<'_>) -> Option<String> {
    let arg = item.text("an argument; write e.g. \"--log-level=8\"")?;
    for (flags, remedy) in OWNED_EAL_ARGS {
        if flags.iter().any(|flag| is_flag(arg, flag)) {
            return item.refuse(format!("`{}` is not allowed in `args`; {remedy}", item.shown()));
        }
    }
    if arg.is_empty() || arg.contains(['\0', '\n']) || (arg.starts_with('-') && arg.contains(' ')) {
        return item.refuse(format!("`{}` is not one argument; write each as an item of its own", item.shown()));
    }
    Some(arg.to_owned())
}

/// Whether `arg` is `flag`, with or without an attached value: `--vdev=x`, `-l0-3`.
fn is_flag(arg: &str, flag: &str) -> bool {
    let Some(rest) = arg.strip_prefix(flag) else { return false };
    rest.is_empty() || rest.starts_with(['=', ' ']) || !flag.starts_with("--")
}

/// Reads `metrics:`.
pub fn read_metrics(item: Option<Item<'_>>) -> Option<SocketAddr> {
    let Some(item) = item else { return Some(DEFAULT_METRICS) };
    match item.shown().parse() {
        _ if item.is("off") => None,
        Ok(address) => Some(address),
        Err(_) => {
            let remedy = "write e.g. 127.0.0.1:9464, 0.0.0.0:9464, [::]:9464 or off";
            item.refuse(format!("`{}` is not an address with a port; {remedy}", item.shown()))
        }
    }
}
